"""The text actions `search[words]` and `click[label]`.

* `parse_action` - an action as name and argument
* `check_search`, `check_click` - the query or target of an action that is valid on a page
* `ActionablePage` - the part of a page that these functions read
* `ActionResult` - the result of an action
* `AvailableActions`, `list_available_actions` - the valid actions of a page, in the original's form
* `MAX_ACTION` - the maximum length of an action
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypedDict, TypeVar

from webshop_server.errors import ArgumentError
from webshop_server.page_model import ShownPage
from webshop_server.product import clean
from webshop_server.urls import normalize_query

MAX_ACTION = 4096
"""The maximum length of an action, in characters."""

SESSION_OVER = "the session is over: something has been bought"
"""The error of an action after the purchase."""

T_co = TypeVar("T_co", covariant=True)

_ACTION = re.compile(r"\s*(\w+)\s*\[(.*)\]\s*", re.DOTALL)


class ActionResult(NamedTuple):
    """The result of an action.

    Args:
        page: the current page.
        reward: the score of the purchase if this action completed it, else 0.0.
        is_done: whether the session is over.
        error: the reason why the action was invalid, or `None`.
    """

    page: ShownPage
    reward: float
    is_done: bool
    error: str | None


class AvailableActions(TypedDict):
    """The valid actions of a page, in the original's form."""

    has_search_bar: bool
    clickables: list[str]


class ActionablePage(Protocol[T_co]):
    """The part of a page that decides which actions are valid."""

    @property
    def clickables(self) -> Mapping[str, T_co | None]:
        """The target of each label, in lower case; `None` for the search button."""

    @property
    def has_search_bar(self) -> bool:
        """Whether the page accepts `search[words]`."""


def list_available_actions(page: ShownPage) -> AvailableActions:
    """Return the valid actions of a page, in the original's form."""
    return {"has_search_bar": page.has_search_bar, "clickables": list(page.clickables)}


def parse_action(action: object) -> tuple[str, str]:
    """Split an action into name and argument.

    Raises:
        ArgumentError: it does not have the form `search[words]` or `click[label]`.

    Example:
        >>> parse_action("Click[Buy Now]")
        ('click', 'Buy Now')
    """
    if not isinstance(action, str):
        raise ArgumentError(f"`action` should be a text. Received {type(action).__name__}")
    if len(action) > MAX_ACTION:
        raise ArgumentError(f"`action` should have at most {MAX_ACTION} characters. Received {len(action)}")
    found = _ACTION.fullmatch(action)
    if not found or found[1].lower() not in ("search", "click"):
        raise ArgumentError(f"`action` should be search[words] or click[label]. Received {_short(action)}")
    return found[1].lower(), found[2].strip()


def check_search(page: ActionablePage[object], words: str) -> str:
    """Return the normalised query of a search on this page.

    Raises:
        ArgumentError: the page has no search bar, or the query is empty.
    """
    if not page.has_search_bar:
        raise ArgumentError("there is no search bar on this page")
    keywords = normalize_query(words)
    if not keywords:
        raise ArgumentError("a search needs words: search[words]")
    return keywords


def check_click(page: ActionablePage[T_co], label: str) -> T_co:
    """Return the target of a label on this page.

    Raises:
        ArgumentError: no element of the page has the label, or it is the search button.
    """
    wanted = label.lower()
    if wanted not in page.clickables:
        wanted = clean(wanted)  # a recorded label of the original has two blanks where it replaces a slash
    if wanted not in page.clickables:
        raise ArgumentError(f"there is no button {_short(label)} on this page")
    target = page.clickables[wanted]
    if target is None:
        raise ArgumentError("a search needs words: search[words]")
    return target


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "...")

"""What a shopper can do, as text.

* `parse_action` - `search[words]` or `click[label]` as its two parts
* `check_search`, `check_click` - whether that can be done on a page
* `Clickable` - what these need to know about a page
* `MAX_ACTION` - how long an action may be
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

from webshop_server.errors import ArgumentError
from webshop_server.urls import normal_query

MAX_ACTION = 4096
"""The characters that an action may have."""

_ACTION = re.compile(r"\s*(\w+)\s*\[(.*)\]\s*", re.DOTALL)


class Clickable(Protocol):
    """A page, as far as actions need it."""

    @property
    def clickables(self) -> Mapping[str, Any]:
        """What can be clicked, by label in lower case; `None` for the search button."""

    @property
    def has_search_bar(self) -> bool:
        """Whether words can be searched from here."""


def parse_action(action: object) -> tuple[str, str]:
    """Give an action's name and argument.

    Raises:
        ArgumentError: it is not of the form `search[words]` or `click[label]`.

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


def check_search(page: Clickable, words: str) -> str:
    """Give the query that words become on this page.

    Raises:
        ArgumentError: the page has no search bar, or there are no words.
    """
    if not page.has_search_bar:
        raise ArgumentError("there is no search bar on this page")
    keywords = normal_query(words)
    if not keywords:
        raise ArgumentError("a search needs words: search[words]")
    return keywords


def check_click(page: Clickable, label: str) -> Any:
    """Give what a label leads to on this page.

    Raises:
        ArgumentError: nothing on the page has the label, or it is the search button without words.
    """
    wanted = label.lower()
    if wanted not in page.clickables:
        raise ArgumentError(f"there is no button {_short(label)} on this page")
    target = page.clickables[wanted]
    if target is None:
        raise ArgumentError("a search needs words: search[words]")
    return target


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "...")

"""What the shop's environment needs of a shop, wherever it runs.

* `Backend` - the protocol: let a shopper in, act, show the page
* `ShownPage` - the page as every backend shows it
* `BrowserOptions` - how a browser shows it
* `BackendReply` - what an action led to
* `BACKENDS`, `make_backend` - the backends by name
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from drift_envs.errors import ArgumentError
from webshop_server.page_model import Element
from webshop_server.settings import Settings
from webshop_server.shop import Shop

BACKENDS = {
    "in_process": "drift_envs.envs.webshop.backends.in_process:InProcess",
    "http": "drift_envs.envs.webshop.backends.http:Http",
    "browser": "drift_envs.envs.webshop.backends.browser:Browser",
}
"""Where the shop can run; loaded when asked for, so that nobody needs a browser who uses none."""


class ShownPage(Protocol):
    """The page as every backend shows it."""

    @property
    def text(self) -> str:
        """The visible texts joined by ` [SEP] `."""

    @property
    def text_rich(self) -> str:
        """The visible texts with marks for what can be clicked."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The visible texts in reading order."""

    @property
    def elements(self) -> tuple[Element, ...]:
        """What stands on it, in reading order."""

    @property
    def path(self) -> str:
        """The address without host."""

    @property
    def clickables(self) -> Mapping[str, Any]:
        """What can be clicked, by label in lower case; `None` for the search button."""

    @property
    def has_search_bar(self) -> bool:
        """Whether words can be searched from here."""


class BackendReply(NamedTuple):
    """What an action led to.

    Args:
        reward: the score of a purchase that it completed, else 0.0.
        is_done: whether something has been bought.
        error: why it did nothing, or `None`.
    """

    reward: float
    is_done: bool
    error: str | None


class Backend(Protocol):
    """A shop with one shopper in it.

    Attributes:
        page: the page that is shown now.
    """

    page: ShownPage

    def configure(self, settings: Settings) -> None:
        """Change the operator's settings, from the next page on."""
        ...

    def start(self, goal: int) -> None:
        """Let a new shopper in, who is to buy this goal."""
        ...

    def act(self, action: str) -> BackendReply:
        """Do `search[words]` or `click[label]`; what cannot be done changes nothing."""
        ...

    def html(self) -> str:
        """The document of the page."""
        ...

    def screenshot(self) -> bytes | None:
        """The page as a PNG picture; `None` where nobody sees it."""
        ...

    def save(self) -> Any:
        """Where the shopper stands, without the settings."""
        ...

    def load(self, saved: Any) -> None:
        """Stand where another shopper stood."""
        ...

    def close(self) -> None:
        """Let everything go."""
        ...


class BrowserOptions(NamedTuple):
    """How a browser shows the shop; other backends have no use for it.

    Args:
        window: whether a person watches, in Chromium's own window.
        pictures: whether somebody sees the pictures; they take time.
        native_clicks: whether clicks go through the screen, so that a covered button can't be clicked.
    """

    window: bool = False
    pictures: bool = True
    native_clicks: bool = True


def make_backend(name: str, shop: Shop, looks: BrowserOptions) -> Backend:
    """Make a backend.

    Args:
        name: one of `BACKENDS`.
        shop: inventory, kind of goals and lengths.
        looks: how a browser shows it.

    Raises:
        ArgumentError: if there is no backend of this name.
    """
    if name not in BACKENDS:
        raise ArgumentError(f"`backend` should be one of {', '.join(BACKENDS)}. Received {name!r}")
    module, kind = BACKENDS[name].split(":")
    backend: Backend = getattr(import_module(module), kind)(shop, looks)
    return backend

"""The interface of the shop's environment to its backends.

* `Backend` - the protocol of a backend
* `ShownPage` - the protocol of a page
* `BrowserOptions` - the options of the browser backend
* `BackendReply` - the result of an action
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
    "in_process": "drift_envs.envs.webshop.backends.in_process:InProcessBackend",
    "http": "drift_envs.envs.webshop.backends.http:HttpBackend",
    "browser": "drift_envs.envs.webshop.backends.browser:BrowserBackend",
}
"""The backends, as `module:class`; imported on first use, so that Selenium is needed by `browser` alone."""


class ShownPage(Protocol):
    """A page, in any backend."""

    @property
    def text(self) -> str:
        """The visible texts joined by ` [SEP] `."""

    @property
    def text_rich(self) -> str:
        """The visible texts with marks around what can be clicked."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The visible texts in reading order."""

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elements in reading order."""

    @property
    def path(self) -> str:
        """The path of the URL."""

    @property
    def clickables(self) -> Mapping[str, object | None]:
        """The target of each label, in lower case; `None` for the search button."""

    @property
    def has_search_bar(self) -> bool:
        """Whether the page accepts `search[words]`."""


class BackendReply(NamedTuple):
    """The result of an action.

    Args:
        reward: the score of the purchase if the action completed it, else 0.0.
        is_done: whether the session is over.
        error: the reason why the action was invalid, or `None`.
    """

    reward: float
    is_done: bool
    error: str | None


class Backend(Protocol):
    """A shop with one session."""

    @property
    def page(self) -> ShownPage:
        """The current page."""
        ...

    def configure(self, settings: Settings) -> None:
        """Change the settings, from the next page on."""
        ...

    def start(self, goal: int) -> None:
        """Start a session with the goal of this number."""
        ...

    def act(self, action: str) -> BackendReply:
        """Execute `search[words]` or `click[label]`; an invalid action changes nothing."""
        ...

    def html(self) -> str:
        """The document of the page."""
        ...

    def screenshot(self) -> bytes | None:
        """The page as a PNG image; `None` if it is not displayed."""
        ...

    def save(self) -> Any:
        """Return the state of the session, without the settings."""
        ...

    def load(self, saved: Any) -> None:
        """Restore a state that `save` returned."""
        ...

    def close(self) -> None:
        """Free all resources."""
        ...


class BrowserOptions(NamedTuple):
    """The options of the browser backend; other backends ignore them.

    Args:
        window: whether Chromium's window is shown.
        pictures: whether pictures are loaded, which takes time.
        native_clicks: whether clicks are mouse clicks, which a covered button does not receive.
    """

    window: bool = False
    pictures: bool = True
    native_clicks: bool = True


def make_backend(name: str, shop: Shop, options: BrowserOptions) -> Backend:
    """Make a backend.

    Args:
        name: one of `BACKENDS`.
        shop: inventory, kind of goals and lengths.
        options: the options of a browser.

    Raises:
        ArgumentError: there is no backend of this name.
    """
    if name not in BACKENDS:
        raise ArgumentError(f"`backend` should be one of {', '.join(BACKENDS)}. Received {name!r}")
    module, kind = BACKENDS[name].split(":")
    backend: Backend = getattr(import_module(module), kind)(shop, options)
    return backend

"""The interface of the shop's environment to its backends.

* `Backend` - the protocol of a backend
* `BrowserOptions` - the options of the browser backend
* `require_started` - refuses the use of a session before `reset`
* `BACKENDS`, `make_backend` - the backends by name
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeVar

from drift_envs.errors import ArgumentError, StateError
from webshop_server.action import ActionResult
from webshop_server.page_model import ShownPage
from webshop_server.settings import Settings
from webshop_server.shop import Shop

BACKENDS = {
    "in_process": "drift_envs.envs.webshop.backends.in_process:InProcessBackend",
    "http": "drift_envs.envs.webshop.backends.http:HttpBackend",
    "browser": "drift_envs.envs.webshop.backends.browser:BrowserBackend",
}
"""The backends, as `module:class`; imported on first use, so that Selenium is needed by `browser` alone."""


T = TypeVar("T")


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

    def act(self, action: str) -> ActionResult:
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


def require_started(value: T | None) -> T:
    """Return the session or page of a backend.

    Args:
        value: the session or page, `None` before the first `start`.

    Raises:
        StateError: it is `None`.
    """
    if value is None:
        raise StateError("there is no page before `reset`; call `reset` first")
    return value

"""What plays the shop's pages: the protocol of a backend, and the one without a socket, which alone can be copied."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, Protocol, TypeVar

from drift_envs.errors import StateError
from drift_envs.utils.lazy import load_object
from webshop_server.page_model import ActionResult, PageModel, ShownPage
from webshop_server.renderer import render_html
from webshop_server.settings import Settings
from webshop_server.shop import Session, Shop

BACKENDS = {
    "in_process": "drift_envs.envs.webshop.backends:InProcessBackend",
    "http": "drift_envs.envs.webshop.served:HttpBackend",
    "browser": "drift_envs.envs.webshop.served:BrowserBackend",
}
"""The backends, as `module:class`; imported on first use, so that Selenium is needed by `browser` alone."""


T = TypeVar("T")


class Backend(Protocol):
    """A shop with one session."""

    @property
    def page(self) -> ShownPage[object]:
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
        MissingDependencyError: what the backend needs is not installed.
    """
    backend: Backend = load_object(BACKENDS[name])(shop, options)
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


class InProcessBackend:
    """A session of the shop's state machine.

    Args:
        shop: inventory, kind of goals and lengths; its settings are copied.
        options: not used.
    """

    def __init__(self, shop: Shop, options: BrowserOptions) -> None:
        self._shop = Shop(shop.inventory, shop.settings, goal_kind=shop.goal_kind, max_length=shop.max_length)
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The current session.

        Raises:
            StateError: before the first `start`.
        """
        return require_started(self._session)

    @property
    def page(self) -> PageModel:
        """The current page."""
        return self.session.page

    def configure(self, settings: Settings) -> None:
        """Change the settings, from the next page on.

        Args:
            settings: the new settings.
        """
        self._shop.settings = settings

    def start(self, goal: int) -> None:
        """Start a session.

        Args:
            goal: the number of its goal.
        """
        self._session = self._shop.start(goal)

    def act(self, action: str) -> ActionResult:
        """Execute `search[words]` or `click[label]`; an invalid action changes nothing.

        Args:
            action: the action; case is ignored.
        """
        return self.session.act(action)

    def html(self) -> str:
        """The document of the page."""
        return render_html(self.page)

    def screenshot(self) -> bytes | None:
        """`None`: the page is not displayed."""
        return None

    def save(self) -> Session | None:
        """Return the session, without the settings; `None` before the first `start`."""
        shop = self._shop
        return copy.deepcopy(self._session, {id(shop): shop})

    def load(self, saved: Session | None) -> None:
        """Restore a session.

        Args:
            saved: the result of `save`, of this or of another backend.
        """
        if saved is None:
            self._session = None
            return
        self._session = copy.deepcopy(saved, {id(saved.shop): self._shop})

    def close(self) -> None:
        """Do nothing: the inventory is shared."""

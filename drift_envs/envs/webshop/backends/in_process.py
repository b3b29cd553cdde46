"""The shop without a socket: the fastest backend, and the only one that can be copied.

* `InProcessBackend` - a session of the shop's state machine
"""

from __future__ import annotations

import copy

from drift_envs.envs.webshop.backends.base import BrowserOptions, require_started
from webshop_server.action import ActionResult
from webshop_server.page_model import PageModel
from webshop_server.renderer import render_html
from webshop_server.settings import Settings
from webshop_server.shop import Session, Shop


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

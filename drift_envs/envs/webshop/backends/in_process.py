"""The shop without a socket: the fastest backend, and the only one that can be copied.

* `InProcess` - a session of the shop's state machine
"""

from __future__ import annotations

import copy
from typing import Any

from drift_envs.envs.webshop.backends.base import BackendReply, BrowserOptions
from drift_envs.errors import StateError
from webshop_server.page_model import Page
from webshop_server.renderer import render_html
from webshop_server.settings import Settings
from webshop_server.shop import Session, Shop


class InProcess:
    """A session of the shop's state machine.

    Args:
        shop: inventory, kind of goals and lengths; its settings become this backend's own.
        looks: not used, nobody can watch.
    """

    def __init__(self, shop: Shop, looks: BrowserOptions) -> None:
        self._shop = Shop(shop.inventory, shop.settings, goal_kind=shop.goal_kind, max_length=shop.max_length)
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The present shopper.

        Raises:
            StateError: if nobody has been let in yet.
        """
        if self._session is None:
            raise StateError("a page was asked for before `reset`; call `reset` first")
        return self._session

    @property
    def page(self) -> Page:
        """The page that is shown now."""
        return self.session.page

    def configure(self, settings: Settings) -> None:
        """Change the operator's settings, from the next page on.

        Args:
            settings: the new ones.
        """
        self._shop.settings = settings

    def start(self, goal: int) -> None:
        """Let a new shopper in.

        Args:
            goal: the number of what they are to buy.
        """
        self._session = self._shop.start(goal)

    def act(self, action: str) -> BackendReply:
        """Do `search[words]` or `click[label]`; what cannot be done changes nothing.

        Args:
            action: the action, in any case.
        """
        _, reward, is_done, error = self.session.act(action)
        return BackendReply(reward, is_done, error)

    def html(self) -> str:
        """The document of the page."""
        return render_html(self.page)

    def screenshot(self) -> bytes | None:
        """Nothing: nobody sees the page."""
        return None

    def save(self) -> Any:
        """Where the shopper stands, without the settings."""
        shop = self._shop
        return copy.deepcopy(self._session, {id(shop): shop})

    def load(self, saved: Any) -> None:
        """Stand where another shopper stood.

        Args:
            saved: what `save` gave, of this or of another backend.
        """
        if saved is None:
            self._session = None
            return
        self._session = copy.deepcopy(saved, {id(saved.shop): self._shop})

    def close(self) -> None:
        """Nothing to let go: the inventory is shared."""

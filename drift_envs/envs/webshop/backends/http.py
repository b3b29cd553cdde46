"""The shop behind a socket: every page is fetched as a document and read back.

* `Http` - one shopper of a server in this process
* `Remote` - what the backends share that talk to a server: they cannot be copied
"""

from __future__ import annotations

from typing import Any, NoReturn

from drift_envs.envs.webshop.backends.base import BackendReply, BrowserOptions
from drift_envs.envs.webshop.backends.server import LocalShop
from drift_envs.errors import StateError
from webshop_server.client import ClientSession
from webshop_server.errors import ShopError
from webshop_server.parser import FormRequest, HtmlPage, read_html
from webshop_server.settings import Settings
from webshop_server.shop import Shop


class Remote:
    """What the backends share that talk to a server.

    Args:
        shop: inventory, kind of goals and lengths.
    """

    name = "http"

    def __init__(self, shop: Shop) -> None:
        self.max_length = shop.max_length
        self.server: LocalShop = LocalShop(shop)

    def configure(self, settings: Settings) -> None:
        """Change the operator's settings, from the next page on.

        Args:
            settings: the new ones.
        """
        self.server.configure(settings)

    def close(self) -> None:
        """End the server."""
        self.server.close()

    def save(self) -> NoReturn:
        """Refused: where a session stands is the server's affair.

        Raises:
            StateError: always.
        """
        raise StateError(self._refusal("saved"))

    def load(self, saved: Any) -> NoReturn:
        """Refused.

        Raises:
            StateError: always.
        """
        raise StateError(self._refusal("loaded"))

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be copied or pickled: two worlds would share one session."""
        raise StateError(self._refusal("copied or pickled"))

    def _refusal(self, what: str) -> str:
        return (
            f"a shop with `backend={self.name!r}` cannot be {what} once it has been reset; "
            "use `backend='in_process'`, or do it before the first `reset`"
        )


class Http(Remote):
    """One shopper of a server in this process.

    Args:
        shop: inventory, kind of goals and lengths.
        looks: not used, nobody can watch.
    """

    def __init__(self, shop: Shop, looks: BrowserOptions) -> None:
        super().__init__(shop)
        self._session: ClientSession | None = None

    @property
    def session(self) -> ClientSession:
        """The present shopper.

        Raises:
            StateError: if nobody has been let in yet.
        """
        if self._session is None:
            raise StateError("a page was asked for before `reset`; call `reset` first")
        return self._session

    @property
    def page(self) -> HtmlPage:
        """The page that is shown now."""
        return self.session.page

    def start(self, goal: int) -> None:
        """Let a new shopper in.

        Args:
            goal: the number of what they are to buy.
        """
        if self._session is not None:
            self.server.remove(self._session.session_id)
        client = self.server.client
        session_id = self.server.start(goal)
        path, document = client.fetch(FormRequest("GET", f"/{session_id}"))
        self._session = ClientSession(client, session_id, read_html(document, path, max_length=self.max_length))

    def act(self, action: str) -> BackendReply:
        """Do `search[words]` or `click[label]`; what cannot be done changes nothing.

        Args:
            action: the action, in any case.

        Raises:
            StateError: if the server cannot be reached.
        """
        try:
            page, reward, is_done, error = self.session.act(action)
        except ShopError as error_:
            raise StateError(f"the shop does not answer: {error_}") from error_
        page.max_length = self.max_length
        return BackendReply(reward, is_done, error)

    def html(self) -> str:
        """The document of the page."""
        return self.server.client.document

    def screenshot(self) -> bytes | None:
        """Nothing: nobody sees the page."""
        return None

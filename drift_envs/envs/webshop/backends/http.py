"""The shop behind HTTP: a server in a thread of this process, and a client.

* `HttpBackend` - a session of the server
* `ServerBackend` - the common base of the backends with a server
* `LocalServer` - a server on a free port of this machine, with the operator's requests
"""

from __future__ import annotations

import secrets
import socket
import threading
import weakref
from typing import Any, NoReturn, SupportsIndex
from urllib.parse import quote

from drift_envs.envs.webshop.backends.base import BrowserOptions, require_started
from drift_envs.errors import StateError
from webshop_server.action import ActionResult
from webshop_server.app import Config, create_app
from webshop_server.client import Client, ClientSession
from webshop_server.errors import ShopError
from webshop_server.parser import FormRequest, ParsedPage, parse_html
from webshop_server.renderer import render_html
from webshop_server.serving import make_server, stop
from webshop_server.sessions import SessionStore
from webshop_server.settings import Settings
from webshop_server.shop import Shop

_PATIENCE = 5.0
"""Seconds to wait for the server's thread when it ends."""


SESSION_NAME = "shopper"
"""The name of the only session of a server, as in process, so that documents are equal on every backend."""


class LocalServer:
    """A server on a free port of this machine, with the operator's requests.

    It ends when this object is garbage collected, at the latest when the program ends.

    Args:
        shop: inventory, kind of goals and settings.
    """

    def __init__(self, shop: Shop) -> None:
        token = secrets.token_urlsafe(24)
        config = Config(shop.inventory, shop.settings, goal_kind=shop.goal_kind, admin_token=token)
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", 0))
        self._map: dict[int, Any] = {}
        application = create_app(config)
        self._store: SessionStore = application.extensions["webshop"]
        self._server = make_server(application, listener, threads=2, sockets=self._map)
        self.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._server.run, name="webshop", daemon=True)
        self._thread.start()
        self.client = RecordingClient(self.base_url, token)
        self._end = weakref.finalize(self, _end, self.client, self._server, self._map, self._thread)

    def start(self, goal: int) -> str:
        """Start the session, which should not exist.

        Args:
            goal: the number of its goal.

        Returns:
            The session's name.
        """
        data: dict[str, object] = {"goal": goal, "name": SESSION_NAME}
        return str(self.client.admin("POST", "/sessions", data)["session"])

    def remove(self, session_id: str) -> None:
        """Delete a session.

        Args:
            session_id: the session's name.
        """
        self.client.admin("DELETE", f"/sessions/{quote(session_id, safe='')}")

    def configure(self, settings: Settings) -> None:
        """Change the settings of all sessions, from their next page on.

        Args:
            settings: the new settings.
        """
        self.client.configure(**settings.to_dict())

    def document(self, session_id: str) -> str:
        """The document of a session's page as the server sent it.

        Args:
            session_id: the session's name.
        """
        with self._store.use(session_id) as session:
            return render_html(session.page)

    def read_score(self, session_id: str) -> float | None:
        """The score of a session's purchase, `None` before it.

        Args:
            session_id: the session's name.
        """
        with self._store.use(session_id) as session:
            return session.score.reward if session.score is not None else None

    def close(self) -> None:
        """End the server and its thread."""
        self._end()


def _end(client: Client, server: Any, sockets: dict[int, Any], thread: threading.Thread) -> None:
    client.close()
    stop(server, sockets)
    thread.join(_PATIENCE)


class RecordingClient(Client):
    """A client that stores the last document."""

    document = ""

    def fetch(self, form: FormRequest) -> tuple[str, str]:
        """Follow a link or submit a form, and store the document.

        Args:
            form: the request.
        """
        path, self.document = super().fetch(form)
        return path, self.document


class ServerBackend:
    """The common base of the backends with a server; they cannot be copied.

    Args:
        shop: inventory, kind of goals and lengths.
    """

    name = "http"

    def __init__(self, shop: Shop) -> None:
        self.max_length = shop.max_length
        self.server: LocalServer = LocalServer(shop)

    def configure(self, settings: Settings) -> None:
        """Change the settings, from the next page on.

        Args:
            settings: the new settings.
        """
        self.server.configure(settings)

    def close(self) -> None:
        """End the server."""
        self.server.close()

    def save(self) -> NoReturn:
        """Refused: the state is in the server.

        Raises:
            StateError: always.
        """
        raise StateError(self._refusal("saved"))

    def load(self, saved: object) -> NoReturn:
        """Refused.

        Raises:
            StateError: always.
        """
        raise StateError(self._refusal("loaded"))

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse copies and pickles: two environments would share one session."""
        raise StateError(self._refusal("copied or pickled"))

    def _refusal(self, what: str) -> str:
        return (
            f"a shop with `backend={self.name!r}` cannot be {what} once it has been reset; "
            "use `backend='in_process'`, or do it before the first `reset`"
        )


class HttpBackend(ServerBackend):
    """A session of a server in this process.

    Args:
        shop: inventory, kind of goals and lengths.
        options: not used.
    """

    def __init__(self, shop: Shop, options: BrowserOptions) -> None:
        super().__init__(shop)
        self._session: ClientSession | None = None

    @property
    def session(self) -> ClientSession:
        """The current session.

        Raises:
            StateError: before the first `start`.
        """
        return require_started(self._session)

    @property
    def page(self) -> ParsedPage:
        """The current page."""
        return self.session.page

    def start(self, goal: int) -> None:
        """Start a session, and delete the previous one.

        Args:
            goal: the number of its goal.
        """
        if self._session is not None:
            self.server.remove(self._session.session_id)
        client = self.server.client
        session_id = self.server.start(goal)
        path, document = client.fetch(FormRequest("GET", f"/{session_id}"))
        self._session = ClientSession(client, session_id, parse_html(document, path, max_length=self.max_length))

    def act(self, action: str) -> ActionResult:
        """Execute `search[words]` or `click[label]`; an invalid action changes nothing.

        Args:
            action: the action; case is ignored.

        Raises:
            StateError: the server cannot be reached.
        """
        try:
            result = self.session.act(action)
        except ShopError as error:
            raise StateError(f"the shop does not respond: {error}") from error
        self.session.page.max_length = self.max_length
        return result

    def html(self) -> str:
        """The document of the page."""
        return self.server.client.document

    def screenshot(self) -> bytes | None:
        """`None`: the page is not displayed."""
        return None

"""The shop behind a server in a thread of this process: with a client over HTTP, or in Chromium, driven by Selenium."""

from __future__ import annotations

import contextlib
import math
import secrets
import socket
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, SupportsIndex, TypeVar
from urllib.parse import quote

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.webdriver import WebDriver
from urllib3.exceptions import HTTPError

from drift_envs.envs.webshop.backends import BrowserOptions, require_started
from drift_envs.errors import StateError, first_line
from drift_envs.show.chromium import Chromium
from webshop_server.app import Config, create_app, make_server, stop
from webshop_server.client import Client, ClientSession
from webshop_server.errors import ArgumentError, SessionError, ShopError
from webshop_server.page_model import (
    SESSION_OVER,
    ActionResult,
    FormRequest,
    ParsedPage,
    check_click,
    check_search,
    find_label,
    parse_action,
    parse_html,
)
from webshop_server.renderer import render_html
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
        # An episode does not end by a pause of its agent, hence no limit.
        config = Config(
            shop.inventory, shop.settings, goal_kind=shop.goal_kind, admin_token=token, idle_seconds=math.inf
        )
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


_POLLS, _PAUSE = 1000, 0.005
"""The number of polls for a page that is ready, and the seconds between them."""

_DEAD = (WebDriverException, HTTPError, ConnectionError)
"""The errors of a driver whose browser has crashed."""

# `window.left` is unset in a new document; `#ready` is the last element of every page, so that only
# pictures can be missing.
_LOOK = """
if (window.left || !document.getElementById("ready")) return null;
return [document.documentElement.outerHTML, location.pathname, document.body.className];
"""
_FIND = """
window.left = true;
for (const part of document.querySelectorAll("#page a, #page button")) {
  const label = part.dataset.label || part.textContent.trim().toLowerCase();
  if (label === arguments[0]) return part;
}
return null;
"""
_SEARCH = """
window.left = true;
const bar = document.getElementById("search_input");
bar.value = arguments[0];
bar.form.submit();
"""
_CLICK = _FIND.replace("return part;", "{ part.click(); return true; }")

T = TypeVar("T")


class BrowserBackend(ServerBackend):
    """A session in Chromium, in front of a server in this process.

    One browser serves all episodes. After a crash a new one continues the session.

    Args:
        shop: inventory, kind of goals and lengths.
        options: the options of the browser; scripted clicks are faster than native ones.
    """

    name = "browser"

    def __init__(self, shop: Shop, options: BrowserOptions) -> None:
        self._chromium = Chromium(window=options.window, pictures=options.pictures)  # raises if missing
        super().__init__(shop)
        self._native = options.native_clicks
        self._session_id: str | None = None
        self._page: ParsedPage | None = None

    @property
    def page(self) -> ParsedPage:
        """The current page.

        Raises:
            StateError: before the first `start`.
        """
        return require_started(self._page)

    @property
    def driver(self) -> WebDriver:
        """The browser."""
        return self._chromium.driver

    def start(self, goal: int) -> None:
        """Start a session, and delete the previous one.

        Args:
            goal: the number of its goal.
        """
        if self._session_id is not None:
            self.server.remove(self._session_id)
        self._session_id = self.server.start(goal)
        self._page = None
        self._alive(lambda: self._visit(f"/{self._session_id}"))

    def act(self, action: str) -> ActionResult:
        """Execute `search[words]` or `click[label]`; an invalid action changes nothing.

        Args:
            action: the action; case is ignored.

        Raises:
            StateError: page or browser do not respond.
        """
        before = self.page
        if before.reward is not None:
            return ActionResult(before, 0.0, True, SESSION_OVER)
        try:
            name, argument = parse_action(action)
            if name == "search":
                words = check_search(before, argument)
                do: Callable[[], object] = lambda: self.driver.execute_script(_SEARCH, words)  # noqa: E731
            else:
                check_click(before, argument)
                label = find_label(argument, before.clickables)
                do = lambda: self._click(label)  # noqa: E731
        except (ArgumentError, SessionError) as error:
            return ActionResult(before, 0.0, False, str(error))
        error_text = self._alive(lambda: self._do(do))
        reward = self.page.reward
        return ActionResult(self.page, reward or 0.0, reward is not None, error_text)

    def html(self) -> str:
        """The document that the browser shows, as the server sent it: browsers write the same DOM in other words.

        Raises:
            StateError: the browser shows another page.
        """
        document = self.server.document(str(self._session_id))
        if parse_html(document, max_length=self.max_length).parts != self.page.parts:
            raise StateError(f"the browser does not show the page of the session: {self.page.path}")
        return document

    def screenshot(self) -> bytes | None:
        """The page as a PNG image."""
        return self._alive(self._photograph)

    def close(self) -> None:
        """Quit the browser and end the server."""
        self._chromium.close()
        super().close()

    def _alive(self, do: Callable[[], T]) -> T:
        """Call a function; once more in a new browser after a crash."""
        try:
            return do()
        except _DEAD as error:
            if self._chromium.is_alive():
                raise StateError(f"the browser cannot do this: {first_line(error)}") from error
        before = self._page
        try:
            self._chromium.close()
            if before is not None:
                self._visit(before.path)
                if self.page.parts != before.parts:  # executed before the crash
                    return None  # type: ignore[return-value]
            return do()
        except _DEAD as error:
            raise StateError(f"the browser has died, and so has the next one: {first_line(error)}") from error

    def _photograph(self) -> bytes:
        for _ in range(_POLLS):  # until the pictures are loaded
            if self.driver.execute_script('return document.readyState === "complete"'):
                break
            time.sleep(_PAUSE)
        return self.driver.get_screenshot_as_png()

    def _visit(self, path: str) -> None:
        self.driver.get(self.server.base_url + path)
        self._look()

    def _do(self, do: Callable[[], object]) -> str | None:
        """Call a function that leads to another page; return the server's reason if it refused."""
        do()
        kind = self._look()
        if "page-message" not in kind:
            return None
        reason = self.page.parts[1] if len(self.page.parts) > 1 else "the server refused"
        self.driver.back()
        self._look()
        return reason

    def _click(self, label: str) -> None:
        if not self._native:
            self.driver.execute_script(_CLICK, label)
            return
        part = self.driver.execute_script(_FIND, label)
        part.click()

    def _look(self) -> str:
        """Wait until the page is loaded, parse it, and return the class of its body."""
        for _ in range(_POLLS):
            seen = None
            with contextlib.suppress(WebDriverException):  # polled during a change of pages
                seen = self.driver.execute_script(_LOOK)
            if seen is not None:
                document, path, kind = seen
                self._page = parse_html(document, path, max_length=self.max_length)
                return str(kind)
            time.sleep(_PAUSE)
        raise StateError(f"the page was not ready after {_POLLS * _PAUSE:g} seconds: {self.driver.current_url}")

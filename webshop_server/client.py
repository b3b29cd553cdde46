"""The shop over HTTP, for programs.

* `Client` - a connection to a server: lets shoppers in, and turns the operator's settings
* `ClientSession` - one shopper over HTTP, with the methods of `Session`
* `ClientOutcome` - what an action led to
"""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from webshop_server.action import check_click, check_search, parse_action
from webshop_server.errors import ArgumentError, SessionError, ShopError
from webshop_server.parser import FormRequest, HtmlPage, read_html
from webshop_server.shop import OVER

_MAX_REDIRECTS = 5
_MAX_ANSWER = 16 << 20


class ClientOutcome(NamedTuple):
    """What an action led to.

    Args:
        page: the page that is shown now.
        reward: the score of a purchase that this action completed, else 0.0.
        is_done: whether the session is over.
        error: why the action did nothing, or `None`.
    """

    page: HtmlPage
    reward: float
    is_done: bool
    error: str | None


class Client:
    """A connection to a server; not to be shared between threads.

    Args:
        base_url: its address, such as `http://127.0.0.1:3000`.
        token: opens `/admin`, where the server has it.
        timeout: seconds to wait for an answer.

    Raises:
        ArgumentError: the address is no `http://` address.
    """

    def __init__(self, base_url: str, token: str | None = None, *, timeout: float = 10.0) -> None:
        parts = urlsplit(base_url)
        if parts.scheme != "http" or not parts.hostname:
            raise ArgumentError(f"`base_url` should be like http://127.0.0.1:3000. Received {base_url!r}")
        self.base_url = f"http://{parts.netloc}"
        self._token = token
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def start(self, goal: int | None = None) -> ClientSession:
        """Let a shopper in.

        Args:
            goal: the goal's number; the server draws one if not given.

        Raises:
            ArgumentError: no goal has this number.
        """
        path, document = self.fetch(FormRequest("GET", "/" if goal is None else f"/?goal={goal}"))
        return ClientSession(self, path.strip("/"), read_html(document, path))

    def fetch(self, press: FormRequest) -> tuple[str, str]:
        """Follow a link or send a form.

        Returns:
            The path of the page that was reached, and its document.

        Raises:
            ArgumentError: the server refused.
            SessionError: the server does not know the session.
            ShopError: the server cannot be reached, or failed.
        """
        method, path, fields = press
        body = urlencode(fields) if method == "POST" else None
        for _ in range(_MAX_REDIRECTS):
            headers = {"Content-Type": "application/x-www-form-urlencoded"} if body is not None else {}
            status, answer, location = self._send(method, path, body, headers)
            if status in (301, 302, 303, 307, 308):
                parts = urlsplit(location)
                path, method, body = parts.path + (f"?{parts.query}" if parts.query else ""), "GET", None
                continue
            if status == 200:
                return path, answer
            _, _, reason = read_html(answer).text.partition(" [SEP] ")
            reason = reason.partition(" [SEP] ")[0] or f"the server answered {status}"
            raise SessionError(reason) if reason.startswith("there is no session") else _error(status)(reason)
        raise ShopError(f"{self.base_url} redirected more than {_MAX_REDIRECTS} times")

    def admin(self, method: str, path: str, data: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask the operator's endpoint.

        Args:
            method: `GET`, `POST`, `PATCH` or `DELETE`.
            path: the address behind `/admin`, such as `/settings`.
            data: what to send.

        Raises:
            ArgumentError: the server refused.
            ShopError: the server cannot be reached, or has no such endpoint.
        """
        headers = {"Authorization": f"Bearer {self._token or ''}", "Content-Type": "application/json"}
        body = None if data is None else json.dumps(data)
        status, answer, _ = self._send(method, f"/admin{path}", body, headers)
        if status == 200:
            return dict(json.loads(answer))
        try:
            reason = str(json.loads(answer)["error"])
        except (ValueError, KeyError, TypeError):
            reason = "the token is missing or wrong" if status == 401 else f"the server answered {status}"
        raise _error(status)(reason)

    def configure(self, **changes: Any) -> dict[str, Any]:
        """Change settings for all sessions; needs the token."""
        return self.admin("PATCH", "/settings", changes)

    def _send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[int, str, str]:
        try:
            try:
                self._connection.request(method, path, body, headers)
                response = self._connection.getresponse()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                # An idle connection that the server has closed meanwhile: nothing was answered, ask once more.
                self._connection.close()
                self._connection.request(method, path, body, headers)
                response = self._connection.getresponse()
            data = response.read(_MAX_ANSWER)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._connection.close()
            raise ShopError(f"{self.base_url} cannot be reached: {error}") from error
        return response.status, data.decode("utf-8", "replace"), response.getheader("Location", "")


def _error(status: int) -> type[ShopError]:
    return ArgumentError if 400 <= status < 500 else ShopError


class ClientSession:
    """One shopper over HTTP.

    Args:
        client: the connection.
        session_id: the session's name.
        page: the page that it shows.
    """

    def __init__(self, client: Client, session_id: str, page: HtmlPage) -> None:
        self.client = client
        self.session_id = session_id
        self.page = page

    @property
    def is_done(self) -> bool:
        """Whether something has been bought."""
        return self.page.reward is not None

    @property
    def available_actions(self) -> dict[str, Any]:
        """What can be done on this page, in the original's form."""
        return {"has_search_bar": self.page.has_search_bar, "clickables": list(self.page.clickables)}

    def act(self, action: str) -> ClientOutcome:
        """Do `search[words]` or `click[label]`; what cannot be done changes nothing.

        Args:
            action: the action, in any case.

        Raises:
            ShopError: the server cannot be reached.
        """
        try:
            name, argument = parse_action(action)
            if self.is_done:
                raise SessionError(OVER)
            if name == "search":
                keywords = check_search(self.page, argument)
                self._go(FormRequest("POST", self.page.search, (("search_query", keywords),)))
            else:
                self._go(check_click(self.page, argument))
        except (ArgumentError, SessionError) as error:
            return ClientOutcome(self.page, 0.0, self.is_done, str(error))
        return ClientOutcome(self.page, self.page.reward or 0.0, self.is_done, None)

    def configure(self, **changes: Any) -> dict[str, Any]:
        """Change settings for this session alone; needs the token."""
        return self.client.admin("PATCH", f"/sessions/{quote(self.session_id, safe='')}/settings", changes)

    def _go(self, press: FormRequest) -> None:
        path, document = self.client.fetch(press)
        self.page = read_html(document, path)

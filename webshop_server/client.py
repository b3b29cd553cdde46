"""A client of the shop's HTTP server."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from webshop_server.errors import ArgumentError, SessionError, ShopError, refuse
from webshop_server.page_model import (
    SESSION_OVER,
    ActionResult,
    AvailableActions,
    FormRequest,
    ParsedPage,
    check_click,
    check_search,
    list_available_actions,
    parse_action,
    parse_html,
)

_MAX_REDIRECTS = 5
_MAX_RESPONSE = 16 << 20


class Client:
    """A connection to a server; not thread-safe.

    Args:
        base_url: the URL of the server, such as `http://127.0.0.1:3000`.
        token: the token for `/admin`.
        timeout: seconds to wait for a response.

    Raises:
        ArgumentError: the URL does not have the form `http://HOST:PORT`.
    """

    def __init__(self, base_url: str, token: str | None = None, *, timeout: float = 10.0) -> None:
        try:
            parts = urlsplit(base_url)
            host, port = parts.hostname, parts.port
        except ValueError:  # the host or the port is none
            host = None
        if not host or parts.scheme != "http":
            raise refuse("base_url", "like http://127.0.0.1:3000", base_url, ArgumentError)
        self.base_url = f"http://{parts.netloc}"
        self._token = token
        self._connection = http.client.HTTPConnection(host, port or 80, timeout=timeout)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def start(self, goal: int | None = None) -> ClientSession:
        """Start a session.

        Args:
            goal: the goal's number; by default drawn by the server.

        Raises:
            ArgumentError: no goal has this number.
        """
        path, document = self.fetch(FormRequest("GET", "/" if goal is None else f"/?goal={goal}"))
        return ClientSession(self, path.strip("/"), parse_html(document, path))

    def fetch(self, form: FormRequest) -> tuple[str, str]:
        """Follow a link or submit a form.

        Returns:
            The path of the resulting page, and its document.

        Raises:
            ArgumentError: the server refused the request.
            SessionError: there is no such session.
            ShopError: the server cannot be reached, or failed.
        """
        method, path, fields = form
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
            _, _, reason = parse_html(answer).text.partition(" [SEP] ")
            reason = reason.partition(" [SEP] ")[0] or f"the server answered {status}"
            raise SessionError(reason) if reason.startswith("there is no session") else _error(status)(reason)
        raise ShopError(f"{self.base_url} redirected more than {_MAX_REDIRECTS} times")

    def admin(self, method: str, path: str, data: dict[str, object] | None = None) -> dict[str, Any]:
        """Send a request to `/admin`.

        Args:
            method: `GET`, `POST`, `PATCH` or `DELETE`.
            path: the path below `/admin`, such as `/settings`.
            data: the body.

        Raises:
            ArgumentError: the server refused the request.
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

    def configure(self, /, **changes: object) -> dict[str, Any]:
        """Change settings of all sessions; needs the token."""
        return self.admin("PATCH", "/settings", changes)

    def _send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[int, str, str]:
        try:
            try:
                self._connection.request(method, path, body, headers)
                response = self._connection.getresponse()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                # The server has closed the idle connection: nothing was answered, so send the request once more.
                self._connection.close()
                self._connection.request(method, path, body, headers)
                response = self._connection.getresponse()
            data = response.read(_MAX_RESPONSE)
            announced = response.getheader("Content-Length")
            if announced is not None and len(data) != int(announced):  # `read` with a limit does not notice it
                raise http.client.IncompleteRead(data, int(announced) - len(data))
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._connection.close()
            raise ShopError(f"{self.base_url} cannot be reached: {error}") from error
        return response.status, data.decode("utf-8", "replace"), response.getheader("Location", "")


def _error(status: int) -> type[ShopError]:
    return ArgumentError if 400 <= status < 500 else ShopError


class ClientSession:
    """A session over HTTP."""

    def __init__(self, client: Client, session_id: str, page: ParsedPage) -> None:
        self.client = client
        self.session_id = session_id
        self.page = page

    @property
    def is_done(self) -> bool:
        """Whether something has been bought."""
        return self.page.reward is not None

    @property
    def available_actions(self) -> AvailableActions:
        """`has_search_bar` and `clickables` of the current page, as in the original."""
        return list_available_actions(self.page)

    def act(self, action: str) -> ActionResult:
        """Execute `search[words]` or `click[label]`; an invalid action changes nothing.

        Args:
            action: the action; case is ignored.

        Raises:
            ShopError: the server cannot be reached.
        """
        try:
            name, argument = parse_action(action)
            if self.is_done:
                raise SessionError(SESSION_OVER)
            if name == "search":
                keywords = check_search(self.page, argument)
                self._go(FormRequest("POST", self.page.search, (("search_query", keywords),)))
            else:
                self._go(check_click(self.page, argument))
        except (ArgumentError, SessionError) as error:
            return ActionResult(self.page, 0.0, self.is_done, str(error))
        return ActionResult(self.page, self.page.reward or 0.0, self.is_done, None)

    def configure(self, /, **changes: object) -> dict[str, Any]:
        """Change settings of this session; needs the token."""
        return self.client.admin("PATCH", f"/sessions/{quote(self.session_id, safe='')}/settings", changes)

    def _go(self, form: FormRequest) -> None:
        path, document = self.client.fetch(form)
        self.page = parse_html(document, path)

"""Servers that this machine alone can reach."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from typing import Any

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError
from drift_envs.utils.command_line import HostRule

__all__ = ["LOOPBACK", "MAX_BODY", "HostRule", "guard", "listen", "refuse"]

LOOPBACK = "127.0.0.1"

MAX_BODY = 64 * 1024
"""The maximum size of a request body, in bytes."""

_OWN_PAGE = re.compile(rf"https?://(localhost|{re.escape(LOOPBACK)}|\[::1\])(:\d+)?", re.ASCII)

_MAX_DISCARDED = 16 * 1024 * 1024
_DISCARD_SECONDS = 5.0
# what is read of a refused body: a client that is still sending when the connection closes sees a reset, not the status


def listen(port: int = 0) -> socket.socket:
    """Open a listening socket at the loopback address; the caller closes it.

    Args:
        port: 0 takes a free one.

    Raises:
        ArgumentError: the port cannot be used.

    Example:
        >>> with listen() as listener:
        ...     host, port = listener.getsockname()
        >>> host, port > 0
        ('127.0.0.1', True)
    """
    check_integer("port", port, 0, 65535)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise ArgumentError(f"`port` should be free. Received {port}: {error}") from error
    return listener


def guard(app: Any, hosts: HostRule) -> Any:
    """An ASGI application that refuses what does not come from this machine's programs and pages, and large bodies.

    Requests to other names are refused (421), those of pages of other sites (403), and bodies above `MAX_BODY` (413).
    Any page may open a WebSocket to this machine; its browser says in `Origin` whose page it is. A body is read before
    the application is called, and no more of it than the maximum is stored.

    Args:
        app: the application of ASGI.
        hosts: decides which `Host` headers are answered, also at the start of a WebSocket.
    """

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get(b"host"), headers.get(b"origin")
        if not hosts.allows(host):
            await refuse(scope, receive, send, 421, "the server is known as localhost and by the names it was given")
            return
        if origin is not None and _is_foreign(origin.lower(), host):
            await refuse(scope, receive, send, 403, "the request was sent by a page of another site")
            return
        if scope["type"] == "websocket":
            await app(scope, receive, send)
            return
        body = await _read_body(scope, receive)
        if body is None:
            await _answer(send, 413, f"a body has at most {MAX_BODY} bytes")
            return
        first = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Any:
            return first.pop() if first else await receive()

        await app(scope, replay, send)

    return guarded


def _is_foreign(origin: str, host: str | None) -> bool:
    is_same = host is not None and origin.partition("://")[2] == host.lower()
    return not is_same and _OWN_PAGE.fullmatch(origin) is None


async def refuse(scope: Any, receive: Any, send: Any, status: int, reason: str) -> None:
    """Answer with a status and a reason; a WebSocket is closed before it is accepted.

    The body of the request is read and discarded first, within bounds of size and time.

    Args:
        scope: of the request, `http` or `websocket`.
        receive: of ASGI; no message of the request has been received.
        send: of ASGI.
        status: of the answer.
        reason: the text of the answer.
    """
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": reason})
        return
    await _discard(receive)
    await _answer(send, status, reason)


async def _read_body(scope: Any, receive: Any) -> bytes | None:
    """The body of a request; `None` if it is larger than `MAX_BODY`, or the client has gone."""
    announced = dict(scope["headers"]).get(b"content-length", b"0")
    if announced.isdigit() and int(announced) > MAX_BODY:
        await _discard(receive)
        return None
    body, is_open = b"", True
    while is_open:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        is_open = message.get("more_body", False)
        if len(body) > MAX_BODY:
            if is_open:
                await _discard(receive)
            return None
    return body


async def _discard(receive: Any) -> None:
    """Read the rest of a body without storing it, at most `_MAX_DISCARDED` bytes for `_DISCARD_SECONDS`."""

    async def read() -> None:
        size, is_open = 0, True
        while is_open and size < _MAX_DISCARDED:
            message = await receive()
            size += len(message.get("body", b""))
            is_open = message.get("more_body", False)

    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(read(), _DISCARD_SECONDS)


async def _answer(send: Any, status: int, reason: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{reason}\n".encode()})

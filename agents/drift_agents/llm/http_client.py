"""The HTTP client below the package `openai`: what of a server's behaviour does not reach that package.

* `make_http_client` - the client of one server

A request is over after its time, however slowly the server sends. A reply has a largest size, counted as it is
unpacked. Prompts go to no other host than the one of the address. An error of the server is one whatever its status
and the shape of its body (`drift_agents.llm.server_errors`).
"""

from __future__ import annotations

import json
import queue
import threading
import zlib
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from drift_agents.llm.server_errors import ServerError, find_error

LARGEST_REPLY = 2**24
"""Bytes of a reply, unpacked."""
MOST_REDIRECTS = 5
GRACE_SECONDS = 0.5
"""What a request may take beyond its time: the connection's own limits come first."""


def make_http_client(openai: Any, seconds: float) -> Any:
    """Make the HTTP client of one server.

    Args:
        openai: the package, whose newest versions use another `httpx` than its older ones.
        seconds: the time of one request, until its reply is complete.
    """
    httpx = import_module(openai.DefaultHttpxClient.__base__.__module__.partition(".")[0])

    class ServerClient(openai.DefaultHttpxClient):  # type: ignore[misc, unused-ignore]
        """A client whose requests end in time, stay with their host, and have replies of a limited size."""

        def send(self, request: Any, **options: Any) -> Any:
            """Send a request; the package `openai` calls this for each attempt."""
            options |= {"stream": True, "follow_redirects": False}
            try:
                return _within(seconds + GRACE_SECONDS, lambda: self._exchange(request, options))
            except TimeoutError as error:
                raise httpx.ReadTimeout(f"no complete reply after {seconds:g} s", request=request) from error

        def _exchange(self, request: Any, options: dict[str, Any]) -> Any:
            is_prompt = request.method == "POST"  # a redirect may change the method
            response = super().send(request, **options)
            for _ in range(MOST_REDIRECTS):
                target = response.next_request
                if target is None or not _is_same_server(request.url, target.url):
                    break
                response.close()
                request = target
                response = super().send(request, **options)
            try:
                body = _unpack(response.iter_raw(), response.headers.get("content-encoding", ""))
                found = _find_error(response, body) if is_prompt else None
            except (ValueError, zlib.error) as error:
                raise httpx.RemoteProtocolError(str(error), request=request) from error
            finally:
                response.close()
            status = response.status_code
            headers = {name: value for name, value in response.headers.items() if name not in _CHANGED}
            headers |= {"content-type": "application/json"} if is_prompt else {}
            if found is not None:
                status, body = found.status, json.dumps({"error": found._asdict()}).encode()
                headers |= {} if found.is_transient else {"x-should-retry": "false"}
            return httpx.Response(status, headers=headers, content=body, request=request)

    # One encoding, which is unpacked here: the client's own decoders have no limit.
    return ServerClient(headers={"accept-encoding": "gzip"})


_CHANGED = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that are not those of the unpacked body."""


def _is_same_server(url: Any, target: Any) -> bool:
    """Whether a redirect stays with host and port, and with TLS where there is some."""
    return (target.host, target.port) == (url.host, url.port) and target.scheme in (url.scheme, "https")


def _find_error(response: Any, body: bytes | None) -> ServerError | None:
    """The error that a response is, `None` if it is a reply.

    Raises:
        ValueError: if it is neither.
    """
    status = response.status_code
    if 300 <= status < 400:
        words = f"it redirects to {response.headers.get('location')}; prompts are sent to no other server"
        return ServerError(status, status, f"{words}. If that address is right, give it instead")
    if body is None:
        return ServerError(502, status, f"its reply has more than {LARGEST_REPLY} bytes", is_final=True)
    return find_error(status, body)


def _unpack(parts: Iterable[bytes], encoding: str) -> bytes | None:
    """The body of a response, `None` if it is larger than `LARGEST_REPLY`.

    Raises:
        ValueError: if the encoding is another than gzip, or the body ends too early.
    """
    name = encoding.strip().lower()
    if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise ValueError(f"the reply has the encoding {encoding!r}, which was not asked for")
    unpacker = None if name in ("", "identity") else zlib.decompressobj(wbits=47)  # reads the headers of both
    body = bytearray()
    for part in parts:
        body += part if unpacker is None else unpacker.decompress(part, LARGEST_REPLY + 1 - len(body))
        if len(body) > LARGEST_REPLY:
            return None
    if body and unpacker is not None and not unpacker.eof:
        raise ValueError("the reply ends too early")
    return bytes(body)


def _within(seconds: float, call: Callable[[], Any]) -> Any:
    """What a call returns or raises, unless it takes longer.

    A server that sends a byte now and then resets every limit of a single read, so the call has a thread of its own,
    which ends with its connection.

    Raises:
        TimeoutError: if the call takes longer.
    """
    results: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put((call(), None))
        except BaseException as error:  # noqa: BLE001  # raised below, in the thread that waits
            results.put((None, error))

    threading.Thread(target=run, name="request to a model", daemon=True).start()
    try:
        result, error = results.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return result

"""A server's address and key, and the client that speaks to it.

The HTTP client below the package `openai` holds what of a server's behaviour does not reach that package: a request is
over after its time, however slowly the server sends; a reply has a largest size; prompts go to no other host than the
one of the address; and whatever is no reply of the model becomes a response with a
`drift_agents.llm.server_errors.ServerError`, whatever its status and the shape of its body.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, TimeoutError
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from drift_agents.errors import ArgumentError, MissingDependencyError, ModelAccessError, needs_extra
from drift_agents.llm.server_errors import UNREACHABLE, ServerError, find_error

T = TypeVar("T")

OPENAI = "https://api.openai.com/v1"
"""The address of OpenAI's own server."""
KEY_VARIABLE = "OPENAI_API_KEY"
KEY_VARIABLES: Mapping[str, str] = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
}
"""Variables with the keys of other servers, by host; they precede `OPENAI_API_KEY`, if they are set."""
NO_KEY = "none"
"""Sent where there is no key: the client requires one, local servers accept any."""
CONNECT_SECONDS = 4.0
"""Seconds to connect to a server. A server that is down is reported after this time at the latest."""
LARGEST_REPLY = 2**24
"""Bytes of a reply, unpacked."""
MOST_REDIRECTS = 5
GRACE_SECONDS = 0.5
"""What a request may take beyond its time: the connection's own limits come first."""
_ENCODINGS = ("", "identity", "gzip", "deflate")
_ABOUT_RETRIES = ("retry-after", "retry-after-ms", "x-should-retry")


def find_url(url: str | None) -> str:
    """Return the address of a server, without a slash at its end.

    Args:
        url: the address; that of the environment variable `OPENAI_BASE_URL` if not given, or OpenAI's own.

    Raises:
        ArgumentError: if it is not an address, or contains a key: addresses are written into a run's folder.

    Example:
        >>> find_url("http://127.0.0.1:8000/v1/")
        'http://127.0.0.1:8000/v1'
    """
    if url is None:
        url = os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ArgumentError(f"`base_url` should be an address, as in http://127.0.0.1:8000/v1. Received {url!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ArgumentError(
            f"`base_url` should have no user, password or query: it is written down. "
            f"Received one for {parts.hostname}. Give the key by the environment or a file"
        )
    return url.rstrip("/")


def read_key(base_url: str, file: str | os.PathLike[str] | None = None) -> tuple[str, str]:
    """Read a server's key.

    Args:
        file: a file with the key and nothing else; if not given, the key is read from the environment variable of the
            server, or from `OPENAI_API_KEY`.

    Returns:
        The key, empty if there is none, and its place in words, for messages.

    Raises:
        ModelAccessError: if the file cannot be read, or does not hold one word; if OpenAI's own server has no key.
    """
    if file is not None:
        try:
            words = Path(file).read_text("utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            raise ModelAccessError(f"{file}: the key cannot be read: {reason}") from error
        if len(words) != 1:
            raise ModelAccessError(f"{file}: should hold a key and nothing else. Received {len(words)} words")
        return words[0], f"the file {file}"
    own = KEY_VARIABLES.get(urlsplit(base_url).hostname or "", KEY_VARIABLE)
    variable = own if os.environ.get(own) else KEY_VARIABLE
    key = os.environ.get(variable, "").strip()
    if not key and base_url == OPENAI:
        raise ModelAccessError(
            f"{base_url} needs a key: the environment variable {variable} is not set. Set it, or name a file with "
            "--set models.key_file=FILE; a server of your own is named with --base-url"
        )
    return key, f"the environment variable {variable}"


def import_openai() -> Any:
    """Import `openai`.

    Raises:
        MissingDependencyError: if it is not installed, or in a version that does not fit.
    """
    try:
        with needs_extra("openai", "llm"):
            import openai
    except MissingDependencyError as error:
        message = f"{error}. Recorded replies need no server: --replay"
        raise MissingDependencyError(message, error.packages, error.extras) from error
    return openai


def connect_client(base_url: str, key: str, seconds: float, retries: int) -> Any:
    """The client of one server.

    Args:
        key: its key, empty if it needs none.
        seconds: the time to wait for an answer.

    Raises:
        MissingDependencyError: if `openai` is not installed.
    """
    openai = import_openai()
    return openai.OpenAI(
        api_key=key or NO_KEY,
        base_url=base_url,
        timeout=openai.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
        max_retries=retries,
        http_client=_make_http_client(openai, seconds),
    )


def _make_http_client(openai: Any, seconds: float) -> Any:
    """Make the HTTP client of one server.

    Args:
        openai: the package, whose newest versions use another `httpx` than its older ones.
        seconds: the time of one request, until its reply is complete.
    """
    httpx = import_module(openai.DefaultHttpxClient.__base__.__module__.partition(".")[0])

    class ServerClient(openai.DefaultHttpxClient):  # type: ignore[misc, unused-ignore]
        """A client that gives a response to every request, and to a failed one that of its error."""

        is_reached = False
        """Whether the server was there once; until then a retry would only report a wrong address a minute later."""

        def send(self, request: Any, **options: Any) -> Any:
            """Send a request; the package `openai` calls this for each attempt."""
            headers: dict[str, str] = {}
            try:
                response, body = _within(seconds + GRACE_SECONDS, lambda: self._exchange(request, options))
                headers = {name: response.headers[name] for name in _ABOUT_RETRIES if name in response.headers}
                if isinstance(body, ServerError) or request.method != "POST":
                    error = body if isinstance(body, ServerError) else None
                else:
                    error = find_error(response.status_code, body)
            except TimeoutError:
                error = ServerError(503, 0, f"no complete reply after {seconds:g} s")
            except (httpx.HTTPError, ValueError) as failure:
                is_down = isinstance(failure, (httpx.ConnectError, httpx.ConnectTimeout))
                words = f"{failure} ({type(failure).__name__})"
                is_final = is_down and not self.is_reached
                error = ServerError(503, 0, words, UNREACHABLE if is_down else "", is_final=is_final)
            headers["content-type"] = "application/json"
            self.is_reached |= error is None or not error.is_final
            if error is None:
                return httpx.Response(response.status_code, headers=headers, content=body, request=request)
            headers |= {} if error.is_transient else {"x-should-retry": "false"}
            content = json.dumps({"error": error._asdict()})
            return httpx.Response(error.status, headers=headers, content=content, request=request)

        def _exchange(self, request: Any, options: dict[str, Any]) -> tuple[Any, bytes | ServerError]:
            """The response to a request, after redirects within the server, and its body."""
            options |= {"stream": True, "follow_redirects": False}
            response = super().send(request, **options)
            for _ in range(MOST_REDIRECTS):
                target = response.next_request
                if target is None or not _is_same_server(request.url, target.url):
                    break
                response.close()
                response = super().send(target, **options)
            with closing(response):
                return response, _read_body(response)

    # Replies in other encodings have to be unpacked by packages that are not there everywhere.
    return ServerClient(headers={"accept-encoding": "gzip"})


def _is_same_server(url: Any, target: Any) -> bool:
    """Whether a redirect stays with host and port, and with TLS where there is some."""
    return (target.host, target.port) == (url.host, url.port) and target.scheme in (url.scheme, "https")


def _read_body(response: Any) -> bytes | ServerError:
    """The body of a response; an error if it is a redirect, or larger than `LARGEST_REPLY`.

    Raises:
        ValueError: if its encoding is one that was not asked for.
    """
    status, encoding = response.status_code, response.headers.get("content-encoding", "")
    if 300 <= status < 400:
        words = (
            f"it redirects to {response.headers.get('location') or 'no address'}; prompts are sent to no other server"
        )
        return ServerError(status, status, f"{words}. If that address is right, give it instead")
    if encoding.strip().lower() not in _ENCODINGS:
        raise ValueError(f"the reply has the encoding {encoding!r}, which was not asked for")
    body = bytearray()
    for part in response.iter_bytes():
        body += part
        if len(body) > LARGEST_REPLY:
            return ServerError(502, status, f"its reply has more than {LARGEST_REPLY} bytes", is_final=True)
    return bytes(body)


def _within(seconds: float, call: Callable[[], T]) -> T:
    """What a call returns or raises, unless it takes longer.

    A server that sends a byte now and then resets every limit of a single read, so the call has a thread of its own,
    which ends with its connection.

    Raises:
        TimeoutError: if the call takes longer.
    """
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001  # raised below, in the thread that waits
            result.set_exception(error)

    threading.Thread(target=run, name="request to a model", daemon=True).start()
    return result.result(timeout=seconds)

"""The HTTP connections of all models of a run.

* `ConnectionPool` - one pool of connections, made at its first use
* `LARGEST_BODY` - bytes of a reply's body
* `import_openai`, `import_httpx` - the client and its HTTP library

A reply that is larger, or that takes longer than the time limit in all, ends in an error: the time limits of HTTP
clients hold between two pieces of a body alone, so a server that sends a byte now and then would never end.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from drift_agents.errors import MissingDependencyError

LARGEST_BODY = 64 * 2**20
"""Bytes of a reply's body; a larger one is not read."""

CONNECT_SECONDS = 4.0
"""Seconds to connect to a server. A server that is down is reported after this time at the latest."""

KEPT_OPEN = 64
"""Idle connections that stay open."""


def import_httpx() -> Any:
    """Import the HTTP client that `openai` is built on: `httpx`, or `httpx2` since version 3.

    Raises:
        MissingDependencyError: if `openai` is not installed.
    """
    openai = import_openai()
    packages = (base.__module__.partition(".")[0] for base in openai.DefaultHttpxClient.__mro__)
    return import_module(next(package for package in packages if package.startswith("httpx")))


def import_openai() -> Any:
    """Import `openai`.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    try:
        import openai
    except ImportError as error:
        raise MissingDependencyError(
            '`openai` is not installed, run `pip install "drift-envs[llm]"`. Recorded replies need no server: --replay'
        ) from error
    return openai


class ConnectionPool:
    """One pool of connections for all models and cells, made at its first use; deleting it closes them.

    Args:
        timeout: seconds for a whole reply.

    Example:
        >>> pool = ConnectionPool(timeout=60.0)
        >>> pool.close()
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._lock = threading.Lock()
        self._client: Any = None
        self._end: Callable[[], object] = lambda: None

    def client(self) -> Any:
        """Return the client; the number of requests at a time is limited elsewhere, by `RateLimiter`.

        Raises:
            MissingDependencyError: if `openai` is not installed.
        """
        with self._lock:
            if self._client is None:
                httpx = import_httpx()
                self._client = httpx.Client(
                    timeout=httpx.Timeout(self.timeout, connect=min(CONNECT_SECONDS, self.timeout), pool=None),
                    limits=httpx.Limits(max_connections=None, max_keepalive_connections=KEPT_OPEN),
                    event_hooks={"response": [_make_hook(self.timeout)]},
                    follow_redirects=True,
                )
                # not `__del__`, which the garbage collector may call after it has found a socket that is not closed
                self._end = weakref.finalize(self, self._client.close)
            return self._client

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._end()
            self._client = None


def _make_hook(seconds: float) -> Callable[[Any], None]:
    """A hook without a reference to the pool, so that the pool is deleted at once when it is no longer used."""

    def bound(response: Any) -> None:
        response.stream = make_bounded_stream(response.stream, seconds)

    return bound


def make_bounded_stream(stream: Any, seconds: float) -> Any:
    """A response's body that ends in an error after `LARGEST_BODY` bytes or a number of seconds.

    Args:
        stream: the body.
        seconds: the time for the rest of the body.
    """
    httpx = import_httpx()
    end = time.monotonic() + seconds
    base: Any = httpx.SyncByteStream  # imported lazily

    class BoundedStream(base):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for chunk in stream:
                size += len(chunk)
                if size > LARGEST_BODY:
                    raise httpx.ReadError(f"the reply has more than {LARGEST_BODY // 2**20} MB")
                if time.monotonic() > end:
                    raise httpx.ReadTimeout(f"the reply is not complete after {seconds:g} seconds")
                yield chunk

        def close(self) -> None:
            stream.close()

    return BoundedStream()

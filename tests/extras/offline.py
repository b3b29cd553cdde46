"""A fixture for tests with packages of others: every connection beyond this machine fails the test.

* `offline` - imported by the modules that use it
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

LOOPBACK = ("127.0.0.1", "::1", "localhost", None, "", b"localhost")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Refuse names and addresses beyond this machine, also where the package catches the error, or another thread asks.

    Yields:
        What was refused; a test that causes a refusal on purpose empties it.
    """
    refused: list[str] = []
    look_up = socket.getaddrinfo

    def check(host: Any, about: str) -> None:
        if host not in LOOPBACK:
            refused.append(about)
            raise ConnectionRefusedError(f"tests stay on this machine: {about}")

    def getaddrinfo(host: Any, *rest: Any, **options: Any) -> Any:
        check(host, f"the name {host!r}")
        return look_up(host, *rest, **options)

    def guarded(method: str) -> Any:
        connect = getattr(socket.socket, method)

        def call(self: socket.socket, address: Any) -> Any:
            if self.family != socket.AF_UNIX:
                check(address[0], f"a connection to {address!r}")
            return connect(self, address)

        return call

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(socket.socket, "connect", guarded("connect"))
    monkeypatch.setattr(socket.socket, "connect_ex", guarded("connect_ex"))
    yield refused
    assert not refused, f"tests stay on this machine: {refused}"

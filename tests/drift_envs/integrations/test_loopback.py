"""Listening sockets at the loopback address, and what their servers refuse."""

from __future__ import annotations

import asyncio
import re
import socket

import pytest

from drift_envs.errors import ArgumentError
from drift_envs.integrations import loopback
from drift_envs.integrations.loopback import LOOPBACK, MAX_BODY, HostRule, guard, listen

pytestmark = pytest.mark.integration


def test_a_client_of_this_machine_connects():
    with listen() as listener, socket.create_connection(listener.getsockname(), timeout=5) as client:
        served, address = listener.accept()
        served.close()
        assert (address[0], client.getpeername()) == (LOOPBACK, listener.getsockname())


def test_a_port_that_is_taken_is_refused():
    with listen() as first:
        port = first.getsockname()[1]
        with pytest.raises(ArgumentError, match=re.escape(f"`port` should be free. Received {port}: ")):
            listen(port)
    with listen(port) as again:  # closed, it can be taken at once
        assert again.getsockname()[1] == port


def test_what_is_no_port_is_refused():
    with pytest.raises(ArgumentError, match=re.escape("in the interval [0, 65535]. Received 65536")):
        listen(65536)


def call(kind, host, parts=(), announced=None, origin=None, hosts=None):
    """What the guard sends, the body that the application behind it has received, and the messages left unread."""
    headers = [(b"host", host)] if host is not None else []
    headers += [] if announced is None else [(b"content-length", announced)]
    headers += [] if origin is None else [(b"origin", origin)]
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages += [{"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"}]
    sent, received = [], []

    async def app(scope, receive, send):
        received.extend([await receive(), await receive()] if scope["type"] == "http" else [scope])

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(guard(app, hosts or HostRule())({"type": kind, "headers": headers}, receive, send))
    return sent, received, messages


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_names_of_other_sites_are_refused(kind):
    for host in (b"127.0.0.1:8000", b"localhost", None):
        sent, received, _ = call(kind, host)
        assert (sent, bool(received)) == ([], True)
    sent, received, unread = call(kind, b"evil.example:8000", [b"a" * 100])
    assert not received
    assert kind == "websocket" or [message["type"] for message in unread] == ["http.disconnect"]
    assert sent[0].get("status", sent[0].get("code")) == (421 if kind == "http" else 1008)


@pytest.mark.parametrize(
    ("origin", "is_own"),
    [
        (b"http://localhost:3000", True),
        (b"HTTP://127.0.0.1", True),
        (b"https://[::1]:80", True),
        (b"http://lab.example:8000", True),  # the server's own name
        (b"http://lab.example:8001", False),
        (b"http://evil.example:8000", False),
        (b"http://localhost.evil.example", False),
        (b"http://localhost:3000@evil.example", False),
        (b"http://203.0.113.5", False),
        (b"null", False),
        (b"", False),
    ],
)
def test_pages_of_other_sites_are_refused(origin, is_own):
    """A WebSocket may be opened by any page, whatever the name of its site: `Host` alone does not tell."""
    for kind, code in (("http", 403), ("websocket", 1008)):
        sent, received, _ = call(kind, b"lab.example:8000", origin=origin, hosts=HostRule(["lab.example"]))
        assert bool(received) is is_own
        assert is_own or sent[0].get("status", sent[0].get("code")) == code


@pytest.mark.parametrize(
    ("parts", "announced", "is_small"),
    [
        ([b"a" * 1000, b"b" * (MAX_BODY - 1000)], None, True),
        ([b"a" * 1000, b"b" * (MAX_BODY - 999)], None, False),
        ([b"a" * 10] * 7000, None, False),
        ([b"a" * 1000] * 1000, b"1000000", False),
    ],
    ids=["largest", "one byte more", "many parts", "announced"],
)
def test_large_bodies_are_refused(parts, announced, is_small):
    sent, received, unread = call("http", b"localhost", parts, announced)
    if is_small:
        assert not sent
        assert received == [
            {"type": "http.request", "body": b"".join(parts), "more_body": False},
            {"type": "http.disconnect"},
        ]
    else:
        assert (sent[0]["status"], received) == (413, [])
        assert [message["type"] for message in unread] == ["http.disconnect"]  # or the client would see a reset


@pytest.mark.parametrize("is_endless", [True, False], ids=["endless", "stalled"])
def test_a_refused_body_is_read_within_bounds(monkeypatch, is_endless):
    monkeypatch.setattr(loopback, "_DISCARD_SECONDS", 60.0 if is_endless else 0.01)
    sent, read = [], []

    async def receive():
        if not is_endless:
            await asyncio.Event().wait()
        read.append(1_000_000)
        return {"type": "http.request", "body": b"a" * 1_000_000, "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "headers": [(b"content-length", b"1000000000000")]}
    asyncio.run(guard(None, HostRule())(scope, receive, send))
    assert sent[0]["status"] == 413
    assert sum(read) < 20_000_000

"""The web server under slow, half-open and surplus connections."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time

import pytest

from webshop_server import serving
from webshop_server.app import MAX_BODY, Config, create_app

pytestmark = pytest.mark.integration

HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-Part: "
MOST_SECONDS = 5.0


@contextlib.contextmanager
def running_server(inventory, threads=2):
    listener = socket.create_server(("127.0.0.1", 0))
    sockets = {}
    server = serving.make_server(create_app(Config(inventory)), listener, threads=threads, sockets=sockets)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        serving.stop(server, sockets)
        thread.join(10)
        assert not thread.is_alive()


def measure_request(address):
    begin = time.monotonic()
    connection = http.client.HTTPConnection(*address, timeout=30)
    connection.request("GET", "/fixed_0")
    assert connection.getresponse().status == 200
    connection.close()
    return time.monotonic() - begin


@pytest.mark.parametrize("sent", [b"", HALF], ids=["silent", "half a request"])
def test_hundreds_of_half_open_connections_do_not_delay_a_request(inventory, sent):
    with running_server(inventory) as address, contextlib.ExitStack() as stack:
        for _ in range(300):
            half = stack.enter_context(socket.create_connection(address, timeout=30))
            half.sendall(sent)
        assert measure_request(address) < MOST_SECONDS


def test_a_connection_beyond_the_limit_replaces_the_one_idle_longest(inventory, monkeypatch):
    monkeypatch.setattr(serving, "_max_connections", lambda: 20)
    with running_server(inventory) as address, contextlib.ExitStack() as stack:
        halves = []
        for _ in range(60):
            halves.append(stack.enter_context(socket.create_connection(address, timeout=30)))
            halves[-1].sendall(HALF)
            assert measure_request(address) < MOST_SECONDS
        assert halves[0].recv(1) == b""  # closed by the server


def test_a_request_has_to_arrive_in_time(inventory, monkeypatch):
    monkeypatch.setattr(serving, "REQUEST_SECONDS", 0.0)
    with running_server(inventory) as address, socket.create_connection(address, timeout=30) as slow:
        slow.settimeout(30)
        with contextlib.suppress(ConnectionError):
            for part in (HALF, *[b"x"] * 100_000):
                slow.sendall(part)
        with contextlib.suppress(ConnectionError):
            assert slow.recv(1) == b""
        assert measure_request(address) < MOST_SECONDS


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: %d\r\n\r\n" % 10**9,
        b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1),
        b"Transfer-Encoding: chunked\r\n\r\n3b9aca00\r\n" + b"x" * (MAX_BODY + 1),
    ],
    ids=["announced", "one byte more", "chunked"],
)
@pytest.mark.parametrize("path", [b"/fixed_0", b"/admin/settings", b"/absent/path"])
def test_a_large_body_is_refused_before_it_is_sent(inventory, path, body):
    with running_server(inventory) as address, socket.create_connection(address, timeout=30) as connection:
        connection.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + body)
        assert connection.recv(12) == b"HTTP/1.1 413"  # the rest of the body is never awaited
        assert measure_request(address) < MOST_SECONDS


def test_the_largest_body_is_read(inventory):
    with running_server(inventory) as address, contextlib.closing(http.client.HTTPConnection(*address)) as connection:
        connection.request("POST", "/fixed_0", body=b"x" * MAX_BODY)
        assert connection.getresponse().status == 200

"""The web server under slow, half-open and surplus connections."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask, Response

from tests.processes import wait_until
from webshop_server import app as serving
from webshop_server.app import MAX_BODY, Config, create_app

pytestmark = pytest.mark.integration

HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-Part: "
MOST_SECONDS = 5.0


@contextlib.contextmanager
def running_server(inventory, threads=2, app=None, sockets=None):
    listener = socket.create_server(("127.0.0.1", 0))
    sockets = {} if sockets is None else sockets
    server = serving.make_server(app or create_app(Config(inventory)), listener, threads=threads, sockets=sockets)
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


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "closed"])
def test_the_main_thread_does_not_spin_while_threads_answer(inventory, monkeypatch, is_kept):
    """It wrote, or tried to, fourteen times a request, and took the processor from the threads."""
    writes = []
    real = serving._Channel.handle_write
    monkeypatch.setattr(serving._Channel, "handle_write", lambda self: writes.append(1) or real(self))

    def shop(number):
        for _ in range(5 if is_kept else 20):
            connection = http.client.HTTPConnection(*address, timeout=30)
            for _ in range(10 if is_kept else 1):
                connection.request("GET", f"/fixed_{number}", headers={} if is_kept else {"Connection": "close"})
                assert connection.getresponse().read()
            connection.close()

    with running_server(inventory, threads=8) as address, ThreadPoolExecutor(16) as pool:
        list(pool.map(shop, range(16)))
    assert len(writes) <= 16 * 40


def test_a_large_response_arrives_at_a_slow_reader(inventory):
    """More than a thread may store: from there on it waits for the main thread."""
    app = Flask("large")
    app.config["MAX_CONTENT_LENGTH"] = 1000
    app.add_url_rule("/large", view_func=lambda: Response(b"x" * 2**20 for _ in range(40)))
    sockets = {}

    def is_waiting():
        channels = [one for one in list(sockets.values()) if isinstance(one, serving._Channel)]
        return any(one.outbuf_lock._waiters for one in channels)  # what `Condition` keeps of threads that wait

    with running_server(inventory, app=app, sockets=sockets) as address, socket.create_connection(address, 30) as slow:
        slow.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert wait_until(is_waiting)
        received = 0
        while data := slow.recv(2**20):
            received += len(data)
        assert received > 40 * 2**20


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


@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\ntransfer-encoding:\tChunked\r\ncontent-length:5\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    ],
)
def test_a_request_whose_length_is_said_twice_is_refused_and_closes_the_connection(inventory, head):
    with running_server(inventory) as address, socket.create_connection(address, timeout=30) as connection:
        connection.sendall(head + b"GET /fixed_1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while part := connection.recv(65536):
            answer += part
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))
    assert answer.count(b"\r\nServer:") <= 1
    assert b"fixed_1" not in answer


def test_a_chunked_request_is_still_answered(inventory):
    with running_server(inventory) as address, socket.create_connection(address, timeout=30) as connection:
        connection.sendall(b"GET /fixed_0 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")

"""The shop over a socket: equal to the shop in process, for one session and for sixty-four."""

from __future__ import annotations

import random
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from waitress import create_server

from webshop_server.app import Config, create_app, stop
from webshop_server.client import Client
from webshop_server.errors import ArgumentError, ShopError
from webshop_server.shop import Shop

TOKEN = "a-long-token"
_WORDS = "red blue shoes cotton lamp tea chocolate speaker rug dress women's 1/2 ñ % + [x]"
WORDS = _WORDS.split(" ")


@pytest.fixture(scope="module")
def server(inventory):
    app = create_app(Config(inventory, admin_token=TOKEN))
    sockets = {}
    server = create_server(app, map=sockets, host="127.0.0.1", port=0, threads=8)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.effective_port}"
    stop(server, sockets)
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def client(server):
    client = Client(server, TOKEN)
    yield client
    client.close()


def choose(rng, page):
    labels = list(page.clickables)
    draw = rng.random()
    if draw < 0.1:
        return rng.choice(["click[nothing]", "search[x]", "nonsense", "click[]", "search[]"])
    if page.has_search_bar:
        return f"search[{' '.join(rng.sample(WORDS, 2))}]"
    return f"click[{rng.choice(labels)}]" if labels else "click[buy now]"


def test_sixty_four_concurrent_sessions(server, inventory):
    barrier = threading.Barrier(64)

    def shop(number):
        client = Client(server)
        try:
            barrier.wait(30)
            session = client.start(number)
            mirror = Shop(inventory).start(number, session.session_id)
            rng = random.Random(number)
            for _ in range(8):
                action = choose(rng, mirror.page)
                session.act(action)
                mirror.act(action)
                assert session.page.text == mirror.page.text
                assert session.page.path == mirror.page.path
            return session.session_id
        finally:
            client.close()

    with ThreadPoolExecutor(64) as pool:
        names = list(pool.map(shop, range(64)))
    assert len(set(names)) == 64


def test_refusals_come_back_as_errors(client, server):
    with pytest.raises(ArgumentError, match="`goal_index` should be a whole number"):
        client.start(10**6)
    with pytest.raises(ArgumentError, match="`nope` should be one of the settings"):
        client.configure(nope=1)
    other = Client(server, "wrong-token")
    with pytest.raises(ArgumentError, match="the token is missing or wrong"):
        other.configure(ad_page=True)
    other.close()
    session = client.start(0)
    client.admin("DELETE", f"/sessions/{session.session_id}")
    before = session.page
    outcome = session.act("search[shirt]")
    assert outcome.error is None or "there is no session" in outcome.error
    assert before is not None


def test_no_server():
    client = Client("http://127.0.0.1:9")
    with pytest.raises(ShopError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        client.start()
    for address in ("https://x", "ftp://x", "x", "http://", "http://x:99999", "http://x:y", "http://[::1", None):
        with pytest.raises(ArgumentError, match="`base_url` should be like"):
            Client(address)


@pytest.mark.integration
@pytest.mark.parametrize("sent", [0, 40, 10**6], ids=["nothing", "a part", "all"])
def test_a_response_that_is_cut_off_is_an_error(sent):
    """As by a server that is killed while it sends: a part of a page must not pass for the page."""
    document = b'<main id="page"><p>Instruction:</p><p>%s</p></main>' % (b"word " * 50)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(document)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(head + document[:sent])

        thread = threading.Thread(target=answer)
        thread.start()
        client = Client(f"http://127.0.0.1:{listener.getsockname()[1]}")
        if sent < len(document):
            with pytest.raises(ShopError, match="cannot be reached: IncompleteRead"):
                client.start()
        else:
            assert client.start().page.text.startswith("Instruction: [SEP] word")
        client.close()
        thread.join(10)

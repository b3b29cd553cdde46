"""Sessions and orders in a file: restarts, killed servers, several processes."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.processes import serving
from webshop_server.app import Config, create_app
from webshop_server.client import Client
from webshop_server.errors import ArgumentError, SessionError, ShopError, StateFileError
from webshop_server.inventory import Inventory
from webshop_server.page_model import FormRequest, parse_html
from webshop_server.sessions import SessionStore
from webshop_server.shared_sessions import SharedSessionStore
from webshop_server.shop import Shop

WORDS = ("red", "shoes", "cotton", "lamp", "tea", "made", "easy", "women's")


@pytest.fixture
def make_store(inventory, tmp_path):
    with contextlib.ExitStack() as stack:

        def make(**options):
            store = SharedSessionStore(Shop(inventory), tmp_path / "state.sqlite", **options)
            stack.callback(store.close)
            return store

        yield make


def choose(rng, page):
    if page.has_search_bar:
        return f"search[{' '.join(rng.sample(WORDS, 2))}]"
    return f"click[{rng.choice(list(page.clickables))}]"


def test_a_full_disk_refuses_orders_and_loses_none(inventory, tmp_path):
    """SQLite's own limit of pages, which reports the same error as a full disk."""
    app = create_app(Config(inventory, state=tmp_path / "state.sqlite"))
    store, client = app.extensions["webshop"], app.test_client()
    asin, confirmed, refused = next(iter(inventory.catalogue)).asin, set(), set()

    def buy(name):
        status = client.post(f"/done/{name}/{asin}/{{}}").status_code
        (confirmed if status == 200 else refused).add(name)
        return status

    names = [f"fixed_{number}" for number in range(60)]
    assert {client.post(f"/{name}").status_code for name in names} == {200}
    assert buy(names.pop()) == 200
    with store._database() as database:
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {pages}")
    assert {buy(name) for name in names} >= {503}
    assert set(read_orders(tmp_path / "state.sqlite")) == confirmed
    with store._database() as database:
        assert not database.in_transaction
        database.execute("PRAGMA max_page_count = 1000000")
    assert {buy(name) for name in sorted(refused - confirmed)} == {200}
    assert set(read_orders(tmp_path / "state.sqlite")) == confirmed
    store.close()


def read_orders(path):
    with closing(sqlite3.connect(path)) as database:
        return {row[0]: row[1:] for row in database.execute("SELECT session, goal, asin, reward FROM orders")}


@pytest.mark.parametrize("seed", range(6))
def test_stores_on_one_file_show_the_pages_of_a_store_in_memory(make_store, inventory, seed):
    rng = random.Random(seed)
    memory, stores = SessionStore(Shop(inventory)), [make_store(), make_store()]
    name = memory.create(name=f"fixed_{seed}")
    rng.choice(stores).create(name=name)
    for store in (memory, stores[0]):
        store.configure(ad_page=True, ad_right_button="B", ad_depth=2)
        with store.use(name) as session:
            session.configure(show_attributes=True, price_factor=1.5)
    for _ in range(40):
        if rng.random() < 0.2:  # a restart
            stores[1].close()
            stores[1] = make_store()
        with memory.use(name) as here:
            action = choose(rng, here.page) if not here.is_done else "click[x]"
            expected = here.act(action)
        with rng.choice(stores).use(name) as there:
            result = there.act(action)
        assert result == expected
        for store in stores:
            with store.use(name) as session:
                assert session.page == expected.page
                assert session.settings == here.settings


def test_sessions_and_goals_go_on_after_a_restart(make_store, tmp_path):
    store = make_store(seed=3)
    names = [store.create() for _ in range(4)]
    goals = {}
    for name in names:
        with store.use(name) as session:
            goals[name] = session.goal_index
            session.search("shirt")
    store.close()
    later = make_store(seed=3)
    assert len(later) == 4
    for name in names:
        with later.use(name) as session:
            assert (session.goal_index, session.page.url.keywords) == (goals[name], "shirt")
    with later.use(later.create()) as session:
        following = session.goal_index
    again = SharedSessionStore(later.shop, tmp_path / "other.sqlite", seed=3)
    drawn = []
    for _ in range(5):
        with again.use(again.create()) as session:
            drawn.append(session.goal_index)
    again.close()
    assert drawn == [*goals.values(), following]


def test_limits_and_idle_sessions(make_store):
    now = [0.0]
    store = make_store(limit=6, client_limit=3, idle_seconds=100, clock=lambda: now[0])
    first = store.create(client="a")
    with store.use(first) as session:
        session.search("shirt")
    for _ in range(10):
        now[0] += 1
        store.create(client="b")
    assert len(store) == 4
    for _ in range(10):
        now[0] += 1
        last = store.create()
    assert len(store) == 6
    assert first in store
    now[0] = 105.0
    with pytest.raises(SessionError, match="there is no session"), store.use(first):
        pass
    now[0] = 110.0
    with store.use(last):
        pass
    store.remove(last)
    with pytest.raises(SessionError, match="there is no session"), store.use(last):
        pass
    with pytest.raises(SessionError, match="there is no session"), store.use("\ud800"):
        pass


@pytest.mark.parametrize("is_shared", [False, True], ids=["memory", "file"])
def test_a_new_session_outlives_the_start_of_others(make_store, inventory, is_shared):
    """At a limit that is full of sessions that have been used, as with many shoppers at one address."""
    now = [0.0]
    options = {"limit": 100, "client_limit": 8, "clock": lambda: now[0]}
    store = make_store(**options) if is_shared else SessionStore(Shop(inventory), **options)
    used = []
    for _ in range(8):
        now[0] += 1
        used.append(store.create(client="a"))
        with store.use(used[-1]) as session:
            session.search("shirt")
    fresh = []
    for _ in range(3):
        now[0] += 1
        fresh.append(store.create(client="a"))
    assert [name in store for name in fresh] == [True] * 3
    assert [name in store for name in used] == [False] * 3 + [True] * 5
    for _ in range(20):  # a flood of sessions that are never used displaces itself
        now[0] += 1
        fresh.append(store.create(client="a"))
    assert sum(name in store for name in used) == 3
    assert fresh[-1] in store


def test_threads_of_two_stores_lose_no_change(make_store):
    stores = [make_store(), make_store()]
    name = stores[0].create(goal=0)

    def count(number):
        with stores[number % 2].use(name) as session:
            depth = dict(session.changes).get("ad_depth", 0)
            session.configure(ad_depth=depth + 1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(80)))
    with stores[0].use(name) as session:
        assert session.settings.ad_depth == 80


HOLDER = """
import sys, threading
from webshop_server.inventory import Inventory
from webshop_server.shared_sessions import SharedSessionStore
from webshop_server.shop import Shop

store = SharedSessionStore(Shop(Inventory.open(sys.argv[1])), sys.argv[2])

def wait_for_first():
    with store.use("first"):
        print("first", flush=True)

waiting = threading.Thread(target=wait_for_first)
with store.use("second"):
    waiting.start()
    waiting.join(0.3)  # until it waits
    print("second", flush=True)
    sys.stdin.readline()
waiting.join()
"""


@pytest.mark.integration
@pytest.mark.skipif(not hasattr(os, "fork"), reason="locks between processes need fcntl")
def test_threads_of_two_processes_wait_for_each_others_sessions(make_store, catalogue_path, tmp_path):
    """Which the system takes for a deadlock: each process holds what a thread of the other waits for."""
    store = make_store()
    for name in ("first", "second"):
        store.create(name=name)
    got = []

    def wait_for_second():
        with store.use("second"):
            got.append("second")

    command = [sys.executable, "-c", HOLDER, str(catalogue_path), str(store.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    waiting = threading.Thread(target=wait_for_second)
    with subprocess.Popen(command, text=True, **pipes) as other:
        with store.use("first"):
            assert other.stdout.readline() == "second\n"
            waiting.start()
            waiting.join(0.3)
            assert waiting.is_alive()  # neither an error nor the session
            other.stdin.write("\n")
            other.stdin.flush()
            waiting.join(30)
            assert got == ["second"]
        assert other.stdout.readline() == "first\n"
        other.stdin.close()
    assert other.returncode == 0


def test_an_error_changes_nothing(make_store):
    store = make_store()
    name = store.create(goal=0)

    def fail():
        with store.use(name) as session:
            session.search("shirt")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with store.use(name) as session:
        assert session.page.has_search_bar


def test_files_that_cannot_be_used_are_refused(make_store, inventory, catalogue_path, tmp_path):
    make_store(seed=0).close()
    with pytest.raises(ArgumentError, match="should hold sessions of the seed"):
        make_store(seed=1)
    other = Shop(Inventory.default(products=100))
    with pytest.raises(ArgumentError, match="should hold sessions of the catalogue"):
        SharedSessionStore(other, tmp_path / "state.sqlite")
    (tmp_path / "text").write_text("not a database, but a text of some length" * 100)
    for path in (tmp_path / "text", tmp_path, tmp_path / "no" / "such" / "folder"):
        with pytest.raises(StateFileError, match="cannot be used for sessions"):
            create_app(Config(inventory, state=path))


def buy(session):
    session.act("search[shirt cotton]")
    session.act(f"click[{next(label for label in session.page.clickables if label.startswith('b0'))}]")
    assert session.act("click[buy now]").is_done


@pytest.mark.integration
def test_a_killed_server_loses_no_confirmed_order_and_no_session(catalogue_path, tmp_path):
    state = tmp_path / "state.sqlite"
    confirmed, live = {}, {}
    with serving(catalogue_path, "--state", str(state)) as (process, base):
        stop = threading.Event()

        def shop(number):
            client = Client(base)
            with contextlib.suppress(ShopError), contextlib.closing(client):
                session = client.start(number)
                session.act("search[lamp]")
                live[number] = (session.session_id, session.page.path, session.page.text)
                while not stop.is_set():
                    session = client.start(number)
                    buy(session)
                    confirmed[session.session_id] = session.page.reward
                    if len(confirmed) > 40:
                        stop.set()

        threads = [threading.Thread(target=shop, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        assert stop.wait(60)
        process.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join(30)
    orders = read_orders(state)
    assert {name: orders[name][2] for name in confirmed} == confirmed
    with serving(catalogue_path, "--state", str(state)) as (_, base), contextlib.closing(Client(base)) as client:
        for name, path, text in live.values():
            shown, document = client.fetch(FormRequest("GET", path, ()))
            assert shown == path
            assert name in path
            assert parse_html(document, path).text == text
        for name in list(confirmed)[:5]:  # a completed session shows its last page
            assert client.fetch(FormRequest("GET", f"/{name}", ()))[0].startswith("/done/")


@pytest.mark.integration
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_several_processes_serve_one_state(catalogue_path, inventory, tmp_path):
    with serving(catalogue_path, "--state", str(tmp_path / "state.sqlite"), "--processes", "2") as (process, base):

        def shop(number):
            rng = random.Random(number)
            mirror = None
            for _ in range(12):
                with contextlib.closing(Client(base)) as client:  # a new connection, to any process
                    if mirror is None:
                        session = client.start(number)
                        mirror = Shop(inventory).start(number, session.session_id)
                    session.client = client
                    assert session.page.text == mirror.page.text
                    action = choose(rng, mirror.page) if not mirror.is_done else "click[x]"
                    assert session.act(action).error == mirror.act(action).error
            return session.session_id

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(shop, range(16)))) == 16
        process.kill()  # the server's processes end with the first one
        process.wait(30)
        assert process.stdout.read() == ""  # which they hold open

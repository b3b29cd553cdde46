"""The web application: admin requests, sessions, configurations, and a broken catalogue."""

from __future__ import annotations

import itertools
import json
import random
import socket

import pytest

from webshop_server.app import MAX_BODY, Config, create_app
from webshop_server.catalogue import CatalogueWriter
from webshop_server.errors import ArgumentError, CatalogueError, SessionError
from webshop_server.page_model import parse_html
from webshop_server.product import Product
from webshop_server.sessions import SessionStore
from webshop_server.shop import Shop

TOKEN = "a-long-token"


def parse_response(response):
    assert response.status_code == 200, response.text
    return parse_html(response.text)


def test_the_operator_needs_the_token(app, inventory):
    client = app.test_client()
    paths = ["/admin/settings", "/admin/sessions/fixed_0", "/admin/sessions"]
    for path in paths:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}, {"Authorization": "Bearer é"}):
            assert client.patch(path, json={}, headers=headers).status_code in (401, 405)
            assert client.get(path, headers=headers).status_code in (401, 405)
    closed = create_app(Config(inventory)).test_client()
    for path in paths:
        assert closed.get(path, headers={"Authorization": "Bearer None"}).status_code == 404
    with pytest.raises(ArgumentError, match="`admin_token` should have at least 8 characters"):
        create_app(Config(inventory, admin_token="short"))


def test_the_operator_changes_settings_for_all_and_for_one(client, store):
    key = {"Authorization": f"Bearer {TOKEN}"}
    name = client.post("/admin/sessions", json={"goal": 4}, headers=key).json["session"]
    client.post("/fixed_5")
    answer = client.patch(f"/admin/sessions/{name}/settings", json={"button_labels": {"Search": "Find"}}, headers=key)
    assert answer.json["button_labels"] == {"Search": "Find"}
    assert "find" in parse_response(client.get(f"/{name}")).clickables
    assert "search" in parse_response(client.get("/fixed_5")).clickables
    changes = {"price_factor": 2, "sold_out": ["offer:0"]}
    assert client.patch("/admin/settings", json=changes, headers=key).json["price_factor"] == 2
    assert client.get("/admin/settings", headers=key).json["sold_out"] == ["offer:0"]
    seen = client.get(f"/admin/sessions/{name}", headers=key).json
    assert (seen["goal_index"], seen["done"], seen["reward_info"], seen["bought"]) == (4, False, None, None)
    assert seen["settings"]["price_factor"] == 2
    assert client.delete(f"/admin/sessions/{name}", headers=key).json == {"removed": name}
    assert client.get(f"/admin/sessions/{name}", headers=key).status_code == 404


@pytest.mark.parametrize(
    ("path", "data", "reason"),
    [
        ("/settings", {"nope": 1}, "`nope` should be one of the settings"),
        ("/settings", {"price_factor": "x"}, "`price_factor` should be a number. Received 'x'"),
        ("/settings", {"self": 1}, "`self` should be one of the settings"),
        ("/settings", {"demoted": ["\ud800"]}, "the body should have no lone surrogates"),
        ("/settings", [1], "the body should be a JSON object"),
        ("/settings", "x", "the body should be a JSON object"),
        ("/sessions/fixed_0/settings", {"ad_buttons": 0}, "`ad_buttons` should be"),
        ("/sessions/fixed_0/settings", {"self": 1}, "`self` should be one of the settings"),
    ],
)
def test_invalid_admin_requests_are_refused(client, store, path, data, reason):
    client.post("/fixed_0")
    key = {"Authorization": f"Bearer {TOKEN}"}
    before = store.shop.settings
    answer = client.patch(f"/admin{path}", data=json.dumps(data), content_type="application/json", headers=key)
    assert answer.status_code == 400
    assert reason in answer.json["error"]
    assert store.shop.settings is before
    assert client.patch("/admin/settings", data=b"{", headers=key, content_type="application/json").status_code == 400
    for goal in ("x", True, -1, 10**9, 1.5):
        assert client.post("/admin/sessions", json={"goal": goal}, headers=key).status_code == 400


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_session_starts_once_under_a_name(inventory, tmp_path, is_shared):
    state = tmp_path / "state.sqlite" if is_shared else None
    app = create_app(Config(inventory, admin_token=TOKEN, state=state))
    client, key = app.test_client(), {"Authorization": f"Bearer {TOKEN}"}
    assert client.post("/admin/sessions", json={"goal": 3, "name": "mine"}, headers=key).status_code == 200
    for body, reason in (
        (
            {"goal": 4, "name": "mine"},
            "`name` should be that of no session, which can be deleted first. Received 'mine'",
        ),
        ({"gaol": 4}, "the body should have no keys but goal and name. Received 'gaol'"),
    ):
        answer = client.post("/admin/sessions", json=body, headers=key)
        assert (answer.status_code, answer.json["error"]) == (400, reason)
    assert client.get("/admin/sessions/mine", headers=key).json["goal_index"] == 3
    app.extensions["webshop"].close()


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("compat", [False, True])
def test_a_named_session_that_was_idle_for_too_long_starts_anew(inventory, tmp_path, compat, is_shared):
    state = tmp_path / "state.sqlite" if is_shared else None
    app = create_app(Config(inventory, compat=compat, state=state, idle_seconds=0.0))
    client, store = app.test_client(), app.extensions["webshop"]
    for time in (1000.0, 2000.0):
        store._clock = itertools.repeat(time).__next__
        assert client.post("/fixed_7").status_code == 200
    store._clock = itertools.repeat(3000.0).__next__
    assert client.get("/fixed_7").status_code == 200
    store.close()


def test_idle_and_surplus_sessions_are_deleted(inventory):
    now = [0.0]
    store = SessionStore(Shop(inventory), limit=3, idle_seconds=100, clock=lambda: now[0])
    first, second, third = (store.create() for _ in range(3))
    with store.use(first):
        pass
    fourth = store.create()  # the second was idle longest
    with pytest.raises(SessionError, match="it was idle for too long"), store.use(second):
        pass
    now[0] = 90.0
    with store.use(third):
        pass
    now[0] = 150.0
    for name in (first, fourth):
        with pytest.raises(SessionError, match="there is no session"), store.use(name):
            pass
    with store.use(third):
        pass
    assert len(store) == 1
    store.remove(third)
    store.remove(third)
    assert len(store) == 0


def test_session_names(inventory):
    store = SessionStore(Shop(inventory))
    for name in ("", "a b", "../x", "x" * 65, "admin", "static", "é"):
        with pytest.raises(ArgumentError, match="a session's name should match"):
            store.create(name=name)
    assert len(store) == 0
    with pytest.raises(ArgumentError, match="`limit` should be a whole number, at least 1"):
        SessionStore(Shop(inventory), limit=0)


def test_equal_seeds_give_new_sessions_equal_goals(inventory):
    def goals(seed):
        store = SessionStore(Shop(inventory), seed=seed)
        found = []
        for _ in range(10):
            with store.use(store.create()) as session:
                found.append(session.goal_index)
        return found

    random.seed(1)
    first = goals(0)
    random.seed(2)
    assert goals(0) == first
    assert goals(1) != first


def test_invalid_configurations_are_refused(inventory, tmp_path):
    with pytest.raises(CatalogueError, match="there is no catalogue"):
        create_app(Config(tmp_path / "no.sqlite"))
    with pytest.raises(ArgumentError, match="should have human instructions"):
        create_app(Config(inventory, goal_kind="human"))
    assert TOKEN not in repr(Config(admin_token=TOKEN))


def test_a_catalogue_that_breaks_while_serving(catalogue_path, tmp_path, monkeypatch, caplog):
    import shutil

    shutil.copy(catalogue_path, tmp_path / "a.sqlite")
    app = create_app(Config(tmp_path / "a.sqlite"))
    client = app.test_client()
    client.post("/fixed_0")
    catalogue = app.extensions["webshop"].shop.inventory.catalogue
    monkeypatch.setattr(catalogue, "_products", {})

    def broken(*_):
        raise CatalogueError("the disk is gone")

    monkeypatch.setattr(catalogue, "_query", broken)
    answer = client.get("/search_results/fixed_0/shirt/1")
    assert answer.status_code == 503
    assert "the disk is gone" in caplog.text
    assert "disk" not in answer.text


def test_a_get_request_of_an_unknown_name_starts_no_session(client, store):
    live = client.get("/").headers["Location"]
    client.post(live, data={"search_query": "shirt"})
    for number in range(60):
        assert "search" in parse_response(client.get(f"/fixed_{number}")).clickables
        answer = client.get(f"/unknown-{number}")
        assert answer.status_code == 404
        assert "This session is over" in answer.text
        assert client.post(f"/unknown-{number}", data={"search_query": "shirt"}).status_code == 404
    assert len(store) == 1
    assert client.post("/fixed_3", data={"search_query": "shirt"}).status_code == 303
    assert len(store) == 2


def test_sessions_of_one_client_replace_each_other(inventory):
    app = create_app(Config(inventory, max_sessions=20, max_client_sessions=5))
    store = app.extensions["webshop"]
    other, greedy = app.test_client(), app.test_client()
    live = [other.get("/").headers["Location"]]
    greedy.environ_base = {**greedy.environ_base, "REMOTE_ADDR": "192.0.2.9"}
    live.append(greedy.get("/").headers["Location"])
    greedy.post(live[1], data={"search_query": "shirt"})
    for _ in range(100):
        greedy.get("/")
    assert len(store) == 6
    for path in live:  # the other client's, and the one with a search, which outlives those without
        assert path[1:] in store
    opened = []
    for _ in range(8):
        opened.append(greedy.get("/").headers["Location"])
        greedy.post(opened[-1], data={"search_query": "shirt"})
    assert [path[1:] in store for path in (*live, *opened)] == [True, False, *[False] * 3, *[True] * 5]
    with pytest.raises(ArgumentError, match="`client_limit` should be a whole number, at least 1"):
        SessionStore(Shop(inventory), client_limit=0)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 303),
        ("http://localhost", 303),
        ("http://localhost:1", 403),
        ("http://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("null", 403),
        ("", 403),
        ("localhost", 403),
    ],
)
def test_a_post_from_another_site_is_refused(client, store, origin, status):
    headers = {} if origin is None else {"Origin": origin}
    client.post("/fixed_0")
    assert client.post("/fixed_0", data={"search_query": "shirt"}, headers=headers).status_code == status
    with store.use("fixed_0") as session:
        assert (session.page.url.keywords == "shirt") is (status == 303)
    key = {"Authorization": f"Bearer {TOKEN}", **headers}
    assert client.post("/admin/sessions", json={}, headers=key).status_code == (403 if status == 403 else 200)
    assert client.get("/fixed_0", headers=headers, follow_redirects=True).status_code == 200


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("localhost", True),
        ("127.0.0.1:3000", True),
        ("[::1]:3000", True),
        ("shop.example.org", True),
        (f"{socket.gethostname()}:3000", True),
        ("evil.example.org:3000", False),
        ("localhost.evil.example.org", False),
        ("127.0.0.1.evil.example.org", False),
        ("", False),
    ],
)
def test_names_of_other_sites_are_refused(inventory, host, is_own):
    """DNS rebinding: `Host` and `Origin` agree, and both are another site's."""
    app = create_app(Config(inventory, admin_token=TOKEN, allow_hosts=("shop.example.org",)))
    client, headers = app.test_client(), {"Host": host, "Origin": f"http://{host}"}
    assert client.post("/fixed_0", headers=headers).status_code == (200 if is_own else 421)
    assert ("fixed_0" in app.extensions["webshop"]) is is_own
    headers |= {"Authorization": f"Bearer {TOKEN}"}
    assert client.get("/admin/settings", headers=headers).status_code == (200 if is_own else 421)


@pytest.mark.parametrize("depth", [17, 500, 30_000])
@pytest.mark.parametrize("form", ['{"button_labels": %s}', "%s"], ids=["setting", "bare"])
def test_deep_json_is_refused(client, store, form, depth):
    before = store.shop.settings
    key = {"Authorization": f"Bearer {TOKEN}"}
    for data in (form % ("[" * depth + "]" * depth), form % ('{"a":' * depth + "1" + "}" * depth), "[" * depth):
        body = data.encode()[: MAX_BODY - 1]
        answer = client.patch("/admin/settings", data=body, content_type="application/json", headers=key)
        assert answer.status_code == 400, answer.text[:200]
        assert answer.json["error"].startswith("the body should ")
    assert store.shop.settings is before


def test_a_catalogue_without_instructions_can_be_browsed(tmp_path):
    with CatalogueWriter(tmp_path / "bare.sqlite") as writer:
        writer.add([Product(f"B{i}", f"Green lamp {i}", prices=(1.0 * i,)) for i in range(3)])
        writer.finish("bare")
    client = create_app(Config(tmp_path / "bare.sqlite")).test_client()
    page = parse_response(client.get("/", follow_redirects=True))
    assert "its catalogue has no instructions" in page.text
    page = parse_response(client.post(page.search, data={"search_query": "lamp"}, follow_redirects=True))
    page = parse_response(client.get(page.clickables["b0"].path))
    form = page.clickables["buy now"]
    bought = client.post(form.path, data=dict(form.fields), follow_redirects=True)
    assert parse_response(bought).reward == 0.0


def test_buttons_are_pressed_by_their_label(client, store):
    """On the page as it was shown, also when a setting has renamed the button since."""
    store.configure(button_labels={"Description": "About", "Buy Now": "Add to Bag"})
    page = parse_response(client.get("/", follow_redirects=True))
    page = parse_response(client.post(page.search, data={"search_query": "shirt"}, follow_redirects=True))
    product = next(form.path for label, form in page.clickables.items() if label.startswith("b0"))
    page = parse_response(client.get(product))
    assert {page.clickables[label].path for label in ("about", "add to bag")} == {product}
    shown = client.post(product, data={"button": "About"})
    assert shown.status_code == 303
    assert "/Description/" in shown.location
    page = parse_response(client.get(product))
    store.configure(button_labels={"Buy Now": "Order"})
    assert client.post(product, data={"button": "Nothing"}).status_code == 404
    assert "/done/" in client.post(product, data={"button": "ADD TO BAG"}).location

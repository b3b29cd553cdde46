"""The pages of the web application: URLs, invalid input, tabs, purchases, advertisements, and session logs."""

from __future__ import annotations

import json
import re
import tempfile

import pytest

from webshop_server.app import Config, create_app
from webshop_server.errors import ArgumentError
from webshop_server.page_model import parse_html
from webshop_server.renderer import SECURITY_HEADERS
from webshop_server.urls import PageKind, PageUrl, build_path


def parse_response(response):
    assert response.status_code == 200, response.text
    return parse_html(response.text)


def press(client, form):
    return client.post(form.path, data=dict(form.fields), follow_redirects=True)


def item_path(store, name="fixed_0", options=(), kind=PageKind.ITEM):
    asin = store.shop.goals[0].asin
    return build_path(PageUrl(kind, "shirt", 1, asin, options), name)


def test_a_purchase_by_links_and_forms(client, store):
    page = parse_response(client.get("/fixed_0"))
    goal = store.shop.goals[0]
    title = store.shop.inventory.catalogue.product(goal.asin).title
    answer = client.post(page.search, data={"search_query": title})
    assert answer.status_code == 303
    path = answer.headers["Location"]
    page = parse_response(client.get(path))
    while goal.asin.lower() not in page.clickables:
        page = parse_response(client.get(page.clickables["next >"].path))
    page = parse_response(client.get(page.clickables[goal.asin.lower()].path))
    for _, value in goal.options:
        page = parse_response(client.get(page.clickables[value].path))
    form = page.clickables["buy now"]
    assert form.method == "POST"
    page = parse_response(press(client, form))
    assert page.reward == 1.0


def test_a_new_session_has_a_random_name(client, store):
    names = {client.get("/").headers["Location"] for _ in range(20)}
    assert len(names) == 20
    assert all(re.fullmatch(r"/[A-Za-z0-9_-]{16}", name) for name in names)
    path = client.get("/?goal=7").headers["Location"]
    with store.use(path[1:]) as session:
        assert session.goal_index == 7
    for bad in ("-1", "x", "999999999", "٣", "1" * 50):
        assert client.get("/", query_string={"goal": bad}).status_code == 404


def test_every_response_has_the_security_headers(client):
    for path in ("/fixed_0", "/nowhere/at/all", "/static/style.css", "/admin/settings", "/", "/image/x.svg"):
        with client.get(path) as answer:
            headers = answer.headers
        assert headers["Content-Security-Policy"] == SECURITY_HEADERS["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Set-Cookie" not in headers
    assert "default-src 'none'" in SECURITY_HEADERS["Content-Security-Policy"]
    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/search_results/{new}/shirt/1",
        "/item_page/{new}/B1/shirt/1/%7B%7D",
        "/done/{new}/B1/%7B%7D",
        "/ad/{new}/B1/%7B%7D/0",
        "/search_results/{old}/shirt/one",
        "/search_results/{old}/shirt/1.5",
        "/item_page/{old}/B0NOTHING0/shirt/1/%7B%7D",
        "/item_page/{old}/{asin}/shirt/1/nothing",
        "/item_page/{old}/{asin}/shirt/x/%7B%7D",
        "/item_page/{old}/{asin}/shirt/1/%7B%22color%22%3A%22nope%22%7D",
        "/item_page/{old}/{asin}/shirt/1/%7B%22nope%22%3A%22red%22%7D",
        "/item_sub_page/{old}/{asin}/shirt/1/Secrets/%7B%7D",
        "/item_sub_page/{old}/{asin}/shirt/1/Attributes/%7B%7D",
        "/item_sub_page/{old}/{asin}/shirt/1/..%2F..%2Fapp.py/%7B%7D",
        "/image/nothing.svg",
        "/a b",
        "/fixed_999999999",
        "/favicon",
        "/x/y/z",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
    ],
)
def test_unknown_urls_show_an_error_page(client, store, path):
    client.post("/fixed_0")
    asin = store.shop.goals[0].asin
    with store.use("fixed_0") as session:
        before = session.page
    for ask in (client.get, client.post):
        answer = ask(path.format(new="never-seen", old="fixed_0", asin=asin))
        assert answer.status_code in (404, 405)
        assert "<h1>" in answer.text
        with store.use("fixed_0") as session:
            assert session.page == before


def test_sizes_are_bounded(client):
    client.post("/fixed_0")
    assert client.post("/fixed_0", data={"search_query": "a" * 1_000_000}).status_code == 413
    assert client.get("/search_results/fixed_0/" + "a" * 100_000 + "/1").status_code == 414
    answer = client.post("/fixed_0", data={"search_query": "shirt " * 5000})
    assert answer.status_code == 303
    assert len(answer.headers["Location"]) < 1000


def test_two_tabs_of_one_session_do_not_disturb_each_other(client, store):
    client.post("/fixed_0")
    goal = store.shop.goals[0]
    one = client.get(item_path(store, options=goal.options))
    client.get("/search_results/fixed_0/lamp/1")  # the other tab goes elsewhere
    client.get(item_path(store))
    form = parse_response(one).clickables["buy now"]
    assert parse_response(press(client, form)).reward == 1.0


def test_back_after_a_purchase_and_buying_twice(client, store):
    client.post("/fixed_0")
    page = parse_response(client.get(item_path(store)))
    first = press(client, page.clickables["buy now"])
    reward = parse_response(first).reward
    with store.use("fixed_0") as session:
        done = session.page.path
    for method, path in (
        ("get", "/fixed_0"),
        ("get", item_path(store)),
        ("get", "/search_results/fixed_0/shirt/1"),
        ("post", item_path(store, options=store.shop.goals[0].options, kind=PageKind.DONE)),
        ("post", "/fixed_0"),
    ):
        data = {"search_query": "shirt"} if method == "post" else None
        answer = getattr(client, method)(path, **({"data": data} if data else {}), follow_redirects=True)
        assert answer.request.path == done.replace("%7B%7D", "{}")
        assert parse_response(answer).reward == reward
    assert parse_response(client.get(done)).reward == reward
    assert parse_response(client.post(done)).reward == reward


def test_a_get_request_never_buys(client, store):
    client.post("/fixed_0")
    answer = client.get(item_path(store, kind=PageKind.DONE), follow_redirects=True)
    assert "buy now" in parse_response(answer).clickables
    with store.use("fixed_0") as session:
        assert not session.is_done


def test_advertisements_over_http(client, store):
    store.shop.configure(ad_page=True, ad_right_button="C", ad_depth=1)
    client.post("/fixed_0")
    page = parse_response(client.get(item_path(store)))
    answer = press(client, page.clickables["buy now"])
    page = parse_response(answer)
    assert list(page.clickables) == ["a", "b", "c", "d", "e"]
    assert answer.request.path.endswith("/0")
    form = page.clickables["c"]
    assert client.get(item_path(store, kind=PageKind.CONFIRM), follow_redirects=True).request.path.startswith(
        "/item_page/"
    )
    press(client, parse_response(client.get(item_path(store))).clickables["buy now"])
    page = parse_response(press(client, form))
    assert parse_response(press(client, page.clickables["place order"])).reward is not None
    assert press(client, form).request.path.startswith("/done/")


def test_logs_have_the_originals_form(inventory, tmp_path):
    app = create_app(Config(inventory, log_dir=tmp_path / "logs"))
    client, store = app.test_client(), app.extensions["webshop"]
    client.post("/fixed_0")
    client.post("/fixed_0", data={"search_query": "Cotton Shirt"}, follow_redirects=True)
    page = parse_response(client.get(item_path(store)))
    client.get(page.clickables["description"].path)
    press(client, page.clickables["buy now"])
    lines = [json.loads(line) for line in (tmp_path / "logs" / "fixed_0.jsonl").read_text().splitlines()]
    assert [line["page"] for line in lines] == ["index", "search_results", "item_page", "item_sub_page", "done"]
    assert all({"page", "url", "goal", "content"} <= set(line) for line in lines)
    assert lines[1]["content"]["keywords"] == ["cotton", "shirt"]
    assert len(lines[1]["content"]["search_result_asins"]) == 10
    assert lines[1]["url"] == "http://localhost/search_results/fixed_0/cotton+shirt/1"
    assert 0 <= lines[-1]["reward"] <= 1
    assert {"r_type", "r_att", "r_option", "r_price"} <= set(lines[-1]["reward_info"])
    assert "reward" not in lines[0]


@pytest.mark.parametrize("name", ["file", "closed"])
def test_a_folder_of_logs_that_cannot_be_written_is_refused(inventory, tmp_path, monkeypatch, name):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "file").write_text("")
    (tmp_path / "closed").mkdir()
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)  # permissions do not bind the root of a container
    with pytest.raises(ArgumentError, match="`log` should be a directory that can be written"):
        create_app(Config(inventory, log_dir=tmp_path / name))


def test_a_log_that_cannot_be_written(inventory, tmp_path, caplog):
    app = create_app(Config(inventory, log_dir=tmp_path / "logs"))
    (tmp_path / "logs" / "fixed_0.jsonl").mkdir()
    assert app.test_client().post("/fixed_0").status_code == 503
    assert "fixed_0.jsonl` cannot be written: Is a directory" in caplog.text

"""`serve --compat`: clients of the original find its elements, and a GET request buys."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from webshop_server.app import Config, create_app


@pytest.fixture
def client(inventory):
    return create_app(Config(inventory, compat=True)).test_client()


class Reader(HTMLParser):
    """The elements that the published clients look for: by tag, id and class, with their text."""

    def __init__(self, document):
        super().__init__()
        self.found = []  # tag, attributes, text
        self._open = []
        self.feed(document)

    def handle_starttag(self, tag, attributes):
        self.found.append([tag, dict(attributes), ""])
        if tag not in ("input", "img", "link", "meta", "br"):
            self._open.append(self.found[-1])

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for element in self._open:
            element[2] += data

    def all(self, tag, **wanted):
        return [
            (attributes, text)
            for name, attributes, text in self.found
            if name == tag and all(value in attributes.get(key, "").split() for key, value in wanted.items())
        ]


def read(client, path, method="GET", **options):
    answer = client.open(path, method=method, follow_redirects=True, **options)
    assert answer.status_code == 200
    return Reader(answer.text)


def options_text(options):
    """The options as clients in Python write them into a path: as the text of a dictionary."""
    return quote(str(options))


def test_a_client_buys_by_get_requests_alone(client, inventory):
    start = read(client, "/fixed_3")
    goal = inventory.goals("synthetic")[3]
    (box,) = start.all("div", id="instruction-text")
    assert box[1].strip() == f"Instruction:{goal.text}"
    assert start.all("input", id="search_input")[0][0]["name"] == "search_query"
    words = quote(goal.title)
    results = read(client, f"/search_results/fixed_3/{words}/1")
    asins = [text for _, text in results.all("a", **{"class": "product-link"})]
    assert goal.asin in asins
    item = read(client, f"/item_page/fixed_3/{goal.asin}/{words}/1/{{}}")
    buttons = [text for _, text in item.all("button", **{"class": "btn"})]
    assert buttons == ["Back to Search", "< Prev", "Description", "Features", "Reviews", "Buy Now"]
    radios = [attributes for attributes, _ in item.all("input", type="radio")]
    labels = {attributes["for"]: text for attributes, text in item.all("label")}
    assert [labels[radio["id"]] for radio in radios] == [radio["value"] for radio in radios]
    chosen = dict(goal.options)
    for name, value in goal.options:
        (radio,) = [radio for radio in radios if (radio["name"], radio["value"]) == (name, value)]
        assert client.get(radio["data-url"]).status_code == 200
    page = read(client, f"/item_page/fixed_3/{goal.asin}/{words}/1/{options_text(chosen)}")
    marked = [attributes["value"] for attributes, _ in page.all("input", type="radio") if "checked" in attributes]
    assert sorted(marked) == sorted(chosen.values())
    end = read(client, f"/done/fixed_3/{goal.asin}/{options_text(chosen)}")
    assert end.all("h3", id="reward")[0][1] == "Your score (min 0.0, max 1.0)1.0"
    assert end.all("pre") == [({}, "1.0")]


def test_a_client_of_forms_buys(client, inventory):
    """Every button stands in a form of its own, which a browser submits."""
    page = read(client, "/shopper", "POST", data={"search_query": "shirt"})
    link = page.all("a", **{"class": "product-link"})[0][0]["href"]
    page = read(client, link)
    action = [attributes["action"] for attributes, _ in page.all("form", method="post")][-1]
    assert action.startswith("/done/shopper/")
    assert read(client, action, "POST").all("h3", id="reward")


def test_a_session_that_has_bought_starts_anew_with_its_goal(client, inventory):
    text = read(client, "/shopper").all("div", id="instruction-text")[0][1]
    assert read(client, "/shopper").all("div", id="instruction-text")[0][1] == text
    asin = inventory.catalogue.at(0).asin
    read(client, f"/done/shopper/{asin}/{{}}")
    assert read(client, "/search_results/shopper/shirt/1").all("h3", id="reward")
    assert read(client, "/shopper").all("div", id="instruction-text")[0][1] == text
    assert read(client, "/search_results/shopper/shirt/1").all("a", **{"class": "product-link"})


def test_the_first_page_is_a_session_of_its_own(client):
    answer = client.get("/")
    assert (answer.status_code, answer.location) == (303, "/abc")


def test_other_paths(client, inventory):
    assert client.get(f"/image/{inventory.catalogue.at(0).asin}.svg").mimetype == "image/svg+xml"
    assert client.get("/search_results/unknown/shirt/1").status_code == 404
    assert client.get("/not a name!").status_code == 404
    assert client.get("/fixed_999999999").status_code == 404
    assert client.get("/done").status_code == 404
    policy = client.get("/abc").headers["Content-Security-Policy"]
    assert policy.startswith("script-src 'self'; default-src 'none'")
    assert client.post("/abc", headers={"Origin": "http://elsewhere"}).status_code == 403


def test_the_mode_scores_with_the_originals_nouns(inventory):
    from webshop_server.compat.goal import count_nouns
    from webshop_server.reward import extract_nouns

    assert create_app(Config(inventory, compat=True)).extensions["webshop"].shop.nouns is count_nouns
    assert create_app(Config(inventory)).extensions["webshop"].shop.nouns is extract_nouns

"""Import of the original's files: streamed, resumable, robust against invalid records."""

from __future__ import annotations

import json
import re
from contextlib import closing

import pytest

from webshop_server import importer, index, jsonstream
from webshop_server.catalogue import Catalogue, get_partial_path
from webshop_server.errors import ImportProblem
from webshop_server.goals import GoalSet
from webshop_server.importer import import_products, parse_prices, parse_product
from webshop_server.jsonstream import stream_entries


def record(i, **changes):
    base = {
        "asin": f"B{i:05}",
        "name": f"Lamp {i} “x”",
        "full_description": "A lamp",
        "small_description": ["one ", "two"],
        "pricing": "$5.0 - $3.0",
        "product_category": "Home › Lamps",
        "customization_options": {"Color": [{"value": " Red/Blue ", "image": None}, {"value": "Green"}], "Size": None},
        "category": "garden",
        "query": " Lamps ",
        "average_rating": "",
        "images": [],
    }
    return {**base, **changes}


@pytest.fixture
def write(tmp_path):
    def make(name, data):
        path = tmp_path / name
        path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8", errors="surrogateescape")
        return path

    return make


def test_a_record(write, tmp_path):
    products = write("p.json", [record(1)])
    attributes = write(
        "a.json", {"B00001": {"attributes": ["bright"], "instruction": "Find me", "instruction_attributes": ["bright"]}}
    )
    human = write(
        "h.json",
        {"B00001": [{"instruction": "i want.", "instruction_attributes": ["bright"], "instruction_options": ["Red"]}]},
    )
    reviews = write(
        "r.json",
        [{"asin": "B00001", "average_rating": "4.2", "reviews": [{"title": "T", "stars": "5.0 out", "review": "R"}]}],
    )
    report = import_products(tmp_path / "shop.sqlite", products, attributes, human, reviews)
    assert (report.products, report.skipped, report.problems) == (1, 0, ())
    product = Catalogue(report.path).at(0)
    assert product.prices == (3.0, 5.0)
    assert product.query == "lamps"
    assert product.options == (("color", ("red | blue", "green")),)
    assert product.bullets == ("one", "two")
    assert product.rating == "4.2"
    assert product.reviews == (("T", 5.0, "R"),)
    assert product.synthetic.attributes == ("bright",)
    assert product.human[0].options == ("red",)
    assert sorted(p.name for p in tmp_path.glob("shop*")) == ["shop.sqlite", "shop.sqlite.index"]


BAD = [
    (3, "a record should be an object"),
    ({}, "`asin` should have 1 to 10 characters. Received ''"),
    (record(1, asin="nan"), "`asin` should have 1 to 10 characters. Received 'nan'"),
    (record(1, asin="B" * 11), "`asin` should have 1 to 10 characters"),
    (record(1, asin="B0/1"), "`asin` should be usable in a URL, without slashes. Received 'B0/1'"),
    (record(1, asin="B0\\1"), "`asin` should be usable in a URL"),
    (record(1, asin=".."), "`asin` should be usable in a URL"),
    (record(1, name=None), "`name` of B00001 should be a text. Received 'None'"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD, ids=lambda value: str(value)[:20])
def test_invalid_records_are_reported_skipped_and_counted(write, tmp_path, bad, reason):
    report = import_products(tmp_path / "shop.sqlite", write("p.json", [record(0), bad, record(2)]))
    assert (report.products, report.skipped) == (2, 1)
    assert re.match(r"p\.json: record 1, byte \d+: ", report.problems[0])
    assert reason in report.problems[0]


def test_duplicates_are_counted(write, tmp_path):
    report = import_products(tmp_path / "shop.sqlite", write("p.json", [record(0), record(0), record(1)]))
    assert (report.products, report.skipped) == (2, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"pricing": None},
        {"pricing": "$$ - $"},
        {"pricing": {"a": 1}},
        {"customization_options": None},
        {"customization_options": []},
        {"customization_options": {"Color": ["red", None, 3, {"value": None}, {"value": ""}]}},
        {"small_description": None},
        {"small_description": "one line"},
        {"small_description": [None, {"a": 1}]},
        {"query": None, "category": None, "product_category": None, "full_description": None},
        {"name": ""},
        {"name": "a\x00b\ud800"},
        {"average_rating": 4.5},
    ],
    ids=str,
)
def test_unusual_values_are_accepted(write, tmp_path, changes):
    from webshop_server.inventory import Inventory
    from webshop_server.shop import Shop

    side = write(
        "a.json", {"B00000": {"attributes": None, "instruction": "Find me a lamp", "instruction_attributes": ["x"]}}
    )
    path = import_products(tmp_path / "s.sqlite", write("p.json", [record(0, **changes)]), side).path
    session = Shop(Inventory.open(path)).start(0)
    session.act("search[lamp red lines]")
    labels = [label for label in session.page.clickables if label.startswith("b0")]
    if labels:
        session.act(f"click[{labels[0]}]")
        for name in ("description", "features", "reviews"):
            assert session.act(f"click[{name}]").error is None
            session.act("click[< prev]")
        assert session.act("click[buy now]").is_done
    else:
        assert changes.get("name") == ""


def test_prices():
    assert parse_prices("$19.99 - $27.99") == (19.99, 27.99)
    assert parse_prices("$1,299.00") == (1299.0,)
    assert parse_prices("$1.2.3") == ()
    assert parse_prices("$" + "9" * 400) == ()
    assert parse_product({"asin": "B1", "name": "x", "pricing": ""}).prices == ()


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
def test_streams_do_not_depend_on_chunks(write, monkeypatch, chunk):
    monkeypatch.setattr(jsonstream, "CHUNK", chunk)
    values = [record(1), 12, -3.5e10, 'te"xt ]}', None, True, [], {}, [[1], {"a": "é€😀"}]]
    listed = [
        entry.value for entry in stream_entries(write("l.json", json.dumps(values, indent=1, ensure_ascii=False)))
    ]
    assert listed == values
    keyed = {str(i) + 'é"': value for i, value in enumerate(values)}
    path = write("o.json", "\ufeff" + json.dumps(keyed, ensure_ascii=False))
    assert {entry.key: entry.value for entry in stream_entries(path)} == keyed
    assert list(stream_entries(write("e.json", " [ ] "))) == []
    assert list(stream_entries(write("f.json", "{}"))) == []


def test_damaged_entries_are_skipped(write):
    text = '[{"a": 1}, {"b": tru}, {"c": [1, {"d": "}]"}], oops}, {"e": 5}, nonsense, {"f": 6}]'
    entries = list(stream_entries(write("l.json", text)))
    assert [entry.value for entry in entries if not entry.problem][:2] == [{"a": 1}, {"e": 5}]
    assert {"f": 6} in [entry.value for entry in entries]
    bad = [entry for entry in entries if entry.problem]
    assert text.encode()[bad[0].start :].startswith(b'{"b"')
    assert [entry.number for entry in entries] == list(range(len(entries)))


def test_a_truncated_file(write):
    text = json.dumps([record(i) for i in range(3)])
    entries = list(stream_entries(write("l.json", text[:-100])))
    assert [bool(entry.problem) for entry in entries] == [False, False, True, True]
    assert entries[-1].problem == "the file ends too early"


def test_an_entry_without_end_stays_bounded(write, monkeypatch):
    monkeypatch.setattr(jsonstream, "MAX_ENTRY", 5000)
    monkeypatch.setattr(jsonstream, "CHUNK", 1000)
    path = write("l.json", '[{"a": "' + "x" * 100_000 + '"}, {"b": 1}]')
    assert sum(bool(entry.problem) for entry in stream_entries(path)) >= 1


@pytest.mark.parametrize(("text", "sign"), [("", "''"), ("3", "'3'"), ("<html>", "'<'")])
def test_files_that_are_something_else(write, tmp_path, text, sign):
    reason = f"should hold a JSON list or object. Its first character is {sign}"
    with pytest.raises(ImportProblem, match=re.escape(reason)):
        import_products(tmp_path / "s.sqlite", write("p.json", text))
    assert not (tmp_path / "s.sqlite").exists()


def test_files_that_are_missing_or_empty(write, tmp_path):
    with pytest.raises(ImportProblem, match=r"no\.json` cannot be read: No such file"):
        import_products(tmp_path / "s.sqlite", tmp_path / "no.json")
    with pytest.raises(ImportProblem, match="should hold at least one product"):
        import_products(tmp_path / "s.sqlite", write("p.json", "[]"))


class Stop(Exception):
    """What stands for a power cut."""


@pytest.mark.parametrize("stop_at", [1, 10, 33, 57])
def test_an_interrupted_import_is_resumed(write, tmp_path, monkeypatch, stop_at):
    monkeypatch.setattr(importer, "_BATCH", 10)
    rows = [record(i) if i % 7 else {"asin": "nan"} for i in range(60)] + [record(1)]
    products = write("p.json", json.dumps(rows, ensure_ascii=False))
    whole = import_products(tmp_path / "whole.sqlite", products)
    calls = []
    real = importer.parse_product

    def interrupted(*args):
        calls.append(args)
        if len(calls) == stop_at:
            raise Stop
        return real(*args)

    monkeypatch.setattr(importer, "parse_product", interrupted)
    with pytest.raises(Stop):
        import_products(tmp_path / "s.sqlite", products)
    before = len(calls)
    assert get_partial_path(tmp_path / "s.sqlite").exists()
    report = import_products(tmp_path / "s.sqlite", products)
    assert (report.products, report.skipped) == (whole.products, whole.skipped)
    assert report.problems == whole.problems
    assert len(calls) - before <= 61 - (stop_at - 1) // 10 * 10  # what was done is not done again
    assert list(Catalogue(report.path)) == list(Catalogue(whole.path))


def test_an_import_that_was_interrupted_while_it_built_the_index(write, tmp_path, monkeypatch):
    files = write("p.json", [record(i) for i in range(30)]), write("a.json", {"B00003": {"attributes": ["x"]}})
    whole = import_products(tmp_path / "whole.sqlite", *files)
    with monkeypatch.context() as patch:
        patch.setattr(index._Builder, "finish", lambda *_: (_ for _ in ()).throw(Stop()))
        with pytest.raises(Stop):
            import_products(tmp_path / "s.sqlite", *files)
    assert not (tmp_path / "s.sqlite").exists()
    monkeypatch.setattr(importer, "parse_product", lambda *_: pytest.fail("a record was read again"))
    report = import_products(tmp_path / "s.sqlite", *files)
    assert list(Catalogue(report.path)) == list(Catalogue(whole.path))
    left = sorted(path.name for path in tmp_path.glob("s.*"))
    assert left == ["s.sqlite", "s.sqlite.index"]


def test_leftovers_of_other_files_are_refused(write, tmp_path, monkeypatch):
    monkeypatch.setattr(importer, "parse_product", lambda *_: (_ for _ in ()).throw(Stop()))
    with pytest.raises(Stop):
        import_products(tmp_path / "s.sqlite", write("p.json", [record(1)]))
    monkeypatch.undo()
    other = write("q.json", [record(2)])
    with pytest.raises(ImportProblem, match=r"is left from an import of other files .*; start again with --fresh"):
        import_products(tmp_path / "s.sqlite", other)
    assert import_products(tmp_path / "s.sqlite", other, resume=False).products == 1


def test_the_originals_sample(real_inventory):
    assert len(real_inventory) == 1000
    assert len(GoalSet(real_inventory.index, "human")) == 13
    assert len(GoalSet(real_inventory.index, "synthetic")) == 6910


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["synthetic", "human"])
def test_goal_listings_of_the_original_score_one(real_inventory, kind):
    """With the original, 6,452 of the 6,910 do."""
    from webshop_server.settings import Settings
    from webshop_server.shop import Shop

    shop = Shop(real_inventory, goal_kind=kind)
    for goal in shop.goals:
        product = real_inventory.catalogue.product(goal.asin)
        chosen = goal.options
        if kind == "human":  # such goals name values alone; choose one of each group that serves
            wanted = {value for _, value in goal.options}
            chosen = tuple((o.name, next((v for v in o.values if v in wanted), o.values[0])) for o in product.options)
        assert shop.score(goal, product, chosen, Settings()).reward == 1.0, goal.text


def test_side_data_is_looked_up_by_asin(tmp_path):
    """A scan for every record made an import of the full data take days."""
    with closing(importer._open_scratch(tmp_path / "side", "x")) as side:
        (plan,) = side.execute("EXPLAIN QUERY PLAN SELECT kind, data FROM side WHERE asin = ?", ("B1",)).fetchall()
    assert plan[-1].startswith("SEARCH side USING PRIMARY KEY")


def test_many_small_entries_do_not_copy_the_window(write, monkeypatch):
    """The work is linear in the file: the window is cut once a chunk, not once an entry."""
    cuts = []
    real = jsonstream._Reader.more
    monkeypatch.setattr(jsonstream._Reader, "more", lambda self: cuts.append(len(self.text) - self.at) or real(self))
    monkeypatch.setattr(jsonstream, "CHUNK", 10_000)
    path = write("l.json", list(range(50_000)))
    assert [entry.value for entry in stream_entries(path)] == list(range(50_000))
    assert max(cuts) < 25_000  # what is behind the reader does not pile up
    assert len(cuts) < 3 * path.stat().st_size / 10_000

"""Import of the original's files: streamed, resumable, robust against invalid records."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from webshop_server import importer, index_builder, json_stream
from webshop_server.catalogue import Catalogue, get_partial_path
from webshop_server.errors import CatalogueError, ImportProblem
from webshop_server.goals import GoalSet
from webshop_server.importer import import_products
from webshop_server.json_stream import stream_entries


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
    ({}, "`asin` should have 1 to 10 characters. Received None"),
    (record(1, asin="nan"), "`asin` should have 1 to 10 characters. Received 'nan'"),
    (record(1, asin="B" * 11), "`asin` should have 1 to 10 characters"),
    (record(1, asin="B0/1"), "`asin` should be usable in a URL, without slashes. Received 'B0/1'"),
    (record(1, asin="B0\\1"), "`asin` should be usable in a URL"),
    (record(1, asin=".."), "`asin` should be usable in a URL"),
    (record(1, asin=float("nan")), "`asin` should have 1 to 10 characters. Received nan"),
    (record(1, asin=True), "`asin` should have 1 to 10 characters. Received True"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD, ids=lambda value: str(value)[:20])
def test_invalid_records_are_reported_skipped_and_counted(write, tmp_path, bad, reason):
    report = import_products(tmp_path / "shop.sqlite", write("p.json", [record(0), bad, record(2)]))
    assert (report.products, report.skipped) == (2, 1)
    assert re.match(r"p\.json: record 1, byte \d+: ", report.problems[0])
    assert reason in report.problems[0]


def test_duplicates_are_counted_and_named(write, tmp_path):
    rows = [record(0), record(1), record(0), record(1, asin=" B00001")]
    report = import_products(tmp_path / "shop.sqlite", write("p.json", rows))
    assert (report.products, report.skipped) == (2, 2)
    assert "p.json: record 2, byte" in report.problems[0]
    assert [text.partition(": `asin` ")[2] for text in report.problems] == [
        f"should occur once. B0000{number} is there already" for number in (0, 1)
    ]


def test_values_that_are_left_out_are_counted_and_named(write, tmp_path):
    nan = float("nan")
    rows = [
        record(0, full_description=nan, pricing="12 EUR"),
        record(1, pricing=True, customization_options={"Color": [{"value": nan}, {"value": "red"}]}),
        {"asin": "nan"},
    ]
    attributes = [
        {"asin": "B00000", "attributes": ["bright", nan], "instruction": nan, "instruction_attributes": ["bright"]},
        {"attributes": ["x"]},
    ]
    files = write("p.json", rows), write("a.json", attributes), write("h.json", '{"B00001": [}, "B00000": []}')
    report = import_products(tmp_path / "shop.sqlite", *files)
    expected = {"pricing": 2, "full_description": 1, "customization_options": 1, "attributes": 2, "instruction": 1}
    assert report.left_out == {**expected, "human": 1}
    assert (report.products, report.skipped, len(report.problems)) == (2, 1, 9)
    assert str(report) == (
        f"{tmp_path / 'shop.sqlite'}: 2 products, 1 records skipped, 8 values left out (attributes 2, "
        "customization_options 1, full_description 1, human 1, instruction 1, pricing 2)"
    )
    assert "`pricing` should be a price in dollars. Received '12 EUR'" in "".join(report.problems)
    shown = "".join(product.to_json() for product in Catalogue(report.path)).lower()
    assert "nan" not in shown
    assert "true" not in shown


def test_asins_of_all_files_are_read_alike(write, tmp_path):
    """Padded, and as numbers, in any of the files."""
    products = [record(0, asin=" B01 "), record(1, asin=1599793), record(2, asin="77"), record(3, asin="88")]
    asked = {"attributes": ["x"], "instruction": "find", "instruction_attributes": ["x"]}
    attributes = write("a.json", {"B01": asked, "1599793 ": asked, "77": asked, "88": asked})
    human = write("h.json", [{"asin": 77}, {"asin": 88.0}])
    path = import_products(tmp_path / "s.sqlite", write("p.json", products), attributes, human).path
    assert [product.asin for product in Catalogue(path)] == ["B01", "1599793", "77", "88"]
    assert all(product.synthetic for product in Catalogue(path))


def test_a_limit_counts_records(write, tmp_path):
    rows = [record(0), record(0), record(1), record(2)]
    report = import_products(tmp_path / "s.sqlite", write("p.json", rows), limit=3)
    assert (report.products, report.skipped) == (2, 1)


@pytest.mark.parametrize(("full", "error"), [(".partial", CatalogueError), (".scratch", ImportProblem)])
def test_a_full_disk_is_one_of_the_errors(write, tmp_path, monkeypatch, full, error):
    """SQLite's own limit of pages, which reports the same error as a full disk."""
    real = sqlite3.connect

    def connect(path, **options):
        database = real(path, **options)
        if Path(path).suffix == full:
            database.execute("PRAGMA max_page_count = 8")
        return database

    monkeypatch.setattr(sqlite3, "connect", connect)
    rows = [record(i, full_description="word " * 500) for i in range(60)]
    sides = write("a.json", {f"B{i:05}": {"attributes": ["x" * 500]} for i in range(200)})
    products = write("p.json", rows)
    with pytest.raises(error, match=r"s\.sqlite.* cannot be (written|used): database or disk is full"):
        import_products(tmp_path / "s.sqlite", products, sides)
    assert not (tmp_path / "s.sqlite").exists()
    monkeypatch.undo()
    assert import_products(tmp_path / "s.sqlite", products, sides).products == 60


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
        {"name": None},
        {"customization_options": {"Color": [{"value": ""}, {"value": "red"}], "": [{"value": "x"}]}},
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
        assert not changes["name"]


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
def test_streams_do_not_depend_on_chunks(write, monkeypatch, chunk):
    monkeypatch.setattr(json_stream, "CHUNK", chunk)
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


def test_json_lines_are_called_that(write, tmp_path):
    path = write("p.jsonl", "\n".join(json.dumps(record(i)) for i in range(3)))
    with pytest.raises(ImportProblem, match="JSON lines should be the elements of one list, at byte"):
        import_products(tmp_path / "shop.sqlite", path)


def test_a_record_of_many_megabytes_is_one_of_the_records(write, tmp_path, monkeypatch):
    parts = []
    real = json_stream._Reader.more
    monkeypatch.setattr(json_stream._Reader, "more", lambda self, size=0: parts.append(size) or real(self, size))
    rows = [record(0), record(1, small_description=["x" * 1000] * 20_000), record(2)]
    report = import_products(tmp_path / "s.sqlite", write("p.json", rows))
    assert (report.products, report.skipped) == (3, 0)
    assert report.left_out == {"small_description": 1}  # of which a thousand are kept
    assert len(parts) < 20  # not a part of a megabyte each, after all of which the record would be read again


def test_a_damaged_entry_does_not_read_the_rest(write, monkeypatch):
    monkeypatch.setattr(json_stream, "CHUNK", 1000)
    path = write("l.json", '[{"a": 1}, {"a": tru}, ' + ", ".join('{"a": 2}' for _ in range(10_000)) + "]")
    entries = stream_entries(path)
    seen = [next(entries), next(entries)]
    assert [bool(entry.problem) for entry in seen] == [False, True]
    assert seen[1].end < 30
    assert sum(not entry.problem for entry in entries) == 10_000


def test_an_entry_without_end_stays_bounded(write, monkeypatch):
    monkeypatch.setattr(json_stream, "MAX_ENTRY", 5000)
    monkeypatch.setattr(json_stream, "CHUNK", 1000)
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
        patch.setattr(index_builder._Builder, "finish", lambda *_: (_ for _ in ()).throw(Stop()))
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
    real = json_stream._Reader.more
    monkeypatch.setattr(json_stream._Reader, "more", lambda self: cuts.append(len(self.text) - self.at) or real(self))
    monkeypatch.setattr(json_stream, "CHUNK", 10_000)
    path = write("l.json", list(range(50_000)))
    assert [entry.value for entry in stream_entries(path)] == list(range(50_000))
    assert max(cuts) < 25_000  # what is behind the reader does not pile up
    assert len(cuts) < 3 * path.stat().st_size / 10_000

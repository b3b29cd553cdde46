"""Search: the formula, the terms, the index on disk."""

from __future__ import annotations

import json
import math
import shutil
import threading

import numpy as np
import pytest

from webshop_server.catalogue import Catalogue
from webshop_server.errors import CatalogueError
from webshop_server.product import Option, Product
from webshop_server.search import MAX_RESULTS, SearchIndex, get_index_path, join_fields, round_lengths, tokenize

DOCUMENTS = (
    "red lamp",
    "red red lamp for the table",
    "a table of oak wood with four legs",
    "lamps",
    "nothing in common with others",
    "red lamp",
)


@pytest.fixture
def index():
    return SearchIndex.build(Product(f"B{i}", text) for i, text in enumerate(DOCUMENTS))


def bm25(query, k1=0.9, b=0.4):
    """Lucene's BM25 written out, for comparison."""
    documents = [tokenize(join_fields(Product("x", text))) for text in DOCUMENTS]
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for terms in documents:
        score = 0.0
        for term in tokenize(query):
            n = sum(term in other for other in documents)
            f = terms.count(term)
            idf = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
            score += idf * f / (f + k1 * (1 - b + b * len(terms) / mean))
        scores.append(score)
    return scores


@pytest.mark.parametrize("query", ["red lamp", "table", "lamps lamps wood", "the red oak legs", "others"])
def test_the_order_is_that_of_bm25(index, query):
    scores = bm25(query)
    expected = sorted((i for i in range(len(scores)) if scores[i] > 0), key=lambda i: (-round(scores[i], 5), i))
    assert index.search(query) == expected


def test_equal_scores_keep_the_catalogues_order(index):
    found = index.search("red lamp")
    assert found.index(0) < found.index(5)
    many = SearchIndex.build(Product(f"B{i}", "same words") for i in range(200))
    assert many.search("words") == list(range(MAX_RESULTS))


@pytest.mark.parametrize("query", ["", "the", "zzz", "!!!", "' OR 1=1", "\x00", "\ud800", "日本語", "NEAR(*)"])
def test_queries_that_find_nothing(index, query):
    assert index.search(query) == []


def test_a_very_long_query(index):
    assert index.search("lamp " * 100_000)[0] in (0, 1, 3)


# What Lucene 9's EnglishAnalyzer makes of these.
TERMS = {
    "The Men's Running-Shoes, size 10.5": "men run shoe size 10.5",
    "don’t rock'n'roll U.S.A.": "don’t rock'n'rol u.s.a",
    "use.5 2.please 1,000 color:a 5:30": "us 5 2 pleas 1,000 color:a 5 30",
    "technology biology assembly incredibly nobly": "technolog biologi assembl incred nobli",
    "technologies assemblies us xs s os": "technolog assembl us xs s os",
    "gift ❤️ for ★ you ™": "gift ❤️ ★ you ™",
    "琥珀 abc琥珀": "琥 珀 abc 琥 珀",
    "running_shoes and a with of": "running_sho",
    "generalizations ponies caresses relational": "gener poni caress relat",
}


@pytest.mark.parametrize("text", TERMS)
def test_terms_follow_lucenes_rules(text):
    assert tokenize(text) == TERMS[text].split()


def test_lengths_are_rounded_as_lucene_rounds_them():
    lengths = np.array([0, 1, 23, 24, 39, 40, 41, 42, 43, 56, 57, 100, 1000, 100_000])
    expected = [0, 1, 23, 24, 39, 40, 40, 42, 42, 56, 56, 96, 984, 98_328]
    assert round_lengths(lengths).tolist() == expected


def test_indexed_fields():
    product = Product(
        "B1", "title", "description", ("first", "second"), query="hidden", options=(Option("color", ("red",)),)
    )
    assert tokenize(join_fields(product)) == ["titl", "descript", "first", "color", "red"]


def test_an_empty_catalogue():
    assert SearchIndex.build([]).search("x") == []
    assert SearchIndex.build([Product("B1", "")]).search("x") == []


def test_the_index_on_disk_gives_equal_results(catalogue_path, tmp_path):
    path = tmp_path / "a.sqlite"
    shutil.copy(catalogue_path, path)
    catalogue = Catalogue(path)
    built = SearchIndex.build(catalogue)
    made, loaded = SearchIndex.open(catalogue), SearchIndex.open(catalogue)
    assert isinstance(loaded._weights, np.memmap)
    for query in ("cotton shirt", "lamp", "chocolate bar with nuts", "red"):
        assert built.search(query) == made.search(query) == loaded.search(query)
    assert [p.name for p in tmp_path.iterdir() if p.name != "a.sqlite"] == ["a.sqlite.index"]


def test_an_index_of_another_catalogue_is_made_again(catalogue_path, tmp_path):
    path = tmp_path / "a.sqlite"
    shutil.copy(catalogue_path, path)
    catalogue = Catalogue(path)
    expected = SearchIndex.open(catalogue).search("shirt")
    mark = get_index_path(path) / "mark.json"
    for text in (json.dumps({"version": 1, "fingerprint": "other", "size": 3}), "{", "[]"):
        mark.write_text(text)
        assert SearchIndex.open(catalogue).search("shirt") == expected


@pytest.mark.parametrize("name", ["weights.npy", "vocabulary.json", "starts.npy", "listings.npy"])
def test_a_damaged_index_is_reported(catalogue_path, tmp_path, name):
    path = tmp_path / "a.sqlite"
    shutil.copy(catalogue_path, path)
    SearchIndex.open(Catalogue(path))
    part = get_index_path(path) / name
    part.write_bytes(part.read_bytes()[:20])
    with pytest.raises(CatalogueError, match=r"is damaged: .*; remove it, and it is made again"):
        SearchIndex.open(Catalogue(path))
    part.unlink()
    with pytest.raises(CatalogueError, match="is damaged"):
        SearchIndex.open(Catalogue(path))


def test_concurrent_processes_build_the_index(catalogue_path, tmp_path):
    path = tmp_path / "a.sqlite"
    shutil.copy(catalogue_path, path)
    found, errors = [], []

    def work():
        try:
            found.append(SearchIndex.open(Catalogue(path)).search("shirt"))
        except Exception as error:  # noqa: BLE001 - collected and asserted on below
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert len(found) == 6
    assert all(answer == found[0] for answer in found)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.sqlite", "a.sqlite.index"]

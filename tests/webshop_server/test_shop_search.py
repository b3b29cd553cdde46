"""Search: the formula, the terms, ties, skipping."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webshop_server.catalogue import CatalogueWriter
from webshop_server.index import open_index
from webshop_server.product import Option, Product
from webshop_server.search import MAX_RESULTS, join_fields, round_lengths, tokenize

DOCUMENTS = (
    "red lamp",
    "red red lamp for the table",
    "a table of oak wood with four legs",
    "lamps",
    "nothing in common with others",
    "red lamp",
)


def build(folder, products):
    with CatalogueWriter(folder / "a.sqlite") as writer:
        writer.add(products)
        return open_index(writer.finish("x")).text


@pytest.fixture
def index(tmp_path):
    return build(tmp_path, [Product(f"B{i}", text, group="all", offer=i) for i, text in enumerate(DOCUMENTS)])


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


def test_equal_offers_keep_their_order(index):
    found = index.search("red lamp")
    assert found.index(0) < found.index(5)


def test_ties_do_not_depend_on_the_place_in_the_catalogue(tmp_path):
    products = [Product(f"B{i}", "same words") for i in range(200)]
    folders = [tmp_path / name for name in ("forward", "backward")]
    for folder in folders:
        folder.mkdir()
    forward = [f"B{number}" for number in build(folders[0], products).search("words")]
    backward = [f"B{199 - number}" for number in build(folders[1], products[::-1]).search("words")]
    assert forward == backward
    assert len(forward) == MAX_RESULTS
    assert sum(int(name[1:]) for name in forward) / MAX_RESULTS == pytest.approx(100, abs=20)


WORDS = st.lists(st.sampled_from(["red", "blue", "lamp", "table", "oak", "wool", "tea", "cup"]), min_size=1, max_size=9)


@settings(deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=60), st.lists(WORDS, min_size=1, max_size=4), st.integers(1, 5))
def test_skipping_changes_no_result(texts, queries, limit):
    products = [Product(f"B{i}", " ".join(words)) for i, words in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        index = build(Path(folder), products)
        for query in queries:
            index.skips = False
            expected = index.search(" ".join(query), limit)
            index.skips = True
            assert index.search(" ".join(query), limit) == expected
        assert not index._take_totals().any()  # left as it was for the next search


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


def test_a_catalogue_without_words(tmp_path):
    assert build(tmp_path, [Product("B1", "")]).search("x") == []

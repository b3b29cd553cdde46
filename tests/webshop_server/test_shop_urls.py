"""URLs: any words and options survive the round trip."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webshop_server.errors import ArgumentError
from webshop_server.urls import (
    PageKind,
    PageUrl,
    build_path,
    normalize_query,
    parse_keywords,
    parse_options,
    parse_page_number,
    parse_path,
    parse_session_goal,
)

texts = st.text(max_size=40)


@given(texts)
@example("100%25 off")
@example("%41%2f")
@example("a+b ++")
@example("['a']")
@example("...")
def test_keywords_round_trip(text):
    keywords = normalize_query(text)
    path = build_path(PageUrl(PageKind.RESULTS, keywords, 3), "abc")
    parts = path.split("/")
    assert path.isascii()
    assert len(parts) == 5
    assert parts[3] not in ("", ".", "..")
    assert "/" not in unquote(parts[3])  # also for servers that decode before they split
    assert parse_keywords(unquote(parts[3])) == keywords


@given(st.dictionaries(texts.filter(str.strip), texts.filter(str.strip), max_size=5))
def test_options_round_trip(options):
    from webshop_server.product import clean

    pairs = tuple({clean(name).lower(): clean(value).lower() for name, value in options.items()}.items())
    path = build_path(PageUrl(PageKind.ITEM, "x", 1, "B1", pairs), "abc")
    assert len(path.split("/")) == 7
    segment = unquote(path.split("/")[6])
    assert "/" not in segment
    assert parse_options(segment) == pairs


@given(st.sampled_from([kind for kind in PageKind if kind is not PageKind.START]), texts, texts, st.integers(0, 50))
def test_paths_round_trip(kind, words, value, number):
    from webshop_server.product import clean

    options = (("color", clean(value).lower()),) if value.strip() else ()
    fields = {
        PageKind.RESULTS: {"keywords": normalize_query(words), "page_number": number},
        PageKind.ITEM: {"keywords": normalize_query(words), "page_number": number, "asin": "B1", "options": options},
        PageKind.SUB: {"keywords": "x", "page_number": 2, "asin": "B1", "options": options, "sub_page": "Reviews"},
        PageKind.AD: {"asin": "B1", "options": options, "depth": number},
    }
    place = PageUrl(kind, **fields.get(kind, {"asin": "B1", "options": options}))
    assert parse_path(build_path(place, "abc")) == place


@pytest.mark.parametrize("path", ["/a/b", "/done/a", "/item_page/a/b/c/x/{}", "/item_page/a/b/c/1/no", "/ad/a/b/{}/x"])
def test_unknown_paths_are_refused(path):
    with pytest.raises(ArgumentError, match="no page has the address"):
        parse_path(path)


def test_the_originals_forms_are_parsed():
    assert parse_keywords("['red', 'shoes']") == "red shoes"
    assert parse_keywords("red+shoes") == parse_keywords("red shoes") == "red shoes"
    assert parse_options("{'color': 'Red', 'size': 10}") == (("color", "red"), ("size", "10"))
    assert parse_options("{}") == ()


@pytest.mark.parametrize(
    "segment",
    [
        "",
        "x",
        "[]",
        "null",
        "{",
        "{'a': __import__('os')}",
        "(" * 5000,
        "{" * 5000,
        "[" * 200_000,
        "9" * 9000,
        "{1:" * 900,
    ],
    ids=lambda segment: segment[:12],
)
def test_invalid_options(segment):
    with pytest.raises(ArgumentError, match="`options` should be a mapping of at most 64 names to values"):
        parse_options(segment)


def test_too_many_options():
    with pytest.raises(ArgumentError, match="at most 64"):
        parse_options(json.dumps({str(i): "x" for i in range(65)}))


@pytest.mark.parametrize(("segment", "page"), [("1", 1), ("0", 0), ("-3", -3), ("999999999999", 999999999999)])
def test_page_numbers(segment, page):
    assert parse_page_number(segment) == page


@pytest.mark.parametrize("segment", ["", "one", "1.5", "1e3", "٣", "1 ", "1;2", "9" * 13, "0x1"])
def test_invalid_page_numbers(segment):
    with pytest.raises(ArgumentError, match=re.escape("`page` should be a whole number. Received")):
        parse_page_number(segment)


def test_goal_numbers_in_session_names():
    assert parse_session_goal("fixed_12") == 12
    assert parse_session_goal("abc_fixed_12") == 12
    assert parse_session_goal("fixed_abc_12") == 12
    assert parse_session_goal("prefixed_12") is None
    assert parse_session_goal("fixed") is None
    assert parse_session_goal("fixed_" + "9" * 50) is None

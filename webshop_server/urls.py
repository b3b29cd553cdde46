"""URLs of the shop, in the original's form.

Segments can hold any text: keywords are quoted a second time inside their segment (so that `/` survives
servers that decode it early), options are JSON without slashes.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote, unquote_plus

from webshop_server.errors import ArgumentError
from webshop_server.product import clean

MAX_QUERY = 512
"""Longer queries are cut, in characters."""

_MAX_SEGMENT = 8192
_QUOTED = (("%", "%25"), ("+", "%2B"), ("/", "%2F"), ("[", "%5B"))
_MAX_OPTIONS = 64
_FIXED = re.compile(r"(?:.*_)?fixed(?:_.*)?_(\d{1,9})")

OptionPairs = tuple[tuple[str, str], ...]


class PageKind(str, Enum):
    """The kinds of pages; the values are the names in URLs and logs."""

    START = "index"
    RESULTS = "search_results"
    ITEM = "item_page"
    SUB = "item_sub_page"
    AD = "ad"
    CONFIRM = "confirm"
    DONE = "done"


SUB_PAGES = ("Description", "Features", "Reviews", "Attributes")


class PageUrl(NamedTuple):
    """The URL of a page, without the session.

    Args:
        kind: the kind of page.
        keywords: the query.
        page_number: the page of results, from 1.
        asin: the listing.
        options: the chosen options, as `(name, value)` pairs.
        sub_page: one of `SUB_PAGES`.
        depth: number of advertisements passed, from 0.
        button: the advertisement's button that was pressed, or ""; sent as a form field, not in the path.
    """

    kind: PageKind = PageKind.START
    keywords: str = ""
    page_number: int = 1
    asin: str = ""
    options: OptionPairs = ()
    sub_page: str = ""
    depth: int = 0
    button: str = ""

    def with_option(self, name: str, value: str) -> PageUrl:
        """Return the URL with one option chosen, which replaces an earlier choice of the same name."""
        options = (*(pair for pair in self.options if pair[0] != name), (name, value))
        return PageUrl(*self[:4], options, *self[5:])  # three times faster than `_replace`, for each option of a page


def normalize_query(text: str) -> str:
    r"""Return a query on one line, in lower case, cut at `MAX_QUERY` characters.

    Example:
        >>> normalize_query("  Red\n SHOES ")
        'red shoes'
    """
    return clean(text[: 4 * MAX_QUERY]).lower()[:MAX_QUERY].strip()


def build_path(url: PageUrl, session_id: str) -> str:
    """Return the path of a URL, percent-encoded.

    Example:
        >>> build_path(PageUrl(PageKind.RESULTS, "red shoes", 2), "abc")
        '/search_results/abc/red+shoes/2'
        >>> build_path(PageUrl(PageKind.DONE, asin="B01", options=(("size", "10"),)), "abc")
        '/done/abc/B01/%7B%22size%22%3A%2210%22%7D'
    """
    session = quote(session_id, safe="")
    kind = url.kind
    if kind is PageKind.START:
        return f"/{session}"
    keywords = _keywords_segment(url.keywords)
    if kind is PageKind.RESULTS:
        return f"/search_results/{session}/{keywords}/{url.page_number}"
    asin = quote(url.asin, safe="")
    options = _options_segment(url.options)
    if kind is PageKind.ITEM:
        return f"/item_page/{session}/{asin}/{keywords}/{url.page_number}/{options}"
    if kind is PageKind.SUB:
        return f"/item_sub_page/{session}/{asin}/{keywords}/{url.page_number}/{url.sub_page}/{options}"
    if kind is PageKind.AD:
        return f"/ad/{session}/{asin}/{options}/{url.depth}"
    return f"/{kind.value}/{session}/{asin}/{options}"


@lru_cache(maxsize=4096)
def _keywords_segment(keywords: str) -> str:
    inner = keywords
    for sign, code in _QUOTED:
        inner = inner.replace(sign, code)
    inner = inner.replace(" ", "+")
    if not inner.strip("."):  # ".", ".." and an empty segment would change the structure of the path
        inner = "+" + inner
    return quote(inner, safe="+")


@lru_cache(maxsize=4096)
def _options_segment(options: OptionPairs) -> str:
    text = json.dumps(dict(options), separators=(",", ":")).replace("/", "\\u002f")
    return quote(text, safe="")


def parse_path(path: str) -> PageUrl:
    """Parse the path of a URL; the session name in it is ignored.

    Raises:
        ArgumentError: no page has this path.

    Example:
        >>> url = PageUrl(PageKind.ITEM, "50% / mug", 2, "B01", (("size", "10"),))
        >>> parse_path(build_path(url, "abc")) == url
        True
    """
    kind, *rest = (unquote(part) for part in path.strip("/").split("/"))
    return parse_segments(kind, rest[1:]) if rest else PageUrl()


def parse_segments(kind: str, segments: Sequence[str]) -> PageUrl:
    """Parse what follows the session name in the path of a URL.

    Args:
        kind: the first segment of the path.
        segments: those after the session name, decoded once.

    Raises:
        ArgumentError: no page has this path.
    """
    try:
        if kind == PageKind.RESULTS:
            keywords, number = segments
            return PageUrl(PageKind.RESULTS, parse_keywords(keywords), parse_page_number(number))
        if kind in (PageKind.ITEM, PageKind.SUB):
            asin, keywords, number, *sub_pages, options = segments
            (sub_page,) = sub_pages if kind == PageKind.SUB else [*sub_pages, ""]
            query, chosen = parse_keywords(keywords), parse_options(options)
            return PageUrl(PageKind(kind), query, parse_page_number(number), asin, chosen, sub_page)
        if kind == PageKind.AD:
            asin, options, depth = segments
            return PageUrl(PageKind.AD, asin=asin, options=parse_options(options), depth=parse_page_number(depth))
        if kind in (PageKind.CONFIRM, PageKind.DONE):
            asin, options = segments
            return PageUrl(PageKind(kind), asin=asin, options=parse_options(options))
        problem = ""
    except ValueError as error:  # too few or too many segments, or one that cannot be parsed
        problem = f": {error}"
    raise ArgumentError(f"no page has the address {'/'.join((kind, *segments))[:200]!r}{problem}")


def parse_keywords(segment: str) -> str:
    """Parse the keywords segment; the original's list form `['red', 'shoes']` is accepted too.

    Example:
        >>> parse_keywords("red+shoes"), parse_keywords("['red', 'shoes']")
        ('red shoes', 'red shoes')
    """
    if segment.startswith("["):
        value = _literal(segment)
        if isinstance(value, (list, tuple)):
            return normalize_query(" ".join(str(item) for item in value))
    return normalize_query(unquote_plus(segment[:_MAX_SEGMENT]))


def parse_options(segment: str) -> OptionPairs:
    """Parse the options segment: JSON, or the original's `{'color': 'red'}`.

    Raises:
        ArgumentError: it is neither, or has more than 64 options.

    Example:
        >>> parse_options("{'color': 'red'}") == parse_options('{"color": "red"}') == (("color", "red"),)
        True
    """
    value = _literal(segment)
    if not isinstance(value, dict) or len(value) > _MAX_OPTIONS:
        raise ArgumentError(f"`options` should be a mapping of at most {_MAX_OPTIONS} names to values")
    return tuple((clean(name).lower(), clean(choice).lower()) for name, choice in value.items())


def parse_page_number(segment: str) -> int:
    """Parse the page number segment; it may lie outside the pages of the results.

    Raises:
        ArgumentError: it is not an integer of at most 12 digits.
    """
    if not re.fullmatch(r"-?[0-9]{1,12}", segment):
        raise ArgumentError(f"`page` should be a whole number. Received {segment[:40]!r}")
    return int(segment)


def parse_session_goal(session_id: str) -> int | None:
    """Return the goal number in a session name such as `fixed_7`, as in the original, else `None`.

    Example:
        >>> parse_session_goal("fixed_7"), parse_session_goal("abc")
        (7, None)
    """
    found = _FIXED.fullmatch(session_id)
    return int(found[1]) if found else None


def _literal(text: str) -> object:
    if len(text) > _MAX_SEGMENT:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None

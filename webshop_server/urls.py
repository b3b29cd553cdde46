"""Where a shopper is, and the address of it.

* `PageKind` - the kinds of pages
* `Location` - one page of the shop, apart from the session
* `to_path`, `from_path` - the address, in the original's form, and back
* `parse_keywords`, `parse_options`, `parse_page` - parts of an address back to values
* `session_goal` - the goal number that an address such as `/fixed_7` asks for

A segment of an address can hold anything: keywords are quoted once more inside their segment (so that
`/` survives servers that decode it early), options are JSON without slashes.
"""

from __future__ import annotations

import ast
import json
import re
from enum import Enum
from typing import NamedTuple
from urllib.parse import quote, unquote, unquote_plus

from webshop_server.errors import ArgumentError
from webshop_server.product import clean

MAX_QUERY = 512
"""Characters of a query that count; the rest is cut."""

_MAX_SEGMENT = 8192
_QUOTED = (("%", "%25"), ("+", "%2B"), ("/", "%2F"), ("[", "%5B"))
_MAX_OPTIONS = 64
_FIXED = re.compile(r"(?:.*_)?fixed(?:_.*)?_(\d{1,9})")

Pairs = tuple[tuple[str, str], ...]


class PageKind(str, Enum):
    """The kinds of pages; the values are the names in addresses and logs."""

    START = "index"
    RESULTS = "search_results"
    ITEM = "item_page"
    SUB = "item_sub_page"
    AD = "ad"
    CONFIRM = "confirm"
    DONE = "done"


SUB_PAGES = ("Description", "Features", "Reviews", "Attributes")


class Location(NamedTuple):
    """One page of the shop, apart from the session.

    Args:
        kind: what kind of page.
        keywords: the query.
        page: the page of results, from 1.
        asin: the listing.
        options: what has been chosen, as `(name, value)` pairs.
        sub_page: one of `SUB_PAGES`.
        depth: how deep in advertisements, from 0.
        button: the advertisement's button that has just been pressed, or "".
    """

    kind: PageKind = PageKind.START
    keywords: str = ""
    page: int = 1
    asin: str = ""
    options: Pairs = ()
    sub_page: str = ""
    depth: int = 0
    button: str = ""

    def choosing(self, name: str, value: str) -> Location:
        """Give the same page with one more option chosen."""
        kept = tuple(pair for pair in self.options if pair[0] != name)
        return self._replace(options=(*kept, (name, value)))


def normal_query(text: str) -> str:
    r"""Give a query as the shop uses it: one line in lower case, of at most `MAX_QUERY` characters.

    Example:
        >>> normal_query("  Red\n SHOES ")
        'red shoes'
    """
    return clean(text[: 4 * MAX_QUERY]).lower()[:MAX_QUERY].strip()


def to_path(location: Location, session_id: str) -> str:
    """Give the address of a page, percent-encoded.

    Example:
        >>> to_path(Location(PageKind.RESULTS, "red shoes", 2), "abc")
        '/search_results/abc/red+shoes/2'
        >>> to_path(Location(PageKind.DONE, asin="B01", options=(("size", "10"),)), "abc")
        '/done/abc/B01/%7B%22size%22%3A%2210%22%7D'
    """
    session = quote(session_id, safe="")
    kind = location.kind
    if kind is PageKind.START:
        return f"/{session}"
    keywords = _keywords_segment(location.keywords)
    if kind is PageKind.RESULTS:
        return f"/search_results/{session}/{keywords}/{location.page}"
    asin = quote(location.asin, safe="")
    options = _options_segment(location.options)
    if kind is PageKind.ITEM:
        return f"/item_page/{session}/{asin}/{keywords}/{location.page}/{options}"
    if kind is PageKind.SUB:
        return f"/item_sub_page/{session}/{asin}/{keywords}/{location.page}/{location.sub_page}/{options}"
    if kind is PageKind.AD:
        return f"/ad/{session}/{asin}/{options}/{location.depth}"
    return f"/{kind.value}/{session}/{asin}/{options}"


def _keywords_segment(keywords: str) -> str:
    inner = keywords
    for sign, code in _QUOTED:
        inner = inner.replace(sign, code)
    inner = inner.replace(" ", "+")
    if not inner.strip("."):  # "." and ".." would be taken for steps in the path, nothing for no segment at all
        inner = "+" + inner
    return quote(inner, safe="+")


def _options_segment(options: Pairs) -> str:
    text = json.dumps(dict(options), separators=(",", ":")).replace("/", "\\u002f")
    return quote(text, safe="")


def from_path(path: str) -> Location:
    """Give the page that an address names; the session's name in it does not matter.

    Raises:
        ArgumentError: no page has this address.

    Example:
        >>> place = Location(PageKind.ITEM, "50% / mug", 2, "B01", (("size", "10"),))
        >>> from_path(to_path(place, "abc")) == place
        True
    """
    kind, *rest = (unquote(part) for part in path.strip("/").split("/"))
    if not rest:
        return Location()
    try:
        if kind == PageKind.RESULTS:
            _, keywords, page = rest
            return Location(PageKind.RESULTS, parse_keywords(keywords), parse_page(page))
        if kind == PageKind.ITEM:
            _, asin, keywords, page, options = rest
            return Location(PageKind.ITEM, parse_keywords(keywords), parse_page(page), asin, parse_options(options))
        if kind == PageKind.SUB:
            _, asin, keywords, page, sub_page, options = rest
            found = parse_options(options)
            return Location(PageKind.SUB, parse_keywords(keywords), parse_page(page), asin, found, sub_page)
        if kind == PageKind.AD:
            _, asin, options, depth = rest
            return Location(PageKind.AD, asin=asin, options=parse_options(options), depth=parse_page(depth))
        if kind in (PageKind.CONFIRM, PageKind.DONE):
            _, asin, options = rest
            return Location(PageKind(kind), asin=asin, options=parse_options(options))
    except ValueError as error:  # too few or too many parts, or one that cannot be read
        raise ArgumentError(f"no page has the address {path[:200]!r}: {error}") from None
    raise ArgumentError(f"no page has the address {path[:200]!r}")


def parse_keywords(segment: str) -> str:
    """Read the keywords of an address; the original's list form `['red', 'shoes']` is read too.

    Example:
        >>> parse_keywords("red+shoes"), parse_keywords("['red', 'shoes']")
        ('red shoes', 'red shoes')
    """
    if segment.startswith("["):
        value = _literal(segment)
        if isinstance(value, (list, tuple)):
            return normal_query(" ".join(str(item) for item in value))
    return normal_query(unquote_plus(segment[:_MAX_SEGMENT]))


def parse_options(segment: str) -> Pairs:
    """Read the options of an address: JSON, or the original's `{'color': 'red'}`.

    Raises:
        ArgumentError: it is neither, or too large.

    Example:
        >>> parse_options("{'color': 'red'}") == parse_options('{"color": "red"}') == (("color", "red"),)
        True
    """
    value = _literal(segment)
    if not isinstance(value, dict) or len(value) > _MAX_OPTIONS:
        raise ArgumentError(f"`options` should be a mapping of at most {_MAX_OPTIONS} names to values")
    return tuple((clean(name).lower(), clean(choice).lower()) for name, choice in value.items())


def parse_page(segment: str) -> int:
    """Read the page number of an address; the session brings it to the nearest page that there is.

    Raises:
        ArgumentError: it is no whole number.
    """
    if not re.fullmatch(r"-?[0-9]{1,12}", segment):
        raise ArgumentError(f"`page` should be a whole number. Received {segment[:40]!r}")
    return int(segment)


def session_goal(session_id: str) -> int | None:
    """Give the goal number that a session's name asks for, as `fixed_7` does in the original.

    Example:
        >>> session_goal("fixed_7"), session_goal("abc")
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

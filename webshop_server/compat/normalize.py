"""The original's `web_agent_site.engine.normalize`: colours and sizes in the names that sellers give.

* `normalize_color` - the first colour word of a name
* `normalize_color_size` - the colour word and the form of size of many names
* `COLOR_SET`, `SIZE_SET`, `SIZE_PATTERNS` - the words and forms
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from webshop_server.reward import COLORS, normalize_color

__all__ = ["COLOR_SET", "SIZE_PATTERNS", "SIZE_SET", "normalize_color", "normalize_color_size"]

COLOR_SET = list(COLORS)

_SHIRTS = ("xx-large", "3x-large", "4x-large", "5x-large", "x-large", "x-small", "medium", "large", "small")
SIZE_SET = [*_SHIRTS, "queen", "twin", "full", "king", "one size", "pack"]

_ANY = "(.*)"
_PAIRS = (("neck", "sleeve"), (r" women \| ", " men"), ("w x", "l"), ("w by ", "l"), ("w x", "h"))
_WIDTHS = ("wide", "x-wide", "narrow", "petite", "inch", "plus", "mm")
_LENGTHS = ("ft", "feet", "meter", "yards")
_FORMS = (
    *(f"{_ANY}{first}{_ANY}{second}" for first, second in _PAIRS),
    *(f"{_ANY}{unit}" for unit in _WIDTHS),
    f"women{_ANY}",
    f"{_ANY}x{_ANY}",
    *(f"{_ANY}{unit}" for unit in _LENGTHS),
    *(f"{_ANY}{sign}{_ANY}" for sign in (r"\*", r"\-")),
    *(rf"(\d+){unit}$" for unit in ('"', "f", "m", "cm", "g")),
)
SIZE_PATTERNS = [re.compile(form) for form in (*SIZE_SET, *_FORMS)]
"""The forms of a size; the first one that is found counts."""

_UNKNOWN = "not_matched"


def normalize_color_size(
    product_prices: Iterable[tuple[object, str, str]],
) -> tuple[dict[str, str], dict[str, str]]:
    r"""Map the colours and sizes of many products to words and forms.

    Args:
        product_prices: keys `(asin, color, size)`, such as those of a dictionary of prices.

    Returns:
        By colour in lower case, the first of `COLOR_SET` in it; by size, the first of `SIZE_PATTERNS`, or
        `numeric_size`; `not_matched` where nothing is found.

    Example:
        >>> normalize_color_size({("B01", "navy blue", "40cm"): 10.0})
        ({'N.A.': 'not_matched', 'navy blue': 'blue'}, {'N.A.': 'not_matched', '40cm': '(\\d+)cm$'})
    """
    keys = list(product_prices)
    colors = dict.fromkeys(color.lower() for _, color, _ in keys)
    sizes = dict.fromkeys(size.lower() for _, _, size in keys)
    found = {color: next((word for word in COLOR_SET if word in color), _UNKNOWN) for color in colors}
    return {"N.A.": _UNKNOWN, **found}, {"N.A.": _UNKNOWN, **{size: _find_form(size) for size in sizes}}


def _find_form(size: str) -> str:
    form = next((pattern.pattern for pattern in SIZE_PATTERNS if pattern.search(size)), None)
    if form is not None:
        return form
    return "numeric_size" if size.replace(".", "", 1).isdigit() else _UNKNOWN

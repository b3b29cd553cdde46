"""The original's `web_agent_site.engine.engine`: labels and sizes of pages, actions as texts, a file's listings."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from webshop_server.compat.server import SimServer
from webshop_server.errors import check_choice

SEARCH_RETURN_N = 50
PRODUCT_WINDOW = 10
TOP_K_ATTR = 10
END_BUTTON = "Buy Now"
NEXT_PAGE = "Next >"
PREV_PAGE = "< Prev"
BACK_TO_SEARCH = "Back to Search"

ACTION_TO_TEMPLATE = {
    name: f"{name.lower()}_page.html" for name in ("Description", "Features", "Reviews", "Attributes")
}
"""The labels of sub pages; the templates are the original's names, and not files here."""

_ACTION = re.compile(r"(.+)\[(.+)\]")
T = TypeVar("T")


def parse_action(action: str) -> tuple[str, str | None]:
    """Name and argument of an action; the argument is `None` if there is none.

    Example:
        >>> parse_action("click[buy now]"), parse_action("end")
        (('click', 'buy now'), ('end', None))
    """
    found = _ACTION.match(action)
    return (found[1], found[2]) if found else (action, None)


def convert_web_app_string_to_var(name: str, string: str) -> Any:
    """The value of a part of a URL.

    Args:
        name: `keywords` (a list of words) or `page` (a number).
        string: the text of the URL.

    Example:
        >>> convert_web_app_string_to_var("keywords", "['red', 'mug']"), convert_web_app_string_to_var("page", "2")
        (['red', 'mug'], 2)
    """
    if check_choice("name", name, ("keywords", "page")) == "page":
        return int(string)
    return literal_eval(string) if string.startswith("[") else [string]


def get_product_per_page(top_n_products: Sequence[T], page: int) -> Sequence[T]:
    """The results of a page.

    Args:
        top_n_products: all results.
        page: from 1.
    """
    return top_n_products[(page - 1) * PRODUCT_WINDOW : page * PRODUCT_WINDOW]


def load_products(
    filepath: str | Path | None, num_products: int | None = None, human_goals: object = True
) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]], dict[str, float], dict[str, set[str]]]:
    """Read a catalogue.

    Args:
        filepath: as `file_path` of `SimServer`.
        num_products: as in `SimServer`.
        human_goals: accepted as in the original; listings are the same with either goals.

    Returns:
        The listings, the listings by asin, the prices by asin, and the asins by attribute.
    """
    server = SimServer(file_path=filepath, num_products=num_products)
    by_asin = dict(server.product_item_dict)
    by_attribute: dict[str, set[str]] = {}
    for asin, listing in by_asin.items():
        for attribute in listing["Attributes"]:
            by_attribute.setdefault(attribute, set()).add(asin)
    return list(by_asin.values()), by_asin, server.product_prices, by_attribute

"""The pages of a shop, parsed.

* `Listing` - one entry on a page of results
* `ListingPage` - a listing's own page
* `OptionGroup` - a group of options
* `ResultsPage` - a page of results
* `read_results`, `read_item`, `read_title` - parse a page
* `find_options` - the option values that an instruction requests
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from drift_agents.envs.webshop.instruction import ParsedInstruction, stems
from drift_agents.envs.webshop.matching import ShopState

SUB_PAGES = ("description", "features", "reviews", "attributes")
"""The labels of the buttons to a listing's sub pages."""

PRICE = "Price: "
PAGE_SIZE = 10
"""Entries on a page of results."""

_PAGE = re.compile(r"Page (\d+) \(Total results: (\d+)\)")
_TOOLS = 2
"""The number of buttons at the top: back to the search, and to the previous page."""


class Listing(NamedTuple):
    """One entry on a page of results.

    Args:
        asin: its identifier in addresses.
        title: its title.
        price: its price as shown.
    """

    asin: str
    title: str
    price: str

    @property
    def action(self) -> str:
        """The action that opens its page."""
        return f"click[{self.asin.lower()}]"


class OptionGroup(NamedTuple):
    """A group of options.

    Args:
        name: as in `color`.
        values: pairs of a value and the action that chooses it.
    """

    name: str
    values: tuple[tuple[str, str], ...]


class ListingPage(NamedTuple):
    """A listing's own page.

    Args:
        title: its title.
        price: its price as shown.
        groups: its options.
        sub_pages: the actions that lead to sub pages, by name in lower case.
        buys: the other actions below the price: one of them buys; none if it is sold out.
        back: the action that leads to the results.
    """

    title: str
    price: str
    groups: tuple[OptionGroup, ...]
    sub_pages: dict[str, str]
    buys: tuple[str, ...]
    back: str


class ResultsPage(NamedTuple):
    """A page of results.

    Args:
        listings: its entries, in order.
        is_last: whether no page follows.
    """

    listings: tuple[Listing, ...]
    is_last: bool


@lru_cache(maxsize=4096)
def read_results(lines: tuple[str, ...]) -> ResultsPage:
    """Parse a page of results.

    Args:
        lines: its visible texts: name, title and price of each entry follow each other.

    Example:
        >>> page = read_results(("Page 1 (Total results: 2)", "B01", "A mug", "$4.5", "B02", "A cup", "$3.0"))
        >>> page.listings[1], page.is_last
        (Listing(asin='B02', title='A cup', price='$3.0'), True)
    """
    listings = tuple(
        Listing(asin, title, price)
        for asin, title, price in zip(lines, lines[1:], lines[2:], strict=False)
        if price.startswith("$") and " " not in asin
    )
    number, total = next((map(int, found.groups()) for line in lines if (found := _PAGE.fullmatch(line))), (1, 0))
    return ResultsPage(listings, number * PAGE_SIZE >= total)


def read_title(lines: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    """Title, price and the options of a listing's page, all three as shown; empty texts for other pages.

    Args:
        lines: its visible texts.
    """
    at = next((i for i, line in enumerate(lines) if line.startswith(PRICE)), 0)
    if not at:
        return "", "", ()
    return lines[at - 1], lines[at][len(PRICE) :], tuple(lines[_TOOLS : at - 1])


def read_item(page: ShopState, actions: Sequence[str]) -> ListingPage:
    """Parse a listing's page and its actions.

    Elements are recognised by position, not by label, since labels may drift: buttons at the top, options,
    title, price and rating, sub pages, the purchase.

    Args:
        page: the page.
        actions: the admissible actions.
    """
    admissible = set(actions)
    title, price, shown = read_title(page.lines)
    groups: list[tuple[str, list[tuple[str, str]]]] = []
    for line in shown:
        choices = [f"click[{line.lower()}]"]
        if groups:
            choices.append(f"click[{groups[-1][0]}: {line}]".lower())
        # The longer label first: it exists only where the short one is another button's.
        action = next((choice for choice in reversed(choices) if choice in admissible), None)
        if action is None:
            groups.append((line, []))
        elif groups:
            groups[-1][1].append((line, action))
    below = page.lines[_TOOLS + len(shown) + 2 :] if title else page.lines
    tail = [f"click[{line.lower()}]" for line in below]
    tail = [action for action in tail if action in admissible]
    sub_pages = {name: f"click[{name}]" for name in SUB_PAGES if f"click[{name}]" in tail}
    return ListingPage(
        title,
        price,
        tuple(OptionGroup(name, tuple(values)) for name, values in groups),
        sub_pages,
        tuple(action for action in tail if action not in sub_pages.values()),
        actions[1] if len(actions) > 1 else actions[0],
    )


def find_options(instruction: ParsedInstruction, groups: Sequence[OptionGroup]) -> dict[str, tuple[str, str]]:
    """The option values that an instruction requests.

    Args:
        instruction: the instruction.
        groups: the options.

    Returns:
        Group name -> value and action, for groups with a requested value. A value that follows the
        group's name in the instruction has precedence, then the one with most words, all of which
        are in the instruction.
    """
    known = instruction.words | instruction.choices
    joined = instruction.text.replace(" ", "")
    chosen = {}
    for group in groups:
        named = [
            pair for pair in group.values if _contains_phrase(f"{group.name}: {pair[0]}".lower(), instruction.text)
        ]
        if not named and f"{group.name}: ".lower() in instruction.text:
            continue
        fitting = named or [pair for pair in group.values if _fits(pair[0].lower(), known, joined)]
        if fitting:
            chosen[group.name] = max(fitting, key=lambda pair: (len(stems(pair[0])), len(pair[0])))
    return chosen


def _contains_phrase(words: str, text: str) -> bool:
    """Whether a text contains a phrase that ends at the end of a word."""
    at = text.find(words)
    while at >= 0:
        end = at + len(words)
        if end == len(text) or not text[end].isalnum():
            return True
        at = text.find(words, at + 1)
    return False


def _fits(value: str, known: frozenset[str], joined: str) -> bool:
    words = stems(value)
    if words and words <= known:
        return True
    return len(value) > 3 and any(map(str.isdigit, value)) and value.replace(" ", "") in joined

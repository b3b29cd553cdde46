"""Pages of the shop: how they are read, when two are the same, and how they are put in words."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from drift_agents.envs.matching import ParsedMatching
from drift_agents.envs.webshop.instructions import ParsedInstruction, parse_instruction, stems
from drift_agents.policy.ranked import PlainFacts, describe_state
from drift_agents.prompt.view import Recollection
from drift_agents.types import Transition

START, RESULTS, ITEM, SUB_PAGE = "index", "search_results", "item_page", "item_sub_page"
AD, CONFIRM, DONE = "ad", "confirm", "done"
"""The kinds of pages, as in the original's addresses (its start page has no name there)."""

INSTRUCTION = "Instruction:"
_ASIN = {ITEM: 0, SUB_PAGE: 0, AD: 0, CONFIRM: 0, DONE: 0}
_OPTIONS = {ITEM: 3, SUB_PAGE: 4, AD: 1, CONFIRM: 1, DONE: 1}
"""Where asin and options stand among the parts of an address, by kind."""


@dataclass(frozen=True)
class ShopState:
    """A page of a shop, parsed from a text state.

    Args:
        kind: the kind of page.
        parts: the parts of its address after the session, still quoted.
        instruction: the task, if the page shows it.
        lines: the other visible texts, in reading order.
        key: pages with equal keys are the same.
        own_key: the same, with the listing and the choices that led to an advertisement.
    """

    kind: str
    parts: tuple[str, ...]
    instruction: str
    lines: tuple[str, ...]
    key: Hashable
    own_key: Hashable = None

    @cached_property
    def asin(self) -> str:
        """The listing of the page, or ""."""
        return self._part(_ASIN)

    @cached_property
    def options(self) -> tuple[tuple[str, str], ...]:
        """The chosen options, as pairs of a group's name and a value."""
        try:
            chosen = json.loads(unquote(self._part(_OPTIONS)))
        except ValueError:
            return ()
        return tuple((str(name), str(value)) for name, value in chosen.items()) if isinstance(chosen, dict) else ()

    @cached_property
    def color_class(self) -> str:
        """The requested class of colours, such as `warm`, or ""."""
        return parse_instruction(self.instruction).color_class

    def _part(self, places: dict[str, int]) -> str:
        place = places.get(self.kind, len(self.parts))
        return self.parts[place] if place < len(self.parts) else ""


@lru_cache(maxsize=16384)
def read_shop_state(state: str) -> ShopState | None:
    """Parse a page; `None` if the text is no page of a shop.

    Args:
        state: the text state.

    Example:
        >>> page = read_shop_state('{"html": "Page 1", "url": "http://h/search_results/x7/red+shoes/1"}')
        >>> page.kind, page.parts, page.lines
        ('search_results', ('red+shoes', '1'), ('Page 1',))
    """
    try:
        shown = json.loads(state)
        html, url = shown["html"], shown["url"]
        segments = urlsplit(url).path.strip("/").split("/")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not isinstance(html, str) or not isinstance(url, str):
        return None
    lines = tuple(" ".join(line.split()) for line in html.split("\n") if line.strip())
    kind, parts = (segments[0], tuple(segments[2:])) if len(segments) > 1 else (START, ())
    instruction, rest = "", lines
    if INSTRUCTION in lines[:2]:
        at = lines.index(INSTRUCTION)
        instruction, rest = lines[at + 1] if at + 1 < len(lines) else "", lines[:at] + lines[at + 2 :]
    # The effect of an advertisement's buttons does not depend on listing, choices or task.
    own_key = (kind, *parts, _hash(lines))
    key = (AD, *parts[2:], _hash(rest)) if kind == AD else own_key
    return ShopState(kind, parts, instruction, rest, key, own_key)


def _hash(lines: tuple[str, ...]) -> str:
    return hashlib.blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


class WebShopMatching(ParsedMatching[ShopState]):
    """A URL without its session id, and a hash of the page's text (GLOVE, appendix B.3).

    A page shows the instruction, so the same page under another task is another state; the score of a
    purchase depends on both. Advertisements are the exception: task, listing and choices are removed from
    text and address, so that records of their buttons apply to all tasks, and an outcome there is the kind of
    the next page. Elsewhere an outcome is the next page with its text. Score and termination are compared
    always.

    Texts that are no pages of a shop are compared as they are.

    Example:
        >>> rule = WebShopMatching()
        >>> one = '{"html": "Press a button.", "url": "http://h/ad/x7/B01/{}/0"}'
        >>> other = '{"html": "Press a button.", "url": "http://h/ad/y9/B02/{}/0"}'
        >>> rule.state_key(one) == rule.state_key(other)
        True
    """

    name = "webshop"
    parse = staticmethod(read_shop_state)

    def key(self, shown: ShopState) -> Hashable:
        """The URL without its session, and a hash of the text."""
        return shown.key

    def path_key(self, state: str) -> Hashable:
        """The key with listing and choices: what a purchase scores depends on them, also after an advertisement."""
        page = self.parse(state)
        return state if page is None else page.own_key

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether page, score and termination are the same; after an advertisement, only the kind of page."""
        before, one, other = map(self.parse, (a.state, a.outcome.state, b.outcome.state))
        if before is not None and before.kind == AD and one is not None and one.kind != AD and other is not None:
            return (a.outcome.score, a.outcome.ended, one.kind) == (b.outcome.score, b.outcome.ended, other.kind)
        return super().same_outcome(a, b)

    def is_relevant(self, here: ShopState, there: ShopState) -> bool:
        """Pages of the same task are; so are purchases under another task with the same class of colours.

        On an advertisement other advertisements are. Otherwise a prompt would contain all pages ever seen.
        """
        if AD in (here.kind, there.kind):
            return here.kind == there.kind
        if here.instruction == there.instruction:
            return True
        bought = there.kind in (ITEM, CONFIRM) and bool(there.options)
        return bought and bool(here.color_class) and here.color_class == there.color_class


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


@lru_cache(maxsize=16384)
def read_title(lines: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
    """Title, price and the options of a listing's page, all three as shown; empty texts for other pages.

    Args:
        lines: its visible texts.
    """
    at = next((i for i, line in enumerate(lines) if line.startswith(PRICE)), 0)
    if not at:
        return "", "", ()
    return lines[at - 1], lines[at][len(PRICE) :], lines[_TOOLS : at - 1]


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


_TOOL_NAMES = ("Back to Search", "< Prev", "Next >")


class WebShopFacts(PlainFacts):
    """Pages by their kind, title, price and buttons.

    Example:
        >>> WebShopFacts().describe_state('{"html": "Thank you!", "url": "http://h/done/x7/B01/{}"}')
        'the page "Thank you!"'
    """

    best_score = 1.0
    cut_states = ('{"html": ', "a page")

    def describe_state(self, state: str) -> str:
        """What kind of page it is, with what distinguishes it; a text that is no page as it is."""
        page = read_shop_state(state)
        if page is None:
            return state
        title, price, _ = read_title(page.lines)
        if title:
            chosen = "".join(f", {name} {value}" for name, value in page.options)
            return f'the listing "{title}" ({price}{chosen})'
        if page.kind == START:
            return "the search page"
        if page.kind == RESULTS:
            listings = read_results(page.lines).listings
            first = f', the first of them "{listings[0].title}"' if listings else ""
            return f"page {page.parts[-1]} of the search results with {len(listings)} listings{first}"
        lines = [line for line in page.lines if line not in _TOOL_NAMES]
        if page.kind == AD:
            return f'"{lines[0]}" with the buttons {", ".join(line for line in lines[1:] if " " not in line)}'
        if page.kind == SUB_PAGE:
            return f'the page with "{"; ".join(lines)[:200]}"'
        return f'the page "{"; ".join(lines[:2])}"'

    def brief_outcome(self, item: Recollection) -> str:
        """The page; of a listing what was chosen on it, of search results their number alone."""
        page, before = read_shop_state(item.outcome.state), read_shop_state(item.state)
        if page is not None and page.kind == RESULTS:
            return f"page {page.parts[-1]} of the search results"
        if page is not None and before is not None and page.kind == before.kind == ITEM and page.options:
            return f"chosen: {', '.join(f'{name} {value}' for name, value in page.options)}"
        words = describe_state(self, item.outcome.state)
        return words.partition(" with the buttons ")[0] if page is not None and page.kind == AD else words

    def state_fields(self, state: str) -> Mapping[str, str]:
        """`page`, its lines without the instruction, and `chosen`, the chosen options."""
        page = read_shop_state(state)
        if page is None:
            return {"page": state, "chosen": "none"}
        chosen = ", ".join(f"{name}: {value}" for name, value in page.options)
        return {"page": "\n".join(page.lines), "chosen": chosen or "none"}

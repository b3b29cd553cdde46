r"""When two pages of a web shop, and what they lead to, count as the same.

* `WebShopMatching` - an address without its session, and a hash of the page's text
* `ShopState` - a page of a shop as a text state shows it
* `read_shop_state` - from the text to that

The texts are those of the shop made with `text=True`, as in the GLOVE paper (appendix B.3): `{"html":
"WebShop\nInstruction:\n...", "url": "http://127.0.0.1:3000/<session_id>"}`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from urllib.parse import unquote, urlsplit

from drift_agents.matching import Exact
from drift_agents.types import Transition

START, RESULTS, ITEM, SUB_PAGE = "index", "search_results", "item_page", "item_sub_page"
AD, CONFIRM, DONE = "ad", "confirm", "done"
"""The kinds of pages, as in the original's addresses (its start page has no name there)."""

INSTRUCTION = "Instruction:"
_ASIN = {ITEM: 0, SUB_PAGE: 0, AD: 0, CONFIRM: 0, DONE: 0}
_OPTIONS = {ITEM: 3, SUB_PAGE: 4, AD: 1, CONFIRM: 1, DONE: 1}
"""Where asin and options stand among the parts of an address, by kind."""
_CLASS = re.compile(r"\bin an? (\w+) colou?r\b", re.IGNORECASE)


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
        found = _CLASS.search(self.instruction)
        return found[1].lower() if found else ""

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


class WebShopMatching(Exact):
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

    def state_key(self, state: str) -> Hashable:
        """The URL without its session, and a hash of the text."""
        page = read_shop_state(state)
        return super().state_key(state) if page is None else page.key

    def path_key(self, state: str) -> Hashable:
        """The key with listing and choices: what a purchase scores depends on them, also after an advertisement."""
        page = read_shop_state(state)
        return super().state_key(state) if page is None else page.own_key

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether page, score and termination are the same; after an advertisement, only the kind of page."""
        if a.outcome.score != b.outcome.score or a.outcome.ended != b.outcome.ended:
            return False
        one, other = read_shop_state(a.outcome.state), read_shop_state(b.outcome.state)
        if one is None or other is None:
            return super().same_outcome(a, b)
        before = read_shop_state(a.state)
        if before is not None and before.kind == AD and one.kind != AD:
            return one.kind == other.kind
        return one.key == other.key

    def related(self, state: str, other: str) -> bool:
        """Whether records of `other` are relevant in `state`.

        Pages of the same task are; so are purchases under another task with the same class of colours, and
        on an advertisement other advertisements. Otherwise a prompt would contain all pages ever seen.

        Args:
            state: the present state.
            other: a state with records.
        """
        here, there = read_shop_state(state), read_shop_state(other)
        if here is None or there is None:
            return True
        if AD in (here.kind, there.kind):
            return here.kind == there.kind
        if here.instruction == there.instruction:
            return True
        bought = there.kind in (ITEM, CONFIRM) and bool(there.options)
        return bought and bool(here.color_class) and here.color_class == there.color_class

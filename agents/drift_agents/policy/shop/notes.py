"""What a prompt's recollections say about a shop.

* `ShopNotes` - purchases, pages of listings, listings shown and buttons of advertisements, conflicts settled
* `take_notes` - from recollections to that
* `DatedValue`, `Offer` - a number that is believed, or a listing's page, and since when
* `Article` - what several sellers offer alike
* `RecalledPurchase` - what was bought
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from drift_agents.matching.page import AD, CONFIRM, DONE, ITEM, RESULTS, SUB_PAGE, ShopState, read_shop_state
from drift_agents.policy.shop.listing import ResultsPage, read_results, read_title
from drift_agents.prompt.conflict import settle
from drift_agents.prompt.view import Recollection

Sightings = dict[Any, dict[Any, tuple[float, int]]]
"""What was seen of each thing: each answer with how much speaks for it and when it was last seen."""


class DatedValue(NamedTuple):
    """A number that is believed, and since when.

    Args:
        value: the number.
        last: when it was last seen, in the agent's interactions.
    """

    value: float
    last: int


class Offer(NamedTuple):
    """A listing's page as it is believed to be, and since when.

    Args:
        lines: its visible texts.
        last: when it was last seen so, in the agent's interactions.
    """

    lines: tuple[str, ...]
    last: int


class RecalledPurchase(NamedTuple):
    """What was bought.

    Args:
        instruction: for which task.
        asin: which listing.
        options: what was chosen, as pairs of a group's name and a value.
        price: the price as the listing's page showed it, or "" where it was bought from another page.
    """

    instruction: str
    asin: str
    options: tuple[tuple[str, str], ...]
    price: str


class Article(NamedTuple):
    """What is known of an article, whichever seller offers it.

    Args:
        options: the texts of its options: names of groups and values.
        inside: the texts of its sub pages, by name in lower case.
    """

    options: tuple[str, ...] | None
    inside: Mapping[str, tuple[str, ...]]


UNKNOWN = Article(None, {})


class ShopNotes(NamedTuple):
    """What recollections say, conflicts settled.

    Args:
        purchases: what each purchase pays, for all tasks that are recalled.
        offers: the listings' pages, by asin; of this task alone, like what follows.
        articles: what is known of articles, by title.
        visited: the listings whose pages have been seen.
        results: pages of results, by what follows the session in their address.
        buttons: for the present advertisement: how far each action leads to the order, 0 to 1.
        other_buttons: the same for other advertisements.
        leads: where actions of the present page are believed to lead: the kind of page.
    """

    purchases: Mapping[RecalledPurchase, DatedValue]
    offers: Mapping[str, Offer]
    articles: Mapping[str, Article]
    visited: frozenset[str]
    results: Mapping[tuple[str, ...], ResultsPage]
    buttons: Mapping[str, DatedValue]
    other_buttons: Mapping[str, DatedValue]
    leads: Mapping[str, str]


def take_notes(page: ShopState, recalled: Iterable[Recollection], conflict: str) -> ShopNotes:
    """Take notes of what is recalled.

    Args:
        page: the present page.
        recalled: the recollections of a prompt, in order.
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.conflict`).
    """
    purchases: Sightings = {}
    offers: Sightings = {}
    here: Sightings = {}
    there: Sightings = {}
    leads: Sightings = {}
    titles: dict[str, str] = {}
    options: dict[str, tuple[str, ...]] = {}
    inside: dict[tuple[str, str], tuple[str, ...]] = {}
    results: dict[tuple[str, ...], ResultsPage] = {}
    for item in recalled:
        before, after = read_shop_state(item.state), read_shop_state(item.outcome.state)
        if before is None or after is None:
            continue
        if before.key == page.key:
            _see(leads, item.action, after.kind, item)
        if before.kind == AD:
            _see(here if before.key == page.key else there, item.action, float(after.kind in (CONFIRM, DONE)), item)
            continue
        if after.kind == DONE and item.outcome.ended:
            price = read_title(before.lines)[1] if before.kind == ITEM else ""
            _see(
                purchases,
                RecalledPurchase(before.instruction, after.asin, after.options, price),
                item.outcome.score,
                item,
            )
        if before.instruction != page.instruction:
            continue
        if before.kind == RESULTS and after.kind == ITEM:
            _see(offers, after.asin, after.lines, item)
        for seen in (before, after):
            if seen.kind == ITEM:
                title, _, choices = read_title(seen.lines)
                titles[seen.asin], options[title] = title, choices
            elif seen.kind == SUB_PAGE:
                inside[seen.asin, seen.parts[3].lower()] = seen.lines
            elif seen.kind == RESULTS:
                results[seen.parts] = read_results(seen.lines)
    articles = {title: Article(choices, {}) for title, choices in options.items()}
    for (asin, name), lines in inside.items():
        title = titles.get(asin, "")
        known = articles.get(title, UNKNOWN)
        articles[title] = known._replace(inside={**known.inside, name: lines})
    return ShopNotes(
        _numbers(purchases, conflict),
        {asin: Offer(lines := _likeliest(seen, conflict), seen[lines][1]) for asin, seen in offers.items()},
        articles,
        frozenset(titles),
        results,
        _numbers(here, conflict),
        _numbers(there, conflict),
        {action: _likeliest(seen, conflict) for action, seen in leads.items()},
    )


def _see(sightings: Sightings, thing: Hashable, answer: Hashable, item: Recollection) -> None:
    seen = sightings.setdefault(thing, {})
    n, last = seen.get(answer, (0.0, -1))
    seen[answer] = (n + item.support, max(last, item.last))


def _numbers(sightings: Sightings, conflict: str) -> dict[Any, DatedValue]:
    """The number that is believed of each thing."""
    beliefs = {}
    for thing, seen in sightings.items():
        settled = settle([(answer, *times) for answer, times in seen.items()], conflict)
        last = max(seen[answer][1] for answer, _ in settled)
        if conflict == "max":
            beliefs[thing] = DatedValue(max(answer for answer, _ in settled), last)
        else:
            beliefs[thing] = DatedValue(sum(answer * share for answer, share in settled), last)
    return beliefs


def _likeliest(seen: Mapping[Any, tuple[float, int]], conflict: str) -> Any:
    """The answer that is believed, where answers cannot be averaged: of several the likeliest, then the newest."""
    settled = settle([(answer, *times) for answer, times in seen.items()], conflict)
    return max(settled, key=lambda pair: (pair[1], seen[pair[0]][1]))[0]

"""What is known about a shop from the recollections of a prompt.

* `ShopKnowledge` - purchases, pages of listings, results and buttons of advertisements, conflicts settled
* `summarise_records` - recollections into `ShopKnowledge`
* `DatedValue`, `Offer` - a value, or a listing's page, with the time when it was last seen
* `Article` - a product, whichever seller offers it
* `RecalledPurchase` - a purchase
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from drift_agents.envs.webshop.states import (
    AD,
    CONFIRM,
    DONE,
    ITEM,
    RESULTS,
    SUB_PAGE,
    ResultsPage,
    ShopState,
    read_results,
    read_shop_state,
    read_title,
)
from drift_agents.prompt.view import Recollection, settle

Sightings = dict[Any, dict[Any, tuple[float, int]]]
"""By key, all observed values, each with its support and when it was last seen."""


class DatedValue(NamedTuple):
    """A believed value, and when it was last seen.

    Args:
        value: the value.
        last: when it was last seen, in the agent's interactions.
    """

    value: float
    last: int


class Offer(NamedTuple):
    """A listing's page, and when it was last seen.

    Args:
        lines: its visible texts.
        last: when it was last seen, in the agent's interactions.
    """

    lines: tuple[str, ...]
    last: int


class RecalledPurchase(NamedTuple):
    """A purchase.

    Args:
        instruction: the task.
        asin: the listing.
        options: the chosen options, as pairs of a group's name and a value.
        price: the price on the listing's page, or "" where it was bought from another page.
    """

    instruction: str
    asin: str
    options: tuple[tuple[str, str], ...]
    price: str


class Article(NamedTuple):
    """What is known about a product, whichever seller offers it.

    Args:
        options: the texts of its options: names of groups and values.
        inside: the texts of its sub pages, by name in lower case.
    """

    options: tuple[str, ...] | None
    inside: Mapping[str, tuple[str, ...]]


UNKNOWN = Article(None, {})


class ShopKnowledge(NamedTuple):
    """What is known from recollections, conflicts settled.

    Args:
        purchases: the score of each purchase, for all recalled tasks.
        offers: the listings' pages, by asin; of this task alone, like all that follows.
        articles: what is known about products, by title.
        visited: the listings whose pages have been seen.
        results: pages of results, by the parts of their address after the session.
        buttons: for the present advertisement, the probability that an action leads to the order.
        other_buttons: the same for other advertisements.
        leads: the kind of page to which actions of the present page are believed to lead.
    """

    purchases: Mapping[RecalledPurchase, DatedValue]
    offers: Mapping[str, Offer]
    articles: Mapping[str, Article]
    visited: frozenset[str]
    results: Mapping[tuple[str, ...], ResultsPage]
    buttons: Mapping[str, DatedValue]
    other_buttons: Mapping[str, DatedValue]
    leads: Mapping[str, str]


def summarise_records(page: ShopState, recalled: Iterable[Recollection], conflict: str) -> ShopKnowledge:
    """Summarise recollections.

    Args:
        page: the present page.
        recalled: the recollections of a prompt, in order.
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).
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
            _add_sighting(leads, item.action, after.kind, item)
        if before.kind == AD:
            _add_sighting(
                here if before.key == page.key else there, item.action, float(after.kind in (CONFIRM, DONE)), item
            )
            continue
        if after.kind == DONE and item.outcome.ended:
            price = read_title(before.lines)[1] if before.kind == ITEM else ""
            _add_sighting(
                purchases,
                RecalledPurchase(before.instruction, after.asin, after.options, price),
                item.outcome.score,
                item,
            )
        if before.instruction != page.instruction:
            continue
        if before.kind == RESULTS and after.kind == ITEM:
            _add_sighting(offers, after.asin, after.lines, item)
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
    return ShopKnowledge(
        _settle_values(purchases, conflict),
        {asin: Offer(lines := _most_probable(seen, conflict), seen[lines][1]) for asin, seen in offers.items()},
        articles,
        frozenset(titles),
        results,
        _settle_values(here, conflict),
        _settle_values(there, conflict),
        {action: _most_probable(seen, conflict) for action, seen in leads.items()},
    )


def _add_sighting(sightings: Sightings, key: Hashable, value: Hashable, item: Recollection) -> None:
    seen = sightings.setdefault(key, {})
    n, last = seen.get(value, (0.0, -1))
    seen[value] = (n + item.support, max(last, item.last))


def _settle_values(sightings: Sightings, conflict: str) -> dict[Any, DatedValue]:
    """The believed value of each key."""
    beliefs = {}
    for key, seen in sightings.items():
        settled = settle([(value, *times) for value, times in seen.items()], conflict)
        last = max(seen[value][1] for value, _ in settled)
        if conflict == "max":
            beliefs[key] = DatedValue(max(value for value, _ in settled), last)
        else:
            beliefs[key] = DatedValue(sum(value * share for value, share in settled), last)
    return beliefs


def _most_probable(seen: Mapping[Any, tuple[float, int]], conflict: str) -> Any:
    """The believed value where values cannot be averaged: the most probable one, then the newest."""
    settled = settle([(value, *times) for value, times in seen.items()], conflict)
    return max(settled, key=lambda pair: (pair[1], seen[pair[0]][1]))[0]

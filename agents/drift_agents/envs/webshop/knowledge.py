"""What the planner for the web shop believes from records: purchases, offers, products, pages of results, buttons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

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
from drift_agents.prompt.view import (
    Recollection,
    Sightings,
    add_sighting,
    believe,
    settle_all,
)

Key = TypeVar("Key")


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
    purchases: dict[RecalledPurchase, Sightings[float]] = {}
    offers: dict[str, Sightings[tuple[str, ...]]] = {}
    here: dict[str, Sightings[float]] = {}
    there: dict[str, Sightings[float]] = {}
    leads: dict[str, Sightings[str]] = {}
    titles: dict[str, str] = {}
    options: dict[str, tuple[str, ...]] = {}
    inside: dict[tuple[str, str], tuple[str, ...]] = {}
    results: dict[tuple[str, ...], ResultsPage] = {}
    for item in recalled:
        before, after = read_shop_state(item.state), read_shop_state(item.outcome.state)
        if before is None or after is None:
            continue
        if before.key == page.key:
            add_sighting(leads.setdefault(item.action, {}), after.kind, item.support, item.last)
        if before.kind == AD:
            buttons = here if before.key == page.key else there
            has_led = float(after.kind in (CONFIRM, DONE))
            add_sighting(buttons.setdefault(item.action, {}), has_led, item.support, item.last)
            continue
        if after.kind == DONE and item.outcome.ended:
            price = read_title(before.lines)[1] if before.kind == ITEM else ""
            purchase = RecalledPurchase(before.instruction, after.asin, after.options, price)
            add_sighting(purchases.setdefault(purchase, {}), item.outcome.score, item.support, item.last)
        if before.instruction != page.instruction:
            continue
        if before.kind == RESULTS and after.kind == ITEM:
            add_sighting(offers.setdefault(after.asin, {}), after.lines, item.support, item.last)
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
        {asin: Offer(lines := believe(seen, conflict), seen[lines][1]) for asin, seen in offers.items()},
        articles,
        frozenset(titles),
        results,
        _settle_values(here, conflict),
        _settle_values(there, conflict),
        {action: believe(seen, conflict) for action, seen in leads.items()},
    )


def _settle_values(sightings: Mapping[Key, Sightings[float]], conflict: str) -> dict[Key, DatedValue]:
    """The believed value of each key."""
    beliefs = {}
    for key, seen in sightings.items():
        settled = settle_all(seen, conflict)
        last = max(seen[value][1] for value, _ in settled)
        if conflict == "max":
            beliefs[key] = DatedValue(max(value for value, _ in settled), last)
        else:
            beliefs[key] = DatedValue(sum(value * share for value, share in settled), last)
    return beliefs

"""Optimal purchases, computed from the goal and the settings, which agents cannot read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from webshop_server.goals import Goal
from webshop_server.inventory import is_target
from webshop_server.page_builder import RESULTS_PER_PAGE
from webshop_server.product import Product
from webshop_server.reward import Score, matches_class, matches_option
from webshop_server.settings import Settings
from webshop_server.shop import Session, Shop
from webshop_server.urls import OptionPairs, PageKind, normalize_query

_MAX_COMBINATIONS = 64
"""The combinations of options compared for each listing."""


class OptimalPurchase(NamedTuple):
    """A listing, its options, and its score.

    Args:
        asin: the listing.
        options: the options to choose, as `(name, value)` pairs.
        score: the score of the purchase.
        place: its rank in the results of a search for `words`, from 0.
        words: the query.
    """

    asin: str
    options: OptionPairs
    score: Score
    place: int
    words: str


def best_purchase(shop: Shop, goal: Goal, settings: Settings | None = None) -> OptimalPurchase | None:
    """Return the purchase with the highest score in the results of searches for the goal's listing.

    Args:
        shop: the shop.
        goal: the goal.
        settings: the settings; by default the shop's.

    Returns:
        The purchase, the first one on ties; `None` if nothing can be bought.

    Example:
        >>> from webshop_server.inventory import Inventory
        >>> shop = Shop(Inventory.default(products=100))
        >>> best_purchase(shop, shop.goals[0]).score.reward
        1.0
    """
    settings = settings or shop.settings
    best: OptimalPurchase | None = None
    for words in _words(goal, shop.inventory.catalogue.product(goal.asin)):
        for place, product in enumerate(shop.inventory.results(normalize_query(words), settings)):
            if is_target(product, settings.sold_out):
                continue
            options = tuple(group[0] for group in _choices(product, goal, settings))
            score = shop.score(goal, product, options, settings)
            if best is None or score.reward > best.score.reward:
                best = OptimalPurchase(product.asin, options, score, place, words)
        if best is not None and best.score.reward == 1.0:
            break
    return best


def best_purchases(shop: Shop, goal: Goal, settings: Settings | None = None) -> tuple[OptimalPurchase, ...]:
    """Return all purchases with the highest score on the results page of the best one.

    Options that are not part of the goal are not chosen.

    Args:
        shop: the shop.
        goal: the goal.
        settings: the settings; by default the shop's.

    Returns:
        The purchases, in the order of the results; empty if nothing can be bought.

    Example:
        >>> from webshop_server.inventory import Inventory
        >>> shop = Shop(Inventory.default(products=100))
        >>> best_purchase(shop, shop.goals[0]) in best_purchases(shop, shop.goals[0])
        True
    """
    settings = settings or shop.settings
    best = best_purchase(shop, goal, settings)
    if best is None:
        return ()
    start = best.place // RESULTS_PER_PAGE * RESULTS_PER_PAGE
    found = []
    shown = shop.inventory.results(normalize_query(best.words), settings)[start : start + RESULTS_PER_PAGE]
    for place, product in enumerate(shown, start):
        if is_target(product, settings.sold_out):
            continue
        for options in islice(itertools.product(*_choices(product, goal, settings)), _MAX_COMBINATIONS):
            score = shop.score(goal, product, options, settings)
            if score.reward == best.score.reward:
                found.append(OptimalPurchase(product.asin, options, score, place, best.words))
    return tuple(found)


def solve(session: Session, purchase: OptimalPurchase | None = None) -> list[str]:
    """Execute a purchase in a session.

    Args:
        session: the session, at any page except the last one; it is modified.
        purchase: the purchase; by default the best one.

    Returns:
        The executed actions; empty if nothing can be bought.

    Example:
        >>> from webshop_server.inventory import Inventory
        >>> session = Shop(Inventory.default(products=100)).start(0)
        >>> len(solve(session)) >= 3, session.reward
        (True, 1.0)
    """
    purchase = purchase or best_purchase(session.shop, session.goal, session.settings)
    done: list[str] = []
    if purchase is None:
        return done

    def do(action: str) -> None:
        done.append(action)
        session.act(action)

    def click(name: str) -> None:
        do(f"click[{session.settings.label(name).lower()}]")

    while not session.page.has_search_bar:
        if session.page.url.kind is PageKind.AD:  # an advertisement has no other exit
            do(f"click[{session.settings.ad_right_button.lower()}]")
        else:
            click("Back to Search")
    do(f"search[{purchase.words}]")
    for _ in range(purchase.place // RESULTS_PER_PAGE):
        click("Next >")
    do(f"click[{purchase.asin.lower()}]")
    for wanted in purchase.options:
        for element in session.page.elements:
            if element.kind == "option" and (element.name, element.text) == wanted:
                do(f"click[{element.label}]")
                break
    click("Buy Now")
    if session.page.url.kind is PageKind.AD:
        do(f"click[{session.settings.ad_right_button.lower()}]")
    if session.page.url.kind is PageKind.CONFIRM:
        click("Place Order")
    return done


def _words(goal: Goal, product: Product | None) -> Iterator[str]:
    yield goal.title
    yield goal.text
    yield f"{goal.title} {goal.query}"
    if product is not None and product.description:
        yield f"{goal.title} {product.description}"


def _choices(product: Product, goal: Goal, settings: Settings) -> list[list[tuple[str, str]]]:
    """For each group of options in the goal, the values that meet it, as `(name, value)` pairs."""
    groups = []
    for option in product.options:
        exact = [value for value in option.values if (option.name, value) in goal.options]
        fitting = [
            value
            for value in option.values
            if any(matches_option(wanted, value) for name, wanted in goal.options if name in ("", option.name))
            or (goal.color_class and matches_class(goal.color_class, value, settings.classes))
        ]
        if exact or fitting:
            groups.append([(option.name, value) for value in exact or fitting])
    return groups

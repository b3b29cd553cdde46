"""A shopper who knows the goal: for tests, and to tell which goals can be reached.

* `OptimalPurchase` - a listing, what to choose, and what it pays
* `best_purchase` - the purchase that pays most under an operator's settings
* `best_purchases` - all that pay as much and need no more pages of results
* `solve` - the actions that lead a session there

It reads what no shopper may read: the goal's record and the operator's settings.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from webshop_server.goals import Goal
from webshop_server.inventory import is_target
from webshop_server.page_builder import PAGE_SIZE
from webshop_server.product import Product
from webshop_server.reward import Score, matches_class, matches_option
from webshop_server.settings import Pairs, Settings
from webshop_server.shop import Session, Shop
from webshop_server.urls import PageKind, normal_query

_MOST_CHOICES = 64
"""The ways to choose a listing's options that are compared."""


class OptimalPurchase(NamedTuple):
    """A listing, what to choose, and what it pays.

    Args:
        asin: the listing.
        options: what to choose, as `(name, value)` pairs.
        score: what it pays.
        place: its place in the results of a search for `words`, from 0.
        words: what to search for.
    """

    asin: str
    options: Pairs
    score: Score
    place: int
    words: str


def _choices(product: Product, goal: Goal, settings: Settings) -> list[list[tuple[str, str]]]:
    """For each group of options that the goal asks about, what can be chosen, as `(name, value)` pairs."""
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


def _options(product: Product, goal: Goal, settings: Settings) -> Pairs:
    return tuple(group[0] for group in _choices(product, goal, settings))


def _words(goal: Goal, product: Product | None) -> Iterator[str]:
    yield goal.title
    yield goal.text
    yield f"{goal.title} {goal.query}"
    if product is not None and product.description:
        yield f"{goal.title} {product.description}"


def best_purchase(shop: Shop, goal: Goal, settings: Settings | None = None) -> OptimalPurchase | None:
    """Give the purchase that pays most, among what searches for the goal's listing find.

    Args:
        shop: where to buy.
        goal: what should be bought.
        settings: the operator's settings; the shop's if not given.

    Returns:
        The purchase, the first of those that pay the same; `None` where nothing can be bought.

    Example:
        >>> from webshop_server.inventory import Inventory
        >>> shop = Shop(Inventory.default(products=100))
        >>> best_purchase(shop, shop.goals[0]).score.reward
        1.0
    """
    settings = settings or shop.settings
    best: OptimalPurchase | None = None
    for words in _words(goal, shop.inventory.catalogue.product(goal.asin)):
        for place, product in enumerate(shop.inventory.results(normal_query(words), settings)):
            if is_target(product, settings.sold_out):
                continue
            options = _options(product, goal, settings)
            score = shop.score(goal, product, options, settings)
            if best is None or score.reward > best.score.reward:
                best = OptimalPurchase(product.asin, options, score, place, words)
        if best is not None and best.score.reward == 1.0:
            break
    return best


def best_purchases(shop: Shop, goal: Goal, settings: Settings | None = None) -> tuple[OptimalPurchase, ...]:
    """Give all purchases that pay as much as the best one and need no more pages of results.

    Of options that the goal does not ask about, none is chosen.

    Args:
        shop: where to buy.
        goal: what should be bought.
        settings: the operator's settings; the shop's if not given.

    Returns:
        The purchases, in the order of the results of one search; none where nothing can be bought.

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
    start = best.place // PAGE_SIZE * PAGE_SIZE
    found = []
    shown = shop.inventory.results(normal_query(best.words), settings)[start : start + PAGE_SIZE]
    for place, product in enumerate(shown, start):
        if is_target(product, settings.sold_out):
            continue
        for options in islice(itertools.product(*_choices(product, goal, settings)), _MOST_CHOICES):
            score = shop.score(goal, product, options, settings)
            if score.reward == best.score.reward:
                found.append(OptimalPurchase(product.asin, options, score, place, best.words))
    return tuple(found)


def solve(session: Session, purchase: OptimalPurchase | None = None) -> list[str]:
    """Lead a session to the purchase that pays most, or to another one.

    Args:
        session: at any page but the last one; it is changed.
        purchase: what to buy; the one that pays most if not given.

    Returns:
        The actions that were done; none where nothing can be bought.

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
        if session.page.location.kind is PageKind.AD:  # the way out of an advertisement is through it
            do(f"click[{session.settings.ad_right_button.lower()}]")
        else:
            click("Back to Search")
    do(f"search[{purchase.words}]")
    for _ in range(purchase.place // PAGE_SIZE):
        click("Next >")
    do(f"click[{purchase.asin.lower()}]")
    for wanted in purchase.options:
        for element in session.page.elements:
            if element.kind == "option" and (element.name, element.text) == wanted:
                do(f"click[{element.label}]")
                break
    click("Buy Now")
    if session.page.location.kind is PageKind.AD:
        do(f"click[{session.settings.ad_right_button.lower()}]")
    if session.page.location.kind is PageKind.CONFIRM:
        click("Place Order")
    return done

"""Which goals a shopper meets, and in which order.

* `draw_pool` - a few goals that can be bought under all conditions and that drifts touch
* `judge`, `repeated` - whether that is so; what a purchase pays when it is done again
* `GoalSequence` - which goal comes next
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np

from drift_envs.checks import check_choice, check_integer
from drift_envs.envs.webshop.clusters import group_texts
from drift_envs.errors import ArgumentError, DriftWarning
from webshop_server.goals import Goal
from webshop_server.inventory import Inventory, is_target
from webshop_server.oracle import OptimalPurchase, best_purchases
from webshop_server.page_builder import RESULTS_PER_PAGE
from webshop_server.settings import Settings
from webshop_server.shop import Shop
from webshop_server.urls import normalize_query

ORDERS = ("shuffled", "fixed", "clustered", "mixed")
GROUPED = ("clustered", "mixed")
"""Orders whose pool is one of like goals in groups; the same pool for both."""

LEAST_LOSS = 0.05
"""What a drift of listings, prices or colours must cost whoever buys as before."""

_TRIES = 100
"""Goals that are looked at for each one that is wanted."""

_PATIENCE = 10
"""The same as long as no goal has been found that every drift touches."""

_OTHERS = 0x07E2
"""Keeps the stream of goals beside the pool apart from the pool's own."""

_SURPLUS = 4
"""Goals that are drawn for each one that a group of like goals takes."""

_BUYING = ("color_classes", "result_order", "demoted", "price_factor", "price_targets", "sold_out")
"""The settings that decide what should be bought, and not only how."""


def draw_pool(
    shop: Shop,
    count: int,
    conditions: Sequence[Settings],
    random: np.random.Generator,
    without: Collection[int] = (),
) -> tuple[int, ...]:
    """Draw goals, by their weights, that can be bought at 1.0 under all conditions.

    Goals that every drift touches come first: where two conditions that follow each other differ in
    listings, prices or colours, none of the best purchases under the first one is among the best
    under the second one. Where such goals are too rare, others fill the pool.

    Args:
        shop: where the goals are.
        count: how many.
        conditions: settings in the order of time.
        random: what draws.
        without: goals that are not drawn, nor any other goal of their listings.

    Returns:
        The goals' numbers, no two of one listing.

    Raises:
        ArgumentError: if the catalogue has too few goals that can be bought under all conditions.

    Warns:
        DriftWarning: if goals had to be taken that some drift does not touch.
    """
    steps = [settings for number, settings in enumerate(conditions) if not number or settings != conditions[number - 1]]
    goals = shop.goals
    judged = _judged(shop.inventory, shop.goal_kind, tuple(steps))
    touched: list[int] = []
    others: list[int] = []
    seen: set[int] = set()
    listings = {goals[number].title for number in without}
    for tries in range(_TRIES * count):
        if len(touched) == count or len(seen) == len(goals):
            break
        if not touched and tries >= _PATIENCE * count and len(others) >= count:
            break  # a schedule that leaves most goals as they are
        number = goals.pick(random.random())
        if number in seen:
            continue
        seen.add(number)
        goal = goals[number]
        if goal.title in listings:
            continue
        if number not in judged:
            judged[number] = judge(shop, goal, steps)
        can_be_bought, is_touched = judged[number]
        if can_be_bought:
            (touched if is_touched else others).append(number)
            listings.add(goal.title)
    found = (touched + others)[:count]
    if len(touched) < count <= len(found):
        warnings.warn(
            f"only {len(touched)} of the {count} goals are touched by every drift of the schedule: in this catalogue "
            "the purchases that were best before a drift are often as good after it",
            DriftWarning,
            stacklevel=2,
        )
    if len(found) < count:
        raise ArgumentError(
            f"the catalogue should have {count} goals of kind {shop.goal_kind} that can be bought at 1.0 in every "
            f"phase of the schedule. Found {len(found)} among {len(seen)}"
        )
    return tuple(found)


@lru_cache(maxsize=32)
def _judged(inventory: Inventory, kind: str, steps: tuple[Settings, ...]) -> dict[int, tuple[bool, bool]]:
    """What is known of goals under these conditions: worlds of one schedule ask about the same ones."""
    return {}


def judge(shop: Shop, goal: Goal, conditions: Sequence[Settings]) -> tuple[bool, bool]:
    """Whether a goal can be bought at 1.0 under all conditions, and whether every change between them touches it.

    Args:
        shop: where it is bought.
        goal: what should be bought.
        conditions: settings in the order of time.
    """
    known: dict[tuple[object, ...], tuple[OptimalPurchase, ...]] = {}  # the same settings often come again
    before: tuple[OptimalPurchase, ...] = ()
    last: Settings | None = None
    is_touched = True
    for settings in conditions:
        if last is None or _buying(last) != _buying(settings):
            key = _buying(settings)
            if key not in known:
                known[key] = best_purchases(shop, goal, settings)
            purchases = known[key]
            if not purchases or purchases[0].score.reward < 1.0:
                return False, False
            is_touched &= not any(repeated(shop, goal, old, settings) > 1 - LEAST_LOSS for old in before)
            before = purchases
        last = settings
    return True, is_touched


def repeated(shop: Shop, goal: Goal, purchase: OptimalPurchase, settings: Settings) -> float:
    """What a purchase pays under other settings, done as before: the same words, page, listing and options.

    Args:
        shop: where it is bought.
        goal: what should be bought.
        purchase: the purchase.
        settings: the settings of now.
    """
    page = purchase.place // RESULTS_PER_PAGE
    results = shop.inventory.results(normalize_query(purchase.words), settings)
    shown = results[page * RESULTS_PER_PAGE : (page + 1) * RESULTS_PER_PAGE]
    for product in shown:
        if product.asin == purchase.asin and not is_target(product, settings.sold_out):
            return shop.score(goal, product, purchase.options, settings).reward
    return 0.0


def _buying(settings: Settings) -> tuple[object, ...]:
    return tuple(getattr(settings, name) for name in _BUYING)


class GoalSequence:
    """Which goal comes next.

    Its random numbers are its own: how many steps an episode takes does not change which goal
    comes next.

    Args:
        shop: where the goals are.
        pool: how many different goals there are; all of the catalogue's, by their weights, if `None`.
        order: `shuffled` (each goal of the pool once, in an order drawn anew, and again), `fixed`,
            `clustered` (one group of like goals after the other), or `mixed` (the goals of these groups, shuffled).
        conditions: settings under which every goal of the pool can be bought at 1.0.
        clusters: how many groups of like goals; used by `clustered` and `mixed` alone.
        repeats: how often each goal of a group comes, shuffled, before the next group does; used by `clustered` alone.

    Raises:
        ArgumentError: if the pool is smaller than one goal or does not fill the groups, or the order is unknown.
    """

    def __init__(
        self,
        shop: Shop,
        pool: int | None,
        order: str,
        conditions: Sequence[Settings],
        clusters: int = 3,
        repeats: int = 1,
    ) -> None:
        pool = check_integer("pool", pool, 1, optional=True)
        order = check_choice("order", order, ORDERS)
        clusters = check_integer("clusters", clusters, 1)
        repeats = check_integer("repeats", repeats, 1)
        if order in GROUPED and (pool is None or pool % clusters):
            raise ArgumentError(
                f"`pool` should be a multiple of `clusters` where `order` is {order}. Received {pool} and {clusters}"
            )
        self._clusters, self._repeats = clusters, repeats
        self._shop = shop
        self._size = pool
        self._order = order
        self._conditions = tuple(conditions)
        self._random: np.random.Generator | None = None
        self._seed = 0
        self._drawn: tuple[int, ...] | None = None
        self._groups: tuple[tuple[int, ...], ...] = ()
        self._waiting: list[int] = []

    @property
    def is_seeded(self) -> bool:
        """Whether `seed` was called."""
        return self._random is not None

    def seed(self, seed: int) -> None:
        """Begin anew; the pool is drawn when it is first needed.

        Args:
            seed: decides the pool and the order.
        """
        self._random = np.random.default_rng(seed)
        self._seed = seed
        self._drawn, self._waiting = None, []

    @property
    def pool(self) -> tuple[int, ...] | None:
        """The numbers of the goals, or `None` for all of the catalogue's."""
        if self._size is None or self._random is None:
            return None
        if self._drawn is None:
            if self._order in GROUPED:
                self._groups = self._grouped(self._random)
                self._drawn = tuple(number for group in self._groups for number in group)
            else:
                self._drawn = draw_pool(self._shop, self._size, self._conditions, self._random)
        return self._drawn

    def others(self, count: int) -> tuple[int, ...]:
        """Goals that are not of the pool, drawn likewise from a stream of their own.

        Args:
            count: how many.

        Raises:
            ArgumentError: before a seed, or if the catalogue has too few.
        """
        if self._random is None:
            raise ArgumentError("goals were asked for before a seed")
        random = np.random.default_rng([self._seed, _OTHERS])
        return draw_pool(self._shop, count, self._conditions, random, without=self.pool or ())

    def next(self) -> int:
        """The number of the goal that comes next."""
        if self._random is None:
            raise ArgumentError("a goal was asked for before a seed")
        pool = self.pool
        if pool is None:
            return self._shop.goals.pick(self._random.random())
        if not self._waiting:
            self._waiting = list(pool)
            if self._order in ("shuffled", "mixed"):
                self._waiting = [pool[place] for place in self._random.permutation(len(pool))]
            elif self._order == "clustered":
                self._waiting = self._by_cluster(self._random)
        return self._waiting.pop(0)

    def _grouped(self, random: np.random.Generator) -> tuple[tuple[int, ...], ...]:
        """The pool in groups of like goals, out of more goals than it holds, so that the groups differ."""
        size = self._size or 0
        drawn = draw_pool(self._shop, _SURPLUS * size, self._conditions, random)
        goals = [self._shop.goals[number] for number in drawn]
        texts = [f"{goal.product_category} {goal.query} {goal.text}" for goal in goals]
        groups = group_texts(texts, self._clusters, size // self._clusters)
        return tuple(tuple(drawn[place] for place in group) for group in groups)

    def _by_cluster(self, random: np.random.Generator) -> list[int]:
        """One group of like goals after the other, each group's goals shuffled anew as often as they repeat."""
        return [
            group[place]
            for group in self._groups
            for _ in range(self._repeats)
            for place in random.permutation(len(group))
        ]

"""The goals of the episodes, and their order.

Goals that shift by theme are clustered as in Xiong et al., "How memory management impacts LLM agents", section 6.1,
where the embeddings of all queries are clustered by a Gaussian mixture. Here texts are tf-idf vectors, clustered by
k-means with cosine similarity into groups of equal size, so that the time of a task shift is known. With more texts
than needed the groups differ more, since only the texts nearest to the centres are used.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from drift_envs.checks import LARGEST_COUNT, check_choice, check_flag, check_integer
from drift_envs.errors import ArgumentError, DriftWarning
from webshop_server.catalogue import KINDS
from webshop_server.goals import Goal
from webshop_server.inventory import Inventory, is_target
from webshop_server.oracle import OptimalPurchase, best_purchases
from webshop_server.page_builder import RESULTS_PER_PAGE
from webshop_server.settings import Settings
from webshop_server.shop import Shop
from webshop_server.urls import normalize_query

ROUNDS = 20
"""The maximum number of iterations."""

DECIMALS = 9
"""Similarities are rounded, so that ties do not depend on the last bits of a sum, which differ between machines."""

_WORD = re.compile(r"[a-z]+")


def group_texts(texts: Sequence[str], groups: int, size: int) -> tuple[tuple[int, ...], ...]:
    """Group texts by their words.

    Args:
        texts: the texts.
        groups: the number of groups.
        size: the number of texts in a group.

    Returns:
        The indices of each group's texts, in order.

    Raises:
        ArgumentError: there are too few texts.

    Example:
        >>> group_texts(["a red shoe", "a brass lamp", "a blue shoe", "a tall brass lamp", "some tea"], 2, 2)
        ((0, 2), (1, 3))
    """
    if groups < 1 or size < 1 or len(texts) < groups * size:
        raise ArgumentError(f"there should be at least {groups} x {size} texts. Received {len(texts)}")
    vectors = _vectors(texts)
    centres = vectors[_choose_centres(vectors, groups, size)]
    chosen: list[int] = []
    for _ in range(ROUNDS):
        before, chosen = chosen, _assign(np.round(vectors @ centres.T, DECIMALS), size)
        if chosen == before:
            break
        sums = np.stack(
            [vectors[[place for place, g in enumerate(chosen) if g == group]].sum(0) for group in range(groups)]
        )
        centres = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    found = [tuple(place for place, g in enumerate(chosen) if g == group) for group in range(groups)]
    return tuple(sorted(found))


def _vectors(texts: Sequence[str]) -> NDArray[np.float64]:
    """Tf-idf vectors of unit length; shape (texts, words)."""
    counts = [Counter(_WORD.findall(text.lower())) for text in texts]
    words = sorted({word for count in counts for word in count})
    seen_in = {word: sum(word in count for count in counts) for word in words}
    weights = np.array([math.log(len(texts) / seen_in[word]) for word in words])
    table = np.array([[count[word] for word in words] for count in counts], dtype=np.float64).reshape(len(texts), -1)
    table *= weights
    vectors: NDArray[np.float64] = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    return vectors


def _choose_centres(vectors: NDArray[np.float64], groups: int, size: int) -> list[int]:
    """Repeatedly choose the text with close neighbours that is least similar to the chosen ones; skips outliers."""
    likeness = vectors @ vectors.T
    near = np.sort(likeness, axis=1)[:, ::-1][:, :size].mean(axis=1)
    chosen: list[int] = []
    for _ in range(groups):
        unlike = 1 - likeness[:, chosen].max(axis=1) if chosen else np.ones(len(vectors))
        values = np.round(near * unlike, DECIMALS)
        values[chosen] = -np.inf
        chosen.append(int(values.argmax()))
    return chosen


def _assign(likeness: NDArray[np.float64], size: int) -> list[int]:
    """Assign texts to centres, the most similar pairs first, until the groups are full; -1 for the remaining texts."""
    room = [size] * likeness.shape[1]
    chosen = [-1] * len(likeness)
    for flat in np.argsort(-likeness, axis=None, kind="stable"):
        place, group = divmod(int(flat), likeness.shape[1])
        if chosen[place] < 0 and room[group]:
            chosen[place] = group
            room[group] -= 1
    return chosen


ORDERS = ("shuffled", "fixed", "clustered", "mixed")
GROUPED = ("clustered", "mixed")
"""The orders whose pool consists of groups of similar goals; both have the same pool."""

LEAST_LOSS = 0.05
"""The minimum loss of a repeated purchase after a drift of listings, prices or colours."""

HELD_OUT_SEED = 1
"""The seed of the held-out catalogue; the default one has seed 0."""

_TRIES = 100
"""The maximum number of goals that are checked for each goal of the pool."""

_PATIENCE = 10
"""The same while no goal has been found whose best purchases every drift changes."""

_OTHERS = 0x07E2
"""The key of the random stream of goals outside the pool."""

_SURPLUS = 4
"""The number of goals that are drawn for each goal of a group."""

_BUYING = ("color_classes", "result_order", "demoted", "price_factor", "price_targets", "sold_out")
"""The settings that change which purchases are best, and not only the actions that lead to them."""


def draw_pool(
    shop: Shop,
    count: int,
    conditions: Sequence[Settings],
    random: np.random.Generator,
    without: Collection[int] = (),
    excluded: Collection[str] = (),
) -> tuple[int, ...]:
    """Draw goals, by their weights, that have a purchase with score 1.0 under all conditions.

    Goals that every drift affects come first: if two successive conditions differ in listings, prices or
    colours, no best purchase under the first one is a best purchase under the second one. If there are too
    few such goals, others fill the pool.

    Args:
        shop: the shop.
        count: the number of goals.
        conditions: settings in temporal order.
        random: the generator.
        without: goals that are excluded, with all other goals of their listings.
        excluded: instructions and titles of goals that are excluded.

    Returns:
        The goals' numbers, no two of one listing.

    Raises:
        ArgumentError: the catalogue has too few goals that can be bought under all conditions.

    Warns:
        DriftWarning: the pool contains goals that some drift does not affect.
    """
    steps = [settings for number, settings in enumerate(conditions) if not number or settings != conditions[number - 1]]
    goals = shop.goals
    checked = _checked_goals(shop.inventory, shop.goal_kind, tuple(steps))
    touched: list[int] = []
    others: list[int] = []
    seen: set[int] = set()
    listings = {goals[number].title for number in without}
    for tries in range(_TRIES * count):
        if len(touched) == count or len(seen) == len(goals):
            break
        if not touched and tries >= _PATIENCE * count and len(others) >= count:
            break  # the schedule affects too few goals
        number = goals.pick(random.random())
        if number in seen:
            continue
        seen.add(number)
        goal = goals[number]
        if goal.title in listings or is_among(goal, excluded):
            continue
        if number not in checked:
            checked[number] = check_goal(shop, goal, steps)
        can_be_bought, is_touched = checked[number]
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
def _checked_goals(inventory: Inventory, kind: str, steps: tuple[Settings, ...]) -> dict[int, tuple[bool, bool]]:
    """The results of `check_goal` by goal, shared by all environments with one schedule."""
    return {}


def check_goal(shop: Shop, goal: Goal, conditions: Sequence[Settings]) -> tuple[bool, bool]:
    """Whether a goal can be bought at 1.0 under all conditions, and whether every change between them affects it.

    Args:
        shop: the shop.
        goal: the goal.
        conditions: settings in temporal order.
    """
    known: dict[tuple[object, ...], tuple[OptimalPurchase, ...]] = {}  # settings recur
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
            is_touched &= not any(score_repetition(shop, goal, old, settings) > 1 - LEAST_LOSS for old in before)
            before = purchases
        last = settings
    return True, is_touched


def is_among(goal: Goal, texts: Collection[str]) -> bool:
    """Whether the goal's instruction or its listing's title is one of these texts."""
    return goal.text in texts or goal.title in texts


@lru_cache(maxsize=len(KINDS))
def list_development_texts(kind: str) -> frozenset[str]:
    """The instructions and titles of the default catalogue's goals.

    Args:
        kind: `synthetic` or `color_class`.

    Raises:
        webshop_server.errors.ArgumentError: the default catalogue has no goals of this kind.
    """
    return frozenset(text for goal in Inventory.default().goals(kind) for text in (goal.text, goal.title))


def open_inventory(catalogue: str | os.PathLike[str] | None, held_out: bool) -> Inventory:
    """The inventory of a shop.

    Args:
        catalogue: a catalogue file; `None` for a generated catalogue.
        held_out: whether the generated catalogue is the held-out one.

    Raises:
        ArgumentError: `held_out` is no boolean, `catalogue` no path, or both are given.
        webshop_server.errors.CatalogueError: the file cannot be used.
    """
    check_flag("held_out", held_out)
    if catalogue is None:
        return Inventory.default(seed=HELD_OUT_SEED if held_out else 0)
    if not isinstance(catalogue, (str, os.PathLike)):
        raise ArgumentError(f"`catalogue` should be the path of a file, or None. Received {catalogue!r}")
    if held_out:
        raise ArgumentError(f"`held_out` should not be given with `catalogue`. Received {os.fspath(catalogue)!r}")
    return Inventory.open(catalogue)


def score_repetition(shop: Shop, goal: Goal, purchase: OptimalPurchase, settings: Settings) -> float:
    """Return the score of a purchase that is repeated under other settings: the same query, page, listing and options.

    Args:
        shop: the shop.
        goal: the goal.
        purchase: the purchase.
        settings: the other settings.
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
    """The sequence of goals, with a random stream of its own: episode lengths do not change it.

    Args:
        shop: the shop.
        pool: the number of different goals; `None` draws from all goals of the catalogue, by their weights.
        order: `shuffled` (repeated permutations of the pool), `fixed`, `clustered` (one group of similar goals after
            the other), or `mixed` (the goals of these groups, shuffled).
        conditions: settings under which every goal of the pool can be bought at 1.0.
        clusters: the number of groups; only for `clustered` and `mixed`.
        repeats: the number of times that each goal of a group occurs, shuffled, before the next group; only for
            `clustered`.
        held_out: whether goals that the default catalogue has too are excluded.

    Raises:
        ArgumentError: the pool is empty or not a multiple of `clusters`, or the order is unknown.
    """

    state_names: ClassVar[tuple[str, ...]] = ("_random", "_seed", "_drawn", "_waiting", "_groups")

    def __init__(
        self,
        shop: Shop,
        pool: int | None,
        order: str,
        conditions: Sequence[Settings],
        clusters: int = 3,
        repeats: int = 1,
        held_out: bool = False,
    ) -> None:
        pool = check_integer("pool", pool, 1, LARGEST_COUNT, optional=True)
        order = check_choice("order", order, ORDERS)
        clusters = check_integer("clusters", clusters, 1, LARGEST_COUNT)
        repeats = check_integer("repeats", repeats, 1, LARGEST_COUNT)
        if order in GROUPED and (pool is None or pool % clusters):
            raise ArgumentError(
                f"`pool` should be a multiple of `clusters` where `order` is {order}. Received {pool} and {clusters}"
            )
        self._clusters, self._repeats = clusters, repeats
        self._shop = shop
        self._size = pool
        self._order = order
        self._conditions = tuple(conditions)
        self._excluded = list_development_texts(shop.goal_kind) if held_out else frozenset()
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
        """Restart; the pool is drawn on first use.

        Args:
            seed: the seed of the pool and the order.
        """
        self._random = np.random.default_rng(seed)
        self._seed = seed
        self._drawn, self._waiting = None, []

    @property
    def pool(self) -> tuple[int, ...] | None:
        """The numbers of the goals, or `None` for all goals of the catalogue."""
        if self._size is None or self._random is None:
            return None
        if self._drawn is None:
            if self._order in GROUPED:
                self._groups = self._grouped(self._random)
                self._drawn = tuple(number for group in self._groups for number in group)
            else:
                self._drawn = self._draw_pool(self._size, self._random)
        return self._drawn

    def others(self, count: int) -> tuple[int, ...]:
        """Draw goals outside the pool, by the same rules, from a separate stream.

        Args:
            count: the number of goals.

        Raises:
            ArgumentError: before `seed`, or the catalogue has too few.
        """
        if self._random is None:
            raise ArgumentError("`others` needs `seed` to be called first")
        random = np.random.default_rng([self._seed, _OTHERS])
        return self._draw_pool(count, random, without=self.pool or ())

    def next(self) -> int:
        """Return the number of the next goal."""
        if self._random is None:
            raise ArgumentError("`next` needs `seed` to be called first")
        pool = self.pool
        if pool is None:
            number = self._shop.goals.pick(self._random.random())
            while is_among(self._shop.goals[number], self._excluded):  # nine of ten held-out goals are not
                number = self._shop.goals.pick(self._random.random())
            return number
        if not self._waiting:
            self._waiting = list(pool)
            if self._order in ("shuffled", "mixed"):
                self._waiting = [pool[place] for place in self._random.permutation(len(pool))]
            elif self._order == "clustered":
                self._waiting = [  # one group after the other, each with permutations of its goals
                    group[place]
                    for group in self._groups
                    for _ in range(self._repeats)
                    for place in self._random.permutation(len(group))
                ]
        return self._waiting.pop(0)

    def _draw_pool(self, count: int, random: np.random.Generator, without: Collection[int] = ()) -> tuple[int, ...]:
        return draw_pool(self._shop, count, self._conditions, random, without, self._excluded)

    def _grouped(self, random: np.random.Generator) -> tuple[tuple[int, ...], ...]:
        """Draw the pool in groups of similar goals, from more goals than it holds, so that the groups differ."""
        size = self._size or 0
        drawn = self._draw_pool(_SURPLUS * size, random)
        goals = [self._shop.goals[number] for number in drawn]
        texts = [f"{goal.product_category} {goal.query} {goal.text}" for goal in goals]
        groups = group_texts(texts, self._clusters, size // self._clusters)
        return tuple(tuple(drawn[place] for place in group) for group in groups)

"""What a shopper is asked to buy.

* `Goal` - one task: the instruction and what the score is computed from
* `GoalSet` - all tasks of a catalogue, in an order that a number selects from
* `SPLITS` - the published split
* `draw` - a reproducible number in [0, 1) from a seed and names
"""

from __future__ import annotations

import bisect
import hashlib
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from webshop_server.catalog import KINDS, Catalogue
from webshop_server.errors import ArgumentError
from webshop_server.product import UNKNOWN_PRICE, Instruction, Product

NO_LIMIT = 1_000_000.0
"""The price limit of a goal without one, in dollars, as in the original."""

MAX_GOALS = 100_000
"""The goals of a catalogue that are offered: those of its first listings, up to about this many."""

SPLITS = {"test": (0, 500), "eval": (500, 1500), "train": (1500, None)}
"""The published split: first and last goal number of each part, the last one excluded."""

_BATCH = 500
_SHUFFLE_SEED = 233  # the original's: with its full data and human goals, numbers mean the same goals
_LIMITS = tuple(10.0 * i for i in range(1, 100))


def draw(seed: int, *names: object) -> float:
    """Give a number in [0, 1) that depends on nothing but the arguments.

    Example:
        >>> draw(0, "price", "B01") == draw(0, "price", "B01") != draw(1, "price", "B01")
        True
    """
    text = "\x1f".join(str(name) for name in (seed, *names))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 9007199254740992.0


def price_of(product: Product, seed: int) -> float:
    """Give what a listing costs: for a price range, a value inside it that the seed decides."""
    if not product.prices:
        return UNKNOWN_PRICE
    if len(product.prices) == 1:
        return product.prices[0]
    low, high = product.prices[:2]
    return low + (high - low) * draw(seed, "price", product.asin)


def price_limit(price: float, seed: int, *names: object) -> float:
    """Draw a goal's price limit: the larger of two of the next four multiples of ten above the price.

    Returns:
        The limit in dollars, or `NO_LIMIT` where fewer than two of 10, 20, ..., 990 lie above the price.
    """
    above = [limit for limit in _LIMITS if limit > price][:4]
    if len(above) < 2:
        return NO_LIMIT
    pairs = [max(i, j) for i in range(len(above)) for j in range(i)]
    return above[pairs[int(draw(seed, "limit", *names) * len(pairs))]]


@dataclass(frozen=True)
class Goal:
    """One task.

    Args:
        text: the instruction as the shopper reads it.
        asin: the listing that it was written for; others can pay as much.
        title: that listing's title.
        category: its department.
        query: its query.
        product_category: its place in the tree of categories.
        attributes: what the purchase has to be.
        options: `(name, value)` pairs of the choices to make; the name may be "".
        color_class: a class of colours, such as `warm`, out of which a colour has to be chosen; it
            counts as one more option.
        price_upper: the highest price in dollars, or `NO_LIMIT`.
    """

    text: str
    asin: str
    title: str
    category: str
    query: str
    product_category: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    color_class: str = ""
    price_upper: float = NO_LIMIT

    def __deepcopy__(self, memo: dict[int, Any]) -> Goal:
        return self  # frozen, hence shared

    def to_dict(self) -> dict[str, Any]:
        """Give the goal as plain data with the original's names, for logs."""
        return {
            "asin": self.asin,
            "category": self.category,
            "query": self.query,
            "name": self.title,
            "product_category": self.product_category,
            "instruction_text": self.text,
            "attributes": list(self.attributes),
            "price_upper": self.price_upper,
            "goal_options": [f"{name}: {value}" if name else value for name, value in self.options]
            + ([f"{self.color_class} color"] if self.color_class else []),
        }


class GoalSet(Sequence[Goal]):
    """All tasks of a catalogue.

    Goals are made when they are asked for, so that a million of them cost a list of numbers. Their
    order is shuffled as the original shuffles it.

    Args:
        catalogue: where the listings are.
        kind: `synthetic` (one goal for each combination of options), `human`, or `color_class` (a colour
            of a class such as `warm` is asked for).
        seed: decides prices out of ranges and price limits.
        limit: stop at the listing that reaches this many goals.

    Raises:
        ArgumentError: the kind is unknown, or the catalogue has no goal of it.
    """

    def __init__(self, catalogue: Catalogue, kind: str = "synthetic", *, seed: int = 0, limit: int = MAX_GOALS) -> None:
        if kind not in KINDS:
            raise ArgumentError(f"`kind` should be one of {', '.join(KINDS)}. Received {kind!r}")
        self.kind = kind
        self.seed = seed
        self._catalogue = catalogue
        counts = catalogue.goal_counts(kind, limit)
        if not counts:
            raise ArgumentError(f"`{catalogue.path}` should have {kind} instructions. It has none")
        self._numbers = [number for number, _ in counts]
        self._ends = np.cumsum([count for _, count in counts]).tolist()
        self._order = list(range(self._ends[-1]))
        random.Random(_SHUFFLE_SEED).shuffle(self._order)
        self._sums: np.ndarray | None = None
        self._weights: np.ndarray | None = None
        self._make = lru_cache(maxsize=4096)(self._build)

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, index: Any) -> Any:
        """Give the goal of a number, or a list of them for a slice.

        Raises:
            ArgumentError: no goal has this number.
        """
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)) or not 0 <= index < len(self):
            raise ArgumentError(f"`goal_index` should be a whole number in 0 to {len(self) - 1}. Received {index!r}")
        return self._make(self._order[int(index)])

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def split(self, name: str) -> range:
        """Give the numbers of the goals of a part of the published split.

        Raises:
            ArgumentError: the part is unknown.
        """
        if name not in SPLITS:
            raise ArgumentError(f"`split` should be one of {', '.join(SPLITS)}. Received {name!r}")
        start, stop = SPLITS[name]
        return range(min(start, len(self)), len(self) if stop is None else min(stop, len(self)))

    def weight(self, index: int) -> float:
        """Give how likely a goal is drawn, relative to the others: the mean inverse frequency of its attributes."""
        if self.kind != "synthetic":
            return 1.0
        return float(self._row_weights()[self._row(self._order[index])[0]])

    def pick(self, number: float) -> int:
        """Turn a uniform number in [0, 1) into a goal number, by the goals' weights."""
        if self.kind != "synthetic":  # all weights are 1
            return min(int(number * len(self)), len(self) - 1)
        if self._sums is None:
            rows = np.searchsorted(self._ends, self._order, side="right")
            self._sums = np.cumsum(self._row_weights()[rows])
        return min(int(np.searchsorted(self._sums, number * self._sums[-1], side="right")), len(self) - 1)

    def _row(self, place: int) -> tuple[int, int]:
        """Give the row of the listing that makes the goal at a place, and the goal's number in it."""
        row = bisect.bisect_right(self._ends, place)
        return row, place - (self._ends[row - 1] if row else 0)

    def _row_weights(self) -> np.ndarray:
        """The weight of each listing's goals: the mean inverse frequency of its attributes."""
        if self._weights is None:
            counts: Counter[str] = Counter()
            asked: list[tuple[str, ...]] = []
            for begin in range(0, len(self._numbers), _BATCH):
                for product in self._catalogue.many(self._numbers[begin : begin + _BATCH]):
                    asked.append(product.synthetic.attributes if product.synthetic else ())
            before = 0
            for attributes, end in zip(asked, self._ends, strict=True):
                for attribute in attributes:
                    counts[attribute] += end - before
                before = end
            means = [sum(1 / counts[name] for name in names) / max(len(names), 1) for names in asked]
            self._weights = np.array(means)
        return self._weights

    def _build(self, place: int) -> Goal:
        row, rest = self._row(place)
        product = self._catalogue.at(self._numbers[row])
        if self.kind == "human":
            asked = [instruction for instruction in product.human if instruction.attributes][rest]
            pairs = tuple(("", value) for value in asked.options)
            return make_goal(product, asked, pairs, seed=self.seed, names=(product.asin, rest))
        if self.kind == "color_class":
            return make_goal(product, product.by_class[rest], seed=self.seed, names=(product.asin, "class", rest))
        asked = product.synthetic or Instruction("", ())
        chosen = []
        for option in sorted(product.options, reverse=True):  # the last name varies fastest, as in the original
            rest, which = divmod(rest, len(option.values))
            chosen.append((option.name, option.values[which]))
        pairs = tuple(reversed(chosen))
        return make_goal(product, asked, pairs, seed=self.seed, names=(product.asin,))


def make_goal(
    product: Product,
    asked: Instruction,
    options: tuple[tuple[str, str], ...] = (),
    *,
    seed: int = 0,
    names: tuple[object, ...] = (),
) -> Goal:
    """Make a goal out of a listing and what is asked about it.

    Args:
        product: the listing.
        asked: text and attributes, and perhaps a class of colours.
        options: the `(name, value)` pairs to choose.
        seed: decides the price limit.
        names: what tells this goal's draws from others'.
    """
    limit = price_limit(price_of(product, seed), seed, *names)
    text = asked.text.strip().strip(".")
    named = ", and ".join(f"{name}: {value}" for name, value in options if name)
    if named:
        text += f" with {named}"
    if asked.color_class:
        text += f" in a {asked.color_class} color"
    if limit < NO_LIMIT:
        text += f", and price lower than {limit:.2f} dollars"
    return Goal(
        text=text,
        asin=product.asin,
        title=product.title,
        category=product.category,
        query=product.query,
        product_category=product.product_category,
        attributes=asked.attributes,
        options=options,
        color_class=asked.color_class,
        price_upper=limit,
    )

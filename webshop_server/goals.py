"""The goals of a catalogue.

* `Goal` - one task: the instruction and the inputs of the score
* `GoalSet` - the numbered goals of a catalogue
* `SPLITS` - the published split
* `draw_uniform` - a number in [0, 1) as a hash of a seed and names
"""

from __future__ import annotations

import bisect
import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from webshop_server.catalogue import KINDS, Catalogue
from webshop_server.checks import check_choice, check_integer
from webshop_server.errors import ArgumentError
from webshop_server.product import UNKNOWN_PRICE, Instruction, Product

NO_LIMIT = 1_000_000.0
"""The price limit of a goal without one, in dollars, as in the original."""

MAX_GOALS = 100_000
"""The maximum number of goals of a catalogue; the first listings that reach it are used."""

SPLITS = {"test": (0, 500), "eval": (500, 1500), "train": (1500, None)}
"""The published split: first and last goal number of each part, the last one excluded."""

BROWSE = "browse"
"""The kind of the one goal of a catalogue without instructions."""

_BATCH = 500
_SHUFFLE_SEED = 233  # the original's: with its data and human goals, the goal numbers are equal
_LIMITS = tuple(10.0 * i for i in range(1, 100))


def draw_uniform(seed: int, *names: object) -> float:
    """Return a number in [0, 1), a hash of the arguments.

    Example:
        >>> draw_uniform(0, "price", "B01") == draw_uniform(0, "price", "B01") != draw_uniform(1, "price", "B01")
        True
    """
    text = "\x1f".join(str(name) for name in (seed, *names))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 9007199254740992.0


def resolve_price(product: Product, seed: int) -> float:
    """Return the price of a listing, in dollars; of a price range, a seeded value in it."""
    if not product.prices:
        return UNKNOWN_PRICE
    if len(product.prices) == 1:
        return product.prices[0]
    low, high = product.prices[:2]
    return low + (high - low) * draw_uniform(seed, "price", product.asin)


def draw_price_limit(price: float, seed: int, *names: object) -> float:
    """Draw a goal's price limit: the larger of two of the next four multiples of 10 above the price.

    Returns:
        The limit in dollars, or `NO_LIMIT` where fewer than two of 10, 20, ..., 990 lie above the price.
    """
    above = [limit for limit in _LIMITS if limit > price][:4]
    if len(above) < 2:
        return NO_LIMIT
    pairs = [max(i, j) for i in range(len(above)) for j in range(i)]
    return above[pairs[int(draw_uniform(seed, "limit", *names) * len(pairs))]]


@dataclass(frozen=True)
class Goal:
    """One task.

    Args:
        text: the instruction.
        asin: the listing that it was written for; other listings can have the same score.
        title: that listing's title.
        category: its department.
        query: its query.
        product_category: its category path.
        attributes: the required attributes.
        options: the required options, as `(name, value)` pairs; the name may be "".
        color_class: a class of colours, such as `warm`, of which one is required; counts as one option.
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

    def __deepcopy__(self, memo: dict[int, object]) -> Goal:
        return self  # frozen, hence shared

    def to_dict(self) -> dict[str, object]:
        """Return the goal as plain data with the original's keys, for logs."""
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


_BROWSE_GOAL = Goal(
    "Browse the shop: its catalogue has no instructions, and a purchase scores 0",
    asin="",
    title="",
    category="",
    query="",
    product_category="",
    attributes=(),
    price_upper=-1.0,  # which no price is within, so that every purchase scores 0
)


class GoalSet(Sequence[Goal]):
    """The numbered goals of a catalogue, in the original's shuffled order.

    Goals are created on access: a million of them need the memory of a list of integers.

    Args:
        catalogue: the listings.
        kind: `synthetic` (one goal for each combination of options), `human`, or `color_class` (a colour
            of a class such as `warm` is required), or `browse` (one goal, which needs no instruction).
        seed: seeds prices in ranges and price limits.
        limit: stop at the listing that reaches this number of goals.

    Raises:
        ArgumentError: the kind is unknown, or the catalogue has no goal of this kind.
    """

    def __init__(self, catalogue: Catalogue, kind: str = "synthetic", *, seed: int = 0, limit: int = MAX_GOALS) -> None:
        self.kind = check_choice("kind", kind, (*KINDS, BROWSE))
        self.seed = seed
        self._catalogue = catalogue
        counts = catalogue.goal_counts(kind, limit) if kind != BROWSE else [(0, 1)]
        if not counts:
            raise ArgumentError(f"`{catalogue.path}` should have {kind} instructions. It has none")
        self._numbers = [number for number, _ in counts]
        self._ends = np.cumsum([count for _, count in counts]).tolist()
        self._order = list(range(self._ends[-1]))
        random.Random(_SHUFFLE_SEED).shuffle(self._order)
        self._sums: NDArray[np.float64] | None = None
        self._weights: NDArray[np.float64] | None = None
        self._make = lru_cache(maxsize=4096)(self._build)

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Goal: ...

    @overload
    def __getitem__(self, index: slice) -> list[Goal]: ...

    def __getitem__(self, index: int | slice) -> Goal | list[Goal]:
        """Return the goal of a number, or a list of goals for a slice.

        Raises:
            ArgumentError: no goal has this number.
        """
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._make(self._order[check_integer("goal_index", index, 0, len(self) - 1)])

    def __iter__(self) -> Iterator[Goal]:
        return (self[i] for i in range(len(self)))

    def split(self, name: str) -> range:
        """Return the goal numbers of a part of the published split.

        Raises:
            ArgumentError: the part is unknown.
        """
        start, stop = SPLITS[check_choice("split", name, SPLITS)]
        return range(min(start, len(self)), len(self) if stop is None else min(stop, len(self)))

    def weight(self, index: int) -> float:
        """Return the weight of a goal in `pick`: the mean inverse frequency of its attributes; 1 unless synthetic."""
        if self.kind != "synthetic":
            return 1.0
        return float(self._row_weights()[self._row(self._order[index])[0]])

    def pick(self, number: float) -> int:
        """Map a uniform number in [0, 1) to a goal number, by the goals' weights."""
        if self.kind != "synthetic":  # all weights are 1
            return min(int(number * len(self)), len(self) - 1)
        if self._sums is None:
            rows = np.searchsorted(self._ends, self._order, side="right")
            self._sums = np.cumsum(self._row_weights()[rows])
        return min(int(np.searchsorted(self._sums, number * self._sums[-1], side="right")), len(self) - 1)

    def _row(self, place: int) -> tuple[int, int]:
        """Return the row of a goal's listing, and the goal's number within the listing."""
        row = bisect.bisect_right(self._ends, place)
        return row, place - (self._ends[row - 1] if row else 0)

    def _row_weights(self) -> NDArray[np.float64]:
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
        if self.kind == BROWSE:
            return _BROWSE_GOAL
        row, rest = self._row(place)
        product = self._catalogue.at(self._numbers[row])
        if self.kind == "human":
            instruction = [instruction for instruction in product.human if instruction.attributes][rest]
            pairs = tuple(("", value) for value in instruction.options)
            return make_goal(product, instruction, pairs, seed=self.seed, names=(product.asin, rest))
        if self.kind == "color_class":
            return make_goal(product, product.by_class[rest], seed=self.seed, names=(product.asin, "class", rest))
        instruction = product.synthetic or Instruction("", ())
        chosen = []
        for option in sorted(product.options, reverse=True):  # the last name varies fastest, as in the original
            rest, which = divmod(rest, len(option.values))
            chosen.append((option.name, option.values[which]))
        pairs = tuple(reversed(chosen))
        return make_goal(product, instruction, pairs, seed=self.seed, names=(product.asin,))


def make_goal(
    product: Product,
    instruction: Instruction,
    options: tuple[tuple[str, str], ...] = (),
    *,
    seed: int = 0,
    names: tuple[object, ...] = (),
) -> Goal:
    """Make a goal from a listing and an instruction.

    Args:
        product: the listing.
        instruction: text, attributes and optional colour class.
        options: the required options, as `(name, value)` pairs.
        seed: seeds the price limit.
        names: keys of the random number of this goal.
    """
    limit = draw_price_limit(resolve_price(product, seed), seed, *names)
    text = instruction.text.strip().strip(".")
    named = ", and ".join(f"{name}: {value}" for name, value in options if name)
    if named:
        text += f" with {named}"
    if instruction.color_class:
        text += f" in a {instruction.color_class} color"
    if limit < NO_LIMIT:
        text += f", and price lower than {limit:.2f} dollars"
    return Goal(
        text=text,
        asin=product.asin,
        title=product.title,
        category=product.category,
        query=product.query,
        product_category=product.product_category,
        attributes=instruction.attributes,
        options=options,
        color_class=instruction.color_class,
        price_upper=limit,
    )

"""The goals of a catalogue."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from webshop_server.catalogue import KINDS
from webshop_server.errors import ArgumentError, check_choice, check_integer
from webshop_server.index import CatalogueIndex
from webshop_server.index_builder import GoalTable
from webshop_server.product import UNKNOWN_PRICE, Instruction, Product

NO_LIMIT = 1_000_000.0
"""The price limit of a goal without one, in dollars, as in the original."""

MAX_SHUFFLED = 100_000
"""The largest number of goals in the original's order, a shuffled list; more are permuted without a list."""

SPLITS = {"test": (0, 500), "eval": (500, 1500), "train": (1500, None)}
"""The published split: first and last goal number of each part, the last one excluded."""

BROWSE = "browse"
"""The kind of the one goal of a catalogue without instructions."""

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


_BROWSE_TABLE = GoalTable(np.zeros(1, np.int32), np.ones(1, np.int64), np.zeros(0))


_ROUNDS = 4


class Permutation:
    """A pseudorandom permutation of the numbers 0 to size - 1, computed on access.

    It is a Feistel network (Luby and Rackoff, 1988) over the next power of four; a result outside the range is
    permuted again until it is inside ("cycle walking", Black and Rogaway, 2002).

    Args:
        size: the number of elements, at least 1.
        seed: selects the permutation.

    Example:
        >>> order = Permutation(1000, seed=7)
        >>> sorted(order[i] for i in range(1000)) == list(range(1000)), order.index(order[3])
        (True, 3)
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._bits = max((size - 1).bit_length() + 1, 2) // 2  # of each half
        self._mask = (1 << self._bits) - 1
        self._keys = [f"{seed}/{size}/{number}".encode() for number in range(_ROUNDS)]

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position: int) -> int:
        """Return the element at a position, 0 to size - 1."""
        while True:
            left, right = position >> self._bits, position & self._mask
            for key in self._keys:
                left, right = right, left ^ self._hash(key, right)
            position = left << self._bits | right
            if position < self._size:
                return position

    def index(self, element: int) -> int:
        """Return the position of an element."""
        while True:
            left, right = element >> self._bits, element & self._mask
            for key in reversed(self._keys):
                left, right = right ^ self._hash(key, left), left
            element = left << self._bits | right
            if element < self._size:
                return element

    def _hash(self, key: bytes, half: int) -> int:
        digest = hashlib.blake2b(half.to_bytes(8, "big"), key=key, digest_size=8).digest()
        return int.from_bytes(digest, "big") & self._mask


class GoalSet(Sequence[Goal]):
    """The numbered goals of a catalogue, in the original's shuffled order up to `MAX_SHUFFLED`, else permuted.

    Goals are created on access; the numbers of goals of all listings are mapped from the index, not kept in memory.

    Args:
        index: the catalogue's index.
        kind: `synthetic` (one goal for each combination of options), `human`, or `color_class` (a colour
            of a class such as `warm` is required), or `browse` (one goal, which needs no instruction).
        seed: seeds prices in ranges and price limits.

    Raises:
        ArgumentError: the kind is unknown, or the catalogue has no goal of this kind.
    """

    def __init__(self, index: CatalogueIndex, kind: str = "synthetic", *, seed: int = 0) -> None:
        self.kind = check_choice("kind", kind, (*KINDS, BROWSE))
        self.seed = seed
        self._catalogue = index.catalogue
        self._table = index.goal_table(kind) if kind != BROWSE else _BROWSE_TABLE
        if not len(self._table.ends):
            raise ArgumentError(f"`{self._catalogue.path}` should have {kind} instructions. It has none")
        size = int(self._table.ends[-1])
        self._order: Permutation | list[int] = Permutation(size, _SHUFFLE_SEED)
        if size <= MAX_SHUFFLED:
            self._order = list(range(size))
            random.Random(_SHUFFLE_SEED).shuffle(self._order)
        self._sums: NDArray[np.float64] | None = None
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
        return float(self._table.weights[self._row(self._order[index])[0]])

    def pick(self, number: float) -> int:
        """Map a uniform number in [0, 1) to a goal number, by the goals' weights."""
        if self.kind != "synthetic":  # all weights are 1
            return min(int(number * len(self)), len(self) - 1)
        _, ends, weights = self._table
        if isinstance(self._order, list):
            if self._sums is None:
                self._sums = np.cumsum(weights[np.searchsorted(ends, self._order, side="right")])
            return min(int(np.searchsorted(self._sums, number * self._sums[-1], side="right")), len(self) - 1)
        if self._sums is None:
            self._sums = np.cumsum(weights * np.diff(ends, prepend=0))
        wanted = number * float(self._sums[-1])
        row = min(int(np.searchsorted(self._sums, wanted, side="right")), len(ends) - 1)
        first, before = (int(ends[row - 1]), float(self._sums[row - 1])) if row else (0, 0.0)
        place = first + int((wanted - before) / weights[row])
        return self._order.index(min(place, int(ends[row]) - 1))

    def _row(self, place: int) -> tuple[int, int]:
        """Return the row of a goal's listing, and the goal's number within the listing."""
        ends = self._table.ends
        row = int(np.searchsorted(ends, place, side="right"))
        return row, place - (int(ends[row - 1]) if row else 0)

    def _build(self, place: int) -> Goal:
        if self.kind == BROWSE:
            return _BROWSE_GOAL
        row, rest = self._row(place)
        product = self._catalogue.at(int(self._table.numbers[row]))
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
        text=text.strip(),
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

"""Random numbers with random access: blocks, each with a generator of its own.

* `RandomStream` - the source of a drift's random numbers; gives independent generators by purpose and place
* `Purpose` - what a generator is for
* `refuse_far` - refuses a question that would take too long
* `Blocks` - a long chain, cut into blocks that are computed on demand; the state at the end of each block is stored
* `UniformStream` - one uniform number a tick
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from enum import IntEnum
from typing import Generic, TypeVar

import numpy as np

from drift_envs.errors import ArgumentError

DRIFT_KEY = 0xD21F
"""Keeps the drifts' streams apart from those of the environment, which has the same seed."""

BASE_KEY = 0xBA5E
"""Stands for the base in the place where drifts have their index."""

MOST_EVENTS = 100_000_000
"""Maximum number of random events before a tick that is asked for; more would take long."""

_SLACK = 1_000_000  # those up to the end of the last block, and what random gaps add to the mean

_FIRST_BLOCK = 256
_GROWING = 8  # blocks double until they hold 65,536 events: a short run draws little, a long one few blocks
_LARGEST_BLOCK = _FIRST_BLOCK << _GROWING
_GROWN = _LARGEST_BLOCK - _FIRST_BLOCK  # the events in all blocks that are smaller than the largest
_KEPT = 4
_FAR = 24  # more than a million events lie before this block
_COINS = 1024

Block = TypeVar("Block")
Carry = TypeVar("Carry")


class Purpose(IntEnum):
    """What a generator is for; part of its key, so that one purpose can't disturb another."""

    TIMES = 0
    WALK = 1
    CHOICE = 2
    COIN = 3
    DRAW = 4
    JITTER = 5


class RandomStream:
    """The source of the random numbers of one drift, or of the base.

    Args:
        seed: the seed of the schedule or of the environment.
        key: the index of the drift, or `BASE_KEY`.

    Example:
        >>> stream = RandomStream(7, 0)
        >>> stream.generator(Purpose.WALK, 3).normal() == stream.generator(Purpose.WALK, 3).normal()
        True
    """

    def __init__(self, seed: int, key: int) -> None:
        self._entropy = (seed, DRIFT_KEY, key)

    def generator(self, purpose: Purpose, *place: int | str) -> np.random.Generator:
        """The generator of that purpose and place; texts stand for themselves, not for their position."""
        numbers = (zlib.crc32(part.encode()) if isinstance(part, str) else part for part in place)
        return np.random.default_rng(np.random.SeedSequence(self._entropy, spawn_key=(purpose, *numbers)))


class Blocks(ABC, Generic[Block, Carry]):
    """A long chain, cut into blocks that are computed on demand.

    A block depends on its number and on what is carried over from the block before. What is carried is
    remembered for every block, the last few blocks are kept, so that a chain of ten million events
    takes a few megabytes. Of far blocks what is carried on is computed first, where possible by a
    single draw, and their events once they are wanted, given what was carried on.

    Args:
        first: what is carried into the first block.
    """

    def __init__(self, first: Carry) -> None:
        self.carries: list[Carry] = [first]
        self._kept: OrderedDict[int, Block] = OrderedDict()

    @abstractmethod
    def _build(self, number: int, size: int, carry: Carry) -> tuple[Block, Carry]:
        """The block of that number, and what is carried into the next."""

    @abstractmethod
    def _leap(self, number: int, size: int, carry: Carry) -> Carry:
        """What a far block of that number carries into the next; its events are not kept."""

    @staticmethod
    def is_far(number: int) -> bool:
        """Whether a block is so far that its events are drawn only when they are wanted."""
        return number >= _FAR

    def block(self, number: int) -> Block:
        """The block of that number."""
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        refuse_far(self.offset(number))
        while len(self.carries) <= number:
            self.extend()
        if number not in self._kept:
            self._keep(number, self._build(number, self.size(number), self.carries[number])[0])
        return self._kept[number]

    def extend(self) -> None:
        """Compute one more block at the end of the chain.

        Raises:
            ArgumentError: if the chain has become too long.
        """
        number = len(self.carries) - 1
        refuse_far(self.offset(number))
        place = number, self.size(number), self.carries[number]
        if self.is_far(number):
            self.carries.append(self._leap(*place))
        else:
            block, carry = self._build(*place)
            self._keep(number, block)
            self.carries.append(carry)

    def _keep(self, number: int, block: Block) -> None:
        self._kept[number] = block
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    @staticmethod
    def size(number: int) -> int:
        """How many events a block holds."""
        return _FIRST_BLOCK << min(number, _GROWING)

    @staticmethod
    def offset(number: int) -> int:
        """How many events lie before a block.

        Example:
            >>> [Blocks.offset(number) for number in (0, 1, 2, 8, 9)]
            [0, 256, 768, 65280, 130816]
        """
        if number <= _GROWING:
            return _FIRST_BLOCK * ((1 << number) - 1)
        return _GROWN + (number - _GROWING) * _LARGEST_BLOCK

    @staticmethod
    def number(event: int) -> int:
        """The number of the block that holds an event.

        Example:
            >>> [Blocks.number(event) for event in (0, 255, 256, 65279, 65280, 130816)]
            [0, 0, 1, 7, 8, 9]
        """
        if event < _GROWN:
            return (event // _FIRST_BLOCK + 1).bit_length() - 1
        return _GROWING + (event - _GROWN) // _LARGEST_BLOCK

    def gather(self, events: np.ndarray, pick: Callable[[Block], np.ndarray]) -> np.ndarray:
        """One number for each event.

        Args:
            events: indices of events, at least one, all non-negative.
            pick: takes the array of the wanted numbers out of a block.

        Returns:
            The numbers, in the order of `events`.
        """
        low, high = self.number(int(events.min())), self.number(int(events.max()))
        if low == high:
            picked: np.ndarray = pick(self.block(low))[events - self.offset(low)]
            return picked
        found: np.ndarray | None = None
        for number in range(low, high + 1):
            offset = self.offset(number)
            mask = (events >= offset) & (events < offset + self.size(number))
            if mask.any():
                numbers = pick(self.block(number))
                if found is None:
                    found = np.zeros(events.shape, numbers.dtype)
                found[mask] = numbers[events[mask] - offset]
        return events if found is None else found


def refuse_far(events: float) -> None:
    """Refuse ticks before which more events lie than can be drawn in reasonable time.

    Raises:
        ArgumentError: if there are more than `MOST_EVENTS`.
    """
    if events > MOST_EVENTS + _SLACK:
        raise ArgumentError(
            f"`tick` should have at most {MOST_EVENTS} random events before it. Received about {events:.3g}"
        )


class UniformStream:
    """One uniform number in [0, 1) a tick, a pure function of stream and tick.

    Args:
        stream: the source of random numbers.
        purpose: what the numbers are for; those of another purpose are independent.

    Example:
        >>> coins = UniformStream(RandomStream(0, 0))
        >>> both = coins.at(np.array([3, 5000]))
        >>> bool(both[1] == coins.at(np.array([5000]))[0])
        True
    """

    def __init__(self, stream: RandomStream, purpose: Purpose = Purpose.COIN) -> None:
        self._stream, self._purpose = stream, purpose
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()

    def at(self, ticks: np.ndarray) -> np.ndarray:
        """The numbers of these ticks."""
        numbers = ticks // _COINS
        found = np.empty(ticks.shape)
        for number in np.unique(numbers).tolist():
            mask = numbers == number
            found[mask] = self._block(number)[ticks[mask] - number * _COINS]
        return found

    def _block(self, number: int) -> np.ndarray:
        if number not in self._kept:
            self._kept[number] = self._stream.generator(self._purpose, number).random(_COINS)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return self._kept[number]

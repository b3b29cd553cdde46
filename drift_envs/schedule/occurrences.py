"""WHEN and HOW: the ticks at which the occurrences of a drift start and end, and how much of each holds.

An occurrence that `for` ends is called a run: random ones that overlap join to one run. Without `for`, every occurrence
is a run that never ends, and they accumulate. Random times have random access: they come in blocks, each with a
generator of its own.
"""

from __future__ import annotations

import math
import zlib
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from drift_envs.errors import ArgumentError
from drift_envs.schedule.model import MAX_TICK, Drift, Steps

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

BEYOND = 4 * MAX_TICK
"""A tick after every tick there is, small enough that sums with it are exact."""

_SIGMOID_SLOPE = 12.0
_EXPONENT = 5.0


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


class TickWindow(NamedTuple):
    """Where ticks stand in the run that holds them.

    Args:
        run: the index of the run, -1 where there is none.
        start: the tick at which it starts; meaningless where there is none.
        end: the tick at which it ends, `BEYOND` where it is known to go on past the next start.
    """

    run: np.ndarray
    start: np.ndarray
    end: np.ndarray


class Occurrences(ABC):
    """When a drift happens.

    Args:
        first: the tick of the first occurrence; of random ones, the first tick at which one may start.
        duration: how many ticks each occurrence lasts, or `None` if it stays.
    """

    density: float
    """How many occurrences a tick there are in the long run; 0 for a single one."""

    def __init__(self, first: int, duration: int | None) -> None:
        self.first, self.duration = first, duration

    @abstractmethod
    def count(self, ticks: np.ndarray) -> np.ndarray:
        """How many occurrences have started at or before each tick (joined ones counted one by one)."""

    @abstractmethod
    def start(self, runs: np.ndarray) -> np.ndarray:
        """The ticks at which these runs start; `BEYOND` or later for runs that never do."""

    @abstractmethod
    def after(self, tick: int) -> int:
        """The first start after a tick; `BEYOND` if there is none."""

    @abstractmethod
    def window(self, ticks: np.ndarray) -> TickWindow:
        """Where the ticks stand in their runs, which `duration` ends."""

    @abstractmethod
    def bounds(self, low: int, high: int) -> np.ndarray:
        """The ticks in [low, high) at which a run starts or ends, in any order, some of them twice."""

    def latest(self, ticks: np.ndarray) -> np.ndarray:
        """The start of the run that holds each tick, -1 where there is none."""
        if self.duration is not None:
            window = self.window(ticks)
            return np.where(window.run >= 0, window.start, -1)
        count = self.count(ticks)
        found = np.full(ticks.shape, -1, np.int64)
        some = count > 0
        if some.any():
            found[some] = self.start(count[some] - 1)
        return found


class RegularOccurrences(Occurrences):
    """Occurrences at `first`, `first + period` and so on, or once.

    Example:
        >>> weekends = RegularOccurrences(first=7, period=7, duration=2)
        >>> weekends.window(np.array([6, 7, 8, 9, 14])).run
        array([-1,  0,  0, -1,  1])
        >>> weekends.bounds(0, 20)
        array([ 7, 14,  9, 16])
    """

    def __init__(self, first: int, period: int | None, duration: int | None) -> None:
        super().__init__(first, duration)
        self._once = period is None
        self._period = BEYOND if period is None else period
        self.density = 0.0 if period is None else 1 / period

    def count(self, ticks: np.ndarray) -> np.ndarray:
        """How many occurrences have started at or before each tick."""
        if self._once:
            return (ticks >= self.first).astype(np.int64)
        counted: np.ndarray = np.maximum((ticks - self.first) // self._period + 1, 0)
        return counted

    def start(self, runs: np.ndarray) -> np.ndarray:
        """The ticks at which these occurrences start."""
        return self.first + runs * self._period

    def after(self, tick: int) -> int:
        """The first start after a tick."""
        if tick < self.first:
            return self.first
        return BEYOND if self._once else tick + self._period - (tick - self.first) % self._period

    def window(self, ticks: np.ndarray) -> TickWindow:
        """Where the ticks stand in their occurrences."""
        run = self.count(ticks) - 1
        start = self.start(np.maximum(run, 0))
        end = start + (BEYOND if self.duration is None else self.duration)
        return TickWindow(np.where((run >= 0) & (ticks < end), run, -1), start, end)

    def bounds(self, low: int, high: int) -> np.ndarray:
        """The ticks in [low, high) at which an occurrence starts or ends."""
        starts = self._starts(low, high)
        if self.duration is None:
            return starts
        ends = self._starts(low - self.duration, high - self.duration) + self.duration
        return np.concatenate((starts, ends))

    def _starts(self, low: int, high: int) -> np.ndarray:
        counts = self.count(np.array([low - 1, high - 1], np.int64))
        return self.start(np.arange(counts[0], counts[1]))


class JitteredOccurrences(RegularOccurrences):
    """Occurrences at `first`, `first + period` and so on, each up to `jitter` ticks earlier or later.

    A period is longer than twice the jitter, so that occurrences keep their order and at most one of them may have
    started or not at a tick.

    Args:
        stream: the source of the random numbers, one an occurrence.
        first: the middle of the ticks at which the first occurrence may start.
        period: the ticks between two middles.
        duration: how many ticks each occurrence lasts, or `None` if it stays.
        jitter: the most ticks by which a start is moved.

    Example:
        >>> tides = JitteredOccurrences(RandomStream(0, 0), first=20, period=20, duration=None, jitter=5)
        >>> starts = tides.start(np.arange(4))
        >>> abs(starts - [20, 40, 60, 80]).max() <= 5, tides.count(starts).tolist(), tides.count(starts - 1).tolist()
        (np.True_, [1, 2, 3, 4], [0, 1, 2, 3])
    """

    def __init__(self, stream: RandomStream, first: int, period: int, duration: int | None, jitter: int) -> None:
        super().__init__(first, period, duration)
        self._middle, self._jitter = first, jitter
        self.first = first - jitter
        self._uniform = UniformStream(stream, Purpose.JITTER)

    def count(self, ticks: np.ndarray) -> np.ndarray:
        """How many occurrences have started at or before each tick."""
        last = (ticks - self.first) // self._period  # all before it have started
        return np.where(last < 0, 0, last + (self.start(np.maximum(last, 0)) <= ticks))

    def start(self, runs: np.ndarray) -> np.ndarray:
        """The ticks at which these occurrences start."""
        moved = np.floor(self._uniform.at(runs) * (2 * self._jitter + 1)).astype(np.int64) - self._jitter
        starts: np.ndarray = self._middle + runs * self._period + moved
        return starts

    def after(self, tick: int) -> int:
        """The first start after a tick."""
        return int(self.start(self.count(np.array([tick], np.int64)))[0])


class _Carry(NamedTuple):
    """What a block of random events hands to the next: where it stopped."""

    tick: int
    runs: int
    run_start: int


class _Events(NamedTuple):
    """A block of random events: ticks, the index of the run of each, and the tick at which that starts."""

    ticks: np.ndarray
    runs: np.ndarray
    run_starts: np.ndarray


class RandomOccurrences(Occurrences):
    """Occurrences that start at each tick from `first` on with probability `rate`.

    The gaps between them are geometric, so they are drawn instead of one coin a tick: a question costs
    by the events before it, not by the ticks.

    Example:
        >>> storms = RandomOccurrences(RandomStream(1, 0), first=10, rate=1.0, duration=None)
        >>> storms.count(np.array([9, 10, 11]))
        array([0, 1, 2])
    """

    def __init__(self, stream: RandomStream, first: int, rate: float, duration: int | None) -> None:
        super().__init__(first, duration)
        self._events = _EventBlocks(stream, first, rate, duration)
        self.density = rate

    def count(self, ticks: np.ndarray) -> np.ndarray:
        """How many occurrences have started at or before each tick (joined ones counted one by one)."""
        return self._events.count(ticks)

    def start(self, runs: np.ndarray) -> np.ndarray:
        """The ticks at which these runs start."""
        if self.duration is None:
            return self._events.ticks(runs)
        return np.array([self._events.start_of_run(run) for run in runs.tolist()], np.int64)

    def after(self, tick: int) -> int:
        """The first start after a tick."""
        return int(self._events.ticks(self.count(np.array([tick])))[0])

    def window(self, ticks: np.ndarray) -> TickWindow:
        """Where the ticks stand in their runs."""
        duration = BEYOND if self.duration is None else self.duration
        count = self.count(ticks)
        event = np.maximum(count - 1, 0)
        end = self._events.ticks(event) + duration
        goes_on = self._events.ticks(event + 1) < end
        held = (count > 0) & (ticks < end)
        run = np.where(held, self._events.runs(event), -1)
        return TickWindow(run, self._events.run_starts(event), np.where(goes_on, BEYOND, end))

    def bounds(self, low: int, high: int) -> np.ndarray:
        """The ticks in [low, high) at which a run starts or ends."""
        events, ticks = self._between(low, high)
        if self.duration is None:
            return ticks
        starts = ticks[self._events.run_starts(events) == ticks] if len(events) else ticks
        events, ticks = self._between(low - self.duration, high - self.duration)
        if len(events):  # an occurrence that the next one joins has no end
            ticks = ticks[self._events.ticks(events + 1) - ticks >= self.duration]
        return np.concatenate((starts, ticks + self.duration))

    def _between(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """The indices and the ticks of the events in [low, high)."""
        counts = self.count(np.array([low - 1, high - 1], np.int64))
        events = np.arange(counts[0], counts[1])
        return events, self._events.ticks(events) if len(events) else events


class _EventBlocks(Blocks[_Events, _Carry]):
    """The chain of random events."""

    def __init__(self, stream: RandomStream, first: int, rate: float, duration: int | None) -> None:
        super().__init__(_Carry(first - 1, -1, -1))
        self._stream, self._first, self._rate = stream, first, rate
        self._duration = 0 if duration is None else duration
        self._joins = self._duration > 1  # whether a run may hold several events
        self._ends = [first - 1]  # the tick of the last event before each block

    def ticks(self, events: np.ndarray) -> np.ndarray:
        return self.gather(events, lambda block: block.ticks)

    def runs(self, events: np.ndarray) -> np.ndarray:
        return self.gather(events, lambda block: block.runs)

    def run_starts(self, events: np.ndarray) -> np.ndarray:
        return self.gather(events, lambda block: block.run_starts)

    def count(self, ticks: np.ndarray) -> np.ndarray:
        low, high = int(ticks.min()), int(ticks.max())
        refuse_far((high - self._first) * self._rate)
        while self._ends[-1] <= high:
            self.extend()
        first, last = (max(bisect_right(self._ends, tick) - 1, 0) for tick in (low, high))
        if first == last:
            counted: np.ndarray = self.offset(first) + np.searchsorted(self.block(first).ticks, ticks, "right")
            return counted
        counted = np.zeros(ticks.shape, np.int64)
        for number in range(first, last + 1):
            mask = ticks >= self._ends[number]
            counted[mask] = self.offset(number) + np.searchsorted(self.block(number).ticks, ticks[mask], "right")
        return counted

    def start_of_run(self, run: int) -> int:
        while self.carries[-1].runs < run:
            self.extend()
        number = bisect_right(self.carries, run - 1, key=lambda carry: carry.runs) - 1
        block = self.block(max(number, 0))
        return int(block.run_starts[np.searchsorted(block.runs, run)])

    def extend(self) -> None:
        super().extend()
        self._ends.append(self.carries[-1].tick)

    def _draw_span(self, generator: np.random.Generator, size: int) -> int:
        """The sum of so many geometric gaps."""
        return size + int(generator.negative_binomial(size, self._rate))

    def _leap(self, number: int, size: int, carry: _Carry) -> _Carry:
        generator = self._stream.generator(Purpose.TIMES, number)
        if not self._joins:
            last = carry.tick + self._draw_span(generator, size)
            return _Carry(last, carry.runs + size, last)
        gaps = generator.geometric(self._rate, size)  # where the last run begins depends on all of them
        begins = np.flatnonzero(gaps >= self._duration)
        start = carry.tick + int(gaps[: begins[-1] + 1].sum()) if len(begins) else carry.run_start
        return _Carry(carry.tick + int(gaps.sum()), carry.runs + len(begins), start)

    def _build(self, number: int, size: int, carry: _Carry) -> tuple[_Events, _Carry]:
        generator = self._stream.generator(Purpose.TIMES, number)
        if self._joins or not self.is_far(number):
            gaps = generator.geometric(self._rate, size)
            ticks = np.cumsum(gaps) + carry.tick
        else:  # given the last one, the others are equally likely to lie anywhere before it
            ticks = np.full(size, self._draw_span(generator, size))
            ticks[:-1] = np.sort(generator.choice(ticks[-1] - 1, size - 1, replace=False, shuffle=False)) + 1
            ticks += carry.tick
        if not self._joins:
            runs = np.arange(size) + carry.runs + 1
            return _Events(ticks, runs, ticks), _Carry(int(ticks[-1]), int(runs[-1]), int(ticks[-1]))
        begins = gaps >= self._duration
        if carry.runs < 0:
            begins[0] = True
        runs = np.cumsum(begins) + carry.runs
        run_starts = np.maximum.accumulate(np.where(begins, ticks, carry.run_start))
        return _Events(ticks, runs, run_starts), _Carry(int(ticks[-1]), int(runs[-1]), int(run_starts[-1]))


def occurrences_of(drift: Drift, stream: RandomStream) -> Occurrences:
    """The occurrences of a drift.

    Args:
        drift: the drift.
        stream: the source of its random numbers.

    Example:
        >>> drift = Drift.model_validate({"name": "tide", "every": 5, "at": 2, "set": {"slip": 0.5}})
        >>> occurrences_of(drift, RandomStream(0, 0)).after(2)
        7
    """
    if drift.rate is not None:
        return RandomOccurrences(stream, drift.at or 0, drift.rate, drift.duration)
    first = (drift.at if drift.at is not None else drift.every) or 0
    if not drift.jitter:
        return RegularOccurrences(first, drift.every, drift.duration)
    if drift.every is not None:
        return JitteredOccurrences(stream, first, drift.every, drift.duration, drift.jitter)
    alone = JitteredOccurrences(stream, first, BEYOND, drift.duration, drift.jitter)
    return RegularOccurrences(int(alone.start(np.zeros(1, np.int64))[0]), None, drift.duration)


def weight(progress: np.ndarray, curve: str | Steps) -> np.ndarray:
    """The weight of the new value along a ramp.

    Args:
        progress: the elapsed share u of the ramp; values outside of [0, 1] are cut.
        curve: `linear` (u), `sigmoid` (logistic(12 (u - .5)), rescaled to reach 0 and 1),
            `exponential` ((1 - e^-5u) / (1 - e^-5)) or `Steps` (floor(u m) / m).

    Returns:
        Weights in [0, 1], exactly 0 at u = 0 and exactly 1 at u = 1.

    Example:
        >>> weight(np.array([0.0, 0.5, 1.0]), "sigmoid")
        array([0. , 0.5, 1. ])
        >>> weight(np.array([0.3, 0.5, 1.0]), Steps(steps=2))
        array([0. , 0.5, 1. ])
    """
    u: np.ndarray = np.clip(progress, 0.0, 1.0)
    if isinstance(curve, Steps):
        risen: np.ndarray = np.floor(u * curve.steps) / curve.steps
    elif curve == "sigmoid":
        low = 1 / (1 + math.exp(_SIGMOID_SLOPE / 2))
        risen = (1 / (1 + np.exp(-_SIGMOID_SLOPE * (u - 0.5))) - low) / (1 - 2 * low)
    elif curve == "exponential":
        risen = np.expm1(-_EXPONENT * u) / math.expm1(-_EXPONENT)
    else:
        return u
    risen = np.clip(risen, 0.0, 1.0)
    # rounding must not leave a rest of the old value when the ramp is up, nor a trace of the new before
    risen[u >= 1.0] = 1.0
    risen[u <= 0.0] = 0.0
    return risen


class DriftEffect(NamedTuple):
    """What a drift does at some ticks.

    Args:
        done: how many occurrences, counted from the first, count in full at each tick.
        partial: occurrences beyond them: pairs of their indices and their weights at each tick; a weight
            of 0 means that the index says nothing.
    """

    done: np.ndarray
    partial: tuple[tuple[np.ndarray, np.ndarray], ...]

    def last(self) -> np.ndarray:
        """The index of the last occurrence that counts at each tick, -1 where none does."""
        found = self.done - 1
        for index, share in self.partial:
            found = np.where(share > 0, index, found)
        return found

    def pick(self, ticks: slice | np.ndarray) -> DriftEffect:
        """The effect at some of the ticks."""
        return DriftEffect(self.done[ticks], tuple((index[ticks], share[ticks]) for index, share in self.partial))

    def differs(self, other: DriftEffect) -> np.ndarray:
        """At which ticks both say something else, whatever is written beside weights of 0."""
        found: np.ndarray = self.done != other.done
        for (index, share), (other_index, other_share) in zip(self.partial, other.partial, strict=True):
            found = found | (share != other_share) | ((share > 0) & (index != other_index))
        return found


class DriftRamp:
    """One drift over time: a pure function of (drift, stream, tick).

    Args:
        drift: the drift.
        stream: the source of its random numbers.

    Example:
        >>> drift = Drift.model_validate(
        ...     {"name": "thaw", "at": 10, "kind": "incremental", "over": 4, "set": {"slip": 0.5}}
        ... )
        >>> ramp = DriftRamp(drift, RandomStream(0, 0))
        >>> ramp.effect(np.array([9, 11, 14])).partial[0][1]
        array([0.  , 0.25, 0.  ])
        >>> ramp.effect(np.array([9, 11, 14])).done
        array([0, 0, 1])
    """

    def __init__(self, drift: Drift, stream: RandomStream) -> None:
        self.drift = drift
        self.occurrences = occurrences_of(drift, stream)
        self.over = drift.over or 0
        self._coins = UniformStream(stream) if drift.kind == "gradual" else None

    def effect(self, ticks: np.ndarray) -> DriftEffect:
        """Which occurrences count at these ticks, and how much."""
        return self._windowed(ticks) if self.drift.duration is not None else self._accumulated(ticks)

    def until(self, tick: int) -> int:
        """A later tick up to which (excluded) the effect surely stays as it is at `tick`."""
        occurrences, at = self.occurrences, np.array([tick], np.int64)
        following = occurrences.after(tick)
        if self.drift.duration is None:
            ramping = self.over and occurrences.count(at)[0] > occurrences.count(at - self.over)[0]
            return tick + 1 if ramping else following
        window = occurrences.window(at)
        if window.run[0] < 0:
            return following
        start, end = int(window.start[0]), int(window.end[0])
        if not self.over:
            return min(end, following)
        if tick < start + self.over or tick >= end - self.over:
            return tick + 1
        return min(end - self.over, following)

    def _accumulated(self, ticks: np.ndarray) -> DriftEffect:
        count = self.occurrences.count(ticks)
        if not self.over:
            return DriftEffect(count, ())
        done = self.occurrences.count(ticks - self.over)
        partial = []
        for nth in range(int((count - done).max())):
            index = done + nth
            started = index < count
            elapsed = ticks - self.occurrences.start(np.where(started, index, 0))
            share = np.where(started, self._share(ticks, elapsed), 0.0)
            partial.append((index, share))
        return DriftEffect(done, tuple(partial))

    def _windowed(self, ticks: np.ndarray) -> DriftEffect:
        window = self.occurrences.window(ticks)
        share = (window.run >= 0).astype(float)
        if self.over:
            # rising and falling never meet, since a ramp takes at most half of the duration
            nearer = np.minimum(ticks - window.start, window.end - ticks)
            share *= self._share(ticks, nearer)
        return DriftEffect(np.zeros(ticks.shape, np.int64), ((window.run, share),))

    def _share(self, ticks: np.ndarray, elapsed: np.ndarray) -> np.ndarray:
        share = weight(elapsed / self.over, self.drift.curve)
        if self._coins is not None:
            mixed = (share > 0) & (share < 1)
            if mixed.any():
                share[mixed] = self._coins.at(ticks[mixed]) < share[mixed]
        return share

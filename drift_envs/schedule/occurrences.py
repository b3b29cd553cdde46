"""WHEN: the ticks at which the occurrences of a drift start and end.

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
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from drift_envs.errors import ArgumentError
from drift_envs.schedule.model import MAX_TICK, Drift

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
_MOST_OCCURRENCES = 1000  # of recurring drifts whose cases are listed
_TICKS_AT_ONCE = 256
Block = TypeVar("Block")
Carry = TypeVar("Carry")

BEYOND = 4 * MAX_TICK
"""A tick after every tick there is, small enough that sums with it are exact."""


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
    first = drift.first
    if drift.rate is not None:
        return RandomOccurrences(stream, first, drift.rate, drift.duration)
    if not drift.jitter:
        return RegularOccurrences(first, drift.every, drift.duration)
    if drift.every is not None:
        return JitteredOccurrences(stream, first, drift.every, drift.duration, drift.jitter)
    alone = JitteredOccurrences(stream, first, BEYOND, drift.duration, drift.jitter)
    return RegularOccurrences(int(alone.start(np.zeros(1, np.int64))[0]), None, drift.duration)


def times_of(drifts: Sequence[Drift], seed: int) -> list[Occurrences]:
    """The occurrences of all drifts of a schedule, with the random times of one seed."""
    return [occurrences_of(drift, RandomStream(seed, index)) for index, drift in enumerate(drifts)]


def possible_counts(drifts: Sequence[Drift]) -> Iterator[np.ndarray]:
    """The least and the most occurrences of each drift that may hold at once, whatever the seed.

    Args:
        drifts: those of a schedule.

    Yields:
        Every distinct case, in time order; integers of shape `(drifts, 2)`.

    Example:
        >>> drift = Drift.model_validate({"name": "thaw", "at": 5, "set": {"slip": 0.5}})
        >>> [case.tolist() for case in possible_counts([drift])]
        [[[0, 0]], [[1, 1]]]
    """
    # `_possible` adds what the jitter may do, whatever the seed
    times = times_of([drift.model_copy(update={"jitter": 0}) for drift in drifts], 0)
    edges = _ticks(drifts, times)
    moves = {sign * drift.jitter for drift in drifts for sign in (-1, 0, 1)}
    ticks = np.array(sorted({tick + move for tick in edges for move in moves if tick + move >= 0} or {0}), np.int64)
    seen: set[bytes] = set()
    for start in range(0, len(ticks), _TICKS_AT_ONCE):
        part = ticks[start : start + _TICKS_AT_ONCE]
        held = [_possible(drift, own, part) for drift, own in zip(drifts, times, strict=True)]
        ranges = np.array(held, np.int64).reshape(len(drifts), 2, len(part))
        for position in range(len(part)):
            case = ranges[:, :, position]
            if case.tobytes() not in seen:
                seen.add(case.tobytes())
                yield case


def _ticks(drifts: Sequence[Drift], times: Sequence[Occurrences]) -> list[int]:
    """The ticks at which something begins or ends, until everything has met everything."""
    fixed = [(drift, own) for drift, own in zip(drifts, times, strict=True) if drift.rate is None]
    recurring = [(drift, own, drift.every) for drift, own in fixed if drift.every is not None]
    anchors = {0, *(drift.at or 0 for drift in drifts)}
    for drift, own in fixed:
        if drift.every is None:
            anchors.update(_edges(drift, own, np.array([0]), np.array([MAX_TICK])))
    ticks = set(anchors)
    if recurring:
        cycle = 2 * math.lcm(*(period for _, _, period in recurring))
        longest = max(period + (drift.duration or drift.over or 0) for drift, _, period in recurring)
        density = sum(own.density for _, own, _ in recurring)
        reach = min(cycle + longest, int(_MOST_OCCURRENCES / density / len(anchors)))
        starts = np.array(sorted(anchors), np.int64)
        for drift, own, _ in recurring:
            ticks.update(_edges(drift, own, starts, starts + reach))
    return sorted(tick for tick in ticks if 0 <= tick <= MAX_TICK)


def _edges(drift: Drift, occurrences: Occurrences, lows: np.ndarray, highs: np.ndarray) -> list[int]:
    """Where occurrences that do not overlap start, end and have their ramps, from each low to its high."""
    over = drift.over or 0
    bounds = []
    for shift in {0, drift.duration or 0}:
        before, until = occurrences.count(lows - 1 - shift), occurrences.count(highs - shift)
        # a thousand drifts have a thousand stretches each: the runs of all of them at once, `before` to `until` of each
        lengths = until - before
        runs = np.repeat(until - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
        bounds.append(occurrences.start(runs) + shift)
    ticks = np.unique(np.concatenate(bounds))
    edges: list[int] = np.unique(np.add.outer(ticks, (0, 1, over, -over, 1 - over))).tolist()
    return edges


def _possible(drift: Drift, occurrences: Occurrences, ticks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most occurrences of a drift that may hold at these ticks, reduced where that is possible."""
    over, jitter, count = drift.over or 0, drift.jitter, occurrences.count
    if drift.rate is not None:
        return np.zeros_like(ticks), (ticks >= drift.first).astype(np.int64)
    # an occurrence with a ramp has a weight of 0 at its first tick, and may hold from the next on
    least = count(ticks - over - jitter)
    most = np.maximum(count(ticks - (1 if over else 0) + jitter), least)
    if drift.duration is not None:
        fading = count(ticks - drift.duration + max(over - 1, 0) + jitter)
        ended = count(ticks - drift.duration - jitter)
        return np.maximum(least - fading, 0), most - ended
    if not drift.add and not drift.scale:
        # beyond the first, an even and an odd number of occurrences is all the difference there is
        fewer = np.maximum(least - 2 + least % 2, 0)
        least, most = least - fewer, most - fewer
    return least, most

"""WHEN: the ticks at which the occurrences of a drift start and end.

* `Occurrences` - what both kinds can answer, on whole arrays of ticks
* `RegularOccurrences` - once, or every so many ticks: closed form
* `JitteredOccurrences` - every so many ticks, each a little earlier or later: closed form with random access
* `RandomOccurrences` - at random ticks: a chain of geometric gaps, drawn in blocks
* `TickWindow` - where ticks stand in the run that holds them
* `occurrences_of` - the occurrences of a drift

An occurrence that `for` ends is called a run: random ones that overlap join to one run. Without `for`,
every occurrence is a run that never ends, and they accumulate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from drift_envs.schedule.model import MAX_TICK, Drift
from drift_envs.schedule.streams import Blocks, Purpose, RandomStream, UniformStream, refuse_far

BEYOND = 4 * MAX_TICK
"""A tick after every tick there is, small enough that sums with it are exact."""


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

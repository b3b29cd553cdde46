"""The phases of a schedule, and how far its ticks go: a phase begins when an occurrence starts or its `for` ends.

A phase belongs to the drift whose occurrence, among those that hold, has started last (the later in the file
where two start at once), and to `source` where none holds. Its id is that name; from the second visit on,
the number of the visit is added: `weekends#2`.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from drift_envs.errors import ArgumentError, UnknownChoiceError
from drift_envs.schedule.model import MAX_TICK, SOURCE, Drift
from drift_envs.schedule.occurrences import MOST_EVENTS, Occurrences, times_of
from drift_envs.schedule.yaml import Finding
from drift_envs.utils.error_messages import nearest

NEVER = sys.maxsize
"""The tick that does not come."""

LONGEST_LIST = 100_000
"""The most phases of a list."""

_CHUNK = 32_768  # phases that a chunk of ticks holds on average
_SHORTEST = 1024  # ticks
_MOST_CHUNKS = 500  # that are walked for one tick; a chunk of a few drifts takes 2 ms
_MOST_WORK = 5_000  # the same in chunks times drifts, since every drift is compared with every phase
_SEARCHED = 40  # chunks in which the end of a phase is looked for
_LARGEST_PERIOD = 1_000_000  # phases
_KEPT = 4
_LISTED = 12

EARLY = 10_000_000
"""Ticks that an experiment may well have: an earlier limit is warned of."""


@dataclass(frozen=True)
class Phase:
    """A stretch of ticks between two starts or ends of occurrences.

    Args:
        id: `source`, the name of the drift, or either with the number of the visit, as in `tide#2`.
        index: the number of earlier phases.
        start: its first tick.
        drift: the name of the drift that it belongs to, `None` for `source`.
        stop: the first tick after it, `NEVER` if it goes on for ever, or so long (random occurrences that
            keep overlapping) that on average more than a million would have started before its end.
    """

    id: str
    index: int
    start: int
    drift: str | None
    stop: int


class _Span(NamedTuple):
    """A stretch of ticks that is cut into chunks of equal length, or one chunk that repeats.

    Args:
        low: its first tick.
        high: the first tick after it.
        length: the ticks of a chunk.
        repeats: how often the phases of its one chunk follow each other; 1 where the chunks differ.
        first: the number of its first chunk.
    """

    low: int
    high: int
    length: int
    repeats: int
    first: int


class _Chunk(NamedTuple):
    """The phases that start in a stretch of ticks: first tick, owner and number of the visit of each.

    With `repeats` above 1 they start again every `length` ticks, so many times in all, counted in with `visits`.
    """

    starts: np.ndarray
    owners: np.ndarray
    visits: np.ndarray
    before: int
    length: int
    repeats: int
    gained: np.ndarray


class PhaseTable:
    """Finds phases by tick and by id.

    Once every drift that repeats has begun, and between the single ones, phases repeat with the least common
    multiple of the periods. One such period is computed and the others follow from it, so that a phase at any
    tick costs the same. Stretches with random occurrences, and periods of more than a million phases, are walked:
    the number of a visit is a count of all earlier ones, so that a limit, `last_tick`, keeps every answer within a
    second or two.

    Args:
        drifts: the drifts, in file order.
        times: their occurrences.

    Example:
        >>> drift = Drift.model_validate({"name": "tide", "every": 7, "for": 2, "set": {"slip": 0.5}})
        >>> phases = PhaseTable([drift], times_of([drift], seed=0))
        >>> [phase.id for phase in phases.before(20)]
        ['source', 'tide', 'source#2', 'tide#2', 'source#3']
        >>> phases.at(7 * 10**9)
        Phase(id='tide#1000000000', index=1999999999, start=7000000000, drift='tide', stop=7000000002)
    """

    def __init__(self, drifts: Sequence[Drift], times: Sequence[Occurrences]) -> None:
        self._drifts, self._times = drifts, times
        self._names = [SOURCE, *(drift.name for drift in drifts)]
        self._spans = _divide(drifts, times)
        self._counts = [np.zeros(len(self._names), np.int64)]  # visits of each owner before each chunk
        self._kept: OrderedDict[int, _Chunk] = OrderedDict()
        walked = min(_MOST_CHUNKS, _MOST_WORK // max(len(drifts), 1)) + 3 * len(self._spans)
        self._most = min(walked, self._count)  # chunks; those of short stretches between drifts do not count
        self.last_tick = MAX_TICK if self._most == self._count else self._low(self._most) - 1
        """The last tick whose phase is found."""

    def at(self, tick: int) -> Phase:
        """The phase that holds a tick.

        Raises:
            ArgumentError: if the tick lies beyond `last_tick`, so that too many phases would have to be counted.
        """
        if tick > self.last_tick:
            raise ArgumentError(
                f"`tick` should be at most {self.last_tick} for a phase: too many phases lie before later ticks. "
                f"Received {tick}"
            )
        span = self._spans[bisect_right(self._spans, tick, key=lambda span: span.low) - 1]
        steps = (tick - span.low) // span.length
        number, repeat = (span.first, steps) if span.repeats > 1 else (span.first + steps, 0)
        chunk = self._chunk(number)
        position = int(np.searchsorted(chunk.starts, tick - repeat * chunk.length, "right")) - 1
        if position < 0 and repeat > 0 and len(chunk.starts):
            repeat, position = repeat - 1, len(chunk.starts) - 1
        while position < 0:
            number -= 1
            chunk = self._chunk(number)
            repeat, position = chunk.repeats - 1, len(chunk.starts) - 1
        return self._phase(number, chunk, position, repeat)

    def before(self, stop: int) -> list[Phase]:
        """All phases that start before a tick.

        Raises:
            ArgumentError: if they are more than `LONGEST_LIST`.
        """
        if stop < 1:
            return []
        if stop - 1 <= self.last_tick:
            last = self.at(stop - 1).index
            if last < LONGEST_LIST:
                return self.first(last + 1)
        raise ArgumentError(f"`stop` should have at most {LONGEST_LIST} phases before it. Received {stop}")

    def first(self, most: int) -> list[Phase]:
        """The first phases, at most `most`; fewer where there are not so many up to `last_tick`."""
        found: list[Phase] = []
        for number in range(self._most):
            chunk = self._chunk(number)
            for repeat in range(chunk.repeats):
                count = min(len(chunk.starts), most - len(found))
                found += [self._phase(number, chunk, position, repeat) for position in range(count)]
                if len(found) == most or found[-1].stop == NEVER:
                    return found
        return found

    def named(self, phase_id: str, argument: str) -> Phase:
        """The phase of that id.

        Args:
            phase_id: the id.
            argument: what the caller calls it, for the error.

        Raises:
            UnknownChoiceError: if there is no such phase, or none up to `last_tick`.
            ArgumentError: if it is no text.
        """
        if not isinstance(phase_id, str):
            raise ArgumentError(f"`{argument}` should be the id of a phase, a text. Received {phase_id!r}")
        name, _, visit = phase_id.partition("#")
        if name in self._names and (not visit or (visit.isdecimal() and len(visit) <= 18 and int(visit) > 1)):
            owner, wanted = self._names.index(name), int(visit or 1)
            for number in range(self._most):
                chunk = self._chunk(number)
                hits = np.flatnonzero(chunk.owners == owner)
                earlier = int(self._counts[number][owner])
                if earlier < wanted <= earlier + len(hits) * chunk.repeats:
                    repeat, nth = divmod(wanted - earlier - 1, len(hits))
                    return self._phase(number, chunk, int(hits[nth]), repeat)
        known = [phase.id for phase in self.first(_LISTED)]
        limit = "" if self.last_tick == MAX_TICK else f" that starts up to tick {self.last_tick}"
        raise UnknownChoiceError(
            f"`{argument}` should be the id of a phase{limit}. Received {phase_id!r}. {nearest(phase_id, known)}"
        )

    def full(self, phase: Phase) -> int:
        """The first tick at which the drift of a phase has its full weight, which may lie behind the phase's end."""
        if phase.drift is None:
            return phase.start
        place = self._names.index(phase.drift) - 1
        begun = int(self._times[place].latest(np.array([phase.start]))[0])
        return max(phase.start, begun + (self._drifts[place].over or 0))

    def _phase(self, number: int, chunk: _Chunk, position: int, repeat: int) -> Phase:
        owner = int(chunk.owners[position])
        visit = int(chunk.visits[position]) + repeat * int(chunk.gained[owner])
        name = self._names[owner]
        return Phase(
            id=name if visit == 1 else f"{name}#{visit}",
            index=chunk.before + position + repeat * len(chunk.starts),
            start=int(chunk.starts[position]) + repeat * chunk.length,
            drift=name if owner else None,
            stop=self._stop(number, chunk, position, repeat),
        )

    def _stop(self, number: int, chunk: _Chunk, position: int, repeat: int) -> int:
        """The start of the phase that follows."""
        if position + 1 < len(chunk.starts):
            return int(chunk.starts[position + 1]) + repeat * chunk.length
        if repeat + 1 < chunk.repeats:
            return int(chunk.starts[0]) + (repeat + 1) * chunk.length
        for following in range(number + 1, min(number + _SEARCHED + 3 * len(self._spans), self._count)):
            starts = self._chunk(following).starts
            if len(starts):
                return int(starts[0])
        return NEVER

    @property
    def _count(self) -> int:
        """How many chunks there are."""
        last = self._spans[-1]
        return last.first + (1 if last.repeats > 1 else -(-(last.high - last.low) // last.length))

    def _span(self, number: int) -> _Span:
        return self._spans[bisect_right(self._spans, number, key=lambda span: span.first) - 1]

    def _low(self, number: int) -> int:
        span = self._span(number)
        return span.low + (number - span.first) * span.length

    def _chunk(self, number: int) -> _Chunk:
        if number in self._kept:
            return self._kept[number]
        while len(self._counts) <= number:
            self._build(len(self._counts) - 1)
        return self._kept[number] if number in self._kept else self._build(number)

    def _build(self, number: int) -> _Chunk:
        span, low = self._span(number), self._low(number)
        high = min(low + span.length, span.high)
        bounds = [occurrences.bounds(low, high) for occurrences in self._times]
        if number == 0:
            bounds.append(np.zeros(1, np.int64))
        starts = np.sort(np.concatenate([np.zeros(0, np.int64), *bounds]), kind="stable")
        starts = starts[np.diff(starts, prepend=-1) > 0]
        owners = np.zeros(len(starts), np.int64)
        latest = np.full(len(starts), -1, np.int64)
        if len(starts):
            for owner, occurrences in enumerate(self._times, start=1):
                begun = occurrences.latest(starts)
                wins = (begun >= 0) & (begun >= latest)
                owners[wins], latest[wins] = owner, begun[wins]
        counts = self._counts[number]
        visits = np.zeros(len(starts), np.int64)
        gained = np.bincount(owners, minlength=len(self._names))
        for owner in np.flatnonzero(gained).tolist():
            visits[owners == owner] = counts[owner] + np.arange(1, int(gained[owner]) + 1)
        if len(self._counts) == number + 1:
            self._counts.append(counts + span.repeats * gained)
        chunk = _Chunk(starts, owners, visits, int(counts.sum()), high - low, span.repeats, gained)
        self._kept[number] = chunk
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return chunk


def _divide(drifts: Sequence[Drift], times: Sequence[Occurrences]) -> list[_Span]:
    """Divide all ticks into spans.

    Between two ticks at which a drift begins for the first time or ends for the last time, the same drifts are
    active. After one period, all occurrences that hold have started there, so the phases repeat.
    """
    repeating = [(drift, own) for drift, own in zip(drifts, times, strict=True) if own.density > 0]
    edges = {0, MAX_TICK + 1}
    for own in times if repeating else ():
        edges |= {own.first, own.first if own.duration is None or own.density > 0 else own.first + own.duration}
    spans: list[_Span] = []

    def add(low: int, high: int, length: int, repeats: int) -> None:
        if low < high:
            last = spans[-1] if spans else None
            first = 0
            if last is not None and repeats == last.repeats == 1 and high - last.low <= length:
                # hundreds of drifts that begin one after the other share a chunk
                low, first = last.low, spans.pop().first
            elif last is not None:
                first = last.first + (1 if last.repeats > 1 else -(-(last.high - last.low) // last.length))
            spans.append(_Span(low, high, length, repeats, first))

    for low, high in pairwise(sorted(edge for edge in edges if edge <= MAX_TICK + 1)):
        active = [(drift, own) for drift, own in repeating if own.first <= low]
        density = sum(own.density * (1 if own.duration is None else 2) for _, own in active)
        length = high - low if density == 0 else max(int(_CHUNK / density), _SHORTEST)
        period = math.lcm(*(0 if drift.jitter else drift.every or 0 for drift, _ in active))  # 0: random
        # the period can be an integer beyond every float, which may be compared but not multiplied with one
        is_short = bool(active) and 0 < period <= _LARGEST_PERIOD / density
        repeats = (high - low) // period - 1 if is_short else 0
        if repeats < 2:
            add(low, high, length, 1)
            continue
        settled = low + period
        add(low, settled, length, 1)
        add(settled, settled + repeats * period, period, repeats)
        add(settled + repeats * period, high, length, 1)
    return spans


class Limits(NamedTuple):
    """The last ticks of which questions are answered.

    Args:
        phase: the last one whose phase is found, `MAX_TICK` where phases repeat.
        value: about the last one before which at most `MOST_EVENTS` random events of each drift lie: a tick of `rate`,
            `walk` and `choice` costs by the events before it, since each adds to the one before.
    """

    phase: int
    value: int


def limits_of(drifts: Sequence[Drift], phases: PhaseTable | None = None) -> Limits:
    """The last ticks of some drifts; where their times are random, those of one seed.

    Args:
        drifts: those of a schedule.
        phases: their phases, if they were made already.

    Example:
        >>> storms = Drift.model_validate({"name": "storms", "rate": 0.1, "walk": {"slip": 0.05}})
        >>> limits_of([storms]).value
        1000000000
    """
    value = MAX_TICK
    for drift in drifts:
        if drift.rate is not None:
            value = min(value, (drift.at or 0) + int(MOST_EVENTS / drift.rate))
        elif drift.every is not None and (drift.walk or drift.choice):
            value = min(value, (drift.at or drift.every) + MOST_EVENTS * drift.every)
    return Limits((phases or PhaseTable(drifts, times_of(drifts, 0))).last_tick, value)


def limit_findings(drifts: Sequence[Drift], limits: Limits) -> Iterator[Finding]:
    """The drifts that begin beyond the limits, so that no episode could reach them.

    Args:
        drifts: those of a schedule.
        limits: their `limits_of`.

    Example:
        >>> storms = Drift.model_validate({"name": "storms", "rate": 0.1, "set": {"slip": 0.5}})
        >>> late = Drift.model_validate({"name": "late", "at": 2_000_000_000, "set": {"slip": 0.1}})
        >>> [path for path, rule in limit_findings([storms, late], limits_of([storms, late]))]
        [('drifts', 1, 'at')]
    """
    last = min(limits)
    for index, drift in enumerate(drifts):
        if drift.at is not None and drift.at > last:
            rule = f"should be at most {last}: with these drifts later ticks would take too long. Received {drift.at}"
            yield ("drifts", index, "at"), rule


def early_limit(limits: Limits) -> Finding | None:
    """The limit that long experiments may meet, with the place in the schedule.

    Args:
        limits: the `limits_of` a schedule's drifts.
    """
    if min(limits) >= EARLY:
        return None
    reason = "random events" if limits.value < limits.phase else "phases that do not repeat"
    return ("drifts",), f"can be played up to tick {min(limits)} only: too many {reason} lie before later ones"

"""The phases of a schedule: a new one begins whenever an occurrence starts or its `for` ends.

* `Phase` - one of them
* `PhaseTable` - finds phases by tick and by id, in chunks of ticks that are computed on demand

A phase belongs to the drift whose occurrence, among those that hold, has started last (the later in the file
where two start at once), and to `source` where none holds. Its id is that name; from the second visit on,
the number of the visit is added: `weekends#2`.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from drift_envs.errors import ArgumentError
from drift_envs.schedule.findings import nearest
from drift_envs.schedule.model import MAX_TICK
from drift_envs.schedule.ramps import DriftRamp
from drift_envs.schedule.rules import SOURCE

NEVER = sys.maxsize
"""The tick that does not come."""

_CHUNK = 32_768  # phases that a chunk of ticks holds on average
_SHORTEST = 1024  # ticks
_MOST_CHUNKS = 3_000
_SEARCHED = 40  # chunks in which a phase is looked for by its id
_KEPT = 4
_LISTED = 12


@dataclass(frozen=True)
class Phase:
    """A stretch of ticks between two starts or ends of occurrences.

    Args:
        id: `source`, the name of the drift, or either with the number of the visit, as in `tide#2`.
        index: how many phases lie before it.
        start: its first tick.
        drift: the name of the drift that it belongs to, `None` for `source`.
        stop: the first tick after it, `NEVER` if it goes on for ever, or so long (random occurrences that
            keep overlapping) that its end lies where more than a million would usually have started.
    """

    id: str
    index: int
    start: int
    drift: str | None
    stop: int


class _Chunk(NamedTuple):
    """The phases that start in a stretch of ticks: first tick, owner and number of the visit of each."""

    starts: np.ndarray
    owners: np.ndarray
    visits: np.ndarray
    before: int


class PhaseTable:
    """Finds phases by tick and by id.

    Args:
        ramps: the drifts over time, in file order.

    Example:
        >>> from drift_envs.schedule.model import Drift
        >>> from drift_envs.schedule.streams import RandomStream
        >>> drift = Drift.model_validate({"name": "tide", "every": 7, "for": 2, "set": {"slip": 0.5}})
        >>> [phase.id for phase in PhaseTable([DriftRamp(drift, RandomStream(0, 0))]).before(20)]
        ['source', 'tide', 'source#2', 'tide#2', 'source#3']
    """

    def __init__(self, ramps: Sequence[DriftRamp]) -> None:
        self._ramps = ramps
        self._names = [SOURCE, *(ramp.drift.name for ramp in ramps)]
        density = sum(ramp.occurrences.density * (1 if ramp.drift.duration is None else 2) for ramp in self._ramps)
        self._length = MAX_TICK + 1 if density == 0 else min(max(int(_CHUNK / density), _SHORTEST), MAX_TICK + 1)
        self._counts = [np.zeros(len(self._names), np.int64)]  # visits of each owner before each chunk
        self._kept: OrderedDict[int, _Chunk] = OrderedDict()

    def at(self, tick: int) -> Phase:
        """The phase that holds a tick.

        Raises:
            ArgumentError: if so many phases lie before the tick that they can't be counted.
        """
        number = tick // self._length
        chunk = self._chunk(number)
        position = int(np.searchsorted(chunk.starts, tick, "right")) - 1
        while position < 0:
            number -= 1
            chunk = self._chunk(number)
            position = len(chunk.starts) - 1
        return self._phase(number, chunk, position)

    def before(self, stop: int) -> list[Phase]:
        """All phases that start before a tick.

        Raises:
            ArgumentError: if that are more than a list should hold, about a million.
        """
        found: list[Phase] = []
        chunks = -(-min(stop, MAX_TICK + 1) // self._length)
        if chunks > _SEARCHED:
            raise ArgumentError(f"`stop` should have at most {_SEARCHED * _CHUNK} phases before it. Received {stop}")
        for number in range(chunks):
            chunk = self._chunk(number)
            count = int(np.searchsorted(chunk.starts, stop))
            found += [self._phase(number, chunk, position) for position in range(count)]
        return found

    def named(self, phase_id: str) -> Phase:
        """The phase of that id.

        Raises:
            ArgumentError: if there is no such phase, or none within the first million or so.
        """
        name, _, visit = phase_id.partition("#")
        if name in self._names and (not visit or (visit.isdecimal() and len(visit) <= 18 and int(visit) > 1)):
            owner, wanted = self._names.index(name), int(visit or 1)
            for number in range(min(_SEARCHED, -(-(MAX_TICK + 1) // self._length))):
                chunk = self._chunk(number)
                hits = np.flatnonzero((chunk.owners == owner) & (chunk.visits == wanted))
                if len(hits):
                    return self._phase(number, chunk, int(hits[0]))
        known = [phase.id for phase in self._first(_LISTED)]
        raise ArgumentError(
            f"`drift_phase` should be the id of a phase. Received {phase_id!r}. {nearest(phase_id, known)}"
        )

    def full(self, phase: Phase) -> int:
        """The first tick of a phase at which its drift has its full weight.

        Raises:
            ArgumentError: if the phase ends before the ramp of its drift is up.
        """
        ramp = next((ramp for ramp in self._ramps if ramp.drift.name == phase.drift), None)
        if ramp is None:
            return phase.start
        begun = int(ramp.occurrences.latest(np.array([phase.start]))[0])
        tick = max(phase.start, begun + ramp.over)
        if tick >= phase.stop:
            raise ArgumentError(
                f"phase `{phase.id}` ends at tick {phase.stop}, before the ramp of its drift is up at tick {tick}"
            )
        return tick

    def _first(self, count: int) -> list[Phase]:
        chunk = self._chunk(0)
        return [self._phase(0, chunk, position) for position in range(min(count, len(chunk.starts)))]

    def _phase(self, number: int, chunk: _Chunk, position: int) -> Phase:
        owner, visit = int(chunk.owners[position]), int(chunk.visits[position])
        name = self._names[owner]
        following = chunk.starts[position + 1 : position + 2]
        farthest = number + _SEARCHED
        while not len(following) and number < farthest and (number + 1) * self._length <= MAX_TICK:
            number += 1
            following = self._chunk(number).starts[:1]
        return Phase(
            id=name if visit == 1 else f"{name}#{visit}",
            index=chunk.before + position,
            start=int(chunk.starts[position]),
            drift=name if owner else None,
            stop=int(following[0]) if len(following) else NEVER,
        )

    def _chunk(self, number: int) -> _Chunk:
        if number > _MOST_CHUNKS:
            raise ArgumentError(f"`tick` should have at most {_MOST_CHUNKS * _CHUNK} phases before it")
        if number in self._kept:
            return self._kept[number]
        while len(self._counts) <= number:
            self._build(len(self._counts) - 1)
        return self._kept[number] if number in self._kept else self._build(number)

    def _build(self, number: int) -> _Chunk:
        low, high = number * self._length, (number + 1) * self._length
        bounds = [ramp.occurrences.bounds(low, high) for ramp in self._ramps]
        if number == 0:
            bounds.append(np.zeros(1, np.int64))
        starts = np.sort(np.concatenate([np.zeros(0, np.int64), *bounds]), kind="stable")
        starts = starts[np.diff(starts, prepend=-1) > 0]
        owners = np.zeros(len(starts), np.int64)
        latest = np.full(len(starts), -1, np.int64)
        if len(starts):
            for owner, ramp in enumerate(self._ramps, start=1):
                begun = ramp.occurrences.latest(starts)
                wins = (begun >= 0) & (begun >= latest)
                owners[wins], latest[wins] = owner, begun[wins]
        counts = self._counts[number]
        visits = np.zeros(len(starts), np.int64)
        after = counts.copy()
        for owner in np.flatnonzero(np.bincount(owners)).tolist():
            mine = owners == owner
            visits[mine] = counts[owner] + np.arange(1, int(mine.sum()) + 1)
            after[owner] += int(mine.sum())
        if len(self._counts) == number + 1:
            self._counts.append(after)
        chunk = _Chunk(starts, owners, visits, int(counts.sum()))
        self._kept[number] = chunk
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return chunk

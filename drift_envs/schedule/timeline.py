"""What a schedule means: the value of every knob at every tick.

* `Timeline` - a pure function of (schedule, seed, tick)
* `Segment`, `Phase`, `Change` - what it answers
* `NEVER` - the tick that does not come
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from drift_envs.errors import ArgumentError
from drift_envs.knobs import FrozenMapping, KnobTable, Value
from drift_envs.schedule.model import Schedule

NEVER = sys.maxsize
"""The tick that does not come."""


class Segment(NamedTuple):
    """Ticks `start` to `stop` (excluded) through which the driven knobs keep these values."""

    start: int
    stop: int
    values: Mapping[str, Value]


@dataclass(frozen=True)
class Phase:
    """A stretch between two starts or ends of occurrences."""

    id: str
    index: int
    start: int
    drift: str | None
    stop: int


class Change(NamedTuple):
    """One knob's change from the tick before `tick` to `tick`."""

    tick: int
    knob: str
    old: Value
    new: Value
    drift: str


class Timeline:
    """The value of every driven knob at every tick: a pure function of (schedule, seed, tick)."""

    def __init__(self, schedule: Schedule, table: KnobTable, seed: int) -> None:
        self.schedule, self.table, self.seed = schedule, table, seed
        driven = set(schedule.base).union(*(drift.set for drift in schedule.drifts))
        self.names = tuple(name for name in table if name in driven)
        values = {**table.defaults(), **{name: table[name].check(value) for name, value in schedule.base.items()}}
        self._segments: list[Segment] = []
        self._phases = [Phase("source", 0, 0, None, NEVER)]
        starts = sorted((drift.at or 0, index) for index, drift in enumerate(schedule.drifts))
        begin = 0
        for at, index in starts:
            drift = schedule.drifts[index]
            self._segments.append(Segment(begin, at, FrozenMapping({name: values[name] for name in self.names})))
            values = {**values, **{name: table[name].check(value) for name, value in drift.set.items()}}
            self._phases[-1] = replace(self._phases[-1], stop=at)
            self._phases.append(Phase(drift.name, len(self._phases), at, drift.name, NEVER))
            begin = at
        self._segments.append(Segment(begin, NEVER, FrozenMapping({name: values[name] for name in self.names})))

    @property
    def can_change(self) -> bool:
        """Whether there is any drift."""
        return bool(self.schedule.drifts)

    def segment(self, tick: int) -> Segment:
        """The stretch of equal values around `tick`."""
        return next(segment for segment in self._segments if segment.start <= tick < segment.stop)

    def values(self, tick: int) -> Mapping[str, Value]:
        """The canonical values of `names` at `tick`."""
        return self.segment(tick).values

    def valid_until(self, tick: int) -> int:
        """The first later tick at which `values` may return another object."""
        return self.segment(tick).stop

    def phase(self, tick: int) -> Phase:
        """The phase at `tick`."""
        return next(phase for phase in self._phases if phase.start <= tick < phase.stop)

    def phases(self, stop: int) -> list[Phase]:
        """All phases that start before tick `stop`."""
        return [phase for phase in self._phases if phase.start < stop]

    def first_tick(self, phase_id: str) -> int:
        """The first tick of a phase at which its drift has its full weight."""
        for phase in self._phases:
            if phase.id == phase_id:
                return phase.start
        raise ArgumentError(f"there is no phase `{phase_id}`, only {', '.join(phase.id for phase in self._phases)}")

    def changes(self, start: int, stop: int) -> list[Change]:
        """Every change of a knob's value on ticks between `start` and `stop`, both excluded."""
        found = []
        for before, after in zip(self._segments, self._segments[1:], strict=False):
            if start < after.start < stop:
                found += [
                    Change(after.start, name, before.values[name], after.values[name], self.phase(after.start).id)
                    for name in self.names
                    if before.values[name] != after.values[name]
                ]
        return found

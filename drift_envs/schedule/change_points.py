"""When values change and to what, for many ticks at once: what a vector environment reads instead of single ticks.

* `ChangePoints` - the changes in a stretch of ticks, as arrays
* `find_change_points` - computes them only at the ticks where something may change
* `table_of` - the values at every tick of a stretch
* `needs_seed` - whether a schedule means something else for another seed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from drift_envs.knobs import KnobTable
from drift_envs.schedule.knob_rules import is_draw
from drift_envs.schedule.knob_values import Column, NumberColumn
from drift_envs.schedule.model import MAX_TICK, Schedule
from drift_envs.schedule.phases import NEVER
from drift_envs.schedule.ramps import DriftRamp

_LONGEST = 1 << 20  # ticks of a stretch in which anything happens more often than that
_FAR = MAX_TICK + 1


class ChangePoints(NamedTuple):
    """The changes in a stretch of ticks.

    Args:
        ticks: the ticks from which on each row of values holds, the first being that of the stretch; shape `(K,)`.
        columns: for each driven knob its `K` values: an array for numbers, a list for others.
        stop: the tick at which the stretch ends, `NEVER` if nothing changes any more.
    """

    ticks: np.ndarray
    columns: tuple[Sequence[object] | np.ndarray, ...]
    stop: int


def find_change_points(courses: Sequence[DriftRamp], columns: Sequence[Column], start: int, most: int) -> ChangePoints:
    """The changes from a tick on.

    Args:
        courses: the drifts.
        columns: the driven knobs.
        start: the first tick.
        most: about how many changes are wanted; there may be fewer, or a few more.
    """
    ticks, stop = _candidates(courses, start, most)
    folded = _fold(courses, columns, ticks)
    differs = np.zeros(len(ticks), bool)
    differs[0] = True
    for numbers in folded:
        differs[1:] |= numbers[1:] != numbers[:-1]
    kept = np.flatnonzero(differs)
    return ChangePoints(ticks[kept], _decoded(columns, [numbers[kept] for numbers in folded]), stop)


def table_of(
    courses: Sequence[DriftRamp], columns: Sequence[Column], start: int, size: int
) -> tuple[Sequence[object] | np.ndarray, ...]:
    """The values at every tick of a stretch, one array or list a driven knob.

    Args:
        courses: the drifts.
        columns: the driven knobs.
        start: the first tick.
        size: how many ticks.
    """
    return _decoded(columns, _fold(courses, columns, np.arange(start, start + size, dtype=np.int64)))


def needs_seed(schedule: Schedule, table: KnobTable) -> bool:
    """Whether a schedule means something else for another seed: it draws times, values or coins, and pins no seed.

    Args:
        schedule: the schedule.
        table: the knobs of the environment.

    Example:
        >>> storms = {"name": "storms", "rate": 0.5, "set": {"slip": 0.5}}
        >>> needs_seed(Schedule(version=1, name="storms", drifts=(storms,)), KnobTable(()))
        True
    """
    if schedule.seed is not None:
        return False
    written = [schedule.base, *(drift.set for drift in schedule.drifts)]
    return any(
        drift.rate is not None or drift.kind == "gradual" or drift.choice or drift.walk for drift in schedule.drifts
    ) or any(name in table and is_draw(table[name], value) for values in written for name, value in values.items())


def _candidates(courses: Sequence[DriftRamp], start: int, most: int) -> tuple[np.ndarray, int]:
    """The ticks of a stretch at which a value may change, and the stretch's end."""
    calm = min((course.until(start) for course in courses if course.over), default=_FAR)
    if calm <= start + 1:  # within a ramp every tick counts
        stop = min(start + most, _FAR)
        return np.arange(start, stop, dtype=np.int64), stop if stop < _FAR else NEVER
    sudden = [course for course in courses if not course.over]
    density = sum(course.occurrences.density for course in sudden)
    stop = min(calm, _FAR)
    if density:
        stop = min(stop, start + 1 + min(int(most / density), _LONGEST))
    found = [np.array([start], np.int64)]
    if stop > start + 1:
        found += [course.occurrences.bounds(start + 1, stop) for course in sudden]
    return np.unique(np.concatenate(found)), stop if stop < _FAR else NEVER


def _fold(courses: Sequence[DriftRamp], columns: Sequence[Column], ticks: np.ndarray) -> list[np.ndarray]:
    effects = {id(course): course.effect(ticks) for course in courses}
    return [column.fold([effects[id(layer.course)] for layer in column.layers], len(ticks)) for column in columns]


def _decoded(columns: Sequence[Column], folded: Sequence[np.ndarray]) -> tuple[Sequence[object] | np.ndarray, ...]:
    return tuple(
        numbers if isinstance(column, NumberColumn) else column.decode(numbers)
        for column, numbers in zip(columns, folded, strict=True)
    )

"""When the values of knobs change and to what, computed for many ticks at once.

* `ChangePoints` - the changes in a stretch of ticks, as arrays
* `find_change_points` - computes them at those ticks alone where a value may change
* `distinct_rows` - the ticks among given ones at which a value differs from the tick before
* `values_at_ticks` - the values at every tick of a stretch
* `needs_seed` - whether the values depend on the seed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from drift_envs.knobs import KnobTable
from drift_envs.schedule.model import MAX_TICK, Schedule
from drift_envs.schedule.phases import NEVER
from drift_envs.schedule.ramps import DriftRamp
from drift_envs.schedule.values import Column, NumberColumn, is_draw

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


def find_change_points(
    ramps: Sequence[DriftRamp], columns: Sequence[Column], start: int, most: int, until: int = _FAR
) -> ChangePoints:
    """The changes from a tick on.

    Args:
        ramps: the drifts.
        columns: the driven knobs.
        start: the first tick.
        most: about how many changes are wanted; there may be fewer, or a few more.
        until: a tick at which the stretch ends at the latest.
    """
    ticks, stop = _candidates(ramps, start, most, until)
    offsets, folded = distinct_rows(ramps, columns, ticks)
    return ChangePoints(ticks[offsets], _decode(columns, folded), stop)


def distinct_rows(
    ramps: Sequence[DriftRamp], columns: Sequence[Column], ticks: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Drop the ticks at which every driven knob has the same value as at the tick before in the array.

    Args:
        ramps: the drifts.
        columns: the driven knobs.
        ticks: ascending ticks, at least one.

    Returns:
        The positions of the ticks that are left, the first always among them, and for each knob its folded numbers
        there, see `Column.fold`.
    """
    folded = _fold(ramps, columns, ticks)
    differs = np.zeros(len(ticks), bool)
    differs[0] = True
    for numbers in folded:
        differs[1:] |= numbers[1:] != numbers[:-1]
    offsets = np.flatnonzero(differs)
    return offsets, [numbers[offsets] for numbers in folded]


def values_at_ticks(
    ramps: Sequence[DriftRamp], columns: Sequence[Column], start: int, size: int
) -> tuple[Sequence[object] | np.ndarray, ...]:
    """The values at every tick of a stretch, one array or list for each driven knob.

    Args:
        ramps: the drifts.
        columns: the driven knobs.
        start: the first tick.
        size: the number of ticks.
    """
    return _decode(columns, _fold(ramps, columns, np.arange(start, start + size, dtype=np.int64)))


def needs_seed(schedule: Schedule, table: KnobTable) -> bool:
    """Whether the values depend on the seed: the schedule draws times, values or mixtures, and pins no seed.

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
        drift.rate is not None or drift.jitter or drift.kind == "gradual" or drift.choice or drift.walk
        for drift in schedule.drifts
    ) or any(name in table and is_draw(table[name], value) for values in written for name, value in values.items())


def _candidates(ramps: Sequence[DriftRamp], start: int, most: int, until: int) -> tuple[np.ndarray, int]:
    """The ticks of a stretch at which a value may change, and the stretch's end."""
    quiet_until = min((ramp.until(start) for ramp in ramps if ramp.over), default=_FAR)
    if quiet_until <= start + 1:  # within a ramp every tick counts
        stop = min(start + most, until)
        return np.arange(start, stop, dtype=np.int64), stop if stop < _FAR else NEVER
    sudden = [ramp for ramp in ramps if not ramp.over]
    density = sum(ramp.occurrences.density for ramp in sudden)
    stop = min(quiet_until, until)
    if density:
        stop = min(stop, start + 1 + min(int(most / density), _LONGEST))
    found = [np.array([start], np.int64)]
    if stop > start + 1:
        found += [ramp.occurrences.bounds(start + 1, stop) for ramp in sudden]
    return np.unique(np.concatenate(found)), stop if stop < _FAR else NEVER


def _fold(ramps: Sequence[DriftRamp], columns: Sequence[Column], ticks: np.ndarray) -> list[np.ndarray]:
    effects = {id(ramp): ramp.effect(ticks) for ramp in ramps}
    return [column.fold([effects[id(layer.ramp)] for layer in column.layers], len(ticks)) for column in columns]


def _decode(columns: Sequence[Column], folded: Sequence[np.ndarray]) -> tuple[Sequence[object] | np.ndarray, ...]:
    return tuple(
        numbers if isinstance(column, NumberColumn) else column.decode(numbers)
        for column, numbers in zip(columns, folded, strict=True)
    )

"""From schedules to arrays.

* `compile_schedule`, `compile_schedules` - from schedules to `CompiledSchedule`
* `CompiledSchedule` - the arrays, and the values of knobs that are no numbers
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError
from drift_envs.functional.batch import Batch, ValueIndex
from drift_envs.functional.drift_params import CLOCKS, FAR, DriftParams, DriftTable
from drift_envs.functional.layer_compiler import compile_layers
from drift_envs.knobs import Knob, KnobTable, Value
from drift_envs.schedule import Schedule, Timeline
from drift_envs.schedule.model import Drift

_MOST_ROWS = 4096  # a longer ramp is computed
_CHUNK = 4096  # changes that are looked for at once


def fits_table(schedule: Schedule) -> bool:
    """Whether nothing changes any more after some tick, in few rows, and no part is left to the key.

    Args:
        schedule: the schedule.

    Example:
        >>> drifts = [{"at": 20, "set": {"slip": 0.5}}, {"every": 20, "set": {"slip": 0.5}}]
        >>> [fits_table(Schedule(version=1, name="tide", drifts=({"name": "tide", **drift},))) for drift in drifts]
        [True, False]
    """
    rows = sum((1 + (drift.over or 0)) * (1 if drift.duration is None else 2) for drift in schedule.drifts)
    return rows < _MOST_ROWS and all(map(_ends, schedule.drifts))


def _ends(drift: Drift) -> bool:
    is_single = drift.every is None and drift.rate is None
    return is_single and drift.kind != "gradual" and not drift.walk and not drift.choice


def compile_table(batch: Batch, ticks: int | None) -> tuple[DriftTable, list[dict[str, tuple[Value, ...]]]]:
    """Compile schedules to one batch of tables, each array with a leading dimension for `vmap`.

    Values are those of `Timeline` at every tick, random ones included.

    Args:
        batch: the schedules, with the seeds of their timelines.
        ticks: how many ticks the table holds, after which the last values stay; `None` if all schedules end.

    Returns:
        The tables, and for each schedule the values of the knobs that are no numbers.
    """
    found = [
        _Rows(Timeline(schedule, batch.table, seed), batch.numeric, batch.others, FAR if ticks is None else ticks)
        for schedule, seed in zip(batch.schedules, batch.seeds, strict=True)
    ]
    # a power of two, so that schedules with about as many rows need no compiling again
    most = 1 << (max(len(each.starts) for each in found) - 1).bit_length()
    starts, numbers, objects = (np.stack(parts) for parts in zip(*(each.padded(most) for each in found), strict=True))
    params = DriftTable(
        clock=jnp.array([CLOCKS[schedule.clock] for schedule in batch.schedules], jnp.int32),
        starts=jnp.asarray(starts, jnp.int32),
        numbers=jnp.asarray(numbers[:, :, batch.kept]),
        objects=jnp.asarray(objects[:, :, batch.kept_others]),
        fixed=jnp.asarray(numbers[:, 0]),
        object_fixed=jnp.asarray(objects[:, 0]),
        **batch.meta(),
    )
    return params, [each.values for each in found]


class _Rows:
    """The rows of one schedule."""

    def __init__(self, timeline: Timeline, numeric: Sequence[Knob], others: Sequence[Knob], stop: int) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in timeline.names}
        starts: list[int] = []
        tick = 0
        while tick < stop:
            points = timeline.change_points(tick, _CHUNK, stop)
            starts += points.ticks.tolist()
            for name, values in zip(timeline.names, points.columns, strict=True):
                self._columns[name] += list(values)
            tick = points.stop
        self.starts = starts
        self._numbers = np.array([self._column(knob) for knob in numeric], float).reshape(-1, len(starts)).T
        indices = {knob.name: ValueIndex(knob.name) for knob in others}
        codes = [[indices[knob.name].index(value) for value in self._column(knob)] for knob in others]
        self._objects = np.array(codes, np.int32).reshape(-1, len(starts)).T
        self.values = {name: index.values for name, index in indices.items()}

    def _column(self, knob: Knob) -> list[Any]:
        return self._columns.get(knob.name, [knob.default] * len(self.starts))

    def padded(self, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Starts, numbers and indices of values, with room for so many rows."""
        more = most - len(self.starts)
        starts = np.array([*self.starts, *[FAR] * (more + 1)])
        numbers, objects = (np.pad(part, ((0, more), (0, 0)), "edge") for part in (self._numbers, self._objects))
        return starts, numbers, objects


_MOST_TICKS = 10_000_000  # of a table


class CompiledSchedule(NamedTuple):
    """A schedule as arrays.

    Args:
        params: the arrays.
        objects: for each knob that is no number, the values that it can have, in the order of their indices.
    """

    params: DriftParams
    objects: dict[str, tuple[Value, ...]]


def compile_schedule(schedule: Schedule, table: KnobTable, seed: int = 0, ticks: int | None = None) -> CompiledSchedule:
    """Compile one schedule to arrays, see `compile_schedules`.

    Args:
        schedule: the schedule, loaded for the table.
        table: the knobs of the environment.
        seed: draws the values that the schedule leaves to the seed.
        ticks: how many ticks are computed ahead.

    Example:
        >>> from drift_envs.knobs import Knob
        >>> table = KnobTable((Knob("slip", 0.0, (0.0, 1.0), "probability of not moving as intended"),))
        >>> thaw = Schedule(version=1, name="thaw", drifts=({"name": "thaw", "at": 20, "set": {"slip": 0.5}},))
        >>> compile_schedule(thaw, table).params.starts[:2].tolist()
        [0, 20]
    """
    params, objects = compile_schedules([schedule], table, seed, ticks)
    return CompiledSchedule(jax.tree.map(lambda part: part[0], params), objects[0])


def compile_schedules(
    schedules: Sequence[Schedule], table: KnobTable, seed: int | Sequence[int] = 0, ticks: int | None = None
) -> tuple[DriftParams, list[dict[str, tuple[Value, ...]]]]:
    """Compile schedules to one batch of arrays, each with a leading dimension for `vmap`.

    With `ticks`, and where all schedules end, the values are computed ahead by `Timeline`, as a table. Without, drifts
    that recur are computed tick by tick for ever, and random parts come from the key of `start_drift`.

    Args:
        schedules: the schedules, at least one, loaded for the table.
        table: the knobs of the environment.
        seed: draws what schedule `i` leaves to the seed, as `seed + i` or number `i` of a sequence: drawn values and
            jittered times, with `ticks` all that is random.
        ticks: how many ticks are computed ahead; the last values stay after them.

    Returns:
        The arrays, and for each schedule the values of the knobs that are no numbers, see `CompiledSchedule`.

    Raises:
        ArgumentError: if there is no schedule, or one draws anew for each of several occurrences and `ticks` is absent.
    """
    if not schedules:
        raise ArgumentError("`schedules` should have at least one schedule. Received none")
    if ticks is not None:
        check_integer("ticks", ticks, 1, _MOST_TICKS)
    seeds = [seed + index for index in range(len(schedules))] if isinstance(seed, int) else list(seed)
    if len(seeds) != len(schedules):
        raise ArgumentError(f"`seed` should have one number for each of {len(schedules)} schedules. Received {seed!r}")
    batch = Batch(schedules, table, seeds)
    if ticks is not None or all(map(fits_table, schedules)):
        return compile_table(batch, ticks)
    return compile_layers(batch)

"""From schedules to arrays.

* `compile_schedule`, `compile_schedules` - from schedules to `CompiledSchedule`
* `CompiledSchedule` - the arrays, and the values of knobs that are no numbers
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError
from drift_envs.functional.batch import Batch
from drift_envs.functional.drift_params import DriftParams
from drift_envs.functional.layer_compiler import compile_layers
from drift_envs.functional.table_compiler import compile_table, fits_table
from drift_envs.knobs import KnobTable, Value
from drift_envs.schedule import Schedule

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

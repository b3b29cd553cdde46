"""Builds the lake of a schedule: its space holds the largest map that the schedule may set.

* `build` - the environment of `DriftFrozenLake-v0`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym

from drift_envs.envs.frozen_lake.env import FrozenLake
from drift_envs.envs.frozen_lake.maps import NewMap
from drift_envs.registration import EnvParts
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.values import draw_arguments
from drift_envs.wrappers.binding import knob_table
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.options import WrapperOptions, load_checked


def build(parts: EnvParts, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    """Build the lake. With a schedule, it is slippery only if the schedule or an argument says so, and has no `prob`.

    Args:
        parts: the declaration of the environment.
        schedule: the schedule, or `None`.
        options: the shared options.
        arguments: those of `FrozenLake`.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        ScheduleError: if the schedule cannot be used.
    """
    if schedule is None:
        return options.wrap(FrozenLake(options.base_mode(schedule), **arguments), None)
    is_slippery = arguments.get("is_slippery", "success_rate" in arguments)
    lake = FrozenLake(options.base_mode(schedule), **{**arguments, "is_slippery": is_slippery}, show_prob=False)
    checked = load_checked(schedule, knob_table(lake), parts, arguments)
    sizes = list(_map_sizes(checked))
    lake.reserve_space(sizes if "map" in checked.base else [(lake.nrow, lake.ncol), *sizes])
    return options.wrap(lake, checked)


def _map_sizes(schedule: Schedule) -> Iterator[tuple[int, int]]:
    """Rows and columns of every map that the schedule may set, the base's first."""
    written = [schedule.base.get("map")]
    for drift in schedule.drifts:
        written += [drift.set.get("map"), *drift.choice.get("map", ())]
    for value in written:
        if isinstance(value, Mapping):
            arguments = draw_arguments(value)
            if "move" not in arguments:
                size = arguments.get("size", NewMap.size)
                yield size, size
        elif value is not None:
            yield len(value), len(value[0])

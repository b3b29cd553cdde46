"""The ids, and the functions that build what they stand for.

* `IDS` - one table: id, entry point, step limit and default schedule
* `Entry` - a row of it
* `frozen_lake`, `mountain_car`, `mountain_car_continuous` - the entry points
* `register_all` - tells Gymnasium; done when `drift_envs` is imported
* `knob_table_of` - all knobs that a schedule may turn under an id
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import gymnasium as gym

from drift_envs.envs import FrozenLake, MountainCar, MountainCarContinuous
from drift_envs.envs.lake_maps import NewMap
from drift_envs.envs.lake_model import Map
from drift_envs.errors import ArgumentError
from drift_envs.knobs import KnobTable
from drift_envs.schedule import Schedule, load_schedule
from drift_envs.wrappers.built_in import build_in
from drift_envs.wrappers.drift import DriftWrapper, Source
from drift_envs.wrappers.text import TextObservation
from drift_envs.wrappers.turning import driven_names, knob_table


class Entry(NamedTuple):
    """What stands behind an id.

    Args:
        entry_point: the function that builds the environment, as `module:function`.
        limit: the steps of an episode.
        schedule: the schedule by default.
        base: the class of the innermost environment.
    """

    entry_point: str
    limit: int
    schedule: str
    base: type[gym.Env]


IDS: dict[str, Entry] = {
    "DriftFrozenLake-v0": Entry("drift_envs.registration:frozen_lake", 100, "frozen_lake/explicit", FrozenLake),
    "DriftMountainCar-v0": Entry("drift_envs.registration:mountain_car", 300, "mountain_car/explicit", MountainCar),
    "DriftMountainCarContinuous-v0": Entry(
        "drift_envs.registration:mountain_car_continuous",
        999,
        "mountain_car_continuous/explicit",
        MountainCarContinuous,
    ),
}

LAKE_ARGUMENTS = {
    "desc": "map",
    "map_name": "map",
    "is_slippery": "slip",
    "success_rate": "slip",
    "reward_schedule": "goal_rewards",
}
"""The arguments of Gymnasium's lake, and the knob that says the same."""

CAR_ARGUMENTS = {"goal_velocity": None}
"""The arguments of Gymnasium's cars; no knob says the same."""


def register_all() -> None:
    """Register every id with Gymnasium.

    The passive checker and the order enforcer are left out: `step` before `reset` is an error of
    `DriftWrapper` at no cost, and the tests check every id actively.
    """
    for name, entry in IDS.items():
        gym.register(
            id=name,
            entry_point=entry.entry_point,
            max_episode_steps=entry.limit,
            order_enforce=False,
            disable_env_checker=True,
        )


def frozen_lake(
    *,
    render_mode: str | None = None,
    schedule: Source = IDS["DriftFrozenLake-v0"].schedule,
    notify: str = "none",
    text: bool = False,
    **arguments: Any,
) -> gym.Env:
    """Build a drifting frozen lake.

    With a schedule the ice is firm (`slip` 0) unless the schedule or an argument says otherwise, and
    `info` does not show `prob`. With `schedule=None` everything is as in Gymnasium.

    Args:
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        schedule: a shipped name, a path, a dictionary, a `Schedule`, or `None` for no drift.
        notify: what `info["drift"]` tells: `none`, `change` or `full`.
        text: whether the world is one of text, see `TextObservation`.
        **arguments: those of Gymnasium's lake: `desc`, `map_name`, `is_slippery`, `success_rate`,
            `reward_schedule`.

    Raises:
        ArgumentError: if an argument is unknown, or the schedule sets the same thing.
        ScheduleError: if the schedule can't be used.

    Example:
        >>> env = frozen_lake(schedule=None, map_name="8x8")
        >>> env.observation_space
        Discrete(64)
    """
    _check_arguments(arguments, LAKE_ARGUMENTS, None)
    if schedule is None:
        return _wrap(FrozenLake(render_mode, **arguments), None, notify, text)
    base = {**arguments, "is_slippery": arguments.get("is_slippery", "success_rate" in arguments)}
    plan = load_schedule(schedule, table=knob_table(FrozenLake(**base)))
    if plan is None:  # `load_schedule` gives `None` for `None` alone
        raise ArgumentError(f"`schedule` should be a schedule. Received {schedule!r}")
    _check_arguments(arguments, LAKE_ARGUMENTS, plan)
    sizes = list(_map_sizes(plan))
    if "map" in driven_names(plan) and sizes:
        base["desc"] = _blank(*sizes[0])  # the schedule's own map is laid before the first episode
    return _wrap(FrozenLake(render_mode, **base, show_prob=False, room_for=sizes), plan, notify, text)


def mountain_car(
    *,
    render_mode: str | None = None,
    schedule: Source = IDS["DriftMountainCar-v0"].schedule,
    notify: str = "none",
    text: bool = False,
    **arguments: Any,
) -> gym.Env:
    """Build a drifting mountain car.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        schedule: a shipped name, a path, a dictionary, a `Schedule`, or `None` for no drift.
        notify: what `info["drift"]` tells: `none`, `change` or `full`.
        text: whether the world is one of text, see `TextObservation`.
        **arguments: those of Gymnasium's car: `goal_velocity`.

    Raises:
        ArgumentError: if an argument is unknown.
        ScheduleError: if the schedule can't be used.
    """
    _check_arguments(arguments, CAR_ARGUMENTS, None)
    return _wrap(MountainCar(render_mode, **arguments), schedule, notify, text)


def mountain_car_continuous(
    *,
    render_mode: str | None = None,
    schedule: Source = IDS["DriftMountainCarContinuous-v0"].schedule,
    notify: str = "none",
    text: bool = False,
    **arguments: Any,
) -> gym.Env:
    """Build a drifting continuous mountain car.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        schedule: a shipped name, a path, a dictionary, a `Schedule`, or `None` for no drift.
        notify: what `info["drift"]` tells: `none`, `change` or `full`.
        text: whether the world is one of text, see `TextObservation`.
        **arguments: those of Gymnasium's car: `goal_velocity`.

    Raises:
        ArgumentError: if an argument is unknown.
        ScheduleError: if the schedule can't be used.
    """
    _check_arguments(arguments, CAR_ARGUMENTS, None)
    return _wrap(MountainCarContinuous(render_mode, **arguments), schedule, notify, text)


# Gymnasium reads the render modes from the entry point, for instance to offer `rgb_array_list`.
frozen_lake.metadata = FrozenLake.metadata  # type: ignore[attr-defined]
mountain_car.metadata = MountainCar.metadata  # type: ignore[attr-defined]
mountain_car_continuous.metadata = MountainCarContinuous.metadata  # type: ignore[attr-defined]


def knob_table_of(env_id: str) -> KnobTable:
    """All knobs that a schedule may turn under an id of this package.

    Args:
        env_id: the id.

    Raises:
        ArgumentError: if it is none of this package.

    Example:
        >>> list(knob_table_of("DriftMountainCar-v0"))[:4]
        ['force', 'gravity', 'goal_position', 'transient']
    """
    if env_id not in IDS:
        raise ArgumentError(f"`env_id` should be one of {', '.join(IDS)}. Received {env_id!r}")
    return knob_table(IDS[env_id].base())


def _wrap(env: gym.Env, schedule: Source, notify: str, text: bool) -> gym.Env:
    """The environment inside its own wrappers."""
    world: gym.Env = build_in(DriftWrapper(env, schedule, notify=notify))
    return build_in(TextObservation(world)) if text else world


def _check_arguments(arguments: Mapping[str, Any], known: Mapping[str, str | None], plan: Schedule | None) -> None:
    """Refuse arguments that nobody knows, and those that say what the schedule says."""
    for name, value in arguments.items():
        if name not in known:
            raise ArgumentError(f"there is no argument `{name}`, only {', '.join(known)}. Received {name}={value!r}")
        if plan is not None and known[name] in driven_names(plan):
            raise ArgumentError(
                f"`{name}` should not be given, since the schedule `{plan.name}` sets `{known[name]}`. "
                f"Received {value!r}"
            )


def _map_sizes(plan: Schedule) -> Iterator[tuple[int, int]]:
    """Rows and columns of every map that the schedule may lay, the base's first."""
    written = [plan.base.get("map")]
    for drift in plan.drifts:
        written += [drift.set.get("map"), *drift.choice.get("map", ())]
    for value in written:
        if isinstance(value, Mapping):
            arguments = value["draw"]
            if "move" not in arguments:
                size = arguments.get("size", NewMap.size)
                yield size, size
        elif value is not None:
            yield len(value), len(value[0])


def _blank(rows: int, columns: int) -> Map:
    """A map without holes."""
    letters = "S" + "F" * (rows * columns - 2) + "G"
    return tuple(letters[first : first + columns] for first in range(0, rows * columns, columns))

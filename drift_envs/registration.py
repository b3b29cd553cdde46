"""The ids, and the functions that build what they stand for.

* `IDS` - one table: id, entry point, step limit and default schedule
* `EnvEntry` - a row of it
* `frozen_lake`, `mountain_car`, `mountain_car_continuous`, `web_shop` - the entry points
* `register_all` - tells Gymnasium; done when `drift_envs` is imported
* `knob_table_of` - all knobs that a schedule may turn under an id
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.vector import VectorEnv

from drift_envs.envs import FrozenLake, MountainCar, MountainCarContinuous, WebShop
from drift_envs.envs.frozen_lake.maps import NewMap
from drift_envs.envs.frozen_lake.model import Map
from drift_envs.errors import ArgumentError
from drift_envs.knobs import KnobTable
from drift_envs.schedule import Schedule, load_schedule
from drift_envs.schedule.model import TaskPool
from drift_envs.schedule.reach import reachable_values
from drift_envs.vector import VectorFrozenLake, VectorMountainCar, VectorMountainCarContinuous
from drift_envs.vector.entry import make_vector
from drift_envs.wrapper_options import WrapperOptions
from drift_envs.wrappers.binding import driven_names, knob_table
from drift_envs.wrappers.drift import Source


class EnvEntry(NamedTuple):
    """What stands behind an id.

    Args:
        entry_point: the function that builds the environment, as `module:function`.
        limit: the steps of an episode.
        schedule: the schedule by default.
        base: the class of the innermost environment.
        vector: the function that builds a native vector environment, as `module:function`, if there is one.
    """

    entry_point: str
    limit: int
    schedule: str
    base: type[gym.Env]
    vector: str | None = None


IDS: dict[str, EnvEntry] = {
    "DriftFrozenLake-v0": EnvEntry(
        "drift_envs.registration:frozen_lake",
        100,
        "frozen_lake/explicit",
        FrozenLake,
        "drift_envs.registration:vector_frozen_lake",
    ),
    "DriftMountainCar-v0": EnvEntry(
        "drift_envs.registration:mountain_car",
        300,
        "mountain_car/explicit",
        MountainCar,
        "drift_envs.registration:vector_mountain_car",
    ),
    "DriftMountainCarContinuous-v0": EnvEntry(
        "drift_envs.registration:mountain_car_continuous",
        999,
        "mountain_car_continuous/explicit",
        MountainCarContinuous,
        "drift_envs.registration:vector_mountain_car_continuous",
    ),
    "DriftWebShop-v0": EnvEntry("drift_envs.registration:web_shop", 30, "webshop/explicit", WebShop),
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

SHOP_ARGUMENTS = {
    "observation_mode": None,
    "backend": None,
    "catalogue": None,
    "goals": "tasks",
    "pool": "tasks",
    "order": "tasks",
    "clusters": "tasks",
    "repeats": "tasks",
    "max_length": None,
    "native_clicks": None,
}
"""The arguments of the shop; `tasks` of the schedule says the same as five of them."""

MOST_CONDITIONS = 16
"""The combinations of knob values for which it is made sure that the goals can be bought."""


def register_all() -> None:
    """Register every id with Gymnasium.

    The passive checker and the order enforcer are left out: `step` before `reset` is an error of
    `DriftWrapper` at no cost, and the tests check every id actively.
    """
    for name, entry in IDS.items():
        gym.register(
            id=name,
            entry_point=entry.entry_point,
            vector_entry_point=entry.vector,
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
    overlay: bool | None = None,
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
        overlay: whether pictures show phase, tick and what changed; by default those of `human` do.
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
    _refuse_unknown(arguments, LAKE_ARGUMENTS)
    extras = WrapperOptions(notify, text, render_mode, overlay)
    if schedule is None:
        return extras.wrap(FrozenLake(extras.base_mode(schedule), **arguments), None)
    base = {**arguments, "is_slippery": arguments.get("is_slippery", "success_rate" in arguments)}
    plan = _load(schedule, knob_table(FrozenLake(**base)), arguments, LAKE_ARGUMENTS)
    sizes = list(_map_sizes(plan))
    if "map" in plan.base:
        base["desc"] = _blank(*sizes[0])  # the schedule's own map is laid before the first episode
    return extras.wrap(FrozenLake(extras.base_mode(plan), **base, show_prob=False, room_for=sizes), plan)


def mountain_car(
    *,
    render_mode: str | None = None,
    schedule: Source = IDS["DriftMountainCar-v0"].schedule,
    notify: str = "none",
    text: bool = False,
    overlay: bool | None = None,
    **arguments: Any,
) -> gym.Env:
    """Build a drifting mountain car.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        schedule: a shipped name, a path, a dictionary, a `Schedule`, or `None` for no drift.
        notify: what `info["drift"]` tells: `none`, `change` or `full`.
        text: whether the world is one of text, see `TextObservation`.
        overlay: whether pictures show phase, tick and what changed; by default those of `human` do.
        **arguments: those of Gymnasium's car: `goal_velocity`.

    Raises:
        ArgumentError: if an argument is unknown.
        ScheduleError: if the schedule can't be used.
    """
    return _car(MountainCar, WrapperOptions(notify, text, render_mode, overlay), schedule, arguments)


def mountain_car_continuous(
    *,
    render_mode: str | None = None,
    schedule: Source = IDS["DriftMountainCarContinuous-v0"].schedule,
    notify: str = "none",
    text: bool = False,
    overlay: bool | None = None,
    **arguments: Any,
) -> gym.Env:
    """Build a drifting continuous mountain car.

    Arguments and errors are those of `mountain_car`.
    """
    return _car(MountainCarContinuous, WrapperOptions(notify, text, render_mode, overlay), schedule, arguments)


def web_shop(
    *,
    render_mode: str | None = None,
    schedule: Source = IDS["DriftWebShop-v0"].schedule,
    notify: str = "none",
    text: bool = False,
    overlay: bool | None = None,
    **arguments: Any,
) -> gym.Env:
    """Build a drifting web shop.

    With a schedule, its section `tasks` says how many goals recur (five if it has none), and all of
    them can be bought at 1.0 in every phase. With `schedule=None` the goals are all those of the
    catalogue.

    Args:
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        schedule: a shipped name, a path, a dictionary, a `Schedule`, or `None` for no drift.
        notify: what `info["drift"]` tells: `none`, `change` or `full`.
        text: whether observations are JSON states of texts and address (`url+text`), unless
            `observation_mode` says otherwise.
        overlay: whether pictures show phase, tick and what changed; by default those of `human` do,
            but for a browser's window.
        **arguments: those of `WebShop`: `observation_mode`, `backend`, `catalogue`, `goals`, `pool`,
            `order`, `clusters`, `repeats`, `max_length`, `native_clicks`.

    Raises:
        ArgumentError: if an argument is unknown, or the schedule says the same thing.
        ScheduleError: if the schedule can't be used.
    """
    _refuse_unknown(arguments, SHOP_ARGUMENTS)
    if text:
        arguments = {"observation_mode": "url+text", **arguments}
    if overlay is None and arguments.get("backend") == "browser":
        overlay = False
    extras = WrapperOptions(notify, False, render_mode, overlay)
    if schedule is None:
        return extras.wrap(WebShop(extras.base_mode(schedule), **arguments), None)
    table = knob_table_of("DriftWebShop-v0")
    plan = _load(schedule, table, arguments, SHOP_ARGUMENTS)
    conditions = [
        {name: values[name] for name in WebShop.knobs}
        for values in islice(reachable_values(plan, table), MOST_CONDITIONS)
    ]
    arguments = {**(plan.tasks or TaskPool()).model_dump(), **arguments, "conditions": conditions}
    return extras.wrap(WebShop(extras.base_mode(plan), **arguments), plan)


def vector_frozen_lake(num_envs: int = 1, **arguments: Any) -> VectorEnv:
    """Build many drifting frozen lakes, see `VectorFrozenLake`.

    Args:
        num_envs: how many.
        **arguments: those of `frozen_lake`, and `max_episode_steps`, `autoreset_mode`, `share_timeline`.
    """
    return make_vector(frozen_lake, VectorFrozenLake, num_envs, **arguments)


def vector_mountain_car(num_envs: int = 1, **arguments: Any) -> VectorEnv:
    """Build many drifting mountain cars, see `VectorMountainCar`.

    Args:
        num_envs: how many.
        **arguments: those of `mountain_car`, and `max_episode_steps`, `autoreset_mode`, `share_timeline`.
    """
    return make_vector(mountain_car, VectorMountainCar, num_envs, **arguments)


def vector_mountain_car_continuous(num_envs: int = 1, **arguments: Any) -> VectorEnv:
    """Build many drifting continuous mountain cars, see `VectorMountainCarContinuous`.

    Args:
        num_envs: how many.
        **arguments: those of `mountain_car_continuous`, and `max_episode_steps`, `autoreset_mode`, `share_timeline`.
    """
    return make_vector(mountain_car_continuous, VectorMountainCarContinuous, num_envs, **arguments)


# Gymnasium reads the render modes from the entry point, for instance to offer `rgb_array_list`.
frozen_lake.metadata = FrozenLake.metadata  # type: ignore[attr-defined]
mountain_car.metadata = MountainCar.metadata  # type: ignore[attr-defined]
mountain_car_continuous.metadata = MountainCarContinuous.metadata  # type: ignore[attr-defined]
web_shop.metadata = WebShop.metadata  # type: ignore[attr-defined]


def knob_table_of(env_id: str) -> KnobTable:
    """All knobs that a schedule may turn under an id of this package.

    Args:
        env_id: the id.

    Raises:
        ArgumentError: if it is none of this package.

    Example:
        >>> list(knob_table_of("DriftMountainCar-v0"))[:4]
        ['force', 'gravity', 'goal_position', 'transient']
        >>> knob_table_of("DriftFrozenLake-v0")["slip"].default
        0.0
    """
    if env_id not in IDS:
        raise ArgumentError(f"`env_id` should be one of {', '.join(IDS)}. Received {env_id!r}")
    base = IDS[env_id].base
    # With a schedule the ice is firm unless the schedule says otherwise: that is the knob's default then.
    return knob_table(base(is_slippery=False) if base is FrozenLake else base())


def _car(
    base: type[MountainCar | MountainCarContinuous],
    extras: WrapperOptions,
    schedule: Source,
    arguments: Mapping[str, Any],
) -> gym.Env:
    """Either car: whatever its schedule turns can be turned at any time, so nothing has to be known before."""
    _refuse_unknown(arguments, CAR_ARGUMENTS)
    return extras.wrap(base(extras.base_mode(schedule), **arguments), schedule)


def _refuse_unknown(arguments: Mapping[str, Any], known: Mapping[str, str | None]) -> None:
    """Refuse arguments that nobody knows."""
    for name, value in arguments.items():
        if name not in known:
            raise ArgumentError(f"there is no argument `{name}`, only {', '.join(known)}. Received {name}={value!r}")


def _load(
    schedule: Source, table: KnobTable, arguments: Mapping[str, Any], known: Mapping[str, str | None]
) -> Schedule:
    """The schedule, unless arguments say what it says."""
    plan = load_schedule(schedule, table=table)
    if plan is None:  # `load_schedule` gives `None` for `None` alone
        raise ArgumentError(f"`schedule` should be a schedule. Received {schedule!r}")
    said = driven_names(plan) | (set() if plan.tasks is None else {"tasks"})
    for name, value in arguments.items():
        if known[name] in said:
            raise ArgumentError(
                f"`{name}` should not be given, since the schedule `{plan.name}` sets `{known[name]}`. "
                f"Received {value!r}"
            )
    return plan


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

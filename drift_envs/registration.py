"""The ids of this package and what they stand for, as strings: nothing is imported before it is needed.

* `IDS` - one table: id, entry point, step limit, default schedule, classes
* `CONTROL_IDS` - the same for classic control, whose optima are not known
* `EXTRA_IDS` - the same for environments that need an extra; `ALL_IDS` are all of them
* `EnvEntry` - a row of them
* `register_all` - registers the ids with Gymnasium; called when `drift_envs` is imported
* `knob_table_of` - all knobs that a schedule may drive under an id
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym

from drift_envs.errors import ArgumentError, MissingDependencyError
from drift_envs.lazy import load_object

if TYPE_CHECKING:
    from drift_envs.knobs import KnobTable


class EnvEntry(NamedTuple):
    """What stands behind an id; classes and functions are strings `module:name`.

    Args:
        entry_point: the function in `drift_envs.entry_points` that builds the environment.
        limit: the steps of an episode.
        schedule: the default schedule.
        base_class: the class of the innermost environment.
        vector_class: the class of the native vector environment, if there is one.
        extra: the extra of this package that the environment needs, if it needs one.
    """

    entry_point: str
    limit: int
    schedule: str
    base_class: str
    vector_class: str | None = None
    extra: str | None = None

    @property
    def base(self) -> type[gym.Env[Any, Any]]:
        """The class of the innermost environment.

        Raises:
            MissingDependencyError: if its extra is not installed.
        """
        try:
            found: type[gym.Env[Any, Any]] = load_object(self.base_class)
        except (ImportError, gym.error.DependencyNotInstalled) as error:
            if self.extra is None:
                raise
            missing = getattr(error, "name", None) or self.extra
            raise MissingDependencyError(
                f'`{missing}` is not installed, run `pip install "drift-envs[{self.extra}]"`'
            ) from error
        return found


IDS: dict[str, EnvEntry] = {
    "DriftFrozenLake-v0": EnvEntry(
        "frozen_lake",
        100,
        "frozen_lake/explicit",
        "drift_envs.envs.frozen_lake.env:FrozenLake",
        "drift_envs.vector.lake:VectorFrozenLake",
    ),
    "DriftMountainCar-v0": EnvEntry(
        "mountain_car",
        300,
        "mountain_car/explicit",
        "drift_envs.envs.mountain_car:MountainCar",
        "drift_envs.vector.car:VectorMountainCar",
    ),
    "DriftMountainCarContinuous-v0": EnvEntry(
        "mountain_car_continuous",
        999,
        "mountain_car_continuous/explicit",
        "drift_envs.envs.mountain_car:MountainCarContinuous",
        "drift_envs.vector.car:VectorMountainCarContinuous",
    ),
    "DriftHouse-v0": EnvEntry("house", 50, "house/explicit", "drift_envs.envs.house.env:House"),
    "DriftWebShop-v0": EnvEntry("web_shop", 30, "webshop/explicit", "drift_envs.envs.webshop.env:WebShop"),
}

CONTROL_IDS: dict[str, EnvEntry] = {
    "DriftCartPole-v0": EnvEntry("cart_pole", 500, "cart_pole/explicit", "drift_envs.envs.control:CartPole"),
    "DriftAcrobot-v0": EnvEntry("acrobot", 500, "acrobot/explicit", "drift_envs.envs.control:Acrobot"),
    "DriftPendulum-v0": EnvEntry("pendulum", 200, "pendulum/explicit", "drift_envs.envs.control:Pendulum"),
}
"""Environments of Gymnasium without an oracle of optima."""

_WEB_LIMITS = {
    "click-button": 10,
    "click-dialog": 10,
    "click-tab": 10,
    "enter-text": 10,
    "login-user": 10,
    "choose-list": 10,
    "navigate-tree": 20,
    "search-engine": 10,
    "book-flight": 30,
    "use-autocomplete": 10,
}
"""The step limits of `drift_envs.envs.miniwob.tasks.TASKS`, which a test compares: no environment is imported here."""

EXTRA_IDS: dict[str, EnvEntry] = {
    "DriftLunarLander-v0": EnvEntry(
        "lunar_lander",
        1000,
        "lunar_lander/explicit",
        "drift_envs.envs.lunar_lander:LunarLander",
        extra="box2d",
    ),
    "DriftHalfCheetah-v0": EnvEntry(
        "half_cheetah",
        1000,
        "half_cheetah/explicit",
        "drift_envs.envs.mujoco:HalfCheetah",
        extra="mujoco",
    ),
    "DriftHopper-v0": EnvEntry("hopper", 1000, "hopper/explicit", "drift_envs.envs.mujoco:Hopper", extra="mujoco"),
    "DriftInvertedPendulum-v0": EnvEntry(
        "inverted_pendulum",
        1000,
        "inverted_pendulum/explicit",
        "drift_envs.envs.mujoco:InvertedPendulum",
        extra="mujoco",
    ),
    "DriftReacher-v0": EnvEntry("reacher", 50, "reacher/explicit", "drift_envs.envs.mujoco:Reacher", extra="mujoco"),
    "DriftMiniGrid-Empty-v0": EnvEntry(
        "minigrid_empty", 256, "minigrid_empty/explicit", "drift_envs.envs.minigrid.env:EmptyGrid", extra="minigrid"
    ),
    "DriftMiniGrid-DoorKey-v0": EnvEntry(
        "minigrid_door_key",
        640,
        "minigrid_door_key/explicit",
        "drift_envs.envs.minigrid.env:DoorKeyGrid",
        extra="minigrid",
    ),
    "DriftMiniGrid-MultiRoom-v0": EnvEntry(
        "minigrid_multi_room",
        40,
        "minigrid_multi_room/explicit",
        "drift_envs.envs.minigrid.env:MultiRoomGrid",
        extra="minigrid",
    ),
    "DriftMiniGrid-LavaGap-v0": EnvEntry(
        "minigrid_lava_gap",
        196,
        "minigrid_lava_gap/explicit",
        "drift_envs.envs.minigrid.env:LavaGapGrid",
        extra="minigrid",
    ),
    "DriftMiniGrid-KeyCorridor-v0": EnvEntry(
        "minigrid_key_corridor",
        270,
        "minigrid_key_corridor/explicit",
        "drift_envs.envs.minigrid.env:KeyCorridorGrid",
        extra="minigrid",
    ),
    "DriftMiniGrid-Unlock-v0": EnvEntry(
        "minigrid_unlock", 288, "minigrid_unlock/explicit", "drift_envs.envs.minigrid.env:UnlockGrid", extra="minigrid"
    ),
    "DriftMiniGrid-GoToLocal-v0": EnvEntry(
        "minigrid_go_to_local",
        36,
        "minigrid_go_to_local/explicit",
        "drift_envs.envs.minigrid.env:GoToLocalGrid",
        extra="minigrid",
    ),
    **{
        f"DriftMiniWoB{name.title().replace('-', '')}-v0": EnvEntry(
            f"miniwob_{name.replace('-', '_')}",
            limit,
            "miniwob/explicit",
            "drift_envs.envs.miniwob.env:MiniWoB",
            extra="miniwob",
        )
        for name, limit in _WEB_LIMITS.items()
    },
}
"""The ids whose environments need an extra."""

ALL_IDS: dict[str, EnvEntry] = {**IDS, **CONTROL_IDS, **EXTRA_IDS}


def register_all() -> None:
    """Register every id with Gymnasium.

    The passive checker and the order enforcer are left out: `step` before `reset` is an error of
    `DriftWrapper` at no cost, and the tests check every id actively.
    """
    for env_id, entry in ALL_IDS.items():
        gym.register(
            id=env_id,
            entry_point=f"drift_envs.entry_points:{entry.entry_point}",
            vector_entry_point=entry.vector_class and f"drift_envs.entry_points:vector_{entry.entry_point}",
            max_episode_steps=entry.limit,
            order_enforce=False,
            disable_env_checker=True,
        )


def knob_table_of(env_id: str) -> KnobTable:
    """All knobs that a schedule may drive under an id of this package.

    Args:
        env_id: the id.

    Raises:
        ArgumentError: if it is no id of this package.
        MissingDependencyError: if its extra is not installed.

    Example:
        >>> list(knob_table_of("DriftMountainCar-v0"))[:4]
        ['force', 'gravity', 'goal_position', 'transient']
        >>> knob_table_of("DriftFrozenLake-v0")["slip"].default
        0.0
    """
    if env_id not in ALL_IDS:
        raise ArgumentError(f"`env_id` should be one of {', '.join(ALL_IDS)}. Received {env_id!r}")
    from drift_envs.wrappers.binding import knob_table  # imported here, since `drift_envs` imports this module

    base = ALL_IDS[env_id].base
    # With a schedule the ice is not slippery unless the schedule sets `slip`: the knob's default is 0 then.
    return knob_table(base(is_slippery=False) if env_id == "DriftFrozenLake-v0" else base())  # type: ignore[call-arg]

"""The ids of this package, one row each; a module is imported when its environment is made.

* `IDS` - the table: declaration, step limit and default schedule of each id
* `EnvEntry` - a row
* `check_id` - refuses an id that is none of this package
* `register_all` - registers the ids with Gymnasium; called when `drift_envs` is imported
* `knob_table_of` - all knobs that a schedule may drive under an id
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import gymnasium as gym

from drift_envs.errors import UnknownChoiceError
from drift_envs.lazy import load_object

if TYPE_CHECKING:
    from drift_envs.knobs import KnobTable
    from drift_envs.parts import EnvParts


class EnvEntry(NamedTuple):
    """A row of the table.

    Args:
        declaration: the folder in `drift_envs.envs` and the name of the declaration in it.
        limit: the steps of an episode, as the declaration has it.
        schedule: the default schedule.
        is_native: whether the declaration has a native vector environment.
    """

    declaration: str
    limit: int
    schedule: str
    is_native: bool = False

    @property
    def group(self) -> str:
        """The folder in `drift_envs.envs`, as in `frozen_lake`."""
        return self.declaration.partition(":")[0]

    @property
    def parts(self) -> EnvParts:
        """The declaration."""
        found: EnvParts = load_object(f"drift_envs.envs.{self.declaration}")
        return found


IDS: dict[str, EnvEntry] = {
    "DriftFrozenLake-v0": EnvEntry("frozen_lake:FROZEN_LAKE", 100, "frozen_lake/explicit", True),
    "DriftMountainCar-v0": EnvEntry("mountain_car:MOUNTAIN_CAR", 300, "mountain_car/explicit", True),
    "DriftMountainCarContinuous-v0": EnvEntry(
        "mountain_car:MOUNTAIN_CAR_CONTINUOUS", 999, "mountain_car_continuous/explicit", True
    ),
    "DriftHouse-v0": EnvEntry("house:HOUSE", 50, "house/explicit"),
    "DriftTools-v0": EnvEntry("tools:TOOLS", 30, "tools/explicit"),
    "DriftFacts-v0": EnvEntry("facts:FACTS", 30, "facts/explicit"),
    "DriftBfcl-v0": EnvEntry("bfcl:BFCL", 50, "bfcl/explicit"),
    "DriftTau2-v0": EnvEntry("tau2:TAU2", 50, "tau2/explicit"),
    "DriftAlfworld-v0": EnvEntry("alfworld:ALFWORLD", 50, "alfworld/explicit"),
    "DriftWebShop-v0": EnvEntry("webshop:WEBSHOP", 30, "webshop/explicit"),
    "DriftCartPole-v0": EnvEntry("classic_control:CART_POLE", 500, "cart_pole/explicit"),
    "DriftAcrobot-v0": EnvEntry("classic_control:ACROBOT", 500, "acrobot/explicit"),
    "DriftPendulum-v0": EnvEntry("classic_control:PENDULUM", 200, "pendulum/explicit"),
    "DriftLunarLander-v0": EnvEntry("classic_control:LUNAR_LANDER", 1000, "lunar_lander/explicit"),
    "DriftHalfCheetah-v0": EnvEntry("mujoco:HALF_CHEETAH", 1000, "half_cheetah/explicit"),
    "DriftHopper-v0": EnvEntry("mujoco:HOPPER", 1000, "hopper/explicit"),
    "DriftInvertedPendulum-v0": EnvEntry("mujoco:INVERTED_PENDULUM", 1000, "inverted_pendulum/explicit"),
    "DriftReacher-v0": EnvEntry("mujoco:REACHER", 50, "reacher/explicit"),
    "DriftMiniGrid-Empty-v0": EnvEntry("minigrid:EMPTY", 256, "minigrid_empty/explicit"),
    "DriftMiniGrid-DoorKey-v0": EnvEntry("minigrid:DOOR_KEY", 640, "minigrid_door_key/explicit"),
    "DriftMiniGrid-MultiRoom-v0": EnvEntry("minigrid:MULTI_ROOM", 40, "minigrid_multi_room/explicit"),
    "DriftMiniGrid-LavaGap-v0": EnvEntry("minigrid:LAVA_GAP", 196, "minigrid_lava_gap/explicit"),
    "DriftMiniGrid-KeyCorridor-v0": EnvEntry("minigrid:KEY_CORRIDOR", 270, "minigrid_key_corridor/explicit"),
    "DriftMiniGrid-Unlock-v0": EnvEntry("minigrid:UNLOCK", 288, "minigrid_unlock/explicit"),
    "DriftMiniGrid-GoToLocal-v0": EnvEntry("minigrid:GO_TO_LOCAL", 36, "minigrid_go_to_local/explicit"),
    "DriftMiniWoBClickButton-v0": EnvEntry("miniwob:CLICK_BUTTON", 10, "miniwob/explicit"),
    "DriftMiniWoBClickDialog-v0": EnvEntry("miniwob:CLICK_DIALOG", 10, "miniwob/explicit"),
    "DriftMiniWoBClickTab-v0": EnvEntry("miniwob:CLICK_TAB", 10, "miniwob/explicit"),
    "DriftMiniWoBEnterText-v0": EnvEntry("miniwob:ENTER_TEXT", 10, "miniwob/explicit"),
    "DriftMiniWoBLoginUser-v0": EnvEntry("miniwob:LOGIN_USER", 10, "miniwob/explicit"),
    "DriftMiniWoBChooseList-v0": EnvEntry("miniwob:CHOOSE_LIST", 10, "miniwob/explicit"),
    "DriftMiniWoBNavigateTree-v0": EnvEntry("miniwob:NAVIGATE_TREE", 20, "miniwob/explicit"),
    "DriftMiniWoBSearchEngine-v0": EnvEntry("miniwob:SEARCH_ENGINE", 10, "miniwob/explicit"),
    "DriftMiniWoBBookFlight-v0": EnvEntry("miniwob:BOOK_FLIGHT", 30, "miniwob/explicit"),
    "DriftMiniWoBUseAutocomplete-v0": EnvEntry("miniwob:USE_AUTOCOMPLETE", 10, "miniwob/explicit"),
}
"""All ids. Limit and `is_native` stand here too, since registering an id should not import its folder."""


def register_all() -> None:
    """Register every id with Gymnasium.

    The passive checker and the order enforcer are left out: `step` before `reset` is an error of
    `DriftWrapper` at no cost, and the tests check every id actively.
    """
    for env_id, entry in IDS.items():
        place = f"drift_envs.entry_points:{entry.declaration.partition(':')[2].lower()}"
        gym.register(
            id=env_id,
            entry_point=place,
            vector_entry_point=f"{place}_vector" if entry.is_native else None,
            max_episode_steps=entry.limit,
            order_enforce=False,
            disable_env_checker=True,
        )


def check_id(env_id: str) -> None:
    """Refuse an id that is none of this package.

    Raises:
        UnknownChoiceError: if it is not in `IDS`.

    Example:
        >>> check_id("DriftFrozenLak-v0")
        Traceback (most recent call last):
        drift_envs.errors.UnknownChoiceError: there is no id 'DriftFrozenLak-v0' in drift-envs. Did you mean \
`DriftFrozenLake-v0`?
    """
    if env_id not in IDS:
        from drift_envs.schedule.yaml import nearest  # imported here, since only the error needs it

        raise UnknownChoiceError(f"there is no id {env_id!r} in drift-envs. {nearest(env_id, IDS)}")


def knob_table_of(env_id: str) -> KnobTable:
    """All knobs that a schedule may drive under an id of this package.

    Args:
        env_id: the id.

    Raises:
        UnknownChoiceError: if it is no id of this package.
        MissingDependencyError: if its extra is not installed.

    Example:
        >>> list(knob_table_of("DriftMountainCar-v0"))[:4]
        ['force', 'gravity', 'goal_position', 'transient']
        >>> knob_table_of("DriftFrozenLake-v0")["slip"].default
        0.0
    """
    check_id(env_id)
    from drift_envs.wrappers.binding import knob_table  # imported here, since `drift_envs` imports this module

    parts = IDS[env_id].parts
    return knob_table(parts.env_class(**parts.fixed, **parts.with_schedule))

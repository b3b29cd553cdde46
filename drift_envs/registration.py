"""The table of environments: a row for each id says what it consists of.

References are strings, and a module is imported when its environment is made, so that `import drift_envs` stays cheap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from drift_envs.errors import ArgumentError, MissingDependencyError, check_versions, explain_import
from drift_envs.utils.lazy import load_object

if TYPE_CHECKING:
    from drift_envs.knobs import KnobTable


@dataclass(frozen=True)
class Controls:
    """The keys by which a person plays an environment.

    Args:
        keys: the action of each key, by pygame's name of the key; a tuple of numbers for a `Box` space.
        idle: the action while no key is held; `None` if the environment waits for a key.
        help: the keys in words.
        ends_at_goal: whether episodes terminate at the goal only; if not, a positive reward marks success.
        has_goal: whether there is a goal; if not, the return is printed.
    """

    keys: Mapping[str, Any]
    idle: Any
    help: str
    ends_at_goal: bool = True
    has_goal: bool = True


@dataclass(frozen=True)
class EnvParts:
    """What an environment consists of. References are strings `module:name`; `None` where it has no such part.

    Args:
        env: the class of the innermost environment.
        knobs: its knob table, which can be loaded without the environment's extra.
        limit: the steps of an episode.
        schedule: the default schedule of the id, for environments of this package.
        home: the package that references beginning with a dot stand in.
        arguments: the arguments of the class, each with the part of a schedule that sets the same, or `None`.
        fixed: arguments of the class that belong to the id.
        with_schedule: arguments of the class that have another default where a schedule drives the environment.
        build: builds the environment from the declaration, the schedule, the shared options and the arguments;
            by default `drift_envs.wrappers.options:build_plain`.
        text: the describer, a function of the environment: its states, tasks and actions in words.
        text_mode: the `observation_mode` with which the environment itself shows text; needs no describer.
        oracle: builds the oracle from the drifting environment, a function that returns the innermost environment
            after its first reset, and the step limit.
        knows_optimum: whether the oracle knows the optimum, or only what an action leads to.
        vector: the class of the native NumPy vector environment.
        functional: the class of the form as pure functions for JAX.
        marks: what is drawn on pictures for people, a class as `drift_envs.wrappers.overlay:Marks`.
        controls: the keys for `drift-envs play`; `None` where a person cannot control it.
        extra: the extra of this package that the environment needs.

    Example:
        >>> lake = IDS["DriftFrozenLake-v0"]
        >>> lake.group, lake.env_class.__name__, lake.extra
        ('frozen_lake', 'FrozenLake', None)
    """

    env: str
    knobs: str
    limit: int
    schedule: str = ""
    home: str = ""
    arguments: Mapping[str, str | None] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    with_schedule: Mapping[str, Any] = field(default_factory=dict)
    build: str = "drift_envs.wrappers.options:build_plain"
    text: str | None = None
    text_mode: str | None = None
    oracle: str | None = None
    knows_optimum: bool = True
    vector: str | None = None
    functional: str | None = None
    marks: str | None = None
    controls: Controls | None = None
    extra: str | None = None

    @property
    def group(self) -> str:
        """The folder in `drift_envs.envs`, as in `frozen_lake`."""
        return self.home.rpartition(".")[2]

    @property
    def env_class(self) -> type[gym.Env[Any, Any]]:
        """The class of the innermost environment.

        Raises:
            MissingDependencyError: if the extra that it needs is not installed, or in a version that does not fit.
        """
        found: type[gym.Env[Any, Any]] = self.load("env")
        return found

    @property
    def knob_table(self) -> KnobTable:
        """The environment's own knobs."""
        table: KnobTable = self.load("knobs")
        return table

    def load(self, name: str) -> Any:
        """The object behind a reference.

        Args:
            name: the reference, as `text`.

        Raises:
            ArgumentError: if the environment has no such part.
            MissingDependencyError: if the extra that it needs is not installed, or in a version that does not fit.
        """
        reference = getattr(self, name)
        if reference is None:
            raise ArgumentError(f"`{name}` should be a part of {self.env.rpartition(':')[2]}, which has none")
        if self.extra is None:
            return load_object(reference, self.home)
        check_versions(self.extra)
        try:
            return load_object(reference, self.home)
        except MissingDependencyError:
            raise
        except (ImportError, gym.error.DependencyNotInstalled) as error:
            missing = (getattr(error, "name", None) or self.extra).partition(".")[0]
            raise explain_import(error, missing, self.extra) from error


def parts_of(env: gym.Env[Any, Any]) -> EnvParts | None:
    """What an environment consists of; `None` if its class does not say so in the attribute `parts`.

    Args:
        env: the environment, in wrappers or not.
    """
    parts = getattr(type(env.unwrapped), "parts", None)
    return parts if isinstance(parts, EnvParts) else None


def _with_tasks(home: str, env: str, knobs: str, limit: int, **parts: Any) -> EnvParts:
    """An environment with numbered tasks, of which the schedule may choose, and with states in words."""
    arguments = {**parts.pop("arguments", {}), "pool": "tasks", "order": "tasks"}
    return EnvParts(
        env,
        knobs,
        limit,
        f"{home}/explicit",
        f"drift_envs.envs.{home}",
        arguments={"observation_mode": None, **arguments},
        build=parts.pop("build", "drift_envs.wrappers.options:build_with_tasks"),
        text_mode=parts.pop("text_mode", "state"),
        oracle=".oracle:make_oracle",
        **parts,
    )


def _physics(home: str, env: str, knobs: str, limit: int, schedule: str, **parts: Any) -> EnvParts:
    """An environment whose oracle knows what an action leads to, and no optimum."""
    place, oracle = f"drift_envs.envs.{home}", ".oracle:make_oracle"
    return EnvParts(env, knobs, limit, f"{schedule}/explicit", place, oracle=oracle, knows_optimum=False, **parts)


def _mountain_car(name: str, limit: int, schedule: str, **parts: Any) -> EnvParts:
    return EnvParts(
        f".env:{name}",
        limit=limit,
        schedule=f"{schedule}/explicit",
        home="drift_envs.envs.mountain_car",
        arguments={"goal_velocity": None},
        oracle=".oracle:make_oracle",
        vector=f".vector:Vector{name}",
        **parts,
    )


def _minigrid(name: str, limit: int, *arguments: str) -> tuple[str, EnvParts]:
    schedule = "minigrid_" + "".join(f"_{one.lower()}" if one.isupper() else one for one in name).removeprefix("_")
    row = EnvParts(
        f".env:{name}Grid",
        ".dynamics:MINIGRID_KNOBS",
        limit,
        f"{schedule}/explicit",
        "drift_envs.envs.minigrid",
        dict.fromkeys(arguments),
        text=".env:GridDescriber",
        oracle=".oracle:make_oracle",
        controls=Controls(
            {"left": 0, "right": 1, "up": 2, "a": 0, "d": 1, "w": 2, "p": 3, "o": 4, "space": 5},
            None,
            "left and right: turn; up: go; p: pick up; o: drop; space: open or close",
            ends_at_goal=False,
        ),
        extra="minigrid",
    )
    return f"DriftMiniGrid-{name}-v0", row


def _miniwob(task: str, limit: int = 10) -> tuple[str, EnvParts]:
    row = _with_tasks(
        "miniwob",
        ".env:MiniWoB",
        ".:MINIWOB_KNOBS",
        limit,
        arguments=dict.fromkeys(("data_mode", "action_preset")),
        fixed={"task": task},
        build=".env:build",
        extra="miniwob",
    )
    return f"DriftMiniWoB{task.title().replace('-', '')}-v0", row


_PUSH = "left and right or a d: push"

IDS: dict[str, EnvParts] = {
    "DriftFrozenLake-v0": EnvParts(
        ".env:FrozenLake",
        ".knobs:FROZEN_LAKE_KNOBS",
        100,
        "frozen_lake/explicit",
        "drift_envs.envs.frozen_lake",
        arguments={
            "desc": "map",
            "map_name": "map",
            "is_slippery": "slip",
            "success_rate": "slip",
            "reward_schedule": "goal_rewards",
        },
        with_schedule={"is_slippery": False},
        build=".env:build",
        text=".env:LakeDescriber",
        oracle=".oracle:make_oracle",
        vector=".vector:VectorFrozenLake",
        functional=".functional:FunctionalLake",
        marks=".env:LakeMarks",
        controls=Controls(
            {"left": 0, "down": 1, "right": 2, "up": 3, "a": 0, "s": 1, "d": 2, "w": 3},
            None,
            "arrows or w a s d: move",
            ends_at_goal=False,
        ),
    ),
    "DriftMountainCar-v0": _mountain_car(
        "MountainCar",
        300,
        "mountain_car",
        knobs=".env:MOUNTAIN_CAR_KNOBS",
        text=".env:describe_car",
        functional=".functional:FunctionalCar",
        marks=".env:CarMarks",
        controls=Controls({"left": 0, "right": 2, "a": 0, "d": 2}, 1, _PUSH),
    ),
    "DriftMountainCarContinuous-v0": _mountain_car(
        "MountainCarContinuous",
        999,
        "mountain_car_continuous",
        knobs=".env:MOUNTAIN_CAR_CONTINUOUS_KNOBS",
        text=".env:describe_continuous_car",
        functional=".functional:FunctionalCarContinuous",
        marks=".env:ContinuousCarMarks",
        controls=Controls({"left": (-1.0,), "right": (1.0,), "a": (-1.0,), "d": (1.0,)}, (0.0,), _PUSH),
    ),
    "DriftHouse-v0": _with_tasks("house", ".env:House", ".knobs:HOUSE_KNOBS", 50, marks=".env:HouseMarks"),
    "DriftTools-v0": _with_tasks(
        "tools",
        ".env:ServiceDesk",
        ".interface:TOOLS_KNOBS",
        30,
        arguments={"held_out": None},
        marks=".env:DeskMarks",
    ),
    "DriftFacts-v0": _with_tasks("facts", ".env:Facts", ".world:FACTS_KNOBS", 30, arguments={"held_out": None}),
    "DriftRepository-v0": _with_tasks(
        "repository",
        ".env:Repository",
        ".conventions:REPOSITORY_KNOBS",
        30,
        arguments={"held_out": None},
    ),
    "DriftBfcl-v0": _with_tasks("bfcl", ".env:BfclTools", ".interface:BFCL_KNOBS", 50, extra="bfcl"),
    "DriftTau2-v0": _with_tasks("tau2", ".env:Tau2Tools", ".interface:TAU2_KNOBS", 50, extra="tau2"),
    "DriftAlfworld-v0": _with_tasks(
        "alfworld", ".env:Alfworld", ".knobs:ALFWORLD_KNOBS", 50, build=".env:build", extra="alfworld"
    ),
    "DriftWebShop-v0": _with_tasks(
        "webshop",
        ".env:WebShop",
        ".env:WEBSHOP_KNOBS",
        30,
        arguments={
            "backend": None,
            "catalogue": None,
            "goals": "tasks",
            "clusters": "tasks",
            "repeats": "tasks",
            "held_out": "tasks",
            "max_length": None,
            "native_clicks": None,
        },
        build=".env:build",
        text_mode="url+text",
        marks=".env:ShopMarks",
    ),
    "DriftCartPole-v0": _physics(
        "classic_control",
        ".env:CartPole",
        ".:CART_POLE_KNOBS",
        500,
        "cart_pole",
        arguments={"sutton_barto_reward": None},
        text=".env:describe",
        marks=".env:CartMarks",
        controls=Controls({"left": 0, "right": 1, "a": 0, "d": 1}, None, f"{_PUSH}, one step each", has_goal=False),
    ),
    "DriftAcrobot-v0": _physics(
        "classic_control",
        ".env:Acrobot",
        ".:ACROBOT_KNOBS",
        500,
        "acrobot",
        text=".env:describe",
        controls=Controls({"left": 0, "right": 2, "a": 0, "d": 2}, 1, "left and right or a d: turn the joint"),
    ),
    "DriftPendulum-v0": _physics(
        "classic_control",
        ".env:Pendulum",
        ".:PENDULUM_KNOBS",
        200,
        "pendulum",
        arguments={"g": "g"},
        text=".env:describe",
        controls=Controls(
            {"left": (-2.0,), "right": (2.0,), "a": (-2.0,), "d": (2.0,)},
            (0.0,),
            "left and right or a d: torque",
            has_goal=False,
        ),
    ),
    "DriftLunarLander-v0": _physics(
        "classic_control",
        ".lunar_lander:LunarLander",
        ".:LUNAR_LANDER_KNOBS",
        1000,
        "lunar_lander",
        arguments={"continuous": None},
        controls=Controls(
            {"left": 1, "up": 2, "right": 3, "a": 1, "w": 2, "d": 3},
            0,
            "left, up, right or a w d: fire an engine",
            ends_at_goal=False,
        ),
        extra="box2d",
    ),
    # A keyboard has too few keys for the actuators of the first two.
    "DriftHalfCheetah-v0": _physics(
        "mujoco",
        ".env:HalfCheetah",
        ".:RUNNER_KNOBS",
        1000,
        "half_cheetah",
        text=".:describe",
        extra="mujoco",
    ),
    "DriftHopper-v0": _physics(
        "mujoco", ".env:Hopper", ".:RUNNER_KNOBS", 1000, "hopper", text=".:describe", extra="mujoco"
    ),
    "DriftInvertedPendulum-v0": _physics(
        "mujoco",
        ".env:InvertedPendulum",
        ".:BALANCER_KNOBS",
        1000,
        "inverted_pendulum",
        text=".:describe",
        controls=Controls(
            {"left": (-3.0,), "right": (3.0,), "a": (-3.0,), "d": (3.0,)},
            (0.0,),
            _PUSH,
            has_goal=False,
        ),
        extra="mujoco",
    ),
    "DriftReacher-v0": _physics(
        "mujoco",
        ".env:Reacher",
        ".:REACHER_KNOBS",
        50,
        "reacher",
        text=".:describe",
        controls=Controls(
            {"left": (0.3, 0.0), "right": (-0.3, 0.0), "up": (0.0, 0.3), "down": (0.0, -0.3)},
            (0.0, 0.0),
            "left and right: turn the upper joint; up and down: the lower one",
            has_goal=False,
        ),
        extra="mujoco",
    ),
    **dict(
        [
            _minigrid("Empty", 256, "size"),
            _minigrid("DoorKey", 640, "size"),
            _minigrid("MultiRoom", 40, "rooms", "room_size"),
            _minigrid("LavaGap", 196, "size"),
            _minigrid("KeyCorridor", 270, "room_size", "num_rows"),
            _minigrid("Unlock", 288),
            _minigrid("GoToLocal", 36, "room_size", "num_dists"),
            _miniwob("click-button"),
            _miniwob("click-dialog"),
            _miniwob("click-tab"),
            _miniwob("enter-text"),
            _miniwob("login-user"),
            _miniwob("choose-list"),
            _miniwob("navigate-tree", 20),
            _miniwob("search-engine"),
            _miniwob("book-flight", 30),
            _miniwob("use-autocomplete"),
        ]
    ),
}


def register_all() -> None:
    """Register every id with Gymnasium; called when `drift_envs` is imported.

    The passive checker and the order enforcer are left out: `step` before `reset` is an error of
    `DriftWrapper` at no cost, and the tests check every id actively.
    """
    for env_id, parts in IDS.items():
        place = f"drift_envs.envs.make:{env_id}"
        gym.register(
            id=env_id,
            entry_point=place,
            vector_entry_point=None if parts.vector is None else f"{place}_vector",
            max_episode_steps=parts.limit,
            order_enforce=False,
            disable_env_checker=True,
        )

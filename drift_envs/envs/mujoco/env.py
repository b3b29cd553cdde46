"""MuJoCo's environments of Gymnasium with knobs, and in words; needs the extra `mujoco`."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from itertools import product
from typing import Any, ClassVar

import mujoco
import numpy as np
from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv
from gymnasium.envs.mujoco.inverted_pendulum_v5 import InvertedPendulumEnv
from gymnasium.envs.mujoco.mujoco_rendering import MujocoRenderer
from gymnasium.envs.mujoco.reacher_v5 import ReacherEnv

from drift_envs.attribute_knobs import AttributeEnv, AttributeKnob
from drift_envs.envs.mujoco import (
    BALANCER_ATTRIBUTES,
    BALANCER_KNOBS,
    REACHER_ATTRIBUTES,
    REACHER_KNOBS,
    RUNNER_ATTRIBUTES,
    RUNNER_KNOBS,
)
from drift_envs.knobs import KnobTable, Value
from drift_envs.registration import IDS, EnvParts
from drift_envs.wrappers.field_text import FieldDescriber, FieldText, Numbers

CAMERA = "track"
"""The model's camera that follows a runner. Newer releases of Gymnasium take a free one, which a runner leaves."""


class MujocoKnobs(AttributeEnv):
    """Knobs, state and copies of MuJoCo's environments.

    Inertias follow the masses, and what MuJoCo derives from both is recomputed.
    """

    surfaces: ClassVar[tuple[str, ...]] = ("mujoco_renderer",)
    model: Any
    data: Any
    _inertia: Any = None

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        if "mass" in values:
            if self._inertia is None:
                self._inertia = self.model.body_inertia.copy()
            self.model.body_inertia[:] = self._inertia * values["mass"]
        super().set_knobs(values)

    def save_state(self) -> dict[str, Any]:
        """MuJoCo's data: positions, velocities and all that is derived."""
        return {"data": copy.copy(self.data)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state of an episode.

        Args:
            state: from `save_state`.
        """
        mujoco.mj_copyData(self.data, self.model, state["data"])

    def _set(self, positions: Any, velocities: Any) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self.set_state(np.array(positions, float), np.array(velocities, float))  # type: ignore[attr-defined]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over the attributes, with a renderer of its own."""
        self.__dict__.update(state)
        self.mujoco_renderer = MujocoRenderer(
            self.model,
            self.data,
            self.default_camera_config,
            self.width,
            self.height,
            camera_id=self.camera_id,
            camera_name=self.camera_name,
        )

    default_camera_config: Any = None
    width: int
    height: int
    camera_id: int | None
    camera_name: str | None


class _Runner(MujocoKnobs):
    """The knobs of the runners."""

    attributes: ClassVar[tuple[AttributeKnob, ...]] = RUNNER_ATTRIBUTES
    knobs: ClassVar[KnobTable] = RUNNER_KNOBS

    def set_state_seen(self, observation: Any) -> None:
        """Set what the observation shows, at position 0; velocities beyond its limits are those limits.

        Args:
            observation: positions without the first, and velocities.
        """
        count = self.model.nq - 1
        self._set([0.0, *observation[:count]], observation[count:])


class HalfCheetah(_Runner, HalfCheetahEnv):
    """Gymnasium's HalfCheetah-v5 with knobs; at their defaults it is bit-identical.

    Knobs: `gravity`, `friction`, `mass`, `damping`, `gain`, `forward_reward`, see `RUNNER_KNOBS`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftHalfCheetah-v0"]

    def __init__(self, render_mode: str | None = None) -> None:
        HalfCheetahEnv.__init__(self, render_mode=render_mode, camera_name=CAMERA)
        self.make_tunable()


class Hopper(_Runner, HopperEnv):
    """Gymnasium's Hopper-v5 with knobs; at their defaults it is bit-identical.

    Knobs: `gravity`, `friction`, `mass`, `damping`, `gain`, `forward_reward`, see `RUNNER_KNOBS`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftHopper-v0"]

    def __init__(self, render_mode: str | None = None) -> None:
        HopperEnv.__init__(self, render_mode=render_mode, camera_name=CAMERA)
        self.make_tunable()


class InvertedPendulum(MujocoKnobs, InvertedPendulumEnv):
    """Gymnasium's InvertedPendulum-v5 with knobs; at their defaults it is bit-identical.

    Knobs: `gravity`, `mass`, `damping`, `gain`, see `BALANCER_KNOBS`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftInvertedPendulum-v0"]

    attributes: ClassVar[tuple[AttributeKnob, ...]] = BALANCER_ATTRIBUTES
    knobs: ClassVar[KnobTable] = BALANCER_KNOBS

    def __init__(self, render_mode: str | None = None) -> None:
        InvertedPendulumEnv.__init__(self, render_mode=render_mode)
        self.make_tunable()

    def set_state_seen(self, observation: Any) -> None:
        """Set positions and velocities.

        Args:
            observation: the four numbers.
        """
        self._set(observation[:2], observation[2:])


class Reacher(MujocoKnobs, ReacherEnv):
    """Gymnasium's Reacher-v5 with knobs; at their defaults it is bit-identical.

    Knobs: `mass`, `damping`, `gain`, `target_turn`, see `REACHER_KNOBS`. With `target_turn` the point that pays is
    another one than the target that is seen.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftReacher-v0"]

    attributes: ClassVar[tuple[AttributeKnob, ...]] = REACHER_ATTRIBUTES
    knobs: ClassVar[KnobTable] = REACHER_KNOBS

    def __init__(self, render_mode: str | None = None) -> None:
        self.target_turn = 0.0
        ReacherEnv.__init__(self, render_mode=render_mode)
        self.make_tunable()

    get_body_com: Any  # Gymnasium's has no annotations

    def _get_rew(self, action: Any) -> Any:
        if self.target_turn == 0.0:
            return ReacherEnv._get_rew(self, action)  # type: ignore[no-untyped-call]
        cosine, sine = math.cos(self.target_turn), math.sin(self.target_turn)
        x, y, height = self.get_body_com("target")
        pays = np.array([cosine * x - sine * y, sine * x + cosine * y, height])
        near = -np.linalg.norm(self.get_body_com("fingertip") - pays) * self._reward_dist_weight
        control = -np.square(action).sum() * self._reward_control_weight
        return near + control, {"reward_dist": near, "reward_ctrl": control}

    def set_state_seen(self, observation: Any) -> None:
        """Set angles, velocities and target.

        Args:
            observation: cosines and sines of both angles, target, both velocities, and the way to the target.
        """
        angles = np.arctan2(observation[2:4], observation[0:2])
        self._set([*angles, *observation[4:6]], [*observation[6:8], 0.0, 0.0])


def _reacher_fields(seen: Numbers) -> list[float]:
    cos1, cos2, sin1, sin2, *rest = seen
    return [math.atan2(sin1, cos1), math.atan2(sin2, cos2), *rest[:4]]


def _reacher_observation(numbers: Numbers) -> list[float]:
    """The way to the target, the last two numbers of an observation, follows from the others."""
    one, other, target_x, target_y, *velocities = numbers
    x = 0.1 * math.cos(one) + 0.11 * math.cos(one + other)
    y = 0.1 * math.sin(one) + 0.11 * math.sin(one + other)
    cosines, sines = [math.cos(one), math.cos(other)], [math.sin(one), math.sin(other)]
    return [*cosines, *sines, target_x, target_y, *velocities, x - target_x, y - target_y]


def _vectors(*choices: Numbers) -> tuple[str, ...]:
    """Every combination of one number of each list, as text."""
    return tuple(json.dumps([float(number) for number in one]) for one in product(*choices))


_LIMBS = ("back_thigh", "back_shin", "back_foot", "front_thigh", "front_shin", "front_foot")
_LEGS = tuple(
    json.dumps([float(back)] * 3 + [float(front)] * 3) for back in (-1, 0, 1) for front in (-1, 0, 1)
)  # each leg's three actuators as one
TEXTS = {
    "InvertedPendulum": FieldText(
        ("slider_position", "pole_angle", "slider_velocity", "pole_velocity"),
        ("-3.0", "-1.0", "0.0", "1.0", "3.0"),
        "A pole stands on a slider. Each step is paid, and the episode ends when the pole leans by more than 0.2.",
        "the force on the slider, from -3.0 to 3.0",
        1000.0,
        best=1.0,
    ),
    "Reacher": FieldText(
        ("joint_1", "joint_2", "target_x", "target_y", "joint_velocity_1", "joint_velocity_2"),
        _vectors((-0.3, 0, 0.3), (-0.3, 0, 0.3)),
        "An arm of two links, of 0.1 and 0.11 in length, turns about the origin; a target is seen. Each step costs the "
        "distance of the tip from the point that pays, and the squares of the torques.",
        "the torques of both joints",
        50.0,
        1.0,
        best=1.0,
        to_fields=_reacher_fields,
        to_observation=_reacher_observation,
    ),
    "HalfCheetah": FieldText(
        (
            *("height", "pitch", *_LIMBS),
            *("velocity_x", "velocity_z", "velocity_pitch", *(f"velocity_{limb}" for limb in _LIMBS)),
        ),
        _LEGS,
        "A runner with two legs. Speed along the ground is paid, torques cost.",
        "the torques of the three joints of the back leg and of the front leg",
        1000.0,
    ),
    "Hopper": FieldText(
        (
            *("height", "pitch", "thigh", "leg", "foot"),
            *("velocity_x", "velocity_z", "velocity_pitch", "velocity_thigh", "velocity_leg", "velocity_foot"),
        ),
        ("[0.0, 0.0, 0.0]", *_vectors((-1, 1), (-1, 1), (-1, 1))),
        "A leg that hops. Speed along the ground and each step are paid, torques cost, and the episode ends with a "
        "fall.",
        "the torques of thigh, leg and foot",
        1000.0,
    ),
}
"""By the name of the class."""


def describe(env: Any) -> FieldDescriber:
    """The words for an environment of this folder.

    Args:
        env: the innermost environment.
    """
    name = next(one.__name__ for one in type(env).__mro__ if one.__name__ in TEXTS)
    return FieldDescriber(env, TEXTS[name])

"""MuJoCo's environments of Gymnasium with knobs; needs the extra `mujoco`."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import mujoco
import numpy as np
from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv
from gymnasium.envs.mujoco.inverted_pendulum_v5 import InvertedPendulumEnv
from gymnasium.envs.mujoco.mujoco_rendering import MujocoRenderer
from gymnasium.envs.mujoco.reacher_v5 import ReacherEnv

from drift_envs.attributes.declarations import AttributeKnob
from drift_envs.attributes.env import AttributeEnv
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

CAMERA = "track"
"""The model's camera that follows a runner. Newer releases of Gymnasium take a free one, which a runner leaves."""

_NEXT_STEP = int(mujoco.mjtState.mjSTATE_INTEGRATION)
"""The numbers of MuJoCo's state from which the next step follows."""


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

    def save_running(self) -> Any:
        """The numbers from which MuJoCo's next step follows."""
        found = np.empty(mujoco.mj_stateSize(self.model, _NEXT_STEP))
        mujoco.mj_getState(self.model, self.data, found, _NEXT_STEP)
        return found

    def load_running(self, saved: Any) -> None:
        """Restore the state of an episode of another process.

        Args:
            saved: from `save_running`.
        """
        mujoco.mj_setState(self.model, self.data, saved, _NEXT_STEP)
        mujoco.mj_forward(self.model, self.data)  # all that is derived, for pictures
        mujoco.mj_setState(self.model, self.data, saved, _NEXT_STEP)

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

    Its knobs are those of `RUNNER_KNOBS`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftHalfCheetah-v0"]

    def __init__(self, render_mode: str | None = None) -> None:
        HalfCheetahEnv.__init__(self, render_mode=render_mode, camera_name=CAMERA)
        self.make_tunable()


class Hopper(_Runner, HopperEnv):
    """Gymnasium's Hopper-v5 with knobs; at their defaults it is bit-identical.

    Its knobs are those of `RUNNER_KNOBS`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftHopper-v0"]

    def __init__(self, render_mode: str | None = None) -> None:
        HopperEnv.__init__(self, render_mode=render_mode, camera_name=CAMERA)
        self.make_tunable()


class InvertedPendulum(MujocoKnobs, InvertedPendulumEnv):
    """Gymnasium's InvertedPendulum-v5 with knobs; at their defaults it is bit-identical.

    Its knobs are those of `BALANCER_KNOBS`.

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

    Its knobs are those of `REACHER_KNOBS`. With `target_turn` the point that pays is
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

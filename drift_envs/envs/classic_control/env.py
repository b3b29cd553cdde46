"""CartPole, Acrobot and Pendulum with knobs, and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv

from drift_envs.attributes.declarations import ACROBOT, CARTPOLE, PENDULUM, AttributeKnob, DerivedAttribute
from drift_envs.attributes.env import AttributeEnv
from drift_envs.envs.classic_control import ACROBOT_KNOBS, CART_POLE_KNOBS, GAIN, PENDULUM_KNOBS
from drift_envs.knobs import KnobTable, Value
from drift_envs.registration import IDS, EnvParts
from drift_envs.wrappers.overlay import ForceMarks
from drift_envs.wrappers.text import FieldDescriber, FieldText, Numbers


class CartPole(AttributeEnv, CartPoleEnv):
    """Gymnasium's CartPole with knobs; at their defaults it is bit-identical to `CartPoleEnv`.

    Actions, observations and rewards are Gymnasium's. `total_mass` and `polemass_length` are recomputed.

    Knobs, with defaults and bounds: `drift-envs list --env DriftCartPole-v0`.

    Args:
        sutton_barto_reward: whether the reward is 0 a step and -1 at the end, instead of 1 a step.
        render_mode: `human`, `rgb_array` or `None`.

    Example:
        >>> env = CartPole()
        >>> env.set_knobs({"masspole": 0.5})
        >>> env.total_mass
        1.5
    """

    attributes: ClassVar[tuple[AttributeKnob, ...]] = CARTPOLE[0]
    followers: ClassVar[tuple[DerivedAttribute, ...]] = CARTPOLE[1]
    knobs: ClassVar[KnobTable] = CART_POLE_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftCartPole-v0"]
    surfaces: ClassVar[tuple[str, ...]] = ("screen", "clock", "surf")
    state_names: ClassVar[tuple[str, ...]] = ("state", "steps_beyond_terminated")
    state: Any  # Gymnasium's has the type of its first value, `None`

    def __init__(self, sutton_barto_reward: bool = False, render_mode: str | None = None) -> None:
        CartPoleEnv.__init__(self, sutton_barto_reward, render_mode)
        self.make_tunable()

    def set_state_seen(self, observation: Any) -> None:
        """Set position, velocity, angle and angular velocity.

        Args:
            observation: the four numbers.
        """
        self.state = np.array(observation, np.float64)
        self.steps_beyond_terminated = None


class Acrobot(AttributeEnv, AcrobotEnv):
    """Gymnasium's Acrobot with knobs; at their defaults it is bit-identical to `AcrobotEnv`.

    Actions, observations and rewards are Gymnasium's. The centres of mass stay in the middle of the links.

    Knobs, with defaults and bounds: `drift-envs list --env DriftAcrobot-v0`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.

    Example:
        >>> env = Acrobot()
        >>> env.set_knobs({"link_length_1": 2.0})
        >>> env.LINK_COM_POS_1
        1.0
    """

    attributes: ClassVar[tuple[AttributeKnob, ...]] = ACROBOT[0]
    followers: ClassVar[tuple[DerivedAttribute, ...]] = ACROBOT[1]
    knobs: ClassVar[KnobTable] = ACROBOT_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftAcrobot-v0"]
    surfaces: ClassVar[tuple[str, ...]] = ("screen", "clock", "surf")
    state_names: ClassVar[tuple[str, ...]] = ("state",)
    state: Any  # as for CartPole

    def __init__(self, render_mode: str | None = None) -> None:
        AcrobotEnv.__init__(self, render_mode)
        self.make_tunable()

    def set_state_seen(self, observation: Any) -> None:
        """Set angles and angular velocities.

        Args:
            observation: cosine and sine of both angles, and both velocities.
        """
        cos1, sin1, cos2, sin2, velocity1, velocity2 = (float(number) for number in observation)
        self.state = np.array([np.arctan2(sin1, cos1), np.arctan2(sin2, cos2), velocity1, velocity2])


class Pendulum(AttributeEnv, PendulumEnv):
    """Gymnasium's Pendulum with knobs; at their defaults it is bit-identical to `PendulumEnv`.

    Actions, observations and rewards are Gymnasium's; the cost of an action is that of the torque at work.

    Knobs, with defaults and bounds: `drift-envs list --env DriftPendulum-v0`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        g: gravity.

    Example:
        >>> env = Pendulum()
        >>> env.set_knobs({"gain": -1.0})
        >>> env.read_knobs()["gain"]
        -1.0
    """

    attributes: ClassVar[tuple[AttributeKnob, ...]] = (*PENDULUM[0], GAIN)
    knobs: ClassVar[KnobTable] = PENDULUM_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftPendulum-v0"]
    surfaces: ClassVar[tuple[str, ...]] = ("screen", "clock", "surf")
    state_names: ClassVar[tuple[str, ...]] = ("state", "last_u")

    def __init__(self, render_mode: str | None = None, g: float = 10.0) -> None:
        self.gain = 1.0
        PendulumEnv.__init__(self, render_mode, g)
        self.make_tunable()

    def step(self, u: Any) -> Any:
        """Apply the torque times `gain`.

        Args:
            u: the torque, shape `(1,)`.
        """
        given = u if self.gain == 1.0 else np.asarray(u) * self.gain
        return PendulumEnv.step(self, given)  # type: ignore[no-untyped-call]

    def set_state_seen(self, observation: Any) -> None:
        """Set angle and angular velocity.

        Args:
            observation: cosine and sine of the angle, and the velocity.
        """
        cosine, sine, velocity = (float(number) for number in observation)
        self.state = np.array([np.arctan2(sine, cosine), velocity])


def _pendulum_fields(seen: Numbers) -> list[float]:
    cosine, sine, velocity = seen
    return [math.atan2(sine, cosine), velocity]


def _pendulum_observation(numbers: Numbers) -> list[float]:
    angle, velocity = numbers
    return [math.cos(angle), math.sin(angle), velocity]


def _acrobot_fields(seen: Numbers) -> list[float]:
    cos1, sin1, cos2, sin2, *velocities = seen
    return [math.atan2(sin1, cos1), math.atan2(sin2, cos2), *velocities]


def _acrobot_observation(numbers: Numbers) -> list[float]:
    one, other, *velocities = numbers
    return [math.cos(one), math.sin(one), math.cos(other), math.sin(other), *velocities]


_PENDULUM_COST = math.pi**2 + 0.1 * 8**2 + 0.001 * 2**2

TEXTS = {
    "CartPole": FieldText(
        ("cart_position", "cart_velocity", "pole_angle", "pole_velocity"),
        ("0", "1"),
        "A pole stands on a cart. Keep it upright: each step pays, and the episode ends when the pole leans by more "
        "than 0.2095 or the cart is farther than 2.4 from the middle.",
        "0 and 1 push the cart with the same force to opposite sides",
        500.0,
        best=1.0,
    ),
    "Acrobot": FieldText(
        ("angle_1", "angle_2", "velocity_1", "velocity_2"),
        ("0", "1", "2"),
        "Two links of length 1 hang from a pivot, with a motor at the joint between them. Swing the tip to a height of "
        "1 above the pivot. `angle_1` is that of the upper link, 0 where it hangs down; `angle_2` is that of the lower "
        "link relative to the upper one.",
        "torques of the motor to one side, none, and to the other side",
        1.0,
        best=1.0,
        ends_at_goal=True,
        to_fields=_acrobot_fields,
        to_observation=_acrobot_observation,
    ),
    "Pendulum": FieldText(
        ("angle", "angular_velocity"),
        ("-2.0", "-1.0", "0.0", "1.0", "2.0"),
        "A pendulum with a motor at its pivot, too weak to lift it at once; `angle` is 0 where it stands upright. Each "
        "step pays by angle, velocity and torque.",
        "the torque of the motor, from -2.0 to 2.0",
        2 * _PENDULUM_COST * 200,
        _PENDULUM_COST,
        best=0.5,
        to_fields=_pendulum_fields,
        to_observation=_pendulum_observation,
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


class CartMarks(ForceMarks):
    """Arrows below the cart for the force on it."""

    knob: ClassVar[str] = "force_mag"
    usual: ClassVar[float] = 10.0

    def _push_of(self, action: Any) -> float:
        return 2 * int(action) - 1

    def _draw_on(self, surface: Any, old: Mapping[str, Value] | None) -> None:
        width, height = surface.get_size()
        x = width * (0.5 + float(self.env.state[0]) / (2 * self.env.x_threshold))
        self._draw_forces(surface, (x, height - 45), old)  # Gymnasium draws the cart from 115 to 85 pixels

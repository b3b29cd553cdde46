"""Gymnasium's classic control with knobs.

* `CartPole` - a pole on a cart: gravity, masses, length, force, time step
* `Acrobot` - two links: lengths, masses, inertia, noise and factor of the torque
* `Pendulum` - a pendulum: gravity, mass, length, limit and factor of the torque, time step
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv

from drift_envs.attribute_knobs import AttributeEnv, AttributeKnob, DerivedAttribute
from drift_envs.built_in_knobs import ACROBOT, CARTPOLE, PENDULUM
from drift_envs.envs.classic_control.knobs import ACROBOT_KNOBS, CART_POLE_KNOBS, GAIN, PENDULUM_KNOBS
from drift_envs.knobs import KnobTable
from drift_envs.registration import IDS, EnvParts


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

"""Classic control in words.

* `TEXTS` - fields, actions, aim and score of each environment
* `describe` - the words for one
"""

from __future__ import annotations

import math
from typing import Any

from drift_envs.wrappers.field_text import FieldDescriber, FieldText, Numbers


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

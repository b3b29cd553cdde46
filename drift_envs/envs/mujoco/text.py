"""MuJoCo's environments in words.

* `TEXTS` - fields, actions, aim and score of each environment
* `describe` - the words for one
"""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

from drift_envs.wrappers.field_text import FieldDescriber, FieldText, Numbers


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

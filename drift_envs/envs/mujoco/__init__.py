"""Gymnasium's MuJoCo environments with knobs; the knobs and the words stand here, since they need no MuJoCo."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

from drift_envs.attributes.declarations import AttributeKnob, knob_table_of_attributes
from drift_envs.wrappers.text import FieldDescriber, FieldText, Numbers

_GRAVITY = AttributeKnob(
    "gravity", "model.opt.gravity[2]", "float", (-50.0, 0.0), "gravity, in metres a squared second", -9.81
)
_FRICTION = AttributeKnob(
    "friction", "model.geom_friction[:, 0]", "factor", (0.0, 10.0), "factor of the sliding friction of all parts", 1.0
)
_MASS = AttributeKnob("mass", "model.body_mass", "factor", (0.1, 10.0), "factor of all masses and inertias", 1.0)
_DAMPING = AttributeKnob("damping", "model.dof_damping", "factor", (0.0, 10.0), "factor of the joints' damping", 1.0)
_GAIN = AttributeKnob(
    "gain", "model.actuator_gear[:, 0]", "factor", (-10.0, 10.0), "factor of the actuators; negative reverses them", 1.0
)
RUNNER_ATTRIBUTES = (
    _GRAVITY,
    _FRICTION,
    _MASS,
    _DAMPING,
    _GAIN,
    AttributeKnob(
        "forward_reward",
        "_forward_reward_weight",
        "float",
        (-10.0, 10.0),
        "reward of the speed; negative rewards running backward",
        1.0,
    ),
    AttributeKnob(
        "brightness",
        "model.vis.headlight.diffuse",
        "factor",
        (0.0, 1.0),
        "factor of the brightness of the lamp in pictures; no force, state or reward is computed from it",
        1.0,
    ),
)
BALANCER_ATTRIBUTES = (_GRAVITY, _MASS, _DAMPING, _GAIN)
REACHER_ATTRIBUTES = (
    _MASS,
    _DAMPING,
    _GAIN,
    AttributeKnob(
        "target_turn",
        "target_turn",
        "float",
        (-3.2, 3.2),
        "angle, in radians, by which the point that pays is turned from the target about the centre",
        0.0,
    ),
)
RUNNER_KNOBS = knob_table_of_attributes(RUNNER_ATTRIBUTES)
BALANCER_KNOBS = knob_table_of_attributes(BALANCER_ATTRIBUTES)
REACHER_KNOBS = knob_table_of_attributes(REACHER_ATTRIBUTES)


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

"""Gymnasium's MuJoCo environments with knobs; needs the extra `mujoco`, but for the knobs, which stand here."""

from __future__ import annotations

from drift_envs.attribute_knobs import AttributeKnob, knob_table_of_attributes

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

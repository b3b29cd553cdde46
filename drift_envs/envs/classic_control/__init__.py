"""Gymnasium's classic control and LunarLander with knobs, which stand here so that they are listed without Box2D."""

from __future__ import annotations

from drift_envs.attributes.declarations import ACROBOT, CARTPOLE, PENDULUM, AttributeKnob, knob_table_of_attributes

GAIN = AttributeKnob("gain", "gain", "float", (-10.0, 10.0), "factor of the torque; negative reverses it", 1.0)
CART_POLE_KNOBS = knob_table_of_attributes(CARTPOLE[0])
ACROBOT_KNOBS = knob_table_of_attributes(ACROBOT[0])
PENDULUM_KNOBS = knob_table_of_attributes((*PENDULUM[0], GAIN))
LANDER_ATTRIBUTES = (
    AttributeKnob("gravity", "gravity", "float", (-11.999, -0.001), "gravity, in metres a squared second", -10.0),
    AttributeKnob("enable_wind", "enable_wind", "boolean", None, "whether there is wind", False),
    AttributeKnob("wind_power", "wind_power", "float", (0.0, 20.0), "strength of the wind", 15.0),
    AttributeKnob("turbulence_power", "turbulence_power", "float", (0.0, 2.0), "strength of the wind's torque", 1.5),
)
LUNAR_LANDER_KNOBS = knob_table_of_attributes(LANDER_ATTRIBUTES)

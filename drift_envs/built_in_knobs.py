"""The knobs that `DriftWrapper` knows of Gymnasium's CartPole, Acrobot and Pendulum.

* `CARTPOLE`, `ACROBOT`, `PENDULUM` - attributes, and those derived from them
* `built_in_knobs` - the ones of an environment
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from drift_envs.attribute_knobs import AttributeKnob, DerivedAttribute

CARTPOLE = (
    (
        AttributeKnob(
            "gravity", "gravity", bounds=(0.1, 100.0), doc="gravity, in metres a squared second", default=9.8
        ),
        AttributeKnob("masscart", "masscart", bounds=(0.01, 100.0), doc="mass of the cart, in kilograms", default=1.0),
        AttributeKnob("masspole", "masspole", bounds=(0.001, 100.0), doc="mass of the pole, in kilograms", default=0.1),
        AttributeKnob("length", "length", bounds=(0.01, 10.0), doc="half of the pole's length, in metres", default=0.5),
        AttributeKnob(
            "force_mag",
            "force_mag",
            bounds=(-100.0, 100.0),
            doc="force of a push, in newtons; negative reverses",
            default=10.0,
        ),
        AttributeKnob("tau", "tau", bounds=(0.001, 0.2), doc="time between two steps, in seconds", default=0.02),
    ),
    (
        DerivedAttribute("total_mass", ("masspole", "masscart"), "sum"),
        DerivedAttribute("polemass_length", ("masspole", "length"), "product"),
    ),
)

ACROBOT = (
    (
        AttributeKnob(
            "link_length_1", "LINK_LENGTH_1", bounds=(0.1, 10.0), doc="length of the upper link, in metres", default=1.0
        ),
        AttributeKnob(
            "link_length_2", "LINK_LENGTH_2", bounds=(0.1, 10.0), doc="length of the lower link, in metres", default=1.0
        ),
        AttributeKnob(
            "link_mass_1", "LINK_MASS_1", bounds=(0.01, 100.0), doc="mass of the upper link, in kilograms", default=1.0
        ),
        AttributeKnob(
            "link_mass_2", "LINK_MASS_2", bounds=(0.01, 100.0), doc="mass of the lower link, in kilograms", default=1.0
        ),
        AttributeKnob("link_moi", "LINK_MOI", bounds=(0.01, 100.0), doc="moment of inertia of both links", default=1.0),
        AttributeKnob(
            "torque_noise_max", "torque_noise_max", bounds=(0.0, 10.0), doc="noise of the torque", default=0.0
        ),
        AttributeKnob(
            "torque", "AVAIL_TORQUE", "factor", (-10.0, 10.0), "factor of the torque; negative reverses", 1.0
        ),
    ),
    # The centre of mass is in the middle of a link, as it is with Gymnasium's own lengths.
    (
        DerivedAttribute("LINK_COM_POS_1", ("LINK_LENGTH_1",), "product", 0.5),
        DerivedAttribute("LINK_COM_POS_2", ("LINK_LENGTH_2",), "product", 0.5),
    ),
)

PENDULUM = (
    (
        AttributeKnob("g", "g", bounds=(0.0, 100.0), doc="gravity, in metres a squared second", default=10.0),
        AttributeKnob("m", "m", bounds=(0.01, 100.0), doc="mass, in kilograms", default=1.0),
        AttributeKnob("l", "l", bounds=(0.01, 10.0), doc="length, in metres", default=1.0),
        AttributeKnob("max_torque", "max_torque", bounds=(0.0, 100.0), doc="torques beyond it are cut", default=2.0),
        AttributeKnob("dt", "dt", bounds=(0.001, 0.2), doc="time between two steps, in seconds", default=0.05),
    ),
    (),
)

_BUILT_IN = {"CartPoleEnv": CARTPOLE, "AcrobotEnv": ACROBOT, "PendulumEnv": PENDULUM}
_HOME = "gymnasium.envs.classic_control."


def built_in_knobs(env: gym.Env[Any, Any]) -> tuple[tuple[AttributeKnob, ...], tuple[DerivedAttribute, ...]]:
    """The knobs that come with this package for some of Gymnasium's environments, none for others.

    Args:
        env: the environment.
    """
    for base in type(env.unwrapped).__mro__:
        if base.__module__.startswith(_HOME) and base.__name__ in _BUILT_IN:
            return _BUILT_IN[base.__name__]
    return (), ()

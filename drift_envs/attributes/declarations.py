"""Which attributes are knobs: declarations, and those for Gymnasium's CartPole, Acrobot and Pendulum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from drift_envs.knobs import Knob, KnobTable, Value, freeze


@dataclass(frozen=True)
class AttributeKnob:
    """One attribute as a knob.

    Args:
        name: what schedules call it.
        path: the attribute, see `AttributePath`.
        kind: `float`, `integer`, `boolean`, `string`, `array`, `list`, or `factor` for a number that multiplies
            the original value; `None` for the attribute's own type.
        bounds: lowest and highest value.
        doc: one line of meaning.
        default: the value of a new environment; `AttributeKnobs` reads it from the environment where it can.
        setter: a method that is called with the value, by path, instead of setting the attribute.
    """

    name: str
    path: str
    kind: str | None = "float"
    bounds: tuple[float, float] | None = None
    doc: str = ""
    default: Value = None
    setter: str | None = None


@dataclass(frozen=True)
class DerivedAttribute:
    """An attribute derived from others.

    Args:
        path: the attribute.
        parts: the attributes that it is computed from.
        operation: `sum` or `product`.
        factor: a constant that the result is multiplied with.
    """

    path: str
    parts: tuple[str, ...]
    operation: str
    factor: float = 1.0


def knob_table_of_attributes(attributes: Sequence[AttributeKnob]) -> KnobTable:
    """The table of attribute knobs, with the values of a new environment as defaults.

    Args:
        attributes: the knobs; all have a default.
    """
    kinds = {"factor": "float", None: "float"}
    return KnobTable(
        tuple(
            Knob(one.name, freeze(one.default), one.bounds, one.doc, kinds.get(one.kind) or str(one.kind))
            for one in attributes
        )
    )


CARTPOLE = (
    (
        AttributeKnob("gravity", "gravity", "float", (0.1, 100.0), "gravity, in metres a squared second", 9.8),
        AttributeKnob("masscart", "masscart", "float", (0.01, 100.0), "mass of the cart, in kilograms", 1.0),
        AttributeKnob("masspole", "masspole", "float", (0.001, 100.0), "mass of the pole, in kilograms", 0.1),
        AttributeKnob("length", "length", "float", (0.01, 10.0), "half of the pole's length, in metres", 0.5),
        AttributeKnob(
            "force_mag", "force_mag", "float", (-100.0, 100.0), "force of a push, in newtons; negative reverses", 10.0
        ),
        AttributeKnob("tau", "tau", "float", (0.001, 0.2), "time between two steps, in seconds", 0.02),
    ),
    (
        DerivedAttribute("total_mass", ("masspole", "masscart"), "sum"),
        DerivedAttribute("polemass_length", ("masspole", "length"), "product"),
    ),
)

ACROBOT = (
    (
        AttributeKnob(
            "link_length_1", "LINK_LENGTH_1", "float", (0.1, 10.0), "length of the upper link, in metres", 1.0
        ),
        AttributeKnob(
            "link_length_2", "LINK_LENGTH_2", "float", (0.1, 10.0), "length of the lower link, in metres", 1.0
        ),
        AttributeKnob(
            "link_mass_1", "LINK_MASS_1", "float", (0.01, 100.0), "mass of the upper link, in kilograms", 1.0
        ),
        AttributeKnob(
            "link_mass_2", "LINK_MASS_2", "float", (0.01, 100.0), "mass of the lower link, in kilograms", 1.0
        ),
        AttributeKnob("link_moi", "LINK_MOI", "float", (0.01, 100.0), "moment of inertia of both links", 1.0),
        AttributeKnob("torque_noise_max", "torque_noise_max", "float", (0.0, 10.0), "noise of the torque", 0.0),
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
        AttributeKnob("g", "g", "float", (0.0, 100.0), "gravity, in metres a squared second", 10.0),
        AttributeKnob("m", "m", "float", (0.01, 100.0), "mass, in kilograms", 1.0),
        AttributeKnob("l", "l", "float", (0.01, 10.0), "length, in metres", 1.0),
        AttributeKnob("max_torque", "max_torque", "float", (0.0, 100.0), "torques beyond it are cut", 2.0),
        AttributeKnob("dt", "dt", "float", (0.001, 0.2), "time between two steps, in seconds", 0.05),
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

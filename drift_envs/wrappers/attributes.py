"""Knobs for environments that declare none: their attributes, and those derived from them.

* `AttributeKnobs` - makes attributes of any environment tunable
* `AttributeKnob` - one attribute as a knob
* `DerivedAttribute` - an attribute derived from others: a sum or a product
* `declared_knobs` - those of a schedule's section `knobs`
* `built_in_knobs` - those of CartPole, Acrobot and Pendulum
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from drift_envs.errors import DrivenKnobError, KnobError
from drift_envs.knobs import Knob, KnobTable, Value
from drift_envs.schedule.model import Knobs


@dataclass(frozen=True)
class AttributeKnob:
    """One attribute as a knob.

    Args:
        name: what schedules call it.
        path: the attribute, with dots for attributes of attributes.
        kind: `float`, `integer` or `boolean`.
        bounds: lowest and highest value.
        doc: one line of meaning.
    """

    name: str
    path: str
    kind: str = "float"
    bounds: tuple[float, float] | None = None
    doc: str = ""


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


CARTPOLE = (
    (
        AttributeKnob("gravity", "gravity", bounds=(0.1, 100.0), doc="gravity, in metres a squared second"),
        AttributeKnob("masscart", "masscart", bounds=(0.01, 100.0), doc="mass of the cart, in kilograms"),
        AttributeKnob("masspole", "masspole", bounds=(0.001, 100.0), doc="mass of the pole, in kilograms"),
        AttributeKnob("length", "length", bounds=(0.01, 10.0), doc="half of the pole's length, in metres"),
        AttributeKnob("force_mag", "force_mag", bounds=(-100.0, 100.0), doc="force of a push, in newtons"),
        AttributeKnob("tau", "tau", bounds=(0.001, 0.2), doc="time between two steps, in seconds"),
    ),
    (
        DerivedAttribute("total_mass", ("masspole", "masscart"), "sum"),
        DerivedAttribute("polemass_length", ("masspole", "length"), "product"),
    ),
)

ACROBOT = (
    (
        AttributeKnob("link_length_1", "LINK_LENGTH_1", bounds=(0.1, 10.0), doc="length of the upper link, in metres"),
        AttributeKnob("link_length_2", "LINK_LENGTH_2", bounds=(0.1, 10.0), doc="length of the lower link, in metres"),
        AttributeKnob("link_mass_1", "LINK_MASS_1", bounds=(0.01, 100.0), doc="mass of the upper link, in kilograms"),
        AttributeKnob("link_mass_2", "LINK_MASS_2", bounds=(0.01, 100.0), doc="mass of the lower link, in kilograms"),
        AttributeKnob("link_moi", "LINK_MOI", bounds=(0.01, 100.0), doc="moment of inertia of both links"),
        AttributeKnob("torque_noise_max", "torque_noise_max", bounds=(0.0, 10.0), doc="noise of the torque"),
    ),
    # The centre of mass is in the middle of a link, as it is with Gymnasium's own lengths.
    (
        DerivedAttribute("LINK_COM_POS_1", ("LINK_LENGTH_1",), "product", 0.5),
        DerivedAttribute("LINK_COM_POS_2", ("LINK_LENGTH_2",), "product", 0.5),
    ),
)

PENDULUM = (
    (
        AttributeKnob("g", "g", bounds=(0.0, 100.0), doc="gravity, in metres a squared second"),
        AttributeKnob("m", "m", bounds=(0.01, 100.0), doc="mass, in kilograms"),
        AttributeKnob("l", "l", bounds=(0.01, 10.0), doc="length, in metres"),
        AttributeKnob("max_torque", "max_torque", bounds=(0.0, 100.0), doc="torques beyond it are cut"),
        AttributeKnob("dt", "dt", bounds=(0.001, 0.2), doc="time between two steps, in seconds"),
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


def declared_knobs(knobs: Knobs | None) -> tuple[tuple[AttributeKnob, ...], tuple[DerivedAttribute, ...]]:
    """The knobs that a schedule declares in its section `knobs`.

    Args:
        knobs: that section.
    """
    if knobs is None:
        return (), ()
    attributes = tuple(
        AttributeKnob(name, spec.attribute or name, spec.kind, spec.bounds, spec.doc)
        for name, spec in knobs.specs.items()
    )
    followers = tuple(
        DerivedAttribute(path, tuple(derived.sum or derived.product or ()), "sum" if derived.sum else "product")
        for path, derived in knobs.derived.items()
    )
    return attributes, followers


class AttributeKnobs:
    """Makes attributes of any environment tunable.

    An environment of another package can't refuse that its attributes are set. A knob that was set
    from outside is therefore detected, and refused, when knobs are set next.

    Args:
        env: the environment; attributes belong to the innermost one.
        attributes: its knobs.
        followers: the derived attributes, recomputed in this order after a knob was set.

    Raises:
        KnobError: if the environment has no such attribute, or its value does not fit the knob.

    Example:
        >>> env = gym.make("CartPole-v1").unwrapped
        >>> knobs = AttributeKnobs(env, *CARTPOLE)
        >>> knobs.turn({"masspole": 0.5})
        >>> env.total_mass, env.polemass_length
        (1.5, 0.25)
    """

    def __init__(
        self, env: gym.Env[Any, Any], attributes: Sequence[AttributeKnob], followers: Sequence[DerivedAttribute] = ()
    ) -> None:
        self._env = env.unwrapped
        self.paths = {attribute.name: attribute.path for attribute in attributes}
        self._followers = tuple(followers)
        self._set: dict[str, Value] = {}
        for path in (part for follower in followers for part in (*follower.parts, follower.path)):
            self._read(path)
        self.knobs = KnobTable(tuple(self._knob(attribute) for attribute in attributes))

    def turn(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once, and recompute the derived attributes.

        Args:
            values: canonical values, by knob.

        Raises:
            DrivenKnobError: if one of them was set from outside since the last call.
        """
        for name, value in self._set.items():
            found = self._read(self.paths[name])
            if found != value:
                raise DrivenKnobError(
                    f"`{name}` is driven by the schedule and should not be set from outside. "
                    f"It was set to {value!r} and is {found!r} now"
                )
        for name, value in values.items():
            self._write(self.paths[name], value)
            self._set[name] = value
        for follower in self._followers:
            parts = [self._read(part) for part in follower.parts]
            result = sum(parts[1:], parts[0]) if follower.operation == "sum" else math.prod(parts[1:], start=parts[0])
            self._write(follower.path, result if follower.factor == 1.0 else follower.factor * result)

    def read_knobs(self) -> dict[str, Value]:
        """The present value of every knob, read back from the attributes."""
        return {name: self._read(path) for name, path in self.paths.items()}

    def _knob(self, attribute: AttributeKnob) -> Knob:
        """The knob of an attribute, its default being what the environment has now."""
        knob = Knob(attribute.name, None, attribute.bounds, attribute.doc, attribute.kind)
        default = knob.check(self._read(attribute.path))
        return Knob(attribute.name, default, attribute.bounds, attribute.doc, attribute.kind)

    def _read(self, path: str) -> Any:
        found: Any = self._env
        for part in path.split("."):
            if not hasattr(found, part):
                raise KnobError(f"{type(self._env).__name__} has no attribute `{path}`")
            found = getattr(found, part)
        return found

    def _write(self, path: str, value: Any) -> None:
        *parents, last = path.split(".")
        place: Any = self._env
        for part in parents:
            place = getattr(place, part)
        setattr(place, last, value)

"""Knobs for environments that declare none: their attributes, and those derived from them.

* `AttributeKnobs` - makes attributes of any environment tunable
* `AttributeKnob` - one attribute as a knob
* `DerivedAttribute` - an attribute derived from others: a sum or a product
* `AttributeEnv` - the mixin for environments of this package whose knobs are attributes of another package's class
* `declared_knobs` - the knobs of a schedule's section `knobs`
* `knob_table_of_attributes` - attribute knobs as a table
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
import numpy as np

from drift_envs.checks import is_number
from drift_envs.errors import DeclaredKnobsError, DrivenKnobError, KnobError, StateError
from drift_envs.knobs import Knob, KnobTable, Value, freeze, thaw
from drift_envs.schedule.attribute_path import AttributePath
from drift_envs.tunable import TunableEnv

if TYPE_CHECKING:
    from drift_envs.schedule.model import Knobs


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


def declared_knobs(knobs: Knobs | None) -> tuple[tuple[AttributeKnob, ...], tuple[DerivedAttribute, ...]]:
    """The knobs that a schedule declares in its section `knobs`.

    Args:
        knobs: that section.
    """
    if knobs is None:
        return (), ()
    attributes = tuple(
        AttributeKnob(name, spec.attribute or name, spec.kind, spec.bounds, spec.doc, spec.default, spec.setter)
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
        DeclaredKnobsError: if the environment lacks attributes, or their values do not fit the knobs.

    Example:
        >>> env = gym.make("CartPole-v1").unwrapped
        >>> masses = AttributeKnob("masspole", "masspole"), AttributeKnob("masscart", "masscart")
        >>> total = DerivedAttribute("total_mass", ("masspole", "masscart"), "sum")
        >>> knobs = AttributeKnobs(env, masses, [total])
        >>> knobs.set_knobs({"masspole": 0.5})
        >>> env.total_mass
        1.5
    """

    def __init__(
        self, env: gym.Env[Any, Any], attributes: Sequence[AttributeKnob], followers: Sequence[DerivedAttribute] = ()
    ) -> None:
        self._env = env.unwrapped
        self.paths = {attribute.name: attribute.path for attribute in attributes}
        self._followers = tuple(followers)
        self._set: dict[str, Value] = {}
        self._parsed: dict[str, AttributePath] = {}
        self._originals: dict[str, Value] = {}  # what a factor multiplies, by knob
        self._factors: dict[str, float] = {}
        self._setters: dict[str, AttributePath] = {}
        self._hidden: dict[str, Value] = {}  # the value of each knob that a setter sets and no attribute shows
        knobs: list[Knob] = []
        findings: list[tuple[tuple[str | int, ...], str]] = []
        for attribute in attributes:
            try:
                knobs.append(self._knob(attribute))
            except KnobError as error:
                key = "attribute" if attribute.path != attribute.name else None
                findings.append((("knobs", attribute.name, *filter(None, [key])), str(error)))
        for follower in self._followers:
            for path in (*follower.parts, follower.path):
                try:
                    self._prepare(path)
                except KnobError as error:
                    findings.append((("knobs", "derived", follower.path), str(error)))
        if findings:
            raise DeclaredKnobsError(dict.fromkeys(findings))
        self.knobs = KnobTable(tuple(knobs))

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once, and recompute the derived attributes.

        Args:
            values: canonical values, by knob.

        Raises:
            DrivenKnobError: if one of them was set from outside since the last call.
            KnobError: if a list does not have the shape of the array.
        """
        for name, value in self._set.items():
            found = self._hidden[name] if name in self._hidden else self._read(self.paths[name])
            if found != value:
                raise DrivenKnobError(
                    f"`{name}` is driven by the schedule and should not be set from outside. "
                    f"It was set to {value!r} and is {found!r} now"
                )
        for name, value in values.items():
            written = value
            if name in self._originals:
                self._factors[name] = value
                written = _multiply(self._originals[name], value)
            try:
                if name in self._setters:
                    self._setters[name].call(self._env, written)
                else:
                    self._parsed[self.paths[name]].write(self._env, written)
            except (ValueError, TypeError, AttributeError) as error:
                raise KnobError(f"`{self.paths[name]}` can't be set to {value!r}: {error}") from error
            if name in self._hidden:
                self._hidden[name] = value
            # arrays round to their own precision
            self._set[name] = value if name in self._hidden else self._read(self.paths[name])
        for follower in self._followers:
            parts = [self._read(part) for part in follower.parts]
            result = sum(parts[1:], parts[0]) if follower.operation == "sum" else math.prod(parts[1:], start=parts[0])
            self._parsed[follower.path].write(self._env, result if follower.factor == 1.0 else follower.factor * result)

    def read_knobs(self) -> dict[str, Value]:
        """The present value of every knob, read back from the attributes; of a factor, the last one."""
        return {
            knob.name: self._factors[knob.name] if knob.name in self._factors else self._value(knob)
            for knob in self.knobs.knobs
        }

    def _knob(self, attribute: AttributeKnob) -> Knob:
        """The knob of an attribute, its default being what the environment has now."""
        name, bounds, doc = attribute.name, attribute.bounds, attribute.doc
        present = self._find_value(attribute)
        kind = attribute.kind or _kind_of(present)
        if kind == "factor":
            if not _is_numeric(present):
                raise KnobError(f"`{attribute.path}` should be a number or an array of numbers. Received {present!r}")
            self._originals[name], self._factors[name] = present, 1.0
            return Knob(name, 1.0, bounds, doc, "float")
        if isinstance(present, tuple) and kind in ("float", "integer"):
            raise KnobError(
                f"`{attribute.path}` is an array of {len(present)}; the kind should be `array`, or `factor` for a "
                "number that multiplies it"
            )
        if bounds is None and attribute.kind is None and kind in ("float", "integer"):
            raise KnobError("a number needs `bounds: [low, high]`: values beyond them are reflected")
        if bounds is not None and kind not in ("float", "integer", "array"):
            raise KnobError(f"`bounds` should be given for numbers alone. `{attribute.path}` is {present!r}")
        shape = np.shape(present) if kind == "array" else None
        is_range = bounds is not None
        parse = None if shape is None else _ArrayParser(name, shape, bounds if is_range else None)
        limits = bounds if is_range and shape is None else None
        knob = Knob(name, None, limits, doc, kind, parse=parse)
        return replace(knob, default=freeze(knob.check(present)))

    def _find_value(self, attribute: AttributeKnob) -> Value:
        """The present value; of a knob that a setter sets and no attribute shows, the declared default."""
        if attribute.setter is not None:
            setter = AttributePath.parse(attribute.setter)
            if not setter.has_method(self._env):
                raise KnobError(f"`setter` should be a method of {type(self._env).__name__}. Received {setter.text!r}")
            self._setters[attribute.name] = setter
            if not AttributePath.parse(attribute.path).shows_value(self._env):
                if attribute.default is None:
                    raise KnobError(
                        f"no attribute `{attribute.path}` shows what `{setter.text}` sets; state its value in a new "
                        "environment as `default`"
                    )
                self._hidden[attribute.name] = freeze(attribute.default)
                return self._hidden[attribute.name]
        return self._prepare(attribute.path).read(self._env)

    def _value(self, knob: Knob) -> Value:
        return self._hidden[knob.name] if knob.name in self._hidden else self._read(self.paths[knob.name])

    def _prepare(self, path: str) -> AttributePath:
        """Parse a path and check that the environment has it."""
        if path not in self._parsed:
            parsed = AttributePath.parse(path)
            parsed.own(self._env)
            self._parsed[path] = parsed
        return self._parsed[path]

    def _read(self, path: str) -> Any:
        return self._parsed[path].read(self._env)


@dataclass(frozen=True)
class _ArrayParser:
    """Checks the shape and the bounds of a list of numbers."""

    name: str
    shape: tuple[int, ...]
    bounds: tuple[float, float] | None

    def __call__(self, value: Any) -> tuple[Any, ...]:
        try:
            array = np.array(value, float)
        except ValueError:
            array = np.empty(())
        if array.shape != self.shape:
            raise KnobError(f"`{self.name}` should have the shape {self.shape}. Received {value!r}")
        if self.bounds is not None and not ((array >= self.bounds[0]) & (array <= self.bounds[1])).all():
            low, high = self.bounds
            raise KnobError(
                f"the numbers of `{self.name}` should be in the interval [{low}, {high}]. Received {value!r}"
            )
        return tuple(freeze(thaw(value)))


def _kind_of(value: Value) -> str:
    """The kind of a value that an attribute has."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, str):
        return "string"
    if isinstance(value, tuple):
        return "array" if _is_numeric(value) else "list"
    return "float"


def _is_numeric(value: Any) -> bool:
    return all(map(_is_numeric, value)) if isinstance(value, tuple) else is_number(value)


def _multiply(value: Any, factor: float) -> Any:
    """A number or nested tuple of numbers times a factor."""
    return tuple(_multiply(item, factor) for item in value) if isinstance(value, tuple) else value * factor


class AttributeEnv(TunableEnv):
    """The mixin for environments whose knobs are attributes of another package's class.

    A subclass stands before that class in the order of bases, names its knobs in `attributes` and `knobs`
    (`knob_table_of_attributes`), and calls `make_tunable` at the end of its constructor.
    """

    attributes: ClassVar[tuple[AttributeKnob, ...]]
    followers: ClassVar[tuple[DerivedAttribute, ...]] = ()
    _attribute_knobs: AttributeKnobs

    def make_tunable(self) -> None:
        """Find the attributes of the knobs; the environment has to be complete."""
        # the mixin itself is no environment
        self._attribute_knobs = AttributeKnobs(self, self.attributes, self.followers)  # type: ignore[arg-type]

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        self._attribute_knobs.set_knobs(values)

    def read_knobs(self) -> dict[str, Value]:
        """The present value of every knob, read back from the attributes."""
        return self._attribute_knobs.read_knobs()

    def set_state_seen(self, observation: Any) -> None:
        """Set the state that an observation shows. For evaluators.

        Args:
            observation: as from `step`.

        Raises:
            StateError: if observations do not show the state.
        """
        raise StateError(f"observations of {type(self).__name__} do not show its state")


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

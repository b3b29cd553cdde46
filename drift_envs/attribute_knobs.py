"""Knobs for environments that declare none: their attributes, and those derived from them.

The knobs of Gymnasium's CartPole, Acrobot and Pendulum come with this package, and stand at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
import numpy as np

from drift_envs.checks import is_number
from drift_envs.errors import DeclaredKnobsError, DriftEnvsError, DrivenKnobError, KnobError, StateError
from drift_envs.knobs import Knob, KnobTable, Value, freeze, thaw
from drift_envs.schedule.attribute_path import AttributePath, round_numbers
from drift_envs.tunable import TunableEnv

if TYPE_CHECKING:
    from drift_envs.schedule.model import Knobs

_MISSING = object()
"""The mark of an attribute that did not take its value, or not yet: it equals nothing."""


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
        self._set: dict[str, Value] = {}  # the canonical value of each knob that was set
        self._expected: dict[str, Value] = {}  # what each path that was written should have
        self._parsed: dict[str, AttributePath] = {}
        self._originals: dict[str, Value] = {}  # what a factor multiplies, by knob
        self._setters: dict[str, AttributePath] = {}
        self._hidden: dict[str, Value] = {}  # the default of each knob that a setter sets and no attribute shows
        self._owned: list[Any] = []  # copies of what others may share
        self._finders: dict[str, Callable[[Any], Any]] = {}
        self._marks: list[tuple[Callable[[Any], Any], Any]] = []
        self._scratch: tuple[Any, Any] | None = None
        self.is_writing = False  # so that an environment can tell it from being set from outside
        self._waits = False  # for the reset that makes the attributes of a copy
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
        """Set these knobs to canonical values, all at once, and recompute what is derived from them.

        Args:
            values: canonical values, by knob.

        Raises:
            DrivenKnobError: if one of them was lost since the last call.
            KnobError: if a list does not have the shape of the array.
        """
        if self._waits:
            self._set.update(values)
            return
        self.refuse_lost()
        self._write(values)

    @property
    def factors(self) -> set[str]:
        """The paths of attributes that factors multiply."""
        return {self.paths[name] for name in self._originals}

    def read_knobs(self) -> dict[str, Value]:
        """The present value of every knob, read back from the attributes."""
        return {knob.name: self._value(knob.name) for knob in self.knobs.knobs}

    def has_changed(self) -> bool:
        """Whether any attribute that was set, derived or a part of what is derived has changed; fast."""
        env = self._env
        try:
            for find, mark in self._marks:
                found = find(env)
                if found is not mark and _mark(found) != mark:  # an attribute that nobody sets is the same object
                    return True
        except (AttributeError, LookupError, TypeError, KnobError):
            return True
        return False

    def refuse_lost(self, tick: int | None = None) -> None:
        """Refuse that an attribute does not have the value that was set. A changed part of what is derived is taken.

        Args:
            tick: when it was lost, if that is known.

        Raises:
            DrivenKnobError: if it has another one; names the possible causes.
        """
        if not self.has_changed():
            return
        for name, path in self._lost():
            found = self._value(name) if name in self._set else self._parsed[path].read(self._env)
            raise DrivenKnobError.lost(name, repr(self._set.get(name, self._expected[path])), repr(found), tick)
        self._follow()

    def set_again(self) -> bool:
        """Set again what the environment has lost by a reset, or by being a copy that its constructor made.

        Returns:
            Whether it called a setter whose value no attribute shows.
        """
        if self._waits:
            self._waits = False
            self._write(self._set)
        hidden = {name: value for name, value in self._set.items() if name in self._hidden}
        again = {name: value for name, value in hidden.items() if value != self._hidden[name]}
        if again or not self._marks or self.has_changed():
            again.update((name, self._set[name]) for name, _ in self._lost() if name in self._set)
            self._write(again)
        return not hidden.keys().isdisjoint(again)

    def settle(self) -> None:
        """Set again what a copy has lost, at once or, where its first reset makes the attributes, after that."""
        try:
            self.set_again()
        except KnobError:
            self._waits = True

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Let all knobs and what is derived from them be afterwards what they were before."""
        kept = {name: self._read(path) for name, path in self.paths.items() if name not in self._hidden}
        kept.update((name, self._value(name)) for name in self._hidden if name in self._set)
        yield
        models = [self._put(name, value)[1] for name, value in kept.items()]
        self._follow(models)

    def _write(self, values: Mapping[str, Value]) -> None:
        """Set knobs, whatever the attributes have now."""
        models: list[Any] = []
        for name, value in values.items():
            written = _multiply(self._originals[name], value) if name in self._originals else value
            try:
                held, model = self._put(name, written)
            except (ValueError, TypeError, AttributeError, OverflowError) as error:
                raise KnobError(f"`{self.paths[name]}` can't be set to {value!r}: {error}") from error
            except DriftEnvsError:
                raise
            except Exception as error:  # of the environment's own property or setter
                kind = type(error).__name__
                raise KnobError(f"`{self.paths[name]}` can't be set to {value!r}: {kind}: {error}") from error
            models.append(model)
            self._set[name] = value
            if name not in self._hidden:
                self._expected[self.paths[name]] = held
        self._follow(models)

    def _put(self, name: str, value: Value) -> tuple[Value, Any]:
        """Set the attribute of a knob; its value in the attribute's precision, and the MuJoCo model that it is in."""
        if name in self._hidden:
            self._setters[name].call(self._env, value)
            return value, None
        path = self._parsed[self.paths[name]]
        if name in self._setters:
            self._setters[name].call(self._env, value)
            return value, path.model(self._env)
        return self._put_into(path, value), path.model(self._env)

    def _put_into(self, path: AttributePath, value: Value) -> Value:
        """Set an attribute; its value in the attribute's precision."""
        self.is_writing = True
        try:
            return path.write(self._env, value, self._owned)
        finally:
            self.is_writing = False

    def _follow(self, models: Sequence[Any] = ()) -> None:
        """Recompute what is derived, and remember what the attributes have now."""
        models = list(models)
        for follower in self._followers:
            path = self._parsed[follower.path]
            self._expected[follower.path] = self._put_into(path, self._result(follower))
            models.append(path.model(self._env))
        for place, model in enumerate(models):
            if model is not None and not any(model is earlier for earlier in models[:place]):
                self._derive_constants(model)
        self._marks = []
        for text in dict.fromkeys([*self._expected, *(part for one in self._followers for part in one.parts)]):
            find = self._finders.get(text) or self._finders.setdefault(text, self._parsed[text].getter(self._env))
            is_there = text not in self._expected or is_same(self._read(text), self._expected[text])
            self._marks.append((find, _mark(find(self._env)) if is_there else _MISSING))

    def _derive_constants(self, model: Any) -> None:
        """Let MuJoCo recompute what it derives from the attributes of a model."""
        import mujoco

        if self._scratch is None or self._scratch[0] is not model:
            self._scratch = model, mujoco.MjData(model)  # expensive to make
        mujoco.mj_setConst(*self._scratch)

    def _result(self, follower: DerivedAttribute) -> Any:
        """What a derived attribute should be."""
        parts = [self._read(part) for part in follower.parts]
        result = sum(parts[1:], parts[0]) if follower.operation == "sum" else math.prod(parts[1:], start=parts[0])
        return result if follower.factor == 1.0 else follower.factor * result

    def _lost(self) -> list[tuple[str, str]]:
        """Name and path of each knob or derived attribute that does not have what was set."""
        named = {self.paths[name]: name for name in self._set}
        lost = []
        for path, expected in self._expected.items():
            if path not in named:
                (follower,) = (one for one in self._followers if one.path == path)
                if not is_same(self._result(follower), expected):
                    continue  # a part that is no knob of the schedule was set: it is derived anew
            if not is_same(self._read(path), expected):
                lost.append((named.get(path, path), path))
        return lost

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what was made for one environment."""
        return {**self.__dict__, "_finders": {}, "_marks": [], "_scratch": None}

    def _knob(self, attribute: AttributeKnob) -> Knob:
        """The knob of an attribute, its default being what the environment has now."""
        name, bounds, doc = attribute.name, attribute.bounds, attribute.doc
        present = self._find_value(attribute)
        kind = attribute.kind or _kind_of(present)
        path = None if name in self._hidden else self._parsed[attribute.path]
        limits = None if path is None else path.number_range(self._env)
        rounds = path is not None and path.holds_integers(self._env)
        if kind == "factor":
            if not _is_numeric(present):
                raise KnobError(f"`{attribute.path}` should be a number or an array of numbers. Received {present!r}")
            self._originals[name] = present
            return Knob(name, 1.0, _factors_within(bounds, present, limits), doc, "float")
        if isinstance(present, tuple) and kind in ("float", "integer"):
            raise KnobError(
                f"`{attribute.path}` is an array of {len(present)}; the kind should be `array`, or `factor` for a "
                "number that multiplies it"
            )
        if bounds is None and attribute.kind is None and kind in ("float", "integer"):
            raise KnobError("a number needs `bounds: [low, high]`: values beyond them are reflected")
        if bounds is not None and kind not in ("float", "integer", "array"):
            raise KnobError(f"`bounds` should be given for numbers alone. `{attribute.path}` is {present!r}")
        if limits is not None and bounds is not None and kind in ("float", "integer", "array"):
            bounds = max(bounds[0], limits[0]), min(bounds[1], limits[1])
        if kind == "array":
            parse = _ArrayParser(name, np.shape(present), bounds, limits, rounds)
            knob = Knob(name, None, None, doc, kind, parse=parse)
        elif kind == "float" and rounds:  # the timeline rounds integer knobs
            knob = Knob(name, None, bounds, doc, "integer", prepare=_round_number)
        else:
            knob = Knob(name, None, bounds, doc, kind)
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

    def _value(self, name: str) -> Value:
        """The present value of a knob; of one that no attribute shows, the last one that was set."""
        if name in self._hidden:
            return self._set.get(name, self._hidden[name])
        found = self._read(self.paths[name])
        if name not in self._originals:
            return found
        expected = self._expected.get(self.paths[name], self._originals[name])
        return self._set.get(name, 1.0) if is_same(found, expected) else _ratio(found, self._originals[name])

    def _prepare(self, path: str) -> AttributePath:
        """Parse a path and check that the environment has it."""
        if path not in self._parsed:
            parsed = AttributePath.parse(path)
            parsed.check(self._env)
            self._parsed[path] = parsed
        return self._parsed[path]

    def _read(self, path: str) -> Any:
        return self._parsed[path].read(self._env)


@dataclass(frozen=True)
class _ArrayParser:
    """Checks the shape and the bounds of a list of numbers, and rounds those of integer arrays.

    Args:
        name: the knob.
        shape: that of the array.
        bounds: lowest and highest number.
        limits: the same of the array's type, which holds infinite ones, too, where it is one of floats.
        rounds: whether it is one of integers.
    """

    name: str
    shape: tuple[int, ...]
    bounds: tuple[float, float] | None
    limits: tuple[float, float] | None
    rounds: bool

    def __call__(self, value: Any) -> tuple[Any, ...]:
        try:
            array = np.array(value, float)
        except ValueError:
            array = np.empty(())
        if array.shape != self.shape:
            raise KnobError(f"`{self.name}` should have the shape {self.shape}. Received {value!r}")
        finite = array if self.rounds else array[np.isfinite(array)]
        for interval, numbers in ((self.bounds, array), (self.limits, finite)):
            low, high = interval or (-math.inf, math.inf)
            if interval is None or ((numbers >= low) & (numbers <= high)).all():
                continue
            raise KnobError(
                f"the numbers of `{self.name}` should be in the interval [{low}, {high}]. Received {value!r}"
            )
        parsed: tuple[Any, ...] = freeze(thaw(value))
        return round_numbers(parsed) if self.rounds else parsed


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


def _ratio(found: Value, original: Value) -> float:
    """The factor of the largest number of an array that was set from outside."""
    pairs = [(abs(one), other / one) for one, other in zip(_numbers(original), _numbers(found), strict=False) if one]
    return max(pairs)[1] if pairs else 1.0


def _numbers(value: Value) -> list[float]:
    """All numbers of a nested tuple."""
    return [number for item in value for number in _numbers(item)] if isinstance(value, tuple) else [value]


def _factors_within(
    bounds: tuple[float, float] | None, present: Value, limits: tuple[float, float] | None
) -> tuple[float, float] | None:
    """The bounds of a factor, narrowed to what the type of an array holds."""
    if limits is None:
        return bounds
    low, high = bounds or (-math.inf, math.inf)
    for number in _numbers(present):
        if number and math.isfinite(number):
            ends = sorted((limits[0] / number, limits[1] / number))
            low, high = max(low, ends[0]), min(high, ends[1])
    return low, high


def _round_number(value: Any) -> Any:
    """A number rounded to an integer; anything else as it is, for the check that follows."""
    return round(value) if is_number(value) and math.isfinite(value) else value


def is_same(found: Value, expected: Value) -> bool:
    """Whether an attribute has a value, but for rounding to single precision.

    Args:
        found: its value in canonical form.
        expected: the canonical value that was set.
    """
    if isinstance(expected, tuple):
        return isinstance(found, tuple) and len(found) == len(expected) and all(map(is_same, found, expected))
    if isinstance(found, float) or isinstance(expected, float):
        if not is_number(found) or not is_number(expected):
            return False
        return math.isclose(found, expected, rel_tol=1e-5, abs_tol=1e-9) or (math.isnan(found) and math.isnan(expected))
    return bool(found == expected)


def _mark(found: Any) -> Any:
    """What is compared to see whether an attribute has changed."""
    return found.tobytes() if isinstance(found, np.ndarray) else freeze(found)


class AttributeEnv(TunableEnv):
    """The mixin for environments whose knobs are attributes of another package's class.

    A subclass stands before that class in the order of bases, names its knobs in `attributes` and `knobs`
    (`knob_table_of_attributes`), and calls `make_tunable` at the end of its constructor.
    """

    attributes: ClassVar[tuple[AttributeKnob, ...]]
    followers: ClassVar[tuple[DerivedAttribute, ...]] = ()
    stores_knobs = False
    _knob_of: ClassVar[Mapping[str, str]] = {}
    """The knob that is set where an attribute is set by its name, or by that of the attribute that it stands for."""
    attribute_knobs: AttributeKnobs

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Find the names that stand for knobs."""
        super().__init_subclass__(**arguments)
        attributes = getattr(cls, "attributes", ())
        cls._knob_of = {name: one.name for one in attributes for name in (one.path, one.name) if name.isidentifier()}

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; a knob is checked, and what is derived from it is recomputed.

        Raises:
            DrivenKnobError: if a schedule drives that knob.
            KnobError: if the value breaks a rule, or is that of an attribute that a factor multiplies.
        """
        knobs = self.__dict__.get("attribute_knobs") if name in self._knob_of else None
        if knobs is None or knobs.is_writing:
            object.__setattr__(self, name, value)
            return
        knob = self._knob_of[name]
        if name != knob and name in knobs.factors and knob not in self._held:
            raise KnobError(f"`{name}` should be set by its factor, the knob `{knob}`. Received {value!r}")
        self.set_knob(knob, value)

    def __getattr__(self, name: str) -> Any:
        """A knob by its name where the attribute has another one."""
        if name in type(self)._knob_of and "attribute_knobs" in self.__dict__:
            return self.read_knobs()[type(self)._knob_of[name]]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def make_tunable(self) -> None:
        """Find the attributes of the knobs; the environment has to be complete."""
        # the mixin itself is no environment
        self.attribute_knobs = AttributeKnobs(self, self.attributes, self.followers)  # type: ignore[arg-type]

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        self.attribute_knobs.set_knobs(values)

    def read_knobs(self) -> dict[str, Value]:
        """The present value of every knob, read back from the attributes."""
        return self.attribute_knobs.read_knobs()

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

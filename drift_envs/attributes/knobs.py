"""Attributes of an environment as knobs: set, with what is derived from them, and read back.

Other packages' environments do not know that an attribute is driven: it may be lost by a reset or set from outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.attributes.declarations import AttributeKnob, DerivedAttribute
from drift_envs.attributes.path import AttributePath, round_numbers
from drift_envs.checks import is_number
from drift_envs.errors import DeclaredKnobsError, DriftEnvsError, DrivenKnobError, KnobError
from drift_envs.knobs import Knob, KnobTable, Value, freeze, thaw

_MISSING = object()
"""The mark of an attribute that did not take its value, or not yet: it equals nothing."""


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
        try:
            yield
        finally:
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

"""Knobs: the parameters of an environment that a drift may change, and the protocol of such environments.

* `FrozenMapping` - an immutable dictionary: the canonical value of a mapping knob
* `Knob` - one thing that a drift may change: name, default, bounds and meaning
* `KnobTable` - the knobs of one environment and the rules between them
* `Tunable` - the protocol of an environment that declares knobs
* `freeze`, `thaw` - plain data to its immutable form and back
* `swapped`, `powers`, `reflect` - what drifts do to values
* `mapping_knob`, `parse_choices`, `draw_number` - what many knob tables share
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np

from drift_envs.checks import is_number
from drift_envs.errors import KnobError
from drift_envs.utils.error_messages import show

Value = Any
"""A knob's canonical, immutable value: number, bool, str, tuple, or a `FrozenMapping` of such."""


class FrozenMapping(dict[str, Any]):
    """An immutable dictionary: hashable, picklable, cheap to copy, equal to a `dict` of the same content.

    It inherits from `dict`, so that reading it is as fast, and `json` writes it as it is.

    Args:
        items: the content, as for `dict`; kept in that order.

    Example:
        >>> rewards = FrozenMapping({"3,5": 1.0, "5,5": 0.5})
        >>> rewards == {"5,5": 0.5, "3,5": 1.0}
        True
        >>> rewards["3,5"] = 0.0
        Traceback (most recent call last):
        TypeError: a FrozenMapping never changes; make a `dict` of it first
    """

    __slots__ = ("_hash",)
    _hash: int

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("a FrozenMapping never changes; make a `dict` of it first")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        """Equal content, equal hash, whatever the order."""
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset(self.items()))
            return self._hash

    def __reduce__(self) -> tuple[type[FrozenMapping], tuple[dict[str, Any]]]:
        """Rebuild from the content: the hash of strings differs between processes."""
        return FrozenMapping, (dict(self),)

    def __copy__(self) -> FrozenMapping:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenMapping:
        """The same object, since nothing in it can change."""
        return self

    def __repr__(self) -> str:
        return f"FrozenMapping({dict(self)!r})"


HUGE = 1e300
"""The largest number of a computation: infinity times 0 would be no number."""

_SCALARS = frozenset({str, int, float, bool, type(None)})


def freeze(value: Any) -> Any:
    """The immutable form of plain data: lists become tuples, dictionaries `FrozenMapping`s.

    Example:
        >>> freeze({"rows": ["SF", "FG"]})
        FrozenMapping({'rows': ('SF', 'FG')})
    """
    if type(value) in _SCALARS:  # most values; the test is cheaper than the following ones
        return value
    if isinstance(value, Mapping):
        return FrozenMapping({key: freeze(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """Plain data again, as JSON and YAML write it; the inverse of `freeze`.

    Example:
        >>> thaw(freeze({"rows": ["SF", "FG"]}))
        {'rows': ['SF', 'FG']}
    """
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    return value


def copied(value: Any) -> Any:
    """A value in dictionaries of its own, so that whoever changes it changes no other; tuples stay tuples.

    Example:
        >>> copied(freeze({"rows": ["SF", "FG"]}))
        {'rows': ('SF', 'FG')}
    """
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    return tuple(map(copied, value)) if isinstance(value, tuple) else value


def _is_rows(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(row, str) for row in value)


def _is_numbers(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(is_number(item) or _is_numbers(item) for item in value)


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "float": ("a number", is_number),
    "integer": ("a whole number", lambda value: is_number(value) and float(value).is_integer()),
    "boolean": ("true or false", lambda value: isinstance(value, (bool, np.bool_))),
    "string": ("a string", lambda value: isinstance(value, str)),
    "mapping": ("a mapping", lambda value: isinstance(value, Mapping)),
    "rows": ("a list of strings", _is_rows),
    "array": ("a list of numbers, or of such lists", _is_numbers),
    "list": ("a list", lambda value: isinstance(value, (list, tuple))),
}
"""What values of each kind are called in messages, and the test of their type."""


@dataclass(frozen=True)
class Knob:
    """One thing that a drift may change.

    Args:
        name: its name in schedules.
        default: the canonical value without any schedule.
        bounds: `(low, high)` for a number, both reachable; the tuple of allowed values for a
            choice; `None` where `parse` alone decides.
        doc: one line of meaning, with the unit.
        kind: `float`, `integer`, `boolean`, `string`, `mapping`, `rows`, `array` or `list`.
        prepare: converts other accepted forms of a written value to that of `kind`, before the check.
        parse: converts a written value to the canonical value, or raises `KnobError`; called
            after the check of kind and bounds.
        draw: for knobs whose value a schedule may leave to the seed (`{draw: {...}}`):
            `draw(arguments, below, generator)` returns a canonical value, `below` being the value
            that the drifts before it in the file give at that tick (`None` in the base).

    Example:
        >>> slip = Knob("slip", 0.0, (0.0, 1.0), "probability of not moving as intended")
        >>> slip.check(0.25)
        0.25
        >>> slip.check(2)
        Traceback (most recent call last):
        drift_envs.errors.KnobError: `slip` should be in the interval [0.0, 1.0]. Received 2
    """

    name: str
    default: Value
    bounds: tuple[Any, ...] | None
    doc: str
    kind: str = "float"
    prepare: Callable[[Any], Any] | None = field(default=None, compare=False)
    parse: Callable[[Any], Value] | None = field(default=None, compare=False)
    draw: Callable[[Mapping[str, Any], Value | None, np.random.Generator], Value] | None = field(
        default=None, compare=False
    )

    def __post_init__(self) -> None:
        """Refuse a kind that does not exist.

        Raises:
            KnobError: if there is no such kind.
        """
        if self.kind not in _KINDS:
            raise KnobError(f"`kind` of `{self.name}` should be one of {', '.join(_KINDS)}. Received {self.kind!r}")

    @property
    def is_numeric(self) -> bool:
        """Whether the value can be added to, scaled, interpolated and reflected at its bounds."""
        return self.kind in ("float", "integer")

    def check(self, value: Any) -> Value:
        """The canonical form of a written value.

        Raises:
            KnobError: if the value has the wrong type or lies outside the bounds.
        """
        if self.prepare is not None:
            value = self.prepare(value)
        description, has_kind = _KINDS[self.kind]
        if not has_kind(value):
            raise KnobError(f"`{self.name}` should be {description}. Received {value!r}")
        if self.kind == "float":
            value = float(value)
        elif self.kind == "integer":
            value = int(value)
        if self.bounds is not None:
            if self.is_numeric:
                low, high = self.bounds
                if not low <= value <= high:  # also refuses NaN
                    shown = int(value) if float(value).is_integer() else value
                    raise KnobError(f"`{self.name}` should be in the interval [{low}, {high}]. Received {shown}")
            elif value not in self.bounds:
                allowed = ", ".join(repr(choice) for choice in self.bounds)
                raise KnobError(f"`{self.name}` should be one of {allowed}. Received {value!r}")
        return value if self.parse is None else self.parse(value)

    def is_drawn(self, value: Any) -> bool:
        """Whether a written value is `{draw: {...}}` or `{draw_once: {...}}`: the seed decides what the value is.

        Example:
            >>> knob = Knob("map", (), None, "the map", "rows", draw=lambda arguments, below, generator: ("SG",))
            >>> knob.is_drawn({"draw": {}}), knob.is_drawn(["SG"])
            (True, False)
        """
        return self.draw is not None and leaves_to_seed(value)

    def sample(self, value: Any, below: Value | None, generator: np.random.Generator) -> Value:
        """The canonical value that a generator draws for a written value for which `is_drawn` holds.

        Args:
            value: what the schedule says.
            below: what the drifts before it give; `None` in the base.
            generator: draws it.

        Raises:
            KnobError: if it can't be drawn with these arguments, or not at all.
        """
        if self.draw is None:
            raise KnobError(f"`{self.name}` can't be drawn from the seed")
        ((word, arguments),) = value.items()
        if not isinstance(arguments, Mapping):
            raise KnobError(f"`{word}` should be a mapping of arguments. Received {show(arguments)}")
        return freeze(self.draw(arguments, below, generator))

    def canonical(self, value: Any, below: Value | None = None) -> Value:
        """The canonical value for a written one; for one that is drawn, one example of what may be drawn.

        Args:
            value: what the schedule says.
            below: for drawn values, what the layers beneath give.

        Raises:
            KnobError: if the knob does not allow the value, or can't draw with these arguments.

        Example:
            >>> Knob("slip", 0.0, (0.0, 1.0), "probability of not moving as intended").canonical(1)
            1.0
        """
        if self.is_drawn(value):
            return self.sample(value, below, np.random.default_rng(0))
        return freeze(self.check(value))


@dataclass(frozen=True)
class KnobTable(Mapping[str, Knob]):
    """The knobs of one environment, by name, and the rules between them.

    Args:
        knobs: the knobs, in the order in which they are documented.
        rule: given values for *all* knobs, yields what is wrong with their combination: pairs of
            the knob's name and the rule with the value.

    Example:
        >>> table = KnobTable((Knob("slip", 0.0, (0.0, 1.0), "probability of not moving as intended"),))
        >>> table.defaults()
        {'slip': 0.0}
    """

    knobs: tuple[Knob, ...]
    rule: Callable[[Mapping[str, Value]], Iterator[tuple[str, str]]] | None = field(default=None, compare=False)

    def __getitem__(self, name: str) -> Knob:
        """The knob of that name."""
        for knob in self.knobs:
            if knob.name == name:
                return knob
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        """The names, in order."""
        return (knob.name for knob in self.knobs)

    def __len__(self) -> int:
        """How many knobs there are."""
        return len(self.knobs)

    def defaults(self) -> dict[str, Value]:
        """The canonical value of every knob without any schedule."""
        return {knob.name: knob.default for knob in self.knobs}

    def accepts_like(self, other: KnobTable, ignore_defaults: Container[str] = ()) -> bool:
        """Whether both tables accept the same values.

        Args:
            other: the other table.
            ignore_defaults: the knobs whose defaults may differ.
        """

        def content(table: KnobTable) -> list[tuple[Any, ...]]:
            return [
                (knob.name, knob.kind, knob.bounds, knob.parse, knob.draw)
                + (() if knob.name in ignore_defaults else (knob.default,))
                for knob in table.knobs
            ]

        return self.rule == other.rule and content(self) == content(other)

    def problems(self, values: Mapping[str, Value]) -> list[tuple[str, str]]:
        """What is wrong with this combination of values (missing knobs stand at their default)."""
        return [] if self.rule is None else list(self.rule({**self.defaults(), **values}))


@runtime_checkable
class Tunable(Protocol):
    """An environment that declares knobs; it has no notion of drift.

    `set_knobs` takes canonical values, sets all of them at once and recomputes whatever is derived from
    them. It is called between transitions only, possibly before the first `reset`.
    """

    knobs: KnobTable

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set the named knobs to these canonical values, all at once."""

    def read_knobs(self) -> dict[str, Value]:
        """The present value of every knob, read back from the environment's own attributes."""
        ...


def leaves_to_seed(value: Any) -> bool:
    """Whether a value is written as `{draw: ...}` or `{draw_once: ...}`, whatever the knob."""
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in ("draw", "draw_once")


def draws_once(value: Mapping[str, Any]) -> bool:
    """Whether all occurrences of a drift have the value that the first one draws.

    Args:
        value: a written value for which `Knob.is_drawn` holds.
    """
    return "draw_once" in value


def swapped(value: Mapping[str, Value], keys: Sequence[str], name: str) -> FrozenMapping:
    """A mapping in which the values of two keys have changed places.

    Args:
        value: the mapping.
        keys: the two keys.
        name: the knob's name, for the error.

    Raises:
        KnobError: if the mapping lacks one of the keys.

    Example:
        >>> swapped({"3,5": 1.0, "5,5": 0.5}, ["3,5", "5,5"], "goal_rewards")
        FrozenMapping({'3,5': 0.5, '5,5': 1.0})
    """
    one, other = keys
    for key in keys:
        if key not in value:
            raise KnobError(f"`{name}` has no key {key!r} to swap. Received {dict(value)!r}")
    return FrozenMapping({**value, one: value[other], other: value[one]})


def powers(factor: float, counts: np.ndarray) -> np.ndarray:
    """A factor applied so many times, kept finite.

    Example:
        >>> powers(-2.0, np.array([0, 3]))
        array([ 1., -8.])
    """
    with np.errstate(over="ignore", under="ignore"):
        finite: np.ndarray = np.clip(np.power(float(factor), counts), -HUGE, HUGE)
        return finite


def reflect(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Takes numbers back between two bounds as a mirror at each of them would.

    Args:
        values: any finite numbers.
        low: the lower bound, may be minus infinity.
        high: the upper bound, may be infinity.

    Returns:
        Numbers in [low, high]; those that were inside are exactly as before.

    Example:
        >>> reflect(np.array([-0.25, 0.5, 1.25, 2.5]), 0.0, 1.0)
        array([0.25, 0.5 , 0.75, 0.5 ])
    """
    inside = (values >= low) & (values <= high)
    if inside.all():
        return values
    if np.isinf(low) or np.isinf(high):
        back = np.where(values < low, 2 * low - values, 2 * high - values)
    elif low == high:
        back = np.full(values.shape, low)
    else:
        span = high - low
        along = np.mod(values - low, 2 * span)
        back = low + np.minimum(along, 2 * span - along)
    return np.where(inside, values, np.clip(back, low, high))


def mapping_knob(name: str, doc: str, parse: Callable[[Any], Value]) -> Knob:
    """A knob whose value is a mapping, which is empty by default.

    Args:
        name: its name in schedules.
        doc: one line of meaning.
        parse: converts a written mapping to the canonical value, or raises `KnobError`.
    """
    return Knob(name, FrozenMapping(), None, doc, "mapping", None, parse)


def parse_choices(knob: str, choices: Mapping[str, Sequence[Any]], value: Mapping[str, Any]) -> FrozenMapping:
    """A mapping whose values are each one of a few.

    Args:
        knob: the name of the knob.
        choices: by key, the values to choose from.
        value: the written value.

    Raises:
        KnobError: a key or a value is none of those.

    Example:
        >>> parse_choices("units", {"money": ("euros", "cents")}, {"money": "dollars"})
        Traceback (most recent call last):
        drift_envs.errors.KnobError: `units` should give 'money' one of euros, cents. Received 'dollars'
    """
    for key, one in value.items():
        if key not in choices:
            raise KnobError(f"`{knob}` should name one of {', '.join(choices)}. Received {key!r}")
        if not any(type(one) is type(choice) and one == choice for choice in choices[key]):  # true is not 1
            known = ", ".join(map(str, choices[key]))
            raise KnobError(f"`{knob}` should give {key!r} one of {known}. Received {one!r}")
    return FrozenMapping(value)


def draw_number(
    knob: str, most: int, arguments: Mapping[str, Any], below: Value | None, rng: np.random.Generator
) -> Value:
    """Draw a whole number for a knob, another one than that of the drifts before; `Knob.draw` with two more arguments.

    Args:
        knob: the name of the knob.
        most: the largest number, which only a drift draws; the least is 1.
        arguments: those of `draw` in the schedule, of which there should be none.
        below: the value that the drifts before give.
        rng: the generator.

    Raises:
        KnobError: there are arguments.

    Example:
        >>> draw_number("shop", 2, {}, 1, np.random.default_rng(0))
        2
    """
    if arguments:
        raise KnobError(f"`{knob}`: `draw` takes no arguments here. Received {dict(arguments)!r}")
    found = int(rng.integers(1, most))
    return most if found == below else found  # every other number is as likely

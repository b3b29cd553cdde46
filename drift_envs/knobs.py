"""Knobs: the parameters of an environment that a drift may change, and the protocol of such environments.

* `FrozenMapping` - an immutable dictionary: the canonical value of a mapping knob
* `Knob` - one thing that a drift may change: name, default, bounds and meaning
* `KnobTable` - the knobs of one environment and the rules between them
* `Tunable` - the protocol of an environment that declares knobs
* `freeze`, `thaw` - plain data to its immutable form and back
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np

from drift_envs.checks import is_number
from drift_envs.errors import KnobError

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


def _is_whole(value: object) -> bool:
    return is_number(value) and float(value).is_integer()


def _is_rows(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(row, str) for row in value)


def _is_numbers(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(is_number(item) or _is_numbers(item) for item in value)


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "float": ("a number", is_number),
    "integer": ("a whole number", _is_whole),
    "boolean": ("true or false", lambda value: isinstance(value, (bool, np.bool_))),
    "string": ("a string", lambda value: isinstance(value, str)),
    "mapping": ("a mapping", lambda value: isinstance(value, Mapping)),
    "rows": ("a list of strings", _is_rows),
    "array": ("a list of numbers, or of such lists", _is_numbers),
    "list": ("a list", _is_list),
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

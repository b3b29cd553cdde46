"""What can be turned in an environment, and what an environment must offer to be turned.

* `FrozenMapping` - a mapping that never changes: the canonical value of a mapping knob
* `Knob` - one thing that a drift may change: name, default, bounds and meaning
* `KnobTable` - the knobs of one environment and the rules between them
* `Tunable` - the protocol of an environment that declares knobs
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from drift_envs.errors import KnobError

Value = Any
"""A knob's canonical, immutable value: number, bool, str, tuple, or a read-only mapping of such."""


class FrozenMapping(Mapping[str, Any]):
    """A mapping that never changes: hashable, equal to a `dict` of the same content, cheap to copy.

    Args:
        items: the content, as for `dict`; kept in that order.

    Example:
        >>> FrozenMapping({"3,5": 1.0}) == {"3,5": 1.0}
        True
        >>> FrozenMapping({"a": 1, "b": 2}) == FrozenMapping({"b": 2, "a": 1})
        True
    """

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        self._items = dict(items)
        self._hash: int | None = None

    def __getitem__(self, key: str) -> Any:
        """The value of that key."""
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        """The keys, in order."""
        return iter(self._items)

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._items)

    def __hash__(self) -> int:
        """Equal content, equal hash, whatever the order."""
        if self._hash is None:
            self._hash = hash(frozenset(self._items.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"FrozenMapping({self._items!r})"

    def __reduce__(self) -> tuple[type[FrozenMapping], tuple[dict[str, Any]]]:
        """Rebuild from the content: the hash of strings differs between processes."""
        return FrozenMapping, (self._items,)

    def __copy__(self) -> FrozenMapping:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenMapping:
        """The same object, since nothing in it can change."""
        return self


@dataclass(frozen=True)
class Knob:
    """One thing that a drift may change.

    Args:
        name: how schedules call it.
        default: the canonical value without any schedule.
        bounds: `(low, high)` for a number, both reachable; the tuple of allowed values for a
            choice; `None` where `parse` alone decides.
        doc: one line of meaning, with the unit.
        kind: `float`, `integer`, `boolean`, `string`, `mapping` or `rows`.
        parse: turns what a file says into the canonical value, or raises `KnobError`; called
            after the check of kind and bounds.
        draw: for knobs whose value a schedule may leave to the seed (`{draw: {...}}`):
            `draw(arguments, below, generator)` gives a canonical value, `below` being the value
            that the layers beneath give at that tick (`None` in the base).

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
    parse: Callable[[Any], Value] | None = field(default=None, compare=False)
    draw: Callable[[Mapping[str, Any], Value | None, np.random.Generator], Value] | None = field(
        default=None, compare=False
    )

    @property
    def is_numeric(self) -> bool:
        """Whether the value can be added to, scaled, interpolated and reflected at its bounds."""
        return self.kind in ("float", "integer")

    def check(self, value: Any) -> Value:
        """The canonical form of a written value.

        Raises:
            KnobError: if the value has the wrong type or lies outside the bounds.
        """
        wanted = {
            "float": "a number",
            "integer": "a whole number",
            "boolean": "true or false",
            "string": "a string",
            "mapping": "a mapping",
            "rows": "a list of strings",
        }[self.kind]
        fits = {
            "float": isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool),
            "integer": (isinstance(value, (int, np.integer)) and not isinstance(value, bool))
            or (isinstance(value, (float, np.floating)) and float(value).is_integer()),
            "boolean": isinstance(value, (bool, np.bool_)),
            "string": isinstance(value, str),
            "mapping": isinstance(value, Mapping),
            "rows": isinstance(value, Sequence)
            and not isinstance(value, str)
            and all(isinstance(row, str) for row in value),
        }[self.kind]
        if not fits:
            raise KnobError(f"`{self.name}` should be {wanted}. Received {value!r}")
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

    def problems(self, values: Mapping[str, Value]) -> list[tuple[str, str]]:
        """What is wrong with this combination of values (missing knobs stand at their default)."""
        return [] if self.rule is None else list(self.rule({**self.defaults(), **values}))


@runtime_checkable
class Tunable(Protocol):
    """An environment that declares what can be turned; it has no notion of drift.

    `turn` takes canonical values, sets all of them at once and recomputes whatever is derived from
    them. It is called between transitions only, possibly before the first `reset`.
    """

    knobs: KnobTable

    def turn(self, values: Mapping[str, Value]) -> None:
        """Set the named knobs to these canonical values, all at once."""

    def read_knobs(self) -> dict[str, Value]:
        """The present value of every knob, read back from the environment's own attributes."""
        ...

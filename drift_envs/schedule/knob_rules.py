"""The rules between a schedule and the knobs of an environment, on plain data, to report all findings at once.

* `knob_findings` - unknown knobs, operations that don't fit a knob, values that it does not allow
* `is_draw`, `draws_once`, `draw_arguments` - values that are left to the seed
* `canonical` - a knob's canonical value for a written one, drawn values with a fixed generator
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from drift_envs.errors import KnobError
from drift_envs.knobs import Knob, KnobTable, Value, freeze
from drift_envs.schedule.findings import Finding, Path, nearest, show
from drift_envs.schedule.rules import OPERATIONS

_NUMERIC_ONLY = ("add", "scale", "walk")


DRAWS = ("draw", "draw_once")
"""What a value that is left to the seed is written under."""


def is_draw(knob: Knob, value: Any) -> bool:
    """Whether a written value is `{draw: {...}}` or `{draw_once: {...}}`: the seed decides what the value is.

    Example:
        >>> is_draw(Knob("map", (), None, "the map", "rows", draw=lambda arguments, below, generator: ()), {"draw": {}})
        True
    """
    return knob.draw is not None and _leaves_to_seed(value)


def draws_once(value: Mapping[str, Any]) -> bool:
    """Whether all occurrences of a drift have the value that the first one draws.

    Args:
        value: a written value for which `is_draw` holds.
    """
    return "draw_once" in value


def draw_arguments(value: Mapping[str, Any]) -> Any:
    """What a value is drawn with.

    Args:
        value: a written value for which `is_draw` holds.

    Example:
        >>> draw_arguments({"draw_once": {"move": 4}})
        {'move': 4}
    """
    (arguments,) = value.values()
    return arguments


def _leaves_to_seed(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in DRAWS


def canonical(knob: Knob, value: Any, below: Value | None = None) -> Value:
    """A knob's canonical value for a written one; a drawn value is one example of what may be drawn.

    Args:
        knob: the knob.
        value: what the schedule says.
        below: for drawn values, what the layers beneath give.

    Raises:
        KnobError: if the knob does not allow the value, or can't draw with these arguments.

    Example:
        >>> canonical(Knob("slip", 0.0, (0.0, 1.0), "probability of not moving as intended"), 1)
        1.0
    """
    if knob.draw is None or not is_draw(knob, value):
        return freeze(knob.check(value))
    arguments = draw_arguments(value)
    if not isinstance(arguments, Mapping):
        raise KnobError(f"`{next(iter(value))}` should be a mapping of arguments. Received {show(arguments)}")
    return freeze(knob.draw(arguments, below, np.random.default_rng(0)))


def knob_findings(data: Mapping[str, Any], table: KnobTable) -> Iterator[Finding]:
    """What is wrong with the knobs and values of a schedule.

    Args:
        data: the schedule as plain data; parts of the wrong type are skipped, others report them.
        table: the knobs of the environment.

    Yields:
        Pairs of a path and what is wrong there.

    Example:
        >>> table = KnobTable((Knob("slip", 0.0, (0.0, 1.0), "probability of not moving as intended"),))
        >>> list(knob_findings({"base": {"slipp": 0}}, table))
        [(('base', 'slipp'), 'is no knob of this environment. Did you mean `slip`?')]
    """
    yield from _Checker(table, data.get("env")).check(data)


class _Checker:
    """Goes through a schedule in file order; remembers the last good value of each knob, for draws."""

    def __init__(self, table: KnobTable, env: Any) -> None:
        self._table = table
        self._env = env
        self._last: dict[str, Value] = {}

    def check(self, data: Mapping[str, Any]) -> Iterator[Finding]:
        for name, value in _items(data, "base"):
            yield from self._base(name, value)
        drifts = data.get("drifts")
        for index, drift in enumerate(drifts if isinstance(drifts, list) else ()):
            if isinstance(drift, Mapping):
                for operation in OPERATIONS:
                    for name, value in _items(drift, operation):
                        for rule in self._operation(operation, name, value, drift.get("kind") == "incremental"):
                            yield ("drifts", index, operation, name), rule

    def _base(self, name: str, value: Any) -> Iterator[Finding]:
        path: Path = ("base", name)
        if name not in self._table:
            yield path, self._unknown(name)
        else:
            for rule in self._written(self._table[name], value):
                yield path, rule

    def _operation(self, operation: str, name: str, value: Any, interpolated: bool) -> Iterator[str]:
        if name not in self._table:
            yield self._unknown(name)
            return
        knob = self._table[name]
        if operation in _NUMERIC_ONLY and not knob.is_numeric:
            yield f"`{operation}` is for numbers, `{name}` is of kind {knob.kind}"
        elif operation == "swap" and knob.kind != "mapping":
            yield f"`swap` is for mappings, `{name}` is of kind {knob.kind}"
        elif interpolated and not knob.is_numeric:
            yield f"`kind: incremental` is for numbers, `{name}` is of kind {knob.kind}: use sudden or gradual"
        elif operation == "set":
            yield from self._written(knob, value)
        elif operation == "choice" and isinstance(value, list):
            yield from self._choice(knob, value)

    def _choice(self, knob: Knob, values: list[Any]) -> Iterator[str]:
        seen: list[Value] = []
        for value in values:
            try:
                option = canonical(knob, value) if not is_draw(knob, value) else None
            except KnobError as error:
                yield self._explain(knob, value, error)
                continue
            if option is None:
                yield "`draw` has no place under `choice`, which draws among written values"
            elif option in seen:
                yield f"the values should differ. Received {show(value)} twice"
            seen.append(option)

    def _written(self, knob: Knob, value: Any) -> Iterator[str]:
        try:
            self._last[knob.name] = canonical(knob, value, self._last.get(knob.name))
        except KnobError as error:
            yield self._explain(knob, value, error)

    def _explain(self, knob: Knob, value: Any, error: KnobError) -> str:
        if knob.kind == "string" and not isinstance(value, str):
            return f"{error}; put it in quotes"
        if knob.draw is None and _leaves_to_seed(value):
            return f"`{knob.name}` can't be drawn from the seed"
        return str(error)

    def _unknown(self, name: str) -> str:
        written = f" (the schedule's `env` is {show(self._env)})" if self._env else ""
        return f"is no knob of this environment{written}. {nearest(name, self._table)}"


def _items(data: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    section = data.get(key)
    if isinstance(section, Mapping):
        yield from section.items()

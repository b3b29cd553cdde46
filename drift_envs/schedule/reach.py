"""Which combinations of knob values a schedule can reach, and what is wrong with them.

* `combination_findings` - the broken rules between knobs, on every reachable combination
* `reachable_values` - the reachable combinations themselves
* `MOST_COMBINATIONS` - how many are checked

Drifts at fixed ticks are followed through time, so that two that never hold together are never combined. What
depends on the seed (random times, choices, the ticks of a gradual ramp) is combined in every way. Numbers that
are computed are not enumerable: a walk, and a sum or product over a random number of occurrences, are
represented by the value beneath and the two bounds; a drawn value by one example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from drift_envs.errors import KnobError
from drift_envs.knobs import Knob, KnobTable, Value
from drift_envs.schedule.findings import Finding, Path
from drift_envs.schedule.knob_rules import canonical
from drift_envs.schedule.knob_values import powers, reflect, swapped
from drift_envs.schedule.model import MAX_TICK, Drift, Schedule
from drift_envs.schedule.ramps import DriftRamp
from drift_envs.schedule.rules import OPERATIONS
from drift_envs.schedule.streams import RandomStream

MOST_COMBINATIONS = 4096
"""The most combinations that are checked, the earliest in time first; later ones are left to the environment."""

_MOST_OCCURRENCES = 1000
_TICKS_AT_ONCE = 256
_MANY = -1  # stands for a number of occurrences that is not known

Update = Callable[[Value], Value]


@dataclass(frozen=True)
class _Variant:
    """One possible effect of a drift: the operation on each of its knobs."""

    drift: int
    updates: Mapping[str, tuple[str, Update]]


def combination_findings(schedule: Schedule, table: KnobTable) -> Iterator[Finding]:
    """The broken rules between knobs, on every combination of values that the schedule can reach.

    Args:
        schedule: a schedule whose single values are all right.
        table: the knobs of the environment, with the rule between them.

    Yields:
        Pairs of a path and the broken rule, each once.

    Example:
        >>> def rule(values):
        ...     if values["low"] > values["high"]:
        ...         yield "low", "should be at most `high`"
        >>> table = KnobTable((Knob("low", 0.0, (0.0, 9.0), ""), Knob("high", 1.0, (0.0, 9.0), "")), rule)
        >>> drifts = [{"at": 5, "set": {"low": 2, "high": 3}}, {"at": 9, "set": {"high": 1}}]
        >>> list(combination_findings(Schedule.model_validate({"version": 1, "name": "a", "drifts": drifts}), table))
        [(('drifts', 0, 'set', 'low'), 'should be at most `high` (while drift-1, drift-2 hold)')]
    """
    if table.rule is None:
        return
    base = {**table.defaults(), **{name: canonical(table[name], value) for name, value in schedule.base.items()}}
    seen: set[Finding] = set()
    for combination in _combinations(schedule, table):
        for finding in _check(schedule, table, base, combination):
            if finding not in seen:
                seen.add(finding)
                yield finding


def reachable_values(schedule: Schedule, table: KnobTable) -> Iterator[dict[str, Value]]:
    """Every combination of knob values that a schedule can reach, the earliest in time first; some come again.

    Args:
        schedule: a schedule that fits the environment.
        table: the knobs of the environment.

    Example:
        >>> table = KnobTable((Knob("slip", 0.0, (0.0, 1.0), ""),))
        >>> drifts = [{"at": 5, "set": {"slip": 0.5}}]
        >>> schedule = Schedule.model_validate({"version": 1, "name": "a", "drifts": drifts})
        >>> list(reachable_values(schedule, table))
        [{'slip': 0.0}, {'slip': 0.5}]
    """
    base = {**table.defaults(), **{name: canonical(table[name], value) for name, value in schedule.base.items()}}
    for combination in _combinations(schedule, table):
        values = dict(base)
        for variant in combination:
            for name, (_, update) in variant.updates.items():
                values[name] = update(values[name])
        yield {name: _settled(table[name], value) for name, value in values.items()}


def _combinations(schedule: Schedule, table: KnobTable) -> Iterator[Sequence[_Variant]]:
    examples = _Examples(schedule, table)
    checked = 0
    for counts in _counts(schedule):
        options = [
            [variant for count in choice for variant in examples.variants(index, count)]
            for index, choice in enumerate(counts)
        ]
        for combination in product(*options):
            yield [variant for variant in combination if variant.updates]
            checked += 1
            if checked >= MOST_COMBINATIONS:
                return


def _counts(schedule: Schedule) -> Iterator[tuple[tuple[int, ...], ...]]:
    """For each drift, how many of its occurrences may hold: every distinct case, in the order of time."""
    # `_possible` adds what the jitter may do, whatever the seed
    plain = [drift.model_copy(update={"jitter": 0}) for drift in schedule.drifts]
    ramps = [DriftRamp(drift, RandomStream(0, index)) for index, drift in enumerate(plain)]
    edges = _ticks(ramps)
    moves = {sign * drift.jitter for drift in schedule.drifts for sign in (-1, 0, 1)}
    ticks = np.array(sorted({tick + move for tick in edges for move in moves if tick + move >= 0} or {0}), np.int64)
    seen: set[bytes] = set()
    for start in range(0, len(ticks), _TICKS_AT_ONCE):
        part = ticks[start : start + _TICKS_AT_ONCE]
        held = [_possible(ramp, part, drift.jitter) for ramp, drift in zip(ramps, schedule.drifts, strict=True)]
        ranges = np.array(held, np.int64).reshape(len(ramps), 2, len(part))
        for position in range(len(part)):
            case = ranges[:, :, position]
            if case.tobytes() not in seen:
                seen.add(case.tobytes())
                yield tuple(
                    _choices(ramp.drift, least, most) for ramp, (least, most) in zip(ramps, case.tolist(), strict=True)
                )


def _ticks(ramps: Sequence[DriftRamp]) -> list[int]:
    """The ticks at which something begins or ends, until everything has met everything."""
    fixed = [ramp for ramp in ramps if ramp.drift.rate is None]
    recurring = [ramp for ramp in fixed if ramp.drift.every is not None]
    anchors = {0, *(ramp.drift.at or 0 for ramp in ramps)}
    for ramp in fixed:
        if ramp.drift.every is None:
            anchors.update(_edges(ramp, 0, MAX_TICK))
    ticks = set(anchors)
    if recurring:
        cycle = 2 * math.lcm(*(ramp.drift.every or 1 for ramp in recurring))
        longest = max((ramp.drift.every or 0) + (ramp.drift.duration or ramp.over) for ramp in recurring)
        density = sum(ramp.occurrences.density for ramp in recurring)
        reach = min(cycle + longest, int(_MOST_OCCURRENCES / density / len(anchors)))
        for anchor in sorted(anchors):
            for ramp in recurring:
                ticks.update(_edges(ramp, anchor, anchor + reach))
    return sorted(tick for tick in ticks if 0 <= tick <= MAX_TICK)


def _edges(ramp: DriftRamp, low: int, high: int) -> Iterator[int]:
    for tick in ramp.occurrences.bounds(low, high + 1).tolist():
        yield from (tick, tick + 1, tick + ramp.over, tick - ramp.over, tick - ramp.over + 1)


def _possible(ramp: DriftRamp, ticks: np.ndarray, jitter: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most occurrences of a drift that may hold at these ticks, reduced where that is possible."""
    drift, over, count = ramp.drift, ramp.over, ramp.occurrences.count
    if drift.rate is not None:
        return np.zeros_like(ticks), (ticks >= (drift.at or 0)).astype(np.int64)
    # an occurrence with a ramp has a weight of 0 at its first tick, and may hold from the next on
    least = count(ticks - over - jitter)
    most = np.maximum(count(ticks - (1 if over else 0) + jitter), least)
    if drift.duration is not None:
        fading = count(ticks - drift.duration + max(over - 1, 0) + jitter)
        ended = count(ticks - drift.duration - jitter)
        return np.maximum(least - fading, 0), most - ended
    if not drift.add and not drift.scale:
        # beyond the first, an even and an odd number of occurrences is all the difference there is
        fewer = np.maximum(least - 2 + least % 2, 0)
        least, most = least - fewer, most - fewer
    return least, most


def _choices(drift: Drift, least: int, most: int) -> tuple[int, ...]:
    if drift.rate is not None and drift.duration is None and most:
        return (0, 1, _MANY)
    return tuple(range(least, most + 1))


class _Examples:
    """What each drift may be doing, with examples for values that are drawn."""

    def __init__(self, schedule: Schedule, table: KnobTable) -> None:
        self._schedule, self._table = schedule, table
        last = {name: canonical(table[name], value) for name, value in schedule.base.items()}
        self._set: list[dict[str, Value]] = []
        for drift in schedule.drifts:
            # drawn values build upon the last example, in file order
            examples = {name: canonical(table[name], value, last.get(name)) for name, value in drift.set.items()}
            last.update(examples)
            self._set.append(examples)
        self._known: dict[tuple[int, int], list[_Variant]] = {}

    def variants(self, index: int, count: int) -> list[_Variant]:
        """What a drift may be doing when so many of its occurrences hold."""
        if (index, count) not in self._known:
            self._known[index, count] = self._variants(index, count) if count else [_Variant(index, {})]
        return self._known[index, count]

    def _variants(self, index: int, count: int) -> list[_Variant]:
        drift = self._schedule.drifts[index]
        updates: list[list[tuple[str, str, Update]]] = []
        for operation in OPERATIONS:
            for name, argument in getattr(drift, operation).items():
                example = self._set[index].get(name)
                options = _updates(self._table[name], operation, argument, example, count)
                updates.append([(name, operation, update) for update in options])
        return [
            _Variant(index, {name: (operation, update) for name, operation, update in chosen})
            for chosen in product(*updates)
        ]


def _updates(knob: Knob, operation: str, argument: Any, example: Value, count: int) -> list[Update]:
    if operation == "set":
        return [lambda below: example]
    if operation == "choice":
        options = [canonical(knob, option) for option in argument]
        return [lambda below, option=option: option for option in options]  # type: ignore[misc]
    if operation == "swap":
        if count != _MANY and count % 2 == 0:
            return [lambda below: below]
        return [lambda below: swapped(below, argument, knob.name)]
    low, high = knob.bounds if knob.bounds is not None else (-math.inf, math.inf)
    if operation == "walk" or count == _MANY:
        ends = [bound for bound in (low, high) if math.isfinite(bound)]
        return [lambda below: below, *(lambda below, end=end: end for end in ends)]
    if operation == "add":
        return [lambda below: below + count * argument]
    factor = float(powers(argument, np.array([count]))[0])
    return [lambda below: below * factor]


def _check(
    schedule: Schedule, table: KnobTable, base: Mapping[str, Value], combination: Sequence[_Variant]
) -> Iterator[Finding]:
    values = dict(base)
    for variant in combination:
        for name, (operation, update) in variant.updates.items():
            try:
                values[name] = update(values[name])
            except KnobError as error:
                yield ("drifts", variant.drift, operation, name), str(error)
    values = {name: _settled(table[name], value) for name, value in values.items()}
    for knob, rule in table.problems(values):
        # a long schedule has many drifts that hold; those count that set some knob last
        last = {name: variant.drift for variant in combination for name in variant.updates}
        names = [schedule.drifts[index].name for index in sorted(set(last.values()))]
        held = f" (while {', '.join(names)} {'hold' if len(names) > 1 else 'holds'})" if names else ""
        yield _blamed(schedule, knob, combination), rule + held


def _settled(knob: Knob, value: Value) -> Value:
    """A computed number between its bounds, as the timeline would give it."""
    if not knob.is_numeric or knob.bounds is None:
        return value
    low, high = map(float, knob.bounds)
    inside = float(value) if low <= value <= high else float(reflect(np.array([float(value)]), low, high)[0])
    return round(inside) if knob.kind == "integer" else inside


def _blamed(schedule: Schedule, knob: str, combination: Sequence[_Variant]) -> Path:
    """Where to look: what set the knob last, else the base, else the last drift."""
    for variant in reversed(combination):
        if knob in variant.updates:
            return ("drifts", variant.drift, variant.updates[knob][0], knob)
    if knob in schedule.base or not combination:
        return ("base", knob)
    return ("drifts", combination[-1].drift)

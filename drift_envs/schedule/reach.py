"""Which combinations of knob values a schedule can reach, what is wrong with them, and how far ticks reach.

* `combination_findings` - the broken rules between knobs, on every reachable combination
* `reachable_values` - the reachable combinations themselves
* `limits_of`, `Limits` - the last ticks of which questions are answered
* `limit_findings`, `early_limit` - the drifts that begin beyond them, and the limit that long experiments may meet

Drifts at fixed ticks are followed through time, so that two that never hold together are never combined. What
depends on the seed (random times, choices, the ticks of a gradual ramp) is combined in every way. Numbers that
are computed are not enumerable: a walk, and a sum or product over a random number of occurrences, are
represented by the value beneath and the two bounds; a drawn value by one example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from drift_envs.errors import KnobError
from drift_envs.knobs import Knob, KnobTable, Value
from drift_envs.schedule.model import MAX_TICK, OPERATIONS, Drift, Schedule
from drift_envs.schedule.phases import PhaseTable
from drift_envs.schedule.ramps import DriftRamp
from drift_envs.schedule.streams import MOST_EVENTS, RandomStream
from drift_envs.schedule.values import canonical, powers, reflect, swapped
from drift_envs.schedule.yaml import Finding, Path

MOST_COMBINATIONS = 4096
"""The most combinations that are checked, the earliest in time first; later ones are left to the environment."""

EARLY = 10_000_000
"""Ticks that an experiment may well have: an earlier limit is warned of."""

_MOST_OCCURRENCES = 1000
_TICKS_AT_ONCE = 256
_MANY = -1  # stands for a number of occurrences that is not known

Update = Callable[[Value], Value]


class _Variant(NamedTuple):
    """One possible effect of a drift: the operation on each of its knobs."""

    drift: int
    updates: Mapping[str, tuple[str, Update]]


class Limits(NamedTuple):
    """The last ticks of which questions are answered.

    Args:
        phase: the last one whose phase is found, `MAX_TICK` where phases repeat.
        value: about the last one before which at most `MOST_EVENTS` random events of each drift lie: a tick of `rate`,
            `walk` and `choice` costs by the events before it, since each adds to the one before.
    """

    phase: int
    value: int


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
    base = _base(schedule, table)
    seen: set[Finding] = set()
    for combination in _combinations(schedule, table):
        values, findings = _apply(combination, base, table)
        for knob, rule in table.problems(values):
            # a long schedule has many drifts that hold; those count that set some knob last
            last = {name: variant.drift for variant in combination for name in variant.updates}
            names = [schedule.drifts[index].name for index in sorted(set(last.values()))]
            held = f" (while {', '.join(names)} {'hold' if len(names) > 1 else 'holds'})" if names else ""
            findings.append((_blamed(schedule, knob, combination), rule + held))
        yield from (finding for finding in findings if finding not in seen)
        seen.update(findings)


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
    base = _base(schedule, table)
    for combination in _combinations(schedule, table):
        yield _apply(combination, base, table)[0]


def _base(schedule: Schedule, table: KnobTable) -> dict[str, Value]:
    return {**table.defaults(), **{name: canonical(table[name], value) for name, value in schedule.base.items()}}


def _apply(
    combination: Sequence[_Variant], base: Mapping[str, Value], table: KnobTable
) -> tuple[dict[str, Value], list[Finding]]:
    """The values of a combination, and the operations that are not possible in it."""
    values, findings = dict(base), list[Finding]()
    for variant in combination:
        for name, (operation, update) in variant.updates.items():
            try:
                values[name] = update(values[name])
            except KnobError as error:
                findings.append((("drifts", variant.drift, operation, name), str(error)))
    return {name: _settled(table[name], value) for name, value in values.items()}, findings


def limits_of(drifts: Sequence[Drift], phases: PhaseTable | None = None) -> Limits:
    """The last ticks of some drifts; where their times are random, those of one seed.

    Args:
        drifts: those of a schedule.
        phases: their phases, if they were made already.

    Example:
        >>> storms = Drift.model_validate({"name": "storms", "rate": 0.1, "walk": {"slip": 0.05}})
        >>> limits_of([storms]).value
        1000000000
    """
    value = MAX_TICK
    for drift in drifts:
        if drift.rate is not None:
            value = min(value, (drift.at or 0) + int(MOST_EVENTS / drift.rate))
        elif drift.every is not None and (drift.walk or drift.choice):
            value = min(value, (drift.at or drift.every) + MOST_EVENTS * drift.every)
    phases = phases or PhaseTable([DriftRamp(drift, RandomStream(0, index)) for index, drift in enumerate(drifts)])
    return Limits(phases.last_tick, value)


def limit_findings(drifts: Sequence[Drift], limits: Limits) -> Iterator[Finding]:
    """The drifts that begin beyond the limits, so that no episode could reach them.

    Args:
        drifts: those of a schedule.
        limits: their `limits_of`.

    Example:
        >>> storms = Drift.model_validate({"name": "storms", "rate": 0.1, "set": {"slip": 0.5}})
        >>> late = Drift.model_validate({"name": "late", "at": 2_000_000_000, "set": {"slip": 0.1}})
        >>> [path for path, rule in limit_findings([storms, late], limits_of([storms, late]))]
        [('drifts', 1, 'at')]
    """
    last = min(limits)
    for index, drift in enumerate(drifts):
        if drift.at is not None and drift.at > last:
            rule = f"should be at most {last}: with these drifts later ticks would take too long. Received {drift.at}"
            yield ("drifts", index, "at"), rule


def early_limit(limits: Limits) -> Finding | None:
    """The limit that long experiments may meet, with the place in the schedule.

    Args:
        limits: the `limits_of` a schedule's drifts.
    """
    if min(limits) >= EARLY:
        return None
    reason = "random events" if limits.value < limits.phase else "phases that do not repeat"
    return ("drifts",), f"can be played up to tick {min(limits)} only: too many {reason} lie before later ones"


def _combinations(schedule: Schedule, table: KnobTable) -> Iterator[Sequence[_Variant]]:
    examples = _Examples(schedule, table)
    before = np.full((len(schedule.drifts), 2), _MANY)
    options: list[list[_Variant]] = [[] for _ in schedule.drifts]
    checked = 0
    for case in _cases(schedule):
        for index in np.flatnonzero((case != before).any(axis=1)).tolist():
            options[index] = examples.variants(index, *case[index].tolist())
        before = case
        for combination in product(*options):
            yield [variant for variant in combination if variant.updates]
            checked += 1
            if checked >= MOST_COMBINATIONS:
                return


def _cases(schedule: Schedule) -> Iterator[np.ndarray]:
    """For each drift, the least and the most of its occurrences that may hold: every distinct case, in time order."""
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
                yield case


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
        self._known: dict[tuple[int, int, int], list[_Variant]] = {}

    def variants(self, index: int, least: int, most: int) -> list[_Variant]:
        """What a drift may be doing when so many of its occurrences hold."""
        key = (index, least, most)
        if key not in self._known:
            drift, counts = self._schedule.drifts[index], list(range(least, most + 1))
            if drift.rate is not None and drift.duration is None and most:
                counts = [0, 1, _MANY]
            self._known[key] = [variant for number in counts for variant in self._variants(index, drift, number)]
        return self._known[key]

    def _variants(self, index: int, drift: Drift, count: int) -> list[_Variant]:
        if not count:
            return [_Variant(index, {})]
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

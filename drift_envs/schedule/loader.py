"""From a name, a path or a dictionary to a checked `Schedule`, and what a schedule can reach.

Single keys, rules between keys and values are checked first, then every combination of knob values that the schedule
can reach, and how far its ticks go. An error names everything that is wrong, with file, line and key.

Drifts at fixed ticks are followed through time, so that two that never hold together are never combined. What depends
on the seed (random times, choices, the ticks of a gradual ramp) is combined in every way. Numbers that are computed are
not enumerable: a walk, and a sum or product over a random number of occurrences, are represented by the value beneath
and the two bounds; a drawn value by one example.
"""

from __future__ import annotations

import difflib
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import count, islice, product
from typing import Any, NamedTuple, overload

import gymnasium as gym
import numpy as np
from pydantic import BaseModel, ValidationError

from drift_envs.errors import ArgumentError, DeclaredKnobsError, DriftWarning, KnobError, Problem, ScheduleError
from drift_envs.knobs import Knob, KnobTable, Value, leaves_to_seed, powers, reflect, swapped
from drift_envs.schedule.model import (
    BROKEN_RULE,
    CURVE_TAGS,
    OPERATIONS,
    Derived,
    Drift,
    KnobSpec,
    Schedule,
    Steps,
    TaskPool,
    broken_rules,
    named_drifts,
)
from drift_envs.schedule.occurrences import possible_counts
from drift_envs.schedule.phases import early_limit, limit_findings, limits_of
from drift_envs.schedule.yaml import (
    MAX_DEPTH,
    MAX_NODES,
    SECTION,
    Document,
    Finding,
    KeyPath,
    Mark,
    read_mapping,
    read_named,
)
from drift_envs.utils.error_messages import broken_rule, key_path, nearest, show

_UNKNOWN_KEY = "is no key that belongs here."
_LARGEST = 2**63 - 1
_NUMERIC_ONLY = ("add", "scale", "walk")

Tables = KnobTable | Callable[[Mapping[str, Any]], KnobTable | None] | None
"""The knobs of an environment, or what finds them in the content of a schedule that may be wrong elsewhere."""

NamedSource = str | os.PathLike[str] | Mapping[str, Any] | Schedule
Source = NamedSource | None
"""A schedule, or what `load_schedule` makes one of; `None` for no drift."""

MOST_COMBINATIONS = 4096
"""The most combinations that are checked, the earliest in time first; later ones are left to the environment."""


_MANY = -1  # stands for a number of occurrences that is not known
Update = Callable[[Value], Value]


@overload
def load_schedule(source: None, *, table: Tables = None) -> None: ...
@overload
def load_schedule(source: NamedSource, *, table: Tables = None) -> Schedule: ...
@overload
def load_schedule(source: Source, *, table: Tables = None) -> Schedule | None: ...
def load_schedule(source: Source, *, table: Tables = None) -> Schedule | None:
    """Read and check a schedule.

    Args:
        source: a shipped name (`frozen_lake/explicit`), the path of a file (a `Path`, or a text that ends
            in `.yaml` or `.yml`), a dictionary, a `Schedule`, or `None` for no schedule. A suffix names a variant
            (`frozen_lake/explicit:family`, `mine.yaml:windy`).
        table: the knobs of the environment. With it, knob names and values are checked too, and the rules
            between knobs on every combination of values that the schedule can reach. Where the knobs depend
            on the schedule, `table` is a function of its content, in which anything may be wrong; it returns
            the knobs, or `None`, or raises `DeclaredKnobsError`, whose findings are reported with file and line.

    Returns:
        The schedule, or `None` for `None`. A `Schedule` that was loaded for an equal table is returned as it is.

    Raises:
        ScheduleError: with everything that is wrong, in the order of the file; an `UnknownScheduleError` if there
            is no schedule or variant of that name.
        ArgumentError: if `source` is something else.

    Warns:
        DriftWarning: with a table, if some tick before the ten millionth cannot be played.

    Example:
        >>> load_schedule({"version": 1, "drifts": [{"at": 20, "set": {"slip": 0.5}}]}).drifts[0].at
        20
        >>> load_schedule({"version": 1, "clok": "step", "drifts": [{"set": {"slip": 0.5}}]})
        Traceback (most recent call last):
        drift_envs.errors.ScheduleError: <dict>: clok: is no key that belongs here. Did you mean `clock`?
        <dict>: drifts[0]: says nowhere when it happens: needs `at`, `every` or `rate`
    """
    if source is None:
        return None
    if isinstance(source, Schedule):
        if isinstance(table, KnobTable) and source.fits(table):
            return source
        checked = check_document(Document(source.to_dict(), Mark(f"<{source.name}>", None)), table)
        return source.mark_checked(table) if isinstance(table, KnobTable) and checked == source else checked
    if isinstance(source, Mapping):
        document = read_mapping(source)
    elif isinstance(source, (str, os.PathLike)):
        document = read_named(source)
    else:
        raise ArgumentError(
            f"`schedule` should be a name, a path, a dictionary, a Schedule or None. Received {type(source).__name__}"
        )
    return check_document(document, table)


def check_document(document: Document, tables: Tables) -> Schedule:
    """Check the content of a file, with what it extends, as `load_schedule` does.

    Raises:
        ScheduleError: with everything that is wrong.
    """
    data, findings = _plain_data(document.data)
    if not isinstance(data, dict):
        text = "is empty" if data is None else "should be a mapping of keys to values"
        raise ScheduleError([*document.problems, Problem(document.mark.where, document.mark.line, "", text)])
    table: KnobTable | None = None
    try:
        table = tables if tables is None or isinstance(tables, KnobTable) else tables(data)
    except DeclaredKnobsError as error:
        findings += error.findings
    if "drifts" in data:
        data["drifts"] = named_drifts(data["drifts"])
    schedule, structure = _validate(data)
    known, early = {path for path, _ in findings}, None
    findings += [finding for finding in (*structure, *broken_rules(data)) if finding[0] not in known]
    if table is not None:
        known = {path for path, _ in findings}
        findings += [finding for finding in _knob_findings(data, table) if finding[0] not in known]
        complete = schedule or _without_unknown_keys(data, findings)
        if complete is not None and not document.problems and all(map(_is_unknown_key, findings)):
            limits = limits_of(complete.drifts)
            findings += [*combination_findings(complete, table), *limit_findings(complete.drifts, limits)]
            early = early_limit(limits)
    problems = list(dict.fromkeys([*document.problems, *_problems(findings, document)]))
    # the file itself before what it extends, then by line; a stable sort keeps the rest in order
    problems.sort(key=lambda problem: (problem.where != document.mark.where, problem.where, problem.line or 0))
    if schedule is None or problems:
        raise ScheduleError(problems)
    if table is None:
        return schedule
    if early is not None:
        warnings.warn(str(next(_problems([early], document))), DriftWarning, stacklevel=3)
    return schedule.mark_checked(table)


def _without_unknown_keys(data: Mapping[str, Any], findings: Iterable[Finding]) -> Schedule | None:
    """The schedule without its unknown keys, if nothing else is wrong, so that all other rules can be checked."""
    rest = deepcopy(dict(data))
    for path, _ in filter(_is_unknown_key, findings):
        _at(rest, path[:-1]).pop(path[-1], None)
    return _validate(rest)[0]


def _problems(findings: Iterable[Finding], document: Document) -> Iterator[Problem]:
    for path, rule in findings:
        place = document.mark.find(path)
        prefix = document.prefixes.get(str(path[0]), ()) if path else ()
        yield Problem(place.where, place.line, key_path((*prefix, *path)), rule)


def _plain_data(data: Any) -> tuple[Any, list[Finding]]:
    """A copy that consists of dictionaries, lists, strings, finite numbers, booleans and `None`.

    Returns:
        The copy, and what could not be copied (which is `None` in the copy).
    """
    findings: list[Finding] = []
    nodes = count(1)

    def copy(value: Any, path: KeyPath) -> Any:
        if (number := next(nodes)) > MAX_NODES:
            if number == MAX_NODES + 1:
                findings.append(((), f"holds more than {MAX_NODES} values"))
            return None
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            rule = "should be a whole number of at most 18 digits. Received a longer one"
            rule = "" if abs(value) <= _LARGEST else rule
        elif isinstance(value, float):
            rule = "" if math.isfinite(value) else f"should be a finite number. Received {value}"
        elif len(path) >= MAX_DEPTH:
            rule = f"is nested deeper than {MAX_DEPTH} levels"
        elif isinstance(value, Mapping):
            return {key: copy(item, (*path, key)) for key, item in _named(value, path, findings)}
        elif isinstance(value, (list, tuple)):
            return [copy(item, (*path, position)) for position, item in enumerate(value)]
        else:
            rule = f"should be plain data. Received {type(value).__name__}"
        if rule:
            findings.append((path, rule))
        return None if rule else value

    return copy(data, ()), findings


def _named(value: Mapping[Any, Any], path: KeyPath, findings: list[Finding]) -> Iterator[tuple[str, Any]]:
    """The items of a mapping whose keys are strings; whole numbers become text, as in YAML."""
    for key, item in value.items():
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            key = str(key)
            if key in value:
                findings.append(((*path, key), "stands twice"))
        if isinstance(key, str):
            yield key, item
        else:
            findings.append((path, f"a key should be a string. Received {show(key)}"))


def _validate(data: Mapping[str, Any]) -> tuple[Schedule | None, list[Finding]]:
    """Build the schedule, or find what is wrong with single keys: unknown, missing, wrong type, out of range."""
    try:
        return Schedule.model_validate(data), []
    except ValidationError as error:
        found = [item for item in error.errors(include_url=False) if item["type"] != BROKEN_RULE]
        inserted = ("[key]", *CURVE_TAGS)
        paths = (tuple(part for part in item["loc"] if part not in inserted) for item in found)
        return None, [_explain(path, item, data) for path, item in zip(paths, found, strict=True)]


def _is_unknown_key(finding: Finding) -> bool:
    return finding[1].startswith(_UNKNOWN_KEY)


def _explain(path: KeyPath, found: Mapping[str, Any], data: Mapping[str, Any]) -> Finding:
    kind = found["type"]
    if kind == "extra_forbidden":
        key, colon, rest = str(path[-1]).partition(":")
        if colon and key in _known_keys(path[:-1]):
            return path, f"{_UNKNOWN_KEY} Put a blank behind the colon: `{key}: {rest}`"
        around = _at(data, path[:-1])
        empty = next((name for name in ("base", *OPERATIONS) if name in around and around[name] is None), None)
        if empty is not None:
            return path, f"{_UNKNOWN_KEY} Indent it further than `{empty}`, so that it stands below it"
        return path, f"{_UNKNOWN_KEY} {nearest(str(path[-1]), _known_keys(path[:-1]))}"
    if kind == "missing" and isinstance(path[-1], int):  # a pair with one entry
        return path[:-1], f"should be a list of two. Received {show(_at(data, path[:-1]))}"
    if kind in ("too_short", "too_long") and ("swap" in path or "bounds" in path):
        return path, f"should be a list of two. Received {show(found['input'])}"
    text = broken_rule(found)
    written = found["input"]
    if kind in ("int_type", "float_type") and isinstance(written, str) and written.replace("_", "").isdigit():
        advice = "YAML 1.2 has no underscores in numbers" if "_" in written else "In quotes it is a text"
        text += f". {advice}: write {written.replace('_', '')}"
    if kind == "int_type" and isinstance(written, float) and written.is_integer():
        text += f": write {int(written)}"
    if kind == "missing" and path == ("version",):
        text += ": write `version: 1`"
    if path[0] == "drifts" and path[-1] in ("at", "every") and isinstance(found["input"], list):
        text += ". One drift happens at one tick: write a drift for each, or `every` for ticks at equal distances"
    if path == ("drifts",) and isinstance(found["input"], Mapping):
        text += ". Begin each drift with a dash, as in `- at: 20`"
    return path, text


def _known_keys(path: KeyPath) -> list[str]:
    models: dict[Any, type[BaseModel]] = {"drifts": Drift, "tasks": TaskPool, "knobs": KnobSpec}
    model = models[path[0]] if path else Schedule
    if path[:2] == ("knobs", "derived"):
        model = Derived
    elif path[:1] == ("drifts",) and path[-1] == "curve":
        model = Steps
    keys = [field.alias or name for name, field in model.model_fields.items()]
    return keys if path else [*keys, "extends", SECTION]


def _at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = data[part]
    return data


def _knob_findings(data: Mapping[str, Any], table: KnobTable) -> Iterator[Finding]:
    """What is wrong with the knobs and values of a schedule; parts of the wrong type are left to the models."""
    last: dict[str, Value] = {}  # the last good value of each knob, upon which draws build
    drifts = data.get("drifts")
    places: list[tuple[KeyPath, Mapping[str, Any], str, bool]] = [(("base",), data, "base", False)]
    for index, drift in enumerate(drifts if isinstance(drifts, list) else ()):
        if isinstance(drift, Mapping):
            is_incremental = drift.get("kind") == "incremental"
            places += [(("drifts", index, operation), drift, operation, is_incremental) for operation in OPERATIONS]
    for path, section, operation, is_incremental in places:
        values = section.get(operation)
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if name in table:
                rules = _operation_rules(operation, table[name], value, is_incremental, last)
            else:
                env = f" (the schedule's `env` is {show(data['env'])})" if data.get("env") else ""
                knob, colon, rest = str(name).partition(":")
                if colon and knob in table:
                    hint = f"Put a blank behind the colon: `{knob}: {rest}`"
                else:
                    hint = _own_id(data, name, table) or nearest(name, table)
                rules = iter([f"is no knob of this environment{env}. {hint}"])
            for rule in rules:
                yield (*path, name), rule


def _own_id(data: Mapping[str, Any], knob: str, table: KnobTable) -> str:
    """The id of this package for Gymnasium's environment of that name, where the knob is not just misspelled."""
    spec = gym.registry.get(f"Drift{str(data.get('env')).rpartition('-v')[0]}-v0")
    if spec is None or not str(spec.entry_point).startswith("drift_envs."):
        return ""
    if difflib.get_close_matches(knob, table, n=1):
        return ""
    return f"Did you mean `env: {spec.id}`? It has more knobs than {', '.join(f'`{name}`' for name in table)}"


def _operation_rules(
    operation: str, knob: Knob, value: Any, is_incremental: bool, last: dict[str, Value]
) -> Iterator[str]:
    if operation in _NUMERIC_ONLY and not knob.is_numeric:
        yield f"`{operation}` is for numbers, `{knob.name}` is of kind {knob.kind}"
    elif operation == "swap" and knob.kind != "mapping":
        yield f"`swap` is for mappings, `{knob.name}` is of kind {knob.kind}"
    elif is_incremental and not knob.is_numeric:
        yield f"`kind: incremental` is for numbers, `{knob.name}` is of kind {knob.kind}: use sudden or gradual"
    elif operation in ("base", "set"):
        try:
            last[knob.name] = knob.canonical(value, last.get(knob.name))
        except KnobError as error:
            yield _explain_value(knob, value, error)
    elif operation == "choice" and isinstance(value, list):
        seen: set[Value] = set()
        for option in value:
            if knob.is_drawn(option):
                yield "`draw` has no place under `choice`, which draws among written values"
                continue
            try:
                found = knob.canonical(option)
            except KnobError as error:
                yield _explain_value(knob, option, error)
                continue
            if found in seen:
                yield f"the values should differ. Received {show(option)} twice"
            seen.add(found)


def _explain_value(knob: Knob, value: Any, error: KnobError) -> str:
    if knob.kind == "string" and not isinstance(value, str):
        return f"{error}; put it in quotes"
    if knob.draw is None and leaves_to_seed(value):
        return f"`{knob.name}` can't be drawn from the seed"
    return str(error)


class _Variant(NamedTuple):
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
    return {**table.defaults(), **{name: table[name].canonical(value) for name, value in schedule.base.items()}}


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


def _combinations(schedule: Schedule, table: KnobTable) -> Iterator[Sequence[_Variant]]:
    examples = _Examples(schedule, table)
    before = np.full((len(schedule.drifts), 2), _MANY)
    options: list[list[_Variant]] = [[] for _ in schedule.drifts]
    checked = 0
    for case in possible_counts(schedule.drifts):
        for index in np.flatnonzero((case != before).any(axis=1)).tolist():
            options[index] = examples.variants(index, *case[index].tolist())
        before = case
        for combination in product(*options):
            yield [variant for variant in combination if variant.updates]
            checked += 1
            if checked >= MOST_COMBINATIONS:
                return


class _Examples:
    """What each drift may be doing, with examples for values that are drawn."""

    def __init__(self, schedule: Schedule, table: KnobTable) -> None:
        self._schedule, self._table = schedule, table
        last = {name: table[name].canonical(value) for name, value in schedule.base.items()}
        self._set: list[dict[str, Value]] = []
        for drift in schedule.drifts:
            # drawn values build upon the last example, in file order
            examples = {name: table[name].canonical(value, last.get(name)) for name, value in drift.set.items()}
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
            for chosen in islice(product(*updates), MOST_COMBINATIONS)
        ]


def _updates(knob: Knob, operation: str, argument: Any, example: Value, count: int) -> list[Update]:
    if operation == "set":
        return [lambda below: example]
    if operation == "choice":
        options = [knob.canonical(option) for option in argument]
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


def _blamed(schedule: Schedule, knob: str, combination: Sequence[_Variant]) -> KeyPath:
    """Where to look: what set the knob last, else the base, else the last drift."""
    for variant in reversed(combination):
        if knob in variant.updates:
            return ("drifts", variant.drift, variant.updates[knob][0], knob)
    if knob in schedule.base or not combination:
        return ("base", knob)
    return ("drifts", combination[-1].drift)

"""From a name, a path or a dictionary to a checked `Schedule`.

* `load_schedule` - reads and checks a schedule; its error names everything that is wrong
* `shipped_schedules` - the names of the schedules that come with the package
"""

from __future__ import annotations

import difflib
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from itertools import count
from typing import Any, overload

import gymnasium as gym
import numpy as np
from pydantic import BaseModel, ValidationError

from drift_envs.errors import ArgumentError, DeclaredKnobsError, DriftWarning, KnobError, Problem, ScheduleError
from drift_envs.knobs import Knob, KnobTable, Value
from drift_envs.schedule.files import SECTION, read_mapping, read_named, shipped_schedules
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
from drift_envs.schedule.reach import combination_findings, early_limit, limit_findings, limits_of
from drift_envs.schedule.values import canonical, is_draw, leaves_to_seed
from drift_envs.schedule.yaml import MAX_DEPTH, MAX_NODES, Document, Finding, Mark, Path, key_path, nearest, show

__all__ = ["load_schedule", "shipped_schedules"]

_UNKNOWN_KEY = "is no key that belongs here."
_LARGEST = 2**63 - 1
_NUMERIC_ONLY = ("add", "scale", "walk")
_EXPLANATIONS = {
    "int_type": "should be a whole number",
    "float_type": "should be a number",
    "bool_type": "should be true or false",
    "string_type": "should be a text",
    "dict_type": "should be a mapping",
    "model_type": "should be a mapping",
    "model_attributes_type": "should be a mapping",
    "tuple_type": "should be a list",
    "string_pattern_mismatch": "should consist of letters, digits, `_`, `-` and `.`, and begin with a letter or digit; "
    "letters are a to z and A to Z",
    "greater_than": "should be more than {gt}",
    "greater_than_equal": "should be at least {ge}",
    "less_than": "should be less than {lt}",
    "less_than_equal": "should be at most {le}",
    "literal_error": "should be {expected}",
    "too_short": "should have at least {min_length} entries",
    "too_long": "should have at most {max_length} entries",
}
"""The words of this package for the errors of pydantic, by type."""

Tables = KnobTable | Callable[[Mapping[str, Any]], KnobTable | None] | None
"""The knobs of an environment, or what finds them in the content of a schedule that may be wrong elsewhere."""


Source = str | os.PathLike[str] | Mapping[str, Any] | Schedule


@overload
def load_schedule(source: None, *, table: Tables = None) -> None: ...
@overload
def load_schedule(source: Source, *, table: Tables = None) -> Schedule: ...
@overload
def load_schedule(source: Source | None, *, table: Tables = None) -> Schedule | None: ...
def load_schedule(source: Source | None, *, table: Tables = None) -> Schedule | None:
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
    problems = _sorted([*document.problems, *_problems(findings, document)], document.mark.where)
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


def _sorted(problems: list[Problem], first: str) -> list[Problem]:
    # the file itself before what it extends, then by line; a stable sort keeps the rest in order
    unique = list(dict.fromkeys(problems))
    return sorted(unique, key=lambda problem: (problem.where != first, problem.where, problem.line or 0))


def _plain_data(data: Any) -> tuple[Any, list[Finding]]:
    """A copy that consists of dictionaries, lists, strings, finite numbers, booleans and `None`.

    Returns:
        The copy, and what could not be copied (which is `None` in the copy).
    """
    findings: list[Finding] = []
    nodes = count(1)

    def copy(value: Any, path: Path) -> Any:
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


def _named(value: Mapping[Any, Any], path: Path, findings: list[Finding]) -> Iterator[tuple[str, Any]]:
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


def _explain(path: Path, found: Mapping[str, Any], data: Mapping[str, Any]) -> Finding:
    kind, context, received = found["type"], found.get("ctx", {}), show(found["input"])
    if kind == "extra_forbidden":
        key, colon, rest = str(path[-1]).partition(":")
        if colon and key in _known_keys(path[:-1]):
            return path, f"{_UNKNOWN_KEY} Put a blank behind the colon: `{key}: {rest}`"
        return path, f"{_UNKNOWN_KEY} {nearest(str(path[-1]), _known_keys(path[:-1]))}"
    if kind == "missing" and isinstance(path[-1], int):  # a pair with one entry
        return path[:-1], f"should be a list of two. Received {show(_at(data, path[:-1]))}"
    if kind == "missing":
        return path, "is missing"
    if kind in ("too_short", "too_long"):
        if "swap" in path or "bounds" in path:
            return path, f"should be a list of two. Received {received}"
        received = str(len(found["input"]))
    if kind in _EXPLANATIONS:
        text = _EXPLANATIONS[kind].format_map(context)
    else:
        text = found["msg"][0].lower() + found["msg"][1:]
    text = f"{text}. Received {received}"
    if path[0] == "drifts" and path[-1] in ("at", "every") and isinstance(found["input"], list):
        text += ". One drift happens at one tick: write a drift for each, or `every` for ticks at equal distances"
    if kind == "literal_error" and isinstance(found["input"], str):
        options = [part.strip(" '") for part in context["expected"].replace(" or ", ", ").split(",")]
        close = difflib.get_close_matches(found["input"], options, n=1)
        text += f". Did you mean '{close[0]}'?" if close else ""
    return path, text


def _known_keys(path: Path) -> list[str]:
    models: dict[Any, type[BaseModel]] = {"drifts": Drift, "tasks": TaskPool, "knobs": KnobSpec}
    model = models[path[0]] if path else Schedule
    if path[:2] == ("knobs", "derived"):
        model = Derived
    elif path[:1] == ("drifts",) and path[-1] == "curve":
        model = Steps
    keys = [field.alias or name for name, field in model.model_fields.items()]
    return keys if path else [*keys, "extends", SECTION]


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def _knob_findings(data: Mapping[str, Any], table: KnobTable) -> Iterator[Finding]:
    """What is wrong with the knobs and values of a schedule; parts of the wrong type are left to the models."""
    last: dict[str, Value] = {}  # the last good value of each knob, upon which draws build
    drifts = data.get("drifts")
    places: list[tuple[Path, Mapping[str, Any], str, bool]] = [(("base",), data, "base", False)]
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
                rules = iter(
                    [f"is no knob of this environment{env}. {nearest(name, table)}{_own_id(data, name, table)}"]
                )
            for rule in rules:
                yield (*path, name), rule


def _own_id(data: Mapping[str, Any], knob: str, table: KnobTable) -> str:
    """The id of this package for Gymnasium's environment of that name, where the knob is not just misspelled."""
    spec = gym.registry.get(f"Drift{str(data.get('env')).rpartition('-v')[0]}-v0")
    if spec is None or not str(spec.entry_point).startswith("drift_envs."):
        return ""
    return "" if difflib.get_close_matches(knob, table, n=1) else f"; `{spec.id}` has more"


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
            last[knob.name] = canonical(knob, value, last.get(knob.name))
        except KnobError as error:
            yield _explain_value(knob, value, error)
    elif operation == "choice" and isinstance(value, list):
        seen: set[Value] = set()
        for option in value:
            if is_draw(knob, option):
                yield "`draw` has no place under `choice`, which draws among written values"
                continue
            try:
                found = canonical(knob, option)
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

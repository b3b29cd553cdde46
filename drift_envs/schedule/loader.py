"""From a name, a path or a dictionary to a checked `Schedule`.

* `load_schedule` - reads and checks a schedule; its error names everything that is wrong
* `shipped_schedules` - the names of the schedules that come with the package
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, overload

from drift_envs.errors import ArgumentError, DeclaredKnobsError, DriftWarning, Problem, ScheduleError
from drift_envs.knobs import KnobTable
from drift_envs.schedule.files import read_mapping, read_named, shipped_schedules
from drift_envs.schedule.findings import Finding, key_path
from drift_envs.schedule.knob_rules import knob_findings
from drift_envs.schedule.limits import early_limit, limit_findings, limits_of
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.reach import combination_findings
from drift_envs.schedule.rules import drift_findings, named_drifts, schedule_findings
from drift_envs.schedule.structure import is_unknown_key, plain_data, validate_structure
from drift_envs.schedule.yaml12 import Document, Mark

__all__ = ["load_schedule", "shipped_schedules"]

Tables = KnobTable | Callable[[Mapping[str, Any]], KnobTable | None] | None
"""The knobs of an environment, or what finds them in the content of a schedule that may be wrong elsewhere."""


@overload
def load_schedule(source: None, *, table: Tables = None) -> None: ...
@overload
def load_schedule(
    source: str | os.PathLike[str] | Mapping[str, Any] | Schedule, *, table: Tables = None
) -> Schedule: ...
@overload
def load_schedule(
    source: str | os.PathLike[str] | Mapping[str, Any] | Schedule | None, *, table: Tables = None
) -> Schedule | None: ...
def load_schedule(
    source: str | os.PathLike[str] | Mapping[str, Any] | Schedule | None, *, table: Tables = None
) -> Schedule | None:
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
        checked = _check(Document(source.to_dict(), Mark(f"<{source.name}>", None)), table)
        return source.mark_checked(table) if isinstance(table, KnobTable) and checked == source else checked
    if isinstance(source, Mapping):
        document = read_mapping(source)
    elif isinstance(source, (str, os.PathLike)):
        document = read_named(source)
    else:
        raise ArgumentError(
            f"`schedule` should be a name, a path, a dictionary, a Schedule or None. Received {type(source).__name__}"
        )
    return _check(document, table)


def _check(document: Document, tables: Tables) -> Schedule:
    data, findings = plain_data(document.data)
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
    schedule, structure = validate_structure(data)
    known, early = {path for path, _ in findings}, None
    findings += [finding for finding in (*structure, *_rule_findings(data)) if finding[0] not in known]
    if table is not None:
        known = {path for path, _ in findings}
        findings += [finding for finding in knob_findings(data, table) if finding[0] not in known]
        complete = schedule or _without_unknown_keys(data, findings)
        if complete is not None and not document.problems and all(map(is_unknown_key, findings)):
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
    for path, _ in filter(is_unknown_key, findings):
        place: Any = rest
        for part in path[:-1]:
            place = place[part]
        place.pop(path[-1], None)
    return validate_structure(rest)[0]


def _rule_findings(data: Mapping[str, Any]) -> Iterator[Finding]:
    """The broken rules between the keys of a schedule and between those of each of its drifts."""
    yield from schedule_findings(data)
    drifts = data.get("drifts")
    for index, drift in enumerate(drifts if isinstance(drifts, list) else ()):
        if isinstance(drift, dict):
            for path, rule in drift_findings(drift):
                yield ("drifts", index, *path), rule


def _problems(findings: Iterable[Finding], document: Document) -> Iterator[Problem]:
    for path, rule in findings:
        place = document.mark.find(path)
        prefix = document.prefixes.get(str(path[0]), ()) if path else ()
        yield Problem(place.where, place.line, key_path((*prefix, *path)), rule)


def _sorted(problems: list[Problem], first: str) -> list[Problem]:
    # the file itself before what it extends, then by line; a stable sort keeps the rest in order
    unique = list(dict.fromkeys(problems))
    return sorted(unique, key=lambda problem: (problem.where != first, problem.where, problem.line or 0))

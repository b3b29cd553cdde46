"""From a name, a path or a dictionary to a checked `Schedule`.

* `load_schedule` - reads and checks a schedule; everything that is wrong is told at once
* `shipped_schedules` - the names of the schedules that come with the package
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, overload

from drift_envs.errors import ArgumentError, Problem, ScheduleError
from drift_envs.knobs import KnobTable
from drift_envs.schedule.explain import structure_findings
from drift_envs.schedule.files import read_mapping, read_named, shipped_schedules
from drift_envs.schedule.knob_rules import knob_findings
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.plain import key_path, plain_data
from drift_envs.schedule.reach import combination_findings
from drift_envs.schedule.rules import Finding, drift_findings, named_drifts, schedule_findings
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
            in `.yaml` or `.yml`), a dictionary, a `Schedule`, or `None` for no schedule.
        table: the knobs of the environment. With it, knob names and values are checked too, and the rules
            between knobs on every combination of values that the schedule can reach. Who doesn't know the
            environment yet hands in a function: it gets the content, in which anything may be wrong, and
            answers with the knobs, or `None`.

    Returns:
        The schedule, or `None` for `None`.

    Raises:
        ScheduleError: with everything that is wrong, in the order of the file.
        ArgumentError: if `source` is something else.

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
        document = Document(source.to_dict(), Mark(f"<{source.name}>", None))
    elif isinstance(source, Mapping):
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
    table = tables if tables is None or isinstance(tables, KnobTable) else tables(data)
    if "drifts" in data:
        data["drifts"] = named_drifts(data["drifts"])
    findings = [*findings, *_findings(data, table, {path for path, _ in findings})]
    if not findings and not document.problems and table is not None:
        findings = list(combination_findings(Schedule.model_validate(data), table))
    problems = _sorted([*document.problems, *_problems(findings, document.mark)], document.mark.where)
    if problems:
        raise ScheduleError(problems)
    return Schedule.model_validate(data)


def _findings(data: dict[str, Any], table: KnobTable | None, known: set[Any]) -> Iterator[Finding]:
    """Everything that is wrong with plain data, but for the places where something is known to be wrong."""
    found: list[Finding] = list(structure_findings(data))
    found += schedule_findings(data)
    drifts = data.get("drifts")
    for index, drift in enumerate(drifts if isinstance(drifts, list) else ()):
        if isinstance(drift, dict):
            found += [(("drifts", index, *path), rule) for path, rule in drift_findings(drift)]
    wrong = known | {path for path, _ in found}
    if table is not None:
        found += [finding for finding in knob_findings(data, table) if finding[0] not in wrong]
    yield from (finding for finding in found if finding[0] not in known)


def _problems(findings: Iterable[Finding], mark: Mark) -> Iterator[Problem]:
    for path, rule in findings:
        place = mark.find(path)
        yield Problem(place.where, place.line, key_path(path), rule)


def _sorted(problems: list[Problem], first: str) -> list[Problem]:
    # the file itself before what it extends, then by line; a stable sort keeps the rest in order
    unique = list(dict.fromkeys(problems))
    return sorted(unique, key=lambda problem: (problem.where != first, problem.where, problem.line or 0))

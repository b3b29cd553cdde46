"""The commands `validate` and `schema`.

* `validate_schedules` - every mistake in schedule files
* `print_schema` - the JSON Schema of schedule files
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drift_envs.cli.scheduled import ask_import, read_schedule
from drift_envs.entry_points import knob_table_of
from drift_envs.errors import (
    ArgumentError,
    DeclaredKnobsError,
    DriftWarning,
    ScheduleError,
    UnknownScheduleError,
)
from drift_envs.knobs import KnobTable
from drift_envs.other_packages import make_plain, module_to_import
from drift_envs.registration import IDS
from drift_envs.schedule import schedule_schema
from drift_envs.schedule.loader import check_document, limits_of
from drift_envs.schedule.model import MAX_TICK, Schedule
from drift_envs.schedule.occurrences import DriftRamp, RandomStream
from drift_envs.schedule.phases import PhaseTable
from drift_envs.schedule.yaml import Document, read_variants, split_suffix
from drift_envs.wrappers.binding import declared_knob_table

MAX_PHASES = 4
"""Phases that `validate` counts; schedules with recurring drifts have any number."""


def validate_schedules(names: Sequence[str], *, may_import: bool = False) -> bool:
    """Check schedules with their variants; print every finding to standard error.

    Args:
        names: shipped schedules or paths of files; one with a suffix is checked alone.
        may_import: whether modules that `env` names may be imported, which runs their code; without, the knobs of
            their environments are not checked.

    Returns:
        Whether all are valid.

    Raises:
        UnknownScheduleError: if there is no schedule or variant of a name.
    """
    printed: set[object] = set()  # what is wrong with a file is wrong with each of its variants
    tables = _Tables(may_import)
    is_valid = True
    for name, source in (each for given in names for each in _with_variants(given)):
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", DriftWarning)
                if isinstance(source, Document):
                    schedule = check_document(source, tables)
                else:
                    schedule = read_schedule(source, tables)
            findings: list[object] = [f"warning: {one.message}" for one in caught]
        except UnknownScheduleError:
            raise
        except ScheduleError as error:
            is_valid, findings = False, list(error.problems)
        else:
            # Not by rich, which would wrap paths and interpret brackets as markup.
            print(f"{name}: ok{_describe(schedule, may_import)}")
        for finding in findings:
            if finding not in printed:
                print(finding, file=sys.stderr)
            printed.add(finding)
    return is_valid


def _describe(schedule: Schedule, may_import: bool) -> str:
    """How many phases a valid schedule has, how far its ticks reach, and what was not checked."""
    module = None if may_import else module_to_import(schedule.env)
    streams = (RandomStream(schedule.seed or 0, index) for index in range(len(schedule.drifts)))
    phases = PhaseTable([DriftRamp(drift, stream) for drift, stream in zip(schedule.drifts, streams, strict=True)])
    if schedule.env is None:
        note = "; it names no `env`, so that its knobs were not checked"
    elif module is not None:
        note = f"; its knobs were not checked: {ask_import(module)}"
    else:
        count = len(phases.first(MAX_PHASES + 1))
        note = f", {count if count <= MAX_PHASES else 'many'} phase{'s' * (count > 1)}"
    limits = limits_of(schedule.drifts, phases)
    note += f", found for ticks up to {limits.phase}" if limits.phase < MAX_TICK else ""
    return note + (f"; random drifts: ticks up to {limits.value}" if limits.value < MAX_TICK else "")


def _with_variants(name: str) -> list[tuple[str, str | Document]]:
    """The schedule with its variants, in the order of the file, which is read once."""
    if split_suffix(f"{name}:any")[1] is None:
        return [(name, name)]  # a suffix already, or a file whose name has another ending, where a suffix cannot stand
    try:
        return list(read_variants(Path(name) if Path(name).is_file() else name))
    except ScheduleError:  # which is reported when it is checked
        return [(name, name)]


class _Tables:
    """The knobs of the environment that a schedule names: structure and knobs are checked in one pass.

    Variants of a file have one environment, which is made once.

    Args:
        may_import: whether modules that `env` names may be imported.
    """

    def __init__(self, may_import: bool) -> None:
        self._may_import = may_import
        self._known: dict[str, KnobTable | None] = {}

    def __call__(self, content: Mapping[str, Any]) -> KnobTable | None:
        """The knobs for the content of a schedule; `None` if they cannot be told from it."""
        env_id = content.get("env")
        if not isinstance(env_id, str) or (not self._may_import and module_to_import(env_id) is not None):
            return None
        key = json.dumps([env_id, content.get("knobs")], sort_keys=True)
        if key not in self._known:
            self._known[key] = self._make(env_id, content)
        return self._known[key]

    def _make(self, env_id: str, content: Mapping[str, Any]) -> KnobTable | None:
        if env_id in IDS and "knobs" not in content:
            return knob_table_of(env_id)
        try:
            env = make_plain(env_id)
        except ArgumentError as error:
            rule = str(error).replace(f"no environment `{env_id}`", "no such environment", 1)
            raise DeclaredKnobsError([(("env",), rule)]) from None
        try:
            return declared_knob_table(env, content)
        finally:
            env.close()


def print_schema() -> None:
    """Print the JSON Schema of schedule files."""
    print(json.dumps(schedule_schema(), indent=2))

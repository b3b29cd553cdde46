"""The commands `validate` and `schema`.

* `validate_schedules` - every mistake in schedule files
* `print_schema` - the JSON Schema of schedule files
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

from drift_envs.cli.scheduled import open_schedule, read_schedule
from drift_envs.errors import DeclaredKnobsError, Problem, ScheduleError, UnknownScheduleError
from drift_envs.knobs import KnobTable
from drift_envs.registration import IDS, knob_table_of
from drift_envs.schedule import schedule_schema
from drift_envs.schedule.files import split_suffix, variants_of
from drift_envs.schedule.model import MAX_TICK
from drift_envs.schedule.reach import limits_of
from drift_envs.wrappers.binding import declared_knob_table

MAX_PHASES = 4
"""Phases that `validate` counts; schedules with recurring drifts have any number."""


def validate_schedules(names: Sequence[str]) -> bool:
    """Check schedules with their variants; print every finding to standard error.

    Args:
        names: shipped schedules or paths of files; one with a suffix is checked alone.

    Returns:
        Whether all are valid.

    Raises:
        UnknownScheduleError: if there is no schedule or variant of a name.
    """
    printed: set[Problem] = set()  # what is wrong with a file is wrong with each of its variants
    for name in (each for given in names for each in _with_variants(given)):
        try:
            schedule = read_schedule(name, _table_for)
            if schedule.env is None:
                note = "; it names no `env`, so that its knobs were not checked"
            else:
                timeline = open_schedule(schedule).timeline
                count = len(timeline.first_phases(MAX_PHASES + 1))
                note = f", {count if count <= MAX_PHASES else 'many'} phase{'s' * (count > 1)}"
            limits = limits_of(schedule.drifts)
            note += f", found for ticks up to {limits.phase}" if limits.phase < MAX_TICK else ""
            note += f"; random drifts: ticks up to {limits.value}" if limits.value < MAX_TICK else ""
        except UnknownScheduleError:
            raise
        except ScheduleError as error:
            for problem in error.problems:
                if problem not in printed:
                    print(problem, file=sys.stderr)
                printed.add(problem)
        else:
            # Not by rich, which would wrap paths and interpret brackets as markup.
            print(f"{name}: ok{note}")
    return not printed


def _with_variants(name: str) -> list[str]:
    """The name, and those of its variants, in the order of the file."""
    if split_suffix(f"{name}:any")[1] is None:
        return [name]  # a suffix already, or a file whose name has another ending, where a suffix cannot stand
    try:
        return [name, *(f"{name}:{suffix}" for suffix in variants_of(name))]
    except ScheduleError:  # which is reported when it is checked
        return [name]


def _table_for(content: Mapping[str, Any]) -> KnobTable | None:
    """The knobs of the environment that a schedule names: structure and knobs are checked in one pass."""
    env_id = content.get("env")
    if not isinstance(env_id, str):
        return None
    if env_id in IDS and "knobs" not in content:
        return knob_table_of(env_id)
    try:
        env = gym.make(env_id)
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise DeclaredKnobsError([(("env",), f"there is no such environment: {error}")]) from None
    try:
        return declared_knob_table(env, content)
    finally:
        env.close()


def print_schema() -> None:
    """Print the JSON Schema of schedule files."""
    print(json.dumps(schedule_schema(), indent=2))

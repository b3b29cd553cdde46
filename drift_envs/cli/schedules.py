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

from drift_envs.cli.worlds import open_schedule, read_schedule
from drift_envs.errors import DeclaredKnobsError, ScheduleError
from drift_envs.knobs import KnobTable
from drift_envs.registration import IDS, knob_table_of
from drift_envs.schedule import schedule_schema
from drift_envs.wrappers.binding import declared_knob_table

MAX_PHASES = 4
"""Phases that `validate` counts; schedules with recurring drifts have any number."""


def validate_schedules(names: Sequence[str]) -> bool:
    """Check schedules; print every finding to standard error.

    Args:
        names: shipped schedules or paths of files.

    Returns:
        Whether all are valid.
    """
    is_valid = True
    for name in names:
        try:
            schedule = read_schedule(name, _table_for)
            if schedule.env is None:
                note = "; it names no `env`, so that its knobs were not checked"
            else:
                count = len(open_schedule(name).phases(MAX_PHASES + 1))
                note = f", {count if count <= MAX_PHASES else 'many'} phase{'s' * (count > 1)}"
        except ScheduleError as error:
            is_valid = False
            for problem in error.problems:
                print(problem, file=sys.stderr)
        else:
            # Not by rich, which would wrap paths and interpret brackets as markup.
            print(f"{name}: ok{note}")
    return is_valid


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

"""The commands `validate` and `schema`.

* `validate_schedules` - every mistake in schedule files
* `print_schema` - the JSON Schema of schedule files
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from drift_envs.cli.worlds import open_schedule, read_schedule, table_of
from drift_envs.errors import ScheduleError
from drift_envs.knobs import KnobTable
from drift_envs.registration import IDS, knob_table_of
from drift_envs.schedule import schedule_schema

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
            schedule = read_schedule(name, _own_table)
            if schedule.env is None:
                note = "; it names no `env`, so that its knobs were not checked"
            else:
                read_schedule(name, table_of(schedule.env, schedule))
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


def _own_table(content: Mapping[str, Any]) -> KnobTable | None:
    """The knobs of the environment of a schedule, if it is one of ours: structure and knobs are checked in one pass."""
    env = content.get("env")
    return knob_table_of(env) if isinstance(env, str) and env in IDS and "knobs" not in content else None


def print_schema() -> None:
    """Print the JSON Schema of schedule files."""
    print(json.dumps(schedule_schema(), indent=2))

"""The commands `list`, `validate` and `schema`.

* `print_list` - environments with their knobs, schedules with their phases
* `validate_schedules` - every mistake in schedule files
* `print_schema` - the JSON Schema of schedule files
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_envs.cli.worlds import open_schedule, read_schedule, table_of
from drift_envs.errors import ScheduleError
from drift_envs.knobs import KnobTable
from drift_envs.registration import IDS, knob_table_of
from drift_envs.schedule import NEVER, load_schedule, schedule_schema, shipped_schedules
from drift_envs.wrappers.binding import find_tunable

MOST_PHASES = 4
"""Phases of a schedule that `list` names."""


def print_list(console: Console, env_id: str | None = None) -> None:
    """Print the environments with their knobs, and the shipped schedules with their phases.

    Args:
        console: where to print.
        env_id: the only environment to list; `None` for all.
    """
    chosen = [env_id] if env_id else list(IDS)
    environments = Table(title="Environments", title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("id", "steps", "default schedule", "knobs"):
        environments.add_column(heading, justify="right" if heading == "steps" else "left", no_wrap=heading == "id")
    everywhere: list[str] = []
    for each in chosen:
        entry = IDS[each]
        own = find_tunable(entry.base()).knobs
        everywhere += [name for name in knob_table_of(each) if name not in own]
        environments.add_row(each, str(entry.limit), entry.schedule, ", ".join(own))
    console.print(environments)
    console.print(Text(f"knobs that need no attribute: {', '.join(dict.fromkeys(everywhere))}", style="dim"))
    console.print()
    schedules = Table(title="Schedules", title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    schedules.add_column("name", no_wrap=True)
    schedules.add_column("phases, with the tick of each")
    schedules.add_column("what drifts")
    for name in shipped_schedules():
        schedule = load_schedule(name)
        if schedule is None or schedule.env not in chosen:
            continue
        phases = open_schedule(name).phases(MOST_PHASES + 1)
        shown = [f"{phase.id} {phase.start}" for phase in phases[:MOST_PHASES]]
        goes_on = len(phases) > MOST_PHASES or phases[-1].stop != NEVER
        about = Text(schedule.description)
        if schedule.control:
            about.append(" (control)", style="dim")
        schedules.add_row(name, ", ".join(shown) + (", ..." if goes_on else ""), about)
    console.print(schedules)


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
                count = len(open_schedule(name).phases(MOST_PHASES + 1))
                note = f", {count if count <= MOST_PHASES else 'many'} phase{'s' * (count > 1)}"
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

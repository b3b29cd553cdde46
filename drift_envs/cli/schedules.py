"""The commands `list`, `validate` and `schema`.

* `add_list` - environments with their knobs, schedules with their phases
* `add_validate` - everything that is wrong with schedule files
* `add_schema` - the JSON Schema of the language
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_envs.cli.worlds import Commands, open_plan, read_schedule, table_of
from drift_envs.errors import ScheduleError
from drift_envs.knobs import KnobTable
from drift_envs.registration import IDS, knob_table_of
from drift_envs.schedule import NEVER, load_schedule, schedule_schema, shipped_schedules
from drift_envs.wrappers.binding import find_tunable

MOST_PHASES = 4
"""Phases that a list names; of a schedule that never ends it shows the first ones."""


def add_list(commands: Commands) -> argparse.ArgumentParser:
    """Add the command `list`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "list",
        help="environments with their knobs, schedules with their phases",
        description="List the environments with their knobs, and the schedules that come with the package.",
        epilog="example: drift-envs list --env DriftFrozenLake-v0",
    )
    parser.add_argument("--env", choices=IDS, help="only this environment and its schedules")
    parser.set_defaults(run=_list)
    return parser


def add_validate(commands: Commands) -> argparse.ArgumentParser:
    """Add the command `validate`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "validate",
        help="say everything that is wrong with schedule files",
        description="Check schedule files, knobs included, and say everything that is wrong with file, line and key. "
        "The exit status is 1 if anything is.",
        epilog="example: drift-envs validate my_schedule.yaml frozen_lake/tides",
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="the path of a file, or the name of a shipped schedule"
    )
    parser.set_defaults(run=_validate)
    return parser


def add_schema(commands: Commands) -> argparse.ArgumentParser:
    """Add the command `schema`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "schema",
        help="print the JSON Schema of schedule files",
        description="Print the JSON Schema of schedule files, which editors use to complete and to check.",
        epilog="example: drift-envs schema > schedule.schema.json",
    )
    parser.set_defaults(run=_schema)
    return parser


def _list(options: argparse.Namespace, console: Console) -> int:
    chosen = [options.env] if options.env else list(IDS)
    environments = Table(title="Environments", title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("id", "steps", "default schedule", "knobs"):
        environments.add_column(heading, justify="right" if heading == "steps" else "left", no_wrap=heading == "id")
    everywhere: list[str] = []
    for env_id in chosen:
        entry = IDS[env_id]
        own = find_tunable(entry.base()).knobs
        everywhere += [name for name in knob_table_of(env_id) if name not in own]
        environments.add_row(env_id, str(entry.limit), entry.schedule, ", ".join(own))
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
        plan = open_plan(name)
        phases = plan.phases(MOST_PHASES + 1)
        shown = [f"{phase.id} {phase.start}" for phase in phases[:MOST_PHASES]]
        goes_on = len(phases) > MOST_PHASES or phases[-1].stop != NEVER
        about = Text(schedule.description)
        if schedule.control:
            about.append(" (control)", style="dim")
        schedules.add_row(name, ", ".join(shown) + (", ..." if goes_on else ""), about)
    console.print(schedules)
    return 0


def _validate(options: argparse.Namespace, console: Console) -> int:
    failed = False
    for name in options.files:
        try:
            schedule = read_schedule(name, _own_table)
            if schedule.env is None:
                note = "; it names no `env`, so that its knobs were not checked"
            else:
                read_schedule(name, table_of(schedule.env, schedule))
                count = len(open_plan(name).phases(MOST_PHASES + 1))
                note = f", {count if count <= MOST_PHASES else 'many'} phase{'s' * (count > 1)}"
        except ScheduleError as error:
            failed = True
            for problem in error.problems:
                print(problem, file=sys.stderr)
        else:
            # Paths are printed as they are: rich would wrap them and take brackets for markup.
            print(f"{name}: ok{note}")
    return 1 if failed else 0


def _own_table(content: Mapping[str, Any]) -> KnobTable | None:
    """The knobs of the environment that a schedule names, if it is one of ours: then all mistakes are told at once."""
    env = content.get("env")
    return knob_table_of(env) if isinstance(env, str) and env in IDS and "knobs" not in content else None


def _schema(options: argparse.Namespace, console: Console) -> int:
    print(json.dumps(schedule_schema(), indent=2))
    return 0

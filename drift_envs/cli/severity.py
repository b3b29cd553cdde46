"""The command `severity`: how severe and how visible drifts are.

* `MeasuredDrift`, `measure_schedules` - the figures
* `print_severities`, `write_severities` - in the terminal, and as CSV
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from drift_envs.cli.scheduled import read_schedule, table_of
from drift_envs.errors import ArgumentError
from drift_envs.oracle import measure_drifts


class MeasuredDrift(NamedTuple):
    """A drift of a schedule with its figures, which are shares from 0 to 1.

    Args:
        schedule: the schedule's name.
        drift: the phase that it begins.
        severity: the share of the transition table that changes.
        visibility: the share of optimal ways that meet a change.
        loss: the share of the new optimum that formerly optimal policies miss.
    """

    schedule: str
    drift: str
    severity: float
    visibility: float
    loss: float


def measure_schedules(names: Sequence[str], seed: int) -> list[MeasuredDrift]:
    """Measure the first two drifts of each schedule.

    Args:
        names: shipped schedules or paths of files.
        seed: the seed of the instances.

    Raises:
        NoOracleError: if there is no oracle for a schedule.
    """
    rows = []
    for name in names:
        schedule = read_schedule(name, None)
        if schedule.env is not None:
            schedule = read_schedule(name, table_of(schedule.env, schedule, may_import=True))
        for one in measure_drifts(schedule, seed):
            rows.append(MeasuredDrift(schedule.name, one.phase, one.severity, one.visibility, one.loss))
    return rows


def print_severities(console: Console, rows: Sequence[MeasuredDrift]) -> None:
    """Print a line for each drift."""
    table = Table(*MeasuredDrift._fields[:2], box=None, pad_edge=False)
    for head in MeasuredDrift._fields[2:]:
        table.add_column(head, justify="right")
    for schedule, drift, *figures in rows:
        table.add_row(schedule, drift, *(f"{figure:.1%}" for figure in figures))
    console.print(table)


def write_severities(rows: Sequence[MeasuredDrift], path: Path) -> None:
    """Write the figures as CSV.

    Raises:
        ArgumentError: if the file cannot be written.
    """
    lines = [(schedule, drift, *(f"{one:.6g}" for one in figures)) for schedule, drift, *figures in rows]
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([MeasuredDrift._fields, *lines])
    except OSError as error:
        raise ArgumentError(f"`--out`: {path} cannot be written: {error.strerror}") from error

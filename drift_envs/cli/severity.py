"""The command `severity`: how severe and how visible drifts are.

* `print_severities` - the command
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from drift_envs.cli.scheduled import read_schedule, table_of
from drift_envs.errors import ArgumentError
from drift_envs.oracle import measure_drifts

HEADS = ("schedule", "drift", "severity", "visibility", "loss")


def print_severities(console: Console, names: Sequence[str], seed: int, out: Path | None) -> None:
    """Print a line for each of the first two drifts of each schedule.

    Args:
        console: where to print.
        names: shipped schedules or paths of files.
        seed: the seed of the instances.
        out: a CSV file with the same figures, or `None`.

    Raises:
        ArgumentError: if the file cannot be written.
        NoOracleError: if there is no oracle for a schedule.
    """
    table = Table(*HEADS[:2], box=None, pad_edge=False)
    for head in HEADS[2:]:
        table.add_column(head, justify="right")
    rows: list[tuple[str, ...]] = []
    for name in names:
        schedule = read_schedule(name, None)
        if schedule.env is not None:
            schedule = read_schedule(name, table_of(schedule.env, schedule))
        for one in measure_drifts(schedule, seed):
            figures = (one.severity, one.visibility, one.loss)
            rows.append((schedule.name, one.phase, *(f"{figure:.6g}" for figure in figures)))
            table.add_row(schedule.name, one.phase, *(f"{figure:.1%}" for figure in figures))
    console.print(table)
    if out is not None:
        try:
            with out.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([HEADS, *rows])
        except OSError as error:
            raise ArgumentError(f"`--out`: {out} cannot be written: {error.strerror}") from error

"""The option `--dry-run` of `drift-agents run` without language models: how long an experiment plays.

* `PlayingTime` - cells, episodes and processor time of the schedules of one file
* `measure` - plays one cell of every agent, and times it
* `print_playing_time` - a table with minutes
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console

from drift_agents.analysis.table import Table, print_table
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.episode import play
from drift_agents.experiment.plan import Cell, plan_cells
from drift_agents.experiment.workers import count_cores
from drift_envs.schedule.files import split_suffix


class PlayingTime(NamedTuple):
    """What the schedules of one file would take.

    Args:
        schedule: the file's name; in a sweep the schedule with the swept value.
        cells: how many.
        episodes: of all these cells.
        seconds: processor time of all these cells.
    """

    schedule: str
    cells: int
    episodes: int
    seconds: float


def measure(experiment: Experiment) -> list[PlayingTime]:
    """Play one cell of every agent and reference on one schedule of each file; the lines are thrown away.

    Args:
        experiment: an experiment without language models.

    Raises:
        DriftAgentsError: if a part cannot be made.
    """
    files: dict[str, dict[tuple[object, ...], list[Cell]]] = {}
    for cell in plan_cells(experiment):
        file = split_suffix(cell.schedule)[0] if cell.change is None else cell.place
        player = (cell.labels, cell.decision.labels, cell.reference)
        files.setdefault(file, {}).setdefault(player, []).append(cell)
    return [_measure_file(experiment, file, list(players.values())) for file, players in files.items()]


def _measure_file(experiment: Experiment, file: str, players: Sequence[Sequence[Cell]]) -> PlayingTime:
    total = PlayingTime(file, 0, 0, 0.0)
    _play(experiment, players[0][0])  # modules, catalogues and tables, which a process loads once
    for cells in players:
        begin = _processor_time()
        episodes = _play(experiment, cells[len(cells) // 2])
        total = PlayingTime(
            file,
            total.cells + len(cells),
            total.episodes + episodes * len(cells),
            total.seconds + (_processor_time() - begin) * len(cells),
        )
    return total


def _play(experiment: Experiment, cell: Cell) -> int:
    return sum(1 for _ in play(cell, experiment.settings_of(cell.schedule)))


def _processor_time() -> float:
    """Seconds of this process and of those that it has waited for: agents can play in a process of their own."""
    return sum(os.times()[:4])


def print_playing_time(experiment: Experiment, jobs: int | None, console: Console) -> None:
    """Print cells, episodes and minutes, before an experiment is played.

    Args:
        experiment: an experiment without language models.
        jobs: how many cells are played at the same time; `None` for one a core.
        console: where the table is printed.
    """
    rows = measure(experiment)
    table = Table(experiment.name, ("schedule", "cells", "episodes", "CPU minutes"))
    all_rows = PlayingTime("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))
    for row in (*rows, all_rows):
        table.add(row.schedule, f"{row.cells:,}", f"{row.episodes:,}", f"{row.seconds / 60:.1f}")
    print_table(console, table)
    at_once = min(jobs or count_cores(), count_cores(), all_rows.cells)
    minutes = all_rows.seconds / 60 / at_once
    console.print(f"minutes  {minutes:.1f} on {at_once} {'core' if at_once == 1 else 'cores'} that do nothing else")
    console.print(
        "One cell of each agent and reference was played for each schedule file, and its lines thrown away; other "
        "cells can take more or less. Nothing was written."
    )

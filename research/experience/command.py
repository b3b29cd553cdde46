"""Experience following and misaligned replay, over the cells of an experiment.

* `watch_cell` - play a cell and keep its executions
* `measure` - what they say, as a table
* `run` - the command `python -m research experience deletion --seeds 3`

Cells are played once more for it, since a run's lines do not say what was recalled; on seeds of their
own, from 0, so that the instances that a study is played on stay unseen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from drift_agents.analysis.table import MISSING, Table, to_markdown
from drift_agents.experiment.config import ScheduleSettings
from drift_agents.experiment.episode import CellSetup, play
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.plan import Cell, plan_cells
from drift_agents.matching.base import Exact
from drift_agents.types import Episode

from research.experience.curves import draw_following
from research.experience.following import (
    Execution,
    Pair,
    correlation,
    execution_of,
    follow_executions,
    follow_steps,
    split_by_fate,
)

HEADS = (
    "schedule, memory",
    "executions\nfollowed",
    "input\nalike",
    "output\nalike",
    "correlation",
    "of\nsteps",
    "deleted: in /\nout / n",
    "retained: in /\nout / n",
)


def watch_cell(cell: Cell, settings: ScheduleSettings) -> list[Execution]:
    """Play a cell and keep its executions.

    Args:
        cell: the cell.
        settings: what the experiment says about its schedule.
    """
    executions: list[Execution] = []

    def note(setup: CellSetup, index: int, episode: Episode) -> None:
        key = getattr(setup.agent, "matching", Exact()).state_key
        executions.append(execution_of(index, episode, getattr(setup.memory, "dropped", ()), key))

    for _ in play(cell, settings, note):
        pass
    return executions


def measure(runs: Mapping[str, Sequence[Sequence[Execution]]]) -> Table:
    """What the executions say; instances are put together.

    Args:
        runs: by name of who played where, the executions of each instance.
    """
    table = Table("Experience following, and which executions were deleted later", HEADS)
    for name, instances in runs.items():
        pairs = [pair for one in instances for pair in follow_executions(one)]
        by_step = [pair for one in instances for pair in follow_steps(one)]
        deleted: list[Pair] = []
        retained: list[Pair] = []
        for one in instances:
            gone, kept = split_by_fate(one, follow_executions(one, by="output"))
            deleted += gone
            retained += kept
        cells = [str(len(pairs)), *_means(pairs), _show(correlation(pairs)), _show(correlation(by_step))]
        table.add(name, *cells, _group(deleted), _group(retained))
    return table


def _means(pairs: Sequence[Pair]) -> tuple[str, str]:
    if not pairs:
        return MISSING, MISSING
    return tuple(_show(sum(values) / len(pairs)) for values in list(zip(*pairs, strict=True))[2:4])  # type: ignore[return-value]


def _group(pairs: Sequence[Pair]) -> str:
    return f"{' / '.join(_means(pairs))} / {len(pairs)}" if pairs else MISSING


def _show(value: float) -> str:
    return MISSING if math.isnan(value) else f"{value:.2f}"


def run(name: str, seeds: int, plot: Path | None = None) -> None:
    """Play the cells of an experiment and print the measures.

    Args:
        name: a shipped experiment, or the path of a file.
        seeds: number of instances, from seed 0.
        plot: the folder for plots of the cumulative curves; `None` draws none.

    Raises:
        DriftAgentsError: if the experiment cannot be played.
    """
    experiment = load_experiment(name, {"seeds": list(range(seeds))})
    played: dict[str, dict[str, list[list[Execution]]]] = {}
    for cell in plan_cells(experiment):
        if cell.reference is None:
            verifier = "" if cell.labels[1] == "none" else f" + {cell.labels[1]}"
            executions = watch_cell(cell, experiment.settings_of(cell.schedule))
            who = f"{cell.labels[0]}{verifier}"
            played.setdefault(cell.place, {}).setdefault(who, []).append(executions)
    if plot is not None:
        for place, players in played.items():
            draw_following(place, players, plot)
    runs = {f"{place}, {who}": found for place, players in played.items() for who, found in players.items()}
    print(to_markdown(measure(runs)))

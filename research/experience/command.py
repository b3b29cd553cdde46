"""Experience following and misaligned replay, over the cells of an experiment.

* `WatchedCell`, `watch_cell` - play a cell and keep its executions, those that memory began with too
* `measure` - what they say, as a table
* `run` - the command `python -m research experience deletion --seeds 3`

Cells are played once more for it, since a run's lines do not say what was recalled; on seeds of their
own, from 0, so that the instances that a study is played on stay unseen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from drift_agents.analysis.rows import estimate
from drift_agents.analysis.table import MISSING, Table, format_estimate, to_markdown
from drift_agents.envs.matching import Exact
from drift_agents.experiment.cell_environment import Demonstrator
from drift_agents.experiment.config import ScheduleSettings
from drift_agents.experiment.episode import CellSetup, play
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.plan import Cell, plan_cells
from drift_agents.types import Episode

from research.experience.curves import draw_following
from research.experience.following import (
    Execution,
    ExecutionStep,
    Pair,
    correlation,
    execution_of,
    follow_executions,
    follow_steps,
    split_by_fate,
)

HEADS = (
    "schedule, memory",
    "success",
    "records\nat the end",
    "executions\nfollowed",
    "input\nalike",
    "output\nalike",
    "correlation",
    "of\nsteps",
    "deleted: in /\nout / n",
    "retained: in /\nout / n",
    "deleted minus\nretained, out",
)


class WatchedCell(NamedTuple):
    """What was seen of a cell.

    Args:
        executions: all of it, in order; those that memory began with have negative numbers.
        success: of its episodes.
        size: records in memory at the end.
    """

    executions: tuple[Execution, ...]
    success: tuple[bool, ...]
    size: int


def watch_cell(cell: Cell, settings: ScheduleSettings) -> WatchedCell:
    """Play a cell and keep its executions.

    An execution is retrieved where the memory's own rule counts it: when a record is recalled in the state that it
    is about, or, with `counts: shown`, in any state, as the paper's query-execution pairs are.

    Args:
        settings: what the experiment says about its schedule.
    """
    executions: list[Execution] = []

    def note(setup: CellSetup, index: int, episode: Episode) -> None:
        key = getattr(setup.agent, "matching", Exact()).state_key
        if getattr(setup.memory, "counts", "here") == "shown":
            key = _anywhere
        if not executions:
            executions.extend(_began_with(cell, setup, key))
        executions.append(execution_of(index, episode, getattr(setup.memory, "dropped", ()), key))

    rows = list(play(cell, settings, note))
    return WatchedCell(tuple(executions), tuple(bool(row["success"]) for row in rows), rows[-1]["memory_size"])


def _anywhere(_: str) -> Hashable:
    """One place for all states."""
    return None


def _began_with(cell: Cell, setup: CellSetup, key: Callable[[str], Hashable]) -> Iterator[Execution]:
    """The executions that were in memory before the first episode."""
    records = [record for record in setup.memory.records() if record.now.episode < 0]
    if records:
        shown = Demonstrator(setup.env, setup.schedule, cell.seed).show(cell.memory.options["initial"])
        for number, steps in groupby(records, lambda record: record.now.episode):
            about = shown[number]
            path = tuple(ExecutionStep(one.state, one.action, one.id, (), key(one.state)) for one in steps)
            yield Execution(number, about.task, about.score, path)


def measure(runs: Mapping[str, Sequence[WatchedCell]]) -> Table:
    """What the executions say: success and correlations with intervals over instances, the rest put together.

    Args:
        runs: by name of who played where, what was seen of each instance.
    """
    table = Table("Experience following, and which executions were deleted later", HEADS)
    for name, instances in runs.items():
        following = [follow_executions(one.executions) for one in instances]
        by_step = [follow_steps(one.executions) for one in instances]
        fates = [split_by_fate(one.executions, follow_executions(one.executions, by="output")) for one in instances]
        pairs = [pair for one in following for pair in one]
        table.add(
            name,
            format_estimate(estimate([100 * sum(one.success) / len(one.success) for one in instances])),
            format_estimate(estimate([one.size for one in instances])),
            str(len(pairs)),
            *_means(pairs),
            _correlation(following),
            _correlation(by_step),
            *(_group([pair for one in fates for pair in one[side]]) for side in (0, 1)),
            _difference(fates),
        )
    return table


def _correlation(instances: Sequence[Sequence[Pair]]) -> str:
    """The mean correlation within instances; missing where a similarity never changes."""
    found = estimate([correlation(pairs) for pairs in instances])
    return format_estimate(found, 2) if found.n else MISSING


def _difference(instances: Sequence[tuple[Sequence[Pair], Sequence[Pair]]]) -> str:
    """How much less alike the outputs of deleted executions are; over instances that have both kinds."""
    means = [[[pair.output for pair in pairs] for pairs in one] for one in instances if all(one)]
    found = estimate([fmean(deleted) - fmean(retained) for deleted, retained in means])
    return format_estimate(found, 2) if found.n else MISSING


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
    played: dict[str, dict[str, list[WatchedCell]]] = {}
    for cell in plan_cells(experiment):
        if cell.reference is None:
            verifier = "" if cell.labels[1] == "none" else f" + {cell.labels[1]}"
            watched = watch_cell(cell, experiment.settings_of(cell.schedule))
            played.setdefault(cell.place, {}).setdefault(f"{cell.labels[0]}{verifier}", []).append(watched)
    if plot is not None:
        for place, players in played.items():
            draw_following(place, {who: [one.executions for one in found] for who, found in players.items()}, plot)
    runs = {f"{place}, {who}": found for place, players in played.items() for who, found in players.items()}
    print(to_markdown(measure(runs)))

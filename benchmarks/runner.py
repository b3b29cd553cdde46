"""The runner's own cost per episode, by the number of seeds: files of cells and the merge.

* `measure` - seconds of one run, and how many of them its cells took
* `run_benchmark` - prints a table

What cells take (making the environment and the agent, playing) is timed within the same run and taken off.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from drift_agents.experiment import runner
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.plan import Cell

SEEDS = (10, 100, 1_000)
PLAYED = {
    "name": "runner",
    "schedules": ["frozen_lake/explicit"],
    "agents": {"memory": "none", "policy": "random"},
    "rounds": 5,
}


class RunCost(NamedTuple):
    """What one run took.

    Args:
        episodes: how many were played.
        total: seconds of the run.
        cells: seconds of these that its cells took.
        planning: seconds of these from the call to the first cell.
    """

    episodes: int
    total: float
    cells: float
    planning: float

    @property
    def own(self) -> float:
        """The runner's own microseconds per episode."""
        return 1e6 * (self.total - self.cells) / self.episodes


def measure(seeds: int, folder: Path) -> RunCost:
    """Play an experiment of one agent in this process.

    Args:
        seeds: the number of cells.
        folder: where to.
    """
    experiment = parse_experiment({**PLAYED, "seeds": seeds})
    play = runner.__dict__["play"]
    spent, episodes, first = 0.0, 0, 0.0

    def timed(cell: Cell, *rest: Any, **options: Any) -> Iterator[dict[str, Any]]:
        nonlocal spent, episodes, first
        first = first or time.perf_counter()
        rows = play(cell, *rest, **options)
        while True:
            begin = time.perf_counter()
            row = next(rows, None)
            spent += time.perf_counter() - begin
            if row is None:
                return
            episodes += 1
            yield row

    begin = time.perf_counter()
    with patch.object(runner, "play", timed):
        runner.run_experiment(experiment, folder)
    return RunCost(episodes, time.perf_counter() - begin, spent, first - begin)


def run_benchmark(seeds: Sequence[int] = SEEDS) -> None:
    """Print the runner's own cost for each number of seeds.

    Args:
        seeds: the numbers of seeds.
    """
    for count in seeds:
        with tempfile.TemporaryDirectory() as scratch:
            cost = measure(count, Path(scratch) / "run")
        print(
            f"{count:>6} seeds {cost.episodes:>7} episodes {cost.total:>7.1f} s, of these cells {cost.cells:>7.1f} s; "
            f"own {cost.own:>5.0f} microseconds an episode; {cost.planning:.2f} s before the first cell",
            flush=True,
        )


if __name__ == "__main__":
    run_benchmark([int(text) for text in sys.argv[1:]] or SEEDS)

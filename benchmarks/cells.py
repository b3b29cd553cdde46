"""Processor time of one cell: an environment of an experiment played by one agent.

* `measure` - seconds of processor time of each of some cells
* `run_benchmark` - prints a table

The first cell of every place is played once before, so that imports and files do not count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from drift_agents.experiment.episode import play
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.plan import plan_cells

SEEDS = 5
PLACES: dict[str, dict[str, Any]] = {
    "frozen_lake/explicit:family": {"rounds": 20},
    "webshop/explicit:held-out": {"rounds": 20},
    "house/locked": {"rounds": 20},
    "house/keys": {"rounds": 20},
}
AGENTS = {
    "memory": {"vanilla": {"order": "newest"}},
    "verifier": ["none", "overwrite", "glove"],
    "policy": {"planner": {"conflict": "frequency"}},
}


def measure(place: str, seeds: int) -> Iterator[tuple[str, list[float], int]]:
    """Play the cells of a place in this process.

    Args:
        place: the schedule, one of `PLACES`.
        seeds: the number of cells of each verifier.

    Yields:
        The verifier, the seconds of its cells, and their episodes.
    """
    experiment = parse_experiment(
        {"name": "cells", "schedules": [place], "agents": AGENTS, "seeds": seeds, **PLACES[place]}
    )
    cells, settings = plan_cells(experiment), experiment.settings_of(place)
    list(play(cells[0], settings))
    for verifier in dict.fromkeys(cell.labels[1] for cell in cells):
        seconds, episodes = [], 0
        for cell in cells:
            if cell.labels[1] == verifier:
                begin = time.process_time()
                episodes += len(list(play(cell, settings)))
                seconds.append(time.process_time() - begin)
        yield verifier, seconds, episodes


def run_benchmark(seeds: int = SEEDS, places: Sequence[str] = tuple(PLACES)) -> None:
    """Print the median of the cells of each place and verifier.

    Args:
        seeds: the number of cells of each.
        places: the schedules.
    """
    for place in places:
        for verifier, seconds, episodes in measure(place, seeds):
            print(
                f"{place:<28} {verifier:<10} median {median(seconds):.3f} s of processor time a cell, "
                f"from {min(seconds):.3f} to {max(seconds):.3f}; {episodes // seeds} episodes each",
                flush=True,
            )


if __name__ == "__main__":
    run_benchmark(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS, sys.argv[2:] or tuple(PLACES))

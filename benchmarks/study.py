"""What the offline study of the paper's tables 1 and 2 costs.

`python -m benchmarks.study` plays one instance of every kind of cell of the experiments
`glove-explicit` and `glove-implicit` in this process, one after the other, and prints the CPU seconds
of each kind and what `INSTANCES` of them come to on `CORES` cores. Aim: at most half an hour, better
twenty minutes. CPU seconds, not the clock on the wall, since other work on the machine counts too.

The seeds are development seeds, from 0 on; the experiments' own are held out. The last column is a
digest of the rows, so that a change that should make cells faster and nothing else can be checked:
the digests of two runs are equal when all rows are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Iterator

from drift_agents.experiment.episode import play
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.plan import Cell, plan_cells

EXPERIMENTS = ("glove-explicit", "glove-implicit")
INSTANCES = 30
CORES = 2
AIMS = (30, 20)
"""Minutes: at most, and better."""

Kind = tuple[str, str, str, str]
"""Schedule, memory, verifier and policy."""


def measure(name: str, instances: int, only: str) -> Iterator[tuple[Kind, float, str]]:
    """Play the cells of an experiment; yields each kind, its CPU seconds, a digest of its rows."""
    experiment = load_experiment(name, {"seeds": {"first": 0, "count": instances}})
    kinds: dict[Kind, list[Cell]] = {}
    for cell in plan_cells(experiment):
        kinds.setdefault((cell.schedule, *cell.labels), []).append(cell)
    for kind, cells in kinds.items():
        if only not in " ".join(kind):
            continue
        digest = hashlib.sha256()
        start = time.process_time()
        for cell in cells:
            for row in play(cell, experiment.settings_of(cell.schedule)):
                digest.update(json.dumps(row, sort_keys=True).encode())
        yield kind, (time.process_time() - start) / len(cells), digest.hexdigest()[:12]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog="example: python -m benchmarks.study --only mountain_car"
    )
    parser.add_argument("--instances", type=int, default=1, help="seeds of each kind (default: %(default)s)")
    parser.add_argument("--only", default="", help="only kinds whose line holds this, as in 'reversed memory_bank'")
    arguments = parser.parse_args()
    by_schedule: dict[str, float] = {}
    print(f"{'CPU s':>7}  {'schedule':<29}{'memory':<18}{'verifier':<16}{'policy':<13}rows")
    for name in EXPERIMENTS:
        for (schedule, *labels), seconds, digest in measure(name, arguments.instances, arguments.only):
            memory, verifier, policy = labels
            by_schedule[schedule] = by_schedule.get(schedule, 0.0) + seconds
            print(f"{seconds:>7.2f}  {schedule:<29}{memory:<18}{verifier:<16}{policy:<13}{digest}", flush=True)
    print(f"\n{'CPU s':>7}  one instance of each kind")
    for schedule, seconds in by_schedule.items():
        print(f"{seconds:>7.2f}  {schedule}")
    whole = sum(by_schedule.values())
    minutes = whole * INSTANCES / CORES / 60
    print(f"{whole:>7.2f}  all: {minutes:.1f} minutes for {INSTANCES} instances on {CORES} cores")
    print(f"aim: at most {AIMS[0]} minutes, better {AIMS[1]}")


if __name__ == "__main__":
    main()

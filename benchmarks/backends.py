"""One experiment with one job and with two, on every backend that is installed.

* `measure` - seconds of one run, with the digest of its lines
* `run_benchmark` - prints a table, and refuses lines that differ

A backend's first run starts its workers, which is timed too; the digests have to be equal.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from drift_agents.errors import MissingDependencyError
from drift_agents.experiment.clusters import BACKENDS
from drift_agents.experiment.folder import lines_hash
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.runner import run_experiment

SEEDS = 20
JOBS = (1, 2)


def measure(backend: str, jobs: int, seeds: int) -> tuple[float, str]:
    """Play the experiment once.

    Args:
        backend: one of `BACKENDS`.
        jobs: cells at the same time.
        seeds: instances of each of three agents.

    Returns:
        Seconds, and the hash of all lines.
    """
    agents = {"memory": ["none", "vanilla"], "verifier": ["none", "glove"], "policy": "planner"}
    data = {"name": "backends", "schedules": ["frozen_lake/explicit"], "agents": agents, "seeds": seeds, "rounds": 20}
    experiment = parse_experiment(data)
    with tempfile.TemporaryDirectory() as scratch:
        begin = time.perf_counter()
        file = run_experiment(experiment, Path(scratch) / "run", jobs=jobs, backend=backend)
        return time.perf_counter() - begin, lines_hash(file.read_bytes())


def run_benchmark(seeds: int = SEEDS, jobs: Sequence[int] = JOBS) -> None:
    """Print seconds and the speed compared with one process.

    Args:
        seeds: instances of each of three agents.
        jobs: numbers of cells at the same time.

    Raises:
        RuntimeError: if two runs give other lines.
    """
    alone, expected = measure("processes", 1, seeds)
    print(f"processes  1 jobs {alone:>7.1f} s", flush=True)
    missing: set[str] = set()
    for backend, count in [(backend, count) for backend in BACKENDS for count in jobs][1:]:
        if backend in missing:
            continue
        try:
            seconds, found = measure(backend, count, seeds)
        except MissingDependencyError as error:
            missing.add(backend)
            print(f"{backend:<10} {error}", flush=True)
            continue
        if found != expected:
            raise RuntimeError(f"{backend} with {count} jobs gives other lines")
        print(f"{backend:<10} {count} jobs {seconds:>7.1f} s  {alone / seconds:>5.2f} times one process", flush=True)


if __name__ == "__main__":
    run_benchmark(int(sys.argv[1]) if sys.argv[1:] else SEEDS)

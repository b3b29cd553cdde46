"""How many steps a minute are recorded with drift labels: to Parquet, and from there to Minari where it is installed.

`python -m benchmarks.dataset` plays lakes and cars into a temporary folder and prints steps per minute of processor
time, one thread. Minari stores an array for each field of each episode, so that its speed is one of episodes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from tempfile import TemporaryDirectory

from drift_envs.datasets import DatasetOptions, write_dataset, write_minari
from drift_envs.errors import MissingDependencyError
from drift_envs.registration import IDS

CASES = (
    ("DriftFrozenLake-v0", "frozen_lake/tides:family", "random"),
    ("DriftFrozenLake-v0", "frozen_lake/tides:family", "optimal"),
    ("DriftMountainCar-v0", "mountain_car/reversed", "random"),
)
TARGETS = {"Parquet": 1_000_000, "Minari": 200_000}


def seconds(work: Callable[[], object]) -> float:
    """The processor time of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(env_id: str, schedule: str, policy: str, steps: int, folder: str) -> str:
    """Record a case and return its line.

    Args:
        env_id: the environment.
        schedule: its schedule.
        policy: the policy.
        steps: about so many are played.
        folder: an empty folder.
    """
    small = DatasetOptions(env_id, schedule, policy, episodes=1)  # imports and plans do not count
    options = replace(small, episodes=max(1, steps // IDS[env_id].limit * (10 if "Lake" in env_id else 1)))
    write_dataset(small, f"{folder}/small")
    played: list[int] = []
    speed = seconds(lambda: write_dataset(options, f"{folder}/all", None, lambda done, new: played.append(new)))
    count = sum(played)
    line = f"{schedule:26} {policy:8} {count:8,} steps   Parquet {60 * count / speed:12,.0f}"
    try:
        write_minari(f"{folder}/small")
    except MissingDependencyError as error:
        return f"{line}   {error}"
    return f"{line}   Minari {60 * count / seconds(lambda: write_minari(f'{folder}/all')):10,.0f}"


def run_benchmark(steps: int) -> None:
    """Print a line for each case.

    Args:
        steps: about so many are played in each.
    """
    print(f"steps per minute; aims on a lake: {', '.join(f'{name} {aim:,}' for name, aim in TARGETS.items())}")
    for case in CASES:
        with TemporaryDirectory() as folder:
            print(measure(*case, steps, folder), flush=True)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30_000, help="in each case, about")
    run_benchmark(parser.parse_args().steps)


if __name__ == "__main__":
    main()

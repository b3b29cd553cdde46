"""The time and the RAM of a memory in a file.

`python -m benchmarks.stored_memory` writes records into a memory in a file, ten for each state and action, an
episode a thousand, and queries `counterparts` in interleaved repeats: of pairs drawn from the whole memory
(*anywhere*), and of the same 1,000 pairs (*near*), as of an agent that visits few states. The file is opened anew
before that. Targets at a million records: at most 100 microseconds a query, and RAM that does not grow with the
number of records.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from drift_agents import make_memory
from drift_agents.memory.stored.memory import open_stored
from drift_agents.types import AgentClock, Episode, Experience, Outcome

from benchmarks.counterparts import ACTIONS, EACH, draw_pairs, microseconds

SIZES = (10_000, 100_000, 1_000_000)
"""Records in each file."""
NEAR = 1000
"""States of the queries *near*."""
EPISODE = 1000
"""Records of an episode, which is a transaction."""
TARGET = 100.0
"""Microseconds."""


def fill(path: Path, size: int) -> float:
    """Write a file of that size; returns the microseconds of a record, commits included."""
    states = size // (EACH * len(ACTIONS))
    start = time.perf_counter()
    with open_stored(make_memory("vanilla"), path) as memory:
        for number in range(size):
            state, action = f"state {number % states}", ACTIONS[number // states % len(ACTIONS)]
            now = AgentClock(number // EPISODE, number)
            memory.observe(Experience(state, action, Outcome("there", 0.0, False), 0.0, now), now)
            if number % EPISODE == EPISODE - 1:
                memory.end_episode(Episode("task", 0.0, EPISODE, True), now)
    return (time.perf_counter() - start) / size * 1e6


def megabytes() -> float:
    """The largest RAM of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="python -m benchmarks.stored_memory")
    parser.add_argument("--queries", type=int, default=10_000, help="queries a repeat (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="repeats of each size (default: %(default)s)")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    before = megabytes()
    print(f"{'records':>10} {'write':>9} {'open':>8} {'near':>9} {'anywhere':>9} {'file':>7} {'RAM beyond':>11}")
    print(f"{'':>10} {'us':>9} {'s':>8} {'us':>9} {'us':>9} {'MB':>7} {'the start, MB':>11}")
    for size in SIZES:
        states = size // (EACH * len(ACTIONS))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "memory.sqlite")
            written = fill(path, size)
            start = time.perf_counter()
            with open_stored(make_memory("vanilla"), path) as memory:
                opened = time.perf_counter() - start
                near, anywhere = [], []
                for _ in range(arguments.repeats):
                    pairs = draw_pairs(min(NEAR, states), arguments.queries, rng)
                    near.append(microseconds(memory.counterparts, pairs))
                    anywhere.append(microseconds(memory.counterparts, draw_pairs(states, arguments.queries, rng)))
            print(
                f"{size:>10,} {written:>9.1f} {opened:>8.2f} {statistics.median(near):>9.1f} "
                f"{statistics.median(anywhere):>9.1f} {path.stat().st_size / 2**20:>7.0f} {megabytes() - before:>11.0f}"
            )
    print(f"target at {SIZES[-1]:,} records: at most {TARGET:g} us")


if __name__ == "__main__":
    main()

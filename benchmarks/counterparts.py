"""The time of `counterparts(s, a)`, by the size of the memory.

`python -m benchmarks.counterparts` fills ledgers with 10,000, 100,000 and a million records, ten for
each state and action, and queries them in interleaved repeats, so that other work on the machine
affects all of them equally. Targets: at most 10 microseconds at a million records, and no growth from 10,000.

*near*: queries of the same 100 pairs, as of an agent that visits few states. *anywhere*: queries of
pairs drawn from the whole memory, where cache misses increase with its size; *dictionary*: the same
queries of a dictionary of lists, for comparison.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from drift_agents.memory.ledger import Ledger
from drift_agents.types import AgentClock, Experience, Outcome, Record

SIZES = (10_000, 100_000, 1_000_000)
"""Records in each ledger."""
EACH = 10
"""Records for each state and action."""
ACTIONS = ("0", "1", "2", "3")
NEAR = 100
"""States of the queries *near*."""
TARGET = 10.0
"""Microseconds."""

Query = Callable[[str, str], list[Record]]


def fill(size: int) -> tuple[Ledger, dict[tuple[str, str], list[Record]]]:
    """Make a ledger of that size, and a dictionary of lists with the same records."""
    ledger = Ledger()
    states = size // (EACH * len(ACTIONS))
    for number in range(size):
        state = f"state {number % states}"
        action = ACTIONS[number // states % len(ACTIONS)]
        now = AgentClock(0, number)
        ledger.append(Experience(state, action, Outcome("there", 0.0, False), 0.0, now), now)
    plain: dict[tuple[str, str], list[Record]] = {}
    for record in ledger:
        plain.setdefault((record.state, record.action), []).append(record)
    return ledger, plain


def look_up(plain: dict[tuple[str, str], list[Record]], state: str, action: str) -> list[Record]:
    """Query the dictionary."""
    return list(plain[state, action])


def draw_pairs(states: int, number: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Draw pairs of state and action from the first `states` states."""
    return [(f"state {n}", ACTIONS[n % len(ACTIONS)]) for n in rng.integers(states, size=number).tolist()]


def microseconds(query: Query, pairs: list[tuple[str, str]]) -> float:
    """The mean time of a query."""
    start = time.perf_counter()
    for state, action in pairs:
        query(state, action)
    return (time.perf_counter() - start) / len(pairs) * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="python -m benchmarks.counterparts")
    parser.add_argument("--queries", type=int, default=10_000, help="queries a repeat (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=9, help="repeats of each size (default: %(default)s)")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    cases: dict[tuple[int, str], tuple[Query, list[tuple[str, str]]]] = {}
    for size in SIZES:
        ledger, plain = fill(size)
        states = size // (EACH * len(ACTIONS))
        near = draw_pairs(NEAR, arguments.queries, rng)
        anywhere = draw_pairs(states, arguments.queries, rng)
        cases[size, "near"] = ledger.counterparts, near
        cases[size, "anywhere"] = ledger.counterparts, anywhere
        cases[size, "dictionary"] = partial(look_up, plain), anywhere
    times: dict[tuple[int, str], list[float]] = {case: [] for case in cases}
    for _ in range(arguments.repeats):
        for case, (query, pairs) in cases.items():
            times[case].append(microseconds(query, pairs))
    kinds = ("near", "anywhere", "dictionary")
    print(f"{'records':>10}" + "".join(f"  {kind:>13} {'growth':>6}" for kind in kinds))
    for size in SIZES:
        row = [(statistics.median(times[size, kind]), statistics.median(times[SIZES[0], kind])) for kind in kinds]
        print(f"{size:>10,}" + "".join(f"  {now:>10.2f} us {now / first:>5.2f}x" for now, first in row))
    print(f"target at {SIZES[-1]:,} records: at most {TARGET:g} us, and no growth")


if __name__ == "__main__":
    main()

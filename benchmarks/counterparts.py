"""How long `counterparts(s, a)` takes, and whether that grows with memory.

`python -m benchmarks.counterparts` fills one ledger with 10,000, one with 100,000 and one with a
million records, ten for each state and action, and asks them in turns; the ledgers are all there at
once, so that other work on the machine falls on all of them alike. Aims: at most 10 microseconds at
a million records, and no growth from 10,000.

*near*: the same 100 pairs are asked again and again, as an agent does that lives in some place.
*anywhere*: pairs are drawn from the whole memory. Then the processor's caches miss more often the
larger the memory is; a plain dictionary of lists, asked the same beside it, shows how much of the
growth that is.
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
"""States in the place where an agent lives."""
AIM = 10.0
"""Microseconds."""

Ask = Callable[[str, str], list[Record]]


def fill(size: int) -> tuple[Ledger, dict[tuple[str, str], list[Record]]]:
    """A ledger of that size, and the same as a dictionary of lists."""
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
    """The same question to the dictionary."""
    return list(plain[state, action])


def questions(states: int, number: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Pairs of state and action, from the first `states` states."""
    return [(f"state {n}", ACTIONS[n % len(ACTIONS)]) for n in rng.integers(states, size=number).tolist()]


def microseconds(ask: Ask, asked: list[tuple[str, str]]) -> float:
    """The mean time of an answer, in microseconds."""
    start = time.perf_counter()
    for state, action in asked:
        ask(state, action)
    return (time.perf_counter() - start) / len(asked) * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="python -m benchmarks.counterparts")
    parser.add_argument("--questions", type=int, default=10_000, help="questions a repeat (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=9, help="repeats of each size (default: %(default)s)")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    cases: dict[tuple[int, str], tuple[Ask, list[tuple[str, str]]]] = {}
    for size in SIZES:
        ledger, plain = fill(size)
        states = size // (EACH * len(ACTIONS))
        near, anywhere = questions(NEAR, arguments.questions, rng), questions(states, arguments.questions, rng)
        cases[size, "near"] = ledger.counterparts, near
        cases[size, "anywhere"] = ledger.counterparts, anywhere
        cases[size, "dictionary"] = partial(look_up, plain), anywhere
    times: dict[tuple[int, str], list[float]] = {case: [] for case in cases}
    for _ in range(arguments.repeats):
        for case, (ask, asked) in cases.items():
            times[case].append(microseconds(ask, asked))
    kinds = ("near", "anywhere", "dictionary")
    print(f"{'records':>10}" + "".join(f"  {kind:>13} {'growth':>6}" for kind in kinds))
    for size in SIZES:
        row = [(statistics.median(times[size, kind]), statistics.median(times[SIZES[0], kind])) for kind in kinds]
        print(f"{size:>10,}" + "".join(f"  {now:>10.2f} us {now / first:>5.2f}x" for now, first in row))
    print(f"aim at {SIZES[-1]:,} records: at most {AIM:g} us, and no growth")


if __name__ == "__main__":
    main()

"""The study `belief-correction`: how a flawed conclusion is corrected by evidence that is half wrong.

* `Flaw` - a conclusion in memory that contradicts the optimum
* `find_flaws` - those of an instance
* `correct` - the state of one after each update
* `correction_rows`, `correction_tables` - the study

Source: the BeliefMem paper, section 4.3 and appendix B.5. A flaw contradicts the optimum, stands among what is
retrieved, and the right conclusion does not. A pool holds five valid observations and five noisy ones, which are
never right; ten updates draw from it. `docs/memories/beliefmem.md` says how this was carried over.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from drift_agents.analysis.rows import estimate
from drift_agents.analysis.table import MISSING, Table, format_estimate
from drift_agents.types import AgentClock, Experience, Outcome, Record, Transition

from research.belief.banks import METHODS, History, Method, find, live, outranks, supports

SCHEDULES = ("frozen_lake/explicit:family", "webshop/explicit", "mountain_car/reversed")
VALID = NOISY = 5
"""Observations of either kind in the pool."""
UPDATES = 10
DRAWS = ("with", "without")
"""Whether an observation goes back into the pool when it was drawn; the paper does not say."""
MOST = 5
"""Flaws of one instance that are followed at the most."""
_STREAM = 0xBE11


class Flaw(NamedTuple):
    """A conclusion in memory that contradicts the optimum.

    Args:
        believed: what memory says about the best action before the drift, or after it, and what is false.
        right: what the environment would answer.
        wrong: false conclusions that noise is made of: outcomes in the same state, `believed` among them.
    """

    believed: Transition
    right: Transition
    wrong: tuple[Transition, ...]


def find_flaws(history: History, method: Method = METHODS[0]) -> list[Flaw]:
    """The flaws in what a memory made of a history, once the environment has drifted; state by state.

    Args:
        history: what was lived through.
        method: the memory.
    """
    oracle, matching, memory = history.env.oracle, history.matching, history.memory(method.options)
    states: dict[Hashable, list[Record]] = {}
    for record in memory.records():
        states.setdefault(matching.state_key(record.state), []).append(record)
    flaws = []
    for own in states.values():
        state = own[0].state
        for action in dict.fromkeys(str(oracle.action(state, tick)) for tick in (history.after, history.before)):
            known = [one.transition for one in supports(memory, matching, state, action, history.now)]
            if not known:
                continue
            said = known[0]
            answer = oracle.response(said.state, action, history.after)[0]
            right = said._replace(outcome=Outcome(answer.state, answer.score, answer.ended))
            holds = oracle.holds(said.state, action, said.outcome.state, said.outcome.ended, history.after)
            if holds or find(matching, right, known) is not None:
                continue
            wrong = [said]
            for other in (said._replace(outcome=outcome) for record in own for outcome, _ in record.outcomes):
                if find(matching, other, [right, *wrong]) is None:
                    wrong.append(other)
            flaws.append(Flaw(said, right, tuple(wrong)))
    return flaws


def correct(history: History, method: Method, flaw: Flaw, observations: Sequence[Transition]) -> int | None:
    """After how many updates the right conclusion outranks the flawed one for good; `None` if it does not at the end.

    Args:
        history: what was lived through.
        method: the memory.
        flaw: what it believes.
        observations: the updates.
    """
    memory, now = history.memory(method.options), history.now
    state, action, _ = flaw.believed
    since: int | None = None
    for number, seen in enumerate(observations, 1):
        memory.observe(Experience(state, action, seen.outcome, 0.0, now), now)
        now = AgentClock(now.episode, now.step + 1)
        recalled = supports(memory, history.matching, state, action, now)
        ahead = outranks(recalled, history.matching, flaw.right, [flaw.believed])
        since = (since or number) if ahead else None
    return since


def draw(flaw: Flaw, how: str, rng: np.random.Generator) -> list[Transition]:
    """The updates of a flaw, out of the pool.

    Args:
        flaw: the flaw.
        how: one of `DRAWS`.
        rng: the source of chance.
    """
    noise = [flaw.wrong[place] for place in rng.integers(len(flaw.wrong), size=NOISY)]
    pool = [flaw.right] * VALID + noise
    return [pool[place] for place in rng.choice(len(pool), UPDATES, replace=how == "with")]


def correction_rows(
    seeds: Sequence[int], schedules: Sequence[str] = SCHEDULES, methods: Sequence[Method] = METHODS
) -> Iterator[dict[str, Any]]:
    """One row for every flaw, way of drawing and memory.

    Args:
        seeds: the instances.
        schedules: where.
        methods: the memories.
    """
    for place, schedule in enumerate(schedules):
        for seed in seeds:
            history, flaws = _live_flawed(schedule, seed)
            rng = np.random.default_rng([seed, _STREAM, place])
            chosen = sorted(rng.permutation(len(flaws))[:MOST].tolist())
            for number in chosen:
                for how in DRAWS:
                    observations = draw(flaws[number], how, rng)
                    for method in methods:
                        steps = correct(history, method, flaws[number], observations)
                        yield {
                            "schedule": schedule,
                            "seed": seed,
                            "flaw": number,
                            "draws": how,
                            "method": method.label,
                            "corrected": steps is not None,
                            "steps": steps,
                            "last_is_valid": observations[-1] == flaws[number].right,
                        }


# What was lived through is the same for every memory, and takes longer than all corrections of one.
@lru_cache(maxsize=128)
def _live_flawed(schedule: str, seed: int) -> tuple[History, list[Flaw]]:
    history = live(schedule, seed)
    return history, find_flaws(history)


def correction_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """How many flaws each memory corrected, and in how many updates; means over instances.

    Args:
        rows: those of `correction_rows`.
    """
    tables = []
    for schedule in dict.fromkeys(row["schedule"] for row in rows):
        here = [row for row in rows if row["schedule"] == schedule]
        flaws = len({(row["seed"], row["flaw"]) for row in here})
        seeds = list(dict.fromkeys(row["seed"] for row in here))
        columns = [f"{what},\n{how} replacement" for how in DRAWS for what in ("corrected, %", "updates")]
        title = f"{schedule}: {flaws} flaws in {len(seeds)} instances"
        table = Table(title, ("memory", *columns))
        for method in (method.label for method in METHODS):
            cells = []
            for how in DRAWS:
                own = [row for row in here if (row["method"], row["draws"]) == (method, how)]
                shares = [_mean([100.0 * row["corrected"] for row in own if row["seed"] == seed]) for seed in seeds]
                steps = [float(row["steps"]) for row in own if row["corrected"]]
                cells += [format_estimate(estimate(shares)), f"{_mean(steps):.1f}" if steps else MISSING]
            table.add(method, *cells)
        tables.append(table)
    return tables


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan

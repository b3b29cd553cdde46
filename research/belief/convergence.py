"""The study `belief-convergence`: whether the true conclusion ranks first as evidence grows.

* `ConvergenceCase` - a state and an action with random or false responses
* `find_questions` - those of an instance
* `convergence_rows`, `convergence_tables` - the study

Source: the BeliefMem paper, section 4.3, figure 4b and appendix B.4: the top-1 rate is the share of questions
whose true conclusion is recalled more strongly than every other, compared with raw counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from drift_agents.analysis.rows import estimate
from drift_agents.analysis.table import Table, format_estimate
from drift_agents.memory.base import make_memory
from drift_agents.types import AgentClock, Experience, Outcome, Transition

from research.belief.banks import METHODS, History, Method, live, outranks, supports

SCHEDULES = ("frozen_lake/slippery:family", "frozen_lake/explicit:transient", "webshop/explicit:transient")
OBSERVATIONS = 40
SHOWN = (1, 2, 3, 5, 10, 20, 40)
"""Numbers of observations at which the report gives the rate."""
MOST = 10
"""Questions of one instance at the most."""
ROUNDS = 3
"""Episodes in which states are met."""
_STREAM = 0xBE1C


class ConvergenceCase(NamedTuple):
    """A state and an action with random or false responses.

    Args:
        answers: the possible responses, the true (most probable) conclusion first.
        chances: their probabilities.
    """

    answers: tuple[Transition, ...]
    chances: tuple[float, ...]


def find_questions(history: History) -> list[ConvergenceCase]:
    """The states and actions that were met and that have several answers, one of which is the most probable.

    Args:
        history: what was lived through.
    """
    found: dict[tuple[Any, str], ConvergenceCase] = {}
    for experience in history.experiences:
        key = history.matching.state_key(experience.state), experience.action
        if key in found:
            continue
        responses = history.env.oracle.response(experience.state, experience.action, history.before)
        if len(responses) < 2 or responses[0].probability - responses[1].probability < 1e-9:
            continue
        answers = tuple(
            Transition(experience.state, experience.action, Outcome(one.state, one.score, one.ended))
            for one in responses
        )
        chances = np.array([one.probability for one in responses])
        found[key] = ConvergenceCase(answers, tuple((chances / chances.sum()).tolist()))
    return list(found.values())


def convergence_rows(
    seeds: Sequence[int], schedules: Sequence[str] = SCHEDULES, methods: Sequence[Method] = METHODS
) -> Iterator[dict[str, Any]]:
    """One row for every question and memory: after which observations the true conclusion led.

    Args:
        seeds: the instances.
        schedules: where.
        methods: the memories.
    """
    for place, schedule in enumerate(schedules):
        for seed in seeds:
            history, rng = live(schedule, seed, ROUNDS), np.random.default_rng([seed, _STREAM, place])
            questions = find_questions(history)
            for number in sorted(rng.permutation(len(questions))[:MOST].tolist()):
                answers, chances = questions[number]
                seen = rng.choice(len(answers), OBSERVATIONS, p=chances).tolist()
                for method in methods:
                    options = {key: value for key, value in method.options.items() if key != "name"}
                    memory = make_memory(str(method.options["name"]), **options, matching=history.matching)
                    leads = []
                    for step, answer in enumerate(seen):
                        (state, action, outcome), now = answers[answer], AgentClock(0, step)
                        memory.observe(Experience(state, action, outcome, 0.0, now), now)
                        recalled = supports(memory, history.matching, state, action, AgentClock(0, step + 1))
                        leads.append(outranks(recalled, history.matching, answers[0], answers[1:]))
                    yield {
                        "schedule": schedule,
                        "seed": seed,
                        "question": number,
                        "chance": chances[0],
                        "method": method.label,
                        "leads": "".join("1" if lead else "0" for lead in leads),
                    }


def convergence_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """The top-1 rate of each memory by the number of observations; means over instances.

    Args:
        rows: those of `convergence_rows`.
    """
    tables = []
    for schedule in dict.fromkeys(row["schedule"] for row in rows):
        here = [row for row in rows if row["schedule"] == schedule]
        seeds = list(dict.fromkeys(row["seed"] for row in here))
        questions = {(row["seed"], row["question"]): row["chance"] for row in here}
        chance = 100 * sum(questions.values()) / len(questions)
        title = (
            f"{schedule}: top-1 rate in percent by observations; {len(questions)} questions in {len(seeds)} instances, "
            f"{chance:.0f} % of observations true"
        )
        table = Table(title, ("memory", *map(str, SHOWN)))
        for method in (method.label for method in METHODS):
            own = [row for row in here if row["method"] == method]
            cells = []
            for count in SHOWN:
                by_seed = [[row["leads"][count - 1] == "1" for row in own if row["seed"] == seed] for seed in seeds]
                cells.append(format_estimate(estimate([100 * sum(leads) / len(leads) for leads in by_seed])))
            table.add(method, *cells)
        tables.append(table)
    return tables

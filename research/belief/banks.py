"""The experiences of an agent before a drift, and the memories that the belief studies build from them.

* `History` - the experiences of an agent before the first drift, with the evaluator's environment
* `live` - plays an instance up to its first drift
* `Method` - a memory under study
* `METHODS` - BeliefMem, its ablations, and two memories that keep no probabilities
* `RecalledOutcome`, `supports` - the support of each outcome in a memory's answer
* `outranks` - whether one outcome has more support than others
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from drift_agents.envs.matching import Matching
from drift_agents.errors import ExperimentError
from drift_agents.experiment.cell_environment import EvaluationWrapper
from drift_agents.experiment.config import PartSpec, ScheduleSettings
from drift_agents.experiment.episode import CellSetup, play
from drift_agents.experiment.plan import NO_PART, Cell
from drift_agents.memory.base import Memory, make_memory
from drift_agents.types import AgentClock, Episode, Experience, Transition

MARGIN = 1e-9
"""Supports that differ by less are equal."""

ROUNDS = 20
"""Episodes before the drift, as in the paper of GLOVE."""


class History(NamedTuple):
    """The experiences of an agent before the first drift.

    Args:
        experiences: what happened, in order.
        matching: the agent's rule for what counts as the same, with what it has learned.
        env: the environment, for an evaluator.
        before: a tick before the drift.
        after: the tick of the drift.
    """

    experiences: tuple[Experience, ...]
    matching: Matching
    env: EvaluationWrapper
    before: int
    after: int

    def memory(self, options: Mapping[str, Any]) -> Memory:
        """A memory that has observed all of it.

        Args:
            options: the memory's name under `name`, and its parameters.
        """
        rest = {key: value for key, value in options.items() if key != "name"}
        memory = make_memory(str(options["name"]), **rest, matching=self.matching)
        for experience in self.experiences:
            memory.observe(experience, experience.now)
        return memory

    @property
    def now(self) -> AgentClock:
        """The time after all of it."""
        last = self.experiences[-1].now
        return AgentClock(last.episode + 1, last.step + 1)


def live(schedule: str, seed: int, rounds: int = ROUNDS, memory: str = "beliefmem") -> History:
    """Play an instance up to its first drift, with a planner.

    Args:
        schedule: a schedule whose phases have fixed episodes.
        seed: the instance.
        rounds: how many episodes.
        memory: what the agent remembers with.

    Raises:
        ExperimentError: if nothing drifts there, or the schedule cannot be played in rounds.
    """
    cell = Cell(schedule, PartSpec(name=memory), NO_PART, PartSpec(name="planner"), seed, (memory, "none", "planner"))
    found: list[Experience] = []
    setups: list[CellSetup] = []

    def watch(setup: CellSetup, number: int, episode: Episode) -> None:
        setups.append(setup)
        found.extend(step.experience for step in episode.trace)

    for _ in islice(play(cell, ScheduleSettings(rounds=rounds), watch), rounds):
        pass
    setup = setups[0]
    ticks = [episode.tick for episode in setup.episodes if episode.tick is not None]
    if len(ticks) <= rounds:
        raise ExperimentError(
            f"{schedule}: should have a drift after {rounds} episodes. Received {len(ticks)} episodes"
        )
    return History(tuple(found), setup.agent.matching, setup.env, ticks[0], ticks[rounds])  # type: ignore[union-attr]


class Method(NamedTuple):
    """A memory under study.

    Args:
        label: what tables call it.
        options: the memory's name under `name`, and its parameters.
    """

    label: str
    options: Mapping[str, Any]


METHODS = (
    Method("BeliefMem", {"name": "beliefmem"}),
    Method("one conclusion an observation", {"name": "beliefmem", "one_off": 0}),
    Method("without belief (one conclusion)", {"name": "beliefmem", "without": "belief"}),
    Method("without belief-aware retrieval", {"name": "beliefmem", "without": "retrieval"}),
    Method("without Version (rivals keep theirs)", {"name": "beliefmem", "contradicted": 0.99}),
    Method("newest outcome", {"name": "vanilla", "k": 1, "order": "newest"}),
    Method("raw frequency", {"name": "vanilla", "k": 100_000}),
)
"""BeliefMem, its ablations, and two memories that keep no probabilities."""


class RecalledOutcome(NamedTuple):
    """An outcome in a memory's answer, with its support.

    Args:
        transition: state (of the first record with this outcome), action and outcome.
        support: the number of responses, each weighted by the strength of its recall.
    """

    transition: Transition
    support: float


def supports(memory: Memory, matching: Matching, state: str, action: str, now: AgentClock) -> list[RecalledOutcome]:
    """The support of each outcome of an action in a memory's answer, counted as the planner does.

    Args:
        matching: which outcomes count as the same.
        state: the state.
        now: the time.

    Returns:
        Every outcome; the strongest first, of equal ones the one that was recalled first.
    """
    answer, key = memory.retrieve(state, None, now), matching.state_key(state)
    found: list[RecalledOutcome] = []
    for record, weight in zip(answer.records, answer.weights, strict=True):
        if record.action != action or matching.state_key(record.state) != key:
            continue
        for outcome, share in record.outcomes:
            transition, more = Transition(record.state, action, outcome), weight * record.n * share
            place = find(matching, transition, [one.transition for one in found])
            if place is None:
                found.append(RecalledOutcome(transition, more))
            else:
                found[place] = RecalledOutcome(found[place].transition, found[place].support + more)
    return sorted(found, key=lambda recalled: -recalled.support)


def find(matching: Matching, wanted: Transition, others: Sequence[Transition]) -> int | None:
    """The place of the first of several transitions whose outcome counts as the same; `None` if none does."""
    return next((place for place, one in enumerate(others) if matching.same_outcome(wanted, one)), None)


def outranks(
    recalled: Sequence[RecalledOutcome], matching: Matching, right: Transition, others: Sequence[Transition]
) -> bool:
    """Whether an outcome has more support than each of some others.

    Args:
        recalled: the outcomes that a memory recalls.
        matching: which outcomes count as the same.
        right: the one.
        others: the others.
    """
    transition = [one.transition for one in recalled]

    def strength(wanted: Transition) -> float:
        place = find(matching, wanted, transition)
        return 0.0 if place is None else recalled[place].support

    return all(strength(right) > strength(other) + MARGIN for other in others)

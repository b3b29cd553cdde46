"""What memory still believes after a drift, of the facts that the drift has changed.

* `BeliefTracker` - the share of changed facts of which memory's answer is still the old one
* `answer_of` - what memory would answer about a state and action now
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.matching import Matching
from drift_agents.memory.base import Memory, PeekedMemory
from drift_agents.prompt.conflict import settle
from drift_agents.types import AgentClock, Outcome, Record, RecordId
from drift_envs.schedule.timeline import Phase


def answer_of(memory: Memory, state: str, action: str, now: AgentClock, matching: Matching) -> Hashable | None:
    """What memory would answer about a state and action: the outcome that most of what it retrieves supports.

    Ties go to the newest, as planners settle them by default. Memories that cannot be read without a side effect
    are judged by all their records.

    Args:
        memory: the memory; nothing is changed.
        state: the state.
        action: the action.
        now: the agent's clock.
        matching: when two states count as the same.

    Returns:
        The class of the outcome (`outcome_key`), `None` if nothing is retrieved.
    """
    if isinstance(memory, PeekedMemory):
        found = memory.peek(state, now)
        key = matching.state_key(state)
        weighed = [
            (record, weight)
            for record, weight in zip(found.records, found.weights, strict=True)
            if record.action == action and (record.state == state or matching.state_key(record.state) == key)
        ]
    else:
        weighed = [(record, 1.0) for record in memory.same_transitions(state, action)]
    sightings: dict[Hashable, tuple[float, int]] = {}
    for record, weight in weighed:
        for outcome, p in record.outcomes:
            kind = outcome_key(outcome, matching)
            support, last = sightings.get(kind, (0.0, -1))
            sightings[kind] = (support + p * record.n * weight, max(last, record.now.step))
    if not sightings:
        return None
    return settle([(kind, *seen) for kind, seen in sightings.items()], "majority")[0][0]


def outcome_key(outcome: Outcome, matching: Matching) -> Hashable:
    """Equal for outcomes with the same state by the matching rule, the same score and the same end."""
    return matching.state_key(outcome.state), outcome.score, outcome.ended


class BeliefTracker:
    """The share of changed facts of which memory's answer is still the old one.

    A fact is a state and action of which memory had records when the phase began. It has changed if the oracle
    responds otherwise than at the last tick before the phase, and something that memory had was true when it was
    written and no longer is. Memory still believes it while that is its answer. A record that was removed is no
    longer believed.

    Args:
        env: where the agent plays.
        matching: when two states count as the same.
        share_of: the share of a record that is true at a tick (`drift_agents.experiment.evaluator`).
    """

    def __init__(self, env: EvaluationWrapper, matching: Matching, share_of: Callable[[Record, int], float]) -> None:
        self._env, self._matching, self._share_of = env, matching, share_of
        self._known: Mapping[RecordId, Record] = {}
        self._phase: Phase | None = None
        self._before: tuple[Record, ...] = ()
        self._stale: list[tuple[Record, set[Hashable]]] = []
        self._values: Mapping[str, Any] | None = None

    def evaluate(self, memory: Memory, now: AgentClock) -> float | None:
        """The share after an episode.

        Args:
            memory: the agent's memory.
            now: the agent's clock.

        Returns:
            `None` before the first drift, without an oracle, and where nothing that memory had has changed.
        """
        env, phase = self._env, self._env.phase
        if env.oracle is None:
            return None
        if self._phase is None or phase.index != self._phase.index:
            self._phase, self._values = phase, None
            self._before = tuple(self._known.values()) if phase.start > 0 else ()
        values = env.knobs(env.tick)
        if values != self._values:
            self._values, self._stale = values, self._list_stale(env.tick)
        self._known = {record.id: record for record in memory.records()}
        believed = [answer_of(memory, fact.state, fact.action, now, self._matching) in old for fact, old in self._stale]
        return sum(believed) / len(believed) if believed else None

    def _list_stale(self, tick: int) -> list[tuple[Record, set[Hashable]]]:
        """The changed facts: the oldest record of each, and the outcomes that were true and are no longer."""
        found: dict[tuple[Hashable, str], tuple[Record, set[Hashable]]] = {}
        for record in self._before:
            # Most still hold.
            if self._share_of(record, tick) < 1.0 and self._has_changed(record, tick):
                key = self._matching.state_key(record.state), record.action
                stale = [one for one, _ in record.outcomes if self._was_true(record, one, tick)]
                if stale:
                    found.setdefault(key, (record, set()))[1].update(outcome_key(one, self._matching) for one in stale)
        return list(found.values())

    def _has_changed(self, record: Record, tick: int) -> bool:
        """Whether the response is another one than at the last tick before the phase."""
        return bool(self._env.oracle.changed(record.state, record.action, self._env.phase.start - 1, tick))

    def _was_true(self, record: Record, outcome: Outcome, tick: int) -> bool:
        """Whether an outcome was true when it was written, and no true response is of its class now."""
        oracle, env, kind = self._env.oracle, self._env, outcome_key(outcome, self._matching)
        about = record.state, record.action

        def holds(one: Outcome, at: int) -> bool:
            return bool(oracle.holds(*about, one.state, one.ended, at, one.score))

        responses = (Outcome(one.state, one.score, one.ended) for one in oracle.response(*about, tick))
        now = (outcome, *(one for one in responses if outcome_key(one, self._matching) == kind))
        if any(holds(one, tick) for one in now):
            return False
        return env.is_of_another(record) or holds(outcome, env.tick_of(record.now.step))

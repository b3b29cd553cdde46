"""What only an evaluator knows about an episode and about a memory.

* `GroundTruth` - keeps track of what is remembered and of what is still true
* `EpisodeTruth` - what it says at the end of an episode
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.memory.base import Memory
from drift_agents.types import Episode, Record, RecordId


class EpisodeTruth(NamedTuple):
    """What an evaluator says at the end of an episode.

    Args:
        memory_size: records about transitions.
        memory_truth_rate: the share of what they say that the world could answer at this tick;
            `None` when nothing is remembered or no oracle is known.
        false_realignments: realignments that touched nothing that had changed; `None` without oracle.
        regret: the optimum's expected score minus the score; `None` without oracle.
    """

    memory_size: int
    memory_truth_rate: float | None
    false_realignments: int | None
    regret: float | None


class GroundTruth:
    """Keeps track of what is remembered and of what is still true.

    A record's truth is asked for once and again only when the world has changed, so that a long
    run stays cheap.

    Args:
        world: where the agent plays.
    """

    def __init__(self, world: EvaluationWrapper) -> None:
        self._world = world
        self._known: dict[RecordId, Record] = {}
        self._true: dict[RecordId, float] = {}
        self._values: Mapping[str, Any] | None = None

    def judge(self, episode: Episode, memory: Memory) -> EpisodeTruth:
        """Judge an episode that has just ended.

        Args:
            episode: what happened, with its steps.
            memory: the agent's memory after it.
        """
        oracle, world = self._world.oracle, self._world
        records = list(memory.records())
        false = rate = regret = None
        if oracle is not None:
            false = self._false_realignments(episode, {record.id: record for record in records})
            rate = self._truth_rate(records)
            regret = float(oracle.value(world.start)) - episode.score
        self._known = {record.id: record for record in records}
        return EpisodeTruth(len(records), rate, false, regret)

    def _truth_rate(self, records: list[Record]) -> float | None:
        """The share of what the records say that the world could answer in the next interaction."""
        if not records:
            return None
        oracle, tick = self._world.oracle, self._world.tick
        values = self._world.knobs(tick)
        if values != self._values:
            self._true, self._values = {}, values
        true = self._true
        total = 0.0
        for record in records:
            share = true.get(record.id)
            if share is None:
                share = true[record.id] = sum(
                    p
                    for outcome, p in record.outcomes
                    if oracle.holds(record.state, record.action, outcome.state, outcome.ended, tick)
                )
            total += share
        return total / len(records)

    def _false_realignments(self, episode: Episode, now: Mapping[RecordId, Record]) -> int:
        """Realignments that touched nothing that had changed since memory wrote it down.

        Touched are the records that were removed, and where none was, those about the same state and action.
        """
        false = 0
        written: dict[RecordId, Record] = dict(self._known)
        for clock, about, verdict in episode.verdicts():
            if verdict.realigned:
                tick = self._world.tick_of(clock.step)
                touched = [written[record_id] for record_id in verdict.removed.records if record_id in written]
                touched = touched or [
                    record for record in written.values() if about is None or (record.state, record.action) == about
                ]
                false += not any(self._world.changed(record, tick) for record in touched)
            for record_id in (verdict.observed, verdict.inserted):
                if record_id is not None and about is not None:
                    # One that is gone by now can no longer be read; what it answered is of no account here.
                    written[record_id] = now.get(record_id) or Record(record_id, *about, (), 0, clock)
        return false

"""Phases II and III of GLOVE: probe the surprising pair, then replace what memory holds about it.

* `Budget` - a number of probes, or what theorem 4.2 computes it from
* `ProbingVerifier` - the base of GLOVE and of the controls that spend its budget
* `realign` - phase III: removes the old records, inserts the verified summary
* `insert_all` - inserts the summary alone
* `read_budget` - the number of probes of a `Budget`
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.matching import Matching
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, Record, RecordId, Removed, Transition, Verdict
from drift_agents.verifier.base import Prober, VerifierWithProber
from drift_agents.verifier.glove.evidence import contradicts, summarise
from drift_agents.verifier.glove.statistics import probe_budget
from drift_agents.verifier.glove.surprise import DetectedSurprise, SurpriseVerifier
from drift_envs.checks import check_count

Budget = int | Mapping[str, Any]
"""A number of probes, or `{outcomes: K, accuracy: eps, confidence: delta}` for theorem 4.2."""


class ProbingVerifier(VerifierWithProber, SurpriseVerifier):
    """A `SurpriseVerifier` that probes: the base of GLOVE and of the controls that spend its budget.

    With a `live` prober the response is postponed to the end of the episode, since probing resets the
    agent's environment. Until then memory is unchanged. When the limits leave no probe, a surprise is handled as one
    whose state could not be reached again.

    Args:
        prober: repeats an action in a state.
        epsilon: outcomes with a smaller share of the records are surprises; in (0, 1].
        persistence: the number of surprises in a row that starts the probing; positive.
        budget: the number of probes; a positive whole number, or a mapping with `outcomes`, `accuracy`
            and `confidence`, from which theorem 4.2 computes it.
        minimum: the number of recorded responses from which on outcomes are tested; positive.
        probes_per_episode: the maximum number of probes in an episode; no limit if not given.
        probes_total: the maximum number of probes in the agent's life; no limit if not given.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    takes_live_prober = True

    def __init__(
        self,
        *,
        prober: Prober,
        epsilon: float = 0.5,
        persistence: int = 1,
        budget: Budget = 1,
        minimum: int = 1,
        probes_per_episode: int | None = None,
        probes_total: int | None = None,
    ) -> None:
        super().__init__(
            prober=prober,
            probes_per_episode=probes_per_episode,
            probes_total=probes_total,
            epsilon=epsilon,
            persistence=persistence,
            minimum=minimum,
        )
        self.budget = read_budget(budget)
        self._waiting: dict[tuple[Hashable, str], DetectedSurprise] = {}

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule and a generator, and bind the prober to the rule."""
        super().bind(matching, rng)
        self._waiting.clear()

    def judge(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write the experience, quarantine it, or respond to the surprise."""
        return SurpriseVerifier.verify(self, experience, memory, prefix, now)

    @property
    def quarantined(self) -> tuple[Experience, ...]:
        """Experiences that are neither written nor dropped yet, postponed ones included."""
        waiting = [experience for found in self._waiting.values() for experience in found.experiences]
        return tuple(sorted([*super().quarantined, *waiting], key=lambda experience: experience.now))

    def _handle(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        """Respond at once, or postpone it until the environment may be reset."""
        if not self.prober.live:
            return self._respond(found, memory, now)
        newest = found.experiences[-1]
        key = (self._matching.state_key(newest.state), newest.action)
        earlier = self._waiting[key].experiences if key in self._waiting else ()
        self._waiting[key] = found._replace(experiences=(*earlier, *found.experiences))
        return Verdict(surprise=True, statistic=found.share)

    def end_episode(self, result: Episode, memory: Memory, now: AgentClock) -> Sequence[Verdict]:
        """Respond to postponed surprises, in order of detection."""
        waiting, self._waiting = self._waiting, {}
        verdicts = []
        for found in waiting.values():
            state, action = found.experiences[-1].state, found.experiences[-1].action
            known = memory.same_transitions(state, action)  # more may have been written since
            verdict = self._respond(found._replace(same_transitions=tuple(known)), memory, now)
            verdicts.append(verdict._replace(about=(state, action), newest=known[-1].now.step if known else -1))
        return verdicts


class RealignmentResult(NamedTuple):
    """The result of phase III.

    Args:
        removed: the removed records and items.
        inserted: the id of the verified summary (of the last one, if probes were in several states
            that count as the same), `None` for a memory that holds nothing.
        contradicted: whether the probes contradict the old records.
    """

    removed: Removed
    inserted: RecordId | None
    contradicted: bool


def realign(
    same_transitions: Sequence[Record], fresh: Sequence[Transition], memory: Memory, matching: Matching, now: AgentClock
) -> RealignmentResult:
    """Phase III: remove the old records, insert the verified summary.

    Args:
        same_transitions: the records to remove.
        fresh: the probes' transitions; at least one.
        memory: the memory of the records.
        matching: when two outcomes count as the same.
        now: the time of the summary.
    """
    contradicted = contradicts(fresh, same_transitions, matching)
    removed = memory.remove([record.id for record in same_transitions])
    return RealignmentResult(removed, insert_all(fresh, memory, matching, now), contradicted)


def insert_all(fresh: Sequence[Transition], memory: Memory, matching: Matching, now: AgentClock) -> RecordId | None:
    """Insert the verified summary of probes; returns the id of the last record."""
    inserted = None
    for summary in summarise(fresh, matching):
        inserted = memory.insert_summary(summary.state, summary.action, summary.distribution, summary.n, now)
    return inserted


def read_budget(budget: Any) -> int:
    """The number of probes, given directly or by the arguments of theorem 4.2.

    Args:
        budget: a positive whole number, or a mapping with `outcomes`, `accuracy` and `confidence`.

    Raises:
        ArgumentError: if it is neither.

    Example:
        >>> read_budget({"outcomes": 3, "accuracy": 0.2, "confidence": 0.05})
        254
    """
    if not isinstance(budget, Mapping):
        return check_count("budget", budget)
    wanted = {"outcomes", "accuracy", "confidence"}
    if set(budget) != wanted:
        raise ArgumentError(
            "`budget` should be a whole number, at least 1 or a mapping with accuracy, confidence and outcomes. "
            f"Received {dict(budget)!r}"
        )
    return probe_budget(**budget)

"""The phases of GLOVE: detect outcomes that contradict memory, probe them, and replace what memory holds of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np

from drift_agents.envs.matching import Matching
from drift_agents.errors import ArgumentError
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, Record, RecordId, Removed, Transition, Verdict
from drift_agents.verifier.base import BaseVerifier, Prober, VerifierWithProber
from drift_agents.verifier.evidence import contradicts, probe_budget, share, summarise
from drift_envs.checks import check_count, check_interval

if TYPE_CHECKING:
    from typing_extensions import Unpack


class DetectedSurprise(NamedTuple):
    """Surprising experiences of one state and action, `persistence` in a row.

    Args:
        experiences: the experiences, oldest first; none of them is written yet.
        same_transitions: the records about this state and action.
        share: Q_hist of the last one.
        prefix: the actions that led to the state since the episode began.
    """

    experiences: tuple[Experience, ...]
    same_transitions: tuple[Record, ...]
    share: float
    prefix: tuple[str, ...]


class SurpriseVerifier(BaseVerifier, ABC):
    """Detects outcomes with a small share of the recorded responses (GLOVE, equations 2 and 3).

    An experience with fewer than `minimum` recorded responses of its state and action is exploration
    and is written. One with Q_hist >= `epsilon` is no surprise and is written. A surprise is quarantined,
    not written, since it would raise the Q_hist of the next one. At the `persistence`-th in a row for the
    same state (by the matching rule) and action, `_respond` handles all of them. When an unsurprising
    experience ends the row, the quarantined ones are written first, each with its own time: otherwise rare
    outcomes could never enter Q_hist. A row may extend over several episodes.

    Args:
        epsilon: outcomes with a smaller share of the records are surprises; in (0, 1].
        persistence: the number of surprises in a row that starts the response; positive.
        minimum: the number of recorded responses from which on outcomes are tested; positive.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    name: str

    def __init__(self, *, epsilon: float = 0.5, persistence: int = 1, minimum: int = 1) -> None:
        super().__init__()
        self.epsilon = check_interval("epsilon", epsilon, "(0, 1]")
        self.persistence = check_count("persistence", persistence)
        self.minimum = check_count("minimum", minimum)
        self._quarantine: dict[tuple[Hashable, str], list[Experience]] = {}

    @property
    def quarantined(self) -> tuple[Experience, ...]:
        """Experiences that are neither written nor dropped yet, in order of time."""
        held = [experience for experiences in self._quarantine.values() for experience in experiences]
        return tuple(sorted(held, key=lambda experience: experience.now))

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule, and clear the quarantine."""
        super().bind(matching, rng)
        self._quarantine.clear()

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write the experience, quarantine it, or respond to the surprise.

        Args:
            memory: the agent's memory, without this experience.
            prefix: the actions that led to `experience.state` since the episode began.
        """
        known = memory.same_transitions(experience.state, experience.action)
        q_hist, n = share(experience.transition, known, self._matching)
        if n < self.minimum:
            return Verdict(observed=self._write(experience, memory, now))
        if q_hist >= self.epsilon:
            return Verdict(statistic=q_hist, observed=self._write(experience, memory, now))
        key = (self._matching.state_key(experience.state), experience.action)
        row = self._quarantine.setdefault(key, [])
        row.append(experience)
        if len(row) < self.persistence:
            return Verdict(surprise=True, statistic=q_hist)
        del self._quarantine[key]
        return self._handle(DetectedSurprise(tuple(row), tuple(known), q_hist, tuple(prefix)), memory, now)

    def _handle(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        """Respond at once; subclasses may postpone it."""
        return self._respond(found, memory, now)

    @abstractmethod
    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        """Write, replace or remove the experiences and the old records."""

    def _write(self, experience: Experience, memory: Memory, now: AgentClock) -> RecordId | None:
        """Write an experience, after those that were quarantined for its state and action."""
        if self._quarantine:
            key = (self._matching.state_key(experience.state), experience.action)
            for earlier in self._quarantine.pop(key, ()):
                memory.observe(earlier, earlier.now)
        return memory.observe(experience, now)


def write_all(experiences: Sequence[Experience], memory: Memory) -> RecordId | None:
    """Write experiences, each with its own time; returns the id of the last one."""
    written = None
    for experience in experiences:
        written = memory.observe(experience, experience.now)
    return written


class ProbingOptions(TypedDict, total=False):
    """The options of a `ProbingVerifier` beside its prober and its budget, which its subclasses hand on."""

    epsilon: float
    persistence: int
    minimum: int
    probes_per_episode: int | None
    probes_total: int | None


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

    def __init__(self, *, prober: Prober, budget: Budget = 1, **options: Unpack[ProbingOptions]) -> None:
        super().__init__(prober=prober, **options)
        self.budget = read_budget(budget)
        self._waiting: dict[tuple[Hashable, str], DetectedSurprise] = {}

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """The names of all options, those that are handed on included."""
        own = [name for name in signature(cls).parameters if name != "options"]
        return tuple(dict.fromkeys([*own, *ProbingOptions.__annotations__]))

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
        fresh: the probes' transitions; at least one.
        memory: the memory of the records.
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

"""GLOVE, the global verifier (paper, sections 3 and 4, algorithm 1).

* `Glove` - watches for surprises, probes, and rewrites what memory holds
* `GloveSpread` - GLOVE whose doubt spreads; ours, not the paper's
* `DETERMINISTIC`, `STOCHASTIC` - its options for the two kinds of world
* `realign` - phase III: counterparts out, verified summary in
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.matching.base import Matching
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, Record, RecordId, Removed, Transition, Verdict
from drift_agents.verifier.base import FollowingProber, Prober
from drift_agents.verifier.checks import count, flag
from drift_agents.verifier.doubt_spread import DoubtSpread
from drift_agents.verifier.evidence import contradicts, summarise
from drift_agents.verifier.statistics import probe_budget
from drift_agents.verifier.surprise import SurpriseDetector, SurpriseVerifier, write_all

Budget = int | Mapping[str, Any]
"""A number of probes, or `{outcomes: K, accuracy: eps, confidence: delta}` for theorem 4.2."""

DETERMINISTIC: Mapping[str, Any] = {"epsilon": 0.5, "persistence": 1, "budget": 1, "minimum": 1}
"""The defaults: where one response is the whole truth, the first other one is a surprise."""

STOCHASTIC: Mapping[str, Any] = {
    "epsilon": 0.05,
    "persistence": 2,
    "budget": {"outcomes": 3, "accuracy": 0.2, "confidence": 0.05},
    "minimum": 10,
}
"""For worlds that answer by chance, with up to three outcomes: 254 probes by theorem 4.2."""


class ProbingVerifier(SurpriseVerifier):
    """A `SurpriseVerifier` that probes: what GLOVE and the controls that spend its budget share.

    With a prober that is `live` the response waits until the episode is over, since the agent stands
    in the world that would have to be reset. Until then memory stays as it was.

    Args:
        prober: does the same again.
        epsilon: outcomes with a smaller share of the counterparts surprise; in (0, 1].
        persistence: how many surprises in a row it takes; positive.
        budget: how many probes; a positive whole number, or a mapping with `outcomes`, `accuracy`
            and `confidence`, from which theorem 4.2 computes it.
        minimum: how many responses memory must hold before there is a test; positive.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    def __init__(self, *, prober: Prober, epsilon: float, persistence: int, budget: Budget, minimum: int) -> None:
        super().__init__(epsilon=epsilon, persistence=persistence, minimum=minimum)
        if not isinstance(prober, Prober):
            raise ArgumentError(
                "`prober` should have bind, begin_episode, moved, probe, privileged and live, as "
                f"`ReplayProber` has. Received {type(prober).__name__}"
            )
        self.prober = prober
        self.budget = read_budget(budget)
        self._waiting: dict[tuple[Hashable, str], SurpriseDetector] = {}
        if prober.privileged:
            self.supervision = "privileged"

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the task's matching rule and a generator, and hand the rule on to the prober."""
        super().bind(matching, rng)
        self._waiting.clear()
        self.prober.bind(matching)

    def begin_episode(self) -> None:
        """Tell the prober."""
        self.prober.begin_episode()

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write the experience, quarantine it, or respond to the dissonance; then tell the prober."""
        if isinstance(self.prober, FollowingProber):
            self.prober.follow(experience)
        verdict = super().verify(experience, memory, prefix, now)
        self.prober.moved()
        return verdict

    @property
    def quarantined(self) -> tuple[Experience, ...]:
        """Experiences that are neither written nor replaced yet, those that wait for a probe included."""
        waiting = [experience for found in self._waiting.values() for experience in found.experiences]
        return tuple(sorted([*super().quarantined, *waiting], key=lambda experience: experience.now))

    def _meet(self, found: SurpriseDetector, memory: Memory, now: AgentClock) -> Verdict:
        """Respond at once, or put it off until the world may be reset."""
        if not self.prober.live:
            return self._respond(found, memory, now)
        newest = found.experiences[-1]
        key = (self._matching.state_key(newest.state), newest.action)
        earlier = self._waiting[key].experiences if key in self._waiting else ()
        self._waiting[key] = found._replace(experiences=(*earlier, *found.experiences))
        return Verdict(surprise=True, statistic=found.share)

    def end_episode(self, result: Episode, memory: Memory, now: AgentClock) -> Sequence[Verdict]:
        """Respond to what was put off, in the order in which it was met."""
        waiting, self._waiting = self._waiting, {}
        verdicts = []
        for found in waiting.values():
            state, action = found.experiences[-1].state, found.experiences[-1].action
            known = memory.counterparts(state, action)  # more may have been written since
            verdict = self._respond(found._replace(counterparts=tuple(known)), memory, now)
            verdicts.append(verdict._replace(about=(state, action), newest=known[-1].now.step if known else -1))
        return verdicts


class Glove(ProbingVerifier):
    """GLOVE, the global verifier (paper, algorithm 1).

    Phase I finds the counterparts of an experience (without it) and tests for surprise, see
    `SurpriseVerifier`. Phase II probes: the same action in the same state, `budget` times. Phase
    III removes the counterparts and inserts the probes' distribution as one verified record; the
    surprising experiences are dropped in its favour, since the probes have told more than they.

    When the prober gives up before the first probe, memory keeps what it has, the experiences are
    written beside it, and the next row of surprises starts from nothing. When it gives up later,
    the summary rests on the probes that there are.

    The defaults are for deterministic worlds; `STOCHASTIC` holds those for worlds with chance in
    them: `Glove(prober=prober, **STOCHASTIC)`.

    With `spread` (ours, not the paper's) a confirmed contradiction puts all older records in doubt.
    When the policy then has an action in mind about which memory knows nothing newer, that action is
    probed in that state before it is used; what memory says about it is realigned, or confirmed by the
    summary, and the policy is asked again if it was wrong. A state and action are checked once for each
    drift that was found.

    Args:
        prober: does the same again.
        epsilon: outcomes with a smaller share of the counterparts surprise; in (0, 1].
        persistence: how many surprises in a row start the probing; positive.
        budget: alpha, how many probes; a positive whole number, or a mapping with `outcomes`,
            `accuracy` and `confidence`, from which theorem 4.2 computes it.
        minimum: how many responses memory must hold before there is a test; positive.
        spread: whether doubt spreads to all that is older than a confirmed contradiction.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> import gymnasium as gym
        >>> from drift_agents.verifier.prober import ReplayProber
        >>> prober = ReplayProber(gym.make("FrozenLake-v1"))
        >>> Glove(prober=prober).budget
        1
        >>> Glove(prober=prober, **STOCHASTIC).budget
        254
    """

    name = "glove"

    def __init__(
        self,
        *,
        prober: Prober,
        epsilon: float = 0.5,
        persistence: int = 1,
        budget: Budget = 1,
        minimum: int = 1,
        spread: bool = False,
    ) -> None:
        super().__init__(prober=prober, epsilon=epsilon, persistence=persistence, budget=budget, minimum=minimum)
        self.spread = flag("spread", spread)
        if self.spread and prober.live:
            raise ArgumentError(
                "`spread` should go with a prober that can probe in the middle of an episode. "
                f"Received {type(prober).__name__}, which probes between two episodes"
            )
        self._doubt = DoubtSpread()

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the task's matching rule and a generator; nothing is in doubt yet."""
        super().bind(matching, rng)
        self._doubt = DoubtSpread()

    def consider(
        self, state: str, action: str, memory: Memory, prefix: Sequence[str], now: AgentClock
    ) -> Verdict | None:
        """Check what memory says about the action, when doubt has spread to it.

        Args:
            state: where the agent stands.
            action: what the policy wants to do.
            memory: the agent's memory.
            prefix: the actions that led to `state` since the episode began.
            now: the agent's clock.
        """
        if self._doubt.since is None:
            return None
        key, known = self._matching.state_key(state), memory.counterparts(state, action)
        if not self._doubt.covers(key, action, known):
            return None
        self._doubt.note_check(key, action)
        probed = self.prober.probe(state, action, prefix, self.budget)
        verdict = Verdict(probed=probed.outcomes, cost=probed.cost, about=(state, action))
        if not probed.transitions:
            return verdict
        if not contradicts(probed.transitions, known, self._matching):
            return verdict._replace(inserted=insert_all(probed.transitions, memory, self._matching, now))
        realigned = realign(known, probed.transitions, memory, self._matching, now)
        self._note(known, realigned, now)
        return verdict._replace(
            surprise=True,
            removed=realigned.removed,
            realigned=True,
            contradicted=True,
            inserted=realigned.inserted,
        )

    def _note(self, counterparts: Sequence[Record], realigned: RealignmentResult, now: AgentClock) -> None:
        """Let doubt spread when the probes have contradicted memory."""
        if self.spread and realigned.contradicted:
            self._doubt.note_drift(counterparts[-1].now.step, now.step)

    def _respond(self, found: SurpriseDetector, memory: Memory, now: AgentClock) -> Verdict:
        newest = found.experiences[-1]
        probed = self.prober.probe(newest.state, newest.action, found.prefix, self.budget)
        if not probed.transitions:
            observed = write_all(found.experiences, memory)
            return Verdict(surprise=True, statistic=found.share, cost=probed.cost, observed=observed)
        realigned = realign(found.counterparts, probed.transitions, memory, self._matching, now)
        self._note(found.counterparts, realigned, now)
        return Verdict(
            surprise=True,
            statistic=found.share,
            probed=probed.outcomes,
            cost=probed.cost,
            removed=realigned.removed,
            realigned=True,
            contradicted=realigned.contradicted,
            inserted=realigned.inserted,
        )


class GloveSpread(Glove):
    """GLOVE with `spread`: after a confirmed drift, old records are checked before they are used. Ours.

    Args:
        prober: does the same again.
        epsilon: as for `Glove`.
        persistence: as for `Glove`.
        budget: as for `Glove`; of every check too.
        minimum: as for `Glove`.
        spread: as for `Glove`.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    name = "glove_spread"

    def __init__(
        self,
        *,
        prober: Prober,
        epsilon: float = 0.5,
        persistence: int = 1,
        budget: Budget = 1,
        minimum: int = 1,
        spread: bool = True,
    ) -> None:
        super().__init__(
            prober=prober, epsilon=epsilon, persistence=persistence, budget=budget, minimum=minimum, spread=spread
        )


class RealignmentResult(NamedTuple):
    """What phase III did.

    Args:
        removed: what fell.
        inserted: the id of the verified summary (of the last one, when probes were made in several
            states that count as the same), `None` for a memory that holds nothing.
        contradicted: whether the probes speak against what memory said.
    """

    removed: Removed
    inserted: RecordId | None
    contradicted: bool


def realign(
    counterparts: Sequence[Record], fresh: Sequence[Transition], memory: Memory, matching: Matching, now: AgentClock
) -> RealignmentResult:
    """Phase III: counterparts out, verified summary in.

    Args:
        counterparts: what falls.
        fresh: what the probes brought; at least one.
        memory: whose records they are.
        matching: when two outcomes count as the same.
        now: the time of the summary.
    """
    contradicted = contradicts(fresh, counterparts, matching)
    removed = memory.remove([record.id for record in counterparts])
    return RealignmentResult(removed, insert_all(fresh, memory, matching, now), contradicted)


def insert_all(fresh: Sequence[Transition], memory: Memory, matching: Matching, now: AgentClock) -> RecordId | None:
    """Insert the verified summary of what probes brought; returns the id of the last record."""
    inserted = None
    for summary in summarise(fresh, matching):
        inserted = memory.insert_summary(summary.state, summary.action, summary.distribution, summary.n, now)
    return inserted


def read_budget(budget: Any) -> int:
    """A number of probes, from a number or from what theorem 4.2 needs.

    Args:
        budget: a positive whole number, or a mapping with `outcomes`, `accuracy` and `confidence`.

    Raises:
        ArgumentError: if it is neither.

    Example:
        >>> read_budget({"outcomes": 3, "accuracy": 0.2, "confidence": 0.05})
        254
    """
    if not isinstance(budget, Mapping):
        return count("budget", budget)
    wanted = {"outcomes", "accuracy", "confidence"}
    if set(budget) != wanted:
        raise ArgumentError(
            "`budget` should be a positive whole number or a mapping with accuracy, confidence and outcomes. "
            f"Received {dict(budget)!r}"
        )
    return probe_budget(**budget)

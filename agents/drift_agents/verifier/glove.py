"""GLOVE, the global verifier (paper, sections 3 and 4, algorithm 1), and sequential tests for stochastic environments.

The sequential tests are ours, not part of GLOVE, whose threshold either detects every slip as a surprise or hardly any
change; they use all responses. Both rest on the Dirichlet-multinomial ratio of
`drift_agents.verifier.evidence.log_ratio`, and both guarantees hold on average over its prior.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from drift_agents.envs.matching import Matching
from drift_agents.errors import ArgumentError
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Experience, ProbeCost, Record, RecordId, Removed, Transition, Verdict
from drift_agents.verifier.base import BaseVerifier, Prober, later_doubt
from drift_agents.verifier.evidence import change_statistic, contradicts, log_ratio, tabulate
from drift_agents.verifier.probing import (
    Budget,
    DetectedSurprise,
    ProbingOptions,
    ProbingVerifier,
    RealignmentResult,
    insert_all,
    realign,
    write_all,
)
from drift_envs.checks import check_count, check_flag, check_interval

if TYPE_CHECKING:
    from typing_extensions import Unpack

STOCHASTIC: Mapping[str, Any] = {
    "epsilon": 0.05,
    "persistence": 2,
    "budget": {"outcomes": 3, "accuracy": 0.2, "confidence": 0.05},
    "minimum": 10,
}
"""For stochastic environments with up to three outcomes: 254 probes by theorem 4.2."""


class Glove(ProbingVerifier):
    """GLOVE, the global verifier (paper, algorithm 1).

    Phase I finds the records of the same transition (without the new one) and tests for surprise, see
    `SurpriseVerifier`. Phase II probes: the same action in the same state, `budget` times. Phase
    III removes the old records and inserts the probes' distribution as one verified record; the
    surprising experiences are dropped, since the probes contain more information.

    If the prober returns no response, memory is unchanged, the experiences are written, and the next row of
    surprises starts anew. If it returns fewer than `budget`, the summary rests on those.

    The defaults are for deterministic environments; `STOCHASTIC` has options for stochastic ones:
    `Glove(prober=prober, **STOCHASTIC)`.

    With `spread` (ours, not the paper's) a confirmed contradiction puts all older records in doubt. When
    the policy then chooses an action without newer records, that action is probed before it is executed;
    its records are realigned, or confirmed by the summary, and if they were wrong the policy decides again.
    A state and action are probed once for each detected drift.

    Args:
        prober: repeats an action in a state.
        epsilon: outcomes with a smaller share of the records are surprises; in (0, 1].
        persistence: the number of surprises in a row that starts the probing; positive.
        budget: alpha, the number of probes; a positive whole number, or a mapping with `outcomes`,
            `accuracy` and `confidence`, from which theorem 4.2 computes it.
        minimum: the number of recorded responses from which on outcomes are tested; positive.
        spread: whether doubt spreads to all records older than a confirmed contradiction; by default not, and so for
            `GloveSpread`.
        probes_per_episode: the maximum number of probes in an episode (`drift_agents.verifier.probing`).
        probes_total: the maximum number of probes in the agent's life.

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
    spreads_by_default = False

    def __init__(
        self,
        *,
        prober: Prober,
        budget: Budget = 1,
        spread: bool | None = None,
        **options: Unpack[ProbingOptions],
    ) -> None:
        super().__init__(prober=prober, budget=budget, **options)
        self.spread = self.spreads_by_default if spread is None else check_flag("spread", spread)
        if self.spread and prober.live:
            raise ArgumentError(
                "`spread` should go with a prober that can probe in the middle of an episode. "
                f"Received {type(prober).__name__}, which probes between two episodes"
            )
        self._doubt = DoubtSpread()

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule and a generator, and clear all doubt."""
        super().bind(matching, rng)
        self._doubt = DoubtSpread()

    def consider(
        self, state: str, action: str, memory: Memory, prefix: Sequence[str], now: AgentClock
    ) -> Verdict | None:
        """Probe the action if its records are in doubt.

        Args:
            action: the action that the policy has chosen.
            prefix: the actions that led to `state` since the episode began.
        """
        if self._doubt.since is None:
            return None
        key, known = self._matching.state_key(state), memory.same_transitions(state, action)
        if not self._doubt.covers(key, action, known) or self._is_spent:
            return None
        self._doubt.note_check(key, action)
        probed = self.probe(state, action, prefix, self.budget)
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

    def _note(self, same_transitions: Sequence[Record], realigned: RealignmentResult, now: AgentClock) -> None:
        """Put older records in doubt if the probes have contradicted memory."""
        if self.spread and realigned.contradicted:
            self._doubt.note_drift(same_transitions[-1].now.step, now.step)

    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        newest = found.experiences[-1]
        probed = self.probe(newest.state, newest.action, found.prefix, self.budget)
        if not probed.transitions:
            observed = write_all(found.experiences, memory)
            return Verdict(surprise=True, statistic=found.share, cost=probed.cost, observed=observed)
        realigned = realign(found.same_transitions, probed.transitions, memory, self._matching, now)
        self._note(found.same_transitions, realigned, now)
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
    """GLOVE with `spread`: after a confirmed drift, old records are probed before they are used. Ours.

    Its options are those of `Glove`; only the default of `spread` differs.
    """

    name = "glove_spread"
    spreads_by_default = True


class DoubtSpread:
    """The time before which records are in doubt, and the pairs probed since.

    A contradiction confirmed by probes puts all records written before it in doubt. At another drift
    (`later_doubt`) all records are in doubt again, probed or not.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> old = Record(0, "s", "1", ((Outcome("F", 0.0, False), 1.0),), 1, AgentClock(0, 3))
        >>> spread = DoubtSpread()
        >>> spread.covers("s", "1", [old])
        False
        >>> spread.note_drift(newest=5, step=20)
        >>> spread.covers("s", "1", [old])
        True
        >>> spread.note_check("s", "1")
        >>> spread.covers("s", "1", [old])
        False
    """

    def __init__(self) -> None:
        self.since: int | None = None
        self._checked: set[tuple[Hashable, str]] = set()

    def note_drift(self, newest: int, step: int) -> None:
        """Record a contradiction confirmed by probes.

        Args:
            newest: the step of the newest contradicted record.
        """
        since = later_doubt(self.since, newest, step)
        if since != self.since:
            self.since = since
            self._checked.clear()

    def note_check(self, key: Hashable, action: str) -> None:
        """Record that a state and action have been probed, with or without a response."""
        self._checked.add((key, action))

    def covers(self, key: Hashable, action: str, known: Sequence[Record]) -> bool:
        """Whether the records of a state and action are in doubt: all of them old, the pair not probed since.

        Args:
            key: the state by the matching rule.
            known: the records of the pair, oldest first.
        """
        if self.since is None or not known or (key, action) in self._checked:
            return False
        return known[-1].now.step < self.since


class GlovePassive(BaseVerifier):
    """A change-point test on the records of each pair, without probes. Ours.

    Every experience is written. Then M is computed over the newest `window` records of its state and action
    (`drift_agents.verifier.evidence.change_statistic`); at M >= `alarm` the records before the best split are
    removed. Without a change, and while the window drops no record, the mean time to an alarm is at least `alarm`
    visits. Pairs with one observed outcome are skipped.

    Args:
        alarm: A, a lower bound on the mean number of visits until a false alarm; above 1.
        window: the number of newest records that are tested; at least 2.
        outcomes: K, the number of outcomes of a pair; the number of observed ones, if that is larger.
        strict: whether the guarantee holds for every distribution instead of on average over the prior.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> from drift_agents.memory.vanilla import VanillaMemory
        >>> from drift_agents.types import Outcome
        >>> memory, verifier = VanillaMemory(), GlovePassive()
        >>> for step, tile in enumerate("FFFFFFFFFFHHHHHH"):
        ...     now = AgentClock(0, step)
        ...     verdict = verifier.verify(Experience("s", "1", Outcome(tile, 0.0, False), 0.0, now), memory, [], now)
        >>> sorted({record.outcome.state for record in memory.records()})
        ['H']
    """

    name = "glove_passive"

    def __init__(self, *, alarm: float = 1000.0, window: int = 80, outcomes: int = 3, strict: bool = False) -> None:
        super().__init__()
        self.alarm = check_interval("alarm", alarm, "(1, inf)")
        self.window = check_count("window", window, 2)
        self.outcomes = check_count("outcomes", outcomes)
        self.strict = check_flag("strict", strict)

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write it, and remove the records before a detected change."""
        observed = memory.observe(experience, now)
        known = memory.same_transitions(experience.state, experience.action)
        recent = known[-self.window :]
        rows = tabulate(recent, self._matching, self.outcomes)
        if (rows.sum(axis=0) > 0).sum() < 2:
            return Verdict(observed=observed)
        statistic, split = change_statistic(rows, strict=self.strict)
        if statistic < self.alarm:
            return Verdict(statistic=statistic, observed=observed)
        kept = {record.id for record in recent[split:]}
        removed: Removed = memory.remove([record.id for record in known if record.id not in kept])
        return Verdict(
            surprise=True,
            statistic=statistic,
            removed=removed,
            realigned=True,
            contradicted=True,
            observed=observed,
        )


class GloveActive(ProbingVerifier):
    """GLOVE's trigger, then probes one by one until a ratio test has decided. Ours.

    After a surprise (`SurpriseVerifier`) it probes until the log ratio l of memory against the probes shows
    drift (l >= ln(1 / `delta`)) or no drift (l <= ln `stable`), at most `limit` times. After a drift memory is
    realigned as by GLOVE. Otherwise the surprising experiences and the probes' summary are written.

    Args:
        prober: repeats an action in a state.
        epsilon: outcomes with a smaller share of the records are surprises; in (0, 1], .05 if not given.
        persistence: the number of surprises in a row that starts the probing; positive.
        minimum: the number of recorded responses from which on outcomes are tested; positive, 10 if not given.
        delta: the accepted probability of a false detection; in (0, 1).
        stable: the ratio at which the probes confirm memory; in (0, 1).
        limit: the maximum number of probes; positive.
        outcomes: K, the number of outcomes of a pair; the number of observed ones, if that is larger.
        strict: whether the guarantee holds for every distribution instead of on average over the prior; it
            delays the detection of drift, and does not affect the confirmation of memory.
        probes_per_episode: the maximum number of probes in an episode (`drift_agents.verifier.probing`).
        probes_total: the maximum number of probes in the agent's life.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    name = "glove_active"

    def __init__(
        self,
        *,
        prober: Prober,
        delta: float = 0.05,
        stable: float = 0.1,
        limit: int = 100,
        outcomes: int = 3,
        strict: bool = False,
        **options: Unpack[ProbingOptions],
    ) -> None:
        check_count("limit", limit)
        options.setdefault("epsilon", 0.05)
        options.setdefault("minimum", 10)
        super().__init__(prober=prober, budget=limit, **options)
        self.delta = check_interval("delta", delta, "(0, 1)")
        self.stable = check_interval("stable", stable, "(0, 1)")
        self.outcomes = check_count("outcomes", outcomes)
        self.strict = check_flag("strict", strict)

    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        fresh, cost, drifted = self._test(found)
        verdict = Verdict(
            surprise=True,
            statistic=found.share,
            probed=tuple(transition.outcome for transition in fresh),
            cost=cost,
        )
        if drifted:
            done = realign(found.same_transitions, fresh, memory, self._matching, now)
            return verdict._replace(removed=done.removed, realigned=True, contradicted=True, inserted=done.inserted)
        observed = write_all(found.experiences, memory)
        inserted: RecordId | None = insert_all(fresh, memory, self._matching, now)
        return verdict._replace(observed=observed, inserted=inserted)

    def _test(self, found: DetectedSurprise) -> tuple[list[Transition], ProbeCost, bool]:
        """Probe until the test decides; returns the probes, their cost, and whether there was drift."""
        newest = found.experiences[-1]
        # The sample before the probes includes the surprising experiences. Memory alone ends just before a rare
        # outcome: then the first probe with that outcome would count as drift.
        remembered: list[Record | Transition] = [*found.same_transitions]
        remembered += [experience.transition for experience in found.experiences]
        fresh: list[Transition] = []
        cost = ProbeCost()
        while len(fresh) < self.budget:
            probed = self.probe(newest.state, newest.action, found.prefix, 1)
            cost += probed.cost
            if not probed.transitions:
                break
            fresh += probed.transitions
            counts = tabulate([*remembered, *fresh], self._matching, self.outcomes)
            before, after = (some.sum(axis=0).tolist() for some in np.split(counts, [len(remembered)]))
            if log_ratio(before, after, strict=self.strict) >= -math.log(self.delta):
                return fresh, cost, True
            # With many records the first value of the strict ratio is far below any bound, so the plain ratio
            # decides that there is no drift.
            if log_ratio(before, after) <= math.log(self.stable):
                break
        return fresh, cost, False

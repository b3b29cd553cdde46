"""Sequential tests for stochastic environments; ours, not part of GLOVE.

* `GlovePassive` - a Shiryaev-Roberts statistic over the records of each pair, without probes
* `GloveActive` - GLOVE's trigger, then probes one by one until a ratio test has decided

GLOVE's threshold either detects every slip as a surprise or hardly any change; these tests use all
responses. Both rest on the Dirichlet-multinomial ratio of `statistics.log_ratio`, and both
guarantees hold on average over its prior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Experience, ProbeCost, Record, RecordId, Removed, Transition, Verdict
from drift_agents.verifier.base import BaseVerifier, Prober
from drift_agents.verifier.glove.evidence import tabulate
from drift_agents.verifier.glove.probing import ProbingVerifier, insert_all, realign
from drift_agents.verifier.glove.statistics import change_statistic, log_ratio
from drift_agents.verifier.glove.surprise import DetectedSurprise, write_all
from drift_envs.checks import check_count, check_flag, check_interval


class GlovePassive(BaseVerifier):
    """A change-point test on the records of each pair, without probes. Ours.

    Every experience is written. Then M is computed over the newest `window` records of its state and action
    (`statistics.change_statistic`); at M >= `alarm` the records before the best split are removed. Without a
    change, and while the window drops no record, the mean time to an alarm is at least `alarm` visits. Pairs
    with one observed outcome are skipped.

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
        epsilon: outcomes with a smaller share of the records are surprises; in (0, 1].
        persistence: the number of surprises in a row that starts the probing; positive.
        minimum: the number of recorded responses from which on outcomes are tested; positive.
        delta: the accepted probability of a false detection; in (0, 1).
        stable: the ratio at which the probes confirm memory; in (0, 1).
        limit: the maximum number of probes; positive.
        outcomes: K, the number of outcomes of a pair; the number of observed ones, if that is larger.
        strict: whether the guarantee holds for every distribution instead of on average over the prior; it
            delays the detection of drift, and does not affect the confirmation of memory.
        probes_per_episode: the maximum number of probes in an episode (`drift_agents.verifier.glove.probing`).
        probes_total: the maximum number of probes in the agent's life.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    name = "glove_active"

    def __init__(
        self,
        *,
        prober: Prober,
        epsilon: float = 0.05,
        persistence: int = 1,
        minimum: int = 10,
        delta: float = 0.05,
        stable: float = 0.1,
        limit: int = 100,
        outcomes: int = 3,
        strict: bool = False,
        probes_per_episode: int | None = None,
        probes_total: int | None = None,
    ) -> None:
        check_count("limit", limit)
        super().__init__(
            prober=prober,
            epsilon=epsilon,
            persistence=persistence,
            budget=limit,
            minimum=minimum,
            probes_per_episode=probes_per_episode,
            probes_total=probes_total,
        )
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
        surprising = [experience.transition for experience in found.experiences]
        fresh: list[Transition] = []
        cost = ProbeCost()
        while len(fresh) < self.budget:
            probed = self.probe(newest.state, newest.action, found.prefix, 1)
            cost += probed.cost
            if not probed.transitions:
                break
            fresh += probed.transitions
            before, after = self._count([*found.same_transitions, *surprising], fresh)
            if log_ratio(before, after, strict=self.strict) >= -math.log(self.delta):
                return fresh, cost, True
            # With many records the first value of the strict ratio is far below any bound, so the plain ratio
            # decides that there is no drift.
            if log_ratio(before, after) <= math.log(self.stable):
                break
        return fresh, cost, False

    def _count(
        self, remembered: Sequence[Record | Transition], fresh: Sequence[Transition]
    ) -> tuple[list[float], list[float]]:
        """Records and probes as counts by outcome."""
        table = tabulate([*remembered, *fresh], self._matching, self.outcomes)
        before, after = table[: len(remembered)].sum(axis=0), table[len(remembered) :].sum(axis=0)
        return before.tolist(), after.tolist()

"""Sequential tests of our own, for worlds that answer by chance: not GLOVE, labelled so.

* `GlovePassive` - a Shiryaev-Roberts statistic over the records of each pair, no probe at all
* `GloveActive` - GLOVE's trigger, then probes one by one until a ratio test has decided

GLOVE's threshold must choose between firing at every slip and hardly ever; these tests weigh all
that was seen. Both rest on the Dirichlet-multinomial ratio of `statistics.log_ratio`, and both
guarantees hold on average over its prior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from drift_agents.checks import check_flag, check_integer, check_number
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Experience, ProbeCost, Record, RecordId, Removed, Transition, Verdict
from drift_agents.verifier.base import BaseVerifier, Prober
from drift_agents.verifier.glove.evidence import tabulate
from drift_agents.verifier.glove.probing import ProbingVerifier, insert_all, realign
from drift_agents.verifier.glove.statistics import change_statistic, log_ratio
from drift_agents.verifier.glove.surprise import DetectedSurprise, write_all


class GlovePassive(BaseVerifier):
    """A change-point test on the records of each pair, without probes. Ours.

    Every experience is written. Then M is computed over the newest `window` records of its state
    and action (`statistics.change_statistic`); at M >= `alarm` the records before the best split
    are removed, those after it stay. Without a change, and as long as the window forgets nothing, an
    alarm comes after `alarm` visits or later on average. A pair that has answered alike all the time is not looked at.

    Args:
        alarm: A, the mean number of visits of a pair without a change until a false alarm; above 1.
        window: how many of the newest records are looked at; at least 2.
        outcomes: K, how many outcomes a pair may have; what was seen, if that is more.
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
        self.alarm = check_number("alarm", alarm, "(1, inf)")
        self.window = check_integer("window", window, 2)
        self.outcomes = check_integer("outcomes", outcomes)
        self.strict = check_flag("strict", strict)

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write it, and remove what it and its like have shown to be of another time."""
        observed = memory.observe(experience, now)
        known = memory.counterparts(experience.state, experience.action)
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

    After a surprise (`SurpriseVerifier`) it probes until the ratio of memory against the probes
    says drift (l >= ln(1 / `delta`)) or no drift (l <= ln `stable`), `limit` times at the most. At
    a drift memory is realigned as by GLOVE. Otherwise the surprising experiences are written, and
    the probes' summary beside them: they were paid for, and are answers of this world too.

    Args:
        prober: does the same again.
        epsilon: outcomes with a smaller share of the counterparts surprise; in (0, 1].
        persistence: how many surprises in a row start the probing; positive.
        minimum: how many responses memory must hold before there is a test; positive.
        delta: the chance of taking chance for drift that is accepted; in (0, 1).
        stable: the ratio at which the probes are taken to confirm memory; in (0, 1).
        limit: how many probes at the most; positive.
        outcomes: K, how many outcomes a pair may have; what was seen, if that is more.
        strict: whether the guarantee holds for every distribution instead of on average over the prior; it
            makes a drift harder to find, and does not touch when the probes are taken to confirm memory.

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
    ) -> None:
        check_integer("limit", limit)
        super().__init__(prober=prober, epsilon=epsilon, persistence=persistence, budget=limit, minimum=minimum)
        self.delta = check_number("delta", delta, "(0, 1)")
        self.stable = check_number("stable", stable, "(0, 1)")
        self.outcomes = check_integer("outcomes", outcomes)
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
            done = realign(found.counterparts, fresh, memory, self._matching, now)
            return verdict._replace(removed=done.removed, realigned=True, contradicted=True, inserted=done.inserted)
        observed = write_all(found.experiences, memory)
        inserted: RecordId | None = insert_all(fresh, memory, self._matching, now)
        return verdict._replace(observed=observed, inserted=inserted)

    def _test(self, found: DetectedSurprise) -> tuple[list[Transition], ProbeCost, bool]:
        """Probe until it is decided; the probes, what they cost, and whether the world has drifted."""
        newest = found.experiences[-1]
        # All that was lived before the probes stands against them. Memory alone is what was lived until something
        # rare came: without that, the first probe that meets the rare outcome too would pass for a drift.
        surprising = [experience.transition for experience in found.experiences]
        fresh: list[Transition] = []
        cost = ProbeCost()
        while len(fresh) < self.budget:
            probed = self.prober.probe(newest.state, newest.action, found.prefix, 1)
            cost += probed.cost
            if not probed.transitions:
                break
            fresh += probed.transitions
            before, after = self._count([*found.counterparts, *surprising], fresh)
            if log_ratio(before, after, strict=self.strict) >= -math.log(self.delta):
                return fresh, cost, True
            # The strict ratio is no measure of peace: with a long memory its first value lies far below
            # any bound. The plain one says when there is nothing to be found.
            if log_ratio(before, after) <= math.log(self.stable):
                break
        return fresh, cost, False

    def _count(
        self, remembered: Sequence[Record | Transition], fresh: Sequence[Transition]
    ) -> tuple[list[float], list[float]]:
        """What memory says and what the probes brought, as counts by outcome."""
        table = tabulate([*remembered, *fresh], self._matching, self.outcomes)
        before, after = table[: len(remembered)].sum(axis=0), table[len(remembered) :].sum(axis=0)
        return before.tolist(), after.tolist()

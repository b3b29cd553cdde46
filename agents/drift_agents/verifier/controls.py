"""Controls: verifiers that do a part of what GLOVE does, so that each part's worth can be told.

* `Overwrite` - the newest outcome of each (state, action) wins, no probe
* `Forget` - GLOVE's detection; the counterparts go, no probe
* `ProbeKeep` - GLOVE's detection and probes; nothing is removed
* `RandomProbe` - GLOVE's detection and number of probes, spent on random known pairs
* `BaseExtra` - no verification; an experiment gives it GLOVE's probe steps as extra episodes
* `PeriodicWipe` - everything goes every so many episodes, seen or not

On deterministic worlds `Overwrite` and GLOVE make identical decisions, so a table without it
cannot show that probing helps.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from drift_agents.checks import check_integer
from drift_agents.errors import ArgumentError
from drift_agents.matching.base import Matching
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, Removed, Verdict
from drift_agents.verifier.base import BaseVerifier, NoVerifier, Prober
from drift_agents.verifier.glove.evidence import contradicts, share
from drift_agents.verifier.glove.probing import Budget, ProbingVerifier, insert_all, realign
from drift_agents.verifier.glove.surprise import DetectedSurprise, SurpriseVerifier, write_all


class Overwrite(BaseVerifier):
    """The newest outcome of each (state, action) replaces counterparts that differ; no probes.

    A record says otherwise when its most probable outcome does not count as the same.

    Example:
        >>> from drift_agents.memory.vanilla import VanillaMemory
        >>> from drift_agents.types import Outcome
        >>> memory, verifier = VanillaMemory(), Overwrite()
        >>> for step, tile in enumerate("FFH"):
        ...     now = AgentClock(0, step)
        ...     verdict = verifier.verify(Experience("s", "1", Outcome(tile, 0.0, False), 0.0, now), memory, [], now)
        >>> [record.outcome.state for record in memory.records()], verdict.removed.records
        (['H'], (0, 1))
    """

    name = "overwrite"

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Remove the counterparts that say otherwise, and write the experience."""
        known = memory.counterparts(experience.state, experience.action)
        new = experience.transition
        wrong = [
            record.id
            for record in known
            if not self._matching.same_outcome(new, new._replace(state=record.state, outcome=record.outcome))
        ]
        removed = memory.remove(wrong) if wrong else Removed()
        return Verdict(
            surprise=bool(wrong),
            statistic=share(new, known, self._matching)[0] if known else None,
            removed=removed,
            realigned=bool(wrong),
            contradicted=bool(wrong),
            observed=memory.observe(experience, now),
        )


class Forget(SurpriseVerifier):
    """GLOVE's detection without probes: removes the counterparts, writes the surprising experiences.

    Args:
        epsilon: outcomes with a smaller share of the counterparts surprise; in (0, 1].
        persistence: how many surprises in a row it takes; positive.
        minimum: how many responses memory must hold before there is a test; positive.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> Forget(epsilon=0.05, persistence=2, minimum=10).supervision
        'none'
    """

    name = "forget"

    def __init__(self, *, epsilon: float = 0.5, persistence: int = 1, minimum: int = 1) -> None:
        super().__init__(epsilon=epsilon, persistence=persistence, minimum=minimum)

    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        removed = memory.remove([record.id for record in found.counterparts])
        return Verdict(
            surprise=True,
            statistic=found.share,
            removed=removed,
            realigned=True,
            contradicted=True,
            observed=write_all(found.experiences, memory),
        )


class ProbeKeep(ProbingVerifier):
    """GLOVE's detection and probes without removal: the summary is added to what it contradicts.

    The surprising experiences are dropped in favour of the summary, as by GLOVE, so that removal
    is the one difference. When the prober gives up they are written.

    Args:
        prober: does the same again.
        epsilon: outcomes with a smaller share of the counterparts surprise; in (0, 1].
        persistence: how many surprises in a row start the probing; positive.
        budget: how many probes, as for `Glove`.
        minimum: how many responses memory must hold before there is a test; positive.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    name = "probe_keep"

    def __init__(
        self, *, prober: Prober, epsilon: float = 0.5, persistence: int = 1, budget: Budget = 1, minimum: int = 1
    ) -> None:
        super().__init__(prober=prober, epsilon=epsilon, persistence=persistence, budget=budget, minimum=minimum)

    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        newest = found.experiences[-1]
        probed = self.prober.probe(newest.state, newest.action, found.prefix, self.budget)
        verdict = Verdict(surprise=True, statistic=found.share, probed=probed.outcomes, cost=probed.cost)
        if not probed.transitions:
            return verdict._replace(observed=write_all(found.experiences, memory))
        wrong = contradicts(probed.transitions, found.counterparts, self._matching)
        inserted = insert_all(probed.transitions, memory, self._matching, now)
        return verdict._replace(realigned=True, contradicted=wrong, inserted=inserted)


class RandomProbe(ProbingVerifier):
    """GLOVE's detection and number of probes, spent on a random known pair instead of the surprising one.

    At GLOVE's moments one (state, action) is drawn from those that memory knows and that the agent
    has been to; it is probed `budget` times by the way on which the agent last came there, and its
    counterparts give way to the summary. The surprising experiences are written, their
    counterparts stay. Ways are of different lengths, so the number of probes is GLOVE's and the
    number of steps is not.

    Args:
        prober: does the same again; a privileged one goes back to the last step alone, so it is refused.
        epsilon: outcomes with a smaller share of the counterparts surprise; in (0, 1].
        persistence: how many surprises in a row start the probing; positive.
        budget: how many probes, as for `Glove`.
        minimum: how many responses memory must hold before there is a test; positive.

    Raises:
        ArgumentError: if an option is outside its range, or the prober is privileged.
    """

    name = "random_probe"

    def __init__(
        self, *, prober: Prober, epsilon: float = 0.5, persistence: int = 1, budget: Budget = 1, minimum: int = 1
    ) -> None:
        super().__init__(prober=prober, epsilon=epsilon, persistence=persistence, budget=budget, minimum=minimum)
        if prober.privileged:
            raise ArgumentError(
                "`prober` should be one that can go to any state, as `ReplayProber`. "
                f"Received {type(prober).__name__}, which goes back to the last state alone"
            )
        self._ways: dict[tuple[Hashable, str], tuple[str, tuple[str, ...]]] = {}

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the task's matching rule and a generator; the ways belong to the rule."""
        super().bind(matching, rng)
        self._ways.clear()

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Note the way, then write the experience, quarantine it, or respond to the dissonance."""
        key = (self._matching.state_key(experience.state), experience.action)
        self._ways[key] = (experience.state, tuple(prefix))
        return super().verify(experience, memory, prefix, now)

    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        observed = write_all(found.experiences, memory)
        known = [(key[1], *way) for key, way in self._ways.items() if memory.counterparts(way[0], key[1])]
        verdict = Verdict(surprise=True, statistic=found.share, observed=observed)
        if not known:  # the memory's own rule kept nothing
            return verdict
        action, state, prefix = known[int(self._rng.integers(len(known)))]
        probed = self.prober.probe(state, action, prefix, self.budget)
        verdict = verdict._replace(probed=probed.outcomes, cost=probed.cost)
        if not probed.transitions:
            return verdict
        realigned = realign(memory.counterparts(state, action), probed.transitions, memory, self._matching, now)
        return verdict._replace(
            removed=realigned.removed,
            realigned=True,
            contradicted=realigned.contradicted,
            inserted=realigned.inserted,
        )


class BaseExtra(NoVerifier):
    """The agent without a verifier, with as many more interactions as a verifier spends on probes.

    An experiment plays the extra episodes (`drift_agents.experiment.extra_episodes`), since a verifier cannot;
    what they took stands where the steps of probes stand. Elsewhere this is the plain agent. It answers
    whether GLOVE gains by verifying or by acting more.

    Args:
        like: the verifier whose probe steps are spent: its name, or its name with its options.

    Example:
        >>> BaseExtra(like={"glove": {"budget": 3}}).like
        {'glove': {'budget': 3}}
    """

    name = "base+extra"

    def __init__(self, *, like: str | Mapping[str, Any] = "glove") -> None:
        super().__init__()
        self.like = like


class PeriodicWipe(NoVerifier):
    """Removes all records at a fixed interval of episodes.

    A wipe finds nothing out, so it is no realignment; what fell stands in the verdict of
    `end_episode`.

    Args:
        every: episodes between two wipes; positive.

    Raises:
        ArgumentError: if `every` is not positive.

    Example:
        >>> PeriodicWipe(every=5).every
        5
    """

    name = "periodic_wipe"

    def __init__(self, *, every: int = 10) -> None:
        super().__init__()
        self.every = check_integer("every", every)

    def end_episode(self, result: Episode, memory: Memory, now: AgentClock) -> Sequence[Verdict]:
        """Wipe when it is time."""
        known = [record.id for record in memory.records()]
        if (now.episode + 1) % self.every or not known:
            return ()
        return (Verdict(removed=memory.remove(known)),)

"""Controls: verifiers with a part of GLOVE, which measure the effect of each part.

* `Overwrite` - the newest outcome of each (state, action) wins, no probe
* `Forget` - GLOVE's detection; the old records go, no probe
* `AnnounceOnly` - GLOVE's detection; the prompt says so, memory stays as it is
* `ProbeKeep` - GLOVE's detection and probes; nothing is removed
* `RandomProbe` - GLOVE's detection and number of probes, spent on random known pairs
* `BaseExtra` - no verification; an experiment gives it GLOVE's probe steps as extra episodes
* `PeriodicWipe` - removes all records at a fixed interval of episodes

In deterministic environments `Overwrite` and GLOVE make identical decisions, so a table without it
cannot show an effect of probing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from drift_agents.checks import check_integer
from drift_agents.matching.base import Matching
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, Removed, Verdict
from drift_agents.verifier.base import BaseVerifier, NoVerifier
from drift_agents.verifier.glove.evidence import contradicts, share
from drift_agents.verifier.glove.probing import ProbingVerifier, insert_all, realign
from drift_agents.verifier.glove.surprise import DetectedSurprise, SurpriseVerifier, write_all


class Overwrite(BaseVerifier):
    """The newest outcome of each (state, action) replaces records that differ; no probes.

    A record differs if its most probable outcome is not the same by the matching rule.

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
        """Remove the records that differ, and write the experience."""
        known = memory.same_transitions(experience.state, experience.action)
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
    """GLOVE's detection without probes: removes the old records, writes the surprising experiences.

    Args:
        epsilon: outcomes with a smaller share of the records are surprises; in (0, 1].
        persistence: the number of surprises in a row that starts the response; positive.
        minimum: the number of recorded responses from which on outcomes are tested; positive.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> Forget(epsilon=0.05, persistence=2, minimum=10).supervision
        'none'
    """

    name = "forget"

    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        removed = memory.remove([record.id for record in found.same_transitions])
        return Verdict(
            surprise=True,
            statistic=found.share,
            removed=removed,
            realigned=True,
            contradicted=True,
            observed=write_all(found.experiences, memory),
        )


class AnnounceOnly(SurpriseVerifier):
    """GLOVE's detection without probes and without realignment: prompts say since when memory is in doubt.

    The surprising experiences are written beside the old records. It measures what the line of doubt in the
    prompt (`drift_agents.agent.Agent`) does by itself.

    Args:
        epsilon: outcomes with a smaller share of the records are surprises; in (0, 1].
        persistence: the number of surprises in a row that starts the response; positive.
        minimum: the number of recorded responses from which on outcomes are tested; positive.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> AnnounceOnly().epsilon
        0.5
    """

    name = "announce_only"

    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        return Verdict(
            surprise=True,
            statistic=found.share,
            contradicted=True,
            observed=write_all(found.experiences, memory),
        )


class ProbeKeep(ProbingVerifier):
    """GLOVE's detection and probes without removal: the summary is added to what it contradicts.

    The surprising experiences are dropped, as by GLOVE, so that removal is the only difference. If the
    prober returns no response they are written.

    Args:
        prober: repeats an action in a state.
        epsilon: outcomes with a smaller share of the records are surprises; in (0, 1].
        persistence: the number of surprises in a row that starts the probing; positive.
        budget: the number of probes, as for `Glove`.
        minimum: the number of recorded responses from which on outcomes are tested; positive.
        probes_per_episode: the maximum number of probes in an episode (`drift_agents.verifier.glove.probing`).
        probes_total: the maximum number of probes in the agent's life.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    name = "probe_keep"

    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        newest = found.experiences[-1]
        probed = self._probe(newest.state, newest.action, found.prefix, self.budget)
        verdict = Verdict(surprise=True, statistic=found.share, probed=probed.outcomes, cost=probed.cost)
        if not probed.transitions:
            return verdict._replace(observed=write_all(found.experiences, memory))
        wrong = contradicts(probed.transitions, found.same_transitions, self._matching)
        inserted = insert_all(probed.transitions, memory, self._matching, now)
        return verdict._replace(realigned=True, contradicted=wrong, inserted=inserted)


class RandomProbe(ProbingVerifier):
    """GLOVE's detection and number of probes, spent on a random known pair instead of the surprising one.

    When GLOVE would probe, one (state, action) is drawn from the pairs that memory holds and the agent has
    visited; it is probed `budget` times along the path of its last visit, and its records are replaced by
    the summary. The surprising experiences are written, the old records stay. The number of probes is
    GLOVE's, the number of steps is not, since paths differ in length.

    Args:
        prober: does the same again; a privileged one is refused, since it restores the last state only.
        epsilon: outcomes with a smaller share of the records are surprises; in (0, 1].
        persistence: the number of surprises in a row that starts the probing; positive.
        budget: the number of probes, as for `Glove`.
        minimum: the number of recorded responses from which on outcomes are tested; positive.
        probes_per_episode: the maximum number of probes in an episode (`drift_agents.verifier.glove.probing`).
        probes_total: the maximum number of probes in the agent's life.

    Raises:
        ArgumentError: if an option is outside its range, or the prober is privileged.
    """

    name = "random_probe"

    takes_privileged_prober = False
    _visits: dict[tuple[Hashable, str], tuple[str, tuple[str, ...]]]

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the task's matching rule and a generator; clear the visits, which depend on the rule."""
        super().bind(matching, rng)
        self._visits = {}

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Record the visit, then write the experience, quarantine it, or respond to the surprise."""
        key = (self._matching.state_key(experience.state), experience.action)
        self._visits[key] = (experience.state, tuple(prefix))
        return super().verify(experience, memory, prefix, now)

    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        observed = write_all(found.experiences, memory)
        known = [(key[1], *visit) for key, visit in self._visits.items() if memory.same_transitions(visit[0], key[1])]
        verdict = Verdict(surprise=True, statistic=found.share, observed=observed)
        if not known:  # memory holds no record of a visited pair
            return verdict
        action, state, prefix = known[int(self._rng.integers(len(known)))]
        probed = self._probe(state, action, prefix, self.budget)
        verdict = verdict._replace(probed=probed.outcomes, cost=probed.cost)
        if not probed.transitions:
            return verdict
        realigned = realign(memory.same_transitions(state, action), probed.transitions, memory, self._matching, now)
        return verdict._replace(
            removed=realigned.removed,
            realigned=True,
            contradicted=realigned.contradicted,
            inserted=realigned.inserted,
        )


class BaseExtra(NoVerifier):
    """The agent without a verifier, with as many more interactions as a verifier spends on probes.

    An experiment plays the extra episodes (`drift_agents.experiment.extra_episodes`); their steps are logged
    in the fields of probes. It separates the effect of verification from that of more interaction.

    Args:
        like: the verifier whose number of probe steps is played: its name, or its name with its options.

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

    That is no realignment, since nothing was detected; the verdict of `end_episode` has the removed records.

    Args:
        every: the interval in episodes; positive.

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
        """Remove all records at the end of an interval."""
        known = [record.id for record in memory.records()]
        if (now.episode + 1) % self.every or not known:
            return ()
        return (Verdict(removed=memory.remove(known)),)

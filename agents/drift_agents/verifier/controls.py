"""Controls: verifiers with a part of GLOVE, which measure the effect of each part.

* `Overwrite` - the newest outcome of each (state, action) wins, no probe
* `Forget` - GLOVE's detection; the old records go, no probe
* `AnnounceOnly` - GLOVE's detection; the prompt says so, memory stays as it is

In deterministic environments `Overwrite` and GLOVE make identical decisions, so a table without it
cannot show an effect of probing.
"""

from __future__ import annotations

from collections.abc import Sequence

from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Experience, Removed, Verdict
from drift_agents.verifier.base import BaseVerifier
from drift_agents.verifier.glove.evidence import share
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

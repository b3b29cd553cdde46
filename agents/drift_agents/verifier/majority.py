"""A majority vote over the newest responses of each (state, action).

* `Majority` - memory holds the most frequent outcome of a window, as one record
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Sequence

import numpy as np

from drift_agents.matching import Matching
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Experience, Record, Removed, Verdict
from drift_agents.verifier.base import BaseVerifier
from drift_agents.verifier.glove.evidence import modes
from drift_envs.checks import check_count


class Majority(BaseVerifier):
    """Memory holds one record of each (state, action): the most frequent outcome of the newest responses.

    The window of a state (by the matching rule) and action holds its newest `window` responses; of equally frequent
    outcomes the one seen last counts. A response with another outcome is kept in the window alone. One with the most
    frequent outcome replaces the record, so that its time is that of the last confirmation. Memory is in doubt when
    the most frequent outcome becomes another one. With a window of 1 or 2 the newest response wins.

    Args:
        window: the number of newest responses that vote; positive.

    Raises:
        ArgumentError: if `window` is not positive.

    Example:
        >>> from drift_agents.memory.vanilla import VanillaMemory
        >>> from drift_agents.types import Outcome
        >>> memory, verifier = VanillaMemory(), Majority(window=3)
        >>> for step, tile in enumerate("FFHH"):
        ...     now = AgentClock(0, step)
        ...     verdict = verifier.verify(Experience("s", "1", Outcome(tile, 0.0, False), 0.0, now), memory, [], now)
        ...     (record,) = memory.records()
        ...     print(tile, verdict.contradicted, record.outcome.state, record.now.step)
        F False F 0
        F False F 1
        H False F 1
        H True H 3
    """

    name = "majority"

    def __init__(self, *, window: int = 5) -> None:
        super().__init__()
        self.window = check_count("window", window)
        self._responses: dict[tuple[Hashable, str], deque[Experience]] = {}

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule; clear the windows, which depend on it."""
        super().bind(matching, rng)
        self._responses.clear()

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Let the experience vote, and write the newest one of the majority if it or the majority is new."""
        key = (self._matching.state_key(experience.state), experience.action)
        responses = self._responses.setdefault(key, deque(maxlen=self.window))
        responses.append(experience)
        believed = self._find_majority(responses)
        known = memory.same_transitions(experience.state, experience.action)
        surprise = bool(known) and not self._is_same(experience, known[-1])
        contradicted = bool(known) and not self._is_same(believed, known[-1])
        if known and not contradicted and believed is not experience:
            return Verdict(surprise=surprise)
        return Verdict(
            surprise=surprise,
            removed=memory.remove([record.id for record in known]) if known else Removed(),
            realigned=contradicted,
            contradicted=contradicted,
            observed=memory.observe(believed, believed.now),
        )

    def _find_majority(self, responses: Sequence[Experience]) -> Experience:
        """The newest response with the most frequent outcome."""
        _, places = modes([response.transition for response in responses], self._matching)
        counts = Counter(places)
        newest = {place: index for index, place in enumerate(places)}
        return responses[newest[max(counts, key=lambda place: (counts[place], newest[place]))]]

    def _is_same(self, experience: Experience, record: Record) -> bool:
        """Whether a record's most probable outcome is that of the experience."""
        new = experience.transition
        return self._matching.same_outcome(new, new._replace(state=record.state, outcome=record.outcome))

"""Phase I of GLOVE: detect outcomes that contradict memory.

* `DetectedSurprise` - surprising experiences with the records of the same transition
* `SurpriseVerifier` - the detection that GLOVE and its controls share; they differ in `_respond`
* `write_all` - writes experiences with their own times
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from drift_agents.matching import Matching
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Experience, Record, RecordId, Verdict
from drift_agents.verifier.base import BaseVerifier
from drift_agents.verifier.glove.evidence import share
from drift_envs.checks import check_count, check_interval


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
        self._rng = np.random.default_rng(0)
        self._quarantine: dict[tuple[Hashable, str], list[Experience]] = {}

    @property
    def quarantined(self) -> tuple[Experience, ...]:
        """Experiences that are neither written nor dropped yet, in order of time."""
        held = [experience for experiences in self._quarantine.values() for experience in experiences]
        return tuple(sorted(held, key=lambda experience: experience.now))

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule and a generator, and clear the quarantine."""
        self._matching, self._rng = matching, rng
        self._quarantine.clear()

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write the experience, quarantine it, or respond to the surprise.

        Args:
            experience: the newest transition.
            memory: the agent's memory, without this experience.
            prefix: the actions that led to `experience.state` since the episode began.
            now: the agent's clock.
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

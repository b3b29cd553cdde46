"""Phase I of GLOVE: is the new outcome at odds with what memory says, and has it been so for long enough?

* `DetectedSurprise` - what was found when it has
* `SurpriseVerifier` - the part that GLOVE and its controls share; they differ in what they do next

A control that differs from GLOVE in one respect must not differ in another by accident. So all of
them watch with this code, and `_respond` is the one thing that each writes for itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from drift_agents.checks import check_integer, check_number
from drift_agents.matching.base import Matching
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Experience, Record, RecordId, Verdict
from drift_agents.verifier.base import BaseVerifier
from drift_agents.verifier.glove.evidence import share


class DetectedSurprise(NamedTuple):
    """An outcome at odds with memory, `persistence` times in a row.

    Args:
        experiences: the surprising experiences, oldest first; the last one is new. None of them is
            written yet.
        counterparts: what memory says about this state and action.
        share: Q_hist of the last one.
        prefix: the actions that led to the state since the episode began.
    """

    experiences: tuple[Experience, ...]
    counterparts: tuple[Record, ...]
    share: float
    prefix: tuple[str, ...]


class SurpriseVerifier(BaseVerifier, ABC):
    """Watches for outcomes that memory holds to be unlikely (GLOVE, equations 2 and 3).

    An experience whose state and action memory does not know (fewer than `minimum` responses) is
    exploration and is written. One with Q_hist >= `epsilon` is no surprise and is written. A
    surprise is quarantined, not written, since it would raise the Q_hist of the next one. With the
    `persistence`-th in a row for the same state (by the matching rule) and action, `_respond`
    decides what becomes of all of them. When an unsurprising experience breaks the row, the
    quarantined ones are written first, each with the time at which it was lived: they were the
    world's answers too, and without them rare outcomes could never enter Q_hist. A row may reach
    over several episodes.

    Args:
        epsilon: outcomes with a smaller share of the counterparts surprise; in (0, 1].
        persistence: how many surprises in a row it takes; positive.
        minimum: how many responses memory must hold before there is a test; positive.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    name: str

    def __init__(self, *, epsilon: float, persistence: int, minimum: int) -> None:
        super().__init__()
        self.epsilon = check_number("epsilon", epsilon, "(0, 1]")
        self.persistence = check_integer("persistence", persistence)
        self.minimum = check_integer("minimum", minimum)
        self._rng = np.random.default_rng(0)
        self._quarantine: dict[tuple[Hashable, str], list[Experience]] = {}

    @property
    def quarantined(self) -> tuple[Experience, ...]:
        """Experiences that are neither written nor replaced yet, in order of time."""
        held = [experience for experiences in self._quarantine.values() for experience in experiences]
        return tuple(sorted(held, key=lambda experience: experience.now))

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the task's matching rule and a generator; whatever was quarantined is forgotten."""
        self._matching, self._rng = matching, rng
        self._quarantine.clear()

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write the experience, quarantine it, or respond to the dissonance.

        Args:
            experience: what was just lived through.
            memory: the agent's memory, without this experience.
            prefix: the actions that led to `experience.state` since the episode began.
            now: the agent's clock.
        """
        known = memory.counterparts(experience.state, experience.action)
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
        return self._meet(DetectedSurprise(tuple(row), tuple(known), q_hist, tuple(prefix)), memory, now)

    def _meet(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        """Respond at once; verifiers that cannot do so put it off."""
        return self._respond(found, memory, now)

    @abstractmethod
    def _respond(self, found: DetectedSurprise, memory: Memory, now: AgentClock) -> Verdict:
        """Decide what becomes of the experiences and of their counterparts; nothing may get lost."""

    def _write(self, experience: Experience, memory: Memory, now: AgentClock) -> RecordId | None:
        """Write an experience, after those that were quarantined for its state and action."""
        if self._quarantine:
            key = (self._matching.state_key(experience.state), experience.action)
            for earlier in self._quarantine.pop(key, ()):
                memory.observe(earlier, earlier.now)
        return memory.observe(experience, now)


def write_all(experiences: Sequence[Experience], memory: Memory) -> RecordId | None:
    """Write experiences, each with the time at which it was lived; returns the id of the last one."""
    written = None
    for experience in experiences:
        written = memory.observe(experience, experience.now)
    return written

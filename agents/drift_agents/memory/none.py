"""No memory: the baseline without experience.

* `NoMemory` - stores nothing, so a verifier attached to it changes nothing
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from drift_agents.matching.base import Matching
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Outcome,
    Record,
    RecordId,
    Removed,
    Retrieved,
)


class NoMemory:
    """Stores nothing (GLOVE, section 5.1: "No Memory").

    Args:
        matching: not used; accepted so that all memories take the same argument.

    Example:
        >>> NoMemory().retrieve("anywhere", 5, AgentClock())
        Retrieved(records=(), weights=(), notes=())
    """

    name = "none"
    supervision = "none"

    def __init__(self, *, matching: Matching | None = None) -> None:
        pass

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """An empty result."""
        return Retrieved()

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Write nothing."""
        return None

    def same_transitions(self, state: str, action: str) -> list[Record]:
        """No records."""
        return []

    def records(self) -> Iterator[Record]:
        """No records."""
        return iter(())

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove nothing."""
        return Removed()

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId | None:
        """Write nothing."""
        return None

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Do nothing."""

"""No memory: the baseline without experience.

* `NoMemory` - stores nothing, so a verifier attached to it changes nothing
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from drift_agents.errors import MemoryStateError
from drift_agents.matching.base import Matching
from drift_agents.memory.transitions import hash_plain
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Outcome,
    Plain,
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
    needs: frozenset[str] = frozenset()
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

    def states(self) -> Iterator[str]:
        """No states."""
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

    def snapshot(self) -> dict[str, Any]:
        """The kind alone."""
        return {"kind": self.name}

    def restore(self, data: Plain) -> None:
        """Load a snapshot, which is empty.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory.
        """
        if data != {"kind": self.name}:
            raise MemoryStateError(f"not a snapshot of the memory 'none': {str(data)[:80]!r}")

    def content_hash(self) -> str:
        """A hash of the empty content."""
        return hash_plain(self.snapshot())

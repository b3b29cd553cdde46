"""No memory: the agent that starts every step from nothing.

* `NoMemory` - holds nothing, so a verifier attached to it changes nothing
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from drift_agents.errors import MemoryStateError
from drift_agents.matching.base import Matching
from drift_agents.memory.ledger import hash_plain
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
    """Holds nothing (GLOVE, section 5.1: "No Memory").

    Args:
        matching: taken so that all memories are made alike; not used.

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
        """Nothing."""
        return Retrieved()

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Nothing is written."""
        return None

    def counterparts(self, state: str, action: str) -> list[Record]:
        """Nothing."""
        return []

    def records(self) -> Iterator[Record]:
        """Nothing."""
        return iter(())

    def states(self) -> Iterator[str]:
        """Nothing."""
        return iter(())

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Nothing is there to be removed."""
        return Removed()

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId | None:
        """Nothing is written."""
        return None

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Nothing to learn with."""

    def snapshot(self) -> dict[str, Any]:
        """An empty content, with its kind."""
        return {"kind": self.name}

    def restore(self, data: Plain) -> None:
        """Take back a snapshot, which is empty.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory.
        """
        if data != {"kind": self.name}:
            raise MemoryStateError(f"not a snapshot of the memory 'none': {str(data)[:80]!r}")

    def content_hash(self) -> str:
        """The hash of nothing."""
        return hash_plain(self.snapshot())

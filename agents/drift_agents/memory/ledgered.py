"""What memories answer from their ledger alone, whatever they make of it.

* `LedgerMemory` - the part that is the same in all of them
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from drift_agents.errors import MemoryStateError
from drift_agents.memory.ledger import Ledger, hash_plain
from drift_agents.types import Plain, Record


class LedgerMemory(ABC):
    """A memory whose evidence lies in a ledger, `_ledger`; see `drift_agents.memory.base.Memory` for the rest.

    Example:
        >>> from drift_agents.memory.vanilla import VanillaMemory
        >>> from drift_agents.types import AgentClock, Experience, Outcome
        >>> memory = VanillaMemory()
        >>> now = AgentClock(0, 0)
        >>> _ = memory.observe(Experience("a", "1", Outcome("b", 0.0, False), 0.0, now), now)
        >>> [record.state for record in memory.counterparts("a", "1")], list(memory.states())
        (['a'], ['a'])
    """

    name: ClassVar[str]
    _ledger: Ledger

    def counterparts(self, state: str, action: str) -> list[Record]:
        """All records about this state and action, oldest first."""
        return self._ledger.counterparts(state, action)

    def records(self) -> Iterator[Record]:
        """All records, oldest first."""
        return iter(self._ledger)

    def states(self) -> Iterator[str]:
        """One text for every known state."""
        return self._ledger.states()

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""

    def content_hash(self) -> str:
        """A hash of the content."""
        return hash_plain(self.snapshot())

    def _refuse_other(self, data: Plain) -> Mapping[str, Any]:
        """The data, if it is a snapshot of this kind of memory."""
        if not isinstance(data, Mapping) or data.get("kind") != self.name:
            raise MemoryStateError(f"not a snapshot of the memory {self.name!r}: {str(data)[:80]!r}")
        return data

"""A memory that no longer writes what is lived.

* `FrozenMemory` - reads as before; its own rule is off, a verifier may still put it right
* `freeze` - a memory of any kind, frozen
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Plain, Record, RecordId, Removed, Retrieved


class FrozenMemory:
    """A memory whose own write rule is off: neither steps nor episodes are written.

    What a verifier finds out by probing still gets in (`insert_summary`), and what it removes goes.
    So does the experience that takes the place of what was removed about its state and action: that is
    how verifiers without probes put memory right (`overwrite`, `forget`). Reading stays as it is, with
    the side effects that belong to reading (strengths, last access, reflection on what is known).

    `freeze` makes one that also offers what a memory offers beyond the protocol.

    Args:
        memory: what is read. Its content is not copied.

    Example:
        >>> from drift_agents.memory.vanilla import VanillaMemory
        >>> memory = FrozenMemory(VanillaMemory())
        >>> fell = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock())
        >>> memory.observe(fell, AgentClock()) is None, list(memory.records())
        (True, [])
    """

    name: str = "frozen"
    needs: frozenset[str] = frozenset()
    supervision: str = "none"

    def __init__(self, memory: Memory) -> None:
        self.inner = memory
        self.name, self.needs, self.supervision = memory.name, memory.needs, memory.supervision
        self._asked: tuple[str, str] | None = None
        self._found: frozenset[RecordId] = frozenset()
        self._open = False

    def __getattr__(self, name: str) -> Any:
        """What a memory offers beyond the protocol."""
        if name == "inner":  # while a copy is made
            raise AttributeError(name)
        return getattr(self.inner, name)

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """What the memory recalls in this state, as ever."""
        self._asked, self._open = None, False
        return self.inner.retrieve(state, k, now)

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Nothing is written, but for what takes the place of records that were just removed."""
        if not self._open or (experience.state, experience.action) != self._asked:
            return None
        return self.inner.observe(experience, now)

    def counterparts(self, state: str, action: str) -> list[Record]:
        """All records about this state and action, oldest first."""
        known = self.inner.counterparts(state, action)
        self._asked, self._open = (state, action), False
        self._found = frozenset(record.id for record in known)
        return known

    def records(self) -> Iterator[Record]:
        """All records, oldest first."""
        return self.inner.records()

    def states(self) -> Iterator[str]:
        """One text for every known state."""
        return self.inner.states()

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records and what rests on them."""
        gone = list(ids)
        self._open = self._asked is not None and not self._found.isdisjoint(gone)
        return self.inner.remove(gone)

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId | None:
        """Write what a verifier found out by probing."""
        return self.inner.insert_summary(state, action, distribution, n, now)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Nothing is learned from it."""
        self._asked, self._open = None, False

    def snapshot(self) -> dict[str, Any]:
        """The content, as the memory itself gives it."""
        return self.inner.snapshot()

    def restore(self, data: Plain) -> None:
        """Take back a snapshot of the memory."""
        self.inner.restore(data)

    def content_hash(self) -> str:
        """A hash of the content."""
        return self.inner.content_hash()


def freeze(memory: Memory) -> FrozenMemory:
    """A memory of any kind, frozen: with everything that it offers beyond the protocol.

    Protocols that are checked at run time look for methods on the class, so the class gets them.

    Args:
        memory: what is read. Its content is not copied.

    Example:
        >>> from drift_agents.memory.vanilla import VanillaMemory
        >>> freeze(VanillaMemory(k=3)).k
        3
    """
    # A managed memory has what its store offers in the instance.
    own = [name for name, value in getattr(memory, "__dict__", {}).items() if callable(value) and name != "inner"]
    more = {
        name: _forwarded(name)
        for name in sorted({*dir(type(memory)), *own})
        if not name.startswith("_") and not hasattr(FrozenMemory, name)
    }
    kind: type[FrozenMemory] = type("Frozen", (FrozenMemory,), more)
    return kind(memory)


def _forwarded(name: str) -> property:
    return property(lambda self: getattr(self.inner, name))

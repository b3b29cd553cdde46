"""Written items under audit: how many are true, and whether they are read.

* `ItemAudit` - keeps track of the items of a memory, episode by episode
* `ItemCounts` - what it says about an episode
* `AuditedMemory`, `AuditedItem` - a memory whose items can be audited, and what it tells of one

Source: EDV, section 5.3 (people audited what was written; here the oracle does) and section 5.5.2 (how
often each bank is read, and what a hit is worth).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.memory.base import Memory
from drift_agents.types import Episode, RecordId


class AuditedItem(NamedTuple):
    """What an audit needs of an item.

    Args:
        id: its number, as it stands among what was retrieved.
        owner: the member in whose private bank it stands; empty for what everybody reads.
        evidence: the records that it rests on.
    """

    id: RecordId
    owner: str
    evidence: tuple[RecordId, ...]


@runtime_checkable
class AuditedMemory(Protocol):
    """A memory whose items can be audited."""

    def audited(self) -> Iterable[tuple[RecordId, str, tuple[RecordId, ...]]]:
        """All items, oldest first: number, owner (empty for what everybody reads), and the records that it cites."""
        ...


class ItemCounts(NamedTuple):
    """What an audit says about an episode.

    Args:
        items: how many items there are after it; `None` for a memory without any.
        truth: the share of them whose evidence the world could still answer, all of it; `None` without
            items or oracle.
        shared: steps at which an item of the shared bank stood in the prompt.
        private: the same of private banks.
    """

    items: int | None
    truth: float | None
    shared: int
    private: int


class ItemAudit:
    """Keeps track of the items of a memory.

    An item is true as long as every transition that it cites and that is still held could happen in the
    world as it is at this tick. What its words say beyond that is not judged.

    Args:
        world: where the agent plays.
    """

    def __init__(self, world: EvaluationWrapper) -> None:
        self._world = world
        self._owners: dict[RecordId, str] = {}
        self._true: dict[RecordId, bool] = {}
        self._values: Mapping[str, Any] | None = None

    def note(self, episode: Episode, memory: Memory) -> ItemCounts:
        """Audit an episode that has just ended.

        Args:
            episode: what happened, with its steps.
            memory: the agent's memory after it.
        """
        if not isinstance(memory, AuditedMemory):
            return ItemCounts(None, None, 0, 0)
        items = [AuditedItem(*one) for one in memory.audited()]
        read = [[self._owners.get(number) for number in step.retrieved] for step in episode.trace]
        shared = sum("" in owners for owners in read)
        private = sum(any(owners) for owners in read)
        self._owners.update((item.id, item.owner) for item in items)
        return ItemCounts(len(items), self._truth(items, memory), shared, private)

    def _truth(self, items: Sequence[AuditedItem], memory: Memory) -> float | None:
        """The share of the items that are true."""
        oracle, tick = self._world.oracle, self._world.tick
        if oracle is None or not items:
            return None
        values = self._world.knobs(tick)
        if values != self._values:
            self._true, self._values = {}, values
        cited = {number for item in items for number in item.evidence}
        missing = cited - set(self._true)
        if missing:
            for record in memory.records():
                if record.id in missing:
                    self._true[record.id] = all(
                        oracle.holds(record.state, record.action, outcome.state, outcome.ended, tick)
                        for outcome, _ in record.outcomes
                    )
        return sum(all(self._true.get(number, True) for number in item.evidence) for item in items) / len(items)

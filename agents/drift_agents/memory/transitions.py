"""The transition store that every memory but `none` keeps.

* `TransitionStore` - records of transitions, indexed by (state key, action): constant-time `same_transitions`
* `TransitionStoreMemory` - the methods of `Memory` that depend on the transition store alone
* `plain_record`, `read_record` - a record as plain data, and back
* `check_kind`, `reading_snapshot`, `read_integer`, `read_clock` - checks of snapshots
* `hash_plain` - a hash of plain data
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, ClassVar

from drift_agents.checks import is_integer
from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.matching.base import Exact, Matching
from drift_agents.types import AgentClock, Experience, Outcome, Plain, Record, RecordId


class TransitionStore:
    """Records of transitions, indexed by (state key, action).

    Every result depends on the present records alone, not on what was removed: states and actions
    come in the order of their oldest record, and a state has the text of its oldest record. So a
    restored transition store gives the same results as the saved one.

    Args:
        matching: when two states count as the same; `Exact` if not given.

    Example:
        >>> from drift_agents.types import AgentClock, Experience, Outcome
        >>> transitions = TransitionStore()
        >>> step = Experience("a", "1", Outcome("b", 0.0, False), 0.0, AgentClock())
        >>> transitions.append(step, AgentClock())
        0
        >>> [record.outcome.state for record in transitions.same_transitions("a", "1")]
        ['b']
    """

    def __init__(self, matching: Matching | None = None) -> None:
        self.matching: Matching = Exact() if matching is None else matching
        self._records: dict[RecordId, Record] = {}
        self._index: dict[Hashable, dict[str, dict[RecordId, Record]]] = {}
        self._oldest: dict[Hashable, Record] = {}
        self._in_order = True
        self._next_id = 0

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, record_id: object) -> bool:
        return record_id in self._records

    def __iter__(self) -> Iterator[Record]:
        """All records, oldest first."""
        return iter(self._records.values())

    def new_id(self) -> RecordId:
        """A number never used before, for records and for derived items alike."""
        self._next_id += 1
        return self._next_id - 1

    def append(self, experience: Experience, now: AgentClock) -> RecordId:
        """Write an experienced transition; returns its id."""
        return self._add(experience.state, experience.action, ((experience.outcome, 1.0),), 1, now, verified=False)

    def append_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Write a verified summary of `n` responses; returns its id.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        if not distribution or n < 1 or any(not p > 0 for _, p in distribution):
            raise ArgumentError(
                "a summary needs outcomes with positive probabilities and at least one response. "
                f"Received {distribution!r} and n = {n!r}"
            )
        ordered = sorted(distribution, key=lambda pair: (-pair[1], pair[0]))
        return self._add(state, action, tuple((outcome, float(p)) for outcome, p in ordered), n, now, verified=True)

    def _add(
        self,
        state: str,
        action: str,
        outcomes: tuple[tuple[Outcome, float], ...],
        n: int,
        now: AgentClock,
        *,
        verified: bool,
    ) -> RecordId:
        record = Record(self.new_id(), state, action, outcomes, n, now, verified)
        self._insert(record)
        return record.id

    def _insert(self, record: Record) -> None:
        key = self.matching.state_key(record.state)
        self._records[record.id] = record
        self._oldest.setdefault(key, record)
        self._index.setdefault(key, {}).setdefault(record.action, {})[record.id] = record

    def verified(self) -> Iterator[Record]:
        """The verified summaries, oldest first."""
        return (record for record in self if record.verified)

    def get(self, record_id: RecordId) -> Record | None:
        """The record of that id, or `None`."""
        return self._records.get(record_id)

    def select(self, ids: Iterable[RecordId]) -> list[Record]:
        """The records of these ids, in this order; unknown ids are ignored."""
        return [record for record_id in ids if (record := self._records.get(record_id)) is not None]

    def same_transitions(self, state: str, action: str) -> list[Record]:
        """All records of this state and action, oldest first."""
        by_action = self._index.get(self.matching.state_key(state))
        return list(by_action[action].values()) if by_action and action in by_action else []

    def by_action(self, state: str) -> dict[str, list[Record]]:
        """All records of this state, by action in the order of their oldest record, each oldest first."""
        by_action = self._index.get(self.matching.state_key(state), {})
        groups = [(action, list(records.values())) for action, records in by_action.items()]
        return dict(sorted(groups, key=lambda group: group[1][0].id))

    def states(self) -> Iterator[str]:
        """One text for every state that has records, in the order of their oldest record."""
        if not self._in_order:
            self._oldest = dict(sorted(self._oldest.items(), key=lambda item: item[1].id))
            self._in_order = True
        return (record.state for record in self._oldest.values())

    def remove(self, ids: Iterable[RecordId]) -> tuple[RecordId, ...]:
        """Remove these records; returns the ids of those that existed, in the given order."""
        removed = []
        for record_id in ids:
            record = self._records.pop(record_id, None)
            if record is None:
                continue
            removed.append(record_id)
            self._remove_from_index(record)
        return tuple(removed)

    def _remove_from_index(self, record: Record) -> None:
        key = self.matching.state_key(record.state)
        by_action = self._index[key]
        del by_action[record.action][record.id]
        if not by_action[record.action]:
            del by_action[record.action]
        if not by_action:
            del self._index[key], self._oldest[key]
        elif self._oldest[key].id == record.id:
            heads = (next(iter(records.values())) for records in by_action.values())
            self._oldest[key] = min(heads, key=lambda head: head.id)
            self._in_order = False

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        return {
            "next_id": self._next_id,
            "records": [plain_record(record) for record in self._records.values()],
        }

    def restore(self, data: Plain) -> None:
        """Load a snapshot; nothing changes if that fails.

        Raises:
            MemoryStateError: if the data is not a snapshot of a transition store.
        """
        with reading_snapshot("a transition store", data):
            records = [read_record(entry) for entry in data["records"]]
            next_id = data["next_id"]
            if not isinstance(next_id, int):
                raise TypeError(f"`next_id` is {next_id!r}")
            ids = [record.id for record in records]
            if any(a >= b for a, b in pairwise([-1, *ids, next_id])):
                raise ValueError("ids should grow from 0 and stay below `next_id`")
            restored = TransitionStore(self.matching)
            for record in records:
                restored._insert(record)
        self._records, self._index, self._oldest = restored._records, restored._index, restored._oldest
        self._in_order, self._next_id = True, next_id

    def restored(self, data: Plain) -> TransitionStore:
        """A transition store with the same matching rule and the content of a snapshot.

        Raises:
            MemoryStateError: if the data is not a snapshot of a transition store.
        """
        transitions = TransitionStore(self.matching)
        transitions.restore(data)
        return transitions

    def content_hash(self) -> str:
        """SHA-256 of the content in a canonical form, 16 hexadecimal digits."""
        return hash_plain(self.snapshot())


class TransitionStoreMemory(ABC):
    """A memory whose evidence is in `_transitions`; see `drift_agents.memory.base.Memory` for the rest.

    Example:
        >>> from drift_agents.memory.vanilla import VanillaMemory
        >>> from drift_agents.types import AgentClock, Experience, Outcome
        >>> memory = VanillaMemory()
        >>> now = AgentClock(0, 0)
        >>> _ = memory.observe(Experience("a", "1", Outcome("b", 0.0, False), 0.0, now), now)
        >>> [record.state for record in memory.same_transitions("a", "1")], list(memory.states())
        (['a'], ['a'])
    """

    name: ClassVar[str]
    _transitions: TransitionStore

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Append an experience; returns its id."""
        return self._note_written(self._transitions.append(experience, now))

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Append a verified summary of `n` responses; returns its id.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        return self._note_written(self._transitions.append_summary(state, action, distribution, n, now))

    def _note_written(self, record_id: RecordId) -> RecordId:
        """Update what depends on the transition store after a record was written."""
        return record_id

    def same_transitions(self, state: str, action: str) -> list[Record]:
        """All records of this state and action, oldest first."""
        return self._transitions.same_transitions(state, action)

    def records(self) -> Iterator[Record]:
        """All records, oldest first."""
        return iter(self._transitions)

    def states(self) -> Iterator[str]:
        """One text for every known state."""
        return self._transitions.states()

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        return {"kind": self.name, "transitions": self._transitions.snapshot(), **self._snapshot_own()}

    def restore(self, data: Plain) -> None:
        """Load a snapshot; nothing changes if that fails.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory.
        """
        check_kind(self.name, data)
        transitions = self._transitions.restored(data.get("transitions", {}))
        with reading_snapshot(f"the memory {self.name!r}", data):
            self._restore_own(data, transitions)

    def _snapshot_own(self) -> dict[str, Any]:
        """What a snapshot holds beside the transition store."""
        return {}

    def _restore_own(self, data: Plain, transitions: TransitionStore) -> None:
        """Take over the transition store of a snapshot and what it holds beside it.

        Everything is read before anything is changed; errors of Python's own refuse the snapshot.
        """
        self._transitions = transitions

    def content_hash(self) -> str:
        """A hash of the content."""
        return hash_plain(self.snapshot())


def check_kind(name: str, data: Plain) -> None:
    """Refuse data that is not a snapshot of the memory of that name.

    Raises:
        MemoryStateError: if it is anything else.
    """
    if not isinstance(data, Mapping) or data.get("kind") != name:
        raise MemoryStateError(f"not a snapshot of the memory {name!r}: {str(data)[:80]!r}")


@contextmanager
def reading_snapshot(kind: str, data: Any) -> Iterator[None]:
    """Turn Python's errors about data of the wrong form into ours.

    Args:
        kind: what the data should be a snapshot of, as in `the memory 'vanilla'`.
        data: the data; the message quotes its first 80 characters.

    Raises:
        MemoryStateError: if the block raises an error about the data.
    """
    try:
        yield
    except MemoryStateError:
        raise
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise MemoryStateError(f"not a snapshot of {kind}: {error!r} in {str(data)[:80]!r}") from error


def read_integer(value: Any) -> int:
    """A whole number of a snapshot.

    Raises:
        TypeError: if it is anything else.
    """
    if not is_integer(value):
        raise TypeError(f"{value!r} should be a whole number")
    return value


def read_clock(episode: Any, step: Any) -> AgentClock:
    """A time of a snapshot.

    Raises:
        TypeError: if a part is no whole number.
    """
    return AgentClock(read_integer(episode), read_integer(step))


def plain_record(record: Record) -> list[Any]:
    """A record as plain data, as snapshots hold it."""
    outcomes = [[[o.state, float(o.score), bool(o.ended)], p] for o, p in record.outcomes]
    return [record.id, record.state, record.action, outcomes, record.n, list(record.now), record.verified]


def read_record(entry: Any) -> Record:
    """A record of `plain_record`.

    Raises:
        TypeError: if a part has another type.
        ValueError: if it has other parts, no outcome, an impossible one, or no response.
    """
    record_id, state, action, outcomes, n, now, verified = entry
    record = Record(
        record_id,
        state,
        action,
        tuple((Outcome(after, float(score), ended), float(p)) for (after, score, ended), p in outcomes),
        n,
        AgentClock(*now),
        verified,
    )
    kinds = [(record.id, int), (state, str), (action, str), (n, int), (verified, bool)]
    kinds += [(t, int) for t in record.now]
    kinds += [pair for o, _ in record.outcomes for pair in ((o.state, str), (o.ended, bool))]
    for value, kind in kinds:
        if not isinstance(value, kind):
            raise TypeError(f"{value!r} should be of type {kind.__name__}")
    if not record.outcomes or n < 1 or any(not p > 0 for _, p in record.outcomes):
        raise ValueError(f"record {record_id} has no outcome, an impossible one, or no response")
    return record


def hash_plain(data: Plain) -> str:
    """SHA-256 of plain data in a canonical form, 16 hexadecimal digits.

    Example:
        >>> hash_plain({"b": 1, "a": 2}) == hash_plain({"a": 2, "b": 1})
        True
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]

"""The evidence ledger that every memory but `none` keeps.

* `Ledger` - records about transitions, indexed by (state key, action): constant-time `counterparts`
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.matching.base import Exact, Matching
from drift_agents.types import AgentClock, Experience, Outcome, Plain, Record, RecordId


class Ledger:
    """Records about transitions, indexed by (state key, action).

    Every answer is a function of the records alone, not of what was removed: states and actions
    come in the order of their oldest record, and a state is told by the text of its oldest record.
    So a restored ledger answers as the one that was saved.

    Args:
        matching: when two states count as the same; `Exact` if not given.

    Example:
        >>> from drift_agents.types import AgentClock, Experience, Outcome
        >>> ledger = Ledger()
        >>> step = Experience("a", "1", Outcome("b", 0.0, False), 0.0, AgentClock())
        >>> ledger.append(step, AgentClock())
        0
        >>> [record.outcome.state for record in ledger.counterparts("a", "1")]
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
        """How many records there are."""
        return len(self._records)

    def __contains__(self, record_id: object) -> bool:
        """Whether a record of that id is there."""
        return record_id in self._records

    def new_id(self) -> RecordId:
        """A number never used before, for records and for derived items alike."""
        self._next_id += 1
        return self._next_id - 1

    def append(self, experience: Experience, now: AgentClock) -> RecordId:
        """Write a lived transition; returns its id."""
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
        self._put(record)
        return record.id

    def _put(self, record: Record) -> None:
        key = self.matching.state_key(record.state)
        self._records[record.id] = record
        self._oldest.setdefault(key, record)
        self._index.setdefault(key, {}).setdefault(record.action, {})[record.id] = record

    def get(self, record_id: RecordId) -> Record | None:
        """The record of that id, if it is there."""
        return self._records.get(record_id)

    def counterparts(self, state: str, action: str) -> list[Record]:
        """All records about this state and action, oldest first."""
        by_action = self._index.get(self.matching.state_key(state))
        return list(by_action[action].values()) if by_action and action in by_action else []

    def at(self, state: str) -> dict[str, list[Record]]:
        """All records about this state, by action in the order of their oldest record, each oldest first."""
        by_action = self._index.get(self.matching.state_key(state), {})
        groups = [(action, list(records.values())) for action, records in by_action.items()]
        return dict(sorted(groups, key=lambda group: group[1][0].id))

    def states(self) -> Iterator[str]:
        """One text for every state that has records, in the order of their oldest record."""
        if not self._in_order:
            self._oldest = dict(sorted(self._oldest.items(), key=lambda item: item[1].id))
            self._in_order = True
        return (record.state for record in self._oldest.values())

    def __iter__(self) -> Iterator[Record]:
        """All records, oldest first."""
        return iter(self._records.values())

    def remove(self, ids: Iterable[RecordId]) -> tuple[RecordId, ...]:
        """Remove these records; returns the ids of those that were there, in the order asked."""
        gone = []
        for record_id in ids:
            record = self._records.pop(record_id, None)
            if record is None:
                continue
            gone.append(record_id)
            self._forget(record)
        return tuple(gone)

    def _forget(self, record: Record) -> None:
        """Take a record out of the index."""
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
            "records": [
                [r.id, r.state, r.action, _plain(r.outcomes), r.n, list(r.now), r.verified]
                for r in self._records.values()
            ],
        }

    def restore(self, data: Plain) -> None:
        """Take back a snapshot; nothing changes when that fails.

        Raises:
            MemoryStateError: if the data is not a snapshot of a ledger.
        """
        try:
            records = [_read(entry) for entry in data["records"]]
            next_id = data["next_id"]
            if not isinstance(next_id, int):
                raise TypeError(f"`next_id` is {next_id!r}")
            ids = [record.id for record in records]
            if any(a >= b for a, b in pairwise([-1, *ids, next_id])):
                raise ValueError("ids should grow from 0 and stay below `next_id`")
            fresh = Ledger(self.matching)
            for record in records:
                fresh._put(record)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise MemoryStateError(f"not a snapshot of a ledger: {error!r} in {str(data)[:80]!r}") from error
        self._records, self._index, self._oldest = fresh._records, fresh._index, fresh._oldest
        self._in_order, self._next_id = True, next_id

    def content_hash(self) -> str:
        """SHA-256 of the content in a canonical form, 16 hexadecimal digits."""
        return hash_plain(self.snapshot())


def _plain(outcomes: tuple[tuple[Outcome, float], ...]) -> list[Any]:
    return [[[o.state, float(o.score), bool(o.ended)], p] for o, p in outcomes]


def _read(entry: Any) -> Record:
    """One record of a snapshot."""
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

"""The evidence ledger that every memory but `none` keeps.

* `Ledger` - records about transitions, indexed by (state key, action): constant-time `counterparts`
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from drift_agents.errors import MemoryStateError
from drift_agents.matching import Exact, Matching
from drift_agents.types import AgentClock, Experience, Outcome, Plain, Record, RecordId


class Ledger:
    """Records about transitions, indexed by (state key, action).

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
        self._first_text: dict[Hashable, str] = {}
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
        """Write a verified summary of `n` responses; returns its id."""
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
        self._first_text.setdefault(key, record.state)
        self._index.setdefault(key, {}).setdefault(record.action, {})[record.id] = record

    def get(self, record_id: RecordId) -> Record | None:
        """The record of that id, if it is there."""
        return self._records.get(record_id)

    def counterparts(self, state: str, action: str) -> list[Record]:
        """All records about this state and action, oldest first."""
        by_action = self._index.get(self.matching.state_key(state))
        return list(by_action[action].values()) if by_action and action in by_action else []

    def at(self, state: str) -> dict[str, list[Record]]:
        """All records about this state, by action in order of first mention, each oldest first."""
        by_action = self._index.get(self.matching.state_key(state), {})
        return {action: list(records.values()) for action, records in by_action.items()}

    def states(self) -> Iterator[str]:
        """One text for every state that has records, in order of first mention."""
        return iter(self._first_text.values())

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
            key = self.matching.state_key(record.state)
            by_action = self._index[key]
            del by_action[record.action][record_id]
            if not by_action[record.action]:
                del by_action[record.action]
            if not by_action:
                del self._index[key]
                del self._first_text[key]
        return tuple(gone)

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        return {
            "next_id": self._next_id,
            "records": [
                [r.id, r.state, r.action, [[list(o), p] for o, p in r.outcomes], r.n, list(r.now), r.verified]
                for r in self._records.values()
            ],
        }

    def restore(self, data: Plain) -> None:
        """Take back a snapshot.

        Raises:
            MemoryStateError: if the data is not a snapshot of a ledger.
        """
        try:
            records = [
                Record(
                    int(record_id),
                    str(state),
                    str(action),
                    tuple((Outcome(str(o[0]), float(o[1]), bool(o[2])), float(p)) for o, p in outcomes),
                    int(n),
                    AgentClock(*(int(t) for t in now)),
                    bool(verified),
                )
                for record_id, state, action, outcomes, n, now, verified in data["records"]
            ]
            next_id = int(data["next_id"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise MemoryStateError(f"not a snapshot of a ledger: {error!r} in {str(data)[:80]!r}") from error
        self._records, self._index, self._first_text = {}, {}, {}
        for record in records:
            self._put(record)
        self._next_id = next_id

    def content_hash(self) -> str:
        """SHA-256 of the content in a canonical form, 16 hexadecimal digits."""
        return hash_plain(self.snapshot())


def hash_plain(data: Plain) -> str:
    """SHA-256 of plain data in a canonical form, 16 hexadecimal digits.

    Example:
        >>> hash_plain({"b": 1, "a": 2}) == hash_plain({"a": 2, "b": 1})
        True
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]

"""A ledger whose records are in a file.

* `StoredLedger` - the results of `Ledger`, with bounded RAM
* `digest` - a key of a matching rule in 16 bytes
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.matching.base import Matching
from drift_agents.memory.ledger import Ledger, plain_record, reading_snapshot
from drift_agents.memory.stored.file import COLUMNS, MemoryFile, decode_text, encode_text, read_record, write_record
from drift_agents.types import Plain, Record, RecordId

HOT = 32_000_000
"""About so many bytes of records are kept in RAM, those of the pairs that were queried last."""
EACH = 500
"""Bytes of a record beside its texts."""
FEW_STATES = 10_000
"""Up to so many states have their texts in RAM."""


def digest(key: Hashable) -> bytes:
    """A key of a matching rule in 16 bytes, equal in every process.

    Args:
        key: strings, numbers, booleans, `None`, and tuples of these.

    Raises:
        ArgumentError: if it is anything else.

    Example:
        >>> len(digest(("page", 3))), digest(("page", 3)) == digest(("page", 4))
        (16, False)
    """
    try:
        text = json.dumps(key)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"`matching` of a memory in a file should have keys made of strings, numbers and tuples. Received {key!r}"
        ) from error
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).digest()


def describe_matching(matching: Matching) -> str:
    """The rule by which the rows of a file were grouped, as JSON: its name and its public options.

    Example:
        >>> from drift_agents.matching.base import Exact
        >>> describe_matching(Exact())
        '{"name": "exact"}'
    """
    options = {
        key: value
        for key, value in vars(matching).items()
        if not key.startswith("_") and isinstance(value, (str, int, float, type(None)))
    }
    return json.dumps({"name": matching.name, **options}, sort_keys=True)


class StoredLedger(Ledger):
    """A `Ledger` whose records are in a file; all results are the same.

    In RAM are the records of the pairs queried last (`HOT`), the texts of up to `FEW_STATES` states, and SQLite's
    pages (`drift_agents.memory.stored.file.PAGES`).

    Args:
        file: the file, open for writing.
        matching: when two states count as the same. If the file was written by another rule, or by the same with
            other options, its rows are grouped anew.

    Raises:
        ArgumentError: if the rule's keys cannot be stored.
    """

    def __init__(self, file: MemoryFile, matching: Matching) -> None:
        super().__init__(matching)
        self._file = file
        # What stands in a snapshot in the place of the records.
        self._instead: list[Any] | None = None
        self._is_whole = True
        self.forget()
        rule = describe_matching(matching)
        if file.about("matching") != json.loads(rule):
            self._group_anew()
            file.note("matching", rule)

    def forget(self) -> None:
        """Clear what is in RAM, after the file was changed beneath it."""
        self._hot: OrderedDict[tuple[bytes, str], tuple[list[Record], int]] = OrderedDict()
        self._heat = 0
        self._texts: list[str] | None = None
        self._count = self._file.count()

    def _place(self, state: str) -> bytes:
        return digest(self.matching.state_key(state))

    def _group_anew(self) -> None:
        """Compute the places of all records by the present rule."""
        for record in self._file.read():
            self._file.write("UPDATE records SET place = ? WHERE id = ?", (self._place(record.state), record.id))
        self._file.write("DELETE FROM states")
        self._file.write("INSERT INTO states SELECT place, min(id) FROM records GROUP BY place")

    def __len__(self) -> int:
        return self._count

    def __contains__(self, record_id: object) -> bool:
        return isinstance(record_id, int) and self.get(record_id) is not None

    def __iter__(self) -> Iterator[Record]:
        """All records, oldest first."""
        return self._file.read()

    def verified(self) -> Iterator[Record]:
        """The verified summaries, oldest first."""
        return self._file.read("id > ? AND verified")

    def _insert(self, record: Record) -> None:
        place = self._place(record.state)
        self._file.write(f"INSERT INTO records VALUES ({', '.join('?' * 12)})", write_record(record, place))
        self._count += 1
        if not self._file.query("SELECT 1 FROM states WHERE place = ?", (place,)):
            self._file.write("INSERT INTO states VALUES (?, ?)", (place, record.id))
            if self._texts is not None:
                self._texts.append(record.state)
        found = self._hot.get((place, record.action))
        if found is not None:
            found[0].append(record)
            self._keep((place, record.action), found[0], found[1] + _weigh(record))

    def get(self, record_id: RecordId) -> Record | None:
        """The record of that id, or `None`."""
        rows = self._file.query(f"SELECT {COLUMNS} FROM records WHERE id = ?", (record_id,))
        return read_record(rows[0]) if rows else None

    def select(self, ids: Iterable[RecordId]) -> list[Record]:
        """The records of these ids, in this order; unknown ids are ignored."""
        return [record for record_id in ids if (record := self.get(record_id)) is not None]

    def counterparts(self, state: str, action: str) -> list[Record]:
        """All records of this state and action, oldest first."""
        return list(self._find(self._place(state), action))

    def _find(self, place: bytes, action: str) -> list[Record]:
        pair = place, action
        found = self._hot.get(pair)
        if found is not None:
            self._hot.move_to_end(pair)
            return found[0]
        rows = self._file.query(
            f"SELECT {COLUMNS} FROM records WHERE place = ? AND action = ? ORDER BY id", (place, encode_text(action))
        )
        records = list(map(read_record, rows))
        if records:
            self._keep(pair, records, sum(map(_weigh, records)))
        return records

    def _keep(self, pair: tuple[bytes, str], records: list[Record], weight: int) -> None:
        """Keep the records of a pair in RAM, and drop those that were queried longest ago."""
        self._drop(pair)
        self._hot[pair] = records, weight
        self._heat += weight
        while self._heat > HOT and len(self._hot) > 1:
            self._drop(next(iter(self._hot)))

    def _drop(self, pair: tuple[bytes, str]) -> None:
        _, weight = self._hot.pop(pair, ([], 0))
        self._heat -= weight

    def by_action(self, state: str) -> dict[str, list[Record]]:
        """All records of this state, by action in the order of their oldest record, each oldest first."""
        place = self._place(state)
        actions = self._file.query(
            "SELECT action, min(id) AS oldest FROM records WHERE place = ? GROUP BY action ORDER BY oldest", (place,)
        )
        names = [decode_text(action) for action, _ in actions]
        return {action: list(self._find(place, action)) for action in names}

    def states(self) -> Iterator[str]:
        """One text for every state that has records, in the order of their oldest record."""
        if self._texts is None and self._file.query("SELECT count(*) FROM states")[0][0] <= FEW_STATES:
            self._texts = list(self._read_states())
        if self._texts is not None and len(self._texts) > FEW_STATES:
            self._texts = None
        return self._read_states() if self._texts is None else iter(tuple(self._texts))

    def _read_states(self) -> Iterator[str]:
        return (record.state for record in self._file.read("id > ? AND id IN (SELECT oldest FROM states)"))

    def remove(self, ids: Iterable[RecordId]) -> tuple[RecordId, ...]:
        """Remove these records; returns the ids of those that existed, in the given order."""
        removed = []
        for record_id in ids:
            record = self.get(record_id)
            if record is not None:
                removed.append(record_id)
                self._delete(record)
        return tuple(removed)

    def _delete(self, record: Record) -> None:
        place = self._place(record.state)
        self._file.write("DELETE FROM records WHERE id = ?", (record.id,))
        self._count -= 1
        found = self._hot.get((place, record.action))
        if found is not None:
            rest = [other for other in found[0] if other.id != record.id]
            self._keep((place, record.action), rest, found[1] - _weigh(record))
        ((oldest,),) = self._file.query("SELECT oldest FROM states WHERE place = ?", (place,))
        if oldest != record.id:
            return
        self._texts = None
        ((oldest,),) = self._file.query("SELECT min(id) FROM records WHERE place = ?", (place,))
        if oldest is None:
            self._file.write("DELETE FROM states WHERE place = ?", (place,))
        else:
            self._file.write("UPDATE states SET oldest = ? WHERE place = ?", (oldest, place))

    @contextmanager
    def referring(self, records: list[Any] | None) -> Iterator[None]:
        """Let snapshots made in the block hold something in the place of the records.

        Args:
            records: what they hold: `None` for the records of the file, which `restore` leaves alone.
        """
        self._instead, self._is_whole = records, False
        try:
            yield
        finally:
            self._instead, self._is_whole = None, True

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        if not self._is_whole:
            return {"next_id": self._next_id, "records": self._instead}
        return {"next_id": self._next_id, "records": list(map(plain_record, self))}

    def restore(self, data: Plain) -> None:
        """Load a snapshot, or leave the file as it is for one without records (`referring`).

        Raises:
            MemoryStateError: if the data is not a snapshot of a ledger.
        """
        with reading_snapshot("a ledger", data):
            if data["records"] is None:
                self._next_id = int(data["next_id"])
                return
        # Read as a whole first, so that nothing changes if that fails.
        read = Ledger(self.matching)
        read.restore(data)
        self._file.write("DELETE FROM records")
        self._file.write("DELETE FROM states")
        self.forget()
        for record in read:
            self._insert(record)
        self._next_id = int(data["next_id"])

    def checkpoint(self) -> Callable[[], None]:
        """A function that takes the ledger back to the present, when the rows of the file are back."""
        next_id = self._next_id

        def undo() -> None:
            self.forget()
            self._next_id = next_id

        return undo

    def restored(self, data: Plain) -> Ledger:
        """This ledger with the content of a snapshot: a file holds one.

        Raises:
            MemoryStateError: if the data is not a snapshot of a ledger.
        """
        self.restore(data)
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse copies.

        Raises:
            MemoryStateError: always.
        """
        raise MemoryStateError(
            f"{self._file.path}: a memory in a file cannot be copied or pickled, since a file has one writer. "
            "Restore its snapshot in another memory"
        )


class LazyRecords(list[Any]):
    """The records of a file as plain data, for JSON encoders: read while they are written.

    Args:
        file: the file.
    """

    def __init__(self, file: MemoryFile) -> None:
        super().__init__()
        self._file = file

    def __len__(self) -> int:
        return self._file.count()

    def __iter__(self) -> Iterator[Any]:
        """The records, oldest first."""
        return map(plain_record, self._file.read())


def _weigh(record: Record) -> int:
    return EACH + len(record.state) + sum(len(outcome.state) for outcome, _ in record.outcomes)

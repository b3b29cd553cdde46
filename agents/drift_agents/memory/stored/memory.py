"""Any memory, in a SQLite file.

* `StoredMemory` - the memory: its records are in the file, the rest is in RAM and written when an episode ends
* `open_stored` - a stored memory with every method of the memory that it wraps
* `Summary`, `read_summary` - what a file holds
* `export_memory`, `import_memory` - a file as JSON, and back
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TextIO

from drift_agents.errors import DriftAgentsError, MemoryStateError
from drift_agents.matching.base import Exact
from drift_agents.memory.base import DurableMemory, Memory, make_memory
from drift_agents.memory.ledger import Ledger, LedgerHolder, reading_snapshot
from drift_agents.memory.stored.file import MemoryFile
from drift_agents.memory.stored.ledger import LazyRecords, StoredLedger
from drift_agents.memory.views import forwarding
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Plain, Record, RecordId, Removed, Retrieved

FORMAT = "drift-agents memory 1"
"""What an export names as its format."""


class StoredMemory:
    """A memory whose records are in a SQLite file.

    All results are those of the memory that it wraps. Its ledger reads and writes the file
    (`drift_agents.memory.stored.ledger.StoredLedger`), so that RAM does not grow with the number of records.
    What the memory derives from them (strengths, summaries, skills, insights, trajectories, beliefs, items) is in
    RAM, and is written as a whole when it has changed.

    A transaction is an episode: `end_episode`, `commit`, `close` and `restore` commit. A process that is killed
    loses what it wrote since, and the file opens as of then.

    Args:
        memory: the memory, without content of its own unless the file is new.
        file: the file; created if it does not exist.
        options: the memory's options, for `drift-agents memory show`.

    Raises:
        MemoryStateError: if the file cannot be opened, is no memory's, holds another kind of memory, or is held by
            another process.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> now, fell = AgentClock(), Outcome("hole", 0.0, True)
        >>> with TemporaryDirectory() as folder:
        ...     with make_memory("vanilla", file=f"{folder}/m.sqlite") as memory:
        ...         _ = memory.observe(Experience("a", "1", fell, 0.0, now), now)
        ...     with make_memory("vanilla", file=f"{folder}/m.sqlite") as memory:
        ...         [record.outcome.state for record in memory.counterparts("a", "1")]
        ['hole']
    """

    name: str = "stored"
    needs: frozenset[str] = frozenset()
    supervision: str = "none"

    def __init__(self, memory: Memory, file: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None:
        self.inner = memory
        self.name, self.needs, self.supervision = memory.name, memory.needs, memory.supervision
        self._file = MemoryFile(file)
        self._ledger: StoredLedger | None = None
        self._written = ""
        try:
            self._open(dict(options or {}))
        except BaseException:
            self._file.close()
            raise

    def _open(self, options: Mapping[str, Any]) -> None:
        state = self._file.about("state")
        kind = self._file.about("memory")
        if kind not in (None, self.name):
            raise MemoryStateError(f"{self._file.path}: holds a memory {kind!r}. Received {self.name!r}")
        if isinstance(self.inner, LedgerHolder):
            self.inner.use_ledger(self._move if state is None else self._attach)
        self._file.note("memory", json.dumps(self.name))
        self._file.note("options", json.dumps(_plain_options(options), sort_keys=True))
        if state is not None:
            self.inner.restore(state)
        self.commit()

    def _attach(self, ledger: Ledger) -> Ledger:
        """The ledger in the file, in place of one in RAM."""
        self._ledger = StoredLedger(self._file, ledger.matching)
        return self._ledger

    def _move(self, ledger: Ledger) -> Ledger:
        """The ledger in the file, with the content of the one in RAM."""
        moved = self._attach(ledger)
        moved.restore(ledger.snapshot())
        return moved

    def __getattr__(self, name: str) -> Any:
        """An attribute of the memory beyond the protocol."""
        if name == "inner":  # while a copy is made
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse copies.

        Raises:
            MemoryStateError: always.
        """
        raise MemoryStateError(
            f"{self._file.path}: a memory in a file cannot be copied or pickled, since a file has one writer. "
            "Restore its snapshot in another memory"
        )

    def __enter__(self) -> DurableMemory:
        """The memory itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()

    def commit(self) -> None:
        """Write what has changed since the last commit.

        Raises:
            MemoryStateError: if the file cannot be written.
        """
        state = json.dumps(self._state(None))
        if state != self._written:
            self._file.note("state", state)
        self._file.commit()
        self._written = state

    def close(self) -> None:
        """Commit, and close the file; the memory cannot be used afterwards."""
        if not self._file.is_closed:
            self.commit()
            self._file.close()

    def _state(self, records: list[Any] | None) -> dict[str, Any]:
        """The snapshot, with something in the place of the records (`StoredLedger.referring`)."""
        with self._referring(records):
            return self.inner.snapshot()

    @contextmanager
    def _referring(self, records: list[Any] | None) -> Iterator[None]:
        if self._ledger is None:
            yield
            return
        with self._ledger.referring(records):
            yield

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """Records and notes for this state."""
        return self.inner.retrieve(state, k, now)

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Write an experience by the memory's own rule."""
        return self.inner.observe(experience, now)

    def counterparts(self, state: str, action: str) -> list[Record]:
        """All records of this state and action, oldest first."""
        return self.inner.counterparts(state, action)

    def records(self) -> Iterator[Record]:
        """All records, oldest first."""
        return self.inner.records()

    def states(self) -> Iterator[str]:
        """One text for every known state."""
        return self.inner.states()

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records and the items that depend on them."""
        return self.inner.remove(ids)

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId | None:
        """Write a verifier's summary."""
        return self.inner.insert_summary(state, action, distribution, n, now)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Process a finished episode, and commit."""
        self.inner.end_episode(result, now)
        self.commit()

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        return self.inner.snapshot()

    def restore(self, data: Plain) -> None:
        """Load a snapshot, and commit; nothing changes if that fails.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory.
        """
        with self._file.all_or_nothing(None if self._ledger is None else self._ledger.checkpoint()):
            self.inner.restore(data)
        self.commit()

    def content_hash(self) -> str:
        """A hash of the content, that of the memory in RAM; records are read one by one."""
        if self._ledger is None:
            return self.inner.content_hash()
        digest = hashlib.sha256()
        encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
        for part in encoder.iterencode(self._state(LazyRecords(self._file))):
            digest.update(part.encode("ascii"))
        return digest.hexdigest()[:16]


def open_stored(memory: Memory, file: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> StoredMemory:
    """A memory whose records and state are in a SQLite file.

    Run-time protocols look for methods on the class, so the class gets a property for each of the memory's own.

    Args:
        memory: the memory, without content of its own unless the file is new.
        file: the file; created if it does not exist.
        options: the memory's options, for `drift-agents memory show`.

    Raises:
        MemoryStateError: if the file cannot be opened, is no memory's, holds another kind of memory, or is held by
            another process.
    """
    return forwarding(StoredMemory, memory)(memory, file, options)


def _plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that JSON can hold; models and rules are given anew when a file is opened."""
    plain = {}
    for key, value in options.items():
        try:
            plain[key] = json.loads(json.dumps(value))
        except (TypeError, ValueError):
            continue
    return plain


class Summary(NamedTuple):
    """What a file holds.

    Args:
        memory: the memory's name.
        options: its options.
        matching: the name and the options of the rule by which states were the same; `None` without records.
        version: of the tables.
        records: the number of records.
        verified: how many of these are verified summaries.
        states: the number of states.
        last: the newest record's time; `None` without records.
        derived: the number of entries of each part of what was derived from the records.
        size: of the file in bytes.
    """

    memory: str
    options: Mapping[str, Any]
    matching: Mapping[str, Any] | None
    version: int
    records: int
    verified: int
    states: int
    last: AgentClock | None
    derived: Mapping[str, int]
    size: int


def read_summary(file: MemoryFile) -> Summary:
    """What a file holds.

    Args:
        file: the file, open for reading.

    Raises:
        MemoryStateError: if the file holds no memory.
    """
    state = _read_state(file)
    ((verified, states),) = file.query("SELECT count(*) FILTER (WHERE verified), count(DISTINCT place) FROM records")
    newest = file.query("SELECT episode, step FROM records ORDER BY id DESC LIMIT 1")
    return Summary(
        memory=file.about("memory"),
        options=file.about("options"),
        matching=file.about("matching"),
        version=file.version,
        records=file.count(),
        verified=verified,
        states=states,
        last=AgentClock(*newest[0]) if newest else None,
        derived=dict(_sizes(state)),
        size=file.path.stat().st_size,
    )


def _sizes(state: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The parts of a state that are lists or mappings, with their number of entries."""
    for key, value in state.items():
        if key in ("store", "stream") and isinstance(value, Mapping):
            yield from _sizes(value)
        elif key != "ledger" and isinstance(value, (list, Mapping)) and value:
            yield key, len(value)


def _read_state(file: MemoryFile) -> dict[str, Any]:
    state = file.about("state")
    if not isinstance(state, dict):
        raise MemoryStateError(f"{file.path}: holds no memory")
    return state


def export_memory(file: MemoryFile, out: TextIO) -> int:
    """Write a file as JSON: `format`, `memory`, `options` and `snapshot`, which `restore` takes.

    Args:
        file: the file, open for reading. Records are read one by one.
        out: where to write.

    Returns:
        The number of records.

    Raises:
        MemoryStateError: if the file holds no memory.
    """
    state = _read_state(file)
    holder = _find_ledger(state)
    count = 0
    if holder is not None:
        holder["records"] = LazyRecords(file)
        count = file.count()
    data = {"format": FORMAT, "memory": file.about("memory"), "options": file.about("options"), "snapshot": state}
    for part in json.JSONEncoder().iterencode(data):
        out.write(part)
    out.write("\n")
    return count


def _find_ledger(state: Any) -> dict[str, Any] | None:
    """The part of a snapshot that is a ledger's: directly, or in that of a managed store or a stream."""
    if not isinstance(state, dict):
        return None
    if isinstance(state.get("ledger"), dict):
        ledger: dict[str, Any] = state["ledger"]
        return ledger
    found = (_find_ledger(state.get(key)) for key in ("store", "stream"))
    return next((ledger for ledger in found if ledger is not None), None)


def import_memory(text: str, path: Path) -> int:
    """Write an export to a new file.

    The memory it names reads the snapshot first, so that nothing is written if it refuses. States are the same by
    their texts until the file is opened with another rule.

    Args:
        text: the export.
        path: the file, which should not exist.

    Returns:
        The number of records.

    Raises:
        MemoryStateError: if the text is no export, the memory refuses it, or the file exists.
    """
    if path.exists():
        raise MemoryStateError(f"{path}: exists already")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MemoryStateError(f"not an export of a memory: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise MemoryStateError(f"not an export of a memory, whose `format` is {FORMAT!r}: {text[:80]!r}")
    with reading_snapshot("an export", data):
        name, options, state = data["memory"], dict(data["options"]), data["snapshot"]
    try:
        make_memory(name, **options).restore(state)
    except MemoryStateError:
        raise
    except DriftAgentsError as error:
        raise MemoryStateError(f"the memory {name!r} of the export cannot be made: {error}") from error
    file = MemoryFile(path)
    try:
        ledger = _find_ledger(state)
        count = 0
        if ledger is not None:
            StoredLedger(file, Exact()).restore(ledger)
            count, ledger["records"] = file.count(), None
        file.note("memory", json.dumps(name))
        file.note("options", json.dumps(options, sort_keys=True))
        file.note("state", json.dumps(state))
        file.commit()
    except BaseException:
        file.close()
        path.unlink(missing_ok=True)
        raise
    file.close()
    return count

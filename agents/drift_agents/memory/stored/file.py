"""The SQLite file of a memory: its tables, its versions, who holds it.

* `MemoryFile` - the file, open for one writer or for readers
* `MIGRATIONS` - the statements that make each version of the tables from the one before
* `write_record`, `read_record` - a record as a row of the table `records`
* `encode_text`, `decode_text` - texts that are no valid Unicode are stored as bytes
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import socket
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from drift_agents.errors import MemoryStateError
from drift_agents.types import AgentClock, Outcome, Record

APPLICATION = 0x521F_3E30
"""SQLite's `application_id` of these files, so that another program's file is never written."""

Row = tuple[Any, ...]

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        # `place` is a digest of the state's key by the matching rule. A record of one certain outcome has it in
        # `after`, `score`, `ended`; `outcomes` is NULL then, and otherwise JSON.
        # Clustered by pair, so that the counterparts of a step are on one page or two.
        """CREATE TABLE records (
            place BLOB, action TEXT, id INTEGER, state TEXT NOT NULL, after TEXT, score REAL, ended INTEGER,
            n INTEGER NOT NULL, episode INTEGER NOT NULL, step INTEGER NOT NULL, verified INTEGER NOT NULL,
            outcomes TEXT, PRIMARY KEY (place, action, id)) WITHOUT ROWID""",
        "CREATE UNIQUE INDEX ids ON records (id)",
    ),
    (
        # The first version found states and verified records by reading all records.
        "CREATE INDEX verified ON records (id) WHERE verified",
        "CREATE TABLE states (place BLOB PRIMARY KEY, oldest INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE INDEX ages ON states (oldest)",
        "INSERT INTO states SELECT place, min(id) FROM records GROUP BY place",
    ),
)
"""The version of a file, SQLite's `user_version`, is the number of those applied."""

COLUMNS = "id, action, state, after, score, ended, n, episode, step, verified, outcomes"
"""What `read_record` reads, in this order."""

PAGES = 16
"""Megabytes of the file that SQLite keeps in RAM."""


def encode_text(text: str) -> str | bytes:
    r"""A text for SQLite, which stores valid Unicode alone; a text with a lone surrogate becomes bytes.

    Example:
        >>> encode_text("é"), encode_text("\ud800")
        ('é', b'\xed\xa0\x80')
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def decode_text(stored: str | bytes) -> str:
    r"""The text that `encode_text` made this of.

    Example:
        >>> decode_text(b"\xed\xa0\x80") == "\ud800"
        True
    """
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogatepass")


def write_record(record: Record, place: bytes) -> Row:
    """A record as a row.

    Args:
        record: the record.
        place: the digest of its state's key.
    """
    (outcome, p), *rest = record.outcomes
    score = float(outcome.score)
    after: str | bytes | None = None
    # SQLite has neither NaN nor a negative zero.
    if not rest and p == 1.0 and math.isfinite(score) and (score or math.copysign(1.0, score) > 0):
        after, ended, outcomes = encode_text(outcome.state), bool(outcome.ended), None
    else:
        ended, outcomes = False, _encode_outcomes(record)
    key = place, encode_text(record.action), record.id, encode_text(record.state)
    return (*key, after, score, ended, record.n, *record.now, record.verified, outcomes)


def _encode_outcomes(record: Record) -> str:
    return json.dumps([[o.state, float(o.score), bool(o.ended), p] for o, p in record.outcomes])


def read_record(row: Row) -> Record:
    """The record of a row with the `COLUMNS`."""
    number, action, state, after, score, ended, n, episode, step, verified, outcomes = row
    if outcomes is None:
        if type(after) is not str:
            after = decode_text(after)
        found: tuple[tuple[Outcome, float], ...] = ((Outcome(after, score, ended == 1), 1.0),)
    else:
        found = tuple((Outcome(after, score, ended), p) for after, score, ended, p in json.loads(outcomes))
    if type(state) is not str:
        state = decode_text(state)
    if type(action) is not str:
        action = decode_text(action)
    return Record(number, state, action, found, n, AgentClock(episode, step), verified == 1)


class MemoryFile:
    """The SQLite file of a memory, open for one writer or for readers.

    The journal is SQLite's WAL: readers see what was committed last, and a process that is killed loses what it
    had not committed. A power cut may lose the last commits, and damages nothing. A second writer is refused: the
    first one holds a lock on a file beside it, `FILE-lock`, in which it names itself.

    Args:
        path: the file; a writer creates it.
        read_only: whether nothing is written.

    Raises:
        MemoryStateError: if the file cannot be opened, is no memory's, was written by a later version, or is held
            by another writer.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path, self.read_only = Path(path), read_only
        if read_only and not self.path.is_file():
            raise MemoryStateError(f"{self.path}: there is no such file")
        lock = None if read_only else _take_lock(self.path)
        try:
            self._connection = self._connect()
        except BaseException:
            _let_go(None, lock, self.path)
            raise
        self._finalizer = weakref.finalize(self, _let_go, self._connection, lock, self.path)

    def _connect(self) -> sqlite3.Connection:
        # A reader that may write removes SQLite's files beside the memory's when it closes. In a folder that is
        # read-only there are none, unless a writer was killed.
        mode = "rw" if self.read_only else "rwc"
        if self.read_only and not os.access(self.path.parent, os.W_OK):
            mode = "ro" if _beside(self.path, "-wal").exists() else "ro&immutable=1"
        with self.reporting():
            address = f"{self.path.absolute().as_uri()}?mode={mode}"
            connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Set the options of a connection, and bring the tables to the present version."""
        (version,), (application,) = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")
        )
        is_new = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if (not is_new or self.read_only) and application != APPLICATION:
            raise MemoryStateError(f"{self.path}: is not the file of a memory")
        if version > len(MIGRATIONS):
            raise MemoryStateError(
                f"{self.path}: was written by a later version of drift-envs: its tables have version {version}, this "
                f"one reads up to {len(MIGRATIONS)}"
            )
        connection.execute(f"PRAGMA cache_size = {-1024 * PAGES}")
        if self.read_only:
            connection.execute("PRAGMA query_only = ON")
            return
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")

    @property
    def version(self) -> int:
        """The version of the tables; a reader's file may be older than `MIGRATIONS`."""
        return int(self.query("PRAGMA user_version")[0][0])

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Turn SQLite's errors into ours.

        Raises:
            MemoryStateError: if SQLite raises an error, with the file's name.
        """
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise MemoryStateError(f"{self.path}: cannot be used: {error}") from error

    def query(self, statement: str, values: Row = ()) -> list[Row]:
        """All rows of a query."""
        with self.reporting():
            return self._connection.execute(statement, values).fetchall()

    def write(self, statement: str, values: Row = ()) -> None:
        """Execute a statement in the present transaction, which begins with the first one."""
        with self.reporting():
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(statement, values)

    def commit(self) -> None:
        """End the present transaction; what was written is safe from then on."""
        with self.reporting():
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    @contextmanager
    def all_or_nothing(self, undo: Callable[[], None] | None) -> Iterator[None]:
        """Take back what the block wrote if it fails.

        Args:
            undo: called then, after the rows are back.
        """
        self.write("SAVEPOINT whole")
        try:
            yield
        except BaseException:
            self.write("ROLLBACK TO whole")
            self.write("RELEASE whole")
            if undo is not None:
                undo()
            raise
        self.write("RELEASE whole")

    def about(self, key: str) -> Any:
        """A value about the memory; `None` if there is none."""
        rows = self.query("SELECT value FROM about WHERE key = ?", (key,))
        return json.loads(rows[0][0]) if rows else None

    def note(self, key: str, text: str) -> None:
        """Write a value about the memory, as JSON."""
        self.write("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, text))

    def count(self) -> int:
        """The number of records."""
        return int(self.query("SELECT count(*) FROM records")[0][0])

    def read(self, where: str = "id > ?", chunk: int = 1000) -> Iterator[Record]:
        """Records, oldest first, read in chunks.

        Args:
            where: a condition with one parameter, the id of the last record that was read.
            chunk: the number of records read at a time.
        """
        statement = f"SELECT {COLUMNS} FROM records WHERE {where} ORDER BY id LIMIT {chunk}"
        last = -1
        while rows := self.query(statement, (last,)):
            yield from map(read_record, rows)
            last = rows[-1][0]

    def newest(self, count: int) -> list[Record]:
        """The newest records, oldest first."""
        rows = self.query(f"SELECT {COLUMNS} FROM records ORDER BY id DESC LIMIT ?", (count,))
        return [read_record(row) for row in reversed(rows)]

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return not self._finalizer.alive

    def close(self) -> None:
        """Close the file and let go of it; what was not committed is lost."""
        self._finalizer()


def _let_go(connection: sqlite3.Connection | None, lock: int | None, path: Path) -> None:
    if connection is not None:
        connection.close()
    if lock is not None:
        with suppress(OSError):
            _beside(path, "-lock").unlink(missing_ok=True)
        os.close(lock)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}{ending}")


def _take_lock(path: Path) -> int:
    """Lock the file against other writers; returns the lock's descriptor.

    SQLite's own locks last as long as a transaction, and a lock on the file itself would interfere with them.
    """
    beside = _beside(path, "-lock")
    while True:
        try:
            lock = os.open(beside, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise MemoryStateError(f"{path}: cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(lock, 1000).decode("utf-8", "replace") or "another process"
            os.close(lock)
            raise MemoryStateError(
                f"{path}: is in use by {holder}. A memory's file has one writer; close it there, or export it"
            ) from error
        # Its last holder may have removed the file between the two calls.
        with suppress(OSError):
            if os.stat(beside).st_ino == os.fstat(lock).st_ino:
                os.ftruncate(lock, 0)
                os.write(lock, f"process {os.getpid()} on {socket.gethostname()}".encode())
                return lock
        os.close(lock)

"""Recorded replies: no request is sent twice, and a run can be repeated without a server.

* `ReplyStore` - one SQLite file of replies
* `RecordedReply` - one of them
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from drift_agents.errors import ReplayError
from drift_envs.checks import describe_invalid

_TABLES = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY,       -- SHA-256 of the request
    model TEXT NOT NULL,
    title TEXT NOT NULL,        -- of the schema
    question BLOB NOT NULL,     -- the request as JSON, deflated
    reply TEXT NOT NULL         -- the reply as JSON
) WITHOUT ROWID;
INSERT OR IGNORE INTO about VALUES ('format', 'drift-agents replies 1');
"""
_FORMAT = "drift-agents replies 1"


class RecordedReply(BaseModel):
    """A recorded reply: its text, what it cost but for the money, and why it ends."""

    model_config = ConfigDict(strict=True, frozen=True)

    text: str
    model_calls: NonNegativeInt
    tokens_in: NonNegativeInt
    tokens_out: NonNegativeInt
    milliseconds: NonNegativeInt
    finish: str
    tokens_cached: NonNegativeInt = 0


class ReplyStore:
    """One SQLite file of recorded replies.

    The key of a reply is a hash of the model and its address, the messages, the schema, the parameters and the
    sample index; the API key is no part of it. Of two replies to one request the first is kept, so that all
    processes that share the file get the same.

    Args:
        path: the file; created if it does not exist, unless `read_only`.
        read_only: whether nothing is written; a request without a recorded reply is then an error.

    Raises:
        ReplayError: if the file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str], read_only: bool = False) -> None:
        self.path, self.read_only = Path(path), read_only
        self._lock = threading.RLock()
        self._running: dict[bytes, threading.Lock] = {}
        self.hits = 0
        self._opened: sqlite3.Connection | None = None
        if read_only and not self.path.is_file():
            raise ReplayError(f"{self.path}: there are no recorded replies")

    @property
    def _file(self) -> sqlite3.Connection:
        """The database, opened at first use, since a run creates its folder late."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?mode={'ro' if self.read_only else 'rwc'}"
        try:
            with ExitStack() as opened:
                file = sqlite3.connect(address, uri=True, timeout=60.0, isolation_level=None, check_same_thread=False)
                opened.callback(file.close)
                if not self.read_only:
                    file.executescript(_TABLES)
                row = file.execute("SELECT value FROM about WHERE key = 'format'").fetchone()
                if row != (_FORMAT,):
                    raise ReplayError(
                        f"{self.path}: should hold recorded replies, format {_FORMAT!r}. Received {row!r}"
                    )
                opened.pop_all()
                return file
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def __enter__(self) -> ReplyStore:
        """Return the store."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        with self._lock:
            try:
                return self._file.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise self._unusable(error) from error

    def __len__(self) -> int:
        """The number of replies."""
        return int(self._query("SELECT count(*) FROM replies")[0][0])

    def get(self, key: bytes) -> RecordedReply | None:
        """The recorded reply, `None` if there is none.

        Raises:
            ReplayError: if the file cannot be read, or the reply in it is damaged.
        """
        with self._lock:
            rows = self._query("SELECT reply FROM replies WHERE key = ?", key)
            self.hits += bool(rows)
            return self._parse(key, rows[0][0]) if rows else None

    def put(self, key: bytes, model: str, title: str, question: str, reply: RecordedReply) -> RecordedReply:
        """Record a reply, unless another process has recorded one meanwhile.

        Returns:
            The reply that is in the file.

        Raises:
            ReplayError: if the file cannot be written.
        """
        deflated = zlib.compress(question.encode("utf-8", "replace"))
        row = (key, model, title, deflated, reply.model_dump_json(exclude_defaults=True))
        self._query("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)", *row)
        return self._parse(key, self._query("SELECT reply FROM replies WHERE key = ?", key)[0][0])

    def _parse(self, key: bytes, reply: str) -> RecordedReply:
        try:
            return RecordedReply.model_validate_json(reply)
        except ValidationError as error:
            raise self._damaged(key, describe_invalid(error)) from error

    def _damaged(self, key: bytes, rule: str) -> ReplayError:
        return self._unusable(f"the one with the key {key.hex()[:16]} is not what was recorded: {rule}")

    def questions(self) -> Iterator[tuple[Mapping[str, Any], RecordedReply]]:
        """All requests with their replies, in the order of their keys; none before the file is created.

        Raises:
            ReplayError: if one of them is damaged.
        """
        if self._opened is None and not self.path.is_file():
            return
        for key, question, reply in self._query("SELECT key, question, reply FROM replies ORDER BY key"):
            try:
                request = dict(json.loads(zlib.decompress(question)))
            except (zlib.error, TypeError, ValueError) as error:
                raise self._damaged(key, f"its request: {error}") from error
            yield request, self._parse(key, reply)

    @contextmanager
    def alone(self, key: bytes) -> Iterator[None]:
        """Admit one thread at a time for each key, so that the others find the recorded reply."""
        with self._lock:
            lock = self._running.setdefault(key, threading.Lock())
        with lock:
            yield
        # Only after a reply: after an error the waiting threads send the request one after the other.
        with self._lock:
            self._running.pop(key, None)

    def _unusable(self, error: object) -> ReplayError:
        return ReplayError(f"{self.path}: the recorded replies cannot be used: {error}")

"""Recorded replies: no request is sent twice, and a run can be repeated without a server.

* `ReplyStore` - one SQLite file of replies
* `ReplayModel` - a model whose replies are recorded, or only read from the records
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from drift_agents.errors import ContextLengthError, ReplayError
from drift_agents.llm.answer_format import read_answer
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.llm.budget import FREE, Price
from drift_agents.llm.monitor import AnswerMonitor
from drift_agents.types import Usage

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
_KEPT_USAGE = ("model_calls", "tokens_in", "tokens_out", "milliseconds")
"""What is recorded of a reply's cost; the money is computed anew from the tokens."""
_LONGEST = 2**26
"""Bytes of a request; no model takes as many."""
_TOO_LONG = "context_too_long"
_CACHED = "tokens_cached"
"""Recorded where it is not zero."""


def _inflate(question: bytes) -> bytes:
    """A request that was deflated, at most `_LONGEST` bytes of it: a file of a stranger could hold a bomb."""
    return zlib.decompressobj().decompress(question, _LONGEST)


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
        self.hits = self.misses = 0
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
            file = sqlite3.connect(address, uri=True, timeout=60.0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        try:
            if not self.read_only:
                file.executescript(_TABLES)
            else:
                file.execute("PRAGMA trusted_schema = OFF")  # a file of a stranger may hold views and triggers
            row = file.execute("SELECT value FROM about WHERE key = 'format'").fetchone()
            if row != (_FORMAT,):
                raise ReplayError(f"{self.path}: should hold recorded replies, format {_FORMAT!r}. Received {row!r}")
        except sqlite3.Error as error:
            file.close()
            raise self._unusable(error) from error
        except ReplayError:
            file.close()
            raise
        return file

    def __enter__(self) -> ReplyStore:
        """Return the store."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def __len__(self) -> int:
        """The number of replies."""
        with self._lock:
            try:
                return int(self._file.execute("SELECT count(*) FROM replies").fetchone()[0])
            except sqlite3.Error as error:
                raise self._unusable(error) from error

    def get(self, key: bytes) -> Mapping[str, Any] | None:
        """The recorded reply, `None` if there is none.

        Raises:
            ReplayError: if the file cannot be read.
        """
        with self._lock:
            try:
                reply = self._read(key)
            except (sqlite3.Error, ValueError) as error:
                raise self._unusable(error) from error
            self.hits, self.misses = self.hits + (reply is not None), self.misses + (reply is None)
            return reply

    def put(self, key: bytes, model: str, title: str, question: str, reply: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record a reply, unless another process has recorded one meanwhile.

        Returns:
            The reply that is in the file.

        Raises:
            ReplayError: if the file cannot be written.
        """
        row = (
            key,
            model,
            title,
            zlib.compress(question.encode("utf-8", "replace")),
            json.dumps(reply, ensure_ascii=False),
        )
        with self._lock:
            try:
                self._file.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)", row)
                return self._read(key) or reply
            except sqlite3.Error as error:
                raise self._unusable(error) from error

    def _read(self, key: bytes) -> Mapping[str, Any] | None:
        row = self._file.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def questions(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """All requests with their replies, in the order of their keys."""
        with self._lock:
            rows = self._file.execute("SELECT question, reply FROM replies ORDER BY key").fetchall()
        for question, reply in rows:
            yield json.loads(zlib.decompress(question)), json.loads(reply)

    def count_misfiled(self) -> int:
        """How many replies are not recorded under the hash of their request, as in a file that was edited.

        Raises:
            ReplayError: if the file cannot be read.
        """
        with self._lock:
            try:
                rows = self._file.execute("SELECT key, question FROM replies").fetchall()
                return sum(hashlib.sha256(_inflate(question)).digest() != key for key, question in rows)
            except (sqlite3.Error, zlib.error, TypeError) as error:
                raise ReplayError(f"{self.path}: holds no recorded replies: {error}") from error

    def spent(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Tokens of all recorded replies, for each server and model.

        Returns:
            Address and model -> tokens of prompts, of answers, and those of prompts from the server's cache. Empty
            if there is no file yet.
        """
        sums: dict[tuple[str, str], tuple[int, int, int]] = {}
        if self._opened is None and not self.path.is_file():
            return sums
        for question, reply in self.questions():
            model = (str(question.get("base_url")), str(question.get("model")))
            before = sums.get(model, (0, 0, 0))
            sums[model] = (
                before[0] + reply["tokens_in"],
                before[1] + reply["tokens_out"],
                before[2] + reply.get(_CACHED, 0),
            )
        return sums

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

    def _unusable(self, error: Exception) -> ReplayError:
        return ReplayError(f"{self.path}: the recorded replies cannot be used: {error}")


class ReplayModel:
    """A model whose replies are recorded, or only read from the records.

    Args:
        model: answers requests without a recorded reply; never called if the store is read only.
        replies: the file.

    Example:
        >>> from drift_agents.llm.scripted import ScriptedModel
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, ReplyStore(f"{folder}/replies.sqlite") as replies:
        ...     model = ReplayModel(ScriptedModel(["yes"]), replies)
        ...     [model.complete([Message("user", "Is it slippery?")]).text for _ in range(2)]
        ['yes', 'yes']
    """

    def __init__(self, model: Model, replies: ReplyStore) -> None:
        self.model, self.replies, self.name = model, replies, model.name
        self._identity: Mapping[str, Any] = getattr(model, "identity", {"model": model.name})
        self._price: Price = getattr(model, "price", FREE)
        self.monitor: AnswerMonitor | None = getattr(model, "monitor", None)

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Return the recorded reply, or get one from the model and record it.

        Raises:
            ReplayError: if nothing is recorded and the store is read only, or the file cannot be used.
            ContextLengthError: if the request was too long for the model; this is recorded, too.
            ModelError: any other error of the model; these are not recorded.
        """
        question = json.dumps(
            {
                **self._identity,
                "messages": [list(message) for message in messages],
                "schema": schema,
                "parameters": dict(parameters or {}),
                "sample_index": sample_index,
            },
            sort_keys=True,
            ensure_ascii=False,
        )
        key = hashlib.sha256(question.encode("utf-8", "surrogatepass")).digest()
        title = str((schema or {}).get("title", ""))
        with self.replies.alone(key):
            reply = self.replies.get(key)
            if reply is None:
                if self.replies.read_only:
                    end = messages[-1].content[-120:] if messages else ""
                    raise ReplayError(
                        f"{self.replies.path}: holds no reply of {self.name!r} to {title or 'a request'!r} that ends "
                        f"with {end!r}. Was it recorded with the same experiment, model, address and version?"
                    )
                reply = self._request(key, title, question, messages, schema, parameters, sample_index)
        if reply["finish"] == _TOO_LONG:
            raise ContextLengthError(reply["text"])
        data = None if schema is None else read_answer(reply["text"], schema)[0]
        usage = Usage(**{name: reply[name] for name in _KEPT_USAGE})
        cached = reply.get(_CACHED, 0)
        usage = usage._replace(cost=self._price.of(usage.tokens_in, usage.tokens_out, cached))
        return Completion(reply["text"], data, usage, reply["finish"], cached)

    def _request(
        self,
        key: bytes,
        title: str,
        question: str,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        parameters: Mapping[str, Any] | None,
        sample_index: int,
    ) -> Mapping[str, Any]:
        """Get a reply from the model and record it; a request that is too long counts as answered."""
        try:
            answer = self.model.complete(messages, schema, parameters, sample_index)
        except ContextLengthError as error:
            answer = Completion(str(error), finish=_TOO_LONG)
        used = {name: getattr(answer.usage, name) for name in _KEPT_USAGE}
        reply = {"text": answer.text, **used, "finish": answer.finish}
        if answer.tokens_cached:
            reply[_CACHED] = answer.tokens_cached
        return self.replies.put(key, self.name, title, question, reply)

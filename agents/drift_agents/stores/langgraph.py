"""LangGraph's stores, in memory and in a SQLite file, as stores of texts."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from drift_agents.embedding.base import DIGITS, Embedding, HashedEmbedding
from drift_agents.errors import ArgumentError, MissingDependencyError, needs_extra
from drift_agents.stores.base import Entry, Hit, Scalar, refuse_copy

NAMESPACE = ("drift_agents",)
EXTRA = "langgraph"
EVERY = 2**31 - 1
"""A limit of a search that no store reaches."""


class LangGraphStore:
    """LangGraph's `InMemoryStore`: texts that are found by the cosine of their embeddings.

    LangGraph takes keys from its caller: they are numbers here, in order. Its index holds the text alone, not the
    metadata beside it.

    Args:
        embedding: of texts and queries; hashed words and letters if not given.

    Raises:
        MissingDependencyError: if LangGraph's stores are not installed.

    Example:
        >>> store = LangGraphStore()  # doctest: +SKIP
        >>> entry = store.add("a red hat", {})  # doctest: +SKIP
        >>> [text for _, text, _ in store.search("a hat", 1)]  # doctest: +SKIP
        ['a red hat']
    """

    def __init__(self, embedding: Embedding | None = None) -> None:
        self.embedding: Embedding = HashedEmbedding() if embedding is None else embedding
        self._store = self._make()
        self._next = 1 + max((int(entry) for entry, _, _ in self.entries()), default=-1)

    def _make(self) -> Any:
        with needs_extra("langgraph-checkpoint", EXTRA):
            from langgraph.store.memory import InMemoryStore
        return InMemoryStore(index=self._index())

    def _index(self) -> Any:
        # The store in memory reads `fields`, the one in SQLite `text_fields`; without it metadata is indexed too.
        fields = ["text"]
        return {
            "dims": self.embedding.dimension + 1,
            "embed": self._embed,
            "fields": fields,
            "text_fields": fields,
        }

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors with one more number, 1 where all others are 0: LangGraph divides by the length of a vector."""
        vectors = self.embedding.embed(list(texts))
        empty = ~vectors.any(axis=1, keepdims=True)
        rows: list[list[float]] = np.hstack([vectors, empty]).tolist()
        return rows

    def add(self, text: str, metadata: Mapping[str, Scalar]) -> str:
        """Store a text with its metadata; returns its key."""
        key = f"{self._next:09d}"
        self._next += 1
        self._store.put(NAMESPACE, key, {"text": text, "metadata": dict(metadata)})
        return key

    def search(self, query: str, k: int) -> list[Hit]:
        """The `k` entries that are most similar to the query, the best first."""
        # A query without text is none to LangGraph's stores, which then list entries without scores.
        found = self._store.search(NAMESPACE, query=query or " ", limit=k)
        return [(item.key, item.value["text"], round(item.score or 0.0, DIGITS)) for item in found]

    def delete(self, entry: str) -> None:
        """Delete an entry; an unknown key is ignored."""
        self._store.delete(NAMESPACE, entry)

    def update(self, entry: str, metadata: Mapping[str, Scalar]) -> None:
        """Set the metadata of an entry."""
        text = self._store.get(NAMESPACE, entry).value["text"]
        self._store.put(NAMESPACE, entry, {"text": text, "metadata": dict(metadata)})

    def entries(self) -> Iterator[Entry]:
        """All entries, oldest first."""
        for item in sorted(self._store.search(NAMESPACE, limit=EVERY), key=lambda item: str(item.key)):
            yield item.key, item.value["text"], item.value["metadata"]

    def __getstate__(self) -> dict[str, Any]:
        """The entries: LangGraph's store itself cannot be pickled."""
        return {"embedding": self.embedding, "next": self._next, "entries": list(self.entries())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Add the entries to a store of its own."""
        self.embedding, self._next = state["embedding"], state["next"]
        self._store = self._make()
        for key, text, metadata in state["entries"]:
            self._store.put(NAMESPACE, key, {"text": text, "metadata": metadata})


class LangGraphSqliteStore(LangGraphStore):
    """LangGraph's `SqliteStore` with the index of `sqlite-vec`: texts in one SQLite file.

    `sqlite-vec` is an extension of SQLite. Where Python's own `sqlite3` cannot load extensions, the package
    `pysqlite3` does.

    Args:
        embedding: of texts and queries, the same each time that a file is opened; hashed words and letters if not
            given.
        path: the file, created if it does not exist; in RAM if not given.

    Raises:
        MissingDependencyError: if LangGraph's SQLite store is not installed, or cannot load its extension.
        ArgumentError: if the file cannot be opened.
    """

    def __init__(self, embedding: Embedding | None = None, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else os.fspath(path)
        super().__init__(embedding)

    def _make(self) -> Any:
        with needs_extra("langgraph-checkpoint-sqlite", EXTRA):
            from langgraph.store.sqlite import SqliteStore
        connection, errors = _connect(self.path)
        store = SqliteStore(connection, index=self._index())
        try:
            store.setup()
        except errors as error:
            connection.close()
            raise ArgumentError(
                f"`path` should be the file of a store or a new one: {error}. Received {self.path!r}"
            ) from error
        self._closing = weakref.finalize(self, connection.close)
        return store

    def close(self) -> None:
        """Close the file."""
        self._closing()

    def __getstate__(self) -> dict[str, Any]:
        """Refuse copies.

        Raises:
            DriftAgentsError: always.
        """
        raise refuse_copy("langgraph_sqlite")


def _connect(path: str | None) -> tuple[Any, Any]:
    """A connection that can load extensions, and the errors of its module."""
    module: Any = sqlite3
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        try:
            module = import_module("pysqlite3.dbapi2")
        except ImportError as error:
            raise MissingDependencyError(
                f"this Python's `sqlite3` cannot load extensions and `pysqlite3-binary` is not installed, run "
                f'`pip install ".[{EXTRA}]"` in a checkout of drift-envs'
            ) from error
    try:
        connection = module.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
        # SQLite's own default keeps the vectors of deleted entries.
        connection.execute("PRAGMA foreign_keys = ON")
    except module.Error as error:
        raise ArgumentError(f"`path` should be the file of a store or a new one: {error}. Received {path!r}") from error
    return connection, module.Error

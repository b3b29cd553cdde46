"""Chroma as a store of texts."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import numpy as np

from drift_agents.embedding.base import DIGITS, Embedding, HashedEmbedding
from drift_agents.errors import ArgumentError, needs_extra
from drift_agents.stores.base import Entry, Hit, Scalar, refuse_copy

COLLECTION = "drift_agents"
APART = 3e-3
"""The distance of a stored vector from its text's, relative to its length."""
LOOKED_AT = 1000
"""Entries that a search compares."""
NEIGHBORS = 64
"""Entries that one is linked to, four times Chroma's default."""
_IN_RAM = count()
"""Names of collections in RAM: all clients of a process share one database there."""


class ChromaStore:
    """A collection of Chroma with the cosine distance, searched by its HNSW index.

    The index is approximate: of many entries it may miss one of the nearest, and of equally near ones it returns any.
    Among equal vectors it closes on itself: behind some hundred of them no other entry is found. So each vector is
    moved by a little of its length, in a direction drawn from the entry's number, which changes similarities in the
    fourth digit, and a search looks at a thousand entries. Telemetry is off.

    Args:
        embedding: of texts and queries, the same each time that a folder is opened; hashed words and letters if not
            given.
        path: the folder, created if it does not exist; in RAM if not given.

    Raises:
        MissingDependencyError: if `chromadb` is not installed.

    Example:
        >>> store = ChromaStore()  # doctest: +SKIP
        >>> entry = store.add("a red hat", {})  # doctest: +SKIP
        >>> [text for _, text, _ in store.search("a hat", 1)]  # doctest: +SKIP
        ['a red hat']
    """

    def __init__(self, embedding: Embedding | None = None, path: str | os.PathLike[str] | None = None) -> None:
        self.embedding: Embedding = HashedEmbedding() if embedding is None else embedding
        self._collection = self._open(path)
        self._next = 1 + max((int(entry) for entry, _, _ in self.entries()), default=-1)

    def _open(self, path: str | os.PathLike[str] | None) -> Any:
        with needs_extra("chromadb", "chroma"):
            import chromadb
            from chromadb.errors import ChromaError

        settings = chromadb.Settings(anonymized_telemetry=False)
        # One thread: the index, and so what it returns, depends on the order in which entries are added.
        index = {"space": "cosine", "num_threads": 1, "ef_search": LOOKED_AT, "max_neighbors": NEIGHBORS}
        options: Any = {"embedding_function": None, "configuration": {"hnsw": index}}
        if path is not None:
            try:
                kept: Any = chromadb.PersistentClient(os.fspath(path), settings)
            except (ChromaError, OSError, ValueError) as error:
                raise ArgumentError(
                    f"`path` should be a folder of this store or a new one: {error}. Received {path}"
                ) from error
            self._closing: Any = weakref.finalize(self, kept.close)
            return kept.get_or_create_collection(COLLECTION, **options)
        client: Any = chromadb.EphemeralClient(settings)
        name = f"{COLLECTION}-{next(_IN_RAM)}"
        collection = client.create_collection(name, **options)
        self._closing = weakref.finalize(self, client.delete_collection, name)
        self._closing.atexit = False
        return collection

    def _vector(self, text: str) -> Any:
        return self.embedding.embed([text]).astype("float32")

    def add(self, text: str, metadata: Mapping[str, Scalar]) -> str:
        """Store a text with its metadata; returns the id of a new entry."""
        entry = str(self._next)
        self._next += 1
        about = dict(metadata) or None  # Chroma takes no empty metadata
        vector = self._vector(text)
        away = np.random.default_rng(int(entry)).normal(size=vector.shape).astype("float32")
        vector += APART * np.linalg.norm(vector) / np.linalg.norm(away) * away
        self._collection.add(ids=[entry], embeddings=vector, documents=[text], metadatas=[about])
        return entry

    def search(self, query: str, k: int) -> list[Hit]:
        """The `k` entries that are most similar to the query, the best first."""
        found = self._collection.query(query_embeddings=self._vector(query), n_results=k)
        (ids,), (texts,), (distances,) = found["ids"], found["documents"], found["distances"]
        return [(entry, text, round(1.0 - far, DIGITS)) for entry, text, far in zip(ids, texts, distances, strict=True)]

    def delete(self, entry: str) -> None:
        """Delete an entry; an unknown id is ignored."""
        self._collection.delete(ids=[entry])

    def update(self, entry: str, metadata: Mapping[str, Scalar]) -> None:
        """Set the metadata of an entry."""
        self._collection.update(ids=[entry], metadatas=[dict(metadata)])

    def entries(self) -> Iterator[Entry]:
        """All entries, oldest first."""
        held = self._collection.get(include=["documents", "metadatas"])
        rows = zip(held["ids"], held["documents"], held["metadatas"], strict=True)
        for entry, text, about in sorted(rows, key=lambda row: int(row[0])):
            yield entry, text, dict(about or {})

    def close(self) -> None:
        """Close the folder; what is in RAM is gone."""
        self._closing()

    def __getstate__(self) -> dict[str, Any]:
        """Refuse copies.

        Raises:
            DriftAgentsError: always.
        """
        raise refuse_copy("chroma")

"""LangGraph's store in memory, as a store of texts.

* `LangGraphStore` - the adapter
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drift_agents.embedding.base import DIGITS, Embedding
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.errors import MissingDependencyError
from drift_agents.stores.base import Hit, Scalar

NAMESPACE = ("drift_agents",)


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
        self._next = 0
        self._store = self._make()

    def _make(self) -> Any:
        try:
            from langgraph.store.memory import InMemoryStore
        except ImportError as error:
            raise MissingDependencyError(
                '`langgraph-checkpoint` is not installed, run `pip install "drift-envs[langgraph]"`'
            ) from error
        return InMemoryStore(index={"dims": self.embedding.dimension + 1, "embed": self._embed, "fields": ["text"]})

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors with one more number, 1 where all others are 0: LangGraph divides by the length of a query."""
        vectors = self.embedding.embed(list(texts))
        empty = ~vectors.any(axis=1, keepdims=True)
        rows: list[list[float]] = np.hstack([vectors, empty]).tolist()
        return rows

    def add(self, text: str, metadata: Mapping[str, Scalar]) -> str:
        """Store a text with its metadata; returns its key."""
        key = str(self._next)
        self._next += 1
        self._store.put(NAMESPACE, key, {"text": text, "metadata": dict(metadata)})
        return key

    def search(self, query: str, k: int) -> list[Hit]:
        """The `k` entries that are most similar to the query, the best first."""
        found = self._store.search(NAMESPACE, query=query, limit=k)
        return [(item.key, item.value["text"], round(item.score or 0.0, DIGITS)) for item in found]

    def delete(self, entry: str) -> None:
        """Delete an entry; an unknown key is ignored."""
        self._store.delete(NAMESPACE, entry)

    def __getstate__(self) -> dict[str, Any]:
        """The entries: LangGraph's store itself cannot be pickled."""
        items = self._store.search(NAMESPACE, limit=max(self._next, 1))
        return {
            "embedding": self.embedding,
            "next": self._next,
            "entries": [(item.key, item.value) for item in items],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Add the entries to a store of its own."""
        self.embedding, self._next = state["embedding"], state["next"]
        self._store = self._make()
        for key, value in state["entries"]:
            self._store.put(NAMESPACE, key, value)

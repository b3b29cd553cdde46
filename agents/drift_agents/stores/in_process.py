"""The reference store: texts in RAM, found by the cosine of their embeddings.

* `InProcessStore` - the store
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from drift_agents.embedding.base import Embedding, Vectors, cosine
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.stores.base import Entry, Hit, Scalar


class InProcessStore:
    """Texts in RAM, found by the cosine of their embeddings.

    Of equally similar entries the oldest comes first. It appends only: equal texts are entries of their own.

    Args:
        embedding: of texts and queries; hashed words and letters if not given.

    Example:
        >>> store = InProcessStore()
        >>> entries = [store.add(text, {}) for text in ("a red hat", "an axe")]
        >>> [text for _, text, _ in store.search("a hat", 2)]
        ['a red hat', 'an axe']
        >>> store.delete(entries[0])
        >>> [text for _, text, _ in store.search("a hat", 2)]
        ['an axe']
    """

    def __init__(self, embedding: Embedding | None = None) -> None:
        self.embedding: Embedding = HashedEmbedding() if embedding is None else embedding
        self._texts: dict[str, str] = {}
        self._metadata: dict[str, dict[str, Scalar]] = {}
        self._vectors: dict[str, Vectors] = {}
        self._matrix: Vectors | None = None
        self._next = 0

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._texts)

    def add(self, text: str, metadata: Mapping[str, Scalar]) -> str:
        """Store a text with its metadata; returns the id of a new entry."""
        entry = str(self._next)
        self._next += 1
        self._texts[entry], self._metadata[entry] = text, dict(metadata)
        self._vectors[entry], self._matrix = self.embedding.embed([text])[0], None
        return entry

    def search(self, query: str, k: int) -> list[Hit]:
        """The `k` entries that are most similar to the query, the best first."""
        if not self._texts:
            return []
        if self._matrix is None:
            self._matrix = np.stack(list(self._vectors.values()))
        similar = cosine(self.embedding.embed([query])[0], self._matrix)
        entries = list(self._texts)
        best = (int(place) for place in np.argsort(-similar, kind="stable")[:k])
        return [(entries[place], self._texts[entries[place]], float(similar[place])) for place in best]

    def delete(self, entry: str) -> None:
        """Delete an entry; an unknown id is ignored."""
        if entry in self._texts:
            del self._texts[entry], self._metadata[entry], self._vectors[entry]
            self._matrix = None

    def update(self, entry: str, metadata: Mapping[str, Scalar]) -> None:
        """Set the metadata of an entry."""
        self._metadata[entry] = dict(metadata)

    def entries(self) -> Iterator[Entry]:
        """All entries, oldest first."""
        for entry, text in self._texts.items():
            yield entry, text, dict(self._metadata[entry])

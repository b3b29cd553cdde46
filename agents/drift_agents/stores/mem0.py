"""mem0 as a store of texts."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drift_agents.embedding.base import DIGITS, Embedding, HashedEmbedding
from drift_agents.errors import ArgumentError, needs_extra
from drift_agents.stores.base import Entry, Hit, Scalar, refuse_copy

USER = {"user_id": "drift_agents"}
EVERY = 2**31 - 1
"""A limit of a list that no store reaches."""
UNUSED = {"provider": "lmstudio", "config": {"lmstudio_base_url": "http://127.0.0.1:9/v1"}}
"""mem0 is made with a language model and an encoder; neither of these is called."""


class Mem0Store:
    """mem0 with `infer=False`: texts are stored as they are, without a language model.

    The vectors are in mem0's default store, Qdrant, in RAM or in a folder, without a server. mem0's other parts need
    packages beside it (spaCy for entities, fastembed for keywords) and are not used. Telemetry is off.

    `add` only adds: mem0 keeps equal and contradicting texts side by side. A text of blanks is stored, but mem0 does
    not return it; a query of blanks finds nothing.

    Args:
        embedding: of texts and queries, the same each time that a folder is opened; hashed words and letters if not
            given.
        path: the folder, created if it does not exist; in RAM if not given.

    Raises:
        MissingDependencyError: if `mem0ai` is not installed.
        ArgumentError: if the folder cannot be opened, or is open already.

    Example:
        >>> store = Mem0Store()  # doctest: +SKIP
        >>> entry = store.add("a red hat", {})  # doctest: +SKIP
        >>> [text for _, text, _ in store.search("a hat", 1)]  # doctest: +SKIP
        ['a red hat']
    """

    def __init__(self, embedding: Embedding | None = None, path: str | os.PathLike[str] | None = None) -> None:
        self.embedding: Embedding = HashedEmbedding() if embedding is None else embedding
        self._memory = _open(_Encoder(self.embedding), None if path is None else Path(path))
        self._closing = weakref.finalize(self, _close, self._memory)

    def add(self, text: str, metadata: Mapping[str, Scalar]) -> str:
        """Store a text with its metadata; returns the id of a new entry."""
        message = {"role": "user", "content": text}
        made = self._memory.add([message], **USER, metadata=dict(metadata), infer=False)["results"]
        return str(made[0]["id"])

    def search(self, query: str, k: int) -> list[Hit]:
        """The `k` entries that are most similar to the query, the best first."""
        if not query.strip():
            return []  # mem0 refuses it
        found = self._memory.search(query, filters=USER, top_k=k, threshold=0.0)["results"]
        return [(one["id"], one["memory"], round(2.0 * one["score"] - 1.0, DIGITS)) for one in found]

    def delete(self, entry: str) -> None:
        """Delete an entry; an unknown id is ignored."""
        if self._memory.get(entry) is not None:
            self._memory.delete(entry)

    def update(self, entry: str, metadata: Mapping[str, Scalar]) -> None:
        """Set the metadata of an entry."""
        self._memory.update(entry, metadata=dict(metadata))

    def entries(self) -> Iterator[Entry]:
        """All entries, oldest first."""
        held = self._memory.get_all(filters=USER, top_k=EVERY)["results"]
        for one in sorted(held, key=lambda one: (one["created_at"], one["id"])):
            yield one["id"], one["memory"], one.get("metadata") or {}

    def close(self) -> None:
        """Close the folder."""
        self._closing()

    def __getstate__(self) -> dict[str, Any]:
        """Refuse copies.

        Raises:
            DriftAgentsError: always.
        """
        raise refuse_copy("mem0")


class _Encoder:
    """An embedding as mem0 calls its own encoders.

    mem0 drops hits below a similarity of 0. With one more number, 1, in every vector the cosine c becomes (1 + c) / 2.
    """

    def __init__(self, embedding: Embedding) -> None:
        self.embedding = embedding

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        vectors = self.embedding.embed(list(texts))
        rows: list[list[float]] = np.hstack([vectors, np.ones((len(vectors), 1))]).tolist()
        return rows


def _open(encoder: _Encoder, path: Path | None) -> Any:
    # Read when mem0 is imported. Its settings and its user's id, made at random, are kept out of the home folder.
    os.environ["MEM0_TELEMETRY"] = "False"
    if "MEM0_DIR" not in os.environ:
        os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="mem0-")
        atexit.register(shutil.rmtree, os.environ["MEM0_DIR"], ignore_errors=True)
    with needs_extra("mem0ai", "mem0"):
        from mem0 import Memory
        from mem0.memory import main, telemetry
        from qdrant_client import QdrantClient
    telemetry.MEM0_TELEMETRY = main.MEM0_TELEMETRY = False  # where mem0 was imported before
    # It warns at the first entry that spaCy and fastembed, which are not used, are missing.
    for name in ("mem0.utils.spacy_models", "mem0.vector_stores.qdrant"):
        logging.getLogger(name).setLevel(logging.ERROR)
    size = encoder.embedding.dimension + 1
    try:
        client = QdrantClient(":memory:") if path is None else QdrantClient(path=os.fspath(path))
    except (OSError, RuntimeError, ValueError) as error:
        raise ArgumentError(
            f"`path` should be a folder of this store or a new one: {error}. Received {path}"
        ) from error
    vectors = {"client": client, "collection_name": "drift_agents", "embedding_model_dims": size, "on_disk": True}
    history = ":memory:" if path is None else os.fspath(path / "history.db")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Payload indexes have no effect")
        memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": vectors},
                "llm": UNUSED,
                "embedder": UNUSED,
                "history_db_path": history,
            }
        )
    memory.embedding_model = encoder
    return memory


def _close(memory: Any) -> None:
    memory.vector_store.client.close()
    memory.close()

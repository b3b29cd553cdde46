"""Memory products as services of two methods, for `drift-agents check-memory`: none of them calls a language model.

`pip install qdrant-client` and `drift-agents check-memory examples/memory_services.py:Qdrant`; the other ones likewise:
`llama-index-core llama-index-vector-stores-qdrant`, `haystack-ai`, `mnemosyne-memory`, `agno`. Vectors are those of
`drift_agents.embedding`, by default of hashed words; `MEMORY_EMBEDDING=minilm` takes all-MiniLM-L6-v2.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from drift_agents.embedding.base import make_embedding

EMBEDDING = make_embedding(os.environ.get("MEMORY_EMBEDDING", "hashed"))


@lru_cache(maxsize=65536)
def embed(text: str) -> list[float]:
    """The vector of a text."""
    vector: list[float] = EMBEDDING.embed([text])[0].tolist()
    return vector


class Qdrant:
    """A collection of Qdrant in RAM."""

    def __init__(self) -> None:
        from qdrant_client import QdrantClient, models

        self.client, self.models, self.count = QdrantClient(":memory:"), models, 0
        size = models.VectorParams(size=EMBEDDING.dimension, distance=models.Distance.COSINE)
        self.client.create_collection("texts", vectors_config=size)

    def add(self, text: str) -> None:
        """Store a text."""
        point = self.models.PointStruct(id=self.count, vector=embed(text), payload={"text": text})
        self.client.upsert("texts", [point])
        self.count += 1

    def search(self, query: str, k: int) -> list[str]:
        """The nearest texts."""
        return [hit.payload["text"] for hit in self.client.query_points("texts", embed(query), limit=k).points]


class LlamaIndex:
    """LlamaIndex's `VectorMemoryBlock` in Qdrant: it returns one string."""

    def __init__(self) -> None:
        from llama_index.core.embeddings import BaseEmbedding
        from llama_index.core.llms import ChatMessage
        from llama_index.core.memory import VectorMemoryBlock
        from llama_index.vector_stores.qdrant import QdrantVectorStore
        from qdrant_client import AsyncQdrantClient

        async def embed_later(self: object, text: str) -> list[float]:
            return embed(text)

        ways = {f"_get_{kind}_embedding": lambda self, text: embed(text) for kind in ("text", "query")}
        model = type("Vectors", (BaseEmbedding,), {**ways, "_aget_query_embedding": embed_later})()
        store = QdrantVectorStore("texts", aclient=AsyncQdrantClient(":memory:"))
        self.message, self.loop = ChatMessage, asyncio.new_event_loop()
        self.block = VectorMemoryBlock(vector_store=store, embed_model=model)

    def add(self, text: str) -> None:
        """Store a message."""
        self.loop.run_until_complete(self.block.aput([self.message(content=text)]))

    def search(self, query: str, k: int) -> list[str]:
        """One text."""
        self.block.similarity_top_k = k
        return [self.loop.run_until_complete(self.block.aget([self.message(content=query)]))]


class Haystack:
    """Haystack's `InMemoryDocumentStore` with BM25."""

    def __init__(self) -> None:
        from haystack.dataclasses import Document
        from haystack.document_stores.in_memory import InMemoryDocumentStore

        self.store, self.document = InMemoryDocumentStore(), Document

    def add(self, text: str) -> None:
        """Store a text; equal ones are one document."""
        from haystack.document_stores.types import DuplicatePolicy

        self.store.write_documents([self.document(content=text)], policy=DuplicatePolicy.OVERWRITE)

    def search(self, query: str, k: int) -> list[str]:
        """The best texts."""
        return [found.content or "" for found in self.store.bm25_retrieval(query, top_k=k)]


class Mnemosyne:
    """Mnemosyne in a file of its own."""

    def __init__(self) -> None:
        from mnemosyne import Mnemosyne as Memory

        self.folder = tempfile.TemporaryDirectory()
        self.memory = Memory(db_path=Path(self.folder.name) / "memory.db")

    def add(self, text: str) -> None:
        """Store a text."""
        self.memory.remember(text)

    def search(self, query: str, k: int) -> list[str]:
        """The best texts."""
        return [found["content"] for found in self.memory.recall(query, top_k=k)]


class Agno:
    """Agno's `MemoryManager`: without a model it returns the newest memories, whatever the query."""

    def __init__(self) -> None:
        from agno.db.in_memory import InMemoryDb
        from agno.db.schemas import UserMemory
        from agno.memory import MemoryManager

        self.memory, self.made = MemoryManager(db=InMemoryDb()), UserMemory

    def add(self, text: str) -> None:
        """Store a memory."""
        self.memory.add_user_memory(self.made(memory=text), user_id="user")

    def search(self, query: str, k: int) -> list[str]:
        """The newest memories."""
        found: list[Any] = self.memory.search_user_memories(query, limit=k, user_id="user")
        return [one.memory for one in found]

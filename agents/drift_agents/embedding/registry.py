"""Embeddings by name.

* `EMBEDDINGS` - all of them; other packages add theirs through the entry-point group `drift_envs.embeddings`
* `make_embedding` - one of them, ready to use
"""

from __future__ import annotations

from typing import Any

from drift_agents.embedding.base import Embedding
from drift_agents.registry import Registry

EMBEDDINGS: Registry[Embedding] = Registry(
    "embedding",
    "drift_envs.embeddings",
    {
        "hashed": "drift_agents.embedding.hashed:HashedEmbedding",
        "minilm": "drift_agents.embedding.minilm:MiniLMEmbedding",
    },
)


def make_embedding(name: str, **options: Any) -> Embedding:
    """Make an embedding.

    Args:
        name: one of `EMBEDDINGS.names()`.
        options: its parameters.

    Raises:
        UnknownNameError: if no embedding has that name.
        ArgumentError: if it does not take one of the options, or refuses its value.
        MissingDependencyError: if it needs something that is not installed.

    Example:
        >>> make_embedding("hashed", dimension=64).dimension
        64
    """
    return EMBEDDINGS.make(name, **options)

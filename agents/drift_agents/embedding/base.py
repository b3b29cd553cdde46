"""The protocol of embeddings: texts in, vectors of length one out.

* `Embedding` - the protocol
* `Vectors` - an array of shape (texts, dimension)
* `cosine` - the similarity of texts by their vectors
* `make_embedding` - an embedding by name
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from drift_agents.registry import EMBEDDINGS

Vectors = NDArray[np.float64]
"""One row of length one for each text; shape (texts, dimension)."""

DIGITS = 6
"""Decimals of a similarity: the order of additions differs between machines, and should not decide ties."""


@runtime_checkable
class Embedding(Protocol):
    """Texts in, vectors out; equal texts have equal vectors, in every process."""

    name: str
    dimension: int

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One vector of length one for each text; shape (len(texts), dimension)."""
        ...


def cosine(one: Vectors, others: Vectors) -> NDArray[np.float64]:
    """The similarity of texts: 1 for equal ones; higher means more similar.

    Args:
        one: a vector; shape (dimension,).
        others: vectors; shape (n, dimension).

    Returns:
        Similarities in [-1, 1], shape (n,), rounded to `DIGITS` decimals.

    Example:
        >>> cosine(np.array([1.0, 0.0]), np.array([[0.6, 0.8], [1.0, 0.0]])).tolist()
        [0.6, 1.0]
    """
    return np.clip(np.round(others @ one, DIGITS), -1.0, 1.0)


def make_embedding(name: str, **options: Any) -> Embedding:
    """Make an embedding by name.

    Args:
        name: one of `registry.EMBEDDINGS.names()`.
        options: its options.

    Raises:
        UnknownNameError: if there is no embedding of that name.
        ArgumentError: if it does not take one of the options, or refuses its value.
        MissingDependencyError: if it needs a package that is not installed.

    Example:
        >>> make_embedding("hashed", dimension=64).dimension
        64
    """
    made: Embedding = EMBEDDINGS.make(name, **options)
    return made

"""The protocol of embeddings: texts in, vectors of length one out.

* `Embedding` - the protocol
* `Vectors` - an array of shape (texts, dimension)
* `cosine` - the similarity of texts by their vectors
* `make_embedding`, `resolve_embedding` - an embedding by name, and as the option of another part
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from drift_agents.errors import ArgumentError
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


def resolve_embedding(given: Any) -> Embedding:
    """An embedding as the option of another part: an object, a name, or one name with its options.

    Args:
        given: the value of the option.

    Raises:
        UnknownNameError: if there is no embedding of that name.
        ArgumentError: if it is anything else, or the embedding refuses an option.
        MissingDependencyError: if it needs a package that is not installed.

    Example:
        >>> resolve_embedding({"hashed": {"dimension": 64}}).dimension
        64
    """
    if isinstance(given, Embedding):
        return given
    named = {given: None} if isinstance(given, str) else given
    if not isinstance(named, Mapping) or len(named) != 1:
        raise ArgumentError(f"`embedding` should be a name, or one name with its options. Received {given!r}")
    ((name, options),) = named.items()
    return make_embedding(name, **({} if options is None else options))

"""Embeddings: texts in, vectors of length one out. `HashedEmbedding` needs no model.

Source: Weinberger et al., "Feature hashing for large scale multitask learning" (ICML 2009). Similar texts share words
and letters. Meaning is not represented, so hashing replaces a real embedding where a mechanism is tested.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain, pairwise, starmap
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from drift_agents.errors import ArgumentError
from drift_agents.registry.parts import check_protocol, read_named
from drift_agents.registry.tables import EMBEDDINGS
from drift_envs.checks import check_count

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

    Raises:
        UnknownNameError: if there is no embedding of that name.
        ArgumentError: if it does not take one of the options, or refuses its value.
        MissingDependencyError: if it needs a package that is not installed.

    Example:
        >>> make_embedding("hashed", dimension=64).dimension
        64
    """
    made: Embedding = EMBEDDINGS.make(name, **options)
    check_protocol("embedding", name, made, Embedding)
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
        check_protocol("embedding", type(given).__name__, given, Embedding)
        return given
    name, options = read_named("embedding", given)
    return make_embedding(name, **options)


def embed_each(texts: Sequence[str], dimension: int, embed: Callable[[str], NDArray[np.float64]]) -> Vectors:
    """One vector for each text.

    Args:
        dimension: of a vector.
        embed: makes the vector of a text.

    Raises:
        ArgumentError: if `texts` is one text instead of a sequence of them.
    """
    if isinstance(texts, str):
        raise ArgumentError(f"`texts` should be a sequence of texts. Received the text {texts[:80]!r}")
    return np.concatenate([embed(text) for text in texts]).reshape(-1, dimension) if texts else np.zeros((0, dimension))


LETTERS = 3
"""The length of a run of letters; one of them may be the blank between two words."""
CACHED = 8192
"""The largest number of cached vectors: agents embed the same texts repeatedly."""
_WORD = re.compile(r"\w+")


class HashedEmbedding:
    """Words, pairs of neighbouring words and runs of three letters, hashed into a vector of length one.

    Pairs of words distinguish `[1, 2]` from `[2, 1]`. Case is ignored. Each feature adds 1 or -1 at one
    place, both given by its hash, so that collisions cancel on average.

    Args:
        dimension: the length of a vector; at least 2.

    Raises:
        ArgumentError: if the dimension is not a whole number of that size.

    Example:
        >>> red, ruby, axe = HashedEmbedding().embed(["a red jacket", "a ruby red jacket", "the axe"])
        >>> bool(red @ ruby > 0.5 > red @ axe), round(float(red @ red), 6)
        (True, 1.0)
    """

    name = "hashed"

    def __init__(self, dimension: int = 512) -> None:
        self.dimension = check_count("dimension", dimension, 2)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One vector of length one for each text; zeros for a text without a word (or whose features cancel out).

        Returns:
            Vectors, shape (len(texts), dimension).

        Raises:
            ArgumentError: if `texts` is one text instead of a sequence of them.
        """
        return embed_each(texts, self.dimension, lambda text: _embed(text, self.dimension))


@lru_cache(maxsize=CACHED)
def _embed(text: str, dimension: int) -> NDArray[np.float64]:
    """The vector of one text; read-only."""
    words = _WORD.findall(text.casefold())
    features = chain(map(_hash_word, words), starmap(_hash_pair, pairwise(words)))
    hashes = np.fromiter(chain.from_iterable(features), np.int64)
    signs = np.where(hashes & 1, 1.0, -1.0)
    vector = np.bincount((hashes >> 1) % dimension, signs, dimension).astype(np.float64)
    # Whole numbers so far, so this sum is exact in any order.
    length = float(np.sqrt(np.sum(vector * vector)))
    if length > 0:
        vector /= length
    vector.flags.writeable = False
    return vector


# Cached by word and by pair, since texts of an agent have few of either and many runs.
@lru_cache(maxsize=CACHED)
def _hash_word(word: str) -> tuple[int, ...]:
    """The hashes of a word and of the runs within it and its two blanks."""
    plain = f" {word} "
    runs = (plain[start : start + LETTERS] for start in range(len(plain) - LETTERS + 1))
    return (_hash(f"w {word}"), *(_hash(f"l {run}") for run in runs))


@lru_cache(maxsize=CACHED)
def _hash_pair(one: str, two: str) -> tuple[int, int]:
    """The hashes of a pair and of the run across its blank."""
    return _hash(f"p {one} {two}"), _hash(f"l {one[-1]} {two[0]}")


def _hash(feature: str) -> int:
    """Not `hash`, which differs from process to process."""
    return zlib.crc32(feature.encode("utf-8", "surrogatepass"))

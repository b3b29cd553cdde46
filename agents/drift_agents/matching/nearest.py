"""Matching by the nearest neighbour in an embedding space (GLOVE, section 4.2).

* `NearestNeighbour` - a state is the most similar earlier one, if that is similar enough
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drift_agents.embedding.base import Embedding, Vectors, cosine, resolve_embedding
from drift_agents.matching.base import Exact
from drift_agents.types import Transition
from drift_envs.checks import check_interval


class NearestNeighbour(Exact):
    """A state is the most similar earlier one, if that is similar enough: for states with text that does not matter.

    The first state is its own. A later one gets the key of the state of highest cosine among those with a key of
    their own, if that cosine is at least `similarity`; otherwise it has a key of its own. A text that has a key keeps
    it, so that equal keys are an equivalence, as memories need; which states share one depends on their order.
    Outcomes are the same if the states that follow are, and score and end are equal.

    Args:
        similarity: the lowest cosine of two texts that count as the same state, in (0, 1]; with 1 only texts with
            equal embeddings do.
        embedding: name of an embedding, a mapping of the name to its options, or an object.

    Raises:
        ArgumentError: if an option is outside its range.
        MissingDependencyError: if the embedding needs a package that is not installed.

    Example:
        >>> rule = NearestNeighbour(similarity=0.8)
        >>> first, later, other = "page 1 of 3: red shoes, 20 left", "page 1 of 3: red shoes, 19 left", "your cart"
        >>> rule.state_key(first) == rule.state_key(later), rule.state_key(first) == rule.state_key(other)
        (True, False)
    """

    name = "nearest"

    def __init__(self, similarity: float = 0.95, embedding: str | Mapping[str, Any] | Embedding = "hashed") -> None:
        self.similarity = check_interval("similarity", similarity, "(0, 1]")
        self.embedding: Embedding = resolve_embedding(embedding)
        self._keys: dict[str, str] = {}
        self._own: list[str] = []
        self._vectors: Vectors = np.zeros((0, self.embedding.dimension))

    def state_key(self, state: str) -> str:
        """The text of the state that it counts as."""
        if state not in self._keys:
            self._keys[state] = self._find(state)
        return self._keys[state]

    def _find(self, state: str) -> str:
        (vector,) = self.embedding.embed([state])
        count = len(self._own)
        if count:
            similarities = cosine(vector, self._vectors[:count])
            nearest = int(similarities.argmax())
            if similarities[nearest] >= self.similarity:
                return self._own[nearest]
        if count == len(self._vectors):  # room for twice as many, so that a state costs no copy of all
            self._vectors = np.concatenate([self._vectors, np.zeros((max(count, 64), self.embedding.dimension))])
        self._vectors[count] = vector
        self._own.append(state)
        return state

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether the next states are the same by this rule, and score and termination are equal."""
        one, other = a.outcome, b.outcome
        if (one.score, one.ended) != (other.score, other.ended):
            return False
        return one.state == other.state or self.state_key(one.state) == self.state_key(other.state)

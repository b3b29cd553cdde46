"""Keys of steps: history and observation as one vector (AdaMEM, section 3.1 and algorithm 1).

* `StepKeys` - the keys of many trajectories, and the steps whose keys are nearest
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drift_agents.embedding.base import Embedding, Vectors, cosine
from drift_agents.memory.trajectories import StoredTrajectory
from drift_agents.types import RecordId

NOTHING = "nothing has happened yet"
"""What is embedded as the history of a first step."""


class StepKeys:
    """The keys of many trajectories, and the steps whose keys are nearest.

    A key is made of two halves of equal length, so that a cosine of keys is the mean of two cosines:
    that of the observations, and that of the histories. A history's vector is the sum of those of its
    steps, brought to length one: the whole history counts, and however long it grows the observation
    keeps its half. One text for both, as an embedding model takes it, would drown the observation in
    counts of words; that is this project's choice.

    Args:
        embedding: of states, and of steps.

    Example:
        >>> from drift_agents.embedding.hashed import HashedEmbedding
        >>> keys = StepKeys(HashedEmbedding())
        >>> keys.put(StoredTrajectory(5, "Go.", (("a", "0"), ("b", "1")), (0, 1), 1.0))
        >>> keys.nearest([("a", "0")], "b", 1)
        [(5, 1, 1.0)]
    """

    def __init__(self, embedding: Embedding) -> None:
        self.embedding = embedding
        self._vectors: dict[RecordId, Vectors] = {}
        self._first: dict[RecordId, int] = {}
        self._table: tuple[Vectors, list[tuple[RecordId, int]]] | None = None

    def put(self, trajectory: StoredTrajectory) -> None:
        """Note a trajectory, or what is left of it."""
        if trajectory.id not in self._vectors:
            self._vectors[trajectory.id] = self._make(trajectory.told)
        self._first[trajectory.id] = trajectory.first
        self._table = None

    def drop(self, number: RecordId) -> None:
        """Forget a trajectory."""
        del self._vectors[number], self._first[number]
        self._table = None

    def nearest(self, history: Sequence[tuple[str, str]], state: str, k: int) -> list[tuple[RecordId, int, float]]:
        """The `k` steps whose keys are most similar, the best first.

        Of equal ones that of the newest trajectory comes first, and of its steps the latest.

        Args:
            history: the steps before, as pairs of state and action.
            state: the present state.
            k: how many.

        Returns:
            Number of the trajectory, place of the step in what was lived, similarity in [-1, 1].
        """
        if self._table is None:
            places = [
                (number, place)
                for number, first in self._first.items()
                for place in range(first, len(self._vectors[number]))
            ]
            parts = [self._vectors[number][first:] for number, first in self._first.items()]
            self._table = (np.concatenate(parts) if parts else np.zeros((0, 2 * self.embedding.dimension)), places)
        vectors, places = self._table
        if not places:
            return []
        similar = cosine(self._make([*history, (state, "")])[-1], vectors)
        numbers = np.array(places)
        order = np.lexsort((-numbers[:, 1], -numbers[:, 0], -similar))[:k]
        return [(*places[place], float(similar[place])) for place in order.tolist()]

    def _make(self, told: Sequence[tuple[str, str]]) -> Vectors:
        """One key for every step; shape (steps, 2 x dimension)."""
        seen = self.embedding.embed([state for state, _ in told])
        steps = self.embedding.embed([f"{state} {action}" for state, action in told])
        history = np.zeros_like(steps)
        history[0] = self.embedding.embed([NOTHING])[0]
        # Rounded, so that the order of additions, which differs between machines, decides nothing.
        history[1:] = np.round(np.cumsum(steps, axis=0)[:-1], 9)
        lengths = np.linalg.norm(history, axis=1, keepdims=True)
        history = np.divide(history, lengths, out=np.zeros_like(history), where=lengths > 0)
        return np.concatenate([seen, history], axis=1) / np.sqrt(2.0)

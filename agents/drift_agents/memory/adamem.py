"""AdaMEM's long-term memory: every step of every success, retrieved by history and observation.

* `AdaMemMemory` - the memory
* `StepKeys` - the keys of steps, and the steps whose keys are nearest

Source: Zhang, Li, Payani and Wang, "AdaMEM: test-time adaptive memory for language agents", section 3.1 and
algorithm 1. `docs/memories/adamem.md` says what is faithful and what was decided here. Its short-term memory,
the strategy, is `drift_agents.controller.adamem`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drift_agents.embedding.base import Embedding, Vectors, cosine
from drift_agents.memory.episodic import Choice
from drift_agents.memory.trajectory import StoredTrajectory, TrajectoryMemory
from drift_agents.types import AgentClock, RecordId

EMPTY_HISTORY = "nothing has happened yet"
"""What is embedded as the history of a first step."""


class StepKeys:
    """The keys of steps, and the steps whose keys are nearest.

    A key has two halves of equal length, so that the cosine of two keys is the mean of two cosines: that
    of the observations, and that of the histories. The vector of a history is the normalised sum of those
    of its steps: the whole history counts, and the observation keeps its half whatever the length of the
    history. In one text for both, as an embedding model takes it, the words of the history would outweigh
    those of the observation; the two halves are this project's choice.

    Args:
        embedding: of states, and of steps.

    Example:
        >>> from drift_agents.embedding.hashed import HashedEmbedding
        >>> keys = StepKeys(HashedEmbedding())
        >>> keys.add(StoredTrajectory(5, "Go.", (("a", "0"), ("b", "1")), (0, 1), 1.0))
        >>> keys.nearest([("a", "0")], "b", 1)
        [(5, 1, 1.0)]
    """

    def __init__(self, embedding: Embedding) -> None:
        self.embedding = embedding
        self._vectors: dict[RecordId, Vectors] = {}
        self._first: dict[RecordId, int] = {}
        self._table: tuple[Vectors, list[tuple[RecordId, int]]] | None = None

    def add(self, trajectory: StoredTrajectory) -> None:
        """Index the remaining steps of a trajectory."""
        if trajectory.id not in self._vectors:
            self._vectors[trajectory.id] = self._embed_path(trajectory.path)
        self._first[trajectory.id] = trajectory.first
        self._table = None

    def remove(self, number: RecordId) -> None:
        """Remove a trajectory, which must be indexed."""
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
            Number of the trajectory, place of the step in its path, similarity in [-1, 1].
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
        similar = cosine(self._embed_path([*history, (state, "")])[-1], vectors)
        numbers = np.array(places)
        order = np.lexsort((-numbers[:, 1], -numbers[:, 0], -similar))[:k]
        return [(*places[place], float(similar[place])) for place in order.tolist()]

    def _embed_path(self, path: Sequence[tuple[str, str]]) -> Vectors:
        """One key for every step; shape (steps, 2 x dimension)."""
        observations = self.embedding.embed([state for state, _ in path])
        steps = self.embedding.embed([f"{state} {action}" for state, action in path])
        history = np.zeros_like(steps)
        history[0] = self.embedding.embed([EMPTY_HISTORY])[0]
        # Rounded, since the order of additions differs between machines.
        history[1:] = np.round(np.cumsum(steps, axis=0)[:-1], 9)
        lengths = np.linalg.norm(history, axis=1, keepdims=True)
        history = np.divide(history, lengths, out=np.zeros_like(history), where=lengths > 0)
        keys: np.ndarray = np.concatenate([observations, history], axis=1) / np.sqrt(2.0)
        return keys


class AdaMemMemory(TrajectoryMemory):
    """Every step of every success, retrieved by history and observation.

    For every step t of an episode that reached the highest score (r_T = 1) the key is
    phi(s_t) with s_t = (h_t, o_t), and the value (s_t, a_t, rest of the trajectory). The `k` steps whose
    keys have the highest cosine with the present history and observation are retrieved. The prompt shows
    them with the steps that followed, the steps of the present episode, and verified summaries.

    With the controller `direct`, that is the paper's ablation without strategy (table 3): raw
    trajectories, retrieved anew at every step. The controller `adamem` makes strategies of them.

    Args:
        k: steps retrieved, from 1 to 16; 1 in the paper's tables.
        pool: `success`; or `all`, which also stores episodes that failed. Strategies then contain their
            steps and outcomes too: an extension of this project, since the paper excludes failures.
        cascade: what happens to a trajectory when one of its steps is removed (`drift_agents.memory.citations`).
            `cut`: it loses every key up to that step and keeps those after it.
        embedding: phi; hashed words and letters if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> from drift_agents.types import Episode, Experience, Outcome
        >>> memory = AdaMemMemory()
        >>> for step, (state, after) in enumerate([("a", "b"), ("b", "goal")]):
        ...     ended = after == "goal"
        ...     now = AgentClock(0, step)
        ...     _ = memory.observe(Experience(state, "1", Outcome(after, float(ended), ended), 0.0, now), now)
        >>> memory.end_episode(Episode("Reach the goal.", 1.0, 2, True), AgentClock(0, 2))
        >>> [[step.state for step in found.steps] for found in memory.exemplars("a", None, AgentClock(1, 2))]
        [['a', 'b']]
    """

    name = "adamem"
    _keys: StepKeys

    def _choose(self, state: str, k: int, now: AgentClock) -> tuple[Choice, ...]:
        return tuple(Choice(*found) for found in self._keys.nearest(self.history(now), state, k))

    def _add_keys(self, trajectory: StoredTrajectory) -> None:
        self._keys.add(trajectory)

    def _remove_keys(self, number: RecordId) -> None:
        self._keys.remove(number)

    def _clear_keys(self) -> None:
        self._keys = StepKeys(self._embedding)

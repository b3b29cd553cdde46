"""Memories of trajectories, retrieved from a step to their end: AdaMEM's long-term memory, and Synapse.

Sources: Zhang, Li, Payani and Wang, "AdaMEM: test-time adaptive memory for language agents", section 3.1 and algorithm
1; Zheng et al., "Synapse: trajectory-as-exemplar prompting with memory for computer control" (ICLR 2024), as AdaMEM
compares with it (section 4.1). `docs/memories/adamem.md` and `docs/memories/items.md` say what is faithful and what
was decided here. AdaMEM's short-term memory, the strategy, is `drift_agents.controller.adamem`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from drift_agents.embedding.base import Embedding, HashedEmbedding, Vectors, cosine
from drift_agents.envs.matching import Matching
from drift_agents.memory.base import Exemplar
from drift_agents.memory.citations import ItemStore
from drift_agents.memory.episodic import Choice, EpisodicMemory, TaskIndex
from drift_agents.types import AgentClock, Episode, Record, RecordId


class TrajectoryMemory(EpisodicMemory):
    """An episodic memory that stores trajectories.

    Subclasses choose (`_choose`), and make an index of keys and add to it (`_make_keys`, `_add_keys`).

    Args:
        k: items retrieved, from 1 to 16.
        pool: which episodes it learns from, `success` or `all`.
        cascade: what happens to a trajectory when one of its steps is removed (`drift_agents.memory.citations`).
        embedding: of texts; hashed words and letters if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    def __init__(
        self,
        *,
        k: int = 1,
        pool: str = "success",
        cascade: str = "cut",
        embedding: Embedding | None = None,
        matching: Matching | None = None,
    ) -> None:
        super().__init__(k, pool, matching)
        self._trajectories = ItemStore[StoredTrajectory](cascade)
        self._keys = self._make_keys(HashedEmbedding() if embedding is None else embedding)

    @abstractmethod
    def _make_keys(self, embedding: Embedding) -> StepKeys | TaskIndex:
        """An empty index."""

    @abstractmethod
    def _add_keys(self, trajectory: StoredTrajectory) -> None:
        """Index a trajectory that was written or cut."""

    def trajectories(self) -> tuple[StoredTrajectory, ...]:
        """All trajectories, oldest first."""
        return tuple(self._trajectories)

    def exemplars(self, state: str, k: int | None, now: AgentClock) -> tuple[Exemplar, ...]:
        """What is retrieved now, each from a step to the end of its episode, the best first."""
        self._update_choice(state, k, now)
        found = []
        for choice in self._chosen:
            trajectory = self._trajectories[choice.item]
            steps = tuple(self.transitions.select(self._steps_from(choice.item, choice.place)))
            found.append(Exemplar(steps, trajectory.score, choice.similarity, trajectory.task))
        return tuple(found)

    def _steps_from(self, number: RecordId, place: int) -> tuple[RecordId, ...]:
        """The remaining records of a trajectory from that place on."""
        trajectory = self._trajectories[number]
        return trajectory.steps[max(0, place - trajectory.first) :]

    def _retrieved_records(self) -> Iterable[RecordId]:
        for choice in self._chosen:
            yield from self._steps_from(choice.item, choice.place)

    def _learn(self, result: Episode, steps: list[Record], now: AgentClock) -> None:
        path = tuple((record.state, record.action) for record in steps)
        ids = tuple(record.id for record in steps)
        trajectory = StoredTrajectory(self.transitions.new_id(), result.task, path, ids, float(result.score))
        self._trajectories.add(trajectory)
        self._add_keys(trajectory)

    def _cascade(self, removed: Sequence[RecordId]) -> tuple[RecordId, ...]:
        items = []
        for trajectory in self._trajectories.remove_records(removed, self.transitions):
            if trajectory.id in self._trajectories:
                self._add_keys(self._trajectories[trajectory.id])
            else:
                self._keys.remove(trajectory.id)
                items.append(trajectory.id)
        return tuple(items)


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

    def _make_keys(self, embedding: Embedding) -> StepKeys:
        return StepKeys(embedding)


class Synapse(TrajectoryMemory):
    """Whole trajectories as exemplars, chosen once, when the episode begins.

    The key of a trajectory is the first observation of its episode, which names the task where tasks
    differ (the first page of a shop holds the instruction). The `k` nearest trajectories are in every
    prompt of the episode; if a verifier removes one, none replaces it before the next episode.

    Args:
        k: trajectories retrieved, from 1 to 16; 1 in AdaMEM's tables.
        pool: `success`, as in AdaMEM's comparison, or `all`.
        cascade: what happens to a trajectory when one of its steps is removed (`drift_agents.memory.citations`).
        embedding: of first observations; hashed words and letters if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> from drift_agents.types import Episode, Experience, Outcome
        >>> memory = Synapse()
        >>> for step, (state, after) in enumerate([("a", "b"), ("b", "goal")]):
        ...     ended = after == "goal"
        ...     now = AgentClock(0, step)
        ...     _ = memory.observe(Experience(state, "1", Outcome(after, float(ended), ended), 0.0, now), now)
        >>> memory.end_episode(Episode("Reach the goal.", 1.0, 2, True), AgentClock(0, 2))
        >>> _ = memory.retrieve("a", None, AgentClock(1, 2))
        >>> [record.state for record in memory.retrieve("b", None, AgentClock(1, 3)).records]
        ['b']
    """

    name = "synapse"
    once_per_episode = True
    _keys: TaskIndex

    def _choose(self, state: str, k: int, now: AgentClock) -> tuple[Choice, ...]:
        return self._keys.choose(state, k)

    def _update_after_removal(self) -> None:
        self._chosen = tuple(choice for choice in self._chosen if choice.item in self._trajectories)

    def _add_keys(self, trajectory: StoredTrajectory) -> None:
        self._keys.add(trajectory.id, trajectory.path[0][0])

    def _make_keys(self, embedding: Embedding) -> TaskIndex:
        return TaskIndex(embedding)


class StoredTrajectory(NamedTuple):
    """An episode, or its valid suffix.

    Args:
        id: its number.
        task: its task in words.
        path: all its steps, as pairs of state and action; also those that were cut off, since the keys of
            later steps depend on the history before them.
        steps: the records of the remaining steps, the last ones of `path`.
        score: the score at the end.
    """

    id: RecordId
    task: str
    path: tuple[tuple[str, str], ...]
    steps: tuple[RecordId, ...]
    score: float

    @property
    def first(self) -> int:
        """The place in `path` of the first remaining step."""
        return len(self.path) - len(self.steps)

    def keep_last(self, number: int) -> StoredTrajectory:
        """The trajectory with its last steps alone."""
        return self._replace(steps=self.steps[-number:])


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
        >>> from drift_agents.embedding.base import HashedEmbedding
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

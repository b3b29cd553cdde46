"""The common part of AdaMEM and Synapse: trajectories, retrieved from a step to their end.

* `TrajectoryMemory` - an episodic memory that stores trajectories
* `StoredTrajectory` - an episode: its task, its steps, its score
* `TrajectoryStore` - all of them; they are removed, or cut, with their records
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from drift_agents.embedding.base import Embedding
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.matching.base import Matching
from drift_agents.memory.base import Exemplar
from drift_agents.memory.citations import Citations, valid_suffix
from drift_agents.memory.episodic import EpisodicMemory
from drift_agents.types import AgentClock, Episode, Record, RecordId


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


class TrajectoryStore:
    """All trajectories.

    Args:
        cascade: what happens to a trajectory with removed steps, one of `drift_agents.memory.citations.CASCADES`;
            `cut` keeps the steps after the last removed one.

    Raises:
        ArgumentError: if there is no such cascade.

    Example:
        >>> store = TrajectoryStore("cut")
        >>> store.add(StoredTrajectory(9, "Go.", (("a", "0"), ("b", "0"), ("c", "1")), (3, 4, 5), 1.0))
        >>> [trajectory.steps for trajectory in store.remove_records([4], present={3, 5})], store.get(9).steps
        ([(3, 4, 5)], (5,))
    """

    def __init__(self, cascade: str) -> None:
        self.cascade = cascade
        self._citations = Citations(cascade)
        self._trajectories: dict[RecordId, StoredTrajectory] = {}

    def __len__(self) -> int:
        return len(self._trajectories)

    def __iter__(self) -> Iterator[StoredTrajectory]:
        """All of them, oldest first."""
        return iter(self._trajectories.values())

    def __contains__(self, number: object) -> bool:
        return number in self._trajectories

    def get(self, number: RecordId) -> StoredTrajectory:
        """The trajectory of that number, which must be stored."""
        return self._trajectories[number]

    def add(self, trajectory: StoredTrajectory) -> None:
        """Store a trajectory.

        Args:
            trajectory: the trajectory.

        Raises:
            ArgumentError: if it has no steps.
        """
        self._citations.add(trajectory.id, trajectory.steps)
        self._trajectories[trajectory.id] = trajectory

    def remove_records(self, removed: Sequence[RecordId], present: Container[RecordId]) -> tuple[StoredTrajectory, ...]:
        """Remove or cut the trajectories that depend on removed records.

        Args:
            removed: the numbers of the records.
            present: the records that remain.

        Returns:
            The trajectories removed or cut, as they were before.
        """
        if self.cascade != "cut":
            return tuple(self._trajectories.pop(number) for number in self._citations.remove(removed))
        changed = [self._trajectories[number] for number in self._citations.citing_any(removed)]
        for trajectory in changed:
            steps = valid_suffix(trajectory.steps, present)
            if steps:
                self._citations.add(trajectory.id, steps)
                self._trajectories[trajectory.id] = trajectory._replace(steps=steps)
            else:
                self._citations.remove([trajectory.id])
                del self._trajectories[trajectory.id]
        return tuple(changed)


class TrajectoryMemory(EpisodicMemory):
    """An episodic memory that stores trajectories.

    Subclasses choose (`_choose`) and keep an index of keys (`_add_keys`, `_remove_keys`, `_clear_keys`).

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
        self._trajectories = TrajectoryStore(cascade)
        self._embedding = HashedEmbedding() if embedding is None else embedding
        self._clear_keys()

    @abstractmethod
    def _add_keys(self, trajectory: StoredTrajectory) -> None:
        """Index a trajectory that was written or cut."""

    @abstractmethod
    def _remove_keys(self, number: RecordId) -> None:
        """Remove a trajectory from the index."""

    @abstractmethod
    def _clear_keys(self) -> None:
        """Replace the index by an empty one."""

    def trajectories(self) -> tuple[StoredTrajectory, ...]:
        """All trajectories, oldest first."""
        return tuple(self._trajectories)

    def exemplars(self, state: str, k: int | None, now: AgentClock) -> tuple[Exemplar, ...]:
        """What is retrieved now, each from a step to the end of its episode, the best first."""
        self._update_choice(state, k, now)
        found = []
        for choice in self._chosen:
            trajectory = self._trajectories.get(choice.item)
            steps = tuple(self._transitions.select(self._steps_from(choice.item, choice.place)))
            found.append(Exemplar(steps, trajectory.score, choice.similarity, trajectory.task))
        return tuple(found)

    def _steps_from(self, number: RecordId, place: int) -> tuple[RecordId, ...]:
        """The remaining records of a trajectory from that place on."""
        trajectory = self._trajectories.get(number)
        return trajectory.steps[max(0, place - trajectory.first) :]

    def _retrieved_records(self) -> Iterable[RecordId]:
        for choice in self._chosen:
            yield from self._steps_from(choice.item, choice.place)

    def _learn(self, result: Episode, steps: list[Record], now: AgentClock) -> None:
        path = tuple((record.state, record.action) for record in steps)
        ids = tuple(record.id for record in steps)
        trajectory = StoredTrajectory(self._transitions.new_id(), result.task, path, ids, float(result.score))
        self._trajectories.add(trajectory)
        self._add_keys(trajectory)

    def _cascade(self, removed: Sequence[RecordId]) -> tuple[RecordId, ...]:
        items = []
        for trajectory in self._trajectories.remove_records(removed, self._transitions):
            if trajectory.id in self._trajectories:
                self._add_keys(self._trajectories.get(trajectory.id))
            else:
                self._remove_keys(trajectory.id)
                items.append(trajectory.id)
        return tuple(items)

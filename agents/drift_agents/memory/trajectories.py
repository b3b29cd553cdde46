"""Trajectories of episodes that went well, kept whole as long as what they rest on is there.

* `StoredTrajectory` - an episode: its task, its steps, its score
* `TrajectoryStore` - all of them; they fall, or are cut, when records go
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from drift_agents.memory.citations import Citations, kept_suffix
from drift_agents.types import RecordId


class StoredTrajectory(NamedTuple):
    """An episode, or what is left of it.

    Args:
        id: its number.
        task: its task in words.
        told: its steps as they were lived, as pairs of state and action; also those that were cut off,
            since keys of later steps are made from the history before them.
        steps: the records of the last so many of them.
        score: the score at the end.
    """

    id: RecordId
    task: str
    told: tuple[tuple[str, str], ...]
    steps: tuple[RecordId, ...]
    score: float

    @property
    def first(self) -> int:
        """The place of the first step that is left."""
        return len(self.told) - len(self.steps)


class TrajectoryStore:
    """All trajectories.

    Args:
        cascade: what becomes of a trajectory whose steps go, one of `drift_agents.memory.citations.CASCADES`.
            `cut` leaves the steps behind the last one that went.

    Raises:
        ArgumentError: if there is no such cascade.

    Example:
        >>> kept = TrajectoryStore("cut")
        >>> kept.add(StoredTrajectory(9, "Go.", (("a", "0"), ("b", "0"), ("c", "1")), (3, 4, 5), 1.0))
        >>> [trajectory.steps for trajectory in kept.fall([4], there={3, 5})], kept.get(9).steps
        ([(3, 4, 5)], (5,))
    """

    def __init__(self, cascade: str) -> None:
        self.cascade = cascade
        self._citations = Citations(cascade)
        self._kept: dict[RecordId, StoredTrajectory] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._kept)

    def __iter__(self) -> Iterator[StoredTrajectory]:
        """All of them, oldest first."""
        return iter(self._kept.values())

    def __contains__(self, number: object) -> bool:
        """Whether there is one of that number."""
        return number in self._kept

    def get(self, number: RecordId) -> StoredTrajectory:
        """The one of that number, which must be there."""
        return self._kept[number]

    def add(self, trajectory: StoredTrajectory, lost: Container[RecordId] = ()) -> None:
        """Keep a trajectory.

        Args:
            trajectory: it.
            lost: which of its steps are gone, when it is read back from a snapshot.

        Raises:
            ArgumentError: if it has no steps.
        """
        self._citations.add(trajectory.id, trajectory.steps, lost)
        self._kept[trajectory.id] = trajectory

    def fall(self, gone: Sequence[RecordId], there: Container[RecordId]) -> tuple[StoredTrajectory, ...]:
        """Take note that records went: trajectories fall, or are cut.

        Args:
            gone: the numbers of the records.
            there: what is still there.

        Returns:
            Those that fell and those that were cut, as they were before.
        """
        if self.cascade != "cut":
            return tuple(self._kept.pop(number) for number in self._citations.fall(gone))
        touched = dict.fromkeys(number for record in gone for number in self._citations.citing(record))
        changed = [self._kept[number] for number in touched]
        for trajectory in changed:
            left = kept_suffix(trajectory.steps, there)
            if left:
                self._citations.add(trajectory.id, left)
                self._kept[trajectory.id] = trajectory._replace(steps=left)
            else:
                self._citations.fall([trajectory.id])
                del self._kept[trajectory.id]
        return tuple(changed)

    def snapshot(self) -> list[Any]:
        """All of them as plain data."""
        return [[one.id, one.task, [list(step) for step in one.told], list(one.steps), one.score] for one in self]

    def restored(self, data: Iterable[Any], there: Container[RecordId]) -> TrajectoryStore:
        """The trajectories of a snapshot, under the same cascade.

        Args:
            data: what `snapshot` made.
            there: the records that there are.

        Raises:
            TypeError, ValueError: if the data is no snapshot of trajectories.
        """
        fresh = TrajectoryStore(self.cascade)
        for number, task, told, steps, score in data:
            pairs = tuple((str(state), str(action)) for state, action in told)
            one = StoredTrajectory(int(number), str(task), pairs, tuple(map(int, steps)), float(score))
            if not 0 < len(one.steps) <= len(one.told):
                raise ValueError(f"trajectory {one.id} should have steps, no more than were lived")
            fresh.add(one, {step for step in one.steps if step not in there})
        return fresh

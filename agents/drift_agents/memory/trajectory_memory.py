"""What AdaMEM and Synapse have in common: trajectories, recalled whole or from a step on.

* `TrajectoryMemory` - keeps trajectories, and tells what was recalled of them
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from drift_agents.matching.base import Matching
from drift_agents.memory.episodic import EpisodicMemory
from drift_agents.memory.exemplar import Exemplar
from drift_agents.memory.ledger import Ledger
from drift_agents.memory.trajectories import StoredTrajectory, TrajectoryStore
from drift_agents.types import AgentClock, Episode, Plain, Record, RecordId


class TrajectoryMemory(EpisodicMemory):
    """Keeps trajectories, and tells what was recalled of them.

    Those below choose (`_choose`) and keep keys: `_put` is told what is written or cut, `_drop` what fell.

    Args:
        k: items recalled.
        pool: which episodes it learns from.
        cascade: what becomes of a trajectory when one of its steps goes.
        matching: when two states count as the same.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    def __init__(self, k: int, pool: str, cascade: str, matching: Matching | None) -> None:
        super().__init__(k, pool, matching)
        self._trajectories = TrajectoryStore(cascade)

    @abstractmethod
    def _put(self, trajectory: StoredTrajectory) -> None:
        """A trajectory was written, or cut."""

    @abstractmethod
    def _drop(self, number: RecordId) -> None:
        """A trajectory fell."""

    def trajectories(self) -> tuple[StoredTrajectory, ...]:
        """All trajectories, oldest first."""
        return tuple(self._trajectories)

    def exemplars(self, state: str, k: int | None, now: AgentClock) -> tuple[Exemplar, ...]:
        """What is recalled at this moment, each from a step to the end of its episode, the best first."""
        self._attend(state, k, now)
        found = []
        for choice in self._chosen:
            trajectory = self._trajectories.get(choice.item)
            records = [self._ledger.get(number) for number in self._rest(choice.item, choice.place)]
            steps = tuple(record for record in records if record is not None)
            found.append(Exemplar(steps, trajectory.score, choice.similarity, trajectory.task))
        return tuple(found)

    def _rest(self, number: RecordId, place: int) -> tuple[RecordId, ...]:
        """The records of a trajectory from that place on, as far as it was not cut."""
        trajectory = self._trajectories.get(number)
        return trajectory.steps[max(0, place - trajectory.first) :]

    def _recalled(self) -> Iterable[RecordId]:
        for choice in self._chosen:
            yield from self._rest(choice.item, choice.place)

    def _learn(self, result: Episode, steps: list[Record], now: AgentClock) -> None:
        told = tuple((record.state, record.action) for record in steps)
        ids = tuple(record.id for record in steps)
        trajectory = StoredTrajectory(self._ledger.new_id(), result.task, told, ids, float(result.score))
        self._trajectories.add(trajectory)
        self._put(trajectory)

    def _fall(self, gone: Sequence[RecordId]) -> tuple[RecordId, ...]:
        fell = []
        for trajectory in self._trajectories.fall(gone, self._ledger):
            if trajectory.id in self._trajectories:
                self._put(self._trajectories.get(trajectory.id))
            else:
                self._drop(trajectory.id)
                fell.append(trajectory.id)
        return tuple(fell)

    def _snapshot(self) -> dict[str, Any]:
        return {"trajectories": self._trajectories.snapshot()}

    def _restored(self, data: Plain, ledger: Ledger) -> dict[str, Any]:
        trajectories = self._trajectories.restored(data["trajectories"], ledger)
        if any(one.id in ledger or one.id >= data["ledger"]["next_id"] for one in trajectories):
            raise ValueError("a trajectory should have a number of its own")
        for number, place, _ in data["chosen"]:
            if not 0 <= place < len(trajectories.get(number).told):
                raise ValueError("what was chosen should be there")
        return {"_trajectories": trajectories}

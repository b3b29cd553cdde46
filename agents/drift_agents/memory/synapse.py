"""Synapse: whole trajectories as examples, chosen once, when the episode begins.

* `Synapse` - the memory

Source: Zheng et al., "Synapse: trajectory-as-exemplar prompting with memory for computer control" (ICLR
2024), as AdaMEM compares with it (section 4.1). `docs/memories/synapse.md` says what was decided here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drift_agents.embedding.base import Embedding, Vectors, cosine
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.matching.base import Matching
from drift_agents.memory.episodic import Choice
from drift_agents.memory.ledger import Ledger
from drift_agents.memory.trajectories import StoredTrajectory
from drift_agents.memory.trajectory_memory import TrajectoryMemory
from drift_agents.types import AgentClock, Plain, RecordId


class Synapse(TrajectoryMemory):
    """Whole trajectories as examples, chosen once, when the episode begins.

    A trajectory's key is what its episode began with: its first observation, which names the task where
    tasks differ (a shop's first page holds the instruction). The `k` nearest ones stand in every prompt
    of the episode, whatever happens in it; when a verifier takes one away, none takes its place
    before the next episode.

    Args:
        k: trajectories recalled, from 1 to 16; 1 in AdaMEM's tables.
        pool: `success`, as in AdaMEM's comparison, or `all`.
        cascade: what becomes of a trajectory when one of its steps goes (`drift_agents.memory.citations`).
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

    def __init__(
        self,
        *,
        k: int = 1,
        pool: str = "success",
        cascade: str = "cut",
        embedding: Embedding | None = None,
        matching: Matching | None = None,
    ) -> None:
        super().__init__(k, pool, cascade, matching)
        self._starts = TaskIndex(HashedEmbedding() if embedding is None else embedding)

    def _is_new(self, now: AgentClock) -> bool:
        return self._moment is None or self._moment.episode != now.episode

    def _choose(self, state: str, k: int, now: AgentClock) -> tuple[Choice, ...]:
        return tuple(Choice(number, 0, similar) for number, similar in self._starts.nearest(state, k))

    def _choose_again(self) -> None:
        self._chosen = tuple(choice for choice in self._chosen if choice.item in self._trajectories)

    def _put(self, trajectory: StoredTrajectory) -> None:
        self._starts.put(trajectory.id, trajectory.told[0][0])

    def _drop(self, number: RecordId) -> None:
        self._starts.drop(number)

    def _restored(self, data: Plain, ledger: Ledger) -> dict[str, Any]:
        own = super()._restored(data, ledger)
        starts = TaskIndex(self._starts.embedding)
        for trajectory in own["_trajectories"]:
            starts.put(trajectory.id, trajectory.told[0][0])
        return {**own, "_starts": starts}


class TaskIndex:
    """What episodes began with, and which are nearest.

    Args:
        embedding: of first observations.

    Example:
        >>> starts = TaskIndex(HashedEmbedding())
        >>> starts.put(3, "a red hat")
        >>> starts.put(4, "an axe")
        >>> starts.nearest("a hat", 1)[0][0]
        3
    """

    def __init__(self, embedding: Embedding) -> None:
        self.embedding = embedding
        self._texts: dict[RecordId, str] = {}
        self._vectors: Vectors | None = None

    def put(self, number: RecordId, text: str) -> None:
        """Note with what an episode began."""
        if self._texts.get(number) != text:
            self._texts[number], self._vectors = text, None

    def drop(self, number: RecordId) -> None:
        """Forget an episode."""
        del self._texts[number]
        self._vectors = None

    def nearest(self, text: str, k: int) -> list[tuple[RecordId, float]]:
        """The `k` nearest, the best first, with their similarity; of equal ones the newest."""
        if not self._texts:
            return []
        if self._vectors is None:
            self._vectors = self.embedding.embed(list(self._texts.values()))
        similar = cosine(self.embedding.embed([text])[0], self._vectors)
        numbers = np.array(list(self._texts))
        return [(int(numbers[place]), float(similar[place])) for place in np.lexsort((-numbers, -similar))[:k]]

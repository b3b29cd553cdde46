"""Synapse: whole trajectories as exemplars, chosen once, when the episode begins.

* `Synapse` - the memory

Source: Zheng et al., "Synapse: trajectory-as-exemplar prompting with memory for computer control" (ICLR
2024), as AdaMEM compares with it (section 4.1). `docs/memories/synapse.md` says what was decided here.
"""

from __future__ import annotations

from drift_agents.memory.episodic import Choice, TaskIndex
from drift_agents.memory.trajectory import StoredTrajectory, TrajectoryMemory
from drift_agents.types import AgentClock, RecordId


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
    _starts: TaskIndex

    def _choose(self, state: str, k: int, now: AgentClock) -> tuple[Choice, ...]:
        return self._starts.choose(state, k)

    def _update_after_removal(self) -> None:
        self._chosen = tuple(choice for choice in self._chosen if choice.item in self._trajectories)

    def _add_keys(self, trajectory: StoredTrajectory) -> None:
        self._starts.add(trajectory.id, trajectory.path[0][0])

    def _remove_keys(self, number: RecordId) -> None:
        self._starts.remove(number)

    def _clear_keys(self) -> None:
        self._starts = TaskIndex(self._embedding)

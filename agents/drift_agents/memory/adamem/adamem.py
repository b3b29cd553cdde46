"""AdaMEM's long-term memory: every step of every success, found by what it looked like and what came before.

* `AdaMemMemory` - the memory

Source: Zhang, Li, Payani and Wang, "AdaMEM: test-time adaptive memory for language agents", section 3.1.
`docs/memories/adamem.md` says what is faithful and what was decided here. Its short-term memory, the
strategy, is `drift_agents.controller.adamem`.
"""

from __future__ import annotations

from typing import Any

from drift_agents.embedding.base import Embedding
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.matching.base import Matching
from drift_agents.memory.adamem.step_keys import StepKeys
from drift_agents.memory.episodic import Choice
from drift_agents.memory.ledger import Ledger
from drift_agents.memory.trajectories import StoredTrajectory
from drift_agents.memory.trajectory_memory import TrajectoryMemory
from drift_agents.types import AgentClock, Plain, RecordId


class AdaMemMemory(TrajectoryMemory):
    """Every step of every success, found by history and observation.

    For every step t of an episode that reached the highest score (r_T = 1) the key is
    phi(s_t) with s_t = (h_t, o_t), and the value (s_t, a_t, rest of the trajectory). The `k` steps whose
    keys have the highest cosine with the present history and observation are recalled; then the prompt
    shows them with what followed them, the steps of the present episode, and what a verifier vouches for.

    Asked by the controller `direct`, that is the paper's ablation without strategy (table 3): raw
    trajectories, retrieved anew at every step. The controller `adamem` makes strategies of them.

    Args:
        k: steps recalled, from 1 to 16; 1 in the paper's tables.
        pool: `success`; or `all`, which also keeps episodes that failed. Strategies then tell their ways
            too, with what came of them: an extension of ours, since the paper leaves failures out.
        cascade: what becomes of a trajectory when one of its steps goes (`drift_agents.memory.citations`).
            `cut`: it loses every key up to that step and keeps those behind it.
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
        self._keys = StepKeys(HashedEmbedding() if embedding is None else embedding)

    def _choose(self, state: str, k: int, now: AgentClock) -> tuple[Choice, ...]:
        return tuple(Choice(*found) for found in self._keys.nearest(self.history(now), state, k))

    def _put(self, trajectory: StoredTrajectory) -> None:
        self._keys.put(trajectory)

    def _drop(self, number: RecordId) -> None:
        self._keys.drop(number)

    def _restored(self, data: Plain, ledger: Ledger) -> dict[str, Any]:
        own = super()._restored(data, ledger)
        keys = StepKeys(self._keys.embedding)
        for trajectory in own["_trajectories"]:
            keys.put(trajectory)
        return {**own, "_keys": keys}

"""AdaMEM's long-term memory: every step of every success, found by what it looked like and what came before.

* `AdaMemMemory` - the memory

Source: Zhang, Li, Payani and Wang, "AdaMEM: test-time adaptive memory for language agents", section 3.1.
`docs/memories/adamem.md` says what is faithful and what was decided here. Its short-term memory, the
strategy, is `drift_agents.controller.adamem`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from drift_agents.embedding.base import Embedding
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.matching import Matching
from drift_agents.memory.episodic import Choice, EpisodicMemory
from drift_agents.memory.exemplar import Exemplar
from drift_agents.memory.step_keys import StepKeys
from drift_agents.memory.store import Ledger
from drift_agents.memory.trajectories import Trajectories, Trajectory
from drift_agents.memory.voyager_critic import highest_score
from drift_agents.types import AgentClock, Episode, Plain, Record, RecordId


class AdaMemMemory(EpisodicMemory):
    """Every step of every success, found by history and observation.

    For every step t of an episode that reached the highest score (r_T = 1) the key is
    phi(s_t) with s_t = (h_t, o_t), and the value (s_t, a_t, rest of the trajectory). The `k` steps whose
    keys have the highest cosine with the present history and observation are recalled; then the prompt
    shows them with what followed them, the steps of the present episode, and what a verifier vouches for.

    Asked by the controller `direct`, that is the paper's ablation without strategy (table 3): raw
    trajectories, retrieved anew at every step. The controller `adamem` makes strategies of them.

    Args:
        k: steps recalled, from 1 to 16; 1 in the paper's tables.
        cascade: what becomes of a trajectory when one of its steps goes (`drift_agents.memory.derived`).
            `cut`: it loses every key up to that step and keeps those behind it.
        embedding: phi; hashed words and letters if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> from drift_agents.types import Experience, Outcome
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
        cascade: str = "cut",
        embedding: Embedding | None = None,
        matching: Matching | None = None,
    ) -> None:
        super().__init__(k, matching)
        self.cascade = cascade
        self._trajectories = Trajectories(cascade)
        self._keys = StepKeys(HashedEmbedding() if embedding is None else embedding)

    def trajectories(self) -> tuple[Trajectory, ...]:
        """All trajectories, oldest first."""
        return tuple(self._trajectories)

    def exemplars(self, state: str, k: int | None, now: AgentClock) -> tuple[Exemplar, ...]:
        """The steps that are most like the present moment, each with what came after it, the best first."""
        self._attend(state, k, now)
        found = []
        for choice in self._chosen:
            trajectory = self._trajectories.get(choice.item)
            steps = tuple(self._there(trajectory, choice.place))
            found.append(Exemplar(steps, trajectory.score, choice.similarity, trajectory.task))
        return tuple(found)

    def _choose(self, state: str, k: int, now: AgentClock) -> tuple[Choice, ...]:
        return tuple(Choice(*found) for found in self._keys.nearest(self.history(now), state, k))

    def _there(self, trajectory: Trajectory, place: int) -> list[Record]:
        """What is left of a trajectory from that step on."""
        steps = trajectory.steps[place - trajectory.first :]
        return [record for number in steps if (record := self._ledger.get(number)) is not None]

    def _recalled(self) -> Iterable[RecordId]:
        for choice in self._chosen:
            trajectory = self._trajectories.get(choice.item)
            yield from trajectory.steps[choice.place - trajectory.first :]

    def _learn(self, result: Episode, steps: list[Record], now: AgentClock) -> None:
        if result.score < highest_score(result.task):
            return
        told = tuple((record.state, record.action) for record in steps)
        ids = tuple(record.id for record in steps)
        trajectory = Trajectory(self._ledger.new_id(), result.task, told, ids, result.score)
        self._trajectories.add(trajectory)
        self._keys.put(trajectory)

    def _fall(self, gone: Sequence[RecordId]) -> tuple[RecordId, ...]:
        fell = []
        for trajectory in self._trajectories.fall(gone, self._ledger):
            if trajectory.id in self._trajectories:
                self._keys.put(self._trajectories.get(trajectory.id))
            else:
                self._keys.drop(trajectory.id)
                fell.append(trajectory.id)
        return tuple(fell)

    def _snapshot(self) -> dict[str, Any]:
        return {"trajectories": self._trajectories.snapshot()}

    def _restored(self, data: Plain, ledger: Ledger) -> dict[str, Any]:
        trajectories = self._trajectories.restored(data["trajectories"], ledger)
        keys = StepKeys(self._keys.embedding)
        for trajectory in trajectories:
            if trajectory.id in ledger or trajectory.id >= data["ledger"]["next_id"]:
                raise ValueError("a trajectory should have a number of its own")
            keys.put(trajectory)
        for number, place, _ in data["chosen"]:
            chosen = trajectories.get(number)
            if not chosen.first <= place < len(chosen.told):
                raise ValueError("what was chosen should be there")
        return {"_trajectories": trajectories, "_keys": keys}

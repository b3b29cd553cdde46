"""A memory of another package: the newest record of each state and action, all older ones are removed.

* `NewestMemory` - the memory `newest` of experiment files
"""

from __future__ import annotations

from drift_agents.matching.base import Matching
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import AgentClock, Experience, RecordId


class NewestMemory(VanillaMemory):
    """Keeps the newest record of each state and action.

    It forgets what has become false as soon as it is met again, and what was true as soon as a response is false.

    Args:
        matching: when two states count as the same; texts must be equal if not given.

    Example:
        >>> from drift_agents.types import Outcome
        >>> memory = NewestMemory()
        >>> for step, state in enumerate(["hole", "goal"]):
        ...     outcome = Outcome(state, 0.0, True)
        ...     _ = memory.observe(Experience("a", "1", outcome, 0.0, AgentClock(0, step)), AgentClock(0, step))
        >>> [record.outcome.state for record in memory.records()]
        ['goal']
    """

    name = "newest"

    def __init__(self, *, matching: Matching | None = None) -> None:
        super().__init__(k=1, order="newest", matching=matching)

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Write the experience in the place of all older ones of its state and action."""
        self.remove([record.id for record in self.same_transitions(experience.state, experience.action)])
        return super().observe(experience, now)

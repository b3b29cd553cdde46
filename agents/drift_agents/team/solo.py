"""The team of one acting member.

* `Solo` - one member plays all episodes
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from drift_agents.memory.base import Memory
from drift_agents.team.base import Member, Rollout, check_members
from drift_agents.types import Episode


class Solo:
    """One member plays all episodes; the base of the other teams.

    Args:
        members: the first one plays.

    Raises:
        ArgumentError: if there is none, or two have one name.

    Example:
        >>> from drift_agents.policy.random_policy import RandomPolicy
        >>> Solo([Member("only", RandomPolicy())]).solver("Any task.")
        'only'
    """

    name = "solo"
    adjudicates = False

    def __init__(self, members: Iterable[Member]) -> None:
        self.members = check_members(members)

    def bind(self, memory: Memory, rng: np.random.Generator) -> None:
        """Do nothing: memory writes by its own rule."""

    def solver(self, task: str) -> str:
        """The first member."""
        return self.members[0].name

    def propose(self, prompt: str, proposals: Sequence[str], rng: np.random.Generator) -> str:
        """The first member's action."""
        return proposals[0]

    def train(self, task: str, rollout: Rollout) -> list[Episode]:
        """One episode of the task's member."""
        return [rollout(self.solver(task))]

    def end_episode(self, task: str, member: str, result: Episode) -> None:
        """Do nothing."""

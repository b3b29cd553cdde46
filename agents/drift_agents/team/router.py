"""The team that only chooses the member for a task.

* `Router` - the ability matrix alone: EDV's baseline of that name
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drift_agents.team.ability import AbilityMatrix
from drift_agents.team.base import Member, Rollout
from drift_agents.team.solo import Solo
from drift_agents.types import Episode
from drift_envs.checks import check_flag


class Router(Solo):
    """The ability matrix alone (EDV, section 5.1, the baseline "Router").

    While it trains, every member plays each task once, and the matrix counts their successes.
    Afterwards the member with the highest rate plays. It distils nothing: memory keeps its own rule.

    Args:
        members: the members.
        enough: the score from which an attempt counts as a success, in (0, 1].
        partial: whether part of the score counts for something.
        online: whether the episodes of the test go into the matrix too.

    Raises:
        ArgumentError: if a value is outside its range.

    Example:
        >>> from drift_agents.policy.random_policy import RandomPolicy
        >>> team = Router([Member("a", RandomPolicy()), Member("b", RandomPolicy())])
        >>> played = team.train("Cross.", lambda name: Episode("Cross.", float(name == "b"), 3, True))
        >>> len(played), team.solver("Cross.")
        (2, 'b')
    """

    name = "router"

    def __init__(
        self, members: Iterable[Member], *, enough: float = 1.0, partial: bool = False, online: bool = True
    ) -> None:
        super().__init__(members)
        self.online = check_flag("online", online)
        self.ability = AbilityMatrix([member.name for member in self.members], enough, partial)

    def solver(self, task: str) -> str:
        """The member with the highest success rate at tasks of this kind."""
        return self.ability.best(task)

    def train(self, task: str, rollout: Rollout) -> list[Episode]:
        """Every member plays the task once."""
        episodes = []
        for member in self.members:
            episode = rollout(member.name)
            self.ability.note(task, member.name, episode.score)
            episodes.append(episode)
        return episodes

    def end_episode(self, task: str, member: str, result: Episode) -> None:
        """Count it, when `online`."""
        if self.online:
            self.ability.note(task, member, result.score)

    def report(self) -> list[dict[str, Any]]:
        """The matrix as plain rows."""
        return self.ability.rows()

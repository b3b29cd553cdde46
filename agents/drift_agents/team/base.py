"""Teams: which member plays a task, which action is taken, and how trajectories are distilled. `Solo` is the base."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Model
from drift_agents.memory.base import Memory
from drift_agents.policy.base import Policy, check_policy
from drift_agents.prompt.view import PromptView
from drift_agents.registry.parts import check_protocol
from drift_agents.registry.tables import TEAMS
from drift_agents.types import Episode
from drift_envs.checks import check_interval


class Member(NamedTuple):
    """A member of a team.

    Args:
        name: its name in the team, in memories and in logs.
        policy: its policy.
        model: the model that distils, votes or adjudicates for it; by default declared rules.
        errs: the probability that such a judgement is inverted, in [0, 1]: a model of a weak judge for
            declared rules; 0 with a language model.
    """

    name: str
    policy: Policy
    model: Model | None = None
    errs: float = 0.0


Rollout = Callable[[str], Episode]
"""Plays one episode of the present task with the member of that name; given by the caller of `train`."""


@runtime_checkable
class Team(Protocol):
    """Several members with one shared memory; it has no access to the environment.

    `drift_agents.agent.team_agent.TeamAgent` plays with it. A team chooses who plays a task and may weigh
    proposed *actions*; it never chooses among executed episodes, which would be best-of-N.
    """

    name: str
    members: tuple[Member, ...]
    adjudicates: bool
    """Whether all members propose an action at each step, and `propose` chooses one."""

    def bind(self, memory: Memory, rng: np.random.Generator) -> None:
        """Take note of the memory that the team shares, and of the generator of its own draws.

        Raises:
            ArgumentError: if the team cannot use that memory.
        """

    def solver(self, task: str) -> str:
        """The member that plays a task, by name."""
        ...

    def propose(self, view: PromptView, proposals: Sequence[str], rng: np.random.Generator) -> str:
        """The action that is taken, out of what the members propose.

        Args:
            view: what all of them were given.
            proposals: one action for each member, in the order of `members`; all are admissible.
        """
        ...

    def train(self, task: str, rollout: Rollout) -> list[Episode]:
        """Play a task as often as the team's rule says, and write what is learned into memory.

        Args:
            rollout: plays one episode of it.

        Returns:
            All episodes in the order in which they were played; each counts as interaction.
        """
        ...

    def end_episode(self, task: str, member: str, result: Episode) -> None:
        """Take note of an episode of the test that is over."""


def check_members(members: Iterable[Member]) -> tuple[Member, ...]:
    """Return the members as a tuple.

    Args:
        members: the members of a team.

    Raises:
        ArgumentError: if there is none, two have the same name, `errs` is outside [0, 1], or a policy expects text.

    Example:
        >>> from drift_agents.policy.base import RandomPolicy
        >>> check_members([Member("a", RandomPolicy()), Member("a", RandomPolicy())])
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: the members of a team should have names of their own. Received a, a
    """
    team = tuple(members)
    names = [member.name for member in team]
    if not team or len(set(names)) < len(names) or not all(names):
        raise ArgumentError(
            f"the members of a team should have names of their own. Received {', '.join(names) or 'none'}"
        )
    for member in team:
        check_policy(member.policy)
        check_interval(f"errs` of `{member.name}", member.errs, "[0, 1]")
    return team


def make_team(name: str, members: Iterable[Member], **options: Any) -> Team:
    """Make a team by name.

    Args:
        name: one of `registry.TEAMS.names()`.
        members: the members of the team.

    Raises:
        UnknownNameError: if there is no team of that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> from drift_agents.policy.base import RandomPolicy
        >>> make_team("solo", [Member("only", RandomPolicy())]).solver("Any task.")
        'only'
    """
    made: Team = TEAMS.make(name, members=members, **options)
    check_protocol("team", name, made, Team)
    return made


class Solo:
    """One member plays all episodes; the base of the other teams.

    Args:
        members: the first one plays.

    Raises:
        ArgumentError: if there is none, or two have one name.

    Example:
        >>> from drift_agents.policy.base import RandomPolicy
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

    def propose(self, view: PromptView, proposals: Sequence[str], rng: np.random.Generator) -> str:
        """The first member's action."""
        return proposals[0]

    def train(self, task: str, rollout: Rollout) -> list[Episode]:
        """One episode of the task's member."""
        return [rollout(self.solver(task))]

    def end_episode(self, task: str, member: str, result: Episode) -> None:
        """Do nothing."""

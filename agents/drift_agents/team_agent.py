"""A team in the reference agent's loop.

* `TeamAgent` - memory and verifier are shared; who decides is the team's rule
* `Addressed` - a memory that is told who acts, and on what task
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np

from drift_agents.agent import Agent
from drift_agents.controller.base import Controller, Decision, Render
from drift_agents.controller.direct import Direct
from drift_agents.errors import ArgumentError
from drift_agents.llm.metered import Meter
from drift_agents.matching import Matching
from drift_agents.memory.base import Memory
from drift_agents.policy.base import Policy, Reply
from drift_agents.prompt import parse_prompt
from drift_agents.recall import Recall
from drift_agents.team.base import Team
from drift_agents.types import Episode, Removed, Usage
from drift_agents.verifier.base import Verifier
from drift_agents.world import check_text_world


@runtime_checkable
class Addressed(Protocol):
    """A memory that is told who acts: it has banks of its own for every member."""

    def address(self, member: str, task: str) -> None:
        """From now on this member acts, on this task."""


class TeamAgent:
    """An agent whose decisions are a team's: it plays tests, and constructs experience.

    All members share one memory, one verifier and one clock. `run_episode` plays with the member that
    the team's `solver` names, or asks all of them at every step when the team `adjudicates`.
    `construct_episode` plays one task as often as the team's rule says; every trajectory counts as
    interaction, and all of them are returned. With the team `solo` it is `Agent`, byte for byte.

    Args:
        team: who decides.
        memory: what is remembered; nothing if not given.
        verifier: as in `Agent`.
        controller: how a member makes one decision; memory and policy are asked once if not given.
        matching: as in `Agent`.
        recall: as in `Agent`.
        seed: of the generators of policies, verifier and team.
        keep_trace: whether episodes carry their steps; a team that distils needs them.
        meter: what the models of memory, verifier, distillers, voters and judges cost.

    Raises:
        ArgumentError: if the team cannot use the memory.

    Example:
        >>> import drift_envs
        >>> from drift_agents.policy.registry import make_policy
        >>> from drift_agents.team.base import Member
        >>> from drift_agents.team.router import Router
        >>> world = gym.make("DriftFrozenLake-v0", text=True)
        >>> members = [Member(str(risk), make_policy("planner", lake={"risk": risk})) for risk in (0.2, 0.9)]
        >>> agent = TeamAgent(Router(members))
        >>> tries = agent.construct_episode(world, seed=0)
        >>> len(tries), agent.clock.episode, agent.run_episode(world, seed=0).steps > 0
        (2, 2, True)
    """

    def __init__(
        self,
        team: Team,
        memory: Memory | None = None,
        verifier: Verifier | None = None,
        *,
        controller: Controller | None = None,
        matching: Matching | None = None,
        recall: Recall | None = None,
        seed: int | np.random.SeedSequence = 0,
        keep_trace: bool = True,
        meter: Meter | None = None,
    ) -> None:
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self.team = team
        self._speaker = _Speaker(team)
        self.agent = Agent(
            self._speaker,
            memory,
            verifier,
            controller=_Led(Direct() if controller is None else controller, self),
            matching=matching,
            recall=recall,
            seed=sequence,
            keep_trace=keep_trace,
            meter=meter,
        )
        # The agent has spawned its two streams, so this is a third one, and solo teams are agents to the byte.
        (own,) = sequence.spawn(1)
        team.bind(self.agent.memory, np.random.default_rng(own))
        self._forced: str | None = None

    @property
    def memory(self) -> Memory:
        """What is remembered, by all members together."""
        return self.agent.memory

    @property
    def verifier(self) -> Verifier:
        """What becomes of an experience."""
        return self.agent.verifier

    @property
    def matching(self) -> Matching:
        """When two states, and two outcomes, count as the same."""
        return self.agent.matching

    @property
    def clock(self) -> Any:
        """The team's own time: every trajectory counts."""
        return self.agent.clock

    @property
    def meter(self) -> Meter:
        """What the models of memory, verifier and team cost."""
        return self.agent.meter

    @property
    def policy(self) -> Policy:
        """Who decides at present."""
        return self._speaker

    @property
    def member(self) -> str:
        """The member that plays, or played last."""
        return self._speaker.member

    def run_episode(
        self, world: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> Episode:
        """Play one episode of the test: the team's solver plays it.

        Args:
            world: the environment; it is reset first.
            seed: handed to `reset`.
            options: handed to `reset`.

        Raises:
            ArgumentError: if the world does not show text.
        """
        self._forced = None
        episode = self.agent.run_episode(world, seed, options)
        self.team.end_episode(episode.task, self.member, episode)
        return self._charged(episode)

    def construct_episode(
        self, world: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> list[Episode]:
        """Play one task as often as the team's rule says, and write what it learns into memory.

        Args:
            world: the environment; it is reset before every trajectory.
            seed: handed to every `reset`: all trajectories begin alike.
            options: handed to every `reset`. Where a world counts its resets, `drift_tick` should be
                among them, so that all trajectories are played at the same time.

        Returns:
            All trajectories, in the order in which they were played. What distillers and voters cost
            stands in the last one.

        Raises:
            ArgumentError: if the world does not show text.
        """
        begun = _Begun(world, seed, options)

        def rollout(member: str) -> Episode:
            if member not in [one.name for one in self.team.members]:
                raise ArgumentError(f"the team {self.team.name!r} has no member {member!r}")
            self._forced = member
            return self.agent.run_episode(begun, seed, options)

        episodes = list(self.team.construct(begun.task, rollout))
        self._forced = None
        return [*episodes[:-1], self._charged(episodes[-1])] if episodes else []

    def begin(self, task: str) -> None:
        """An episode begins: choose who plays it."""
        member = self._forced or self.team.solver(task)
        self._speaker.begin(member, adjudicates=self.team.adjudicates and self._forced is None)
        # A team that is none leaves memory as an agent does, which tells it nothing.
        if self.team.name != "solo" and isinstance(self.memory, Addressed):
            self.memory.address(member, task)

    def _charged(self, episode: Episode) -> Episode:
        """The episode with what was asked after it had ended."""
        usage = self.meter.take()
        return replace(episode, **(Usage.of(episode) + usage)._asdict()) if usage != Usage() else episode


class _Speaker:
    """The member that plays, or all of them and whoever adjudicates, as one policy."""

    name = "team"

    def __init__(self, team: Team) -> None:
        self._team = team
        self._policies = {member.name: member.policy for member in team.members}
        self.member = team.members[0].name
        self._adjudicates = False

    def begin(self, member: str, *, adjudicates: bool) -> None:
        """This member plays the episode that begins."""
        self.member, self._adjudicates = member, adjudicates

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """The member's answer; or the one of all answers that the team chooses."""
        if not self._adjudicates:
            return self._policies[self.member].decide(prompt, rng)
        actions = parse_prompt(prompt).actions
        replies = [policy.decide(prompt, rng) for policy in self._policies.values()]
        said = [reply.text.strip() for reply in replies]
        proposals = [text if text in actions else actions[0] for text in said]
        chosen = self._team.propose(prompt, proposals, rng)
        usage = sum((Usage.of(reply) for reply in replies), Usage())
        return Reply(chosen, **usage._asdict())


class _Led:
    """A controller that first learns who plays."""

    def __init__(self, inner: Controller, agent: TeamAgent) -> None:
        self.inner, self._agent, self.name = inner, agent, inner.name

    def begin_episode(self, task: str) -> None:
        self._agent.begin(task)
        self.inner.begin_episode(task)

    def act(self, state: str, memory: Memory, policy: Policy, render: Render, rng: np.random.Generator) -> Decision:
        return self.inner.act(state, memory, policy, render, rng)

    def on_removed(self, removed: Removed) -> None:
        self.inner.on_removed(removed)

    def end_episode(self, result: Episode) -> None:
        self.inner.end_episode(result)


class _Begun(gym.Wrapper[str, Any, str, Any]):
    """A world that has been reset already, so that its task could be read: its first `reset` is that one.

    Later ones begin the same task, where a world draws tasks and says how one is begun again (`task_options`).
    """

    def __init__(self, world: gym.Env[str, Any], seed: int | None, options: Mapping[str, Any] | None) -> None:
        super().__init__(world)
        first = world.reset(seed=seed, options=None if options is None else dict(options))
        check_text_world(*first)
        self._first: tuple[str, dict[str, Any]] | None = first
        self.task = str(first[1]["task"])
        self._same: dict[str, Any] = {}
        if world.has_wrapper_attr("task_options"):
            self._same = world.get_wrapper_attr("task_options")() or {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        first, self._first = self._first, None
        if first is not None:
            return first
        again = {**(options or {}), **self._same}
        return self.env.reset(seed=seed, options=again or None)

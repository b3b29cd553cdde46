"""A team in the reference agent's loop.

* `TeamAgent` - memory and verifier are shared; who decides is the team's rule
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

from drift_agents.agent import Agent
from drift_agents.controller.base import Controller, Decision, Render
from drift_agents.controller.direct import Direct
from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.llm.budget import Meter
from drift_agents.matching.base import Matching
from drift_agents.memory.base import MemberMemory, Memory
from drift_agents.policy.base import LanguagePolicy, Policy, Reply, SideQuestion
from drift_agents.prompt.builder import Recall
from drift_agents.prompt.view import parse_prompt
from drift_agents.team.base import Team
from drift_agents.types import NO_USAGE, Episode, Removed
from drift_agents.verifier.base import Verifier
from drift_agents.world import check_text_world


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
        controller: how one decision is made; memory and policy are asked once if not given. Its questions
            beside the action go to the member that plays. Where the team adjudicates they go to all members
            that are language models, more than half of whom must say yes; other answers the first of them gives.
        matching: as in `Agent`.
        recall: as in `Agent`.
        seed: of the generators of policies, verifier and team.
        keep_trace: whether episodes carry their steps; a team that distils needs them.
        meter: what the models of memory, verifier, distillers, voters and judges cost.

    Raises:
        ArgumentError: if the team cannot use the memory.

    Example:
        >>> import drift_envs
        >>> from drift_agents.policy.base import make_policy
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
        speaks = any(isinstance(member.policy, LanguagePolicy) for member in team.members)
        self._speaker = _SpeakingTeam(team) if speaks else _Speaker(team)
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
        """Who decides at present: the member that plays, or all of them together."""
        return self._speaker.present

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
        return self._charged(self._signed(episode))

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
            return self._signed(self.agent.run_episode(begun, seed, options))

        episodes = list(self.team.construct(begun.task, rollout))
        self._forced = None
        return [*episodes[:-1], self._charged(episodes[-1])] if episodes else []

    def begin(self, task: str) -> None:
        """An episode begins: choose who plays it."""
        member = self._forced or self.team.solver(task)
        self._speaker.begin(member, adjudicates=self.team.adjudicates and self._forced is None)
        # A team that is none leaves memory as an agent does, which tells it nothing.
        if self.team.name != "solo" and isinstance(self.memory, MemberMemory):
            self.memory.address(member, task)

    def _signed(self, episode: Episode) -> Episode:
        """The episode with the name of who played it, in a team where that says anything."""
        alone = self.team.name == "solo" or self._speaker.present is self._speaker
        return episode if alone else replace(episode, member=self.member)

    def _charged(self, episode: Episode) -> Episode:
        """The episode with what was asked after it had ended."""
        usage = self.meter.take()
        return replace(episode, usage=episode.usage + usage) if usage != NO_USAGE else episode


class _Speaker:
    """The members and whoever adjudicates, as one policy; or, at present, the member that plays."""

    name = "team"

    def __init__(self, team: Team) -> None:
        self._team = team
        self._policies = {member.name: member.policy for member in team.members}
        self.member = team.members[0].name
        self._adjudicates = False

    @property
    def present(self) -> Policy:
        """Who decides: the member's own policy, so that a controller sees what it can; else all of them."""
        return self if self._adjudicates else self._policies[self.member]

    def begin(self, member: str, *, adjudicates: bool) -> None:
        """This member plays the episode that begins."""
        self.member, self._adjudicates = member, adjudicates

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Of all answers the one that the team chooses."""
        return self._choose(prompt, [policy.decide(prompt, rng) for policy in self._policies.values()], rng)

    def _choose(self, prompt: str, replies: Sequence[Reply], rng: np.random.Generator) -> Reply:
        """The action that the team chooses, with what all answers cost."""
        actions = parse_prompt(prompt).actions
        said = [reply.text.strip() for reply in replies]
        proposals = [text if text in actions else actions[0] for text in said]
        chosen = self._team.propose(prompt, proposals, rng)
        return Reply(chosen, sum((reply.usage for reply in replies), NO_USAGE))


class _SpeakingTeam(_Speaker):
    """Members of whom some are language models: these answer other questions in the name of all."""

    def decide_and_say(self, prompt: str, aside: SideQuestion, rng: np.random.Generator) -> tuple[Reply, bool]:
        """The action that the team chooses; the answer beside it is that of more than half of those who can give one.

        Args:
            prompt: the text that all of them are given.
            aside: the question beside the one for the action.
            rng: for ties.
        """
        replies, says = [], []
        for policy in self._policies.values():
            if isinstance(policy, LanguagePolicy):
                reply, yes = policy.decide_and_say(prompt, aside, rng)
                says.append(yes)
            else:
                reply = policy.decide(prompt, rng)
            replies.append(reply)
        return self._choose(prompt, replies, rng), 2 * sum(says) > len(says)

    def answer(
        self, messages: Sequence[Message], schema: Mapping[str, Any], rules: Model, rng: np.random.Generator
    ) -> Completion:
        """What the first member says that can answer: the one that also judges, if no other model does.

        Args:
            messages: the question.
            schema: the form of the answer.
            rules: who answers where it cannot.
            rng: for samples.
        """
        first = next(policy for policy in self._policies.values() if isinstance(policy, LanguagePolicy))
        return first.answer(messages, schema, rules, rng)


class _Led:
    """A controller that first learns who plays."""

    def __init__(self, inner: Controller, agent: TeamAgent) -> None:
        self.inner, self._agent, self.name = inner, agent, inner.name

    def begin_episode(self, task: str) -> None:
        self._agent.begin(task)
        self.inner.begin_episode(task)

    def act(self, state: str, memory: Memory, policy: Policy, render: Render, rng: np.random.Generator) -> Decision:
        present = policy.present if isinstance(policy, _Speaker) else policy
        return self.inner.act(state, memory, present, render, rng)

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

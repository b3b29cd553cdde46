"""A team in the reference agent's loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

from drift_agents.agent.agent import Agent
from drift_agents.controller.base import Controller
from drift_agents.envs.base import AgentEnvironment, reset_text_env
from drift_agents.envs.matching import Matching
from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.llm.budget import Meter
from drift_agents.memory.base import MemberMemory, Memory
from drift_agents.policy.base import LanguagePolicy, Policy, Reply, SideQuestion, decide, history_length
from drift_agents.prompt.builder import Recall
from drift_agents.prompt.view import PromptView
from drift_agents.team.base import Team
from drift_agents.types import NO_USAGE, AgentClock, Episode
from drift_agents.verifier.base import Verifier
from drift_envs.messages import read_named


class TeamAgent:
    """An agent whose decisions are a team's: it plays tests, and trains on tasks before them.

    All members share one memory, one verifier and one clock: those of an `Agent`, whose policy this class replaces
    before every episode. `run_episode` plays with the member that the team's `solver` names, or with the proposals of
    all members at every step when the team `adjudicates`. `train_episode` plays one task as often as the team's
    rule says; every trajectory counts as interaction, and all of them are returned. With the team `solo` the result
    is equal to that of `Agent`, byte for byte.

    Args:
        team: selects the member that plays, or adjudicates between the actions of all.
        memory: stores experiences; none if not given.
        verifier: as in `Agent`.
        controller: as in `Agent`. Its side questions go to the member that plays. Where the team adjudicates they go to
            all members that are language models, and more than half of these must agree; other messages go to the
            first of them.
        matching: as in `Agent`.
        recall: as in `Agent`.
        environment: as in `Agent`.
        seed: of the generators of policies, verifier and team.
        keep_trace: whether episodes contain their steps; a team that distils needs them.
        meter: the usage of the models of memory, verifier, distillers, voters and judges.

    Raises:
        ArgumentError: if the team cannot use the memory.

    Example:
        >>> import drift_envs
        >>> from drift_agents.policy.base import make_policy
        >>> from drift_agents.team.base import Member
        >>> from drift_agents.team.router import Router
        >>> env = gym.make("DriftFrozenLake-v0", text=True)
        >>> members = [Member(str(risk), make_policy("planner", frozen_lake={"risk": risk})) for risk in (0.2, 0.9)]
        >>> agent = TeamAgent(Router(members))
        >>> attempts = agent.train_episode(env, seed=0)
        >>> len(attempts), agent.clock.episode, agent.run_episode(env, seed=0).steps > 0
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
        environment: AgentEnvironment | None = None,
        seed: int | np.random.SeedSequence = 0,
        keep_trace: bool = True,
        meter: Meter | None = None,
    ) -> None:
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self.team = team
        self.member = team.members[0].name
        """The member that plays, or played last."""
        self._policies = {member.name: member.policy for member in team.members}
        has_model = any(isinstance(policy, LanguagePolicy) for policy in self._policies.values())
        self._joint = _JointLanguagePolicy(team) if has_model else _JointPolicy(team)
        self.agent = Agent(
            self._policies[self.member],
            memory,
            verifier,
            controller=controller,
            matching=matching,
            recall=recall,
            environment=environment,
            seed=sequence,
            keep_trace=keep_trace,
            meter=meter,
        )
        # The agent has spawned its two streams; the team's is the third, so a solo team draws as an agent does.
        (team_seed,) = sequence.spawn(1)
        team.bind(self.agent.memory, np.random.default_rng(team_seed))

    @property
    def memory(self) -> Memory:
        """The members' memory."""
        return self.agent.memory

    @property
    def verifier(self) -> Verifier:
        """The members' verifier."""
        return self.agent.verifier

    @property
    def clock(self) -> AgentClock:
        """The team's own time; every trajectory counts."""
        return self.agent.clock

    @property
    def meter(self) -> Meter:
        """The usage of the models of memory, verifier and team."""
        return self.agent.meter

    @property
    def policy(self) -> Policy:
        """The policy of the member that plays, or of all members together."""
        return self.agent.policy

    def run_episode(
        self, env: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> Episode:
        """Play one episode of the test with the team's solver.

        Args:
            seed: passed to `reset`.
            options: passed to `reset`.

        Raises:
            ArgumentError: if the environment does not show text.
        """
        observation, info = reset_text_env(env, seed, options)
        task = str(info["task"])
        self._select(self.team.solver(task), task, jointly=self.team.adjudicates)
        played = self.agent.play(env, observation, info)
        self.team.end_episode(task, self.member, played)
        return self._add_usage(self._name_member(played))

    def train_episode(
        self, env: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> list[Episode]:
        """Play one task as often as the team's rule says, and write what it learns into memory.

        Args:
            env: the environment; it is reset before every trajectory.
            seed: passed to every `reset`, so that all trajectories begin alike.
            options: passed to every `reset`. Where an environment counts its resets, `drift_tick` should be
                among them, so that all trajectories are played at the same time.

        Returns:
            All trajectories, in the order in which they were played. The last one includes the usage of distillers
            and voters.

        Raises:
            ArgumentError: if the environment does not show text, or the team selects an unknown member.
        """
        # The first reset is that of the first trajectory. Where an environment draws its tasks, `task_options` repeats
        # one.
        observation, info = reset_text_env(env, seed, options)
        first: tuple[str, dict[str, Any]] | None = (observation, info)
        task = str(info["task"])
        same = env.get_wrapper_attr("task_options")() if env.has_wrapper_attr("task_options") else None
        again = {**(options or {}), **(same or {})} or None

        def rollout(member: str) -> Episode:
            nonlocal first
            if member not in self._policies:
                raise ArgumentError(f"the team {self.team.name!r} has no member {member!r}")
            start = reset_text_env(env, seed, again) if first is None else first
            first = None
            self._select(member, task, jointly=False)
            return self._name_member(self.agent.play(env, *start))

        episodes = list(self.team.train(task, rollout))
        return [*episodes[:-1], self._add_usage(episodes[-1])] if episodes else []

    def _select(self, member: str, task: str, *, jointly: bool) -> None:
        """Set the policy of the next episode, and the member's banks in memory."""
        self.member = member
        self.agent.policy = self._joint if jointly else self._policies[member]
        # A solo team leaves memory as an agent does.
        if self.team.name != "solo" and isinstance(self.memory, MemberMemory):
            self.memory.address(member, task)

    def _name_member(self, episode: Episode) -> Episode:
        """Add the member's name, unless all members decided together or there is only one."""
        is_alone = self.team.name == "solo" or self.policy is self._joint
        return episode if is_alone else replace(episode, member=self.member)

    def _add_usage(self, episode: Episode) -> Episode:
        """Add the usage of models after the end of the episode."""
        usage = self.meter.take()
        return replace(episode, usage=episode.usage + usage) if usage != NO_USAGE else episode


class _JointPolicy:
    """All members as one policy: the team chooses among their proposals."""

    name = "team"

    def __init__(self, team: Team) -> None:
        self._team = team
        self._policies = [member.policy for member in team.members]
        self.needs_history = max(map(history_length, self._policies))

    @property
    def has_unread_notes(self) -> bool:
        """Whether a member plans, and had a prompt with a lesson that it cannot read."""
        return any(getattr(policy, "has_unread_notes", False) for policy in self._policies)

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Return the action that the team chooses."""
        return self._choose(view, [decide(policy, view, rng) for policy in self._policies], rng)

    def _choose(self, view: PromptView, replies: Sequence[Reply], rng: np.random.Generator) -> Reply:
        """The action that the team chooses, with the usage of all replies."""
        proposals = [read_named(reply.text, view.actions) or view.actions[0] for reply in replies]
        chosen = self._team.propose(view, proposals, rng)
        return Reply(chosen, sum((reply.usage for reply in replies), NO_USAGE))


class _JointLanguagePolicy(_JointPolicy):
    """A joint policy in which some members are language models: these answer other messages for all."""

    def decide_and_say(self, view: PromptView, aside: SideQuestion, rng: np.random.Generator) -> tuple[Reply, bool]:
        """Return the action that the team chooses, and whether more than half of the language models agree."""
        replies, votes = [], []
        for policy in self._policies:
            if isinstance(policy, LanguagePolicy):
                reply, vote = policy.decide_and_say(view, aside, rng)
                votes.append(vote)
            else:
                reply = decide(policy, view, rng)
            replies.append(reply)
        return self._choose(view, replies, rng), 2 * sum(votes) > len(votes)

    def answer(
        self, messages: Sequence[Message], schema: Mapping[str, Any], rules: Model, rng: np.random.Generator
    ) -> Completion:
        """Return the answer of the first member that is a language model.

        Args:
            schema: the form of the answer.
            rules: answer where the model's answer is invalid.
        """
        first = next(policy for policy in self._policies if isinstance(policy, LanguagePolicy))
        return first.answer(messages, schema, rules, rng)

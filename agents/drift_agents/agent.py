"""The reference agent: memory, verifier and policy in one loop.

* `Agent` - acts, remembers and verifies, on any Gymnasium environment that shows text
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from drift_agents.controller.base import Controller, Decision
from drift_agents.controller.direct import Direct
from drift_agents.llm.base import count_tokens
from drift_agents.llm.budget import Meter
from drift_agents.matching.base import Exact, Matching
from drift_agents.memory.base import Memory, StepObserver
from drift_agents.memory.none import NoMemory
from drift_agents.memory.views import NO_ID, EpisodeView
from drift_agents.policy.base import Policy
from drift_agents.prompt.builder import PromptBuilder, Recall
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    ProbeCost,
    RecordId,
    StepTrace,
    Usage,
    Verdict,
)
from drift_agents.verifier.base import NoVerifier, Verifier, later_doubt
from drift_agents.world import check_text_world, read_outcome, to_env


class Agent:
    """Acts, remembers and verifies (GLOVE, algorithm 1, when the verifier is GLOVE).

    The world must show text: its observations are strings, `info["task"]` is the task in words,
    `info["actions"]` the admissible actions and `info["score"]` the score so far, as
    `drift_envs.wrappers.text.TextObservation` gives them. The policy gets the rendered prompt and
    nothing else.

    The prompt also says when memory was found wrong (`doubt_since`), so that a policy can doubt
    what is older. That is the first step at which the verifier realigned memory and the result
    contradicts what memory said; without a verifier, the first step whose outcome memory had never
    seen for that state and action, and then the prompt says "surprised", not "wrong". It moves to a
    later such step when what was contradicted there had been written since: then the world has
    changed once more. A contradiction of something older is the same change, met at another place.

    Args:
        policy: rendered text in, text out.
        memory: what is remembered; nothing if not given.
        verifier: what becomes of an experience; all are written and none is doubted if not given.
        controller: how one decision is made; memory and policy are asked once if not given.
        matching: when two states, and two outcomes, count as the same; give the memory the same one.
        recall: what of memory goes into a prompt.
        seed: of the agent's own generators: one for the policy's ties, one for the verifier.
        keep_trace: whether episodes carry their steps.
        meter: what the language models of memory and verifier cost, if they have any
            (`drift_agents.llm.budget`); what the policy's model costs, its replies say.
    """

    def __init__(
        self,
        policy: Policy,
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
        self.policy = policy
        self.memory: Memory = NoMemory() if memory is None else memory
        self.verifier: Verifier = NoVerifier() if verifier is None else verifier
        self.controller: Controller = Direct() if controller is None else controller
        self.matching: Matching = Exact() if matching is None else matching
        self.recall = Recall() if recall is None else recall
        self._prompts = PromptBuilder(self.matching, self.recall)
        self.keep_trace = keep_trace
        self.meter = Meter() if meter is None else meter
        self.clock = AgentClock()
        self.doubt_since: int | None = None
        self._known: Memory | None = None
        self._told: StepObserver | None = None
        self._lived: list[Experience] = []
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        policy_seed, verifier_seed = sequence.spawn(2)
        self._rng = np.random.default_rng(policy_seed)
        self.verifier.bind(self.matching, np.random.default_rng(verifier_seed))

    def run_episode(
        self, world: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> Episode:
        """Play one episode to its end.

        Args:
            world: the environment; it is reset first.
            seed: handed to `reset`; a drifting world starts its schedule anew with a seed.
            options: handed to `reset`.

        Returns:
            What happened.

        Raises:
            ArgumentError: if the world does not show text.
        """
        observation, info = world.reset(seed=seed, options=None if options is None else dict(options))
        check_text_world(observation, info)
        self.verifier.begin_episode()
        task, started = str(info["task"]), self.clock.step
        self.controller.begin_episode(task)
        self._lived = []
        prefix: list[str] = []
        trace: list[StepTrace] = []
        total = _Totals()
        state, score, terminated, truncated = str(observation), float(info["score"]), False, False
        while not (terminated or truncated):
            choice = self._choose(task, state, info["actions"], prefix, total)
            action, now = choice.action, self.clock
            observation, reward, terminated, truncated, info = world.step(to_env(world.action_space, action))
            outcome = read_outcome(observation, terminated, info)
            experience = Experience(state, action, outcome, float(reward), now)
            self.matching.learn(experience)
            self._lived.append(experience)
            if (following := self._following()) is not None:
                following.follow(experience)
            newest = self._newest(state, action)
            verdict = self.verifier.verify(experience, self.memory, prefix, now)
            self._note_doubt(verdict, newest, now)
            total.add(verdict)
            self._tell(verdict)
            if self.keep_trace:
                trace.append(choice.trace(experience, verdict))
            prefix.append(action)
            self.clock = AgentClock(now.episode, now.step + 1)
            state, score = outcome.state, outcome.score
        episode = Episode(
            task, score, self.clock.step - started, bool(terminated), trace=tuple(trace), **total.as_arguments()
        )
        self.memory.end_episode(episode, self.clock)
        closing = tuple(self.verifier.end_episode(episode, self.memory, self.clock))
        for verdict in closing:
            total.add(verdict._replace(surprise=False))
            self._tell(verdict)
            self._note_doubt(verdict, verdict.newest, self.clock)
        self.controller.end_episode(episode)
        total.usage += self.meter.take()
        self.clock = AgentClock(self.clock.episode + 1, self.clock.step)
        return replace(episode, closing=closing, **total.as_arguments())

    def construct_episode(
        self, world: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> list[Episode]:
        """Play one task to fill memory, as a team does (`drift_agents.team_agent`): here one episode of it.

        Args:
            world: the environment; it is reset first.
            seed: handed to `reset`.
            options: handed to `reset`.
        """
        return [self.run_episode(world, seed, options)]

    def _choose(self, task: str, state: str, actions: list[str], prefix: list[str], total: _Totals) -> _Choice:
        """Ask the policy; ask it again when its verifier, on hearing the answer, put memory right."""
        checks: list[Verdict] = []

        render = _Renderer(self, task, state, actions)
        while True:
            decision = self.controller.act(state, self.memory, self.policy, render, self._rng)
            action, valid = _read_action(decision.reply.text, actions)
            total.note(decision, valid)
            newest = self._newest(state, action)
            verdict = self.verifier.consider(state, action, self.memory, prefix, self.clock)
            if verdict is not None:
                total.add(verdict._replace(surprise=False))
                checks.append(verdict)
                self._tell(verdict)
                self._note_doubt(verdict, newest, self.clock)
            if verdict is None or not verdict.realigned:
                return _Choice(action, decision, tuple(checks))

    def _tell(self, verdict: Verdict) -> None:
        """Tell the controller what fell out of memory."""
        if verdict.removed.records or verdict.removed.notes:
            self.controller.on_removed(verdict.removed)

    def _following(self) -> StepObserver | None:
        """The memory, if it is told every step; looked up once for each memory, since looking up protocols is slow."""
        if self._known is not self.memory:
            self._known, self._told = self.memory, self.memory if isinstance(self.memory, StepObserver) else None
        return self._told

    def _newest(self, state: str, action: str) -> int:
        """When memory last wrote about this state and action; -1 if it knows nothing."""
        known = self.memory.counterparts(state, action)
        return known[-1].now.step if known else -1

    @property
    def _is_verified(self) -> bool:
        return not isinstance(self.verifier, NoVerifier)

    def _doubts(self) -> tuple[int | None, int | None]:
        """What the prompt says of doubt: found by a verifier, and by the eye."""
        return (self.doubt_since, None) if self._is_verified else (None, self.doubt_since)

    def _note_doubt(self, verdict: Verdict, newest: int, now: AgentClock) -> None:
        """Remember when memory was found wrong: by the verifier, or by the eye where there is none."""
        wrong = verdict.contradicted if self._is_verified else verdict.surprise
        if wrong:
            self.doubt_since = later_doubt(self.doubt_since, newest, now.step)


class _Renderer:
    """Makes the prompt of the present step, for controllers."""

    def __init__(self, agent: Agent, task: str, state: str, actions: list[str]) -> None:
        self.now, self.matching = agent.clock, agent.matching
        self._agent, self._step = agent, (task, state, actions, agent.clock)

    def __call__(self, recall: bool = True, strategy: str | None = None) -> tuple[str, tuple[RecordId, ...]]:
        agent = self._agent
        source = agent.memory if recall else EpisodeView(agent.memory, self.matching, agent._lived)
        text, ids = agent._prompts.make(source, *self._step, *agent._doubts(), strategy=strategy)
        # Only what lies outside of memory has no number.
        return text, ids if recall else tuple(number for number in ids if number != NO_ID)


class _Choice(NamedTuple):
    """What the policy wants to do, how that was decided, and what was checked before."""

    action: str
    decision: Decision
    checks: tuple[Verdict, ...]

    def trace(self, experience: Experience, verdict: Verdict) -> StepTrace:
        made = self.decision
        told = made.prompt, made.reply.text, made.retrieved
        return StepTrace(experience, *told, verdict, self.checks, made.thought, made.strategy)


class _Totals:
    """Sums over the steps of an episode."""

    def __init__(self) -> None:
        self.probes = ProbeCost()
        self.surprises = self.realignments = self.invalid_actions = 0
        self.refreshes = self.tokens_estimated = 0
        self.usage = Usage()

    def add(self, verdict: Verdict) -> None:
        self.probes += verdict.cost
        self.surprises += verdict.surprise
        self.realignments += verdict.realigned

    def note(self, decision: Decision, valid: bool) -> None:
        self.invalid_actions += not valid
        self.refreshes += decision.thought is not None
        self.tokens_estimated += count_tokens((decision.prompt, decision.reply.text, *decision.aside))
        self.usage += decision.reply.usage

    def as_arguments(self) -> dict[str, Any]:
        return dict(vars(self))


def _read_action(reply: str, admissible: list[str]) -> tuple[str, bool]:
    """The admissible action that the reply names, and whether it named one; the first one if it did not.

    An invalid answer still needs an action, since Gymnasium has no empty one; it is counted.
    """
    text = reply.strip()
    if text in admissible:
        return text, True
    return admissible[0], False

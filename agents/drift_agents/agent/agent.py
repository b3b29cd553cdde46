"""The reference agent: memory, verifier and policy in one loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from drift_agents.controller.base import Controller, Decision, Direct, check_decision
from drift_agents.envs.base import AgentEnvironment, environment_of, read_outcome, reset_text_env, to_env
from drift_agents.envs.matching import Exact, Matching
from drift_agents.llm.base import count_tokens
from drift_agents.llm.budget import Meter
from drift_agents.memory.base import Memory, NoMemory, StepObserver, check_memory
from drift_agents.memory.views import NO_ID, EpisodeView, MemoryAndEpisode
from drift_agents.policy.base import Policy, check_policy, history_length
from drift_agents.prompt.builder import EpisodeHistory, PromptBuilder, Recall
from drift_agents.prompt.retrieval import PromptSource
from drift_agents.prompt.view import PromptView
from drift_agents.registry.part_file import show_class
from drift_agents.registry.parts import check_protocol, check_result, refuse_result
from drift_agents.types import (
    NO_USAGE,
    AgentClock,
    Episode,
    Experience,
    ProbeCost,
    Record,
    RecordId,
    StepTrace,
    Verdict,
)
from drift_agents.verifier.base import NoVerifier, Verifier, check_verdict, later_doubt
from drift_envs.errors import DriftWarning
from drift_envs.messages import read_named

MOST_CHECKS = 1000
"""Decisions for one step, after each of which the verifier realigns memory; more are an endless loop."""


class Agent:
    """Acts, remembers and verifies (GLOVE, algorithm 1, when the verifier is GLOVE).

    The environment must show text: its observations are strings, `info["task"]` is the task in words,
    `info["actions"]` the admissible actions and `info["score"]` the score so far, as
    `drift_envs.wrappers.text.TextObservation` gives them. The policy's only input is a view
    (`drift_agents.prompt.view.PromptView`).

    The view also says at which step memory was contradicted (`doubt_since`), in the same words for all agents, so
    that a policy can discount older records. That is the first step at which the verifier's verdict has
    `contradicted`; without a verifier, the first step whose outcome memory had never recorded for that state and
    action. It moves to a later such step if the contradicted record had been written since then: the environment has
    changed again. A contradiction of an older record is the same change, observed at another place.

    Args:
        policy: a view in, text out.
        memory: stores experiences; none if not given.
        verifier: decides what is written and whether memory is still true; all is written and nothing is verified
            if not given.
        controller: makes one decision; one retrieval and one call of the policy if not given.
        matching: when two states, and two outcomes, count as the same; the memory should have the same rule.
        recall: which records go into a view.
        environment: what agents know of the environment; by the environment's id if not given.
        seed: of the agent's two generators, for the policy's ties and for the verifier.
        keep_trace: whether episodes contain their steps.
        meter: the usage of the language models of memory and verifier, if there are any
            (`drift_agents.llm.budget`); the policy's usage is in its replies.

    Raises:
        ArgumentError: if the policy expects text.
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
        environment: AgentEnvironment | None = None,
        seed: int | np.random.SeedSequence = 0,
        keep_trace: bool = True,
        meter: Meter | None = None,
    ) -> None:
        self.policy = check_policy(policy)
        self.memory = NoMemory() if memory is None else memory
        self.verifier: Verifier = NoVerifier() if verifier is None else verifier
        self.controller: Controller = Direct() if controller is None else controller
        self.matching: Matching = Exact() if matching is None else matching
        check_memory(show_class(self.memory), self.memory)
        for kind, part, protocol in (
            ("verifier", self.verifier, Verifier),
            ("controller", self.controller, Controller),
            ("matching", self.matching, Matching),
        ):
            check_protocol(kind, show_class(part), part, protocol)
        self.recall = Recall() if recall is None else recall
        self.environment = environment
        self.keep_trace = keep_trace
        self.meter = Meter() if meter is None else meter
        self.clock = AgentClock()
        self.doubt_since: int | None = None
        self.warn: Callable[[str], object] = _warn
        """Called once if something of memory's texts is lost; a run has its own, which prints each kind once."""
        self._has_warned = False
        self._prompts = PromptBuilder(self.matching, self.recall)
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        policy_seed, verifier_seed = sequence.spawn(2)
        self._rng = np.random.default_rng(policy_seed)
        self.verifier.bind(self.matching, np.random.default_rng(verifier_seed))

    @property
    def memory(self) -> Memory:
        """Where experiences are stored; it can be replaced between two episodes, as by a frozen one."""
        return self._memory

    @memory.setter
    def memory(self, memory: Memory) -> None:
        self._memory = memory
        # Protocol checks are slow, so this one is made once for each memory.
        self._step_observer = memory if isinstance(memory, StepObserver) else None

    def run_episode(
        self, env: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> Episode:
        """Reset an environment and play one episode to its end.

        Args:
            seed: passed to `reset`; a drifting environment starts its schedule anew with a seed.
            options: passed to `reset`.

        Raises:
            ArgumentError: if the environment does not show text.

        Warns:
            DriftWarning: once, if the planner cannot read the notes of the memory, or a memory service drops tags.
        """
        return self.play(env, *reset_text_env(env, seed, options))

    def play(self, env: gym.Env[str, Any], observation: str, info: dict[str, Any]) -> Episode:
        """Play one episode to its end in an environment that has been reset.

        Args:
            observation: of its `reset`.
            info: of its `reset`.
        """
        known = environment_of(env) if self.environment is None else self.environment
        task, state, first_step = str(info["task"]), observation, self.clock.step
        score, terminated, truncated = float(info["score"]), False, False
        self.verifier.begin_episode()
        self.controller.begin_episode(task)
        experiences: list[Experience] = []
        prefix: list[str] = []
        trace: list[StepTrace] = []
        totals = _EpisodeTotals()

        while not (terminated or truncated):
            choice = self._choose(known.name, task, state, info["actions"], experiences, prefix, totals)
            observation, reward, terminated, truncated, info = env.step(to_env(env.action_space, choice.action))
            outcome = read_outcome(observation, terminated, info)
            experience = Experience(state, choice.action, outcome, float(reward), self.clock)
            experiences.append(experience)
            verdict = self._learn(experience, prefix)
            totals.add_verdict(verdict)
            if self.keep_trace:
                trace.append(choice.trace(experience, verdict))
            prefix.append(choice.action)
            self.clock = self.clock._replace(step=self.clock.step + 1)
            state, score = outcome.state, outcome.score

        totals.loop_steps = count_loop_steps(experiences)
        steps = self.clock.step - first_step
        episode = Episode(task, score, steps, bool(terminated), trace=tuple(trace), **vars(totals))
        self.memory.end_episode(episode, self.clock)
        ending = self.verifier.end_episode(episode, self.memory, self.clock)
        closing = tuple(check_result("verifier", self.verifier, "end_episode", ending, Iterable))
        for verdict in closing:
            check_verdict(self.verifier, "end_episode", verdict)
            totals.add_check(verdict)
            self._apply(verdict, verdict.newest)
        self.controller.end_episode(episode)
        totals.usage += self.meter.take()
        self.clock = self.clock._replace(episode=self.clock.episode + 1)
        if not self._has_warned and (unread := describe_unread_notes(self.policy, self.memory)):
            self._has_warned = True
            self.warn(unread)
        return replace(episode, closing=closing, **vars(totals))

    def train_episode(
        self, env: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> list[Episode]:
        """Play one task in order to fill memory; `TeamAgent` may play it several times, an agent plays it once.

        Args:
            seed: passed to `reset`.
            options: passed to `reset`.
        """
        return [self.run_episode(env, seed, options)]

    def _choose(
        self,
        environment: str,
        task: str,
        state: str,
        actions: list[str],
        experiences: Sequence[Experience],
        prefix: Sequence[str],
        totals: _EpisodeTotals,
    ) -> _Choice:
        """Decide, and decide again as long as the verifier realigns memory about the chosen action."""
        checks: list[Verdict] = []
        while True:
            length, doubt = history_length(self.policy), self.doubt_since
            render = StepRenderer(
                self._prompts, self.memory, task, state, actions, self.clock, experiences, doubt, length, environment
            )
            decision = self.controller.act(state, self.memory, self.policy, render, self._rng)
            check_decision(self.controller, decision)
            named = read_named(decision.reply.text, actions)
            # Gymnasium has no empty action, so an invalid reply stands for the first one; it is counted.
            action = actions[0] if named is None else named
            prompt = decision.view.render()
            totals.add_decision(decision, prompt, named is not None)
            newest = self._newest_step(state, action)
            verdict = self.verifier.consider(state, action, self.memory, prefix, self.clock)
            if verdict is not None:
                check_verdict(self.verifier, "consider", verdict)
                totals.add_check(verdict)
                checks.append(verdict)
                self._apply(verdict, newest)
            if verdict is None or not verdict.realigned:
                return _Choice(action, decision, prompt, tuple(checks))
            if len(checks) >= MOST_CHECKS:
                rule = f"a verdict without `realigned` after at most {MOST_CHECKS} with it"
                raise refuse_result("verifier", self.verifier, "consider", rule, verdict)

    def _learn(self, experience: Experience, prefix: Sequence[str]) -> Verdict:
        """Pass an experience to the matching rule, to memory and to the verifier, which writes it."""
        self.matching.learn(experience)
        if self._step_observer is not None:
            self._step_observer.follow(experience)
        newest = self._newest_step(experience.state, experience.action)
        verdict = self.verifier.verify(experience, self.memory, prefix, self.clock)
        check_verdict(self.verifier, "verify", verdict)
        self._apply(verdict, newest)
        return verdict

    def _apply(self, verdict: Verdict, newest: int) -> None:
        """Update `doubt_since`, and pass removed records on to the controller.

        Args:
            newest: the step of the newest record about its state and action, before the verdict.
        """
        if verdict.contradicted:
            self.doubt_since = later_doubt(self.doubt_since, newest, self.clock.step)
        if verdict.removed.records or verdict.removed.notes:
            self.controller.on_removed(verdict.removed)

    def _newest_step(self, state: str, action: str) -> int:
        """The step of the newest record about this state and action; -1 if there is none."""
        records = self.memory.same_transitions(state, action)
        if not isinstance(records, Sequence) or not all(isinstance(one, Record) for one in records[-1:]):
            raise refuse_result("memory", self.memory, "same_transitions", "a list of Record", records)
        return records[-1].now.step if records else -1


@dataclass(frozen=True)
class StepRenderer:
    """Makes the views of one step, for a controller (`drift_agents.controller.base.Render`).

    Args:
        prompts: the agent's prompt builder.
        memory: what views are made from.
        task: the task in words.
        state: the present state.
        actions: the admissible actions.
        now: the agent's clock.
        experiences: the steps of this episode so far.
        doubt_since: the step at which an outcome contradicted memory.
        history: how many of the newest steps of this episode the views show.
        environment: the environment's name.

    Example:
        >>> prompts = PromptBuilder(Exact(), Recall())
        >>> render = StepRenderer(prompts, NoMemory(), "Cross.", "{}", ["0", "1"], AgentClock(), [])
        >>> view, ids = render()
        >>> view.task, ids
        ('Cross.', ())
    """

    prompts: PromptBuilder
    memory: Memory
    task: str
    state: str
    actions: list[str]
    now: AgentClock
    experiences: Sequence[Experience]
    doubt_since: int | None = None
    history: int = 0
    environment: str = "generic"

    @property
    def matching(self) -> Matching:
        """When two states count as the same."""
        return self.prompts.matching

    def __call__(
        self, recall: bool = True, strategy: str | None = None, own_steps: bool = False
    ) -> tuple[PromptView, tuple[RecordId, ...]]:
        """Make a view.

        Args:
            recall: whether memory is queried; without it the view holds the present step, those of this
                episode, and verified summaries (`drift_agents.memory.views`).
            strategy: a text that precedes the memory's own items.
            own_steps: whether the steps of this episode that memory does not hold are shown with what it recalls.

        Returns:
            The view, and the ids of its records and items.
        """
        history = EpisodeHistory(self.experiences, self.history) if self.history else None
        # A history that holds every step stands for them.
        steps = () if history is not None and history.is_whole else self.experiences
        source: PromptSource = self.memory
        if not recall:
            source = EpisodeView(self.memory, self.matching, steps)
        elif own_steps:
            source = MemoryAndEpisode(self.memory, self.matching, steps)
        view, ids = self.prompts.make(
            source,
            self.task,
            self.state,
            self.actions,
            self.now,
            self.doubt_since,
            strategy,
            history,
            self.environment,
        )
        # The steps of this episode have no id.
        return view, ids if source is self.memory else tuple(number for number in ids if number > NO_ID)


LOOP = 5
"""Longer rows of repeated steps are loops."""
NOTABLE_LOOPS = 0.05
"""The share of steps in loops from which on runs and reports warn."""


def count_loop_steps(experiences: Sequence[Experience]) -> int:
    """How many steps of an episode moved in circles.

    A step is repeated if the same action was executed in the same state, by its text, earlier in the episode. More
    than `LOOP` repeated steps in a row are a loop. In a stochastic environment a repeated step can make sense.

    Args:
        experiences: the steps of one episode, in order.

    Example:
        >>> from drift_agents.types import Outcome
        >>> stays = Outcome("a", 0.0, False)
        >>> count_loop_steps([Experience("a", "0", stays, 0.0, AgentClock(0, step)) for step in range(9)])
        8
    """
    seen: set[tuple[str, str]] = set()
    steps = row = 0
    for one in experiences:
        row = row + 1 if (one.state, one.action) in seen else 0
        seen.add((one.state, one.action))
        if row == LOOP + 1:
            steps += row
        elif row > LOOP:
            steps += 1
    return steps


def describe_unread_notes(policy: Policy, memory: Memory) -> str:
    """What is lost of a memory's texts; empty if there is nothing worth a warning.

    A memory service may drop tags, by which removed records are left out. The planner reads statements and
    trajectories (`drift_agents.prompt.lessons`), and no other text. The pages of this package's memories say so where
    it matters; of memory services and other people's memories nobody has said it.
    """
    if untagged := getattr(memory, "untagged", 0):
        return (
            f"the memory service has returned {untagged} texts without their tag, so that records which a verifier "
            "removes come back. Keep the tag, as [record 7], at the end of each text"
        )
    if not getattr(policy, "has_unread_notes", False):
        return ""
    advice = ""
    if rewritten := getattr(memory, "rewritten", 0):
        begin = f"the memory service has rewritten {rewritten} records beyond recognition"
        advice = (
            '. Texts should keep the form `In STATE action "A" led to STATE (score 0)` and their tag, as [record 7]'
        )
    elif type(getattr(memory, "inner", memory)).__module__.startswith("drift_agents."):
        return ""
    else:
        begin = f"the memory {memory.name!r} has notes in words of its own"
    return f"{begin}. They stand in prompts as notes for language models; the planner cannot read them{advice}"


def _warn(text: str) -> None:
    warnings.warn(text, DriftWarning, stacklevel=4)


class _Choice(NamedTuple):
    """The action of a step, the decision for it, the text of its view, and the verdicts before it was executed."""

    action: str
    decision: Decision
    prompt: str
    checks: tuple[Verdict, ...]

    def trace(self, experience: Experience, verdict: Verdict) -> StepTrace:
        _, reply, retrieved, strategy, thought, _ = self.decision
        return StepTrace(experience, self.prompt, reply.text, retrieved, verdict, self.checks, thought, strategy)


class _EpisodeTotals:
    """Sums over the steps of an episode; its attributes are fields of `Episode`."""

    def __init__(self) -> None:
        self.probes = ProbeCost()
        self.surprises = self.realignments = self.invalid_actions = 0
        self.refreshes = self.tokens_estimated = 0
        self.loop_steps = 0
        self.usage = NO_USAGE

    def add_decision(self, decision: Decision, prompt: str, is_valid: bool) -> None:
        self.invalid_actions += not is_valid
        self.refreshes += decision.thought is not None
        self.tokens_estimated += count_tokens((prompt, decision.reply.text, *decision.aside))
        self.usage += decision.reply.usage

    def add_verdict(self, verdict: Verdict) -> None:
        self.surprises += verdict.surprise
        self.add_check(verdict)

    def add_check(self, verdict: Verdict) -> None:
        """Add a verdict that belongs to no outcome, so that it cannot be a surprise."""
        self.probes += verdict.cost
        self.realignments += verdict.realigned

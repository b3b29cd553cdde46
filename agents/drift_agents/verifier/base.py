"""The interface of verifiers, which write experiences and check memory against the environment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from inspect import signature
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from drift_agents.envs.matching import Exact, Matching
from drift_agents.errors import ArgumentError
from drift_agents.memory.base import Memory
from drift_agents.registry.parts import check_protocol, check_result, refuse_result
from drift_agents.registry.tables import VERIFIERS
from drift_agents.types import AgentClock, Episode, Experience, Outcome, ProbeCost, Removed, Transition, Verdict
from drift_envs.checks import check_count


class Probed(NamedTuple):
    """The responses of a probe and their cost.

    Args:
        transitions: the responses in order, each with the state of the probe (by a matching rule with
            cells it may be another one of the same cell); fewer than requested if the state could
            not be reached within the prober's bounds.
        cost: the cost, prefixes and retries included.
        misses: the number of attempts without a response.
    """

    transitions: tuple[Transition, ...] = ()
    cost: ProbeCost = ProbeCost()
    misses: int = 0

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcomes of the transitions, in order."""
        return tuple(transition.outcome for transition in self.transitions)


@runtime_checkable
class Prober(Protocol):
    """Repeats an action in a state.

    A prober gets only what the agent has observed: the state, the action, and the actions that led there
    since the episode began.
    """

    privileged: bool
    """Whether it uses what is not available to agents: saved states."""
    live: bool
    """Whether it probes in the agent's own environment, which is possible only between two episodes."""

    def bind(self, matching: Matching) -> None:
        """Take the agent's matching rule; called by the verifier."""

    def begin_episode(self) -> None:
        """An episode of the agent begins."""

    def moved(self) -> None:
        """A step of the agent is complete, and all its probing is over."""

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int) -> Probed:
        """Execute `action` in `state` up to `times` times.

        A verifier with the limits `probes_per_episode` or `probes_total` also passes `limit`: the maximum number of
        responses and of attempts without one together.

        Args:
            state: the target state, as text.
            prefix: the actions that led there since the episode began.
            times: the maximum number of responses.
        """
        ...


@runtime_checkable
class FollowingProber(Protocol):
    """A prober that observes each step of the agent, before it is probed."""

    def follow(self, experience: Experience) -> None:
        """Observe a step of the agent."""


@runtime_checkable
class Verifier(Protocol):
    """Writes experiences, and checks memory against the environment.

    `verify` is called once after each step, before anything is written; it writes the experience itself
    (or quarantines it), so that the same transitions do not contain it.
    """

    name: str
    supervision: str
    """For the tables: `none`, `own reward`, `judge` or `privileged`."""

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule and a generator; called once by the agent."""

    def begin_episode(self) -> None:
        """A new episode begins."""

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write an experience, quarantine it, or respond to a surprise.

        Args:
            memory: the agent's memory, without this experience.
            prefix: the actions that led to `experience.state` since the episode began.
        """
        ...

    def consider(
        self, state: str, action: str, memory: Memory, prefix: Sequence[str], now: AgentClock
    ) -> Verdict | None:
        """Check the records of an action before it is executed; returns a verdict if it was probed.

        If the verdict has `realigned`, the policy decides again. A verifier should probe the same state and
        action only once until there is a new contradiction.

        Args:
            action: the action that the policy has chosen.
            prefix: the actions that led to `state` since the episode began.
        """
        ...

    def end_episode(self, result: Episode, memory: Memory, now: AgentClock) -> Sequence[Verdict]:
        """Respond to the end of an episode; returns verdicts if memory was changed or probes were made."""
        ...


class BaseVerifier:
    """Common defaults: keeps the matching rule; does nothing before actions and at the end of episodes.

    Subclassing is optional: `Verifier` is the interface.
    """

    supervision = "none"

    def __init__(self) -> None:
        self._matching: Matching = Exact()

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule; the generator is unused."""
        self._matching = matching

    def begin_episode(self) -> None:
        """Do nothing."""

    def consider(
        self, state: str, action: str, memory: Memory, prefix: Sequence[str], now: AgentClock
    ) -> Verdict | None:
        """Do nothing."""
        return None

    def end_episode(self, result: Episode, memory: Memory, now: AgentClock) -> Sequence[Verdict]:
        """Do nothing."""
        return ()


class VerifierWithProber(BaseVerifier, ABC):
    """The base of verifiers that probe: a subclass has `name` and `judge`, and calls `probe` there.

    A prober has to be bound to the matching rule, has to hear of each episode and step, and follows the agent's way so
    that it finds short ways back. This class tells it all that, in `bind`, `begin_episode` and `verify`; a subclass
    that overrides one of these calls `super()`.

    A probe, as the two limits count it, is a response of the probed action or a replay that found none, so neither
    the responses nor the resets exceed them.

    Args:
        prober: repeats an action in a state.
        probes_per_episode: the maximum number of probes in an episode; no limit if not given.
        probes_total: the maximum number of probes in the agent's life; no limit if not given.
        **options: of the other base class, where there is one.

    Raises:
        ArgumentError: if the prober does not fit, or a limit is outside its range.

    Example:
        >>> class Ask(VerifierWithProber):
        ...     'Repeats what contradicts memory, and believes what came twice.'
        ...
        ...     name = "ask"
        ...
        ...     def judge(self, experience, memory, prefix, now):
        ...         known = memory.same_transitions(experience.state, experience.action)
        ...         if not known or known[-1].outcome == experience.outcome:
        ...             return Verdict(observed=memory.observe(experience, now))
        ...         probed = self.probe(experience.state, experience.action, prefix)
        ...         if experience.outcome not in probed.outcomes:
        ...             return Verdict(surprise=True, probed=probed.outcomes, cost=probed.cost)
        ...         removed = memory.remove([record.id for record in known])
        ...         observed = memory.observe(experience, now)
        ...         return Verdict(
        ...             surprise=True, probed=probed.outcomes, cost=probed.cost, removed=removed, observed=observed,
        ...             realigned=True, contradicted=True,
        ...         )
        >>> import gymnasium as gym
        >>> from drift_agents.verifier.prober import ReplayProber
        >>> Ask(prober=ReplayProber(gym.make("FrozenLake-v1")), probes_per_episode=3).probes_per_episode
        3
    """

    takes_privileged_prober = True
    """Whether a prober that restores the last state only will do."""
    takes_live_prober = False
    """Whether it probes only between two episodes, as a prober in the agent's own environment needs."""

    _spent = 0
    """The probes so far."""
    _spent_before = 0
    """Those of earlier episodes."""

    def __init__(
        self,
        *,
        prober: Prober,
        probes_per_episode: int | None = None,
        probes_total: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if not isinstance(prober, Prober):
            raise ArgumentError(
                "`prober` should have bind, begin_episode, moved, probe, privileged and live, as "
                f"`ReplayProber` has. Received {type(prober).__name__}"
            )
        if prober.privileged and not self.takes_privileged_prober:
            raise ArgumentError(
                "`prober` should be one that can reach any state, as `ReplayProber`. "
                f"Received {type(prober).__name__}, which restores the last state only"
            )
        if prober.live and not self.takes_live_prober:
            raise ArgumentError(
                "`prober` should be one that can probe in the middle of an episode, as `ReplayProber`. "
                f"Received {type(prober).__name__}, which probes between two episodes"
            )
        self.prober = prober
        # Protocol checks are slow, so this one is made once.
        self._following = prober if isinstance(prober, FollowingProber) else None
        self.probes_per_episode = check_count("probes_per_episode", probes_per_episode, 0, optional=True)
        self.probes_total = check_count("probes_total", probes_total, 0, optional=True)
        if self._left() is not None and "limit" not in signature(prober.probe).parameters:
            raise ArgumentError(
                "`probes_per_episode` and `probes_total` should go with a prober whose `probe` takes `limit`, as "
                f"`ReplayProber`'s does. Received {type(prober).__name__}"
            )
        if prober.privileged:
            self.supervision = "privileged"

    @abstractmethod
    def judge(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """What `Verifier.verify` does, while the prober stands at this step.

        Args:
            memory: the agent's memory, without this experience.
            prefix: the actions that led to `experience.state` since the episode began.
        """

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int = 1) -> Probed:
        """Execute `action` in `state` up to `times` times, within the limits; no response when nothing is left.

        Args:
            state: the target state, as text.
            prefix: the actions that led there since the episode began.
            times: the maximum number of responses.
        """
        left = self._left()
        if left is None:
            return self.prober.probe(state, action, prefix, times)
        if left <= 0:
            return Probed()
        probed = self.prober.probe(state, action, prefix, times, limit=left)  # type: ignore[call-arg]
        self._spent += len(probed.transitions) + probed.misses
        return probed

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule and a generator, and bind the prober to the rule."""
        super().bind(matching, rng)
        self._spent = self._spent_before = 0
        self.prober.bind(matching)

    def begin_episode(self) -> None:
        """Begin an episode of the prober."""
        self._spent_before = self._spent
        self.prober.begin_episode()

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Judge the experience; tell the prober of the step before, and of its end afterwards."""
        if self._following is not None:
            self._following.follow(experience)
        verdict = self.judge(experience, memory, prefix, now)
        self.prober.moved()
        return verdict

    def _left(self) -> int | None:
        """How many probes are left; `None` without a limit."""
        limits = []
        if self.probes_per_episode is not None:
            limits.append(self.probes_per_episode - (self._spent - self._spent_before))
        if self.probes_total is not None:
            limits.append(self.probes_total - self._spent)
        return min(limits, default=None)

    @property
    def _is_spent(self) -> bool:
        """Whether no probe is left."""
        left = self._left()
        return left is not None and left <= 0


def later_doubt(since: int | None, newest: int, step: int) -> int | None:
    """The step before which records are in doubt, after another contradiction.

    A contradiction of a record written since the last one shows another drift, so the step moves. A
    contradiction of an older record is attributed to the same drift.

    Args:
        since: the step of the last contradiction that moved it; `None` if there was none.
        newest: the step of the newest contradicted record.

    Example:
        >>> later_doubt(None, 3, 10), later_doubt(10, 3, 12), later_doubt(10, 11, 15)
        (10, 10, 15)
    """
    return step if since is None or newest >= since else since


class NoVerifier(BaseVerifier):
    """Writes every experience and never probes."""

    name = "none"

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Write it; it contradicts memory if there are records of the pair, and none with this outcome."""
        known = memory.same_transitions(experience.state, experience.action)
        surprise = bool(known) and not any(
            self._matching.same_outcome(experience.transition, transition)
            # The newest first: recent outcomes are most likely to recur.
            for record in reversed(known)
            for transition, _ in record.transitions()
        )
        return Verdict(surprise=surprise, contradicted=surprise, observed=memory.observe(experience, now))


def check_verdict(verifier: Verifier, method: str, verdict: Any) -> None:
    """Check what a method of a verifier returned.

    Raises:
        PartError: if it is no verdict, or a field of it that others use is of another type.
    """
    check_result("verifier", verifier, method, verdict, Verdict)
    if not isinstance(verdict.removed, Removed) or not isinstance(verdict.cost, ProbeCost):
        rule = "a Verdict with `removed`, what `remove` of the memory returned, and `cost`, a ProbeCost"
        raise refuse_result("verifier", verifier, method, rule, verdict)


def make_verifier(name: str, **options: Any) -> Verifier:
    """Make a verifier by name.

    Args:
        name: one of `registry.VERIFIERS.names()`.
        options: its options; those that probe take `prober`.

    Raises:
        UnknownNameError: if there is no verifier of that name.
        ArgumentError: if it does not take one of the options, or refuses its value.
        PartError: if it is one of another package or file that cannot be used.

    Example:
        >>> make_verifier("none").name
        'none'
    """
    made: Verifier = VERIFIERS.make(name, **options)
    check_protocol("verifier", name, made, Verifier)
    return made

"""The interface of verifiers, which write experiences and check memory against the environment.

* `Verifier` - the protocol
* `Prober` - the protocol of probing: repeating an action in a state
* `LimitedProber` - a prober whose attempts can be limited
* `FollowingProber` - a prober that observes the agent's steps
* `Probed` - the responses of a probe and their cost
* `BaseVerifier` - common defaults
* `later_doubt` - the time since when memory is in doubt, after another contradiction
* `NoVerifier` - writes every experience and never probes
* `make_verifier` - a verifier by name
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from drift_agents.matching.base import Exact, Matching
from drift_agents.memory.base import Memory
from drift_agents.registry import VERIFIERS, check_protocol
from drift_agents.types import AgentClock, Episode, Experience, Outcome, ProbeCost, Transition, Verdict


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
        """Execute `action` in `state` up to `times` times."""
        ...


@runtime_checkable
class LimitedProber(Prober, Protocol):
    """A prober whose attempts can be limited, as `probes_per_episode` and `probes_total` of a verifier require."""

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int, limit: int | None = None) -> Probed:
        """Execute `action` in `state` up to `times` times.

        Args:
            state: the target state, as text.
            action: the probed action.
            prefix: the actions that led there since the episode began.
            times: the maximum number of responses.
            limit: the maximum number of responses and of attempts without one together.
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
            experience: the newest transition.
            memory: the agent's memory, without this experience.
            prefix: the actions that led to `experience.state` since the episode began.
            now: the agent's clock.
        """
        ...

    def consider(
        self, state: str, action: str, memory: Memory, prefix: Sequence[str], now: AgentClock
    ) -> Verdict | None:
        """Check the records of an action before it is executed; returns a verdict if it was probed.

        If the verdict has `realigned`, the policy decides again. A verifier should probe the same state and
        action only once until there is a new contradiction.

        Args:
            state: the present state.
            action: the action that the policy has chosen.
            memory: the agent's memory.
            prefix: the actions that led to `state` since the episode began.
            now: the agent's clock.
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


def later_doubt(since: int | None, newest: int, step: int) -> int | None:
    """The step before which records are in doubt, after another contradiction.

    A contradiction of a record written since the last one shows another drift, so the step moves. A
    contradiction of an older record is attributed to the same drift.

    Args:
        since: the step of the last contradiction that moved it; `None` if there was none.
        newest: the step of the newest contradicted record.
        step: the present step.

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

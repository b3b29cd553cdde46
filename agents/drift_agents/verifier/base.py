"""What a verifier is: it decides what becomes of an experience, and whether memory is still true.

* `Verifier` - the protocol
* `Prober` - the protocol of whatever does the same again
* `FollowingProber` - a prober that is told the agent's steps
* `Probed` - what a probe brought
* `BaseVerifier` - what most verifiers do alike
* `later_doubt` - when memory was found wrong, after one more contradiction
* `NoVerifier` - writes every experience and never doubts
* `make_verifier` - a verifier by name
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from drift_agents.matching.base import Exact, Matching
from drift_agents.memory.base import Memory
from drift_agents.registry import VERIFIERS
from drift_agents.types import AgentClock, Episode, Experience, Outcome, ProbeCost, Transition, Verdict


class Probed(NamedTuple):
    """What a probe brought.

    Args:
        transitions: what the world answered, in order, each with the state in which it was asked
            (by a matching rule that knows cells it may be another one of the same cell); fewer
            than asked for when the state could not be reached again within the prober's bound.
        cost: what it cost, prefixes and retries included.
    """

    transitions: tuple[Transition, ...] = ()
    cost: ProbeCost = ProbeCost()

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What the world answered, in order."""
        return tuple(transition.outcome for transition in self.transitions)


@runtime_checkable
class Prober(Protocol):
    """Whatever can do the same again.

    A prober is told only what the agent itself knows: the state, the action, and the actions that
    led there since the episode began.
    """

    privileged: bool
    """Whether it uses what no agent in the world could: saved states."""
    live: bool
    """Whether it probes in the agent's own world, which it can do only between two episodes."""

    def bind(self, matching: Matching) -> None:
        """Called by the verifier that uses it, with the agent's matching rule."""

    def begin_episode(self) -> None:
        """A new episode of the real world has begun."""

    def moved(self) -> None:
        """The agent has made a step in the real world, and all probing that concerns it is over."""

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int) -> Probed:
        """Execute `action` in `state` up to `times` times."""
        ...


@runtime_checkable
class FollowingProber(Protocol):
    """A prober that wants to know more of what the agent knows: each of its steps, before it is asked about it."""

    def follow(self, experience: Experience) -> None:
        """Note a step that the agent has made in the real world."""


@runtime_checkable
class Verifier(Protocol):
    """Decides what becomes of an experience.

    `verify` is called once after every step, before anything is written; it writes the experience
    itself (or quarantines it), so that the counterparts it compares with do not contain it.
    """

    name: str
    supervision: str
    """For the tables: `none`, `own reward`, `judge` or `privileged`."""

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Called once by the agent: the task's matching rule and the verifier's own generator."""

    def begin_episode(self) -> None:
        """A new episode begins."""

    def verify(self, experience: Experience, memory: Memory, prefix: Sequence[str], now: AgentClock) -> Verdict:
        """Decide what becomes of an experience.

        Args:
            experience: what was just lived through.
            memory: the agent's memory, without this experience.
            prefix: the actions that led to `experience.state` since the episode began.
            now: the agent's clock.
        """
        ...

    def consider(
        self, state: str, action: str, memory: Memory, prefix: Sequence[str], now: AgentClock
    ) -> Verdict | None:
        """The policy has this action in mind: a verdict when that made the verifier check what memory says of it.

        When the verdict says `realigned`, the policy is asked again. A verifier should check the same
        state and action only once as long as nothing new speaks against it.

        Args:
            state: where the agent stands.
            action: what the policy wants to do.
            memory: the agent's memory.
            prefix: the actions that led to `state` since the episode began.
            now: the agent's clock.
        """
        ...

    def end_episode(self, result: Episode, memory: Memory, now: AgentClock) -> Sequence[Verdict]:
        """An episode ended; verdicts when that made the verifier change memory or probe."""
        ...


class BaseVerifier:
    """What most verifiers do alike: keep the matching rule, prepare nothing, conclude nothing.

    A convenience, not a requirement: `Verifier` is the contract.
    """

    supervision = "none"

    def __init__(self) -> None:
        self._matching: Matching = Exact()

    def bind(self, matching: Matching, rng: np.random.Generator) -> None:
        """Take the matching rule; nothing is drawn."""
        self._matching = matching

    def begin_episode(self) -> None:
        """Nothing to prepare."""

    def consider(
        self, state: str, action: str, memory: Memory, prefix: Sequence[str], now: AgentClock
    ) -> Verdict | None:
        """Nothing to check: what memory says is taken as it is."""
        return None

    def end_episode(self, result: Episode, memory: Memory, now: AgentClock) -> Sequence[Verdict]:
        """Nothing to conclude."""
        return ()


def later_doubt(since: int | None, newest: int, step: int) -> int | None:
    """When memory was found wrong, after it has been found wrong once more.

    A contradiction of something that was written since then shows that the world has changed again,
    so the doubt moves. A contradiction of something older is the same change, met at another place.

    Args:
        since: the step at which memory was found wrong before; `None` if it never was.
        newest: the step at which memory had last written about what was now contradicted.
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
        """Write it; it was a surprise if memory knows this action here and never saw this outcome."""
        known = memory.counterparts(experience.state, experience.action)
        surprise = bool(known) and not any(
            self._matching.same_outcome(experience.transition, transition)
            # The newest first: what memory has seen of late is most likely to be seen again.
            for record in reversed(known)
            for transition, _ in record.transitions()
        )
        return Verdict(surprise=surprise, observed=memory.observe(experience, now))


def make_verifier(name: str, **options: Any) -> Verifier:
    """Make a verifier by name.

    Args:
        name: one of `registry.VERIFIERS.names()`.
        options: its options; those that probe take `prober`.

    Raises:
        UnknownNameError: if there is no verifier of that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> make_verifier("none").name
        'none'
    """
    made: Verifier = VERIFIERS.make(name, **options)
    return made

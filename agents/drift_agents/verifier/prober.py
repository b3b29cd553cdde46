"""Doing the same again: how a verifier gets back to a state that the world has left.

* `ReplayProber` - plays the way there again in a twin of the world; every step is charged
* `ReplayLiveProber` - plays it again in the agent's own world, between two episodes: time goes on
* `SnapshotProber` - goes back to the very state, which no agent in the world could: privileged
* `Saved` - a saved state, as that one needs it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gymnasium as gym

from drift_agents.errors import ArgumentError
from drift_agents.matching import Exact, Matching
from drift_agents.types import Outcome, ProbeCost, Transition
from drift_agents.verifier.base import Probed
from drift_agents.verifier.checks import count
from drift_agents.world import check_text_world, read_outcome, to_env


class ReplayProber:
    """Plays the way to a state again in a second instance of the world, and does the same there.

    The twin is reset and the actions of the episode's beginning are executed. The first time that
    it stands in the wanted state (by the matching rule), be it before the last of them, the action
    is executed and its outcome recorded; while it then still stands in the wanted state, it is
    executed again. A replay that misses the state, because the world answers by chance or starts
    elsewhere, is followed by another one; after `attempts` misses in a row the prober gives up and
    hands back what it has. Nothing is assumed about the world but that a state, as it is shown,
    says all that matters.

    Every step and every reset is charged, misses included. A probe episode that ends with a score
    is a purchase, one that ends without is a fall; one that is left in the middle is neither.

    Args:
        twin: the second instance, a text world at the same drift tick as the first
            (`drift_envs.twin(world)`); it draws from a random stream of its own.
        matching: when two states count as the same; the agent's own rule if not given.
        attempts: how many replays in a row may miss the state; positive.

    Raises:
        ArgumentError: if `attempts` is not positive.
    """

    privileged = False
    live = False

    def __init__(self, twin: gym.Env[Any, Any], *, matching: Matching | None = None, attempts: int = 20) -> None:
        self.attempts = count("attempts", attempts)
        self._twin = twin
        self._own_rule = matching is not None
        self._matching: Matching = Exact() if matching is None else matching

    def bind(self, matching: Matching) -> None:
        """Take the agent's matching rule, unless one was given."""
        if not self._own_rule:
            self._matching = matching

    def begin_episode(self) -> None:
        """Nothing to prepare: a replay starts from a reset of the twin."""

    def moved(self) -> None:
        """Nothing to note."""

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int) -> Probed:
        """Execute `action` in `state` up to `times` times.

        Args:
            state: the wanted state, as the world showed it.
            action: what is done there.
            prefix: the actions that led there since the episode began.
            times: how many outcomes are wanted.

        Returns:
            As many transitions as could be had, at most `times`, with what they cost.

        Raises:
            ArgumentError: if the twin does not show text.
        """
        wanted = self._matching.state_key(state)
        found: list[Transition] = []
        cost, missed = ProbeCost(), 0
        while len(found) < times and missed < self.attempts:
            before = len(found)
            cost += self._replay(wanted, action, prefix, times, found)
            missed = 0 if len(found) > before else missed + 1
        return Probed(tuple(found), cost)

    def _replay(
        self, wanted: Any, action: str, prefix: Sequence[str], times: int, found: list[Transition]
    ) -> ProbeCost:
        """Once from the start; appends to `found` and returns the cost."""
        observation, info = self._twin.reset()
        check_text_world(observation, info)
        state, steps, arrived, way = str(observation), 0, False, iter(prefix)
        while len(found) < times:
            here = self._matching.state_key(state) == wanted
            if arrived and not here:
                break
            arrived = here
            doing = action if here else next(way, None)
            if doing is None:
                break
            outcome, over = _step(self._twin, doing)
            steps += 1
            if here:
                found.append(Transition(state, action, outcome))
            if over:
                return ProbeCost(steps=steps, resets=1) + _ending(outcome)
            state = outcome.state
        return ProbeCost(steps=steps, resets=1)


class ReplayLiveProber(ReplayProber):
    """Plays the way to a state again in the agent's own world: an agent that has no twin.

    The world has to be reset for that, so a verifier calls it when the agent's episode is over. Every
    replay is an episode of its own, and a drift whose clock counts episodes or steps goes on meanwhile:
    what is found may be the answer of a later time than that of the surprise. It fits worlds whose
    episodes begin alike; where every reset brings another task, the state is hardly met again.

    Args:
        world: the world in which the agent plays.
        matching: when two states count as the same; the agent's own rule if not given.
        attempts: how many replays in a row may miss the state; positive.

    Raises:
        ArgumentError: if `attempts` is not positive.
    """

    live = True

    def __init__(self, world: gym.Env[Any, Any], *, matching: Matching | None = None, attempts: int = 20) -> None:
        super().__init__(world, matching=matching, attempts=attempts)


class Saved(Protocol):
    """A saved state of the agent's world."""

    def restore(self, into: Any) -> None:
        """Put another instance of the world into that state; it goes on with random numbers of its own."""


class SnapshotProber:
    """Goes back to the very state in which the agent stood: privileged, an ablation of `ReplayProber`.

    It shows what verification would cost if the way back were free: one step a probe, and one
    reset for putting the state back.

    Args:
        twin: the second instance, as for `ReplayProber`.
        save: saves the state in which the agent's world stands when it is called, as
            `functools.partial(snapshot, world)` does, with `drift_envs.wrappers.snapshot.snapshot`.

    Raises:
        ArgumentError: if `save` cannot be called.
    """

    privileged = True
    live = False

    def __init__(self, twin: gym.Env[Any, Any], save: Callable[[], Saved]) -> None:
        if not callable(save):
            raise ArgumentError(f"`save` should be a function that saves the world's state. Received {save!r}")
        self._twin, self._save = twin, save
        self._saved: Saved | None = None

    def bind(self, matching: Matching) -> None:
        """Not needed: the very same state is the same by every rule."""

    def begin_episode(self) -> None:
        """Note the state in which the episode begins."""
        self._saved = self._save()

    def moved(self) -> None:
        """Note the state in which the next step begins."""
        self._saved = self._save()

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int) -> Probed:
        """Execute `action` `times` times in the state before the agent's last step.

        Args:
            state: that state, as the world showed it.
            action: what is done there.
            prefix: not needed.
            times: how many outcomes are wanted.

        Returns:
            `times` transitions, with what they cost; none before the first episode.
        """
        found: list[Transition] = []
        cost = ProbeCost()
        if self._saved is None:
            return Probed()
        for _ in range(times):
            self._twin.reset()
            self._saved.restore(self._twin)
            outcome, _ = _step(self._twin, action)
            found.append(Transition(state, action, outcome))
            cost += ProbeCost(steps=1, resets=1) + _ending(outcome)
        return Probed(tuple(found), cost)


def _step(world: Any, action: str) -> tuple[Outcome, bool]:
    """One step: what the world answered, and whether the episode is over (the time limit included)."""
    observation, _, terminated, truncated, info = world.step(to_env(world.action_space, action))
    return read_outcome(observation, terminated, info), bool(terminated or truncated)


def _ending(outcome: Outcome) -> ProbeCost:
    """What the end of a probe episode counts as; running out of time is neither a fall nor a purchase."""
    return ProbeCost(
        falls=int(outcome.ended and outcome.score <= 0), purchases=int(outcome.ended and outcome.score > 0)
    )

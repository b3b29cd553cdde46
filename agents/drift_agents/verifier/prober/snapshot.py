"""Probing by saved states: privileged, since no agent can restore the state of its environment.

* `SnapshotProber` - restores the saved state in a twin and executes the probed action
* `Saved` - the protocol of a saved state
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gymnasium as gym

from drift_agents.errors import ArgumentError
from drift_agents.matching.base import Matching
from drift_agents.types import ProbeCost, Transition
from drift_agents.verifier.base import Probed
from drift_agents.verifier.prober.replay import episode_end_cost, step_text


class Saved(Protocol):
    """A saved state of the agent's world."""

    def restore(self, into: Any) -> None:
        """Put another instance of the world into that state; it goes on with random numbers of its own."""


class SnapshotProber:
    """Restores the saved state of the agent's environment: privileged, an ablation of `ReplayProber`.

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
            outcome, _ = step_text(self._twin, action)
            found.append(Transition(state, action, outcome))
            cost += ProbeCost(steps=1, resets=1) + episode_end_cost(outcome)
        return Probed(tuple(found), cost)

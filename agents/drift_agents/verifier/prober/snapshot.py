"""Probing by saved states: privileged, since no agent can restore the state of its environment.

* `SnapshotProber` - restores the saved state in a twin and executes the probed action
* `Saved` - the protocol of a saved state
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gymnasium as gym

from drift_agents.errors import ArgumentError
from drift_agents.matching import Matching
from drift_agents.types import ProbeCost, Transition
from drift_agents.verifier.base import Probed
from drift_agents.verifier.prober.replay import episode_end_cost, step_text


class Saved(Protocol):
    """A saved state of the agent's environment."""

    def restore(self, into: Any) -> None:
        """Put another instance of the environment into that state; its random stream stays its own."""


class SnapshotProber:
    """Restores the saved state of the agent's environment: privileged, an ablation of `ReplayProber`.

    It measures the cost of verification without replay: one step and one reset a probe.

    Args:
        twin: the second instance, as for `ReplayProber`.
        save: saves the present state of the agent's environment, as
            `functools.partial(snapshot, env)` does, with `drift_envs.wrappers.snapshot.snapshot`.

    Raises:
        ArgumentError: if `save` cannot be called.
    """

    privileged = True
    live = False

    def __init__(self, twin: gym.Env[Any, Any], save: Callable[[], Saved]) -> None:
        if not callable(save):
            raise ArgumentError(f"`save` should be a function that saves the environment's state. Received {save!r}")
        self._twin, self._save = twin, save
        self._saved: Saved | None = None

    def bind(self, matching: Matching) -> None:
        """Do nothing: the state is restored exactly."""

    def begin_episode(self) -> None:
        """Save the first state of the episode."""
        self._saved = self._save()

    def moved(self) -> None:
        """Save the state before the next step."""
        self._saved = self._save()

    def probe(self, state: str, action: str, prefix: Sequence[str], times: int, limit: int | None = None) -> Probed:
        """Execute `action` `times` times in the state before the agent's last step.

        Args:
            state: that state, as text.
            action: the probed action.
            prefix: ignored.
            times: the number of responses.
            limit: the maximum number of responses.

        Returns:
            The transitions, with their cost; none before the first episode.
        """
        found: list[Transition] = []
        cost = ProbeCost()
        if self._saved is None:
            return Probed()
        for _ in range(times if limit is None else min(times, limit)):
            self._twin.reset()
            self._saved.restore(self._twin)
            outcome, _ = step_text(self._twin, action)
            found.append(Transition(state, action, outcome))
            cost += ProbeCost(steps=1, resets=1) + episode_end_cost(outcome)
        return Probed(tuple(found), cost)

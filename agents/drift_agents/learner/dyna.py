"""Dyna-Q+, a model-based learner that does not trust what it has not tried for long.

* `DynaQPlus` - Sutton and Barto, Reinforcement Learning, second edition, section 8.3
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np

from drift_agents.checks import check_integer, check_number
from drift_agents.learner.base import Learner, LearnerStep, Pair
from drift_agents.matching.base import Matching


class DynaQPlus(Learner):
    """Dyna-Q+ (Sutton and Barto 2018, section 8.3): designed for changing environments.

    After every step it takes the step into its model, which holds the newest answer to each pair,
    and then makes `planning` updates of Q on pairs drawn from the model. A pair that was not tried for
    tau steps is rewarded with `bonus` * sqrt(tau) there, so that it is tried again. As in the book,
    actions never tried in a state that was visited are in the model too, and are taken to lead back
    to it without a reward.

    Args:
        matching: when two states count as the same; texts must be equal if not given.
        rate: alpha, in (0, 1].
        discount: gamma, in (0, 1).
        explore: the chance of a random action; in [0, 1).
        initial: Q of what was never tried, not negative.
        planning: updates in the model after every step; positive.
        bonus: kappa, not negative; 0 gives Dyna-Q.
        seed: of the learner's own generator.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> import gymnasium as gym
        >>> import drift_envs
        >>> learner = DynaQPlus()
        >>> world = gym.make("DriftFrozenLake-v0", text=True)
        >>> episode = learner.run_episode(world, seed=0)
        >>> episode.steps == learner.steps
        True
    """

    name = "dyna_q_plus"

    def __init__(
        self,
        *,
        matching: Matching | None = None,
        rate: float = 0.5,
        discount: float = 0.95,
        explore: float = 0.1,
        initial: float = 0.0,
        planning: int = 50,
        bonus: float = 0.001,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        super().__init__(matching=matching, rate=rate, discount=discount, explore=explore, initial=initial, seed=seed)
        self.planning = check_integer("planning", planning)
        self.bonus = check_number("bonus", bonus, "[0, inf)")
        self._model: dict[Pair, LearnerStep] = {}
        self._tried: dict[Pair, int] = {}
        self._pairs: list[Pair] = []
        self._known: set[Hashable] = set()

    def _choose(self, state: Hashable, actions: tuple[str, ...]) -> str:
        """Enter the state's actions into the model, then choose."""
        if state not in self._known:
            self._known.add(state)
            for action in actions:
                if (state, action) not in self._model:
                    self._model[state, action] = LearnerStep((state, action), 0.0, state, actions)
                    self._tried[state, action] = self.steps
                    self._pairs.append((state, action))
        return super()._choose(state, actions)

    def _learn(self, step: LearnerStep) -> None:
        self._update(step)
        if step.pair not in self._model:
            self._pairs.append(step.pair)
        self._model[step.pair] = step
        self._tried[step.pair] = self.steps
        for index in self._rng.integers(len(self._pairs), size=self.planning).tolist():
            pair = self._pairs[index]
            self._update(self._model[pair], self.bonus * math.sqrt(self.steps - self._tried[pair]))

"""Q-learning on the newest interactions alone.

* `WindowedQ` - replays the transitions of the window and forgets older ones
"""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from drift_agents.checks import check_integer
from drift_agents.learner.base import Learner, LearnerStep, Pair
from drift_agents.matching.base import Matching


class WindowedQ(Learner):
    """Q-learning with replay of the newest `window` interactions; older ones are forgotten.

    The windowed way to meet drift (Cheung et al. 2020 estimate rewards and transitions of a drifting
    decision process from a sliding window), in its plainest form: after every step `replays` updates
    of Q on interactions drawn from the window. When the last interaction of a pair leaves the window,
    its Q goes back to `initial`.

    Args:
        matching: when two states count as the same; texts must be equal if not given.
        rate: alpha, in (0, 1].
        discount: gamma, in (0, 1).
        explore: the chance of a random action; in [0, 1).
        initial: Q of what was never tried, or forgotten; not negative.
        window: how many of the newest interactions are kept; positive.
        replays: updates after every step; positive.
        seed: of the learner's own generator.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> WindowedQ(window=100).window
        100
    """

    name = "windowed_q"

    def __init__(
        self,
        *,
        matching: Matching | None = None,
        rate: float = 0.5,
        discount: float = 0.95,
        explore: float = 0.1,
        initial: float = 1.0,
        window: int = 1000,
        replays: int = 50,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        super().__init__(matching=matching, rate=rate, discount=discount, explore=explore, initial=initial, seed=seed)
        self.window = check_integer("window", window)
        self.replays = check_integer("replays", replays)
        self._steps: deque[LearnerStep] = deque()
        self._held: Counter[Pair] = Counter()

    def _learn(self, step: LearnerStep) -> None:
        self._steps.append(step)
        self._held[step.pair] += 1
        if len(self._steps) > self.window:
            gone = self._steps.popleft().pair
            self._held[gone] -= 1
            if not self._held[gone]:
                del self._held[gone], self._values[gone]
        self._update(step)
        for index in self._rng.integers(len(self._steps), size=self.replays).tolist():
            self._update(self._steps[index])

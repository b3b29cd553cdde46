"""Intervals of means and ranks by a paired bootstrap.

Schedules are the fixed points of a design and are not resampled; instances (seeds) are. Schedules with equally many
instances share their resamples, since a seed draws one map for all schedules of an environment. Source: Agarwal et al.,
"Deep reinforcement learning at the edge of the statistical precipice" (NeurIPS 2021), stratified bootstrap.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from drift_agents.errors import ArgumentError
from drift_envs.metrics import Estimate

RESAMPLES = 10_000
LEVEL = 0.95
"""The share of the resamples that an interval holds."""

_AT_ONCE = 2**24
"""Weights that are in memory at the same time, 128 MB; counts take a quarter or an eighth of that."""

_EDGES = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)


class Resamples:
    """Seeds resampled with replacement, in the same way for all agents and for all schedules with as many seeds.

    Args:
        instances: pairs of schedule and seed, without doubles.
        resamples: how many.
        seed: of the draws.

    Raises:
        ArgumentError: if there is no instance.

    Example:
        >>> places = pd.MultiIndex.from_tuples([("lake", 0), ("lake", 1), ("shop", 0), ("shop", 1)])
        >>> drawn = Resamples(places, resamples=1000)
        >>> found = drawn.estimate([0.0, 1.0, 0.5, 0.5])
        >>> found.mean, found.low, found.high, found.n
        (0.5, 0.25, 0.75, 2)
    """

    def __init__(self, instances: pd.MultiIndex, resamples: int = RESAMPLES, seed: int = 0) -> None:
        if not len(instances):
            raise ArgumentError("`instances` should hold at least one. Received none")
        self._places: dict[str, np.ndarray] = {}
        self._counts: dict[str, np.ndarray] = {}
        schedules = instances.get_level_values(0).to_numpy()
        numbers = instances.get_level_values(1).to_numpy()
        for schedule in pd.unique(schedules):
            places = np.flatnonzero(schedules == schedule)
            places = places[np.argsort(numbers[places])]
            self._places[schedule], self._counts[schedule] = places, _draw_counts(len(places), resamples, seed)

    @property
    def n(self) -> int:
        """The least number of instances of a schedule."""
        return min(map(len, self._places.values()))

    def means(self, values: ArrayLike) -> np.ndarray:
        """The mean over schedules of every resample.

        Args:
            values: one number an instance, shape (..., instances).

        Returns:
            Means, shape (..., resamples).
        """
        table = np.asarray(values, dtype=np.float64)
        return np.asarray(np.mean([self.of(schedule, table) for schedule in self._places], axis=0))

    def of(self, schedule: str, values: ArrayLike) -> np.ndarray:
        """The mean of one schedule, of every resample.

        Args:
            values: one number an instance of all schedules, shape (..., instances).

        Returns:
            Means, shape (..., resamples).
        """
        own = np.asarray(values, dtype=np.float64)[..., self._places[schedule]]
        counts = self._counts[schedule]
        n, resamples = counts.shape
        size = max(_AT_ONCE // n, 1)
        blocks = (counts[:, first : first + size].astype(np.float64) for first in range(0, resamples, size))
        return np.concatenate([own @ (block / n) for block in blocks], axis=-1)

    def mean(self, values: ArrayLike) -> np.ndarray:
        """The mean over schedules of the mean over instances, shape (...)."""
        table = np.asarray(values, dtype=np.float64)
        return np.asarray(np.mean([table[..., places].mean(axis=-1) for places in self._places.values()], axis=0))

    def estimate(self, values: ArrayLike) -> Estimate:
        """The mean over schedules with its interval; of a single instance a schedule there is none.

        Args:
            values: one number an instance, shape (instances,).
        """
        return self.estimate_of(values, self.means(values))

    def estimate_of(self, values: ArrayLike, draws: np.ndarray) -> Estimate:
        """The same with resamples that are known.

        Args:
            values: one number an instance, shape (instances,).
            draws: what `means` returns for them, shape (resamples,).
        """
        return estimate(float(self.mean(values)), draws, self.n)

    def ranks(self, values: ArrayLike) -> list[tuple[int, int]]:
        """The interval of every agent's rank; equal means share a rank.

        Args:
            values: one number an agent and instance, shape (agents, instances).

        Returns:
            The best and the worst rank of every agent, from 1.

        Example:
            >>> places = pd.MultiIndex.from_tuples([("lake", seed) for seed in range(4)])
            >>> Resamples(places, resamples=50).ranks([[0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]])
            [(3, 3), (1, 1), (1, 1)]
        """
        means = np.round(self.means(values), 9)
        ranks = np.stack([1 + (means > own).sum(axis=0) for own in means])
        edges = np.quantile(ranks, _EDGES, axis=1, method="inverted_cdf").astype(int)
        return [(int(low), int(high)) for low, high in edges.T]


@lru_cache(maxsize=16)
def _draw_counts(n: int, resamples: int, seed: int) -> np.ndarray:
    """How often each of n instances is drawn, shape (n, resamples)."""
    rng = np.random.default_rng(seed)
    counts = np.empty((n, resamples), np.min_scalar_type(n))
    size = max(_AT_ONCE // n, 1)
    for first in range(0, resamples, size):
        block = counts[:, first : first + size]
        block[:] = rng.multinomial(n, [1 / n] * n, block.shape[1]).T
    return counts


def estimate(mean: float, draws: np.ndarray, n: int) -> Estimate:
    """A mean with the interval of its resamples.

    Args:
        draws: the means of the resamples, shape (resamples,).
    """
    low, high = np.round(np.quantile(draws, _EDGES), 9)  # equal values leave no interval
    return Estimate(round(mean, 9), float(low), float(high), n)

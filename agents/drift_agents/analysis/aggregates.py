"""Interquartile means over many schedules, with bootstrap intervals.

* `Resamples` - schedules resampled, and instances within them, in the same way for all agents that are compared
* `interquartile` - the mean of the middle half

Source: Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice" (NeurIPS 2021):
interquartile means over all runs of all tasks, with percentile intervals from a bootstrap. Theirs
is stratified by task; here tasks are drawn too.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from drift_agents.errors import ArgumentError
from drift_envs.metrics import Estimate

CUT = 0.25
"""The share of values that is trimmed at either end."""
RESAMPLES = 2_000
LEVEL = 0.95
"""The share of the resamples that an interval holds."""

Numbers = NDArray[np.float64]


def interquartile(values: ArrayLike) -> Numbers:
    """The mean of the middle half along the last axis.

    Args:
        values: numbers, shape (..., n), n at least 1.

    Returns:
        Means, shape (...).

    Example:
        >>> float(interquartile([0.0, 0.5, 0.6, 100.0]))
        0.55
    """
    means: Numbers = stats.trim_mean(np.asarray(values, dtype=np.float64), CUT, axis=-1)
    return means


class Resamples:
    """Strata resampled, and instances within each that was drawn, in the same way for all agents that are compared.

    The two levels of a nested bootstrap (Davison and Hinkley 1997, section 3.8): the strata that were played are some
    of those that could have been, as their instances are. A drawn stratum takes the place of one that was played and
    gives as many instances, so that all resamples are equally long. Differences are thus paired, and ranks are
    counted resample by resample; `scipy.stats.bootstrap` shares no resamples between calls.

    Args:
        strata: the stratum of each instance, as the schedule that was played; length n.
        resamples: how many.
        seed: of the draws.

    Raises:
        ArgumentError: if there is no instance.

    Example:
        >>> drawn = Resamples(["lake", "lake", "shop"], resamples=100)
        >>> found = drawn.estimate([0.0, 1.0, 0.5])
        >>> found.mean, found.low, found.high, found.n
        (0.5, 0.16666666666666666, 0.8333333333333334, 3)
    """

    def __init__(self, strata: Sequence[Hashable], resamples: int = RESAMPLES, seed: int = 0) -> None:
        if not strata:
            raise ArgumentError("`strata` should have at least one instance. Received none")
        self.strata = tuple(strata)
        self._seed = seed
        self._single = len(set(self.strata)) == len(self.strata)
        rng = np.random.default_rng(seed)
        self._drawn = np.empty((resamples, len(self.strata)), np.int32)
        members = {
            stratum: np.array([place for place, other in enumerate(self.strata) if other == stratum], np.int32)
            for stratum in dict.fromkeys(self.strata)
        }
        sizes = np.array([len(places) for places in members.values()])
        begins = np.cumsum(sizes) - sizes
        ordered = np.concatenate(list(members.values()))
        for places in members.values():
            chosen = rng.integers(len(members), size=resamples)
            for some in _blocks(resamples, len(places)):
                size = sizes[chosen[some], None]
                drawn = rng.integers(np.broadcast_to(size, (len(size), len(places))))
                self._drawn[some, places] = ordered[begins[chosen[some], None] + drawn]

    def part(self, within: Sequence[bool]) -> Resamples:
        """Resamples of some strata alone; a part of a resample of all would hold instances of others.

        Args:
            within: which instances count, whole strata; shape (n,).

        Raises:
            ArgumentError: if none counts.
        """
        strata = [stratum for stratum, inside in zip(self.strata, within, strict=True) if inside]
        return Resamples(strata, len(self._drawn), self._seed)

    def means(self, values: ArrayLike) -> Numbers:
        """The interquartile mean of every resample.

        Args:
            values: one number an instance; shape (n,).

        Returns:
            Means, shape (resamples,).
        """
        numbers = np.asarray(values, dtype=np.float64)
        return np.concatenate([interquartile(numbers[self._drawn[some]]) for some in _blocks(*self._drawn.shape)])

    def estimate(self, values: ArrayLike) -> Estimate:
        """The interquartile mean with its interval.

        Args:
            values: one number an instance; shape (n,).

        Returns:
            The estimate; its `n` is 1 where each stratum has but one instance, so that other instances are unknown.
        """
        n = 1 if self._single else len(self.strata)
        return Estimate(float(interquartile(values)), *interval(self.means(values)), n)

    def difference(self, ours: ArrayLike, theirs: ArrayLike) -> Estimate:
        """The difference of two interquartile means over the same instances, with its interval.

        Args:
            ours: one number an instance; shape (n,).
            theirs: another agent's numbers for the same instances; shape (n,).
        """
        mean = float(interquartile(ours) - interquartile(theirs))
        return Estimate(mean, *interval(self.means(ours) - self.means(theirs)), 1 if self._single else len(self.strata))

    def ranks(self, values: Sequence[ArrayLike]) -> list[tuple[int, int]]:
        """The interval of every agent's rank; equal means share a rank.

        Args:
            values: by agent, one number an instance; each of shape (n,).

        Returns:
            The best and the worst rank of every agent, from 1.

        Example:
            >>> Resamples(["lake"] * 4, resamples=50).ranks([[0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]])
            [(3, 3), (1, 1), (1, 1)]
        """
        means = np.round(np.stack([self.means(each) for each in values]), 9)
        ranks = 1 + (means[None, :, :] > means[:, None, :]).sum(axis=1)
        edges = np.quantile(ranks, _EDGES, axis=1, method="inverted_cdf").astype(int)
        return [(int(low), int(high)) for low, high in edges.T]


_AT_ONCE = 2**22


def _blocks(rows: int, columns: int) -> list[slice]:
    """Slices of rows with some million numbers each; all of them take gigabytes for ten thousands of instances."""
    step = max(_AT_ONCE // max(columns, 1), 1)
    return [slice(begin, min(begin + step, rows)) for begin in range(0, rows, step)]


_EDGES = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)


def interval(means: Numbers) -> tuple[float, float]:
    """The middle part of the resamples' means."""
    low, high = np.quantile(means, _EDGES)
    return float(low), float(high)

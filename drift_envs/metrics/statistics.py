"""Means with intervals, over instances.

* `Estimate` - a mean with its interval
* `bootstrap` - the mean over instances, with a stratified bootstrap interval
* `paired_difference` - the mean difference over pairs of instances
* `proportion` - a success rate with Wilson's interval
* `interquartile_mean` - the mean of the middle half
* `ScoreSummary`, `summarise` - mean, interquartile mean and share of failures together

An interval says how far the mean would move with other instances of the same kind. Runs that are
equal because nothing is random are one instance, however many seeds they carry.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from drift_envs.errors import ArgumentError
from drift_envs.metrics.checks import numbers, positive

RESAMPLES = 4000


class Estimate(NamedTuple):
    """A mean with its interval.

    Args:
        mean: the mean over instances.
        low: the lower end of the interval.
        high: its upper end.
        n: how many instances it rests on; 1 where all of them agree, since they are then as good as one.

    Example:
        >>> print(Estimate(0.85, 0.64, 0.95, 20), Estimate(0.85, 0.85, 0.85, 1), sep="; ")
        0.85 [0.64, 0.95]; 0.85 (n = 1)
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero; never with one instance."""
        return self.n > 1 and (self.low > 0 or self.high < 0)

    def __str__(self) -> str:
        """The mean with its interval, or a note that there is none."""
        if self.n == 1:
            return f"{self.mean:.3g} (n = 1)"
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


class ScoreSummary(NamedTuple):
    """Three views of the same scores; the middle one alone hides a failing quarter.

    Args:
        mean: the mean.
        interquartile_mean: the mean of the middle half.
        failures: the share of scores at or below the threshold.
    """

    mean: float
    interquartile_mean: float
    failures: float


def bootstrap(
    values: ArrayLike,
    strata: Sequence[Hashable] | None = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """The mean over instances, with a percentile bootstrap interval.

    Instances are drawn anew within their stratum (a map, an environment), so that every resample
    holds as many of each kind as there are.

    Args:
        values: one number an instance, shape `(N,)`.
        strata: the stratum of each instance; all are of one kind by default.
        level: the interval's probability.
        resamples: how many resamples.
        seed: of the resamples.

    Example:
        >>> found = bootstrap([0.0, 1.0, 0.0, 1.0, 1.0, 1.0])
        >>> round(found.mean, 3), found.low < 0.5, found.high, found.n
        (0.667, True, 1.0, 6)
        >>> bootstrap([0.5, 0.5, 0.5])
        Estimate(mean=0.5, low=0.5, high=0.5, n=1)
    """
    array = numbers("values", values)
    kinds = [None] * len(array) if strata is None else list(strata)
    if len(kinds) != len(array):
        raise ArgumentError(f"`strata` should be as long as `values`. Received {len(kinds)} and {len(array)}")
    if not 0 < level < 1:
        raise ArgumentError(f"`level` should be in the interval (0, 1). Received {level!r}")
    mean = math.fsum(array) / len(array)
    samples = [array[[kind == each for kind in kinds]] for each in dict.fromkeys(kinds)]
    # Where no stratum varies, no resample can differ: there is no interval to speak of.
    if all(np.ptp(sample) == 0 for sample in samples):
        return Estimate(mean, mean, mean, 1)

    def stratified_mean(*drawn: np.ndarray, axis: int = -1) -> np.ndarray:
        total = sum(sample.sum(axis=axis) for sample in drawn)
        return np.asarray(total) / len(array)

    # scipy draws each of several samples on its own, which is what stratified means. A stratum of
    # one would stop it; that one is the same in every resample, so that it may stand twice.
    interval = stats.bootstrap(
        [np.repeat(sample, 2) / 2 if len(sample) == 1 else sample for sample in samples],
        stratified_mean,
        n_resamples=positive("resamples", resamples),
        confidence_level=level,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Estimate(mean, float(interval.low), float(interval.high), len(array))


def paired_difference(
    ours: ArrayLike,
    theirs: ArrayLike,
    strata: Sequence[Hashable] | None = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """The mean of `ours - theirs` over pairs of instances, with its interval.

    Both played the same instance with the same seed, so that what the instance is like cancels out.

    Args:
        ours: one number an instance, shape `(N,)`.
        theirs: the same instances in the same order, shape `(N,)`.
        strata: the stratum of each pair.
        level: the interval's probability.
        resamples: how many resamples.
        seed: of the resamples.

    Example:
        >>> paired_difference([0.9, 0.6, 0.8], [0.5, 0.3, 0.4]).excludes_zero
        True
    """
    one, other = numbers("ours", ours), numbers("theirs", theirs)
    if len(one) != len(other):
        raise ArgumentError(f"`ours` and `theirs` should be equally long. Received {len(one)} and {len(other)}")
    return bootstrap(one - other, strata, level=level, resamples=resamples, seed=seed)


def proportion(successes: int, episodes: int, level: float = 0.95) -> Estimate:
    """A success rate over independent episodes, with Wilson's interval.

    Args:
        successes: how many episodes succeeded.
        episodes: how many there were.
        level: the interval's probability.

    Example:
        >>> print(proportion(17, 20))
        0.85 [0.64, 0.948]
    """
    n = positive("episodes", episodes)
    if not 0 <= successes <= n:
        raise ArgumentError(f"`successes` should be in the interval [0, {n}]. Received {successes!r}")
    interval = stats.binomtest(successes, n).proportion_ci(level, method="wilson")
    return Estimate(successes / n, float(interval.low), float(interval.high), n)


def interquartile_mean(values: ArrayLike) -> float:
    """The mean of the middle half, which a few outliers do not move (Agarwal et al. 2021).

    Args:
        values: one number an instance, shape `(N,)`.

    Example:
        >>> interquartile_mean([0.0, 0.5, 0.6, 100.0])
        0.55
    """
    return float(stats.trim_mean(numbers("values", values), 0.25))


def summarise(values: ArrayLike, failure: float = 0.0) -> ScoreSummary:
    """Mean, interquartile mean and share of failures together.

    Args:
        values: one number an instance, shape `(N,)`.
        failure: a score up to this one is a failure.

    Example:
        >>> summarise([0.0, 1.0, 1.0, 1.0])
        ScoreSummary(mean=0.75, interquartile_mean=1.0, failures=0.25)
    """
    array = numbers("values", values)
    return ScoreSummary(float(array.mean()), interquartile_mean(array), float((array <= failure).mean()))

"""Means with intervals, over instances.

* `Estimate` - a mean with its interval
* `bootstrap` - the mean over instances, with a stratified bootstrap interval
* `paired_difference` - the mean difference over pairs of instances
* `proportion` - a success rate with Wilson's interval
* `interquartile_mean` - the mean of the middle half
* `ScoreSummary`, `summarise` - mean, interquartile mean and share of failures together
* `check_numbers` - the check of all arguments that are sequences of numbers

The intervals are those of SciPy, which is imported when the first one is computed. An interval
describes the variation over instances of the same kind. Runs that are equal because nothing is
random are one instance, whatever their seeds.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from drift_envs.checks import LARGEST_COUNT, check_integer
from drift_envs.errors import ArgumentError, MissingDependencyError

RESAMPLES = 4000
"""Bootstrap resamples."""

_AT_ONCE = 2**18
"""Numbers that are drawn at once: few enough for a processor's cache."""


def check_numbers(name: str, values: ArrayLike | Sequence[float], *, least: int = 1) -> np.ndarray:
    """Return a sequence as an array of finite numbers.

    Args:
        name: the argument's name, as the message shows it.
        values: the sequence.
        least: the minimum length.

    Returns:
        An array of shape `(N,)`.

    Raises:
        ArgumentError: if it is anything else.

    Example:
        >>> check_numbers("scores", [])
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `scores` should hold at least 1 number. Received 0
    """
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"`{name}` should be a sequence of numbers. Received {values!r}") from None
    if array.ndim != 1:
        raise ArgumentError(f"`{name}` should have one dimension. Received an array of shape {array.shape}")
    if len(array) < least:
        raise ArgumentError(f"`{name}` should hold at least {least} number{'s' * (least > 1)}. Received {len(array)}")
    if not np.isfinite(array).all():
        index = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ArgumentError(f"`{name}` should hold finite numbers. Received {array[index]} at {index}")
    return array


class Estimate(NamedTuple):
    """A mean with its interval.

    Args:
        mean: the mean over instances.
        low: the lower end of the interval.
        high: its upper end.
        n: the number of instances; 1 if all of them are equal, since they carry the information of one.

    Example:
        >>> print(Estimate(0.85, 0.64, 0.95, 20), Estimate(0.85, 0.85, 0.85, 1), sep="; ")
        0.85 [0.64, 0.95]; 0.85 (one value)
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval does not contain zero; false with one instance."""
        return self.n > 1 and (self.low > 0 or self.high < 0)

    def __str__(self) -> str:
        """The mean with its interval, or a note that there is none."""
        if self.n == 1:
            return f"{self.mean:.3g} (one value)"
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


class ScoreSummary(NamedTuple):
    """Three statistics of the same scores; the interquartile mean alone hides a failing quarter.

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

    Instances are resampled within their stratum (a map, an environment), so that every resample has
    as many instances of each stratum as the sample.

    Args:
        values: one for each instance, shape `(N,)`.
        strata: the stratum of each instance; by default there is one stratum.
        level: the confidence level, in (0, 1).
        resamples: the number of resamples, at least 1.
        seed: the seed of the resamples.

    Example:
        >>> found = bootstrap([0.0, 1.0, 0.0, 1.0, 1.0, 1.0])
        >>> round(found.mean, 3), found.low < 0.5, found.high, found.n
        (0.667, True, 1.0, 6)
        >>> bootstrap([0.5, 0.5, 0.5])
        Estimate(mean=0.5, low=0.5, high=0.5, n=1)
    """
    array = check_numbers("values", values)
    kinds = [None] * len(array) if strata is None else list(strata)
    if len(kinds) != len(array):
        raise ArgumentError(f"`strata` should be as long as `values`. Received {len(kinds)} and {len(array)}")
    if not 0 < level < 1:
        raise ArgumentError(f"`level` should be in the interval (0, 1). Received {level!r}")
    mean = math.fsum(array) / len(array)
    samples = [array[[kind == each for kind in kinds]] for each in dict.fromkeys(kinds)]
    # If no stratum varies, all resamples are equal and there is no interval.
    if all(np.ptp(sample) == 0 for sample in samples):
        return Estimate(mean, mean, mean, 1)

    def stratified_mean(*drawn: np.ndarray, axis: int = -1) -> np.ndarray:
        total = sum(sample.sum(axis=axis) for sample in drawn)
        return np.asarray(total) / len(array)

    # SciPy resamples each of several samples independently, which is the stratification. It refuses samples
    # of one; a stratum of one is equal in every resample, so it is passed as two halves.
    interval = (
        _scipy_stats()
        .bootstrap(
            [np.repeat(sample, 2) / 2 if len(sample) == 1 else sample for sample in samples],
            stratified_mean,
            n_resamples=check_integer("resamples", resamples, 1, LARGEST_COUNT),
            confidence_level=level,
            method="percentile",
            # Batches keep memory bounded. They would change what is drawn for several samples, but not for one.
            batch=max(_AT_ONCE // len(array), 1) if len(samples) == 1 else None,
            vectorized=True,
            rng=np.random.default_rng(seed),
        )
        .confidence_interval
    )
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

    Both sides are of the same instance with the same seed, so that differences between instances cancel.

    Args:
        ours: one for each instance, shape `(N,)`.
        theirs: the same instances in the same order, shape `(N,)`.
        strata: the stratum of each pair.
        level: the confidence level, in (0, 1).
        resamples: the number of resamples, at least 1.
        seed: the seed of the resamples.

    Example:
        >>> paired_difference([0.9, 0.6, 0.8], [0.5, 0.3, 0.4]).excludes_zero
        True
    """
    one, other = check_numbers("ours", ours), check_numbers("theirs", theirs)
    if len(one) != len(other):
        raise ArgumentError(f"`ours` and `theirs` should be equally long. Received {len(one)} and {len(other)}")
    return bootstrap(one - other, strata, level=level, resamples=resamples, seed=seed)


def proportion(successes: int, episodes: int, level: float = 0.95) -> Estimate:
    """A success rate over independent episodes, with Wilson's interval.

    Args:
        successes: the number of successful episodes.
        episodes: the number of episodes, at least 1.
        level: the confidence level, in (0, 1).

    Example:
        >>> print(proportion(17, 20))
        0.85 [0.64, 0.948]
    """
    n = check_integer("episodes", episodes, 1)
    if not 0 <= successes <= n:
        raise ArgumentError(f"`successes` should be in the interval [0, {n}]. Received {successes!r}")
    interval = _scipy_stats().binomtest(successes, n).proportion_ci(level, method="wilson")
    return Estimate(successes / n, float(interval.low), float(interval.high), n)


def interquartile_mean(values: ArrayLike) -> float:
    """The mean of the middle half, robust to outliers (Agarwal et al. 2021).

    Args:
        values: one for each instance, shape `(N,)`.

    Example:
        >>> interquartile_mean([0.0, 0.5, 0.6, 100.0])
        0.55
    """
    return float(_scipy_stats().trim_mean(check_numbers("values", values), 0.25))


def summarise(values: ArrayLike, failure: float = 0.0) -> ScoreSummary:
    """Mean, interquartile mean and share of failures.

    Args:
        values: one for each instance, shape `(N,)`.
        failure: scores up to this one are failures.

    Example:
        >>> summarise([0.0, 1.0, 1.0, 1.0])
        ScoreSummary(mean=0.75, interquartile_mean=1.0, failures=0.25)
    """
    array = check_numbers("values", values)
    return ScoreSummary(float(array.mean()), interquartile_mean(array), float((array <= failure).mean()))


def _scipy_stats() -> Any:
    """`scipy.stats`, which takes longer to load than all of this package.

    Raises:
        MissingDependencyError: if SciPy is not installed.
    """
    try:
        from scipy import stats
    except ImportError as error:
        raise MissingDependencyError('`scipy` is not installed, run `pip install "drift-envs[agents]"`') from error
    return stats

"""Scores of one phase, scores against references, and statistics over them: means with intervals, robust means."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from drift_envs.checks import LARGEST_COUNT, check_integer, check_interval
from drift_envs.errors import ArgumentError, needs_extra

RESAMPLES = 4000
"""Bootstrap resamples."""

_AT_ONCE = 2**18
"""Numbers that are drawn at once: few enough for a processor's cache."""


def percent(scores: ArrayLike) -> float:
    """The mean score in percent: GLOVE's success rate (scores 0 or 1) or score (section 5).

    Args:
        scores: one for each episode, shape `(K,)`.

    Example:
        >>> percent([1, 1, 0, 1])
        75.0
    """
    return 100.0 * float(check_numbers("scores", scores).mean())


def area_under_curve(scores: ArrayLike) -> float:
    """The area under the scores over the episodes, normalised by the length of the phase.

    Each episode is a bar of width 1 / K, so that the area equals the mean.

    Args:
        scores: one for each episode, shape `(K,)`.

    Example:
        >>> area_under_curve([0.0, 0.5, 1.0, 1.0])
        0.625
    """
    return float(check_numbers("scores", scores).mean())


def first_and_last(scores: ArrayLike, rounds: int = 5) -> tuple[float, float]:
    """The mean of the first and of the last rounds of a phase, in [0, 1].

    Args:
        scores: one for each episode, shape `(K,)`.
        rounds: episodes at each end, at least 1; the two may overlap in a short phase.

    Example:
        >>> first_and_last([0, 0, 0, 1, 1, 1], rounds=3)
        (0.0, 1.0)
    """
    array = check_numbers("scores", scores, least=check_integer("rounds", rounds, 1))
    return float(array[:rounds].mean()), float(array[-rounds:].mean())


def prequential(scores: ArrayLike, fading: float = 0.95) -> np.ndarray:
    """The mean with a fading factor after each episode: S_i / B_i, S_i = x_i + a S_(i-1), B_i = 1 + a B_(i-1).

    Gama, Sebastiao and Rodrigues, On evaluating stream learning algorithms, 2013.

    Args:
        scores: one for each episode, shape `(K,)`.
        fading: a, in (0, 1]; 1 gives the plain running mean.

    Returns:
        One for each episode, shape `(K,)`.

    Example:
        >>> prequential([1.0, 0.0, 0.0], fading=0.5).round(3).tolist()
        [1.0, 0.333, 0.143]
    """
    check_interval("fading", fading, "(0, 1]")
    total = weight = 0.0
    faded = []
    for score in check_numbers("scores", scores):
        total, weight = float(score) + fading * total, 1.0 + fading * weight
        faded.append(total / weight)
    return np.array(faded)


def dynamic_regret(optimal: ArrayLike, achieved: ArrayLike) -> float:
    """The sum over episodes of V*_k(s0) - V_k(s0), V* that of the episode's own knobs.

    Cheung, Simchi-Levi and Zhu, Reinforcement Learning for Non-Stationary Markov Decision Processes,
    2020. The score of an episode is an unbiased estimate of V_k, so that single terms may be negative
    in a random environment.

    Args:
        optimal: the oracle's value for each episode, shape `(K,)`.
        achieved: the score of each episode, shape `(K,)`.

    Example:
        >>> dynamic_regret([1.0, 1.0, 0.8], [1.0, 0.0, 0.5])
        1.3
    """
    best, score = check_numbers("optimal", optimal), check_numbers("achieved", achieved)
    if len(best) != len(score):
        raise ArgumentError(f"`optimal` and `achieved` should be equally long. Received {len(best)} and {len(score)}")
    return float((best - score).sum())


def variation_budget(rewards: Iterable[ArrayLike], transitions: Iterable[ArrayLike]) -> tuple[float, float]:
    """The total change of an environment: B_r of the rewards and B_p of the transitions.

    B_r sums, from tick to tick, the largest change of any expected reward; B_p the largest change
    of any distribution over next states, in the L1 norm (Cheung et al. 2020, section 2).

    Args:
        rewards: for every tick the expected reward of each state and action, shape `(S, A)`.
        transitions: for every tick the distributions, shape `(S, A, S)`.

    Example:
        >>> still, moved = np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]])
        >>> variation_budget([[[0.0]], [[0.5]], [[0.5]]], [still, moved, moved])
        (0.5, 2.0)
    """
    reward_budget = sum((float(change.max()) for change in _changes("rewards", rewards)), 0.0)
    distances = (float(change.sum(axis=-1).max()) for change in _changes("transitions", transitions))
    return reward_budget, sum(distances, 0.0)


def _changes(name: str, models: Iterable[ArrayLike]) -> Iterator[np.ndarray]:
    """The absolute changes from tick to tick."""
    before: np.ndarray | None = None
    for model in models:
        array = np.asarray(model, dtype=float)
        if before is not None:
            if before.shape != array.shape:
                raise ArgumentError(f"`{name}` should keep their shape. Received {before.shape} and then {array.shape}")
            yield np.abs(array - before)
        before = array


def forgetting(at_end_of_task: ArrayLike, at_very_end: ArrayLike) -> float:
    """The mean over tasks of p_i at the end of task i minus p_i at the end of the run.

    Wolczyk et al., Continual World, 2021. With recurring drifts a task is a recurring phase. Negative
    values mean that later tasks improved earlier ones.

    Args:
        at_end_of_task: one for each task, at the end of that task, shape `(N,)`.
        at_very_end: one for each task, at the end of the run, shape `(N,)`.

    Example:
        >>> forgetting([1.0, 0.8], [0.5, 0.8])
        0.25
    """
    before = check_numbers("at_end_of_task", at_end_of_task)
    after = check_numbers("at_very_end", at_very_end)
    if len(before) != len(after):
        raise ArgumentError(
            f"`at_end_of_task` and `at_very_end` should be equally long. Received {len(before)} and {len(after)}"
        )
    return float((before - after).mean())


def forward_transfer(area: float, beginner: float) -> float | None:
    """(AUC - AUC_b) / (1 - AUC_b): the normalised gain over an agent without experience.

    Tomilin et al., COOM, 2023.

    Args:
        area: the area under the agent's curve in the new phase, in [0, 1].
        beginner: that of an agent without experience, in [0, 1].

    Returns:
        At most 1, negative if experience harms; `None` if `beginner` is 1.

    Example:
        >>> forward_transfer(0.75, 0.5), forward_transfer(0.25, 0.5)
        (0.5, -0.5)
    """
    return None if beginner >= 1 else (area - beginner) / (1 - beginner)


def truth_rate(holds: Iterable[bool | float]) -> float | None:
    """The share of a memory's statements that are true at a tick.

    The definition is this project's own; see `Oracle.holds`.

    Args:
        holds: for each statement whether it holds, or the share of its probability mass that does.

    Returns:
        In [0, 1]; `None` for an empty memory.

    Example:
        >>> truth_rate([True, True, False, 0.5])
        0.625
    """
    shares = [float(share) for share in holds]
    return sum(shares) / len(shares) if shares else None


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
    check_interval("level", level, "(0, 1)")
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
    check_integer("successes", successes, 0, n)
    check_interval("level", level, "(0, 1)")
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
    with needs_extra("scipy", "agents"):
        from scipy import stats
    return stats

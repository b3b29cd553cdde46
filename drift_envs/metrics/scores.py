"""Scores of a phase, and scores against a reference.

* `percent` - the mean score in percent
* `area_under_curve` - the area under the scores over the episodes
* `first_and_last` - the means of the first and of the last rounds of a phase
* `prequential` - the mean with a fading factor (Gama et al. 2013)
* `dynamic_regret` - the cumulative gap to the optimum of each episode (Cheung et al.)
* `variation_budget` - the total change of rewards and transitions (Cheung et al.)
* `forgetting` - the score at the end of a task minus the score at the end of the run (Continual World)
* `forward_transfer` - the normalised gain over an agent without experience (COOM)
* `truth_rate` - the share of a memory's statements that are true
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError
from drift_envs.metrics.statistics import check_numbers


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
    if not 0 < fading <= 1:
        raise ArgumentError(f"`fading` should be in the interval (0, 1]. Received {fading!r}")
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

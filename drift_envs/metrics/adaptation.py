"""Adaptation: recovery after a drift, what probing costs and brings.

The definitions of costs are this project's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from drift_envs.checks import check_integer, check_interval
from drift_envs.errors import ArgumentError
from drift_envs.metrics.statistics import RESAMPLES, Estimate, bootstrap, check_numbers

ROUNDING = 1e-9
"""Tolerance for floating-point differences between sums of scores."""

COSTS = ("probe_steps", "probe_resets", "model_calls", "tokens_in", "tokens_out")
"""The fields of `episodes.jsonl` that count costs beyond the steps of an episode."""


class Recovery(NamedTuple):
    """A recovery time.

    Args:
        episodes: the episodes of the phase before the recovery; the length of the phase if there was none.
        is_censored: whether there was none within the phase (right-censored).
    """

    episodes: int
    is_censored: bool


class Recoveries(NamedTuple):
    """A summary of recovery times.

    Args:
        share: the share of instances that recovered within the phase.
        median: the median time in episodes, `None` if half of the instances or more did not recover.
        restricted_mean: the mean time in episodes, with the phase's length for instances that did not
            recover: a lower bound of the true mean.
        n: the number of instances.
    """

    share: float
    median: float | None
    restricted_mean: float
    n: int


def recovery(
    scores: ArrayLike, reference: ArrayLike | float, *, tolerance: float = 0.1, window: int = 5, stay: int = 5
) -> Recovery:
    """The first episode after a drift from which the score is back at the reference, and stays there.

    The idea is that of the NS-Gym competition, the formula this project's own: the first k such that,
    for `stay` consecutive windows beginning at k, the mean score of a window is at least
    (1 - tolerance) times the mean reference of that window. At the end of the phase fewer windows
    suffice if no more fit.

    Args:
        scores: one for each episode from the drift on, shape `(K,)`.
        reference: the score of full recovery: one number, or one for each episode, shape `(K,)`.
        tolerance: in [0, 1), the share of the reference that may be missing.
        window: episodes in a window, at least 1.
        stay: consecutive windows, at least 1.

    Returns:
        The time in episodes, right-censored if there was no recovery.

    Example:
        >>> recovery([0, 0, 1, 1, 1, 1], reference=1.0, window=2, stay=2)
        Recovery(episodes=2, is_censored=False)
        >>> recovery([0, 0, 1, 0, 1, 0], reference=1.0, window=2, stay=2)
        Recovery(episodes=6, is_censored=True)
    """
    check_interval("tolerance", tolerance, "[0, 1)")
    array = check_numbers("scores", scores, least=check_integer("window", window, 1))
    target = check_numbers("reference", np.repeat(reference, len(array)) if np.ndim(reference) == 0 else reference)
    if len(target) != len(array):
        raise ArgumentError(f"`scores` and `reference` should be equally long. Received {len(array)} and {len(target)}")
    kernel = np.ones(window) / window
    recovered = np.convolve(array, kernel, "valid") >= (1 - tolerance) * np.convolve(target, kernel, "valid") - ROUNDING
    windows = check_integer("stay", stay, 1)
    for start in np.flatnonzero(recovered):
        if recovered[start : start + windows].all():
            return Recovery(int(start), False)
    return Recovery(len(array), True)


def summarise_recoveries(recoveries: Sequence[Recovery]) -> Recoveries:
    """Summarise recovery times; no statistic leaves out the censored ones.

    Args:
        recoveries: one for each instance, of phases of equal length.

    Example:
        >>> summarise_recoveries([Recovery(2, False), Recovery(4, False), Recovery(20, True)])
        Recoveries(share=0.6666666666666666, median=4.0, restricted_mean=8.666666666666666, n=3)
    """
    if not recoveries:
        raise ArgumentError("`recoveries` should hold at least 1 recovery. Received 0")
    times = sorted(item.episodes if not item.is_censored else np.inf for item in recoveries)
    middle = float(np.median(times))
    recovered = [not item.is_censored for item in recoveries]
    return Recoveries(
        share=sum(recovered) / len(recovered),
        median=middle if np.isfinite(middle) else None,
        restricted_mean=sum(item.episodes for item in recoveries) / len(recoveries),
        n=len(recoveries),
    )


def retention(before: ArrayLike, after: ArrayLike, window: int = 5) -> float | None:
    """The score just after the drift over the score just before, with the memory frozen.

    NS-Gym calls it resilience. The caller freezes the memory.

    Args:
        before: scores up to the drift, shape `(K,)`.
        after: scores from the drift on, shape `(L,)`.
        window: episodes averaged on each side, at least 1.

    Returns:
        1 if no score was lost; `None` if the score before the drift is 0.

    Example:
        >>> retention([0.0, 1.0, 1.0], [0.5, 0.5, 1.0], window=2)
        0.5
    """
    least = check_integer("window", window, 1)
    old = float(check_numbers("before", before, least=least)[-window:].mean())
    new = float(check_numbers("after", after, least=least)[:window].mean())
    return None if old == 0 else new / old


def recovery_deficit(scores: ArrayLike, reference: float) -> float:
    """The share of the reference score that was lost: the sum of (p_ref - p_k) over K * p_ref.

    The definition is this project's own.

    Args:
        scores: one for each episode of the phase, shape `(K,)`.
        reference: the score of full recovery, above 0.

    Example:
        >>> recovery_deficit([0.0, 0.5, 1.0, 1.0], reference=1.0)
        0.375
    """
    check_interval("reference", reference, "(0, inf)")
    return float((reference - check_numbers("scores", scores)).mean() / reference)


class CostKind(NamedTuple):
    """One kind of cost.

    Args:
        per_drift: the mean total over phases that begin with a drift; `None` without such a phase.
        per_stable_episode: the mean over episodes of stable phases; `None` without such an episode.
    """

    per_drift: float | None
    per_stable_episode: float | None


def cost_by_kind(
    rows: Iterable[Mapping[str, Any]], kinds: Sequence[str] = COSTS, stable: str = "source"
) -> dict[str, CostKind]:
    """The costs of one run: per drift, and per episode of stable phases.

    Args:
        rows: the lines of one run, with `phase` and the costs.
        kinds: the fields that count costs.
        stable: the id of stable phases; recurrences (`source#2`) are stable too, since the agent has
            already learned them.

    Example:
        >>> rows = [{"phase": "source", "probe_steps": 2}, {"phase": "drift-1", "probe_steps": 5}]
        >>> rows += [{"phase": "drift-1", "probe_steps": 3}]
        >>> cost_by_kind(rows, ["probe_steps"])
        {'probe_steps': CostKind(per_drift=8.0, per_stable_episode=2.0)}
    """
    lines = list(rows)
    stable_rows = [row for row in lines if row["phase"].split("#")[0] == stable]
    drifted_rows = [row for row in lines if row["phase"].split("#")[0] != stable]
    drifts = len({row["phase"] for row in drifted_rows})
    found = {}
    for kind in kinds:
        found[kind] = CostKind(
            per_drift=float(sum(row[kind] for row in drifted_rows)) / drifts if drifts else None,
            per_stable_episode=float(sum(row[kind] for row in stable_rows)) / len(stable_rows) if stable_rows else None,
        )
    return found


def collected_score(scores: ArrayLike, interactions: ArrayLike, budget: int) -> float:
    """The sum of the scores of all episodes that ended within an interaction budget.

    Agents are ranked at equal *total* interactions, since an agent that probes plays fewer episodes
    with the same budget.

    Args:
        scores: one for each episode, shape `(K,)`.
        interactions: steps, probes, prefixes and retries of each episode, shape `(K,)`.
        budget: the interactions of all episodes together.

    Raises:
        ArgumentError: if the run has fewer interactions than the budget.

    Example:
        >>> collected_score([1.0, 0.0, 1.0], [10, 10, 10], budget=25)
        1.0
    """
    score, spent = check_numbers("scores", scores), np.cumsum(check_numbers("interactions", interactions))
    if len(score) != len(spent):
        raise ArgumentError(
            f"`scores` and `interactions` should be equally long. Received {len(score)} and {len(spent)}"
        )
    if budget > spent[-1]:
        raise ArgumentError(f"`budget` should be at most the run's {spent[-1]:g} interactions. Received {budget!r}")
    return float(score[spent <= budget].sum())


def break_even(our_score: float, our_probes: float, their_score: float, their_probes: float) -> float | None:
    """The price of a probe, in score, at which two agents have the same net score.

    Args:
        our_score: the score of one agent.
        our_probes: its number of probes.
        their_score: the score of the other agent.
        their_probes: its number of probes.

    Returns:
        Below this price the agent with more probes has the higher net score; 0 or less if it never
        has; `None` if both have the same number of probes.

    Example:
        >>> break_even(50.0, 100, 30.0, 0)
        0.2
    """
    return None if our_probes == their_probes else (our_score - their_score) / (our_probes - their_probes)


def recovery_ratio(
    verified: ArrayLike, base: ArrayLike, reset: ArrayLike, *, level: float = 0.95, seed: int = 0
) -> Estimate | None:
    """(verified - base) / (reset - base): the gain of a verifier over the gain of *oracle reset*.

    Args:
        verified: the score of the agent with its verifier, one for each instance, shape `(N,)`.
        base: that of the agent without a verifier, on the same instances.
        reset: that of the agent whose memory is cleared at the drift, on the same instances.
        level: the confidence level, in (0, 1).
        seed: the seed of the resamples.

    Returns:
        The ratio of the means, with a bootstrap interval over instances; `None` if the interval of the
        denominator contains 0, where the ratio is undefined.

    Example:
        >>> ratio = recovery_ratio([0.8, 0.9, 0.85], [0.1, 0.2, 0.0], [0.8, 0.8, 0.9])
        >>> round(ratio.mean, 2)
        1.02
    """
    ours, plain = check_numbers("verified", verified), check_numbers("base", base)
    cleared = check_numbers("reset", reset)
    if not len(ours) == len(plain) == len(cleared):
        raise ArgumentError(
            "`verified`, `base` and `reset` should be equally long. "
            f"Received {len(ours)}, {len(plain)} and {len(cleared)}"
        )
    gain, possible = ours - plain, cleared - plain
    interval = bootstrap(possible, level=level, seed=seed)
    if interval.low <= 0 <= interval.high:
        return None
    mean = float(gain.mean() / possible.mean())
    if np.ptp(gain) == 0 and np.ptp(possible) == 0:
        return Estimate(mean, mean, mean, 1)
    # Not `scipy.stats.bootstrap`: resamples whose denominator is 0 have to be left out, which it cannot do.
    generator = np.random.default_rng(seed)
    drawn = generator.integers(len(ours), size=(RESAMPLES, len(ours)))
    denominators = possible[drawn].mean(axis=1)
    is_defined = denominators != 0
    ratios = gain[drawn].mean(axis=1)[is_defined] / denominators[is_defined]
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(mean, float(low), float(high), len(ours))

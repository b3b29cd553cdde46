"""What a drift costs, and how soon that is over.

* `Recovery`, `recovery` - the first episode from which the score is back
* `Recoveries`, `summarise_recoveries` - many recovery times, some of which were never seen
* `retention` - the score just after the drift over that just before
* `recovery_deficit` - the share of the reference that was missed in the phase
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from drift_envs.errors import ArgumentError
from drift_envs.metrics.checks import numbers, positive

ROUNDING = 1e-9
"""Sums of scores that are equal on paper may differ by this."""


class Recovery(NamedTuple):
    """When the score was back.

    Args:
        episodes: how many episodes of the phase had passed; all of them where it was never back.
        is_censored: whether it was never seen to be back: it takes longer than the phase.
    """

    episodes: int
    is_censored: bool


class Recoveries(NamedTuple):
    """Many recovery times.

    Args:
        share: the share of instances that recovered within the phase.
        median: the median time, `None` where half of them or more did not recover.
        restricted_mean: the mean time, those that did not recover counted with the phase's length:
            a lower bound of the true mean.
        n: how many instances.
    """

    share: float
    median: float | None
    restricted_mean: float
    n: int


def recovery(
    scores: ArrayLike, reference: ArrayLike | float, *, tolerance: float = 0.1, window: int = 5, stay: int = 5
) -> Recovery:
    """The first episode after a drift from which the score is back, and stays.

    The idea is that of the NS-Gym competition, the formula this project's own: the first k such that,
    for `stay` windows in a row beginning at k, the mean score of a window is at least
    (1 - tolerance) times the mean reference of that window. At the end of the phase the windows that
    still fit must do.

    Args:
        scores: one an episode, from the drift on, shape `(K,)`.
        reference: what counts as full recovery: one number, or one an episode, shape `(K,)`.
        tolerance: the share of the reference that may be missing.
        window: episodes that are averaged.
        stay: windows in a row that must be good.

    Returns:
        The time in episodes, right-censored where it never came.

    Example:
        >>> recovery([0, 0, 1, 1, 1, 1], reference=1.0, window=2, stay=2)
        Recovery(episodes=2, is_censored=False)
        >>> recovery([0, 0, 1, 0, 1, 0], reference=1.0, window=2, stay=2)
        Recovery(episodes=6, is_censored=True)
    """
    if not 0 <= tolerance < 1:
        raise ArgumentError(f"`tolerance` should be in the interval [0, 1). Received {tolerance!r}")
    array = numbers("scores", scores, least=positive("window", window))
    wanted = np.broadcast_to(np.asarray(reference, dtype=float), array.shape)
    kernel = np.ones(window) / window
    good = np.convolve(array, kernel, "valid") >= (1 - tolerance) * np.convolve(wanted, kernel, "valid") - ROUNDING
    for start in np.flatnonzero(good):
        if good[start : start + positive("stay", stay)].all():
            return Recovery(int(start), False)
    return Recovery(len(array), True)


def summarise_recoveries(recoveries: Sequence[Recovery]) -> Recoveries:
    """Many recovery times in three numbers, none of which leaves the censored ones out.

    Args:
        recoveries: one an instance, of phases of equal length.

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
    """The score just after the drift over the score just before, with memory frozen.

    NS-Gym calls it resilience. Whether memory was frozen is the caller's affair.

    Args:
        before: scores up to the drift, shape `(K,)`.
        after: scores from the drift on, shape `(L,)`.
        window: episodes on either side that are averaged.

    Returns:
        1 where nothing was lost; `None` where there was nothing to lose.

    Example:
        >>> retention([0.0, 1.0, 1.0], [0.5, 0.5, 1.0], window=2)
        0.5
    """
    least = positive("window", window)
    old = float(numbers("before", before, least=least)[-window:].mean())
    new = float(numbers("after", after, least=least)[:window].mean())
    return None if old == 0 else new / old


def recovery_deficit(scores: ArrayLike, reference: float) -> float:
    """The share of the reference that was missed: the sum of (p_ref - p_k) over K * p_ref.

    The definition is this project's own.

    Args:
        scores: one an episode of the phase, shape `(K,)`.
        reference: the score of full recovery, above 0.

    Example:
        >>> recovery_deficit([0.0, 0.5, 1.0, 1.0], reference=1.0)
        0.375
    """
    if not reference > 0:
        raise ArgumentError(f"`reference` should be above 0. Received {reference!r}")
    return float((reference - numbers("scores", scores)).mean() / reference)

"""How soon an agent detects a drift and recovers from it.

* `Recovery`, `recovery` - the first episode from which the score is back at the reference
* `Recoveries`, `summarise_recoveries` - many recovery times, some of them right-censored
* `retention` - the score just after the drift over the score just before
* `recovery_deficit` - the share of the reference score that was lost in the phase
* `Realignment` - when a memory was realigned, and whether the touched pair had changed
* `Detection`, `detect` - detection delays, false alarms, precision and recall
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError
from drift_envs.metrics.statistics import check_numbers

ROUNDING = 1e-9
"""Tolerance for floating-point differences between sums of scores."""


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
    if not 0 <= tolerance < 1:
        raise ArgumentError(f"`tolerance` should be in the interval [0, 1). Received {tolerance!r}")
    array = check_numbers("scores", scores, least=check_integer("window", window, 1))
    target = np.broadcast_to(np.asarray(reference, dtype=float), array.shape)
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
    if not reference > 0:
        raise ArgumentError(f"`reference` should be above 0. Received {reference!r}")
    return float((reference - check_numbers("scores", scores)).mean() / reference)


class Realignment(NamedTuple):
    """A realignment of a memory.

    Args:
        time: the number of interactions before it.
        is_true: whether it touched a pair of state and action whose response had changed.
    """

    time: int
    is_true: bool


class Detection(NamedTuple):
    """Detection delays and error rates of one run.

    Args:
        delays: for each drift the interactions until the first true realignment, `None` if there was none
            before the next drift or the end.
        exposures: for each drift the visits of changed pairs until then, or until the next drift if
            there was no true realignment: the number of opportunities to detect it.
        false_alarms: realignments that touched no changed pair, also after a drift.
        false_alarm_rate: false alarms per 1,000 interactions.
        precision: the share of realignments that were true; `None` without realignments.
        recall: the share of drifts that were detected; `None` without drifts.
    """

    delays: tuple[int | None, ...]
    exposures: tuple[int, ...]
    false_alarms: int
    false_alarm_rate: float
    precision: float | None
    recall: float | None


def detect(
    drifts: Sequence[int],
    realignments: Sequence[Realignment],
    interactions: int,
    exposures: Sequence[int] = (),
) -> Detection:
    """Compute detection delays and error rates of one run.

    The terms are those of CapyMOA's drift evaluator and of river; the definition of a detection is this
    project's own: a realignment that touches a pair of state and action whose response has changed.

    Args:
        drifts: the interactions before each drift, ascending.
        realignments: the realignments of the memory, ascending.
        interactions: all interactions of the run, probes included, at least 1.
        exposures: the interactions at which a changed pair was visited for which the memory had
            records, ascending.

    Example:
        >>> run = [Realignment(40, False), Realignment(130, True), Realignment(180, True)]
        >>> found = detect([100, 300], run, interactions=400, exposures=[110, 130, 350])
        >>> found.delays, found.exposures, found.recall
        ((30, None), (2, 1), 0.5)
        >>> found.false_alarms, found.false_alarm_rate, round(found.precision, 2)
        (1, 2.5, 0.67)
    """
    times = [item.time for item in realignments]
    for name, values in (("drifts", drifts), ("realignments", times), ("exposures", exposures)):
        if list(values) != sorted(values):
            raise ArgumentError(f"`{name}` should be ascending. Received {list(values)!r}")
    if interactions < 1:
        raise ArgumentError(f"`interactions` should be at least 1. Received {interactions!r}")
    delays: list[int | None] = []
    visits: list[int] = []
    for start, stop in zip(drifts, [*drifts, interactions][1:], strict=True):
        hits = [item.time for item in realignments if item.is_true and start <= item.time < stop]
        delays.append(hits[0] - start if hits else None)
        last = bisect_right(exposures, hits[0]) if hits else bisect_left(exposures, stop)
        visits.append(max(0, last - bisect_left(exposures, start)))
    false = sum(not item.is_true for item in realignments)
    detected = sum(delay is not None for delay in delays)
    return Detection(
        delays=tuple(delays),
        exposures=tuple(visits),
        false_alarms=false,
        false_alarm_rate=1000.0 * false / interactions,
        precision=(len(realignments) - false) / len(realignments) if realignments else None,
        recall=detected / len(drifts) if drifts else None,
    )

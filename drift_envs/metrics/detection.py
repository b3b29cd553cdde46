"""Whether realignments come where something has changed.

* `Realignment` - when a memory was put right, and whether what it touched had changed
* `Detection`, `detect` - delays, false alarms, precision and recall

The terms are those of CapyMOA's drift evaluator and of river; what a hit is, is this project's own:
a realignment that touches a state and action whose response has changed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from drift_envs.errors import ArgumentError


class Realignment(NamedTuple):
    """When a memory was put right.

    Args:
        time: the interactions before it.
        is_true: whether it touched a state and action whose response had changed.
    """

    time: int
    is_true: bool


class Detection(NamedTuple):
    """How well drifts were noticed.

    Args:
        delays: for each drift the interactions until the first true realignment, `None` where none
            came before the next drift or the end.
        exposures: for each drift how often a changed pair was visited until then (in all, where no
            true realignment came): what could have been noticed.
        false_alarms: realignments that touched nothing that had changed, also those after a drift.
        false_alarm_rate: false alarms per 1,000 interactions.
        precision: the share of realignments that were true; `None` without any.
        recall: the share of drifts that were noticed; `None` without any.
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
    """Delays and false alarms of one run.

    Args:
        drifts: the interactions before each drift, ascending.
        realignments: when memory was put right, ascending.
        interactions: how many there were in all, probes included.
        exposures: the interactions at which a changed pair was visited about which memory had
            something to say, ascending.

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
    seen: list[int] = []
    for start, stop in zip(drifts, [*drifts, interactions][1:], strict=True):
        hits = [item.time for item in realignments if item.is_true and start <= item.time < stop]
        delays.append(hits[0] - start if hits else None)
        last = bisect_right(exposures, hits[0]) if hits else bisect_left(exposures, stop)
        seen.append(max(0, last - bisect_left(exposures, start)))
    false = sum(not item.is_true for item in realignments)
    noticed = sum(delay is not None for delay in delays)
    return Detection(
        delays=tuple(delays),
        exposures=tuple(seen),
        false_alarms=false,
        false_alarm_rate=1000.0 * false / interactions,
        precision=(len(realignments) - false) / len(realignments) if realignments else None,
        recall=noticed / len(drifts) if drifts else None,
    )

"""How far a schedule reaches: ticks beyond which a question would take too long, told when it is loaded.

* `Limits`, `limits_of` - the last ticks
* `limit_findings` - the drifts that begin beyond them, which is an error
* `early_limit` - the limit that long experiments may meet, which is a warning
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from drift_envs.schedule.findings import Finding
from drift_envs.schedule.model import MAX_TICK, Drift
from drift_envs.schedule.phases import PhaseTable
from drift_envs.schedule.ramps import DriftRamp
from drift_envs.schedule.streams import MOST_EVENTS, RandomStream

EARLY = 10_000_000
"""Ticks that an experiment may well have: an earlier limit is warned of."""


class Limits(NamedTuple):
    """The last ticks of which questions are answered.

    Args:
        phase: the last one whose phase is found, `MAX_TICK` where phases repeat.
        value: about the last one before which at most `MOST_EVENTS` random events of each drift lie: a tick of `rate`,
            `walk` and `choice` costs by the events before it, since each adds to the one before.
    """

    phase: int
    value: int


def limits_of(drifts: Sequence[Drift]) -> Limits:
    """The last ticks of some drifts; where their times are random, those of one seed.

    Args:
        drifts: those of a schedule.

    Example:
        >>> storms = Drift.model_validate({"name": "storms", "rate": 0.1, "walk": {"slip": 0.05}})
        >>> limits_of([storms]).value
        1000000000
    """
    value = MAX_TICK
    for drift in drifts:
        if drift.rate is not None:
            value = min(value, (drift.at or 0) + int(MOST_EVENTS / drift.rate))
        elif drift.every is not None and (drift.walk or drift.choice):
            value = min(value, (drift.at or drift.every) + MOST_EVENTS * drift.every)
    ramps = [DriftRamp(drift, RandomStream(0, index)) for index, drift in enumerate(drifts)]
    return Limits(PhaseTable(ramps).last_tick, value)


def limit_findings(drifts: Sequence[Drift], limits: Limits) -> Iterator[Finding]:
    """The drifts that begin beyond the limits, so that no episode could reach them.

    Args:
        drifts: those of a schedule.
        limits: their `limits_of`.

    Example:
        >>> storms = Drift.model_validate({"name": "storms", "rate": 0.1, "set": {"slip": 0.5}})
        >>> late = Drift.model_validate({"name": "late", "at": 2_000_000_000, "set": {"slip": 0.1}})
        >>> [path for path, rule in limit_findings([storms, late], limits_of([storms, late]))]
        [('drifts', 1, 'at')]
    """
    last = min(limits)
    for index, drift in enumerate(drifts):
        if drift.at is not None and drift.at > last:
            rule = f"should be at most {last}: with these drifts later ticks would take too long. Received {drift.at}"
            yield ("drifts", index, "at"), rule


def early_limit(limits: Limits) -> Finding | None:
    """The limit that long experiments may meet, with the place in the schedule.

    Args:
        limits: the `limits_of` a schedule's drifts.
    """
    if min(limits) >= EARLY:
        return None
    reason = "random events" if limits.value < limits.phase else "phases that do not repeat"
    return ("drifts",), f"can be played up to tick {min(limits)} only: too many {reason} lie before later ones"

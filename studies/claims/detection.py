"""The claims about slippery lakes: `false-alarms` (8, 9, 18 and 19)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from drift_agents.analysis.aggregates import LEVEL
from drift_agents.analysis.runs import estimate
from drift_agents.analysis.schedule_runs import ScheduleRuns
from drift_agents.analysis.tables.probing import detection_delays, false_alarms
from scipy.stats import norm

from drift_envs.metrics import proportion
from studies.claims.evidence import (
    SLACK,
    Check,
    ClaimRun,
    NotPlayedError,
    Numbers,
    at_most,
    drifts,
    interval_of,
    run_of,
    title,
)
from studies.claims.paper_tables import player

CALM, SHORT, LONG = "frozen_lake/null", "frozen_lake/slippery-family", "frozen_lake/slippery-long"
TESTS = ("glove_active", "glove_passive")
CAREFUL = "glove_active(delta=0.01)"
MOST_ALARMS, LONGEST = 0.3, 60
"""False alarms in 1,000 interactions; interactions until a drift is noticed."""


def few_alarms_when_calm(played: ClaimRun) -> Iterator[Check]:
    """Each slip and each of both tests, with their defaults, has a mean of its own.

    It is the mean over instances of false realignments in 1,000 of the agent's own interactions, as in the report.
    """
    for part in played.swept(CALM):
        for verifier in TESTS:
            yield _alarms(part, verifier)


def every_drift_noticed(played: ClaimRun) -> Iterator[Check]:
    """Each drift of each instance has to be noticed, also without exposure; each drift has its own median.

    The median is over all instances; of two in the middle it is the longer one.
    """
    yield from _noticed(played.part(SHORT), 1.0)


def most_drifts_noticed(played: ClaimRun) -> Iterator[Check]:
    """Each of the drifts has a share of its own, for each of both tests; a drift without exposure counts as missed.

    The median delay is over all instances, those that did not notice as infinitely late; of two in the middle it is
    the longer one.
    """
    yield from _noticed(played.part(LONG), 0.9)


def few_alarms_when_careful(played: ClaimRun) -> Iterator[Check]:
    """The mean over instances of false realignments in 1,000 of the agent's own interactions, over all phases."""
    yield _alarms(played.part(LONG), CAREFUL)


def _alarms(part: ScheduleRuns, verifier: str) -> Check:
    run = run_of(part, player("vanilla", verifier))
    values = run.per_instance(false_alarms)
    if any(map(math.isnan, values)):
        raise NotPlayedError(f"without an oracle for `{part.schedule}`, false alarms are unknown")
    found = estimate(values, one_run=run.is_one_run)
    return at_most(part, f"{title(run.player)}: false alarms in 1,000", found, MOST_ALARMS)


def _noticed(part: ScheduleRuns, least: float) -> Iterator[Check]:
    for verifier in TESTS:
        run = run_of(part, player("vanilla", verifier))
        for phase in drifts(part):
            if any(row["exposures"] is None for rows in run.phase(phase).rows for row in rows):
                raise NotPlayedError(f"without an oracle for `{part.schedule}`, detections are unknown")
            found = detection_delays(run, phase)
            noticed = sum(map(math.isfinite, found))
            share = proportion(noticed, len(found))
            text = f"{noticed} of {len(found)}: {_percent(share)}"
            needed = "all" if least == 1 else f"at least {100 * least:g} %"
            room = noticed - least * len(found)
            low, high = ((edge - least) * len(found) for edge in share[1:3])
            rooms = None if least == 1 else (low, high)  # one that is missed refutes "all"
            what = f"{title(run.player, phase)}: noticed"
            enough = _enough(share.mean, least)
            yield Check(part.schedule, what, text, needed, room >= -SLACK, room, rooms, len(found), enough=enough)
            yield _in_time(part, f"{title(run.player, phase)}: median delay", found)


def _enough(share: float, least: float) -> int | None:
    """The number of instances from which on Wilson's interval of a share does not hold the bound; `None` at the bound.

    Example:
        >>> _enough(1.0, 0.9), proportion(34, 34).low < 0.9 < proportion(35, 35).low
        (35, True)
    """
    if abs(share - least) <= SLACK:
        return None
    deviations = float(norm.isf((1 - LEVEL) / 2))
    return math.ceil(deviations**2 * least * (1 - least) / (share - least) ** 2)


def _percent(share: Sequence[float]) -> str:
    return "{:.0f} % [{:.0f}, {:.0f}]".format(*(100 * one for one in share[:3]))


def _in_time(part: ScheduleRuns, what: str, found: Sequence[float]) -> Check:
    value = interval_of(found, _upper_median)
    middle, low, high = ("none" if math.isinf(one) else f"{one:g}" for one in value[:3])
    room = LONGEST - value.mean
    text = f"{middle} [{low}, {high}]"
    rooms = (LONGEST - value.high, LONGEST - value.low)
    return Check(part.schedule, what, text, f"at most {LONGEST}", room >= -SLACK, room, rooms, value.n)


def _upper_median(drawn: Numbers) -> Numbers:
    """The middle of each resample, the longer one of two."""
    ordered: Numbers = np.sort(drawn, axis=1)[:, drawn.shape[1] // 2]
    return ordered

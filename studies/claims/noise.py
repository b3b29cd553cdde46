"""The claims about what a probe is worth: `transient-noise` (6 and 7) and `probe-price` (15)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from drift_agents.analysis.runs import Player, mean_of
from drift_agents.analysis.schedule_runs import ScheduleRuns
from drift_agents.analysis.tables.comparisons import is_glove

from drift_envs.metrics import break_even
from studies.claims.evidence import (
    Check,
    ClaimRun,
    Numbers,
    ahead,
    drifts,
    gains,
    interval_of,
    run_of,
    sign_test,
    surely_above,
    title,
    values_of,
)
from studies.claims.paper_tables import CAR, LAKES, SHOP, player

LYING = "frozen_lake/transient"
LEAST_NOISE = 0.05
BLIND = ("random_probe", "base+extra")
"""Those who spend GLOVE's probes elsewhere."""

GLOVE, OVERWRITE = player("vanilla", "glove"), player("vanilla", "overwrite")


def ahead_of_overwrite(played: ClaimRun) -> Iterator[Check]:
    """Each share of false responses from .05 on and each drift has a comparison of its own: all need `**`, above 0.

    GLOVE is the one with its default budget.
    """
    for part in played.swept(LAKES, LEAST_NOISE):
        yield from ahead(played, part, GLOVE, OVERWRITE)


def ahead_of_blind_probes(played: ClaimRun) -> Iterator[Check]:
    """The claim names no place: it has to hold after each drift of every schedule, at every share of false responses.

    No false responses at all are among them. GLOVE has its default budget, which is that of `random_probe` too. "Above
    0" is read as a difference that is claimed: interval and sign-flip test, with the report's comparisons and all of
    these in one family for Holm's correction.
    """
    found = []
    for schedule in (LAKES, CAR, SHOP):
        for part in played.swept(schedule):
            for name in BLIND:
                baseline = player("vanilla", name)
                one_run = run_of(part, GLOVE).is_one_run and run_of(part, baseline).is_one_run
                for phase in drifts(part):
                    what = f"{title(GLOVE)} - {title(baseline)}, {phase}"
                    found.append((part, what, *sign_test(gains(part, GLOVE, baseline, phase), one_run)))
    corrected = played.corrected([p_value for *_, p_value in found])[-len(found) :]
    for one, p_value in zip(found, corrected, strict=True):
        yield surely_above(*one, p_value, played.family(len(found)))


def probes_and_their_price(played: ClaimRun) -> Iterator[Check]:
    """Where no response is false every verifier that probed is held to it; on `transient` every one of GLOVE's family.

    The break-even is the report's: what the whole run earned more than `overwrite` did, over its probe steps. "Never
    worth it" is a break-even that is not above 0; equal episodes have 0.
    """
    for schedule in (LAKES, SHOP):
        part = played.part(schedule)
        for one in played.planned(schedule):
            if any(row["probe_steps"] for rows in run_of(part, one).rows for row in rows):
                yield _worth(part, one, worth_it=False)
    part = played.part(LYING)
    for one in filter(is_glove, played.planned(LYING)):
        yield _worth(part, one, worth_it=True)


def _worth(part: ScheduleRuns, one: Player, *, worth_it: bool) -> Check:
    both = run_of(part, one), run_of(part, OVERWRITE)
    earned = values_of(title(one), *both, measure=mean_of(part.measure.field))
    probed = values_of(title(one), *both, measure=mean_of("probe_steps"))
    means = [sum(values) / len(values) for values in (earned[0], probed[0], earned[1], probed[1])]
    price = break_even(*means)
    columns = np.array([np.subtract(ours, theirs) for ours, theirs in (earned, probed)]).T
    what = f"{title(one)}: break-even with overwrite, scores a probe step"
    needed = "above 0" if worth_it else "not above 0"
    if price is None:
        return Check(part.schedule, what, "no probe", needed, not worth_it, 0.0, n=len(columns))
    value = interval_of(columns, _price)
    shown = f"{price:.2g} [{value.low:.2g}, {value.high:.2g}]"
    holds, room = (price > 0) is worth_it, price if worth_it else -price
    rooms = (value.low, value.high) if worth_it else (-value.high, -value.low)
    return Check(part.schedule, what, shown, needed, holds, room, rooms, value.n, strict=worth_it)


def _price(drawn: Numbers) -> Numbers:
    """Resamples of (score, probe steps) to prices; not a number without probes."""
    score, steps = np.moveaxis(drawn.mean(axis=1), -1, 0)
    price: Numbers = np.divide(score, steps, out=np.full(len(score), math.nan), where=steps != 0)
    return price

"""The claims about what comes from the policy: `planner-rules` (11), `aggregation` (12) and `backbones` (17)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from drift_agents.analysis.runs import Player, estimate
from drift_agents.analysis.schedule_runs import ScheduleRuns

from studies.claims.evidence import (
    SLACK,
    Check,
    ClaimRun,
    NotPlayedError,
    Numbers,
    above,
    drifts,
    gains,
    interval_of,
    run_of,
    sign_test,
    surely_above,
    title,
    values_of,
)
from studies.claims.paper_tables import IMPLICIT_LAKES, IMPLICIT_SHOP, LAKES, SHOP, player

LYING = "frozen_lake/transient"
CONTENT = 'planner(lake={"aspiration":false})'
"""The planner without aspiration."""
WITHIN = 10.0
"""How near, in points, the plain agent may not come."""

READERS = (
    ("planner", "reader(misread=0.0, records=20)", "reader(misread=0.0, records=5)", "random"),
    ("planner", "reader(misread=0.05, records=200)", "reader(misread=0.2, records=200)", "random"),
)
"""Policies from the best reader to the worst: by how many records they read, and by how many they misread."""


def gain_is_not_the_rules(played: ClaimRun) -> Iterator[Check]:
    """The gain has to shrink after each drift of every schedule of the experiment, by a difference that is claimed.

    That is: by interval and sign-flip test, with the report's comparisons and all of these in one family for Holm's
    correction. On `explicit-family` the plain agent has to stay more than 10 points below GLOVE after each drift, with
    every set of rules in the file: below GLOVE with the same rules, and below GLOVE with all rules.
    """
    found = []
    for schedule in (LAKES, IMPLICIT_LAKES, LYING):
        part = played.part(schedule)
        for phase in drifts(part):
            with_it, without = (_gain(part, "vanilla", policy, phase) for policy in ("planner", CONTENT))
            both = sorted(with_it.keys() & without.keys())
            found.append((part, phase, *sign_test([with_it[seed] - without[seed] for seed in both])))
    corrected = played.corrected([p_value for *_, p_value in found])[-len(found) :]
    for (part, phase, value, p_value), after_holm in zip(found, corrected, strict=True):
        what = f"GLOVE's gain with aspiration - without, {phase}"
        yield surely_above(part, what, value, p_value, after_holm, played.family(len(found)))
    part = played.part(LAKES)
    for policy in dict.fromkeys(one.policy for one in played.planned(LAKES)):
        plain = player("vanilla", "none", policy)
        for rules in dict.fromkeys((policy, "planner")):
            glove = player("vanilla", "glove", rules)
            for phase in drifts(part):
                value = estimate(gains(part, glove, plain, phase))
                yield above(part, f"{title(glove)} - {title(plain)}, {phase}", value, WITHIN)


def _gain(part: ScheduleRuns, memory: str, policy: str, phase: str) -> dict[int, float]:
    """What GLOVE wins over the plain agent, by instance."""
    glove, plain = (player(memory, verifier, policy) for verifier in ("glove", "none"))
    seeds = [seed for seed in run_of(part, glove).seeds if seed in run_of(part, plain).seeds]
    values = gains(part, glove, plain, phase)
    if len(values) != len(seeds):
        raise NotPlayedError(f"{title(glove, phase)}: some instances of `{part.schedule}` did not come so far")
    return dict(zip(seeds, values, strict=True))


def depends_less(played: ClaimRun) -> Iterator[Check]:
    """Each schedule and drift has its own ranges: highest minus lowest mean over all settings of the file.

    Resampling widens ranges, small ones by more, so that the interval lies high: a refutation near the bound is weak.
    """
    for schedule in (LAKES, IMPLICIT_LAKES):
        part = played.part(schedule)
        settings = [one for one in played.planned(schedule) if one.verifier == "glove"]
        for phase in drifts(part):
            runs = [run_of(part, one._replace(verifier=name)) for name in ("glove", "none") for one in settings]
            columns = values_of(f"the settings in {phase}", *(r.phase(phase) for r in runs), measure=part.measure.of)
            values = np.array(columns).T
            glove, plain = (float(one[0]) for one in _ranges(values[None]))
            ratio = interval_of(values, _range_ratio)
            found = f"{glove:.1f} of {plain:.1f}: {ratio.mean:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
            what = f"range of GLOVE's {len(settings)} means over the plain agent's, {phase}"
            room = plain / 3 - glove
            rooms = ((1 / 3 - ratio.high) * plain, (1 / 3 - ratio.low) * plain)
            yield Check(schedule, what, found, "less than a third", room > SLACK, room, rooms, ratio.n, strict=True)


def _ranges(drawn: Numbers) -> tuple[Numbers, Numbers]:
    """The ranges of the means of GLOVE's settings and of the plain agent's: the columns' first and second half."""
    glove, plain = np.split(drawn.mean(axis=1), 2, axis=1)
    return np.ptp(glove, axis=1), np.ptp(plain, axis=1)


def _range_ratio(drawn: Numbers) -> Numbers:
    glove, plain = _ranges(drawn)
    ratio: Numbers = np.divide(glove, plain, out=np.full(len(glove), np.inf), where=plain > 0)
    return ratio


def grows_with_reading(played: ClaimRun) -> Iterator[Check]:
    """Each schedule, memory and drift has an order of its own, of mean gains, in two chains; equal gains break it.

    One chain reads fewer and fewer records, the other misreads more and more of them; the planner is the best of both
    and `random` the worst. The gain of `random` may not be above 0, by its mean.
    """
    for schedule in (SHOP, LAKES, IMPLICIT_SHOP, IMPLICIT_LAKES):
        part = played.part(schedule)
        for memory in ("vanilla", "memory_bank"):
            for phase in drifts(part):
                gained = {name: _gain(part, memory, name, phase) for chain in READERS for name in chain}
                pairs = dict.fromkeys(pair for chain in READERS for pair in pairwise(chain))
                for better, worse in pairs:
                    both = sorted(gained[better].keys() & gained[worse].keys())
                    value = estimate([gained[better][seed] - gained[worse][seed] for seed in both])
                    yield above(part, f"{memory}, {phase}: gain of {better} - gain of {worse}", value)
                yield _no_gain(part, player(memory, "glove", "random"), phase, list(gained["random"].values()))


def _no_gain(part: ScheduleRuns, one: Player, phase: str, values: list[float]) -> Check:
    check = above(part, f"gain of {title(one, phase)}", estimate(values))
    rooms = None if check.rooms is None else (-check.rooms[1], -check.rooms[0])
    return check._replace(needed="not above 0", holds=not check.holds, room=-check.room, rooms=rooms, strict=False)

"""Claims on families of drifts: what agents keep over everything after the first drift, at equal interactions.

* `ahead_of_plain_in_families` - GLOVE against the plain agent, family by family
* `probes_pay_where_responses_lie` - GLOVE against `overwrite` where responses are false
* `probes_cost_where_none_lies` - `overwrite` against GLOVE where none is
* `ahead_of_wiping` - GLOVE against forgetting at fixed intervals
* `beliefs_suffice` - BeliefMem without a verifier
* `little_lost_without_need` - GLOVE where most known ways stay good
* `ahead_on_the_hard_car` - GLOVE on the car with compound drifts and false responses
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from drift_agents.analysis.ranking import measure_instances
from drift_agents.analysis.runs import Player, estimate

from studies.claims.evidence import Check, ClaimRun, NotPlayedError, above, title

MOVING = ("jittered", "storms", "gradual", "choice", "returning", "compound")
"""Families of the lake whose drifts break the ways that were best."""

HONEST = ("jittered", "storms", "returning")
"""Those of them without slip, false responses or mixtures, where one outcome of an action is true at a time."""

FEWEST_LIES = 0.05
"""The share of false responses from which on probes should pay."""

PLAIN, OVERWRITE, GLOVE, WIPE = "none", "overwrite", "glove", "periodic_wipe"


def ahead_of_plain_in_families(played: ClaimRun) -> Iterator[Check]:
    """Each family and each of `vanilla` and `memory_bank` has a difference of its own; all have to be above 0."""
    for family in MOVING:
        for memory in ("vanilla", "memory_bank"):
            yield _difference(played, _lake(family), memory, GLOVE, PLAIN)


def probes_pay_where_responses_lie(played: ClaimRun) -> Iterator[Check]:
    """At each level the probes count as interactions, so that they have to win more than they cost."""
    for part in played.swept("frozen_lake/explicit-family", FEWEST_LIES):
        yield _difference(played, part.schedule, "vanilla", GLOVE, OVERWRITE)


def probes_cost_where_none_lies(played: ClaimRun) -> Iterator[Check]:
    """On each family `overwrite` has to be ahead; equal is not ahead."""
    for family in HONEST:
        yield _difference(played, _lake(family), "vanilla", OVERWRITE, GLOVE)


def ahead_of_wiping(played: ClaimRun) -> Iterator[Check]:
    """On each family at jittered or random times GLOVE has to be ahead of wiping memory every ten episodes."""
    for family in HONEST:
        for memory in ("vanilla", "memory_bank", "beliefmem"):
            yield _difference(played, _lake(family), memory, GLOVE, WIPE)


def beliefs_suffice(played: ClaimRun) -> Iterator[Check]:
    """On each family BeliefMem alone keeps more than it keeps with GLOVE minus five points of the optimum."""
    for family in MOVING:
        yield _difference(played, _lake(family), "beliefmem", PLAIN, GLOVE, -5.0)


def little_lost_without_need(played: ClaimRun) -> Iterator[Check]:
    """On both controls GLOVE keeps more than the plain agent minus two points of the optimum."""
    for family in ("partial", "off-path"):
        for memory in ("vanilla", "memory_bank", "beliefmem"):
            yield _difference(played, _lake(family), memory, GLOVE, PLAIN, -2.0)


def ahead_on_the_hard_car(played: ClaimRun) -> Iterator[Check]:
    """Both memories have to be ahead with GLOVE."""
    for memory in ("vanilla", "memory_bank"):
        yield _difference(played, "mountain_car/tangle", memory, GLOVE, PLAIN)


def _lake(family: str) -> str:
    return f"frozen_lake/{family}-family"


def _difference(
    played: ClaimRun, schedule: str, memory: str, verifier: str, baseline: str, bound: float = 0.0
) -> Check:
    """The difference of what two agents with one memory keep at equal interactions, in points of the optimum."""
    part = played.part(schedule)
    figures = _kept(played, schedule)
    if verifier not in figures or baseline not in figures or memory not in figures.index.unique("memory"):
        raise NotPlayedError(f"{memory} did not play `{schedule}` with {verifier} and {baseline}")
    both = figures.loc[memory][[verifier, baseline]].dropna()
    if both.empty:
        raise NotPlayedError(f"`{schedule}` was not played beyond a drift, or without the clairvoyant policy")
    ours, theirs = (Player(memory, name, "planner") for name in (verifier, baseline))
    found = estimate((100 * (both[verifier] - both[baseline])).tolist())
    return above(part, f"{title(ours)} - {title(theirs)}, kept at equal interactions", found, bound)


def _kept(played: ClaimRun, schedule: str) -> pd.DataFrame:
    """The share of the optimum at equal interactions: a line a memory and seed, a column a verifier."""
    figures = measure_instances([row for row in played.rows if row["schedule"] == schedule])
    if figures.empty:
        return figures
    equal = figures["at_equal"].reset_index()
    equal["verifier"] = equal["verifier"].str.partition("(")[0]
    return equal[equal["policy"] == "planner"].pivot_table(
        index=["memory", "seed"], columns="verifier", values="at_equal", dropna=False
    )

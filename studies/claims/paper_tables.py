"""The claims about the paper's tables 1 and 2: `glove-explicit` and `glove-implicit` (1 to 5 and 10)."""

from __future__ import annotations

from collections.abc import Iterator

from drift_agents.analysis.runs import Player, Runs, estimate
from drift_agents.analysis.tables.probing import probe_share

from studies.claims.evidence import (
    Check,
    ClaimRun,
    ahead,
    at_least,
    at_most,
    drifts,
    run_of,
    share_of,
    title,
)

SHOP, LAKES, CAR = "webshop/explicit", "frozen_lake/explicit-family", "mountain_car/reversed"
IMPLICIT_SHOP, IMPLICIT_LAKES = "webshop/implicit", "frozen_lake/implicit-family"

FORGETFUL = ("vanilla", "memory_bank", "voyager")
"""The memories that claim 1 names."""
MEMORIES = (*FORGETFUL, "generative_agents")
"""The study's five without `none`."""
LAST_ROUNDS = 5
STEADY = ("frozen_lake/", "webshop/")
"""Lakes and shops."""


def player(memory: str, verifier: str, policy: str = "planner") -> Player:
    """Who plays, decided on by one agent in the usual way."""
    return Player(memory, verifier, policy)


def ahead_of_plain(played: ClaimRun) -> Iterator[Check]:
    """Each memory, schedule and drift has a comparison of its own: all of them need `**` and a mean above 0."""
    for schedule in (LAKES, SHOP):
        for memory in FORGETFUL:
            yield from ahead(played, played.part(schedule), player(memory, "glove"), player(memory, "none"))


def near_oracles(played: ClaimRun) -> Iterator[Check]:
    """Each memory, schedule and drift has a ratio of its own for each oracle; none may be lower.

    The ratio is mean over mean, over the instances that both played, with the same memory.
    """
    for schedule in (LAKES, SHOP):
        part = played.part(schedule)
        for memory in MEMORIES:
            for phase in drifts(part):
                for oracle, least in (("oracle_reset", 0.95), ("oracle_realign", 0.9)):
                    yield share_of(part, phase, player(memory, "glove"), player(memory, oracle), least)


def near_reset_on_cars(played: ClaimRun) -> Iterator[Check]:
    """The claim names no memory: it has to hold for every one but `none`."""
    part = played.part(CAR)
    for memory in MEMORIES:
        for phase in drifts(part):
            yield share_of(part, phase, player(memory, "glove"), player(memory, "oracle_reset"), 0.9)


def back_after_reversal(played: ClaimRun) -> Iterator[Check]:
    """The claim names no memory: it has to hold for every one but `none`. On the shop all rounds after the drift count.

    On the lakes the mean score of the last five rounds counts, in percent.
    """
    part = played.part(IMPLICIT_LAKES)
    for memory in MEMORIES:
        run = run_of(part, player(memory, "glove"))
        for phase in drifts(part):
            last = run.phase(phase, last=LAST_ROUNDS)
            what = f"{title(run.player, phase)}, last {LAST_ROUNDS} rounds"
            yield at_least(part, what, estimate(last.per_instance(part.measure.of), one_run=run.is_one_run), 95)
    part = played.part(IMPLICIT_SHOP)
    for memory in MEMORIES:
        for phase in drifts(part):
            yield share_of(part, phase, player(memory, "glove"), player(memory, "oracle_reset"), 0.95)


def same_as_overwrite(played: ClaimRun) -> Iterator[Check]:
    """Equal row by row: score and steps of each instance and episode, for every memory, on every lake and shop.

    Fixed maps count too. An episode that only one of both played counts as a difference.
    """
    for part in [played.part(name) for name in played.file.schedules if name.startswith(STEADY)]:
        for memory in MEMORIES:
            ours, theirs = (run_of(part, player(memory, verifier)) for verifier in ("glove", "overwrite"))
            both = [_episodes(run) for run in (ours, theirs)]
            keys = sorted({*both[0], *both[1]})
            differ = sum(both[0].get(key) != both[1].get(key) for key in keys)
            found = f"{differ} of {len(keys):,} pairs of episodes differ"
            what, n = f"{title(ours.player)} and overwrite", len(ours.seeds)
            yield Check(part.schedule, what, found, "none", not differ, -float(differ), n=n)


def _episodes(run: Runs) -> dict[tuple[int, int], tuple[float, int]]:
    return {(row["seed"], row["episode"]): (row["score"], row["steps"]) for rows in run.whole.rows for row in rows}


def probes_are_few(played: ClaimRun) -> Iterator[Check]:
    """Each schedule and memory has a share of its own, fixed maps and the weakening engine included.

    The share is that of an instance, in percent of its own steps and its probes', and averaged over instances, as in
    the report. The whole run counts for the 5 %, the phase before the first drift for the 3 %.
    """
    for part in [played.part(name) for name in played.file.schedules]:
        for memory in MEMORIES:
            run = run_of(part, player(memory, "glove"))
            for what, here, most in (("whole run", run, 5.0), ("source", run.phase(part.phases[0]), 3.0)):
                shares = estimate(here.per_instance(probe_share), one_run=run.is_one_run)
                yield at_most(part, f"{title(run.player)}, {what}: probe steps, %", shares, most)

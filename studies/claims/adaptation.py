"""The claims about sizes, conflicts and clocks: `drift-size` (13), `adaptation` (14) and `clocks` (16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drift_agents.analysis.runs import Row, estimate
from drift_agents.analysis.schedule_runs import ScheduleRuns

from studies.claims.evidence import SLACK, Check, ClaimRun, ahead, at_least, at_most, drifts, gains, run_of, title
from studies.claims.paper_tables import LAKES, SHOP, player

SLEEPLESS = "frozen_lake/mid-episode"
LIVE = "glove(prober=replay_live)"
POINTS = 50.0


def far_below_at_every_size(played: ClaimRun) -> Iterator[Check]:
    """Each size and each drift has a difference of its own, of success rates in points."""
    for part in played.swept(LAKES):
        glove, plain = player("vanilla", "glove"), player("vanilla", "none")
        for phase in drifts(part):
            value = estimate(gains(part, glove, plain, phase))
            yield at_least(part, f"{title(glove)} - {title(plain)}, {phase}", value, POINTS)


def conflicts_end(played: ClaimRun) -> Iterator[Check]:
    """Each memory and drift has to hold. A round with conflicts is one in which an outcome contradicted memory.

    With GLOVE the number of such rounds in a phase is at most 1 on average over instances. "Then none": in no instance
    do conflicts come back, once a round without any has followed one with some. "Never stops": in every instance the
    last round of the phase still has conflicts for the plain agent.
    """
    part = played.part(SHOP)
    for memory in ("vanilla", "memory_bank"):
        for phase in drifts(part):
            glove = player(memory, "glove")
            rows = _played_rows(part, memory, "glove", phase)
            value = estimate([float(sum(_conflicts(one))) for one in rows])
            yield at_most(part, f"{title(glove, phase)}: rounds with conflicts", value, 1)
            back = sum(_comes_back(_conflicts(one)) for one in rows)
            yield _none_of(part, f"{title(glove, phase)}: conflicts came back", back, len(rows))
            plain = _played_rows(part, memory, "none", phase)
            still = sum(_conflicts(one)[-1] for one in plain)
            what = f"{title(player(memory, 'none'), phase)}: no conflict in the last round"
            yield _none_of(part, what, len(plain) - still, len(plain))


def _played_rows(part: ScheduleRuns, memory: str, verifier: str, phase: str) -> list[Sequence[Row]]:
    return [rows for rows in run_of(part, player(memory, verifier)).phase(phase).rows if rows]


def _conflicts(rows: Sequence[Row]) -> list[bool]:
    return [row["surprises"] > 0 for row in rows]


def _comes_back(conflicts: Sequence[bool]) -> bool:
    """Whether there is more than one spell of rounds with conflicts."""
    begun = sum(now and not before for before, now in zip([False, *conflicts], conflicts, strict=False))
    return begun > 1


def _none_of(part: ScheduleRuns, what: str, count: int, n: int) -> Check:
    return Check(part.schedule, what, f"{count} of {n} instances", "none", count <= SLACK, -float(count), n=n)


def ahead_within_episodes(played: ClaimRun) -> Iterator[Check]:
    """Each drift has a comparison of its own, which needs `**` and a mean above 0, with `replay_live` as prober."""
    yield from ahead(played, played.part(SLEEPLESS), player("vanilla", LIVE), player("vanilla", "none"))

"""Means taken apart: what a mean over instances and rounds hides.

* `spread` - mean, interquartile mean and failures of each phase
* `tabulate_by_prior_score` - after a drift, by what was reached just before it
* `around` - round by round around each drift
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from drift_agents.analysis.runs import FAILURE_SHARE, Measurement, Row, Runs, estimate, mean_of, sum_of
from drift_agents.analysis.schedule_runs import Measure, PlayerIndex
from drift_agents.analysis.table import MISSING, Table, format_estimate
from drift_envs.metrics import interquartile_mean

BEFORE, AFTER = (-2, -1), (1, 2, 3, 4, 5, 6, 8, 10, 15, 20)
"""Rounds around a drift: the last ones before it are negative."""


def tabulate_spread(players: PlayerIndex, measure: Measure, phases: Sequence[str]) -> Table:
    """Mean, interquartile mean and the share of instances that failed, phase by phase.

    Args:
        players: the players, row by row.
        measure: what is reported.
        phases: the phases.
    """
    table = Table("Mean / interquartile mean / % of instances that failed", ("method", *phases))
    for name, run, reference in players.rows():
        cells = []
        for phase in phases:
            here = run.phase(phase)
            values = [value for value in here.per_instance(measure.of) if not math.isnan(value)]
            if not values:
                cells.append(MISSING)
                continue
            failed = [_failed(rows) for rows in here.rows if rows]
            numbers = sum(values) / len(values), interquartile_mean(values), 100 * sum(failed) / len(failed)
            cells.append(" / ".join(f"{number:.0f}" for number in numbers))
        table.add(name, *cells, reference=reference)
    return table


def _failed(rows: Sequence[Row]) -> bool:
    score, regret = sum_of("score")(rows), sum_of("regret")(rows)
    best = float(len(rows)) if math.isnan(regret) else score + regret
    return score <= FAILURE_SHARE * best


def tabulate_by_prior_score(players: PlayerIndex, measure: Measure, phases: Sequence[str]) -> list[Table]:
    """After each drift, by the score of the last round before it: the goal that was held.

    Args:
        players: the players, row by row.
        measure: what is reported.
        phases: the phases.

    Returns:
        One table a drift; none where all instances had the same score.
    """
    tables = []
    for before, phase in pairwise(phases):
        parts = [(name, run, _last_scores(run.phase(before)), reference) for name, run, reference in players.rows()]
        held = sorted({score for _, _, scores, _ in parts for score in scores if not math.isnan(score)}, reverse=True)
        if len(held) < 2:
            continue
        table = Table(f"After {phase}, by the score of the round before it", ("method", *(f"{x:g}" for x in held)))
        for name, run, scores, reference in parts:
            values = run.phase(phase).per_instance(measure.of)
            strata = [[v for v, score in zip(values, scores, strict=True) if score == x] for x in held]
            table.add(
                name,
                *(
                    f"{format_estimate(estimate(part)).split(' (')[0]}, n = {len(part)}" if part else MISSING
                    for part in strata
                ),
                reference=reference,
            )
        tables.append(table)
    return tables


def _last_scores(run: Runs) -> list[float]:
    return [round(float(rows[-1]["score"]), 3) if rows else math.nan for rows in run.rows]


def tabulate_around_drifts(players: PlayerIndex, measure: Measure, phases: Sequence[str]) -> list[Table]:
    """Round by round around each drift: the measure, and how often outcomes contradicted memory (figure 3).

    Args:
        players: the players, row by row.
        measure: what is reported.
        phases: the phases.
    """
    tables = []
    for before, phase in pairwise(phases):
        for title, of, digits in ((measure.name, measure.of, 0), ("conflicts with memory", mean_of("surprises"), 1)):
            table = Table(
                f"Around {phase}, round by round: {title}", ("method", *(f"{number:+d}" for number in BEFORE + AFTER))
            )
            for name, run, reference in players.rows():
                cells = [_of_round(run.phase(before if number < 0 else phase), number, of) for number in BEFORE + AFTER]
                shown = [MISSING if math.isnan(value) else f"{value:.{digits}f}" for value in cells]
                table.add(name, *shown, reference=reference)
            tables.append(table.used())
    return tables


def _of_round(run: Runs, number: int, measure: Measurement) -> float:
    """The mean over instances of one round of a phase; negative numbers count from its end."""
    index = number if number < 0 else number - 1
    found = [measure(rows[index : index + 1 or None]) for rows in run.rows if -len(rows) <= index < len(rows)]
    return sum(found) / len(found) if found else math.nan

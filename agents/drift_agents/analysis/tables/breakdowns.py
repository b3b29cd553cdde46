"""Means taken apart: what a mean over instances and rounds hides.

* `spread` - mean, interquartile mean and failures of each phase
* `score_by_prior_goal` - after a drift, by what was reached just before it
* `around` - round by round around each drift
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from drift_agents.analysis.runs import Measurement, Row, Runs, estimate, mean_of, sum_of
from drift_agents.analysis.schedule_runs import Measure, PlayerIndex
from drift_agents.analysis.table import MISSING, Table, show
from drift_envs.metrics import interquartile_mean

FAILED = 0.5
"""An instance failed in a phase when it reached at most this share of the optimum."""

BEFORE, AFTER = (-2, -1), (1, 2, 3, 4, 5, 6, 8, 10, 15, 20)
"""Rounds around a drift: the last ones before it are negative."""


def spread(naming: PlayerIndex, measure: Measure, order: Sequence[str]) -> Table:
    """Mean, interquartile mean and the share of instances that failed, phase by phase.

    Args:
        naming: who stands in which row.
        measure: what is reported.
        order: the phases.
    """
    sheet = Table("Mean / interquartile mean / % of instances that failed", ("method", *order))
    for name, run, reference in naming.rows():
        cells = []
        for phase in order:
            here = run.phase(phase)
            values = [value for value in here.per_instance(measure.of) if not math.isnan(value)]
            if not values:
                cells.append(MISSING)
                continue
            failed = [_failed(rows) for rows in here.rows if rows]
            numbers = sum(values) / len(values), interquartile_mean(values), 100 * sum(failed) / len(failed)
            cells.append(" / ".join(f"{number:.0f}" for number in numbers))
        sheet.add(name, *cells, reference=reference)
    return sheet


def _failed(rows: Sequence[Row]) -> bool:
    score, regret = sum_of("score")(rows), sum_of("regret")(rows)
    best = float(len(rows)) if math.isnan(regret) else score + regret
    return score <= FAILED * best


def score_by_prior_goal(naming: PlayerIndex, measure: Measure, order: Sequence[str]) -> list[Table]:
    """After each drift, by the score of the last round before it: the goal that was held.

    Args:
        naming: who stands in which row.
        measure: what is reported.
        order: the phases.

    Returns:
        One table a drift; none where everybody held the same.
    """
    sheets = []
    for before, phase in pairwise(order):
        parts = [(name, run, _last_scores(run.phase(before)), reference) for name, run, reference in naming.rows()]
        held = sorted({score for _, _, scores, _ in parts for score in scores if not math.isnan(score)}, reverse=True)
        if len(held) < 2:
            continue
        sheet = Table(f"After {phase}, by the score of the round before it", ("method", *(f"{x:g}" for x in held)))
        for name, run, scores, reference in parts:
            values = run.phase(phase).per_instance(measure.of)
            strata = [[v for v, score in zip(values, scores, strict=True) if score == x] for x in held]
            sheet.add(
                name,
                *(f"{show(estimate(part)).split(' (')[0]}, n = {len(part)}" if part else MISSING for part in strata),
                reference=reference,
            )
        sheets.append(sheet)
    return sheets


def _last_scores(run: Runs) -> list[float]:
    return [round(float(rows[-1]["score"]), 3) if rows else math.nan for rows in run.rows]


def around(naming: PlayerIndex, measure: Measure, order: Sequence[str]) -> list[Table]:
    """Round by round around each drift: the measure, and how often outcomes contradicted memory (figure 3).

    Args:
        naming: who stands in which row.
        measure: what is reported.
        order: the phases.
    """
    sheets = []
    for before, phase in pairwise(order):
        for title, of, digits in ((measure.name, measure.of, 0), ("conflicts with memory", mean_of("surprises"), 1)):
            sheet = Table(
                f"Around {phase}, round by round: {title}", ("method", *(f"{number:+d}" for number in BEFORE + AFTER))
            )
            for name, run, reference in naming.rows():
                cells = [_of_round(run.phase(before if number < 0 else phase), number, of) for number in BEFORE + AFTER]
                shown = [MISSING if math.isnan(value) else f"{value:.{digits}f}" for value in cells]
                sheet.add(name, *shown, reference=reference)
            sheets.append(sheet.used())
    return sheets


def _of_round(run: Runs, number: int, measure: Measurement) -> float:
    """The mean over instances of one round of a phase; negative numbers count from its end."""
    index = number if number < 0 else number - 1
    found = [measure(rows[index : index + 1 or None]) for rows in run.rows if -len(rows) <= index < len(rows)]
    return sum(found) / len(found) if found else math.nan

"""The tables of one schedule.

* `Measure` - what is reported: the success rate of explicit drifts, the score of implicit ones
* `PlayerIndex` - who stands in which row, and what it is called
* `scores` - the main table, in the paper's layout
* `tabulate_phases` - early and late rounds, recovery, regret and truth of memory after each drift
* `costs` - interactions, realignments, model calls and supervision
"""

from __future__ import annotations

from collections.abc import Sequence

from drift_agents.analysis.runs import Runs, estimate, mean_of, recoveries, sum_of
from drift_agents.analysis.schedule_runs import Measure, PlayerIndex
from drift_agents.analysis.table import MISSING, Table, format_estimate
from drift_agents.analysis.tables.paper import GPT_4O, paper_figures

ACROSS = 3
"""Phases side by side in one table; more of them go on in the next."""

EDGE = 5
"""How many rounds are the first and the last ones of a phase."""


def tabulate_scores(schedule: str, players: PlayerIndex, measure: Measure, phases: Sequence[str]) -> list[Table]:
    """The main table: phase by phase, with the paper's figures for the same cells.

    Args:
        schedule: the schedule's name.
        players: the players, row by row.
        measure: what is reported.
        phases: the phases.
    """
    tables = []
    for begin in range(0, len(phases), ACROSS):
        shown = phases[begin : begin + ACROSS]
        heads = [("" if index + begin == 0 else "→ ") + phase for index, phase in enumerate(shown)]
        table = Table(f"{measure.name.capitalize()}, by phase", ("method", *heads, f"paper, {GPT_4O}"))
        for name, run, reference in players.rows():
            cells = [
                format_estimate(estimate(part.per_instance(measure.of), one_run=part.is_one_run))
                for part in (run.phase(phase) for phase in shown)
            ]
            figures = None if reference else paper_figures(schedule, run.player)
            paper = MISSING if figures is None or begin else " → ".join(f"{figure:g}" for figure in figures)
            table.add(name, *cells, paper, reference=reference)
        tables.append(table.used())
    return tables


def tabulate_phases(players: PlayerIndex, measure: Measure, phases: Sequence[str]) -> list[Table]:
    """After each drift: the first and the last rounds, recovery, regret and how true memory is.

    Args:
        players: the players, row by row.
        measure: what is reported.
        phases: the phases; the first one is the source.
    """
    tables = []
    for phase in phases[1:]:
        rounds = max(row["round"] for run in players.runs.values() for rows in run.phase(phase).rows for row in rows)
        edge = max(1, min(EDGE, rounds // 2))
        table = Table(
            f"After {phase}",
            (
                "method",
                _span(1, edge),
                _span(rounds - edge + 1, rounds),
                "recovered\nafter rounds",
                "dynamic\nregret",
                "memory true\nat the end, %",
            ),
        )
        for name, run, reference in players.rows():
            here = run.phase(phase)
            first, last = here.phase(phase, first=edge), here.phase(phase, last=edge)
            table.add(
                name,
                format_estimate(estimate(first.per_instance(measure.of), one_run=first.is_one_run)),
                format_estimate(estimate(last.per_instance(measure.of), one_run=last.is_one_run)),
                _recovered(here),
                format_estimate(estimate(here.per_instance(sum_of("regret")), one_run=here.is_one_run), 1),
                format_estimate(
                    estimate(
                        here.phase(phase, last=1).per_instance(mean_of("memory_truth_rate", 100)),
                        one_run=here.is_one_run,
                    )
                ),
                reference=reference,
            )
        tables.append(table.used())
    return tables


def _span(first: int, last: int) -> str:
    return f"round {first}" if first == last else f"rounds {first}-{last}"


def _recovered(runs: Runs) -> str:
    """The median over all instances and how many recovered, as in `3, 10 of 10`."""
    found = recoveries(runs)
    if found is None:
        return MISSING
    longest = max(len(rows) for rows in runs.rows)
    median = f"> {longest}" if found.median is None else f"{found.median:g}"
    return f"{median}, {round(found.share * found.n)} of {found.n}"

"""What probing finds, costs and is worth.

* `detections` - drifts noticed, how soon, and false alarms
* `probes` - steps, resets, falls and purchases, per drift and in calm phases
* `equal_interaction` - scores for the same number of interactions, probes included
* `prices` - scores net of probes, and the price of a probe at which they are worth it
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from drift_agents.analysis.runs import Row, Runs, estimate, mean_of, sum_of
from drift_agents.analysis.schedule_runs import Measure, PlayerIndex
from drift_agents.analysis.table import MISSING, Table, show, show_count
from drift_envs.metrics import break_even, collected_score, cost_by_kind

KINDS = ("probe_steps", "probe_resets", "probe_falls", "probe_purchases")
PRICES = (0.0, 0.001, 0.01, 0.1)
"""Prices of a probe step, as a share of the best score of an episode."""


def interactions(rows: Sequence[Row]) -> float:
    """The agent's own steps and those of all probes."""
    return sum_of("steps", "probe_steps")(rows)


def false_alarms(rows: Sequence[Row]) -> float:
    """Realignments that touched nothing changed, in 1,000 of the agent's own interactions."""
    return 1000 * sum_of("false_realignments")(rows) / sum_of("steps")(rows)


def probe_share(rows: Sequence[Row]) -> float:
    """The share of probe steps among all interactions, in percent."""
    return 100 * sum_of("probe_steps")(rows) / interactions(rows)


def delays(run: Runs, phase: str) -> list[float]:
    """For each instance the interactions until a drift was noticed; infinite where it was not.

    Args:
        run: all rows, since a drift within an episode is noticed in one that began before it.
        phase: the phase that the drift began.
    """
    found = [[row["detection_delay"] for row in rows if row["detected"] == phase] for rows in run.rows]
    return [float(delay[0]) if delay else math.inf for delay in found]


def show_delays(run: Runs, phase: str) -> str:
    """How many noticed the drift, and the median delay over all instances, as in `9 of 10, 12`."""
    if any(row["exposures"] is None for rows in run.phase(phase).rows for row in rows):
        return MISSING
    all_delays = sorted(delays(run, phase))
    middle = all_delays[(len(all_delays) - 1) // 2]
    noticed = sum(math.isfinite(delay) for delay in all_delays)
    return f"{noticed} of {len(all_delays)}{f', {middle:g}' if math.isfinite(middle) else ''}"


def detections(naming: PlayerIndex, order: Sequence[str]) -> Table:
    """Drifts noticed, how soon, and false alarms.

    Args:
        naming: who stands in which row.
        order: the phases; the first one is the source.
    """
    heads = [head for phase in order[1:] for head in (f"{phase}:\nnoticed, delay", "expo-\nsures")]
    sheet = Table(
        "Drifts noticed, median delay in interactions", ("method", *heads, "false alarms\nin 1,000", "in calm\nphases")
    )
    for _, run in naming.agents():
        if not any(row["realignments"] for rows in run.rows for row in rows):
            continue
        cells = []
        for phase in order[1:]:
            here = run.phase(phase)
            cells += [show_delays(run, phase), show_count(estimate(here.per_instance(sum_of("exposures"))))]
        calm = run.phase(order[0])
        cells += [show_count(estimate(part.per_instance(false_alarms))) for part in (run, calm)]
        sheet.add(naming.full_name(run.player), *cells)
    return sheet.used()


def probes(naming: PlayerIndex) -> Table:
    """Steps, resets, falls and purchases of probes, per drift and in a round of calm phases.

    Args:
        naming: who stands in which row.
    """
    words = ("steps", "resets", "falls", "buys")
    sheet = Table(
        "Probes",
        (
            "method",
            "% of\nsteps",
            "% when\ncalm",
            *(f"{word} a\ndrift" for word in words),
            *(f"{word} a\ncalm round" for word in words),
        ),
    )
    for _, run in naming.agents():
        if not any(row["probe_steps"] for rows in run.rows for row in rows):
            continue
        costs = [cost_by_kind(rows, KINDS) for rows in run.rows]
        cells = []
        for field in ("per_drift", "per_stable_episode"):
            for kind in KINDS:
                values = [getattr(cost[kind], field) for cost in costs]
                cells.append(show_count(estimate([math.nan if value is None else value for value in values])))
        calm = run.phase("source")
        shares = [show(estimate(part.per_instance(probe_share)), 1).split(" ")[0] for part in (run, calm)]
        sheet.add(naming.full_name(run.player), *shares, *cells)
    return sheet.used()


def equal_interaction(naming: PlayerIndex, measure: Measure, order: Sequence[str]) -> Table:
    """Scores after each drift for the same number of interactions, probes included.

    Args:
        naming: who stands in which row.
        measure: what is collected.
        order: the phases; the first one is the source.
    """
    agents = list(naming.agents())
    heads: list[str] = []
    columns: list[list[str]] = []
    for phase in order[1:]:
        here = [run.phase(phase) for _, run in agents]
        spent = [dict(zip(run.seeds, run.per_instance(interactions), strict=True)) for run in here]
        # An instance whose time ran out before this phase, for somebody, cannot be compared.
        shared = [seed for seed in spent[0] if all(one.get(seed, math.nan) > 0 for one in spent)] if spent else []
        budgets = {seed: min(one[seed] for one in spent) for seed in shared}
        if not budgets:
            continue
        heads += [f"{phase}: in\n{_mean(list(budgets.values())):,.0f} steps", "in\n1,000"]
        columns.append([show(estimate(_collected(run, measure, budgets)), 1) for run in here])
        columns.append([show_count(estimate(run.per_instance(lambda rows: _rate(rows, measure)))) for run in here])
    if any(rows for _, run in agents for rows in run.construction):
        heads.append("test in 1,000,\nconstruction\nincluded")
        columns.append([show_count(estimate(_rates(run, measure))) for _, run in agents])
    sheet = Table(f"{_collects(measure)} at equal interaction", ("method", *heads))
    for index, (name, _) in enumerate(agents):
        sheet.add(name, *(column[index] for column in columns))
    return sheet


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _collects(measure: Measure) -> str:
    return "Successes" if measure.field == "success" else "Score collected"


def _rate(rows: Sequence[Row], measure: Measure) -> float:
    return 1000 * sum_of(measure.field)(rows) / interactions(rows)


def _rates(run: Runs, measure: Measure) -> list[float]:
    """What the test collected in 1,000 of all interactions, those of the construction included."""
    spent = run.whole.per_instance(interactions)
    return [1000 * sum_of(measure.field)(rows) / steps for rows, steps in zip(run.rows, spent, strict=True)]


def _collected(run: Runs, measure: Measure, budgets: dict[int, float]) -> list[float]:
    return [
        collected_score(
            [float(row[measure.field]) for row in rows], [interactions([row]) for row in rows], int(budgets[seed])
        )
        for seed, rows in zip(run.seeds, run.rows, strict=True)
        if seed in budgets
    ]


def prices(naming: PlayerIndex, measure: Measure) -> Table:
    """Scores of a round net of probes, and the price of a probe step at which verifying is worth it.

    Args:
        naming: who stands in which row.
        measure: what is earned.
    """
    sheet = Table(
        f"Whole run, {measure.name} net of probes, by price of a probe step",
        ("method", *(f"{price:g}" for price in PRICES), "break-even\nwith plain", "with\noverwrite"),
    )
    for name, run in naming.agents():
        earned, probed = (_mean(run.per_instance(each)) for each in (mean_of(measure.field), mean_of("probe_steps")))
        cells = [f"{100 * (earned - price * probed):.0f}" for price in PRICES]
        for verifier in ("none", "overwrite"):
            rival = naming.runs.get(run.player._replace(verifier=verifier))
            cells.append(MISSING if rival is None or not probed else _even(earned, probed, rival, measure))
        sheet.add(name, *cells)
    return sheet


def _even(earned: float, probed: float, rival: Runs, measure: Measure) -> str:
    """The price below which the probes are worth it against a rival, `never` if there is none."""
    theirs = [_mean(rival.per_instance(each)) for each in (mean_of(measure.field), mean_of("probe_steps"))]
    price = break_even(earned, probed, *theirs)
    return MISSING if price is None else "never" if price <= 0 else f"{price:.2g}"

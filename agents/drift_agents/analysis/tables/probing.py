"""What probing finds, costs and is worth.

* `tabulate_detections` - drifts noticed, how soon, and false alarms
* `probes` - steps, resets, falls and purchases, per drift and in calm phases
* `tabulate_verifiers` - what each verifier gains, loses and spends
* `tabulate_equal_interaction` - scores for the same number of interactions, probes included
* `prices` - scores net of probes, and the price of a probe at which they are worth it
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from drift_agents.analysis.runs import Row, Runs, difference, estimate, mean_of, sum_of
from drift_agents.analysis.schedule_runs import Measure, PlayerIndex
from drift_agents.analysis.table import MISSING, Table, format_count, format_difference, format_estimate
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


def detection_delays(run: Runs, phase: str) -> list[float]:
    """For each instance the interactions until a drift was noticed; infinite where it was not.

    Args:
        run: all rows, since a drift within an episode is noticed in one that began before it.
        phase: the phase that the drift began.
    """
    found = [[row["detection_delay"] for row in rows if row["detected"] == phase] for rows in run.rows]
    return [float(delay[0]) if delay else math.inf for delay in found]


def format_delays(run: Runs, phase: str) -> str:
    """How many noticed the drift, and the median delay over all instances, as in `9 of 10, 12`."""
    if any(row["exposures"] is None for rows in run.phase(phase).rows for row in rows):
        return MISSING
    all_delays = sorted(detection_delays(run, phase))
    middle = all_delays[(len(all_delays) - 1) // 2]
    noticed = sum(math.isfinite(delay) for delay in all_delays)
    return f"{noticed} of {len(all_delays)}{f', {middle:g}' if math.isfinite(middle) else ''}"


def tabulate_detections(players: PlayerIndex, phases: Sequence[str]) -> Table:
    """Drifts noticed, how soon, and false alarms.

    Args:
        players: the players, row by row.
        phases: the phases; the first one is the source.
    """
    heads = [head for phase in phases[1:] for head in (f"{phase}:\nnoticed, delay", "exposures")]
    table = Table(
        "Drifts noticed, median delay in interactions", ("method", *heads, "false alarms\nin 1,000", "in calm\nphases")
    )
    for _, run in players.agents():
        if not any(row["realignments"] for rows in run.rows for row in rows):
            continue
        cells = []
        for phase in phases[1:]:
            here = run.phase(phase)
            cells += [format_delays(run, phase), format_count(estimate(here.per_instance(sum_of("exposures"))))]
        calm = run.phase(phases[0])
        cells += [format_count(estimate(part.per_instance(false_alarms))) for part in (run, calm)]
        table.add(players.full_name(run.player), *cells)
    return table.used()


def tabulate_probes(players: PlayerIndex) -> Table:
    """Steps, resets, falls and purchases of probes, per drift and in a round of calm phases.

    Args:
        players: the players, row by row.
    """
    words = ("steps", "resets", "falls", "buys")
    table = Table(
        "Probes",
        (
            "method",
            "% of\nsteps",
            "% when\ncalm",
            *(f"{word} a\ndrift" for word in words),
            *(f"{word} a\ncalm round" for word in words),
        ),
    )
    for _, run in players.agents():
        if not any(row["probe_steps"] for rows in run.rows for row in rows):
            continue
        costs = [cost_by_kind(rows, KINDS) for rows in run.rows]
        cells = []
        for field in ("per_drift", "per_stable_episode"):
            for kind in KINDS:
                values = [getattr(cost[kind], field) for cost in costs]
                cells.append(format_count(estimate([math.nan if value is None else value for value in values])))
        calm = run.phase("source")
        shares = [format_estimate(estimate(part.per_instance(probe_share)), 1).split(" ")[0] for part in (run, calm)]
        table.add(players.full_name(run.player), *shares, *cells)
    return table.used()


def tabulate_verifiers(players: PlayerIndex, measure: Measure) -> Table:
    """What each verifier gains or loses against none over the whole run, and what its probes spend.

    Args:
        players: the players, row by row.
        measure: what is compared.

    Returns:
        The table; without rows where nothing was probed or no agent is without a verifier.
    """
    table = Table(
        f"Verifiers over the whole run: {measure.name} against none, and probes of an instance",
        ("method", measure.name, "against\nnone", "probe\nsteps", "resets", "falls", "buys", "most steps\nan episode"),
    )
    agents = list(players.agents())
    if not any(row["probe_steps"] for _, run in agents for rows in run.rows for row in rows):
        return table
    for _, run in agents:
        baseline = players.runs.get(run.player._replace(verifier="none"))
        if baseline is None or run.player.verifier == "none":
            continue
        spent = [format_count(estimate(run.per_instance(sum_of(kind)))) for kind in KINDS]
        most = max(row["probe_steps"] for rows in run.rows for row in rows)
        scores = estimate(run.per_instance(measure.of))
        lost = difference(run, baseline, measure.of)
        table.add(players.full_name(run.player), format_estimate(scores), format_difference(lost), *spent, str(most))
    return table.used()


def tabulate_equal_interaction(players: PlayerIndex, measure: Measure, phases: Sequence[str]) -> Table:
    """Scores after each drift for the same number of interactions, probes included.

    Args:
        players: the players, row by row.
        measure: what is collected.
        phases: the phases; the first one is the source.
    """
    agents = list(players.agents())
    heads: list[str] = []
    columns: list[list[str]] = []
    for phase in phases[1:]:
        here = [run.phase(phase) for _, run in agents]
        spent = [dict(zip(run.seeds, run.per_instance(interactions), strict=True)) for run in here]
        # An instance in which an agent did not reach this phase cannot be compared.
        shared = [seed for seed in spent[0] if all(one.get(seed, math.nan) > 0 for one in spent)] if spent else []
        budgets = {seed: min(one[seed] for one in spent) for seed in shared}
        if not budgets:
            continue
        heads += [f"{phase}: in\n{_mean(list(budgets.values())):,.0f} steps", "in\n1,000"]
        columns.append([format_estimate(estimate(_collected(run, measure, budgets)), 1) for run in here])
        columns.append([format_count(estimate(run.per_instance(lambda rows: _rate(rows, measure)))) for run in here])
    if any(rows for _, run in agents for rows in run.construction):
        heads.append("test in 1,000,\nconstruction\nincluded")
        columns.append([format_count(estimate(_rates(run, measure))) for _, run in agents])
    table = Table(f"{_collects(measure)} at equal interaction", ("method", *heads))
    for index, (name, _) in enumerate(agents):
        table.add(name, *(column[index] for column in columns))
    return table


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


def tabulate_prices(players: PlayerIndex, measure: Measure) -> Table:
    """Scores of a round net of probes, and the price of a probe step at which verifying is worth it.

    Args:
        players: the players, row by row.
        measure: what is earned.
    """
    table = Table(
        f"Whole run, {measure.name} net of probes, by price of a probe step",
        ("method", *(f"{price:g}" for price in PRICES), "break-even\nwith plain", "with\noverwrite"),
    )
    for name, run in players.agents():
        earned, probed = (_mean(run.per_instance(each)) for each in (mean_of(measure.field), mean_of("probe_steps")))
        cells = [f"{100 * (earned - price * probed):.0f}" for price in PRICES]
        for verifier in ("none", "overwrite"):
            baseline = players.runs.get(run.player._replace(verifier=verifier))
            cells.append(MISSING if baseline is None or not probed else _even(earned, probed, baseline, measure))
        table.add(name, *cells)
    return table


def _even(earned: float, probed: float, baseline: Runs, measure: Measure) -> str:
    """The price below which the probes are worth it against a baseline, `never` if there is none."""
    theirs = [_mean(baseline.per_instance(each)) for each in (mean_of(measure.field), mean_of("probe_steps"))]
    price = break_even(earned, probed, *theirs)
    return MISSING if price is None else "never" if price <= 0 else f"{price:.2g}"

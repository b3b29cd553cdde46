"""Cost tables: interactions, language models, and tokens of decisions.

* `tabulate_costs` - interactions, realignments, model calls and supervision
* `tabulate_llm_costs` - calls, tokens, latency and failures of language models
* `tabulate_loops` - how often agents moved in circles
* `tabulate_decision_costs` - tokens a step against the score, with the Pareto front (AdaMEM, figure 6, tables 5 and 6)
* `DecisionCost`, `decision_costs`, `pareto_front` - the numbers behind it
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from drift_agents.agent import NOTABLE_LOOPS
from drift_agents.analysis.runs import Row, Runs, estimate, sum_of
from drift_agents.analysis.schedule_runs import Measure, PlayerIndex
from drift_agents.analysis.table import MISSING, Table, format_count, format_estimate
from drift_envs.metrics import Estimate


def tabulate_costs(players: PlayerIndex) -> Table:
    """What each player paid over the whole run, and with which supervision.

    Args:
        players: the players, row by row.
    """
    table = Table(
        "Costs of the whole run, mean of an instance",
        (
            "method",
            "steps before\nthe test",
            "steps",
            "probe\nsteps",
            "total\nsteps",
            "realignments",
            "false\nones",
            "model\ncalls",
            "tokens",
            "supervision",
        ),
    )
    constructs = any(rows for run in players.runs.values() for rows in run.construction)
    for name, test, reference in players.rows():
        run = test.whole
        before = [sum_of("steps", "probe_steps")(rows) for rows in test.construction]

        def count(*fields: str, run: Runs = run) -> str:
            return format_count(estimate(run.per_instance(sum_of(*fields))))

        has_model = any(row["model_calls"] for rows in run.rows for row in rows)
        table.add(
            name,
            format_count(estimate(before)) if constructs else MISSING,
            count("steps"),
            count("probe_steps"),
            count("steps", "probe_steps"),
            count("realignments"),
            count("false_realignments"),
            count("model_calls") if has_model else MISSING,
            count("tokens_in", "tokens_out") if has_model else MISSING,
            players.supervision(run.player),
            reference=reference,
        )
    return table.used()


def tabulate_llm_costs(players: PlayerIndex) -> Table:
    """What each player's language models cost over the whole run, the mean of an instance.

    Args:
        players: the players, row by row.

    Returns:
        The table; without rows for agents that use no language model.
    """
    table = Table(
        "Language models over the whole run, mean of an instance",
        (
            "method",
            "calls",
            "tokens\nin",
            "tokens\nout",
            "cost",
            "seconds\na call",
            "re-asks",
            "invalid\nactions",
            "by\nrules",
            "records\nleft out",
        ),
    )
    for name, test, reference in players.rows():
        run = test.whole
        if not any(row["model_calls"] for rows in run.rows for row in rows):
            continue

        def count(field: str, run: Runs = run) -> str:
            return format_count(estimate(run.per_instance(sum_of(field))))

        calls, milliseconds, cost = (
            sum(run.per_instance(sum_of(field))) for field in ("model_calls", "milliseconds", "cost")
        )
        table.add(
            name,
            count("model_calls"),
            count("tokens_in"),
            count("tokens_out"),
            f"{cost / len(run.rows):.4g}",
            f"{milliseconds / 1000 / calls:.2g}",
            count("reasks"),
            count("invalid_actions"),
            count("fallbacks"),
            count("dropped_records"),
            reference=reference,
        )
    return table


def tabulate_loops(players: PlayerIndex) -> Table:
    """How often agents moved in circles for longer than five steps (`drift_agents.agent.count_loops`).

    Args:
        players: the players, row by row.

    Returns:
        The table, with the agents that spent at least `NOTABLE_LOOPS` of their steps in loops.
    """
    table = Table(
        f"Warning: moved in circles, at least {NOTABLE_LOOPS:.0%} of the steps in loops longer than five steps",
        ("method", "loops", "steps\nin loops", "share of\nsteps"),
    )
    for name, test, reference in players.rows():
        run = test.whole
        looped, steps = (sum(run.per_instance(sum_of(field))) for field in ("loop_steps", "steps"))
        if not steps or looped / steps < NOTABLE_LOOPS:
            continue
        table.add(
            name,
            format_count(estimate(run.per_instance(sum_of("loops")))),
            format_count(estimate(run.per_instance(sum_of("loop_steps")))),
            f"{looped / steps:.0%}",
            reference=reference,
        )
    return table


class DecisionCost(NamedTuple):
    """What a player's decisions cost, and what they brought.

    Args:
        name: the player, as in other tables without a row above.
        tokens: a step, in the whole test.
        reached: the report's measure in phases that a drift began; in all where none did.
        run: the player's rows.
    """

    name: str
    tokens: float
    reached: Estimate
    run: Runs


def tokens_of(rows: Sequence[Row]) -> float:
    """The tokens of a step: as counted by servers, or the estimate where there was no language model."""
    counted: float = sum(row["tokens_in"] + row["tokens_out"] for row in rows)
    tokens: float = counted or sum(row["tokens_estimated"] for row in rows)
    steps: int = sum(row["steps"] for row in rows)
    return tokens / max(1, steps)


def decision_costs(players: PlayerIndex, measure: Measure, phases: Sequence[str]) -> list[DecisionCost]:
    """What each player's decisions cost, and what they brought; nothing where no agent made a strategy.

    Args:
        players: the players, row by row.
        measure: what is reported.
        phases: the phases.
    """
    found = []
    for player, run in players.runs.items():
        if players.is_reference(player):
            continue
        after = run.without(phases[0]) if len(phases) > 1 else run
        reached = estimate(after.per_instance(measure.of), one_run=run.is_one_run)
        tokens = [value for value in run.per_instance(tokens_of) if not math.isnan(value)]
        found.append(DecisionCost(players.full_name(player), sum(tokens) / max(1, len(tokens)), reached, run))
    strategic = any(row["refreshes"] for cost in found for rows in cost.run.rows for row in rows)
    return found if strategic else []


def pareto_front(points: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """The Pareto front: no other point costs at most as much, gains at least as much, and is better in one of both.

    Args:
        points: pairs of cost and gain.

    Returns:
        The places of those that stand on the front, the cheapest first.

    Example:
        >>> pareto_front([(100, 5.0), (50, 5.0), (200, 9.0), (210, 8.0)])
        (1, 2)
    """
    best: list[int] = []
    gain = -math.inf
    for place in sorted(range(len(points)), key=lambda place: (points[place][0], -points[place][1], place)):
        if points[place][1] > gain:
            gain = points[place][1]
            best.append(place)
    return tuple(best)


def tabulate_decision_costs(players: PlayerIndex, measure: Measure, phases: Sequence[str]) -> Table:
    """Tokens, strategies made, and who stands on the Pareto front of tokens against what is reached.

    Args:
        players: the players, row by row.
        measure: what is reported.
        phases: the phases.

    Returns:
        The table; without rows where no agent made a strategy.
    """
    table = Table(
        "Cost of decisions, with the Pareto front of tokens a step against what is reached after drifts",
        (
            "method",
            f"{measure.name}\nafter drifts",
            "tokens\na step",
            "tokens\na task",
            "strategies\na task",
            "% of\nsteps",
            "front",
        ),
    )
    costs = decision_costs(players, measure, phases)
    best = pareto_front([(cost.tokens, cost.reached.mean) for cost in costs])
    for place, cost in enumerate(costs):
        rows = [row for instance in cost.run.rows for row in instance]
        steps, made = sum(row["steps"] for row in rows), sum(row["refreshes"] for row in rows)
        table.add(
            cost.name,
            format_estimate(cost.reached),
            f"{cost.tokens:,.0f}",
            f"{cost.tokens * steps / max(1, len(rows)):,.0f}",
            f"{made / max(1, len(rows)):.1f}",
            f"{100 * made / max(1, steps):.0f}",
            "yes" if place in best else "",
        )
    return table

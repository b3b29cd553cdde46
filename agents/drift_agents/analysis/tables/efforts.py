"""What decisions cost in tokens, against what they brought (AdaMEM, figure 6, tables 5 and 6).

* `efforts` - a table of the report: tokens, strategies made, and who stands on the Pareto front
* `DecisionCost`, `costs_of` - what each player's decisions cost, and what they brought
* `front` - who is beaten by nobody
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from drift_agents.analysis.runs import Row, Runs, estimate
from drift_agents.analysis.table import Table, show
from drift_agents.analysis.tables.scores import Measure, PlayerIndex
from drift_envs.metrics import Estimate


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
    """The tokens of a step: those that servers counted, or the estimate where no language model was asked."""
    counted = sum(row["tokens_in"] + row["tokens_out"] for row in rows)
    tokens = counted or sum(row["tokens_estimated"] for row in rows)
    return tokens / max(1, sum(row["steps"] for row in rows))


def costs_of(naming: PlayerIndex, measure: Measure, order: Sequence[str]) -> list[DecisionCost]:
    """What each player's decisions cost, and what they brought; nothing where nobody made a strategy.

    Args:
        naming: who stands in which row.
        measure: what is reported.
        order: the phases.
    """
    found = []
    for player, run in naming.runs.items():
        if naming.is_reference(player):
            continue
        after = run.without(order[0]) if len(order) > 1 else run
        reached = estimate(after.per_instance(measure.of), one_run=run.is_one_run)
        tokens = [value for value in run.per_instance(tokens_of) if not math.isnan(value)]
        found.append(DecisionCost(naming.full_name(player), sum(tokens) / max(1, len(tokens)), reached, run))
    strategic = any(row["refreshes"] for cost in found for rows in cost.run.rows for row in rows)
    return found if strategic else []


def front(points: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """Who is beaten by nobody: no other costs at most as much and brings at least as much, and is better in one.

    Args:
        points: pairs of cost and gain.

    Returns:
        The places of those that stand on the front, the cheapest first.

    Example:
        >>> front([(100, 5.0), (50, 5.0), (200, 9.0), (210, 8.0)])
        (1, 2)
    """
    best: list[int] = []
    gain = -math.inf
    for place in sorted(range(len(points)), key=lambda place: (points[place][0], -points[place][1], place)):
        if points[place][1] > gain:
            gain = points[place][1]
            best.append(place)
    return tuple(best)


def efforts(naming: PlayerIndex, measure: Measure, order: Sequence[str]) -> Table:
    """Tokens, strategies made, and who stands on the Pareto front of tokens against what is reached.

    Args:
        naming: who stands in which row.
        measure: what is reported.
        order: the phases.

    Returns:
        The table; without rows where nobody made a strategy.
    """
    sheet = Table(
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
    costs = costs_of(naming, measure, order)
    best = front([(cost.tokens, cost.reached.mean) for cost in costs])
    for place, cost in enumerate(costs):
        rows = [row for instance in cost.run.rows for row in instance]
        steps, made = sum(row["steps"] for row in rows), sum(row["refreshes"] for row in rows)
        sheet.add(
            cost.name,
            show(cost.reached),
            f"{cost.tokens:,.0f}",
            f"{cost.tokens * steps / max(1, len(rows)):,.0f}",
            f"{made / max(1, len(rows)):.1f}",
            f"{100 * made / max(1, steps):.0f}",
            "yes" if place in best else "",
        )
    return sheet

"""One mark or bar for each method.

* `draw_paper_bars` - phase by phase, ours beside the figures of the GLOVE paper
* `draw_front` - score after drifts against tokens a step, with the Pareto front (AdaMEM, figure 6)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drift_agents.analysis.plots.style import PlotFile, style_of, write_panels
from drift_agents.analysis.runs import estimate
from drift_agents.analysis.schedule_runs import Measure, PlayerIndex
from drift_agents.analysis.tables.costs import decision_costs, pareto_front
from drift_agents.analysis.tables.paper import GPT_4O, paper_figures

PAPER = "#b8c0c8"


def draw_paper_bars(
    schedule: str, players: PlayerIndex, measure: Measure, phases: Sequence[str], folder: Path, prefix: str
) -> list[PlotFile]:
    """Phase by phase, the paper's figures beside ours; nothing where the paper has no such cell.

    Args:
        schedule: its name.
        players: the players with their names.
        measure: what is reported.
        phases: the phases.
        folder: where to.
        prefix: how the files' names begin.
    """
    found = []
    for player, run in players.runs.items():
        paper = paper_figures(schedule, player)
        if paper is not None and not players.is_reference(player):
            ours = [estimate(run.phase(phase).per_instance(measure.of), one_run=run.is_one_run) for phase in phases]
            found.append((players.full_name(player), ours, paper))
    if not found:
        return []
    title = f"{schedule}: ours beside the paper's ({GPT_4O})"

    def draw(axes: Sequence[Any]) -> None:
        for number, (axis, phase) in enumerate(zip(axes, phases, strict=True)):
            for place, (_, ours, paper) in enumerate(found):
                one = ours[number]
                errors = [[max(0.0, one.mean - one.low)], [max(0.0, one.high - one.mean)]]
                axis.bar(
                    place - 0.2, one.mean, 0.4, yerr=errors, color="#0072b2", edgecolor="black",
                    label="ours, with its 95 % interval" if place == 0 else None, error_kw={"linewidth": 1},
                )  # fmt: skip
                if number < len(paper):
                    axis.bar(
                        place + 0.2, paper[number], 0.4, color=PAPER, edgecolor="black", hatch="///",
                        label=f"paper, {GPT_4O}, one run" if place == 0 else None,
                    )  # fmt: skip
            axis.set_xticks(range(len(found)), [name for name, *_ in found], rotation=40, ha="right", fontsize=8)
            axis.set_ylim(0, 105)
            axis.set_title(phase)
            axis.set_ylabel(measure.name)

    return [write_panels(title, draw, len(phases), folder, f"{prefix}-paper", height=3.4)]


def draw_front(
    schedule: str, players: PlayerIndex, measure: Measure, phases: Sequence[str], folder: Path, prefix: str
) -> list[PlotFile]:
    """What is reached after drifts over the tokens of a step; nothing where no agent made a strategy.

    Args:
        schedule: its name.
        players: the players with their names.
        measure: what is reported.
        phases: the phases.
        folder: where to.
        prefix: how the files' names begin.
    """
    costs = [cost for cost in decision_costs(players, measure, phases) if not math.isnan(cost.reached.mean)]
    if not costs:
        return []
    title = f"{schedule}: {measure.name} after drifts against tokens"

    def draw(axes: Sequence[Any]) -> None:
        (axis,) = axes
        for number, cost in enumerate(costs):
            look = style_of(number)
            spread = [
                [max(0.0, cost.reached.mean - cost.reached.low)],
                [max(0.0, cost.reached.high - cost.reached.mean)],
            ]
            axis.errorbar(
                [cost.tokens], [cost.reached.mean], yerr=spread, color=look.colour, marker=look.mark,
                markersize=5 + 2 * (number // 14), linestyle="none", linewidth=0.8, label=cost.name,
            )  # fmt: skip
        best = pareto_front([(cost.tokens, cost.reached.mean) for cost in costs])
        axis.plot(
            [costs[place].tokens for place in best],
            [costs[place].reached.mean for place in best],
            color="#888888",
            linewidth=1,
            zorder=0,
            label="Pareto front",
        )
        axis.set_xscale("log")
        axis.set_ylim(-3, 103)
        axis.set_xlabel("tokens a step")
        axis.set_ylabel(f"{measure.name} after drifts, %")

    return [write_panels(title, draw, 1, folder, f"{prefix}-tokens", height=4.0, legend_columns=4)]

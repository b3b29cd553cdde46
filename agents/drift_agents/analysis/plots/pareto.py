"""What decisions bring against what they cost in tokens (AdaMEM, figure 6).

* `draw_front` - a mark for each player, and the Pareto front
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from drift_agents.analysis.plots.style import PlotFile, look_of, new_figure, save
from drift_agents.analysis.tables.efforts import costs_of, front
from drift_agents.analysis.tables.scores import Measure, PlayerIndex


def draw_front(
    schedule: str, naming: PlayerIndex, measure: Measure, order: Sequence[str], folder: Path, prefix: str
) -> list[PlotFile]:
    """What is reached after drifts over the tokens of a step; nothing where nobody made a strategy.

    Args:
        schedule: its name.
        naming: who plays, and what they are called.
        measure: what is reported.
        order: the phases.
        folder: where to.
        prefix: how the files' names begin.
    """
    costs = [cost for cost in costs_of(naming, measure, order) if not math.isnan(cost.reached.mean)]
    if not costs:
        return []
    title = f"{schedule}: {measure.name} after drifts against tokens"
    with new_figure(1, 1, width=10.5, height=max(3.6, 0.6 + 0.2 * len(costs))) as (figure, axes):
        (axis,) = axes.flat
        for number, cost in enumerate(costs):
            look = look_of(number)
            spread = [
                [max(0.0, cost.reached.mean - cost.reached.low)],
                [max(0.0, cost.reached.high - cost.reached.mean)],
            ]
            axis.errorbar(
                [cost.tokens], [cost.reached.mean], yerr=spread, color=look.colour, marker=look.mark,
                markersize=5 + 2 * (number // 14), linestyle="none", linewidth=0.8, label=cost.name,
            )  # fmt: skip
        best = front([(cost.tokens, cost.reached.mean) for cost in costs])
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
        figure.suptitle(title)
        figure.legend(loc="outside right center", fontsize=7)
        return [save(figure, title, folder, f"{prefix}-tokens")]

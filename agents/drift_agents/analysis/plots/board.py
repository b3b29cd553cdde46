"""The picture of a board: what is kept against what it costs.

* `draw_board` - draws it
* `pareto_front` - the agents that no other one beats in both
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drift_agents.analysis.plots.style import PlotFile, style_of, write_panels
from drift_agents.analysis.ranking import Standings
from drift_agents.errors import ExperimentError

NAMED = 12
"""The most agents that the legend names."""


def draw_board(standings: Standings, names: Mapping[Any, str], folder: Path) -> PlotFile:
    """Draw what every agent keeps against its interactions, with the Pareto front.

    Args:
        standings: the ranked agents of a run.
        names: their names, one for those that played the same episodes.
        folder: where to.

    Raises:
        ExperimentError: if the folder cannot be made or a file not be written.
        MissingDependencyError: without matplotlib.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExperimentError(f"{folder}: cannot be written: {error.strerror}") from error
    agents = [one for one in standings.ranked if one.key in names]

    def draw(axes: Sequence[Any]) -> None:
        (axis,) = axes
        for number, one in enumerate(agents):
            look, kept = style_of(number), one.kept
            axis.errorbar(
                [one.interactions], [kept.mean], yerr=[[kept.mean - kept.low], [kept.high - kept.mean]],
                color=look.colour if number < NAMED else "#b8c0c8", marker=look.mark, markersize=5, linestyle="none",
                linewidth=0.8, label=names[one.key] if number < NAMED else "others",
            )  # fmt: skip
        best = pareto_front([(one.interactions, one.kept.mean) for one in agents])
        axis.plot(
            [agents[place].interactions for place in best], [agents[place].kept.mean for place in best],
            color="#888888", linewidth=1, zorder=0, label="Pareto front",
        )  # fmt: skip
        axis.set_xlabel("interactions of an episode, probes included")
        axis.set_ylabel("kept, % of the optimum")
        axis.set_ylim(bottom=0)

    title = "Kept after drifts against interactions"
    return write_panels(title, draw, 1, folder, "board-pareto", height=4.0, legend_columns=2)


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

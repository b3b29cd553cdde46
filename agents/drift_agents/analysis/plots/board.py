"""The pictures of a board: what is kept against what it costs, and on a map of drifts.

* `draw_board` - both pictures of a run
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drift_agents.analysis.drift_map import keep_by_schedule, place_schedules
from drift_agents.analysis.plots.style import PlotFile, style_of, write_panels
from drift_agents.analysis.ranking import Standings
from drift_agents.analysis.runs import Row
from drift_agents.analysis.schedule_runs import ALONE
from drift_agents.analysis.tables.costs import pareto_front
from drift_agents.errors import ExperimentError

NAMED = 12
"""The most agents that the legend of the first picture names."""


def draw_board(
    manifest: Mapping[str, Any], rows: Sequence[Row], standings: Standings, names: Mapping[Any, str], folder: Path
) -> list[PlotFile]:
    """Draw what every agent keeps against its interactions, and each memory's map of severity and visibility.

    On the map each schedule stands where `drift_agents.analysis.drift_map` puts it on the first instance, in the colour
    of what is kept there; agents without a verifier and with GLOVE.

    Args:
        manifest: what was played.
        rows: the rows of the run.
        standings: its ranked agents.
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
    return [_draw_front(standings, names, folder), *_draw_maps(manifest, rows, folder)]


def _draw_front(standings: Standings, names: Mapping[Any, str], folder: Path) -> PlotFile:
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


def _draw_maps(manifest: Mapping[str, Any], rows: Sequence[Row], folder: Path) -> list[PlotFile]:
    places = place_schedules(manifest["schedules"], manifest["experiment"]["seeds"][:1])
    kept = keep_by_schedule([row for row in rows if row["schedule"] in places])
    shown = [key for key in kept if key[-1] not in ALONE and key[0] != "none" and key[1] in ("none", "glove")]
    drawn = []
    for memory in sorted({key[0] for key in shown}):
        # A controller, a team or a policy beside the first one of a memory has no picture of its own.
        own = {key[1]: kept[key] for key in reversed(shown) if key[0] == memory}
        verifiers = [name for name in ("none", "glove") if name in own]

        def draw(axes: Sequence[Any], own: Any = own, verifiers: Sequence[str] = verifiers) -> None:
            for axis, verifier in zip(axes, verifiers, strict=True):
                x, y = np.array([places[name] for name in own[verifier]]).T
                shares = list(own[verifier].values())
                dots = axis.scatter(
                    x, y, c=shares, vmin=0, vmax=100, cmap="viridis", edgecolors="black", linewidths=0.5
                )
                axis.set_xlim(-3, 103)
                axis.set_ylim(-5, 105)
                axis.set_title("plain" if verifier == "none" else "with GLOVE")
                axis.set_xlabel("severity: transition table that changes, %")
                axis.set_ylabel("visibility: optimal ways that meet it, %")
            axes[-1].figure.colorbar(dots, ax=list(axes), label="kept, % of the optimum", shrink=0.8)

        title = f"{memory}: kept by severity and visibility of drifts"
        drawn.append(write_panels(title, draw, len(verifiers), folder, f"board-map-{memory}", height=3.4))
    return drawn

"""What errors in memory, handed on, have cost so far: the gap to the error-free twin.

* `draw_propagation` - a line for each agent that has such a twin
* `gap_to` - the gap, episode by episode

Source: Xiong et al., "How memory management impacts LLM agents", section 5.3, figure 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from drift_agents.analysis.experience import propagation
from drift_agents.analysis.plots.curves import Values, draw_line, drifts_of, mark_drifts, series
from drift_agents.analysis.plots.style import PlotFile, add_legend, new_figure, save
from drift_agents.analysis.runs import Row, Runs
from drift_agents.analysis.tables.experience import twin_of
from drift_agents.analysis.tables.scores import PlayerIndex


def gap_to(twin: Runs) -> Values:
    """The mean score of a twin so far minus an agent's, in percent; not a number where the twin did not play it all.

    Args:
        twin: the error-free twin's.
    """
    found = dict(zip(twin.seeds, twin.rows, strict=True))

    def values(rows: Sequence[Row]) -> list[float]:
        other = found.get(rows[0]["seed"], ()) if rows else ()
        if len(other) != len(rows):
            return [math.nan] * len(rows)
        told = [[float(row["score"]) for row in one] for one in (rows, other)]
        return [100 * gap for gap in propagation(*told)]

    return values


def draw_propagation(schedule: str, naming: PlayerIndex, folder: Path, prefix: str) -> list[PlotFile]:
    """The gap over the episodes, with intervals; nothing where nobody has an error-free twin.

    Args:
        schedule: its name.
        naming: who plays, and what they are called.
        folder: where to.
        prefix: how the file's name begins.
    """
    pairs = [
        (naming.full_name(player), runs, naming.runs[twin_of(player)])
        for player, runs in naming.runs.items()
        if not naming.is_reference(player) and twin_of(player) in naming.runs
    ]
    if not pairs:
        return []
    title = f"Errors handed on, on {schedule}"
    with new_figure(1, 1, width=7.2, height=4.0) as (figure, axes):
        (axis,) = axes.flat
        axis.axhline(0, color="#888888", linewidth=0.8)
        for number, (name, runs, twin) in enumerate(pairs):
            draw_line(axis, series(runs, gap_to(twin)), name, number)
        mark_drifts(axis, drifts_of(naming))
        axis.set_xlabel("episode")
        axis.set_ylabel("gap to the error-free twin,\nmean score so far, points of 100")
        figure.suptitle(title)
        handles, names = axis.get_legend_handles_labels()
        add_legend(figure, handles, names, min(2, len(pairs)))
        return [save(figure, title, folder, f"{prefix}-propagation")]

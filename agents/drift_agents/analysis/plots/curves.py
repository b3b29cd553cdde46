"""The drift curve: success or score over the episodes of a run.

* `series`, `PlotSeries` - its lines
* `drifts_of` - where its phases begin
* `draw_means`, `mark_phases` - a line of means without an interval, and the starts of phases, from rows
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from drift_agents.analysis.plots.style import style_of
from drift_agents.analysis.runs import WINDOW, Row, Runs, estimate
from drift_agents.analysis.schedule_runs import PlayerIndex


class PlotSeries(NamedTuple):
    """One curve.

    Args:
        middle: the mean over instances, episode by episode.
        low: where its 95 % interval begins.
        high: where it ends.
    """

    middle: list[float]
    low: list[float]
    high: list[float]


def series(runs: Runs, field: str, *, scale: float = 100, window: int = WINDOW) -> PlotSeries:
    """A field, averaged over the last few episodes of its phase: the mean over instances, with intervals.

    Where no instance has a value, it is not a number.

    Args:
        runs: a player's rows.
        field: what is drawn.
        scale: by which it is multiplied; by default percent of a share.
        window: the most episodes of an average.
    """
    instances = [_smooth(rows, field, scale, window) for rows in runs.rows]
    length = min(map(len, instances), default=0)
    found = [estimate([one[at] for one in instances], one_run=runs.is_one_run) for at in range(length)]
    return PlotSeries([one.mean for one in found], [one.low for one in found], [one.high for one in found])


def _smooth(rows: Sequence[Row], field: str, scale: float, window: int) -> list[float]:
    found = []
    for at, row in enumerate(rows):
        near = [one for one in rows[max(0, at - window + 1) : at + 1] if one["phase"] == row["phase"]]
        values = [float(one[field]) for one in near if one[field] is not None]
        found.append(scale * sum(values) / len(values) if values else math.nan)
    return found


def drifts_of(players: PlayerIndex) -> list[tuple[int, str]]:
    """The episodes with which phases begin, of the first instance, and the phases' names.

    Args:
        players: the players.
    """
    rows = next(iter(players.runs.values())).rows[0]
    return [(at, str(row["phase"])) for at, row in enumerate(rows) if at and row["phase"] != rows[at - 1]["phase"]]


def mark_drifts(axis: Any, drifts: Sequence[tuple[int, str]]) -> None:
    """Where phases begin, if there are not too many to be legible.

    Args:
        axis: the panel, with its lines.
        drifts: episodes and names of the phases, as `drifts_of` gives them.
    """
    for at, phase in drifts if len(drifts) <= 12 else ():
        axis.axvline(at + 0.5, color="#4b5560", linewidth=1, linestyle=(0, (2, 2)))
        axis.annotate(
            phase, (at + 0.5, 1), xycoords=("data", "axes fraction"), xytext=(3, -9),
            textcoords="offset points", fontsize=7, color="#4b5560",
        )  # fmt: skip
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.1 * (high - low))  # room for the names of the phases


def draw_means(axis: Any, means: Sequence[float], number: int, apart: float) -> Any:
    """Draw means over episodes; lines are shifted by their numbers, so that no line hides an equal one.

    Args:
        axis: the panel.
        means: one for each episode, in percent.
        number: the line's number, from 0, for its style; the line of number 1 is not shifted.
        apart: the shift between two lines, in percent.

    Returns:
        The line, for a legend.
    """
    look = style_of(number)
    (line,) = axis.plot(
        range(1, len(means) + 1),
        [mean + apart * (number - 1) for mean in means],
        color=look.colour,
        linestyle=look.dash,
        marker=look.mark,
        markevery=(number * 3, 10),
        markersize=4,
    )
    return line


def mark_phases(axis: Any, rows: Sequence[Row]) -> None:
    """Mark where the phases after the first one begin.

    Args:
        axis: the panel, with its lines.
        rows: of one schedule.
    """
    starts: dict[str, int] = {}
    for row in rows:
        starts[row["phase"]] = min(row["episode"], starts.get(row["phase"], row["episode"]))
    mark_drifts(axis, [(start, phase) for phase, start in starts.items() if phase != "source"])

"""Curves over the episodes of a run: adaptation, regret, memory, and error propagation.

* `draw_curves` - adaptation, regret and memory on a schedule
* `draw_propagation` - the gap to the error-free twin (Xiong et al., section 5.3, figure 4)
* `series` - the mean over instances, episode by episode, with its interval
* `draw_line`, `drifts_of`, `mark_drifts` - a line with its interval, and the starts of phases, in a panel
* `draw_means`, `mark_phases` - a line of means without an interval, and the starts of phases, from rows
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.analysis.plots.style import PlotFile, style_of, write_panels
from drift_agents.analysis.runs import WINDOW, Row, Runs, estimate
from drift_agents.analysis.schedule_runs import Measure, PlayerIndex, memory_name
from drift_agents.analysis.tables.memories import propagation, twin_of

Values = Callable[[Sequence[Row]], list[float]]
"""The rows of one instance to one number an episode."""

MARKS = 8
"""Marks along a curve."""

APART, POINTS = 1.2, 72
"""Points between lines of equal values, and points in an inch."""


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


def series(runs: Runs, values: Values) -> PlotSeries:
    """The mean over instances, episode by episode, with its interval.

    Args:
        runs: a player's rows.
        values: what is drawn.
    """
    instances = [values(rows) for rows in runs.rows]
    length = min(map(len, instances), default=0)
    found = [estimate([one[at] for one in instances], one_run=runs.is_one_run) for at in range(length)]
    return PlotSeries([one.mean for one in found], [one.low for one in found], [one.high for one in found])


def smoothed(field: str) -> Values:
    """A field in percent, averaged over the last few episodes of its phase.

    Args:
        field: of the rows.
    """

    def values(rows: Sequence[Row]) -> list[float]:
        found = []
        for at, row in enumerate(rows):
            near = [one for one in rows[max(0, at - WINDOW + 1) : at + 1] if one["phase"] == row["phase"]]
            found.append(100 * sum(float(one[field]) for one in near) / len(near))
        return found

    return values


def summed(field: str) -> Values:
    """A field, summed up to each episode; not a number where it is not known.

    Args:
        field: of the rows.
    """
    return lambda rows: list(accumulate(math.nan if row[field] is None else float(row[field]) for row in rows))


def plain(field: str) -> Values:
    """A field as it is.

    Args:
        field: of the rows.
    """
    return lambda rows: [math.nan if row[field] is None else float(row[field]) for row in rows]


def draw_curves(schedule: str, players: PlayerIndex, measure: Measure, folder: Path, prefix: str) -> list[PlotFile]:
    """The three pictures of a schedule: a panel for each memory, a line for each verifier.

    Args:
        schedule: its name.
        players: the players with their names.
        measure: what adaptation is measured in.
        folder: where to.
        prefix: how the files' names begin.
    """
    kinds = [
        ("adaptation", f"{measure.name},\nmean of up to {WINDOW} episodes", smoothed(measure.field)),
        ("regret", "regret so far, in scores", summed("regret")),
        ("memory", "records in memory", plain("memory_size")),
    ]
    names = sorted(
        dict.fromkeys(line for lines in _panels(players, leave_out_empty=False).values() for line, _ in lines),
        key=lambda name: name == "clairvoyant",
    )
    pictures = []
    for kind, label, values in kinds:
        panels = _panels(players, leave_out_empty=kind == "memory")
        found = {name: [(label, series(run, values)) for label, run in lines] for name, lines in panels.items()}
        if not any(not math.isnan(x) for lines in found.values() for _, line in lines for x in line.middle):
            continue
        title = f"{kind.capitalize()} on {schedule} (equal lines stand {APART:g} points apart)"
        pictures.append(_draw(title, label, found, names, drifts_of(players), folder, f"{prefix}-{kind}"))
    return pictures


def _panels(players: PlayerIndex, *, leave_out_empty: bool) -> dict[str, list[tuple[str, Runs]]]:
    """The lines of each memory's panel; clairvoyant stands in all of them."""
    panels: dict[str, list[tuple[str, Runs]]] = {}
    shared = []
    for name, run, _ in players.rows():
        if run.player.policy == "clairvoyant":
            shared.append(("clairvoyant", run))
        elif not (leave_out_empty and run.player.memory == "none"):
            line = name.strip(" +") if name.startswith(" ") else "plain"
            panels.setdefault(memory_name(run.player), []).append((line, run))
    extra = [] if leave_out_empty else shared
    return {name: [*lines, *extra] for name, lines in panels.items()} or {"": shared}


def drifts_of(players: PlayerIndex) -> list[tuple[int, str]]:
    """The episodes with which phases begin, of the first instance, and the phases' names.

    Args:
        players: the players.
    """
    rows = next(iter(players.runs.values())).rows[0]
    return [(at, str(row["phase"])) for at, row in enumerate(rows) if at and row["phase"] != rows[at - 1]["phase"]]


def _draw(
    title: str,
    label: str,
    panels: dict[str, list[tuple[str, PlotSeries]]],
    names: Sequence[str],
    drifts: Sequence[tuple[int, str]],
    folder: Path,
    name: str,
) -> PlotFile:
    def draw(axes: Sequence[Any]) -> None:
        for axis, (panel, lines) in zip(axes, panels.items(), strict=True):
            for line, data in lines:
                draw_line(axis, data, line, names.index(line), len(names))
            mark_drifts(axis, drifts)
            axis.set_title(panel)
            axis.set_xlabel("episode")
            axis.set_ylabel(label)

    return write_panels(title, draw, len(panels), folder, name, columns=2 if len(panels) == 4 else 3)


def draw_line(axis: Any, data: PlotSeries, label: str, number: int, count: int = 1) -> None:
    """A line with its interval; lines of equal values stand side by side, `APART` points from each other.

    Args:
        axis: the panel.
        data: the line, from the first episode on.
        label: what it is called.
        number: of the look.
        count: of the lines that the panel can have.
    """
    from matplotlib.transforms import ScaledTranslation

    look = style_of(number)
    episodes = range(1, len(data.middle) + 1)
    step = max(1, len(data.middle) // MARKS)
    shift = APART * ((count - 1) / 2 - number) / POINTS
    axis.fill_between(episodes, data.low, data.high, color=look.colour, alpha=0.13, linewidth=0)
    axis.plot(
        episodes,
        data.middle,
        color=look.colour,
        linestyle=look.dash,
        marker=look.mark,
        linewidth=1.3,
        markevery=(number * max(1, step // max(count, 1)), step),
        markersize=4,
        label=label,
        transform=axis.transData + ScaledTranslation(0, shift, axis.figure.dpi_scale_trans),
    )


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
        scores = [[float(row["score"]) for row in one] for one in (rows, other)]
        return [100 * gap for gap in propagation(*scores)]

    return values


def draw_propagation(schedule: str, players: PlayerIndex, folder: Path, prefix: str) -> list[PlotFile]:
    """The gap over the episodes, with intervals; nothing where no agent has an error-free twin.

    Args:
        schedule: its name.
        players: the players with their names.
        folder: where to.
        prefix: how the file's name begins.
    """
    pairs = [
        (players.full_name(player), runs, players.runs[twin_of(player)])
        for player, runs in players.runs.items()
        if not players.is_reference(player) and twin_of(player) in players.runs
    ]
    if not pairs:
        return []
    gaps = [(name, series(runs, gap_to(twin))) for name, runs, twin in pairs]

    def draw(axes: Sequence[Any]) -> None:
        (axis,) = axes
        axis.axhline(0, color="#888888", linewidth=0.8)
        for number, (name, gap) in enumerate(gaps):
            draw_line(axis, gap, name, number, len(gaps))
        mark_drifts(axis, drifts_of(players))
        axis.set_xlabel("episode")
        axis.set_ylabel("gap to the error-free twin,\nmean score so far, points of 100")

    title = f"Errors handed on, on {schedule}"
    return [write_panels(title, draw, 1, folder, f"{prefix}-propagation", height=4.0, legend_columns=3)]

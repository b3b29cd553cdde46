"""Experience following over the episodes: running mean similarity of inputs and outputs to retrieved ones.

* `draw_following` - the pictures of several players on a schedule
* `so_far` - the mean of all pairs so far, episode by episode

Source: Xiong et al., "How memory management impacts LLM agents", figures 2 and 8 (score by episode), 3, 9 and 10
(output and score by input), 5, 11 and 12 (deleted and retained executions).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from drift_agents.analysis.plots import PlotSeries
from drift_agents.analysis.rows import estimate

from research.experience.following import Execution, Pair, follow_executions, follow_steps, split_by_fate
from research.pictures import PlotFile, make_folder, style_of, write_panels

KINDS = (("execution by execution", follow_executions), ("step by step", follow_steps))
SIDES = (("input", "input alike, mean so far"), ("output", "output alike, mean so far"))
AGAINST = (("output", "output alike, mean so far"), ("score", "score, mean so far"))
"""What is drawn against the input's similarity."""
FATES = ("deleted later", "retained")

MARKS = 8
"""Marks along a curve."""

APART, POINTS = 1.2, 72
"""Points between lines of equal values, and points in an inch."""


def so_far(pairs: Sequence[Pair], side: str, episodes: int) -> list[float]:
    """The mean of all pairs so far, after each episode; not a number before the first pair.

    Args:
        pairs: of one instance, in order.
        side: `input`, `output` or `score`.
        episodes: how many there were.

    Example:
        >>> so_far([Pair(1, 0, 1.0, 0.5, 0.0), Pair(3, 0, 0.0, 0.5, 0.0)], "input", 5)
        [nan, 1.0, 1.0, 0.5, 0.5]
    """
    means = dict(zip([pair.number for pair in pairs], cumulative(getattr(pair, side) for pair in pairs), strict=True))
    found, last = [], math.nan
    for number in range(episodes):
        last = means.get(number, last)
        found.append(last)
    return found


def draw_following(schedule: str, runs: Mapping[str, Sequence[Sequence[Execution]]], folder: Path) -> list[PlotFile]:
    """Similarity of inputs and outputs to the remembered ones, a line for each player; nothing without memory.

    Args:
        schedule: its name.
        runs: by player, the executions of each instance; episodes are numbered from 0.
        folder: where to; it is made if it is not there.

    Raises:
        ExperimentError: if a file cannot be written.
        MissingDependencyError: without matplotlib.
    """
    found = {name: [[follow(one) for one in instances] for _, follow in KINDS] for name, instances in runs.items()}
    lines = [name for name, kinds in found.items() if any(any(pairs) for pairs in kinds)]
    if not lines:
        return []
    make_folder(folder)
    episodes = min(sum(one.number >= 0 for one in instance) for name in lines for instance in runs[name])
    panels = [(row, kind, side, label) for row, (kind, _) in enumerate(KINDS) for side, label in SIDES]

    def draw(axes: Sequence[Any]) -> None:
        for axis, (row, kind, side, label) in zip(axes, panels, strict=False):
            for number, name in enumerate(lines):
                _draw_line(axis, _mean(found[name][row], side, episodes), name, number, len(lines))
            axis.set(title=kind, xlabel="episode", ylabel=label, ylim=(-0.03, 1.03))
        *against, by_episode, fates = axes[len(panels) :]
        for axis, (side, label) in zip(against, AGAINST, strict=True):
            for number, name in enumerate(lines):
                _draw_path(
                    axis, _mean(found[name][0], "input", episodes).middle, found[name][0], side, number, episodes
                )
            axis.set(title=f"{side} by input", xlabel=SIDES[0][1], ylabel=label)
        for number, name in enumerate(lines):
            scores = [[one.score for one in instance if one.number >= 0][:episodes] for instance in runs[name]]
            _draw_line(by_episode, _estimates([cumulative(one) for one in scores]), name, number, len(lines))
        by_episode.set(title="score by episode", xlabel="episode", ylabel=AGAINST[1][1], ylim=(-0.03, 1.03))
        _draw_fates(fates, [instance for name in lines for instance in runs[name]])

    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", schedule)
    title = f"Experience following on {schedule}"
    return [
        write_panels(
            title,
            draw,
            len(panels) + len(AGAINST) + 2,
            folder,
            f"{name}-following",
            columns=len(SIDES),
            height=3.2,
            legend_columns=3,
        )
    ]


def _mean(instances: Sequence[Sequence[Pair]], side: str, episodes: int) -> PlotSeries:
    """The mean over instances with its interval."""
    return _estimates([so_far(pairs, side, episodes) for pairs in instances])


def _estimates(curves: Sequence[Sequence[float]]) -> PlotSeries:
    estimates = [estimate(values) for values in zip(*curves, strict=True)]
    return PlotSeries([one.mean for one in estimates], [one.low for one in estimates], [one.high for one in estimates])


def _draw_path(
    axis: Any, inputs: Sequence[float], pairs: Sequence[Sequence[Pair]], side: str, number: int, episodes: int
) -> None:
    """A measure against the inputs' similarity, from the first episode to the last, which is marked."""
    look, outputs = style_of(number), _mean(pairs, side, episodes).middle
    axis.plot(inputs, outputs, color=look.colour, linestyle=look.dash, linewidth=1.3)
    axis.plot(inputs[-1:], outputs[-1:], color=look.colour, marker=look.mark, markersize=5)


def _draw_fates(axis: Any, instances: Sequence[Sequence[Execution]]) -> None:
    """Executions beside the retrieved one of the most similar output, by what became of that one (figure 5).

    Of instances in which a retrieved execution was deleted.
    """
    groups: tuple[list[Pair], list[Pair]] = [], []
    for one in instances:
        fates = split_by_fate(one, follow_executions(one, by="output"))
        for group, pairs in zip(groups, fates if fates[0] else ([], []), strict=True):
            group += pairs
    for number, (group, fate) in enumerate(zip(groups, FATES, strict=True)):
        look, points = style_of(number), [(pair.input, pair.output) for pair in group]
        if points:
            inputs, outputs = zip(*points, strict=True)
            axis.plot(inputs, outputs, look.mark, color=look.colour, markersize=2.5, alpha=0.25, linestyle="none")
            middle = sum(inputs) / len(points), sum(outputs) / len(points)
            axis.plot(*middle, look.mark, color=look.colour, markersize=11, markeredgecolor="black", linestyle="none")
            axis.annotate(
                f"{fate} ({len(points)})", middle, xytext=(8, 8 - 24 * number), textcoords="offset points", fontsize=8
            )
    axis.set(title="by what became of the source", xlabel="input alike", ylabel="output alike", ylim=(-0.03, 1.03))


def cumulative(values: Iterable[float]) -> list[float]:
    """The mean of all values so far, after each of them.

    Example:
        >>> cumulative([1, 0, 2])
        [1.0, 0.5, 1.0]
    """
    total, means = 0.0, []
    for count, value in enumerate(values, 1):
        total += value
        means.append(total / count)
    return means


def _draw_line(axis: Any, data: PlotSeries, label: str, number: int, count: int = 1) -> None:
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

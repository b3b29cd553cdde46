"""The paper's figures beside ours, and what a sweep turns against what it costs.

* `draw_paper_bars` - phase by phase, with and without GLOVE, ours and the paper's
* `draw_sweep` - success after the drift and the probes that it took, over the swept value
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drift_agents.analysis.plots.style import PlotFile, add_legend, look_of, new_figure, save
from drift_agents.analysis.runs import estimate, sum_of
from drift_agents.analysis.tables.overviews import ScheduleRuns
from drift_agents.analysis.tables.paper import GPT_4O, paper_figures
from drift_agents.analysis.tables.scores import Measure, PlayerIndex

PAPER = "#b8c0c8"


def draw_paper_bars(
    schedule: str, naming: PlayerIndex, measure: Measure, order: Sequence[str], folder: Path, prefix: str
) -> list[PlotFile]:
    """Phase by phase, the paper's figures beside ours; nothing where the paper has no such cell.

    Args:
        schedule: its name.
        naming: who plays, and what they are called.
        measure: what is reported.
        order: the phases.
        folder: where to.
        prefix: how the files' names begin.
    """
    found = []
    for player, run in naming.runs.items():
        paper = paper_figures(schedule, player)
        if paper is not None and not naming.is_reference(player):
            ours = [estimate(run.phase(phase).per_instance(measure.of), one_run=run.is_one_run) for phase in order]
            found.append((naming.full_name(player), ours, paper))
    if not found:
        return []
    title = f"{schedule}: ours beside the paper's ({GPT_4O})"
    with new_figure(1, len(order), width=max(3.2, 0.7 * len(found)), height=3.2) as (figure, axes):
        for number, (axis, phase) in enumerate(zip(axes.flat, order, strict=True)):
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
            axis.set_xticks(range(len(found)), [name for name, *_ in found], rotation=40, ha="right")
            axis.set_ylim(0, 105)
            axis.set_title(phase)
            axis.set_ylabel(measure.name)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        add_legend(figure, handles, labels, 2)
        figure.suptitle(title)
        return [save(figure, title, folder, f"{prefix}-paper")]


def draw_sweep(parts: Sequence[tuple[Any, ScheduleRuns]], path: str, of: str, folder: Path) -> list[PlotFile]:
    """Success after the drift and the probes that it took, over the swept value.

    Args:
        parts: each value with what was played with it.
        path: what was swept, as in `base.slip`.
        of: the schedule.
        folder: where to.
    """
    values = [value for value, _ in parts]
    numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    places = values if numeric else list(range(len(values)))
    name, first = path.split(".")[-1], parts[0][1]
    title = f"{of}: over {name}"
    players = list(first.naming.runs)
    with new_figure(1, 2, width=4.4, height=3.2) as (figure, axes):
        for number, player in enumerate(players):
            look = look_of(number)
            for axis, measure, after in (
                (axes.flat[0], first.measure.of, True),
                (axes.flat[1], sum_of("probe_steps"), False),
            ):
                points = []
                for place, (_, part) in zip(places, parts, strict=True):
                    run = part.naming.runs.get(player)
                    if run is not None:
                        shown = part.after(run) if after else run
                        points.append((place, estimate(shown.per_instance(measure), one_run=run.is_one_run)))
                x, found = [place for place, _ in points], [one for _, one in points]
                axis.plot(
                    x, [one.mean for one in found], color=look.colour, linestyle=look.dash, marker=look.mark,
                    markersize=4, label=first.naming.full_name(player),
                )  # fmt: skip
                axis.fill_between(
                    x,
                    [one.low for one in found],
                    [one.high for one in found],
                    color=look.colour,
                    alpha=0.13,
                    linewidth=0,
                )
        for axis, label in zip(
            axes.flat, (f"{first.measure.name}, after the drift", "probe steps of a run"), strict=True
        ):
            axis.set_xlabel(name)
            axis.set_ylabel(label)
            # At what was swept and nowhere else: it is not evenly spaced, and nothing was played in between.
            axis.set_xticks(places, [f"{value:g}" if numeric else str(value) for value in values])
        handles, labels = axes.flat[0].get_legend_handles_labels()
        add_legend(figure, handles, labels, 3)
        figure.suptitle(title)
        return [save(figure, title, folder, f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', f'{of}-{name}')}-sweep")]

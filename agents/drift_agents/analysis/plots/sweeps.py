"""Plots over a swept value: success and probe steps, and the probe budget against stochasticity.

* `draw_sweep` - success after the drift and the probe steps, over the swept value
* `draw_budgets` - the same over the probe budget, a line for each swept value (figure 4 of the GLOVE paper)
* `budgets_of` - the verifiers of an experiment that differ in their budget
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drift_agents.analysis.plots.style import PlotFile, style_of, write_panels
from drift_agents.analysis.runs import Player, estimate, sum_of
from drift_agents.analysis.schedule_runs import ScheduleRuns
from drift_agents.checks import is_number
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.plan import plan_cells

FEWEST = 3
"""Budgets that make a curve."""


def budgets_of(experiment: Experiment) -> dict[str, int]:
    """The verifiers of an experiment that differ in their budget: label -> probes, from the fewest.

    Args:
        experiment: a checked experiment.

    Example:
        >>> experiment = Experiment.model_validate(
        ...     {"name": "b", "schedules": "frozen_lake/slippery", "rounds": 2, "seeds": 1,
        ...      "agents": {"memory": "vanilla", "policy": "random",
        ...                 "verifier": ["none", {"glove": {"budget": 20}}, {"glove": {"budget": 5}}]}}
        ... )
        >>> budgets_of(experiment)
        {'glove(budget=5)': 5, 'glove(budget=20)': 20}
    """
    found = {
        cell.labels[1]: cell.verifier.options["budget"]
        for cell in plan_cells(experiment)
        if type(cell.verifier.options.get("budget")) is int
    }
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def draw_budgets(
    parts: Sequence[tuple[Any, ScheduleRuns]], budgets: Mapping[str, int], path: str, of: str, folder: Path
) -> list[PlotFile]:
    """Success after the drift and the probes that it took, over the budget: a line for each swept value.

    Args:
        parts: each swept value with what was played with it.
        budgets: the verifiers' labels with their budgets.
        path: what was swept, as in `base.slip`.
        of: the schedule.
        folder: where to.

    Returns:
        One picture for each memory and policy with enough budgets to draw a curve.
    """
    name, first = path.split(".")[-1], parts[0][1]
    whose = dict.fromkeys((player.memory, player.policy) for player in first.players.runs if player.verifier in budgets)
    pictures = []
    panels = (
        (f"{first.measure.name}, after the drift", first.measure.of, True),
        ("probe steps of a run", sum_of("probe_steps"), False),
    )
    for memory, policy in whose if len(budgets) >= FEWEST else ():
        by_budget = {budget: Player(memory, label, policy) for label, budget in budgets.items()}
        title = f"{of}: budget against {name}, {memory}, {policy}"

        def draw(axes: Sequence[Any], by_budget: Mapping[int, Player] = by_budget) -> None:
            for axis, (label, measure, after) in zip(axes, panels, strict=True):
                for number, (value, part) in enumerate(parts):
                    look, points = style_of(number), []
                    for budget, player in by_budget.items():
                        run = part.players.runs[player]
                        shown = part.after(run) if after else run
                        points.append((budget, estimate(shown.per_instance(measure), one_run=run.is_one_run)))
                    axis.errorbar(
                        [budget for budget, _ in points],
                        [one.mean for _, one in points],
                        yerr=[
                            [max(0.0, one.mean - one.low) for _, one in points],
                            [max(0.0, one.high - one.mean) for _, one in points],
                        ],
                        color=look.colour, linestyle=look.dash, marker=look.mark, markersize=4, capsize=2,
                        elinewidth=0.8, label=f"{name} {value}",
                    )  # fmt: skip
                axis.set_xscale("log")
                axis.set_xticks(list(by_budget), [str(budget) for budget in by_budget])
                axis.minorticks_off()
                axis.set_xlabel("budget of probes for a verification")
                axis.set_ylabel(label)
            axes[1].set_ylim(bottom=0)

        stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{of}-{memory}-{policy}").strip("-")
        pictures.append(write_panels(title, draw, 2, folder, f"{stem}-budget", height=3.2))
    return pictures


def draw_sweep(parts: Sequence[tuple[Any, ScheduleRuns]], path: str, of: str, folder: Path) -> list[PlotFile]:
    """Success after the drift and the probes that it took, over the swept value.

    Args:
        parts: each value with what was played with it.
        path: what was swept, as in `base.slip`.
        of: the schedule.
        folder: where to.
    """
    values = [value for value, _ in parts]
    numeric = all(is_number(value) for value in values)
    places = values if numeric else list(range(len(values)))
    name, first = path.split(".")[-1], parts[0][1]
    title = f"{of}: over {name}"

    def draw(axes: Sequence[Any]) -> None:
        for number, player in enumerate(first.players.runs):
            look = style_of(number)
            for axis, measure, after in (
                (axes[0], first.measure.of, True),
                (axes[1], sum_of("probe_steps"), False),
            ):
                points = []
                for place, (_, part) in zip(places, parts, strict=True):
                    run = part.players.runs.get(player)
                    if run is not None:
                        shown = part.after(run) if after else run
                        points.append((place, estimate(shown.per_instance(measure), one_run=run.is_one_run)))
                x, found = [place for place, _ in points], [one for _, one in points]
                axis.plot(
                    x, [one.mean for one in found], color=look.colour, linestyle=look.dash, marker=look.mark,
                    markersize=4, label=first.players.full_name(player),
                )  # fmt: skip
                axis.fill_between(
                    x,
                    [one.low for one in found],
                    [one.high for one in found],
                    color=look.colour,
                    alpha=0.13,
                    linewidth=0,
                )
        for axis, label in zip(axes, (f"{first.measure.name}, after the drift", "probe steps of a run"), strict=True):
            axis.set_xlabel(name)
            axis.set_ylabel(label)
            # At what was swept and nowhere else: it is not evenly spaced, and nothing was played in between.
            axis.set_xticks(places, [f"{value:g}" if numeric else str(value) for value in values])

    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{of}-{name}")
    return [write_panels(title, draw, 2, folder, f"{stem}-sweep", height=3.2, legend_columns=4)]

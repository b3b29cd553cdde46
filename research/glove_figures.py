"""Figures 3 and 4 of the GLOVE paper: pictures and tables of docs/research/glove_results.md, from `results/glove`.

* `store_figures` - reads a finished run of `glove-recovery` or `glove-budget` and stores its figures
* `write_page` - draws both pictures and fills the tables of the page from these
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from drift_agents.analysis.plots import FAMILY_COLOURS, drifts_of, family_of, series
from drift_agents.analysis.rows import (
    Row,
    Runs,
    ScheduleRuns,
    estimate,
    group,
    mean_of,
    part_of,
    read_run,
    recoveries,
    sum_of,
)
from drift_agents.analysis.table import MISSING, Table, format_estimate, to_markdown
from drift_agents.errors import ExperimentError
from drift_agents.experiment.folder import write_text
from drift_agents.experiment.loader import load_experiment

from drift_envs.metrics import Estimate
from research.pictures import PlotFile, make_folder, mark_drifts, style_of, write_panels
from research.verify_map.pages import ROOT, fill_page

RECOVERY, BUDGET = "glove-recovery", "glove-budget"
FIGURES = ROOT / "research" / "results" / "glove"
PAGE = ROOT / "docs" / "research" / "glove_results.md"
PICTURES = ROOT / "docs" / "pictures"
SHORTLY = 3
"""Rounds that are shortly after a drift."""

Figures = Mapping[str, Any]
Span = tuple[float, float, float]
"""A mean and the ends of its 95 % interval."""


def store_figures(folder: Path, figures: Path = FIGURES) -> None:
    """Store the figures of a finished run.

    Args:
        folder: of the run of `glove-recovery` or `glove-budget`, as shipped.
        figures: the folder of the figures, a file an experiment.

    Raises:
        ExperimentError: if the run is another one, or cannot be read.
    """
    manifest, rows = read_run(folder)
    name = str(manifest["name"])
    if name not in (RECOVERY, BUDGET) or manifest["config_hash"] != load_experiment(name).config_hash():
        raise ExperimentError(
            f"{folder}: the run should be {RECOVERY} or {BUDGET} as shipped. Received a run of {name}"
        )
    parts = [part_of(manifest, schedule, runs) for schedule, runs in group(rows).items()]
    summarise = _summarise_recovery if name == RECOVERY else _summarise_budget
    content = {"config_hash": manifest["config_hash"], "schedules": [summarise(part) for part in parts]}
    write_text(figures / f"{name}.json", json.dumps(content) + "\n", make_folder=True)


def _summarise_recovery(part: ScheduleRuns) -> dict[str, Any]:
    lines = []
    for player, run in part.players.runs.items():
        curves = {"success": series(run, "success", window=1), "conflicts": series(run, "surprises", scale=1, window=1)}
        after = part.after(run)
        shortly, later = _of_rounds(after, 1, SHORTLY), _of_rounds(after, SHORTLY + 1, None)
        source = _of_rounds(run.phase(part.phases[0]), SHORTLY + 1, None)
        success, conflicts, probes = mean_of("success", 100), mean_of("surprises"), mean_of("probe_steps")
        measured = {
            "success shortly": _span(shortly, success),
            "success later": _span(later, success),
            "conflicts before": _span(source, conflicts),
            "conflicts shortly": _span(shortly, conflicts),
            "conflicts later": _span(later, conflicts),
            "probes before": _span(source, probes),
            "probes shortly": _span(shortly, probes),
            "probes later": _span(later, probes),
        }
        found = [recoveries(run.phase(phase)) for phase in part.phases[1:]]
        recovered = [
            MISSING if one is None or one.median is None else f"{one.median:g} ({round(one.share * one.n)})"
            for one in found
        ]
        rounded = {
            name: {end: [round(value, 2) for value in values] for end, values in data._asdict().items()}
            for name, data in curves.items()
        }
        name = part.players.full_name(player)
        lines.append({"name": name, "curves": rounded, "measured": measured, "recovered": recovered})
    return {"schedule": part.schedule, "n": len(run.seeds), "drifts": drifts_of(part.players), "lines": lines}


def _summarise_budget(part: ScheduleRuns) -> dict[str, Any]:
    lines = []
    for player, run in part.players.runs.items():
        after = part.after(run)
        lines.append(
            {
                "name": player.policy if player.policy == "clairvoyant" else player.verifier,
                "success": _span(after, mean_of("success", 100)),
                "probes": _span(run, sum_of("probe_steps")),
                "steps": _span(run, sum_of("steps")),
            }
        )
    return {"schedule": part.schedule, "n": len(run.seeds), "lines": lines}


def _of_rounds(runs: Runs, first: int, last: int | None) -> list[tuple[Row, ...]]:
    return [
        tuple(row for row in rows if first <= row["round"] and (last is None or row["round"] <= last))
        for rows in runs.rows
    ]


def _span(instances: Runs | Sequence[Sequence[Row]], measure: Callable[[Sequence[Row]], float]) -> Span:
    rows = instances.rows if isinstance(instances, Runs) else instances
    found = estimate([measure(one) for one in rows])
    return round(found.mean, 2), round(found.low, 2), round(found.high, 2)


def write_page(page: Path = PAGE, figures: Path = FIGURES, pictures: Path = PICTURES) -> Path:
    """Draw the pictures, that of README included, and fill the tables of the page.

    Args:
        figures: the folder of the stored figures.
        pictures: the folder of the pictures.

    Returns:
        The page.

    Raises:
        ExperimentError: if there are no figures, or a file cannot be written.
        MissingDependencyError: without matplotlib.
    """
    tables = make_tables(figures)
    make_folder(pictures)
    draw_recovery(_read(figures, RECOVERY), pictures)
    draw_budget(_read(figures, BUDGET), pictures)
    draw_front(_read(figures, RECOVERY), pictures)
    write_text(page, fill_page(page.read_text("utf-8"), tables, page.name))
    return page


def make_tables(figures: Path = FIGURES) -> dict[str, str]:
    """The tables `recovery` and `budget`, as Markdown.

    Args:
        figures: the folder of the stored figures.

    Raises:
        ExperimentError: if there are no figures.
    """
    recovery = [_tabulate_recovery(one) for one in _read(figures, RECOVERY)]
    return {"recovery": "\n\n".join(recovery), "budget": _tabulate_budget(_read(figures, BUDGET))}


def _read(figures: Path, name: str) -> Sequence[Figures]:
    file = figures / f"{name}.json"
    if not file.is_file():
        raise ExperimentError(f"{file}: is missing; `python -m research glove-figures RUN` stores those of a run")
    schedules: Sequence[Figures] = json.loads(file.read_text("utf-8"))["schedules"]
    return schedules


def _tabulate_recovery(one: Figures) -> str:
    title = f"`{one['schedule']}`, {one['n']} instances, [95 % interval]"
    rounds = f"rounds 1 to {SHORTLY} after a drift"
    heads = (f"success, %, {rounds}", "later", "rounds to recover (how many did)")
    counts = (f"conflicts an episode before / {rounds} / later", "probe steps likewise")
    table = Table(title, ("method", *heads, *counts))
    for line in one["lines"]:
        found = {name: _to_estimate(span, one["n"]) for name, span in line["measured"].items()}
        table.add(
            line["name"],
            format_estimate(found["success shortly"]),
            format_estimate(found["success later"]),
            "; ".join(line["recovered"]),
            *(
                " / ".join(format_estimate(found[f"{kind} {when}"], 1) for when in ("before", "shortly", "later"))
                for kind in ("conflicts", "probes")
            ),
        )
    return to_markdown(table)


def _to_estimate(span: Span, n: int) -> Estimate:
    mean, low, high = span
    return Estimate(mean, low, high, n)


def _slip(one: Figures) -> str:
    return str(one["schedule"]).rpartition("slip-")[2]


def _label(name: str) -> str:
    return {"none": "none"}.get(name, name.replace("glove(budget=", "alpha = ").replace(")", "").replace("_", " "))


def _tabulate_budget(schedules: Sequence[Figures]) -> str:
    heads = [head for one in schedules for head in (f"slip {_slip(one)}: success", "probe steps")]
    table = Table(f"{schedules[0]['n']} instances, after the drifts, % [95 % interval]", ("verifier", *heads))
    for number, line in enumerate(schedules[0]["lines"]):
        cells = []
        for one in schedules:
            own = one["lines"][number]
            cells += [format_estimate(_to_estimate(own["success"], one["n"])), f"{own['probes'][0]:,.0f}"]
        table.add(_label(line["name"]), *cells)
    return to_markdown(table)


def _colour(name: str) -> str:
    """The colour of a line by its agent's name, as `Vanilla + GLOVE`."""
    _, _, verifier = name.partition(" + ")
    return FAMILY_COLOURS[family_of(verifier.lower() or "none")]


def draw_recovery(schedules: Sequence[Figures], folder: Path) -> PlotFile:
    """Draw success and conflicts by round, a panel each for every schedule (figure 3).

    Args:
        schedules: the stored figures.
        folder: where to.

    Raises:
        ExperimentError: if a file cannot be written.
        MissingDependencyError: without matplotlib.
    """
    panels = [(one, kind) for kind in ("success", "conflicts") for one in schedules]

    def draw(axes: Sequence[Any]) -> None:
        for axis, (one, kind) in zip(axes, panels, strict=True):
            shown = [line for line in one["lines"] if kind == "success" or "oracle" not in line["name"]]
            for number, line in enumerate(shown):
                look, data = style_of(number)._replace(colour=_colour(line["name"])), line["curves"][kind]
                rounds = range(1, len(data["middle"]) + 1)
                axis.fill_between(rounds, data["low"], data["high"], color=look.colour, alpha=0.12, linewidth=0)
                axis.plot(
                    rounds, data["middle"], color=look.colour, linestyle=look.dash, linewidth=1.4, label=line["name"]
                )
            mark_drifts(axis, [(at, phase) for at, phase in one["drifts"]])
            axis.set_title(one["schedule"])
            axis.set_xlabel("episode")
            axis.set_ylabel("success, %" if kind == "success" else "conflicts in an episode")

    title = "Success and conflicts with memory by round"
    return write_panels(title, draw, len(panels), folder, "glove_recovery", columns=2, height=2.6, legend_columns=3)


FRONT = "front"
"""The picture of README."""
_FRONT_LINES = {
    "Vanilla": "memory alone, its oldest records recalled",
    "Vanilla (order=newest)": "memory alone, its newest records recalled",
    "Vanilla + GLOVE": "either, verified by GLOVE",
}


def draw_front(schedules: Sequence[Figures], folder: Path) -> PlotFile:
    """Draw success around the drifts, of a memory alone in either order of recall, and of the same with GLOVE.

    Args:
        schedules: the stored figures of `glove-recovery`.
        folder: where to.

    Raises:
        ExperimentError: if a file cannot be written.
        MissingDependencyError: without matplotlib.
    """

    def draw(axes: Sequence[Any]) -> None:
        for axis, one in zip(axes, schedules, strict=True):
            for number, line in enumerate(line for line in one["lines"] if line["name"] in _FRONT_LINES):
                look, data = style_of(number + 1), line["curves"]["success"]
                colour, rounds = _colour(line["name"]), range(1, len(data["middle"]) + 1)
                axis.fill_between(rounds, data["low"], data["high"], color=colour, alpha=0.2, linewidth=0)
                axis.plot(
                    rounds, data["middle"], color=colour, linestyle=look.dash, linewidth=2,
                    label=_FRONT_LINES[line["name"]],
                )  # fmt: skip
            mark_drifts(axis, [(at, f"drift {number}") for number, (at, _) in enumerate(one["drifts"], 1)])
            axis.set_title(f"{one['schedule'].partition('/')[0].replace('_', ' ')}, {one['n']} instances")
            axis.set_xlabel("episode")
            axis.set_ylabel("success, %")

    title = "Success around two drifts, with 95 % intervals"
    return write_panels(title, draw, len(schedules), folder, FRONT, columns=2, height=2.9, legend_columns=2)


def draw_budget(schedules: Sequence[Figures], folder: Path) -> PlotFile:
    """Draw success over the slip, a line for each probing budget (figure 4), and what the probes cost.

    Args:
        schedules: the stored figures, in the order of the slip.
        folder: where to.

    Raises:
        ExperimentError: if a file cannot be written.
        MissingDependencyError: without matplotlib.
    """
    slips = [_slip(one) for one in schedules]

    def draw(axes: Sequence[Any]) -> None:
        for number, line in enumerate(schedules[0]["lines"]):
            look = style_of(number)._replace(colour=FAMILY_COLOURS[family_of(line["name"])])
            label = _label(line["name"])
            for axis, kind in zip(axes, ("success", "probes"), strict=True):
                spans = [one["lines"][number][kind] for one in schedules]
                if kind == "probes" and not any(mean for mean, _, _ in spans):
                    continue
                places = [at + 0.05 * (number - 3) for at in range(len(slips))]  # no interval hides another
                means = [mean for mean, _, _ in spans]
                ends = [[mean - low for mean, low, _ in spans], [high - mean for mean, _, high in spans]]
                axis.errorbar(
                    places, means, ends, color=look.colour, linestyle=look.dash, marker=look.mark, markersize=4,
                    linewidth=1.4, label=label,
                )  # fmt: skip
        for axis, name in zip(axes, ("success after the drifts, %", "probe steps of a run"), strict=True):
            axis.set_xticks(range(len(slips)), slips)
            axis.set_xlabel("slip")
            axis.set_ylabel(name)
        axes[1].set_yscale("log")

    title = "The probing budget alpha on lakes that slip"
    return write_panels(title, draw, 2, folder, "glove_budget", columns=2, height=3.0, legend_columns=4)

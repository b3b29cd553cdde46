"""The report of a run: a headline, and tables computed from its rows."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from drift_agents.analysis.rows import TOLERANCE, WINDOW, Row, ScheduleRuns, parts_of, read_run
from drift_agents.analysis.table import Table, escape_html, format_seeds, print_table, to_markdown
from drift_agents.analysis.tables import (
    CellGroup,
    list_cells,
    tabulate_cells,
    tabulate_costs,
    tabulate_overview,
    tabulate_scores,
    tabulate_verification,
    write_headline,
)
from drift_agents.errors import ExperimentError
from drift_agents.experiment.folder import REPORT, write_text
from drift_envs.utils.command_line import plain_text

LEGEND = (
    "Success rates (explicit drifts) and scores (implicit drifts) are in percent and never averaged together.",
    "Every figure is a mean over instances (seeds) with a 95 % interval bootstrapped over them. A figure without an "
    "interval: one seed, or all seeds gave one and the same run. `all 10`: ten different runs with the same figure, so "
    "that there is nothing to bootstrap. Where a schedule draws no maps from the seed, all instances share its maps.",
    "Differences are taken instance by instance. In the headline one counts as above or below 0 when its interval "
    "excludes 0; of one seed none is counted.",
    f"Recovered: the rounds of the phase that had passed when the mean score of {WINDOW} rounds was within "
    f"{TOLERANCE:.0%} of the optimum and stayed there for {WINDOW} windows; the median over all instances, and how "
    "many recovered within the phase. Regret: the sum over the phase of optimum minus score.",
    "Probe steps are those of all probes, prefixes and retries included; total steps are the agent's own and these. "
    "Episodes of a training phase belong to no phase; their steps are part of the whole run, and have a column of "
    "their own. Records: the size of memory at the end. Dollars: by the price that the run was given.",
    "Conflicts: outcomes that contradicted memory. Noticed: a realignment touched a record from before the drift whose "
    "response is another one since. Delay: the agent's own interactions until then, the median over all instances. "
    "False alarms: realignments that touched nothing that had changed since it was written, in 1,000 of the agent's "
    "own interactions. True: the share of what is remembered that the environment could still answer.",
    "Oracle realign removes exactly the records that became false, when the drift happens; oracle reset removes all; "
    "clairvoyant plays the best known policy of every tick. All three are privileged.",
)
"""How to read the tables."""


SCREEN = 40
"""Lines of a terminal that the printed report fits into."""


class ReportSection(NamedTuple):
    """The tables about one schedule.

    Args:
        subject: the schedule's name.
        about: its environment, its drift, and what is measured.
        tables: scores, costs and verification.
    """

    subject: str
    about: str
    tables: list[Table]


class Report(NamedTuple):
    """The report of a run.

    Args:
        headline: the run in a few sentences.
        overview: scores in short.
        sections: the tables of each schedule.
        cells: what was played.
    """

    headline: list[str]
    overview: Table
    sections: list[ReportSection]
    cells: list[CellGroup]


def write_report(folder: Path, console: Console | None = None, *, full: bool = False) -> Path:
    """Read a run's folder, print the headline and the overview, and write the report to `report.md` there.

    Args:
        console: where to print; nothing is printed if not given.
        full: whether the tables of each schedule are printed too.

    Returns:
        The file; where it cannot be written, and the report is printed, that is printed too.

    Raises:
        ExperimentError: if the folder holds no finished run, or nothing is printed and the file cannot be written.
    """
    manifest, rows = read_run(folder)
    report = make_report(manifest, rows)
    path = folder / REPORT
    refusal = None
    try:
        write_text(path, plain_text(to_text(manifest, report)))
    except ExperimentError as error:
        if console is None:
            raise
        refusal = str(error)  # what is printed needs no file
    if console is not None:
        if full:
            for section in report.sections:
                console.print(Text(f"\n{section.subject} ({section.about})", style="bold underline"))
                for table in section.tables:
                    print_table(console, table)
            print_table(console, tabulate_cells(report.cells))
        title, headline = Text(str(manifest["name"]), style="bold underline"), "\n".join((*report.headline, ""))
        more = "" if full else "intervals, costs and verification (--full prints them), "
        last = f"As Markdown, with {more}the configuration and how to read it:"
        if refusal is not None:
            last = f"Not written as Markdown: {refusal}"
        room = SCREEN - sum(len(console.render_lines(text)) for text in (title, Text(headline), last)) - 1
        console.print(title)
        console.print(Text(headline))
        if report.overview.rows:
            _print_overview(console, report.overview, sys.maxsize if full else room)
        console.print(Text(last))
        if refusal is None:
            console.print(f"{folder}/{REPORT}", soft_wrap=True)  # a path is copied: it stays in one line
    return path


def _print_overview(console: Console, table: Table, room: int) -> None:
    """Print the rows that so many lines hold, and how many are left out."""
    parts = [Table(table.title, table.columns, table.rows[: count + 1]) for count in range(len(table.rows))]
    if _height(console, table) > room:
        parts = [part for part in parts if _height(console, part) < room] or parts[:1]
    print_table(console, parts[-1])
    if left_out := len(table.rows) - len(parts[-1].rows):
        console.print(f"{left_out} more {'row' if left_out == 1 else 'rows'}: --full")


def _height(console: Console, table: Table) -> int:
    with console.capture() as printed:
        print_table(console, table)
    return len(printed.get().splitlines())


def make_report(manifest: Mapping[str, Any], rows: Sequence[Row]) -> Report:
    """The report as tables."""
    parts = parts_of(manifest, rows)
    sections = [
        ReportSection(
            part.schedule,
            _about(manifest, part),
            [*tabulate_scores(part), tabulate_costs(part), *tabulate_verification(part)],
        )
        for part in parts
    ]
    return Report(write_headline(manifest, parts), tabulate_overview(parts), sections, list_cells(parts))


def _about(manifest: Mapping[str, Any], part: ScheduleRuns) -> str:
    known = manifest["schedules"].get(part.schedule, {})
    control = ", a control: left out of rankings" if known.get("control") else ""
    seeds = len(next(iter(part.players.runs.values())).seeds)
    return (
        f"{known.get('env')}, {known.get('visibility')} drift{control}; {part.measure.name}, "
        f"{seeds} {'instance' if seeds == 1 else 'instances'}{_stages(known)}"
    )


_TASKS = {"other": "other tasks", "elsewhere": "tasks of other houses", "same": "tasks of the test"}
"""What a training phase plays, by its `where`."""


def _stages(known: Mapping[str, Any]) -> str:
    """The training phase, and whether memory is frozen in the test, where that is not the default."""
    text = ""
    training = known.get("train")
    if training is not None:
        text += f"; before the test {training['episodes']} {_TASKS[training.get('where', 'other')]}"
        epochs = training.get("epochs", 1)
        text += f" in {epochs} epochs" if epochs > 1 else ""
        text += f", played by {training['policy']['name']}" if "policy" in training else ""
    return text + ("; memory frozen in the test" if known.get("learning") == "frozen" else "")


def to_text(manifest: Mapping[str, Any], report: Report) -> str:
    """The report as Markdown."""
    lines = [f"# {escape_html(manifest['name'])}", ""]
    lines += [*(f"- {escape_html(sentence)}" for sentence in report.headline), ""]
    if report.overview.rows:
        lines += [to_markdown(report.overview), ""]
    for section in report.sections:
        lines += [f"## {escape_html(section.subject)}", "", f"{escape_html(section.about)}.", ""]
        for table in section.tables:
            lines += [to_markdown(table), ""]
    lines += ["## What was played", "", to_markdown(tabulate_cells(report.cells)), ""]
    lines += ["## How to read this", "", *(f"- {line}" for line in LEGEND), ""]
    lines += ["## Configuration", ""]
    lines += [f"- Versions: {', '.join(f'{name} {number}' for name, number in manifest['versions'].items())}"]
    lines += [f"- Seeds: {format_seeds(manifest['experiment']['seeds'])}"]
    lines += [
        escape_html(f"- {name}: {schedule['env']}, {schedule['episodes']} episodes, hash {schedule['hash']}")
        for name, schedule in manifest["schedules"].items()
    ]
    lines += [f"- Configuration (hash {manifest['config_hash']}):", "", "```json"]
    configuration = json.dumps(manifest["experiment"], indent=2, ensure_ascii=False)
    lines += [configuration.replace("<", "\\u003c"), "```", ""]  # also where a reader does not know the fence
    return "\n".join(lines)

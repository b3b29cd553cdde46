"""What a run showed: tables from its lines alone.

* `write_report` - reads a run's folder, prints the report and writes `report.md`
* `make_report` - the report as Markdown and as tables for a terminal
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from drift_agents.errors import ExperimentError
from drift_agents.experiment.figures import TOLERANCE, WINDOW, Row, group, phases
from drift_agents.experiment.folder import EPISODES, REPORT, read_manifest
from drift_agents.experiment.log import read_rows
from drift_agents.experiment.paper import GPT_4O
from drift_agents.experiment.sheets import Sheet, to_markdown, to_rich
from drift_agents.experiment.tables import Naming, costs, measure_of, paired_differences, phase_details, scores

LEGEND = (
    "Success rates (explicit drifts) and scores (implicit drifts) are in percent and never averaged together.",
    "Every figure is a mean over instances (seeds) with a 95 % interval bootstrapped over them. `n = 1`: all "
    "instances were one and the same run. `all 10`: ten different runs with the same figure, so that there is nothing "
    "to bootstrap. Where a schedule draws no maps from the seed, all instances share its maps, and the interval is "
    "about chance and ties, not about maps.",
    f"The paper's figures are those of one run with {GPT_4O} on maps and prompts of its own. The planner here is no "
    "language model. They show the pattern to compare, not a target.",
    f"Recovered: the rounds of the phase that had passed when the mean score of {WINDOW} rounds was within "
    f"{TOLERANCE:.0%} of the optimum and stayed there for {WINDOW} windows; the median over all instances, and how "
    "many recovered within the phase.",
    "Dynamic regret: the sum over the phase of optimum minus score. Memory true: the share of what is remembered that "
    "the world could still answer.",
    "Paired differences: instance by instance; `*`: the interval excludes 0. Recovery ratio (ours): (GLOVE - plain) / "
    "(oracle reset - plain), where the interval of the denominator excludes 0.",
    "Probe steps are those of all probes, prefixes and retries included: in all, in a round of phases that no drift "
    "began, and in a phase that one began. Total steps are the agent's own and these. False realignments touched "
    "nothing that had changed.",
    "Oracle realign removes exactly the records that became false, when the drift happens; oracle reset removes all; "
    "clairvoyant plays the best known policy of every tick. All three are told the truth.",
)
"""How to read the tables."""


def write_report(folder: Path, console: Console | None = None) -> Path:
    """Read a run's folder, print the report and write `report.md` there.

    Args:
        folder: the run's folder.
        console: where to print; nothing is printed if not given.

    Returns:
        The file.

    Raises:
        ExperimentError: if the folder holds no finished run.
    """
    manifest = read_manifest(folder)
    if not (folder / EPISODES).exists():
        raise ExperimentError(f"{folder}: the run is not finished, {EPISODES} is missing. Go on with it with --resume")
    sections = make_report(manifest, read_rows(folder / EPISODES))
    path = folder / REPORT
    try:
        path.write_text(to_text(manifest, sections), encoding="utf-8")
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be written: {error.strerror}") from error
    if console is not None:
        for heading, sheets in sections:
            console.print(Text(f"\n{heading}", style="bold underline"))
            for sheet in sheets:
                console.print(to_rich(sheet))
        console.print(Text("\n".join(f"- {line.replace('`', '')}" for line in LEGEND), style="dim"))
        console.print(f"\nThe same as Markdown: {path}")
    return path


Section = tuple[str, list[Sheet]]


def make_report(manifest: Mapping[str, Any], rows: Sequence[Row]) -> list[Section]:
    """The tables, one section a schedule.

    Args:
        manifest: what was played.
        rows: what happened.
    """
    sections = []
    for schedule, runs in group(rows).items():
        known = manifest["schedules"].get(schedule, {})
        naming = Naming(runs, manifest["players"], schedule)
        measure = measure_of(str(known.get("visibility")))
        order = phases(runs)
        sheets = scores(schedule, naming, measure, order)
        sheets += phase_details(naming, measure, order)
        sheets += paired_differences(naming, measure, order)
        sheets.append(costs(naming))
        control = ", a control: left out of rankings" if known.get("control") else ""
        seeds = len(runs[0].seeds)
        sections.append(
            (
                f"{schedule} ({known.get('env')}, {known.get('visibility')} drift{control}): {measure.name}, "
                f"{seeds} {'instance' if seeds == 1 else 'instances'}",
                sheets,
            )
        )
    return sections


def to_text(manifest: Mapping[str, Any], sections: Sequence[Section]) -> str:
    """The report as Markdown.

    Args:
        manifest: what was played.
        sections: the tables.
    """
    experiment = manifest["experiment"]
    lines = [f"# {manifest['name']}", ""]
    if experiment.get("about"):
        lines += [experiment["about"][0].upper() + experiment["about"][1:] + ".", ""]
    for heading, sheets in sections:
        lines += [f"## {heading}", ""]
        for sheet in sheets:
            lines += [to_markdown(sheet), ""]
    lines += ["## How to read this", "", *(f"- {line}" for line in LEGEND), ""]
    lines += ["## What was played", ""]
    lines += [f"- Versions: {', '.join(f'{name} {number}' for name, number in manifest['versions'].items())}"]
    lines += [f"- Seeds: {', '.join(map(str, experiment['seeds']))}"]
    lines += [
        f"- {name}: {schedule['env']}, {schedule['episodes']} episodes, hash {schedule['hash']}"
        for name, schedule in manifest["schedules"].items()
    ]
    lines += [f"- Configuration (hash {manifest['config_hash']}):", "", "```json"]
    lines += [json.dumps(experiment, indent=2, ensure_ascii=False), "```", ""]
    return "\n".join(lines)

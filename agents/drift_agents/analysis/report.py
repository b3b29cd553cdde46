"""The report of a run: tables computed from its rows.

* `write_report` - reads a run's folder, prints the report and writes `report.md`
* `make_report` - the tables
* `make_summary` - the summary table
* `make_sentences` - the run in a few sentences
* `to_text` - the report as Markdown
* `ReportSection` - the tables about one schedule, or about several
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from drift_agents.analysis.runs import FAILURE_SHARE, TOLERANCE, WINDOW, Row, group, read_run
from drift_agents.analysis.schedule_runs import ScheduleRuns, part_of
from drift_agents.analysis.table import Table, print_table, to_markdown
from drift_agents.analysis.tables.breakdowns import (
    tabulate_around_drifts,
    tabulate_by_prior_score,
    tabulate_spread,
)
from drift_agents.analysis.tables.comparisons import Comparison, compare, correct, tabulate_differences
from drift_agents.analysis.tables.costs import (
    tabulate_costs,
    tabulate_decision_costs,
    tabulate_llm_costs,
    tabulate_loops,
)
from drift_agents.analysis.tables.memories import tabulate_epochs, tabulate_items, tabulate_managed
from drift_agents.analysis.tables.overviews import tabulate_policies, tabulate_summary, tabulate_sweep
from drift_agents.analysis.tables.paper import GPT_4O
from drift_agents.analysis.tables.probing import (
    tabulate_detections,
    tabulate_equal_interaction,
    tabulate_prices,
    tabulate_probes,
    tabulate_verifiers,
)
from drift_agents.analysis.tables.scores import tabulate_phases, tabulate_scores
from drift_agents.analysis.tables.sentences import write_sentences
from drift_agents.experiment.folder import REPORT, write_text

LEGEND = (
    "Success rates (explicit drifts) and scores (implicit drifts) are in percent and never averaged together.",
    "Every figure is a mean over instances (seeds) with a 95 % interval bootstrapped over them. `n = 1`: all "
    "instances were one and the same run. `all 10`: ten different runs with the same figure, so that there is nothing "
    "to bootstrap. Where a schedule draws no maps from the seed, all instances share its maps, and the interval is "
    "about p_value and ties, not about maps.",
    f"The paper's figures are those of one run with {GPT_4O} on maps and prompts of its own. The planner here is no "
    "language model. They show the pattern, not a target.",
    f"Recovered: the rounds of the phase that had passed when the mean score of {WINDOW} rounds was within "
    f"{TOLERANCE:.0%} of the optimum and stayed there for {WINDOW} windows; the median over all instances, and how "
    "many recovered within the phase.",
    "Dynamic regret: the sum over the phase of optimum minus score. Memory true: the share of what is remembered that "
    "the world could still answer.",
    "Paired differences: instance by instance. `*`: the interval excludes 0. `**`: so does a two-sided sign-flip test "
    "after Holm's correction over all comparisons of the run in phases that a drift began, those of the same episodes "
    "counted once. Recovery ratio (ours): "
    "(GLOVE - plain) / (oracle reset - plain), where the interval of the denominator excludes 0.",
    "Noticed: a realignment touched a record from before the drift whose response is another one since. Delay: the "
    "agent's own interactions until then, the median over all instances. Exposures: interactions until then whose "
    "response had changed and about which memory held something, the mean. False alarms: realignments that touched "
    "nothing that had changed since it was written, in 1,000 of the agent's own interactions; calm: in the source.",
    "Probe steps are those of all probes, prefixes and retries included. Total steps are the agent's own and these. "
    "Calm: phases that no drift began. Episodes of a construction belong to no phase; their steps "
    "are part of the whole run, and have a column of their own.",
    "At equal interaction: the score collected after the drift within the least number of interactions, probes "
    "included, that any agent of the table needed for the phase, instance by instance; and in 1,000 interactions.",
    f"Failed: at most {FAILURE_SHARE:.0%} of the optimum in that phase.",
    "Gap to the error-free twin: the same agent, but wrong executions are replaced by the clairvoyant's before they "
    "are added; its score minus the agent's, over the whole run.",
    "Oracle realign removes exactly the records that became false, when the drift happens; oracle reset removes all; "
    "clairvoyant plays the best known policy of every tick. All three are privileged.",
)
"""How to read the tables."""


def write_report(folder: Path, console: Console | None = None, name: str | None = None) -> Path:
    """Read a run's folder, print the report and write `report.md` there.

    Args:
        folder: the run's folder.
        console: where to print; nothing is printed if not given.
        name: how the printed text calls the folder; its path if not given.

    Returns:
        The file.

    Raises:
        ExperimentError: if the folder holds no finished run.
    """
    manifest, rows = read_run(folder)
    sections, summary = make_report(manifest, rows), make_summary(manifest, rows)
    sentences = make_sentences(manifest, rows)
    path = folder / REPORT
    write_text(path, to_text(manifest, summary + sections, sentences))
    if console is not None:
        for section in sections:
            _print(section, console)
        for section in summary:  # first in the file, last in a terminal
            _print(section, console)
        console.print(Text("\n".join(("", *sentences))))
        console.print("\nThe same as Markdown, how to read it, and more tables:")
        console.print(f"{name or folder}/{REPORT}", soft_wrap=True)  # a path is copied: it stays in one line
    return path


def _print(section: ReportSection, console: Console) -> None:
    if section.tables:
        console.print(Text(f"\n{section.heading}", style="bold underline"))
    for table in section.tables:
        print_table(console, table)


class ReportSection(NamedTuple):
    """The tables about one schedule, or about several.

    Args:
        heading: the heading.
        tables: printed, and in the file.
        more: in the file alone.
    """

    heading: str
    tables: list[Table]
    more: list[Table]

    @property
    def subject(self) -> str:
        """The heading up to its first parenthesis: of a section about one schedule, the schedule's name."""
        return self.heading.split(" (")[0]


def make_report(manifest: Mapping[str, Any], rows: Sequence[Row]) -> list[ReportSection]:
    """The tables: overviews of sweeps and of policies, then one section a schedule.

    Schedules of a sweep are printed in their overview alone; their own tables stand in the file.

    Args:
        manifest: what was played.
        rows: what happened.
    """
    parts = [part_of(manifest, schedule, runs) for schedule, runs in group(rows).items()]
    corrected = _corrected(parts)
    sections = _sweeps(manifest, parts)
    overview = tabulate_policies(parts)
    if overview:
        sections.append(ReportSection("Policies of graded ability", overview, []))
    for part in parts:
        schedule, players, measure, phases = part
        tables = tabulate_scores(schedule, players, measure, phases)
        tables += tabulate_phases(players, measure, phases)
        own = [(one, p_value) for one, p_value in corrected if one.schedule == schedule]
        tables += tabulate_differences(own, players, measure, phases)
        tables += [
            tabulate_detections(players, phases),
            tabulate_managed(players),
            tabulate_items(players, measure),
            tabulate_costs(players),
            tabulate_llm_costs(players),
            tabulate_loops(players),
            tabulate_decision_costs(players, measure, phases),
        ]
        stage = manifest["schedules"].get(schedule, {}).get("construct") or {}
        tables += [tabulate_epochs(players, measure, stage.get("epochs", 1))]
        more = [tabulate_spread(players, measure, phases)]
        more += tabulate_by_prior_score(players, measure, phases) if measure.field == "score" else []
        more += [
            tabulate_probes(players),
            tabulate_verifiers(players, measure),
            tabulate_equal_interaction(players, measure, phases),
            tabulate_prices(players, measure),
        ]
        more += tabulate_around_drifts(players, measure, phases)
        tables, more = ([table for table in some if table.rows and len(table.columns) > 1] for some in (tables, more))
        heading = _heading(manifest, part)
        swept = "sweep" in manifest["schedules"].get(schedule, {})
        sections.append(ReportSection(heading, [] if swept else tables, tables + more if swept else more))
    return sections


def make_summary(manifest: Mapping[str, Any], rows: Sequence[Row]) -> list[ReportSection]:
    """The summary; nothing if no memory was played both plain and with GLOVE.

    Args:
        manifest: what was played.
        rows: what happened.
    """
    played = {name: runs for name, runs in group(rows).items() if "sweep" not in manifest["schedules"].get(name, {})}
    table = tabulate_summary([part_of(manifest, schedule, runs) for schedule, runs in played.items()])
    return [ReportSection("Lost to drifts, and recovered", [table], [])] if table.rows else []


def make_sentences(manifest: Mapping[str, Any], rows: Sequence[Row]) -> list[str]:
    """The run in a few sentences, made from the figures; schedules of a sweep are left out where others were played.

    Args:
        manifest: what was played.
        rows: what happened.
    """
    parts = [part_of(manifest, schedule, runs) for schedule, runs in group(rows).items()]
    plain = [part for part in parts if "sweep" not in manifest["schedules"].get(part.schedule, {})]
    return write_sentences(plain or parts, _corrected(plain or parts))


def _corrected(parts: Sequence[ScheduleRuns]) -> list[tuple[Comparison, float]]:
    """All comparisons, each with its p-value after Holm's correction."""
    comparisons = [one for part in parts for one in compare(*part)]
    return list(zip(comparisons, correct(comparisons), strict=True))


def _heading(manifest: Mapping[str, Any], part: ScheduleRuns) -> str:
    known = manifest["schedules"].get(part.schedule, {})
    control = ", a control: left out of rankings" if known.get("control") else ""
    seeds = len(next(iter(part.players.runs.values())).seeds)
    return (
        f"{part.schedule} ({known.get('env')}, {known.get('visibility')} drift{control}): {part.measure.name}, "
        f"{seeds} {'instance' if seeds == 1 else 'instances'}{_stages(known)}"
    )


def _stages(known: Mapping[str, Any]) -> str:
    """The construction, and whether memory is frozen in the test, where that is not the default."""
    text = ""
    construct = known.get("construct")
    if construct is not None:
        where = "the same" if construct.get("where") == "same" else "other"
        epochs = construct.get("epochs", 1)
        text += f"; before the test {construct['episodes']} {where} tasks"
        text += f" in {epochs} epochs" if epochs > 1 else ""
        text += f", played by {construct['policy']['name']}" if "policy" in construct else ""
    return text + ("; memory frozen in the test" if known.get("learning") == "frozen" else "")


def _sweeps(manifest: Mapping[str, Any], parts: Sequence[ScheduleRuns]) -> list[ReportSection]:
    """The overview of each sweep."""
    found: dict[tuple[str, str], list[tuple[Any, ScheduleRuns]]] = {}
    for part in parts:
        sweep = manifest["schedules"].get(part.schedule, {}).get("sweep")
        if sweep is not None:
            found.setdefault((sweep["of"], sweep["path"]), []).append((sweep["value"], part))
    return [
        ReportSection(f"{schedule} by {path.rpartition('.')[2]}", tabulate_sweep(values, path), [])
        for (schedule, path), values in found.items()
    ]


def to_text(manifest: Mapping[str, Any], sections: Sequence[ReportSection], sentences: Sequence[str] = ()) -> str:
    """The report as Markdown.

    Args:
        manifest: what was played.
        sections: the tables.
        sentences: the run in a few sentences.
    """
    experiment = manifest["experiment"]
    lines = [f"# {manifest['name']}", ""]
    if experiment.get("about"):
        lines += [experiment["about"][0].upper() + experiment["about"][1:] + ".", ""]
    lines += [*(f"- {sentence}" for sentence in sentences), *([""] if sentences else [])]
    for section in sections:
        lines += [f"## {section.heading}", ""]
        for table in section.tables + section.more:
            lines += [to_markdown(table), ""]
    lines += ["## How to read this", "", *(f"- {line}" for line in LEGEND), ""]
    lines += ["## Configuration", ""]
    lines += [f"- Versions: {', '.join(f'{name} {number}' for name, number in manifest['versions'].items())}"]
    lines += [f"- Seeds: {', '.join(map(str, experiment['seeds']))}"]
    lines += [
        f"- {name}: {schedule['env']}, {schedule['episodes']} episodes, hash {schedule['hash']}"
        for name, schedule in manifest["schedules"].items()
    ]
    lines += [f"- Configuration (hash {manifest['config_hash']}):", "", "```json"]
    lines += [json.dumps(experiment, indent=2, ensure_ascii=False), "```", ""]
    return "\n".join(lines)

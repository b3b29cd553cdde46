"""Tables of stored lines of the experiments whose agents call tools: `tools`, `edv-tau2` and that of the repository.

* `STUDIES` - where the lines stand, and how agents are called
* `write_results` - fills the tables of the pages
* `render_results` - the pages with the tables that the lines give
* `tabulate_schedules`, `tabulate_calls` - by agent and schedule, the score after the first drift, and the calls
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from drift_agents.analysis.evidence import SUFFIX, EvidenceTable, Key, read_evidence
from drift_agents.analysis.leaderboard import describe_standings, name_of, tabulate_standings
from drift_agents.analysis.ranking import rank_agents
from drift_agents.analysis.table import MISSING, Table, format_estimate, to_markdown
from drift_agents.experiment.folder import write_text

from drift_envs.metrics import bootstrap
from research.verify_map.pages import BOARD, ROOT, fill_page

PAGES: Mapping[str, Sequence[str]] = {
    "docs/research/tools_results.md": (),
    BOARD: ("board",),
    "docs/memories/edv.md": ("coverage",),
    "docs/research/coders.md": tuple(
        f"coders-{name}" for name in ("evidence", "score", "first", "rerun", "memory", "answers")
    ),
}
"""By page, its tables that other modules fill."""


class ToolStudy(NamedTuple):
    """An experiment with stored lines.

    Args:
        evidence: the folder of the lines.
        names: what its agents are called in tables, by the labels of their parts.
    """

    evidence: str
    names: Mapping[Key, str]

    @property
    def rows(self) -> dict[Key, str]:
        """The agents and those references that are agents, in the order of the rows."""
        realigned = {
            (memory, "oracle_realign", *rest): f"{name}, oracle realign"
            for (memory, verifier, *rest), name in self.names.items()
            if memory != "none" and verifier == "none"
        }
        return {**self.names, **realigned}


STUDIES: Mapping[str, ToolStudy] = {
    "tools": ToolStudy(
        "research/results/tools",
        {
            ("none", "none", "direct", "solo", "planner"): "no memory",
            ("vanilla", "none", "direct", "solo", "planner"): "plain",
            ("vanilla(k=1, order=newest)", "none", "direct", "solo", "planner"): "newest one",
            ("vanilla", "overwrite", "direct", "solo", "planner"): "overwrite",
            ("vanilla", "forget", "direct", "solo", "planner"): "forget(2)",
            ("vanilla", "glove", "direct", "solo", "planner"): "GLOVE, in a copy",
            ("vanilla", "glove(prober=replay_live)", "direct", "solo", "planner"): "GLOVE, at a price",
            ("vanilla", "none", "direct", "judge", "planner"): "team with a judge",
            ("vanilla", "none", "direct", "router", "planner"): "team with a router",
            ("consensus", "none", "direct", "edv", "planner"): "EDV's team, one player",
        },
    ),
    "tau2": ToolStudy(
        "research/results/tau2",
        {
            ("none", "none", "direct", "solo", "planner"): "no memory",
            ("vanilla", "none", "direct", "solo", "planner"): "plain",
            ("vanilla", "glove", "direct", "solo", "planner"): "plain, GLOVE",
            ("vanilla", "none", "direct", "judge", "planner"): "team with a judge",
            ("vanilla", "glove", "direct", "judge", "planner"): "team with a judge, GLOVE",
            ("vanilla", "none", "direct", "router", "planner"): "team with a router",
            ("vanilla", "glove", "direct", "router", "planner"): "team with a router, GLOVE",
            ("consensus", "none", "direct", "edv", "planner"): "EDV's team",
            ("consensus", "glove", "direct", "edv", "planner"): "EDV's team, GLOVE",
        },
    ),
    "repository": ToolStudy(
        "research/results/repository",
        {
            ("none", "none", "direct", "solo", "planner"): "no memory",
            **{
                (memory, verifier, "direct", "solo", "planner"): f"{name}{rule}"
                for memory, name in (
                    ("vanilla", "oldest five"),
                    ("vanilla(k=1, order=newest)", "newest one"),
                    ("memory_bank", "MemoryBank"),
                    ("voyager", "Voyager"),
                    ("generative_agents", "Generative Agents"),
                )
                for verifier, rule in (
                    ("none", ""),
                    ("overwrite", ", overwrite"),
                    ("forget", ", forget(2)"),
                    ("glove", ", GLOVE"),
                )
            },
        },
    ),
}
"""By the name with which those of its tables begin."""


def write_results(root: Path = ROOT) -> list[Path]:
    """Fill the tables of the pages from the lines of `STUDIES`; those of a study without lines are kept.

    Returns:
        The pages.

    Raises:
        EvidenceError: if a page names an unknown table, or the lines lack what a table needs.
        ExperimentError: if a file cannot be written.
    """
    pages = render_results(root)
    for path, text in pages.items():
        write_text(path, text)
    return list(pages)


def render_results(root: Path = ROOT) -> dict[Path, str]:
    """The pages with the tables that the lines give.

    Raises:
        EvidenceError: if a page names an unknown table, or the lines lack what a table needs.
    """
    tables: dict[str, str] = {}
    missing: list[str] = []
    for name, study in STUDIES.items():
        if any((root / study.evidence).glob(f"*{SUFFIX}")):
            tables |= make_tables(read_evidence([root / study.evidence]), name)
        else:
            missing += [f"{name}-{kind}" for kind in ("evidence", "board", "schedules", "calls")]
    return {
        root / page: fill_page((root / page).read_text("utf-8"), tables, page, (*kept, *missing))
        for page, kept in PAGES.items()
    }


def make_tables(evidence: EvidenceTable, study: str) -> dict[str, str]:
    """All tables of a study as Markdown, by name.

    Args:
        evidence: the lines.
        study: its name.

    Raises:
        EvidenceError: if there is no instance that all agents played.
    """
    standings, rows = rank_agents(evidence), STUDIES[study].rows
    counts = f"{len(evidence.cells):,} cells, {len(evidence.episodes):,} episodes, drift-envs {evidence.version}."
    return {
        f"{study}-evidence": f"{describe_standings(standings)} {counts}",
        f"{study}-board": to_markdown(tabulate_standings(standings, rows)),
        f"{study}-schedules": to_markdown(tabulate_schedules(evidence, rows)),
        f"{study}-calls": to_markdown(tabulate_calls(evidence, rows)),
    }


def tabulate_schedules(evidence: EvidenceTable, rows: Mapping[Key, str]) -> Table:
    """By agent and schedule, the mean score after the first drift in percent, with a 95 % interval over instances.

    Schedules without a drift have the mean over all episodes.

    Args:
        evidence: the lines.
        rows: names of agents, in their order.
    """
    cells = _cells_of(evidence)
    is_after = evidence.episodes["phase"].to_numpy() > 0
    is_after |= (np.bincount(cells, is_after) == 0)[cells]
    scores = 100 * evidence.episodes["score"][is_after]
    return _tabulate(evidence, scores.groupby(cells[is_after]).mean(), rows)


def tabulate_calls(evidence: EvidenceTable, rows: Mapping[Key, str]) -> Table:
    """By agent and schedule, the mean number of calls an episode with those of probes, likewise.

    Args:
        evidence: the lines.
        rows: names of agents, in their order.
    """
    calls = evidence.episodes["steps"] + evidence.episodes["probe_steps"]
    return _tabulate(evidence, calls.groupby(_cells_of(evidence)).mean(), rows)


def _cells_of(evidence: EvidenceTable) -> np.ndarray:
    """The number of the cell of every episode."""
    return np.repeat(np.arange(len(evidence.cells)), evidence.cells["episodes"])


def _tabulate(evidence: EvidenceTable, values: pd.Series, rows: Mapping[Key, str]) -> Table:
    frame = evidence.cells.assign(agent=evidence.keys, value=values)
    schedules = sorted(set(frame["schedule"]))
    table = Table("", ("agent", *(name.removeprefix("tools/").removeprefix("repository/") for name in schedules)))
    order = {key: place for place, key in enumerate(rows)}
    agents = sorted(
        set(frame["agent"]),
        key=lambda key: (evidence.players[key]["reference"] is not None, order.get(key, len(order)), key),
    )
    for agent in agents:
        cells = []
        for schedule in schedules:
            of_cell = frame[(frame["agent"] == agent) & (frame["schedule"] == schedule)]["value"].dropna()
            cells.append(format_estimate(bootstrap(of_cell), 1) if len(of_cell) else MISSING)
        is_reference = evidence.players[agent]["reference"] is not None
        table.add(rows.get(agent) or name_of(agent), *cells, reference=is_reference)
    return table

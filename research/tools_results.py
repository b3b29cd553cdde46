"""The tables of docs/research/tools_results.md and its rows of the board, from stored lines of the experiment `tools`.

* `write_results` - fills the tables of the pages
* `render_results` - the pages with the tables that the lines give
* `tabulate_schedules`, `tabulate_calls` - by agent and schedule, the score after the first drift, and the calls
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from drift_agents.analysis.evidence import SUFFIX, EvidenceTable, Key, read_evidence
from drift_agents.analysis.leaderboard import describe_standings, name_of, tabulate_standings
from drift_agents.analysis.ranking import rank_agents
from drift_agents.analysis.table import MISSING, Table, format_estimate, to_markdown
from drift_agents.experiment.folder import write_text

from drift_envs.metrics import bootstrap
from research.verify_map.pages import BOARD, ROOT, fill_page

PAGE, EVIDENCE = "docs/research/tools_results.md", "research/results/tools"
PAGES: Mapping[str, Sequence[str]] = {PAGE: (), BOARD: ("board",)}
"""By page, its tables that other modules fill."""

NAMES: Mapping[Key, str] = {
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
}
"""The agents of the experiment, by the labels of their parts."""

_REALIGNED: Mapping[Key, str] = {
    (memory, "oracle_realign", *rest): f"{name}, oracle realign"
    for (memory, verifier, *rest), name in NAMES.items()
    if memory != "none" and verifier == "none"
}
_ROWS = {**NAMES, **_REALIGNED}
"""The agents and those references that are agents, in the order of the rows."""


def write_results(root: Path = ROOT) -> list[Path]:
    """Fill the tables of the pages from the lines in `EVIDENCE`; without lines they are empty.

    Args:
        root: of the repository.

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

    Args:
        root: of the repository.

    Raises:
        EvidenceError: if a page names an unknown table, or the lines lack what a table needs.
    """
    tables = None
    if any((root / EVIDENCE).glob(f"*{SUFFIX}")):
        tables = make_tables(read_evidence([root / EVIDENCE]))
    return {
        root / page: fill_page((root / page).read_text("utf-8"), tables, page, kept) for page, kept in PAGES.items()
    }


def make_tables(evidence: EvidenceTable) -> dict[str, str]:
    """All tables as Markdown, by name.

    Args:
        evidence: the lines.

    Raises:
        EvidenceError: if there is no instance that all agents played.
    """
    standings = rank_agents(evidence)
    counts = f"{len(evidence.cells):,} cells, {len(evidence.episodes):,} episodes, drift-envs {evidence.version}."
    return {
        "tools-evidence": f"{describe_standings(standings)} {counts}",
        "tools-board": to_markdown(tabulate_standings(standings, _ROWS)),
        "tools-schedules": to_markdown(tabulate_schedules(evidence)),
        "tools-calls": to_markdown(tabulate_calls(evidence)),
    }


def tabulate_schedules(evidence: EvidenceTable) -> Table:
    """By agent and schedule, the mean score after the first drift in percent, with a 95 % interval over instances.

    Args:
        evidence: the lines.
    """
    is_after = evidence.episodes["phase"].to_numpy() > 0
    return _tabulate(evidence, 100 * evidence.episodes["score"][is_after].groupby(_cells_of(evidence)[is_after]).mean())


def tabulate_calls(evidence: EvidenceTable) -> Table:
    """By agent and schedule, the mean number of calls an episode with those of probes, likewise.

    Args:
        evidence: the lines.
    """
    calls = evidence.episodes["steps"] + evidence.episodes["probe_steps"]
    return _tabulate(evidence, calls.groupby(_cells_of(evidence)).mean())


def _cells_of(evidence: EvidenceTable) -> np.ndarray:
    """The number of the cell of every episode."""
    return np.repeat(np.arange(len(evidence.cells)), evidence.cells["episodes"])


def _tabulate(evidence: EvidenceTable, values: pd.Series) -> Table:
    frame = evidence.cells.assign(agent=evidence.keys, value=values)
    schedules = sorted(set(frame["schedule"]))
    table = Table("", ("agent", *(name.removeprefix("tools/") for name in schedules)))
    agents = sorted(set(frame["agent"]), key=lambda key: (evidence.players[key]["reference"] is not None, _order(key)))
    for agent in agents:
        cells = []
        for schedule in schedules:
            of_cell = frame[(frame["agent"] == agent) & (frame["schedule"] == schedule)]["value"].dropna()
            cells.append(format_estimate(bootstrap(of_cell), 1) if len(of_cell) else MISSING)
        is_reference = evidence.players[agent]["reference"] is not None
        table.add(_ROWS.get(agent) or name_of(agent), *cells, reference=is_reference)
    return table


def _order(key: Key) -> tuple[int, Key]:
    """Agents with a name come in the order of `_ROWS`."""
    return (list(_ROWS).index(key) if key in _ROWS else len(_ROWS), key)

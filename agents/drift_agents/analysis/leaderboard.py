"""The leaderboard: agents ranked over all schedules of runs, as one page, and as data for `--json`.

The figures are those of `drift_agents.analysis.ranking`. Equal lines give equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drift_agents.analysis.evidence import AXES, EvidenceTable, Key, read_evidence
from drift_agents.analysis.names import (
    ALONE,
    MEMORY_NAMES,
    REFERENCE_NAMES,
    VERIFIER_NAMES,
    display_name,
    name_service,
)
from drift_agents.analysis.price import AREA, UNLIMITED
from drift_agents.analysis.ranking import BOARD, Standing, Standings, rank_agents
from drift_agents.analysis.resampling import RESAMPLES
from drift_agents.analysis.rows import describe_interval
from drift_agents.analysis.table import MISSING, Table, format_difference, format_estimate, format_plain, to_markdown
from drift_agents.experiment.folder import write_text

DEFAULTS = {"verifier": "none", "controller": "direct", "team": "solo"}
"""Default parts, which names leave out."""

LEGEND = (
    f"**x1, x1.5, {UNLIMITED}**: success after the first drift in percent, within so many times the interactions that "
    "the clairvoyant policy takes for the same episodes, and without a limit; probes are interactions, and an episode "
    "counts if it ended within the budget. Without a drift all episodes count. Where a drift is implicit, the score "
    "takes the place of success. All figures are means over schedules of means over instances.",
    "**Area**: the mean success over the budgets from x1 to x3. It gives the **rank**; in parentheses stand the ranks "
    f"that 95 % of {RESAMPLES:,} resamples of the instances give, all agents and schedules resampled alike. The "
    "interval says nothing about other schedules.",
    "**Gain**: area minus that of the agent without memory, over the same instances (as in Continual Learning Bench). "
    "**Probes**: their share of all interactions, percent.",
    "One row with several names: these agents played the same episodes with the same probes. References are privileged "
    "and have no rank.",
)
"""How to read the table."""


def write_leaderboard(sources: Sequence[Path], path: Path, charge: int = 0) -> Path:
    """Read lines and write their leaderboard.

    Args:
        sources: folders of finished runs, Parquet files, and folders of Parquet files.
        charge: interactions that a failed episode is charged.

    Returns:
        The page's path.

    Raises:
        EvidenceError: if the lines cannot be read together, or there is nothing to compare.
        ExperimentError: if the page cannot be written.
    """
    evidence = read_evidence(sources)
    write_text(path, to_page(evidence, rank_agents(evidence, charge), charge))
    return path


def to_page(evidence: EvidenceTable, standings: Standings, charge: int = 0) -> str:
    """The page as Markdown.

    Args:
        charge: interactions that a failed episode was charged.
    """
    hashes = ", ".join(f"`{name}` ({evidence.schedules[name]['hash']})" for name in standings.schedules)
    lines = [
        f"# Leaderboard ({BOARD})",
        "",
        describe_standings(standings, charge),
        "",
        to_markdown(tabulate_standings(standings)),
        "",
        *(
            f"{name_of(key)} played the same episodes as {', '.join(map(name_of, others))}.\n"
            for key, others in standings.same.items()
            if len(others) > 1
        ),
        "## How to read this",
        "",
        *(f"- {line}" for line in LEGEND),
        f"- Played with drift-envs {evidence.version}; schedules with their hashes: {hashes}.",
        "",
    ]
    return "\n".join(lines)


def describe_standings(standings: Standings, charge: int = 0) -> str:
    """What was compared, in a few sentences."""
    text = (
        f"{len(standings.ranked)} agents on {len(standings.schedules)} schedules that are no controls, "
        f"{standings.instances:,} instances."
    )
    if charge:
        text += f" A failed episode is charged {charge} further interactions."
    if standings.left_out:
        missing = ", ".join(f"{count} of `{schedule}`" for schedule, count in standings.left_out.items())
        text += f" Left out, since not every agent played them: {missing}."
    if standings.measure == UNLIMITED:
        text += " The clairvoyant, whose interactions are the budget, did not play: success without a limit ranks."
    return text


def name_of(key: Key) -> str:
    """The display name of an agent: its memory, and the parts that are not the default.

    Example:
        >>> name_of(("vanilla", "glove", "direct", "solo", "planner"))
        'Vanilla + GLOVE'
        >>> name_of(("adamem", "none", "adamem(effort=high)", "solo", "planner"))
        'AdaMEM, controller adamem(effort=high)'
    """
    memory, verifier, controller, team, policy = key
    if policy in ALONE:
        return ALONE[policy]
    text = display_name(name_service(memory), MEMORY_NAMES)
    if verifier in REFERENCE_NAMES:
        text += f", {REFERENCE_NAMES[verifier]}"
    elif verifier != DEFAULTS["verifier"]:
        text += f" + {display_name(verifier, VERIFIER_NAMES)}"
    for axis, part in (("controller", controller), ("team", team)):
        if part != DEFAULTS[axis]:
            text += f", {axis} {part}"
    return text


def join_names(names: Sequence[str]) -> str:
    """Names of agents that played the same episodes, short enough for two lines of a cell.

    Example:
        >>> join_names(["A", "B"]), join_names(["A", "B", "C"])
        ('A = B', 'A = 2 others')
    """
    return " = ".join(names) if len(names) < 3 else f"{names[0]} = {len(names) - 1} others"


def row_names(standings: Standings, names: Mapping[Key, str] | None = None) -> dict[Key, str]:
    """The agents that have a row, with their names: those who played the same episodes share the first one's.

    Args:
        names: names of some agents that replace those of their parts.
    """
    policies = {one.key[AXES.index("policy")] for one in (*standings.ranked, *standings.references)}
    several = len(policies.difference(ALONE)) > 1
    called = {
        one.key: (names or {}).get(one.key)
        or name_of(one.key) + (f", {one.key[-1]}" if several and one.key[-1] not in ALONE else "")
        for one in (*standings.ranked, *standings.references)
    }
    others = {key for group in standings.same.values() for key in group}
    return {
        key: join_names([called[one] for one in (key, *standings.same.get(key, ()))])
        for key in called
        if key not in others
    }


def tabulate_standings(standings: Standings, names: Mapping[Key, str] | None = None) -> Table:
    """The agents as a table of at most eight columns.

    Args:
        names: names of some agents that replace those of their parts.
    """
    table = Table("", ("agent", "rank", "area", "x1", "x1.5", UNLIMITED, "gain", "probes, %"))
    rows = row_names(standings, names)
    ranked = [one for one in standings.ranked if one.key in rows]
    for one in (*ranked, *standings.references):
        table.add(
            rows[one.key],
            MISSING if one.reference else _format_rank(standings.rank(one), one),
            MISSING if standings.measure != AREA else format_estimate(one.score, 1),
            *(format_plain(one.success[measure], 1) for measure in ("x1", "x1.5", UNLIMITED)),
            MISSING if one.gain is None else format_difference(one.gain, 1).rstrip("*"),
            format_plain(one.probes, 1),
            reference=one.reference,
        )
    return table.used()


def _format_rank(rank: int, standing: Standing) -> str:
    low, high = standing.ranks
    return f"{rank} ({low}-{high})" if low < high else str(rank)


def describe_board(sources: Sequence[Path], charge: int = 0) -> dict[str, Any]:
    """The agents of several runs, ranked; the references after them.

    Args:
        sources: folders of finished runs, Parquet files, and folders of Parquet files.
        charge: interactions that a failed episode is charged.

    Raises:
        EvidenceError: if the lines cannot be read together, or there is nothing to compare.
    """
    evidence = read_evidence(sources)
    standings = rank_agents(evidence, charge)
    return {
        "board": BOARD,
        "charge": charge,
        "measure": standings.measure,
        "schedules": [{"name": name, "hash": evidence.schedules[name]["hash"]} for name in standings.schedules],
        "instances": standings.instances,
        "left_out": dict(standings.left_out),
        "agents": [_describe_standing(one, standings) for one in (*standings.ranked, *standings.references)],
        "same_episodes": [[name_of(one) for one in (key, *others)] for key, others in standings.same.items()],
    }


def _describe_standing(standing: Standing, standings: Standings) -> dict[str, Any]:
    return {
        "name": name_of(standing.key),
        **dict(zip(AXES, standing.key, strict=True)),
        "reference": standing.reference,
        "supervision": standing.supervision,
        "rank": None if standing.reference else standings.rank(standing),
        "ranks": None if standing.reference else list(standing.ranks),
        "score": describe_interval(standing.score),
        "success": dict(standing.success),
        "gain": None if standing.gain is None else describe_interval(standing.gain),
        "probes": standing.probes,
        "chain": standing.chain,
    }

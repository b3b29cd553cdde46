"""The table of `drift-agents check-coder`: before and after the first drift, and what memory is worth."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.analysis.rows import Measurement, Player, Row, Runs, describe_interval, difference, estimate, mean_of
from drift_agents.analysis.table import MISSING, Table, format_difference, format_estimate, format_plain
from drift_agents.errors import ExperimentError
from drift_agents.experiment.coder.agents import CONTROL
from drift_agents.experiment.coder.lifetime import log_of
from drift_agents.experiment.folder import read_manifest
from drift_agents.experiment.own_lines import OWN_LOOP
from drift_envs.metrics import Estimate

BEFORE, AFTER = "before", "after"


def stale_share(rows: Sequence[Row]) -> float:
    """The percentage of kept statements that are not the present convention alone."""
    said = sum(row["memory_size"] for row in rows)
    return 100 * (said - sum(row["present_statements"] for row in rows)) / said if said else math.nan


class Figure(NamedTuple):
    """A figure of episodes.

    Args:
        head: of its column.
        measure: its mean over episodes.
        digits: after the point.
        has_interval: whether the table shows its interval; those of all would make it too wide, and stand in the data.
    """

    head: str
    measure: Measurement
    digits: int = 0
    has_interval: bool = False


MEASURES: Mapping[str, Figure] = {
    "first_try": Figure("first\ntry %", mean_of("first_try", 100), 0, True),
    "one_rerun": Figure("one\nrerun %", mean_of("one_rerun", 100)),
    "success": Figure("solved\n%", mean_of("success", 100)),
    "score": Figure("score\n%", mean_of("score", 100), 0, True),
    "corrections": Figure("correc-\ntions", mean_of("corrections"), 2),
    "reruns": Figure("reruns", mean_of("reruns"), 2),
    "stale": Figure("stale\n%", stale_share),
    "still_believed": Figure("be-\nlieved %", mean_of("still_believed", 100)),
    "seconds": Figure("seconds", mean_of("seconds"), 1),
    "tokens_in": Figure("tokens\nin", mean_of("tokens_in")),
    "tokens_out": Figure("tokens\nout", mean_of("tokens_out")),
    "cost": Figure("cost", mean_of("cost"), 3),
}
"""Figures an episode, by name."""

LIMITS = ("success", "score", "first_try", "one_rerun")
"""What `--fail-below` takes, as shares of 1."""


def read_coders(folder: Path) -> dict[str, Runs]:
    """What each agent of a run has played.

    Raises:
        ExperimentError: if the folder holds no run of coding agents.
    """
    manifest = read_manifest(folder)
    if "coders" not in manifest["experiment"]:
        raise ExperimentError(f"{folder}: holds no run of `check-coder`")
    found = {}
    for name in (player["memory"] for player in manifest["players"]):
        try:
            lines = log_of(folder, name).read_text("utf-8").splitlines()
        except OSError as error:
            raise ExperimentError(f"{error.filename}: cannot be read: {error.strerror}") from error
        found[name] = group_lines(name, map(json.loads, lines))
    return found


def group_lines(name: str, lines: Iterable[Row]) -> Runs:
    """The lines of an agent by repository."""
    rows: dict[int, list[Row]] = {}
    for line in lines:
        rows.setdefault(line["seed"], []).append({**dict.fromkeys(MEASURES), **line})
    return Runs(Player(name, "none", OWN_LOOP), tuple(rows), tuple(map(tuple, rows.values())), is_one_run=False)


def measure(runs: Runs, name: str) -> Estimate:
    """A figure of `MEASURES` with its interval over repositories."""
    return estimate(runs.per_instance(MEASURES[name].measure))


def split_runs(runs: Runs) -> dict[str, Runs]:
    """What was played before and after the first drift; a part without episodes is left out."""
    parts = {BEFORE: runs.phase("source"), AFTER: runs.without("source")}
    return {part: some for part, some in parts.items() if any(some.rows)}


def compare_controls(coders: Mapping[str, Runs]) -> Iterator[tuple[str, str, dict[str, Estimate]]]:
    """Agent, part, and what solved issues and score are with memory minus without it, in pairs of repositories."""
    for name, runs in coders.items():
        others = split_runs(coders[f"{name}{CONTROL}"]) if f"{name}{CONTROL}" in coders else {}
        for part, some in split_runs(runs).items():
            if part in others:
                measures = {one: MEASURES[one].measure for one in ("success", "score")}
                yield name, part, {one: difference(some, others[part], of) for one, of in measures.items()}


def describe_coders(coders: Mapping[str, Runs]) -> dict[str, Any]:
    """The figures as plain data: of each agent in each part, and the worth of memory where there is a control."""
    agents = {
        name: {
            part: {one: describe_interval(found) for one in MEASURES if (found := measure(some, one)).n}
            for part, some in split_runs(runs).items()
        }
        for name, runs in coders.items()
    }
    worth: dict[str, Any] = {}
    for name, part, gains in compare_controls(coders):
        worth.setdefault(name, {})[part] = {one: describe_interval(gain) for one, gain in gains.items()}
    return {"agents": agents, "worth": worth}


def tabulate_coders(coders: Mapping[str, Runs]) -> list[Table]:
    """A table for each part of the lifetime, and one of what memory is worth where there is a control."""
    tables = []
    shown = {name: one for name, one in MEASURES.items() if any(measure(runs, name).n for runs in coders.values())}
    for part in (BEFORE, AFTER):
        found = {name: some for name, runs in coders.items() if (some := split_runs(runs).get(part))}
        if found:
            episodes = max(len(rows) for some in found.values() for rows in some.rows)
            title = f"{part.title()} the first drift: {episodes} episode{'s' if episodes > 1 else ''}"
            tables.append(Table(title, ("agent", *(one.head for one in shown.values()))))
            for name, some in found.items():
                tables[-1].add(name, *(_write(measure(some, key), one) for key, one in shown.items()))
    worth = Table("With memory minus without it", ("agent", "solved %", "score %"))
    for name, part, gains in compare_controls(coders):
        worth.add(f"{name}, {part}", *map(format_difference, gains.values()))
    return [*tables, worth] if worth.rows else tables


def _write(value: Estimate, figure: Figure) -> str:
    if figure.has_interval:
        return format_estimate(value, figure.digits)
    return format_plain(value.mean, figure.digits) if value.n else MISSING

"""The table of `drift-agents check-coder`: before and after the first drift, and what memory is worth."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from drift_agents.analysis.runs import describe_interval, estimate
from drift_agents.errors import ExperimentError
from drift_agents.experiment.coder.runner import CONTROL, log_of
from drift_agents.experiment.folder import read_manifest
from drift_envs.metrics import Estimate

Line = Mapping[str, Any]

BEFORE, AFTER = "before", "after"


def mean_of_field(name: str, scale: float = 1.0) -> Callable[[Sequence[Line]], float]:
    """The mean of a field over lines that have it."""

    def measure(lines: Sequence[Line]) -> float:
        values = [scale * float(line[name]) for line in lines if line.get(name) is not None]
        return sum(values) / len(values) if values else math.nan

    return measure


def stale_share(lines: Sequence[Line]) -> float:
    """The percentage of kept statements that are not the present convention alone."""
    said = sum(line["memory_size"] for line in lines)
    present = sum(line["present_statements"] for line in lines)
    return 100 * (said - present) / said if said else math.nan


MEASURES: Mapping[str, tuple[str, Callable[[Sequence[Line]], float]]] = {
    "first_try": ("first\ntry %", mean_of_field("first_try", 100)),
    "one_rerun": ("one\nrerun %", mean_of_field("one_rerun", 100)),
    "success": ("solved\n%", mean_of_field("success", 100)),
    "score": ("score\n%", mean_of_field("score", 100)),
    "corrections": ("correc-\ntions", mean_of_field("corrections")),
    "reruns": ("reruns", mean_of_field("reruns")),
    "stale": ("stale\n%", stale_share),
    "still_believed": ("be-\nlieved %", mean_of_field("still_believed", 100)),
    "seconds": ("seconds", mean_of_field("seconds")),
    "tokens_in": ("tokens\nin", mean_of_field("tokens_in")),
    "tokens_out": ("tokens\nout", mean_of_field("tokens_out")),
    "cost": ("cost", mean_of_field("cost")),
}
"""Figures an episode, by name: the head of the column, and the mean of lines."""

_WITH_INTERVALS = ("first_try", "score")
"""Figures whose intervals stand in the table; those of the others would make it too wide, and stand in the data."""

LIMITS = ("success", "score", "first_try", "one_rerun")
"""What `--fail-below` takes, as shares of 1."""


def read_coders(folder: Path) -> dict[str, list[Line]]:
    """The lines of each agent of a run.

    Raises:
        ExperimentError: if the folder holds no run of coding agents.
    """
    manifest = read_manifest(folder)
    if "coders" not in manifest["experiment"]:
        raise ExperimentError(f"{folder}: holds no run of `check-coder`")
    found = {}
    for player in manifest["players"]:
        try:
            text = log_of(folder, player["memory"]).read_text("utf-8")
        except OSError as error:
            raise ExperimentError(f"{error.filename}: cannot be read: {error.strerror}") from error
        found[player["memory"]] = [json.loads(line) for line in text.splitlines()]
    return found


def measure(lines: Sequence[Line], name: str) -> Estimate:
    """A figure with its interval over repositories.

    Args:
        lines: of an agent.
        name: one of `MEASURES`.
    """
    return estimate([MEASURES[name][1](some) for some in _by_seed(lines).values()])


def _by_seed(lines: Sequence[Line]) -> dict[int, list[Line]]:
    found: dict[int, list[Line]] = {}
    for line in lines:
        found.setdefault(line["seed"], []).append(line)
    return found


def split_lines(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The lines before and after the first drift; a part without lines is left out."""
    parts: dict[str, list[Line]] = {BEFORE: [], AFTER: []}
    for line in lines:
        parts[BEFORE if line["phase"] == "source" else AFTER].append(line)
    return {part: some for part, some in parts.items() if some}


def compare_control(lines: Sequence[Line], control: Sequence[Line], name: str) -> Estimate:
    """A figure with memory minus the one without it, in pairs of repositories, with its interval."""
    ours, theirs = (
        {seed: MEASURES[name][1](some) for seed, some in _by_seed(played).items()} for played in (lines, control)
    )
    return estimate([value - theirs[seed] for seed, value in ours.items() if seed in theirs])


def describe_coders(coders: Mapping[str, Sequence[Line]]) -> dict[str, Any]:
    """The figures as plain data: of each agent in each part, and the worth of memory where there is a control."""
    agents = {
        name: {
            part: {one: describe_interval(measure(some, one)) for one in MEASURES if measure(some, one).n}
            for part, some in split_lines(lines).items()
        }
        for name, lines in coders.items()
    }
    worth = {
        name: {
            part: {one: describe_interval(compare_control(some, other[part], one)) for one in ("success", "score")}
            for part, some in split_lines(lines).items()
        }
        for name, lines in coders.items()
        if (other := split_lines(coders.get(f"{name}{CONTROL}", [])))
    }
    return {"agents": agents, "worth": worth}


def tabulate_coders(coders: Mapping[str, Sequence[Line]]) -> list[Table]:
    """A table for each part of the lifetime, and one of what memory is worth where there is a control."""
    tables = []
    shown = [name for name in MEASURES if any(measure(lines, name).n for lines in coders.values())]
    for part in (BEFORE, AFTER):
        parts = {name: split_lines(lines).get(part, []) for name, lines in coders.items()}
        if not any(parts.values()):
            continue
        first = next(iter(filter(None, parts.values())))
        episodes = len(first) // len(_by_seed(first))
        table = _start_table(
            f"{part.title()} the first drift: {episodes} episodes", [MEASURES[one][0] for one in shown]
        )
        for name, lines in parts.items():
            table.add_row(name, *(_write(measure(lines, one), one in _WITH_INTERVALS) for one in shown))
        tables.append(table)
    if worth := describe_coders(coders)["worth"]:
        table = _start_table("With memory minus without it", ["solved %", "score %"])
        for name, found in worth.items():
            for part in found:
                other = split_lines(coders[f"{name}{CONTROL}"])[part]
                values = [compare_control(split_lines(coders[name])[part], other, one) for one in ("success", "score")]
                table.add_row(f"{name}, {part}", *map(_write, values))
        tables.append(table)
    return tables


def _start_table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", padding=(0, 0, 0, 1), box=None)
    table.add_column("agent", overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _write(value: Estimate, has_interval: bool = True) -> str:
    if not value.n:
        return "-"
    mean, low, high = (f"{one:.0f}" if abs(one) >= 10 else f"{one:.2g}" for one in value[:3])
    return f"{mean} [{low}, {high}]" if has_interval and value.n > 1 else mean

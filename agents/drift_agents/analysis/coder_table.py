"""The table of `drift-agents check-coder`: before and after the first drift, and what memory is worth."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.analysis.rows import describe_interval, estimate
from drift_agents.analysis.table import MISSING, Table, format_difference, format_estimate, format_plain
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


class Figure(NamedTuple):
    """A figure of episodes.

    Args:
        head: of its column.
        measure: its mean over lines.
        digits: after the point.
        has_interval: whether the table shows its interval; those of all would make it too wide, and stand in the data.
    """

    head: str
    measure: Callable[[Sequence[Line]], float]
    digits: int = 0
    has_interval: bool = False


MEASURES: Mapping[str, Figure] = {
    "first_try": Figure("first\ntry %", mean_of_field("first_try", 100), 0, True),
    "one_rerun": Figure("one\nrerun %", mean_of_field("one_rerun", 100)),
    "success": Figure("solved\n%", mean_of_field("success", 100)),
    "score": Figure("score\n%", mean_of_field("score", 100), 0, True),
    "corrections": Figure("correc-\ntions", mean_of_field("corrections"), 2),
    "reruns": Figure("reruns", mean_of_field("reruns"), 2),
    "stale": Figure("stale\n%", stale_share),
    "still_believed": Figure("be-\nlieved %", mean_of_field("still_believed", 100)),
    "seconds": Figure("seconds", mean_of_field("seconds"), 1),
    "tokens_in": Figure("tokens\nin", mean_of_field("tokens_in")),
    "tokens_out": Figure("tokens\nout", mean_of_field("tokens_out")),
    "cost": Figure("cost", mean_of_field("cost"), 3),
}
"""Figures an episode, by name."""

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
    return estimate([MEASURES[name].measure(some) for some in _by_seed(lines).values()])


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
        {seed: MEASURES[name].measure(some) for seed, some in _by_seed(played).items()} for played in (lines, control)
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
    shown = {name: MEASURES[name] for name in MEASURES if any(measure(lines, name).n for lines in coders.values())}
    parts = {name: split_lines(lines) for name, lines in coders.items()}
    for part in (BEFORE, AFTER):
        found = {name: lines[part] for name, lines in parts.items() if part in lines}
        if found:
            episodes = max(len(some) // len(_by_seed(some)) for some in found.values())
            title = f"{part.title()} the first drift: {episodes} episodes"
            tables.append(Table(title, ("agent", *(one.head for one in shown.values()))))
            for name, some in found.items():
                tables[-1].add(name, *(_write(measure(some, key), one) for key, one in shown.items()))
    worth = Table("With memory minus without it", ("agent", "solved %", "score %"))
    for name, lines in parts.items():
        for part, others in parts.get(f"{name}{CONTROL}", {}).items():
            gains = [compare_control(lines.get(part, []), others, one) for one in ("success", "score")]
            worth.add(f"{name}, {part}", *(format_difference(one) for one in gains))
    return [*tables, worth] if worth.rows else tables


def _write(value: Estimate, figure: Figure) -> str:
    if figure.has_interval:
        return format_estimate(value, figure.digits)
    return format_plain(value.mean, figure.digits) if value.n else MISSING

"""The command `diff`: what differs between two phases, and the score of a statement about it.

* `describe_difference`, `print_difference` - as data, and in words
* `read_statement`, `print_score` - the score of a statement
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.columns import Columns
from rich.console import Console
from rich.text import Text

from drift_envs.cli.scheduled import ScheduledEnv
from drift_envs.cli.show import draw_maps
from drift_envs.errors import ArgumentError
from drift_envs.metrics import KnobDifference, StatementScore, compare_phases


def describe_difference(scheduled: ScheduledEnv, before: str, after: str) -> dict[str, Any]:
    """What differs between two phases as JSON has it.

    Args:
        scheduled: the schedule.
        before: the id of a phase.
        after: the id of the other one.

    Raises:
        ArgumentError: if there is no such phase.
    """
    return {
        "schedule": scheduled.schedule.name,
        "env": scheduled.env_id,
        "seed": scheduled.timeline.seed,
        "before": before,
        "after": after,
        "changes": [one._asdict() for one in compare_phases(scheduled.timeline, before, after)],
    }


def print_difference(console: Console, scheduled: ScheduledEnv, before: str, after: str) -> None:
    """Print a line for each knob that differs, and the maps side by side.

    Args:
        console: where to print.
        scheduled: the schedule.
        before: the id of a phase.
        after: the id of the other one.

    Raises:
        ArgumentError: if there is no such phase.
    """
    differences: tuple[KnobDifference, ...] = compare_phases(scheduled.timeline, before, after)
    console.print(Text(f"{scheduled.schedule.name}: {before} -> {after}", style="bold"))
    for one in differences:
        console.print(Text(one.words))
    if not differences:
        console.print("nothing differs")
    if any(one.knob == "map" for one in differences):
        timeline = scheduled.timeline
        phases = [timeline.phase_named(name) for name in (before, after)]
        console.print()
        console.print(Columns(list(draw_maps(scheduled, phases)), padding=(0, 3)))


def read_statement(path: Path) -> object:
    """The content of a JSON file.

    Raises:
        ArgumentError: if it cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{path}: is no JSON: {error}") from error


def print_score(console: Console, score: StatementScore) -> None:
    """Print the score of a statement.

    Args:
        console: where to print.
        score: the score.
    """
    for name, value, meaning in (
        ("precision", score.precision, "share of stated knobs that changed"),
        ("recall", score.recall, "share of changed knobs that are stated"),
        ("exact", score.exact, "share of these whose values are right"),
    ):
        console.print(Text(f"{name:<10} {'-' if value is None else f'{value:.2f}':>5}  {meaning}"))
    for knob, share in score.agreement.items():
        console.print(Text(f"{knob}: {share:.0%} of its new value is right"))

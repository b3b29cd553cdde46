"""The commands `show`, `diff` and `severity`: phases with their changes, and how severe drifts are."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_envs.cli.scheduled import ScheduledEnv, read_schedule, table_of
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value, thaw
from drift_envs.metrics import KnobDifference, StatementScore, compare_phases
from drift_envs.oracle import ChangeEffect, measure_drifts
from drift_envs.schedule import NEVER, Phase
from drift_envs.utils.files import write_whole
from drift_envs.wrappers.overlay import describe_change, show_value

FIRST = 6
"""The first phases that are shown unless their number is given."""

MOST = 20
"""The most phases that are shown then, with those of later drifts."""

MEASURED = 10_000
"""Columns of a console in which nothing is broken."""

TILE_STYLES = {"S": "bold cyan", "G": "bold green", "H": "bold red", "F": "dim"}
TILE_SIGNS = {"F": "."}

LEGEND = (
    "table: share of all (state, action) pairs whose response differs from that in the phase before. "
    "optimum: expected score of the best policy. old best: score of the optimal policies of the phase before, with the "
    "most favorable tie-breaks. loss: the share of the optimum that they miss."
)

REPLAYED = "replayed: score of their action sequences, played open-loop."


def print_phases(console: Console, scheduled: ScheduledEnv, count: int | None) -> None:
    """Print the first phases of a schedule.

    Args:
        console: where to print.
        scheduled: the schedule.
        count: how many phases; `None` for `FIRST`, and the first phase of each drift that begins later.
    """
    schedule, phases = scheduled.schedule, _choose(scheduled, count)
    console.print(Text(schedule.name, style="bold"))
    if schedule.description:
        console.print(schedule.description, markup=False)
    facts = [scheduled.env_id, f"clock {schedule.clock}"]
    facts += [schedule.visibility] if schedule.visibility else []
    facts += ["control"] if schedule.control else []
    console.print(Text(", ".join(facts), style="dim"))
    console.print()
    effects = _effects(scheduled, phases)
    rest = _table(scheduled, phases, effects, with_knobs=False)
    longest = max(len(word) for index in range(len(phases)) for word in _knobs(scheduled, phases, index).split())
    if console.measure(rest, options=console.options.update(max_width=MEASURED)).maximum + longest + 2 <= console.width:
        console.print(_table(scheduled, phases, effects, with_knobs=True))
    else:  # the knobs below, where words would be broken
        console.print(rest, "", _knob_table(scheduled, phases))
    if any(one.stop != other.start for one, other in pairwise(phases)):
        console.print(Text("phases between later drifts are left out; --phases N shows the first N", style="dim"))
    if phases[-1].stop != NEVER:
        console.print(Text(f"and more from tick {phases[-1].stop} on; --phases N shows them", style="dim"))
    if "map" in scheduled.timeline.names:
        console.print()
        console.print(Columns(list(draw_maps(scheduled, phases)), padding=(0, 3)))
    if scheduled.oracle is not None and len(phases) > 1:
        is_car = scheduled.oracle.effect(0, 0).replayed is not None
        console.print()
        console.print(Text(f"{LEGEND} {REPLAYED}" if is_car else LEGEND, style="dim"))


def describe_phases(scheduled: ScheduledEnv, count: int | None) -> dict[str, Any]:
    """The first phases of a schedule as JSON has them.

    Args:
        scheduled: the schedule.
        count: how many phases; `None` for `FIRST`, and the first phase of each drift that begins later.

    Returns:
        The schedule with its environment, and for each phase its ticks, its knob values, and what it changes against
        the phase before; `stop` is the first tick after it, `None` of the last one.
    """
    schedule, phases = scheduled.schedule, _choose(scheduled, count)
    effects = _effects(scheduled, phases)
    described: list[dict[str, Any]] = []
    for index, phase in enumerate(phases):
        full = scheduled.full_tick(phase)
        one: dict[str, Any] = {
            "id": phase.id,
            "start": phase.start,
            "stop": None if phase.stop == NEVER else phase.stop,
            "full": full,
            "knobs": {name: thaw(value) for name, value in scheduled.timeline.values(full).items()},
        }
        if effects:
            effect = effects[index]
            one["optimum"] = effect.after
            if index:
                one["change"] = {
                    "table": effect.magnitude,
                    "old_best": effect.carried,
                    "replayed": effect.replayed,
                    "loss": effect.loss,
                }
        described.append(one)
    return {
        "name": schedule.name,
        "description": schedule.description,
        "env": scheduled.env_id,
        "seed": scheduled.timeline.seed,
        "clock": schedule.clock,
        "visibility": schedule.visibility,
        "control": schedule.control,
        "phases": described,
    }


def _effects(scheduled: ScheduledEnv, phases: list[Phase]) -> list[ChangeEffect]:
    """What each phase changes against the one before; nothing without an oracle."""
    if scheduled.oracle is None:
        return []
    full = scheduled.full_tick
    return [scheduled.oracle.effect(full(scheduled.before(phase)), full(phase)) for phase in phases]


def _choose(scheduled: ScheduledEnv, count: int | None) -> list[Phase]:
    """The phases to show."""
    return scheduled.main_phases(FIRST)[:MOST] if count is None else scheduled.phases(count)


def _table(scheduled: ScheduledEnv, phases: list[Phase], effects: list[ChangeEffect], *, with_knobs: bool) -> Table:
    """One row for each phase."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("phase", no_wrap=True)
    table.add_column("ticks", no_wrap=True)
    if with_knobs:
        table.add_column("knobs")
    if effects:
        headings = ["table", "optimum", "old best", "loss"]
        if effects[0].replayed is not None:
            headings.insert(3, "replayed")
        for heading in headings:
            table.add_column(heading, justify="right", no_wrap=True)
    for index, phase in enumerate(phases):
        cells = [phase.id, _ticks(scheduled, phase), *([_knobs(scheduled, phases, index)] if with_knobs else [])]
        if effects:
            effect = effects[index]
            values = [f"{effect.magnitude:.0%}", f"{effect.after:.2f}", f"{effect.carried:.2f}", f"{effect.loss:.0%}"]
            if effect.replayed is not None:
                values.insert(3, f"{effect.replayed:.2f}")
            cells += values if index else ["", values[1], *[""] * (len(values) - 2)]
        table.add_row(*cells)
    return table


def _knob_table(scheduled: ScheduledEnv, phases: list[Phase]) -> Table:
    """The knobs of each phase."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("phase", no_wrap=True)
    table.add_column("knobs", overflow="fold")
    for index, phase in enumerate(phases):
        table.add_row(phase.id, _knobs(scheduled, phases, index))
    return table


def _ticks(scheduled: ScheduledEnv, phase: Phase) -> str:
    """First and last tick, and the first tick of full weight."""
    span = f"{phase.start} -" if phase.stop == NEVER else f"{phase.start} - {phase.stop - 1}"
    full = scheduled.full_tick(phase)
    return span if full == phase.start else f"{span} (full at {full})"


def _knobs(scheduled: ScheduledEnv, phases: list[Phase], index: int) -> str:
    """The values of the first phase, the changes of the others."""
    values = scheduled.timeline.values(scheduled.full_tick(phases[index]))
    if index == 0:
        return ", ".join(_value(name, value) for name, value in values.items()) or "all at their defaults"
    before = scheduled.timeline.values(scheduled.full_tick(scheduled.before(phases[index])))
    changes = [describe_change(name, before[name], values[name]) for name in values if before[name] != values[name]]
    return ", ".join(changes) or "nothing"


def _value(name: str, value: Value) -> str:
    if isinstance(value, tuple) and name == "map":
        return f"{name} {len(value)}x{len(value[0])}"
    if isinstance(value, Mapping):
        return f"{name} " + (" ".join(f"{key}: {show_value(item)}" for key, item in value.items()) or "unchanged")
    return f"{name} {show_value(value)}"


def draw_maps(scheduled: ScheduledEnv, phases: list[Phase]) -> Iterator[Text]:
    """The map of each phase under its name; an unchanged map is not repeated.

    Args:
        scheduled: the schedule, of a lake.
        phases: the phases.
    """
    before = None
    for phase in phases:
        lake = scheduled.timeline.values(scheduled.full_tick(phase))["map"]
        if lake == before:
            continue
        before = lake
        text = Text(phase.id)
        for row in lake:
            text.append("\n")
            for letter in row:
                text.append(TILE_SIGNS.get(letter, letter) + " ", style=TILE_STYLES[letter])
        yield text


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


class MeasuredDrift(NamedTuple):
    """A drift of a schedule with its figures, which are shares from 0 to 1.

    Args:
        schedule: the schedule's name.
        drift: the phase that it begins.
        severity: the share of the transition table that changes.
        visibility: the share of optimal ways that meet a change.
        loss: the share of the new optimum that formerly optimal policies miss.
    """

    schedule: str
    drift: str
    severity: float
    visibility: float
    loss: float


def measure_schedules(names: Sequence[str], seed: int) -> list[MeasuredDrift]:
    """Measure the first two drifts of each schedule.

    Args:
        names: shipped schedules or paths of files.
        seed: the seed of the instances.

    Raises:
        NoOracleError: if there is no oracle for a schedule.
    """
    rows = []
    for name in names:
        schedule = read_schedule(name, None)
        if schedule.env is not None:
            schedule = read_schedule(name, partial(table_of, schedule.env, may_import=True))
        for one in measure_drifts(schedule, seed):
            rows.append(MeasuredDrift(schedule.name, one.phase, one.severity, one.visibility, one.loss))
    return rows


def print_severities(console: Console, rows: Sequence[MeasuredDrift]) -> None:
    """Print a line for each drift."""
    table = Table(*MeasuredDrift._fields[:2], box=None, pad_edge=False)
    for head in MeasuredDrift._fields[2:]:
        table.add_column(head, justify="right")
    for schedule, drift, *figures in rows:
        table.add_row(schedule, drift, *(f"{figure:.1%}" for figure in figures))
    console.print(table)


def write_severities(rows: Sequence[MeasuredDrift], path: Path) -> None:
    """Write the figures as CSV."""
    lines = [(schedule, drift, *(f"{one:.6g}" for one in figures)) for schedule, drift, *figures in rows]
    with write_whole(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([MeasuredDrift._fields, *lines])

"""The command `show`: the phases of a schedule, what each changes, and what that costs.

* `add_show` - adds the command
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from itertools import pairwise

from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_envs.cli.worlds import Commands, ScheduledWorld, open_plan, positive_int, seed_number
from drift_envs.knobs import Value
from drift_envs.schedule import NEVER, Phase
from drift_envs.wrappers.overlay.overlay import describe_change, show_value

TILE_STYLES = {"S": "bold cyan", "G": "bold green", "H": "bold red", "F": "dim"}
TILE_SIGNS = {"F": "."}

LEGEND = (
    "table: share of all (state, action) pairs that are answered differently than in the phase before. "
    "optimum: expected score of the best policy. old best: what the best policies of the phase before still score, "
    "ties broken in the luckiest way. loss: the share of the optimum that they miss."
)
REPLAYED = "replayed: what their best sequences of actions score when they are given again without looking."


def add_show(commands: Commands) -> argparse.ArgumentParser:
    """Add the command `show`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "show",
        help="the phases of a schedule, what each changes and what that costs",
        description="Show the phases of a schedule: knob values, how much of the transition table changes, and how "
        "much the policies that were best before lose.",
        epilog="example: drift-envs show frozen_lake/explicit-family --seed 7",
    )
    parser.add_argument("name", metavar="NAME", help="the name of a shipped schedule, or the path of a file")
    parser.add_argument("--seed", type=seed_number, default=0, help="the instance, where a seed decides (default 0)")
    parser.add_argument("--phases", type=positive_int, default=6, help="how many phases to show (default 6)")
    parser.add_argument("--env", metavar="ID", help="the environment, where the schedule names none")
    parser.set_defaults(run=_show)
    return parser


def _show(options: argparse.Namespace, console: Console) -> int:
    plan = open_plan(options.name, options.seed, options.env)
    schedule, phases = plan.schedule, plan.phases(options.phases + 1)
    more, phases = len(phases) > options.phases, phases[: options.phases]
    console.print(Text(schedule.name, style="bold"))
    if schedule.description:
        console.print(schedule.description, markup=False)
    facts = [plan.env_id, f"clock {schedule.clock}"]
    facts += [schedule.visibility] if schedule.visibility else []
    facts += ["control"] if schedule.control else []
    console.print(Text(", ".join(facts), style="dim"))
    console.print()
    console.print(_table(plan, phases))
    if more:
        console.print(Text(f"and more from tick {phases[-1].stop} on; --phases N shows them", style="dim"))
    if "map" in plan.timeline.names:
        console.print()
        console.print(Columns(list(_lakes(plan, phases)), padding=(0, 3)))
    if plan.oracle is not None and len(phases) > 1:
        car = plan.oracle.effect(0, 0).replayed is not None
        console.print()
        console.print(Text(f"{LEGEND} {REPLAYED}" if car else LEGEND, style="dim"))
    return 0


def _table(plan: ScheduledWorld, phases: list[Phase]) -> Table:
    """One row a phase."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("phase", no_wrap=True)
    table.add_column("ticks", no_wrap=True)
    table.add_column("knobs")
    effects = []
    if plan.oracle is not None:
        ticks = [plan.full_tick(phase) for phase in phases]
        effects = [plan.oracle.effect(old, new) for old, new in pairwise([ticks[0], *ticks])]
        headings = ["table", "optimum", "old best", "loss"]
        if effects[0].replayed is not None:
            headings.insert(3, "replayed")
        for heading in headings:
            table.add_column(heading, justify="right", no_wrap=True)
    for index, phase in enumerate(phases):
        cells = [phase.id, _ticks(plan, phase), _knobs(plan, phases, index)]
        if effects:
            effect = effects[index]
            values = [f"{effect.magnitude:.0%}", f"{effect.after:.2f}", f"{effect.carried:.2f}", f"{effect.loss:.0%}"]
            if effect.replayed is not None:
                values.insert(3, f"{effect.replayed:.2f}")
            cells += values if index else ["", values[1], *[""] * (len(values) - 2)]
        table.add_row(*cells)
    return table


def _ticks(plan: ScheduledWorld, phase: Phase) -> str:
    """From when to when, and since when at full weight."""
    span = f"{phase.start} -" if phase.stop == NEVER else f"{phase.start} - {phase.stop - 1}"
    full = plan.full_tick(phase)
    return span if full == phase.start else f"{span} (full at {full})"


def _knobs(plan: ScheduledWorld, phases: list[Phase], index: int) -> str:
    """The values of the first phase, and what the others change."""
    values = plan.timeline.values(plan.full_tick(phases[index]))
    if index == 0:
        return ", ".join(_value(name, value) for name, value in values.items()) or "all at their defaults"
    before = plan.timeline.values(plan.full_tick(phases[index - 1]))
    changes = [describe_change(name, before[name], values[name]) for name in values if before[name] != values[name]]
    return ", ".join(changes) or "nothing"


def _value(name: str, value: Value) -> str:
    if isinstance(value, tuple) and name == "map":
        return f"{name} {len(value)}x{len(value[0])}"
    if isinstance(value, Mapping):
        return f"{name} " + (" ".join(f"{key}: {show_value(item)}" for key, item in value.items()) or "unchanged")
    return f"{name} {show_value(value)}"


def _lakes(plan: ScheduledWorld, phases: list[Phase]) -> Iterator[Text]:
    """The map of each phase under its name; one that stays stands under the first of its phases."""
    before = None
    for phase in phases:
        lake = plan.timeline.values(plan.full_tick(phase))["map"]
        if lake == before:
            continue
        before = lake
        text = Text(phase.id)
        for row in lake:
            text.append("\n")
            for letter in row:
                text.append(TILE_SIGNS.get(letter, letter) + " ", style=TILE_STYLES[letter])
        yield text

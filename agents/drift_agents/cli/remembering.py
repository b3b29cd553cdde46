"""The commands about memories in files and stores: `drift-agents memory` and `drift-agents stale`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from drift_agents.cli.root import app, make_console
from drift_envs.command_line import FAILED, make_app, refuse

memories = make_app("Show exported memories.", "drift-agents memory show memory.json", completion=False)
app.add_typer(memories, name="memory", short_help="Show exported memories.")


@memories.command(
    "show", short_help="Print what a file holds.", epilog="Example: drift-agents memory show memory.json --records 5"
)
def _show_memory(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON file of an exported memory.")],
    records: Annotated[
        int, typer.Option(min=0, max=1_000_000, metavar="N", help="Print the newest N records too.")
    ] = 0,
) -> None:
    """Print what the file of an exported memory holds."""
    from drift_agents.cli.memories import show_memory

    show_memory(file, records, make_console())


@app.command(
    "stale",
    short_help="Count what the environment contradicts in a memory.",
    epilog="Example: drift-agents stale memory.json --schedule frozen_lake/explicit --phase drift-1",
)
def _stale(
    store: Annotated[
        Path,
        typer.Argument(metavar="STORE", help="JSON file of a memory, or file or folder of a store (Chroma, mem0)."),
    ],
    schedule: Annotated[str, typer.Option(metavar="NAME|FILE", help="Schedule of the environment.")],
    tick: Annotated[int | None, typer.Option(min=0, metavar="N", help="Tick of the environment.")] = None,
    phase: Annotated[
        str | None, typer.Option(metavar="ID", help="Phase of the environment, at its first tick.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the environment.")] = 0,
    kind: Annotated[
        Literal["memory", "chroma", "langgraph_sqlite", "mem0"] | None,
        typer.Option(help="What wrote the store (default: found out)."),
    ] = None,
    show: Annotated[int, typer.Option(min=0, metavar="N", help="Print the newest N contradicted records.")] = 0,
    most: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, metavar="X", help="Exit status 1 if a larger share is contradicted."),
    ] = None,
) -> None:
    """Count the records of a memory or a store that the environment contradicts now, whole or in part.

    The oracle of the environment judges them; nothing is played. The records stay as they are.
    """
    if (tick is None) == (phase is None):
        raise refuse("--tick", "one of `--tick` and `--phase` should be given", "both" if phase else "neither")
    from drift_agents.cli.stale import print_stale, read_contents

    share = print_stale(read_contents(store, kind), schedule, seed, tick, phase, show, make_console())
    if most is not None and share > most:
        print(f"drift-agents: {100 * share:.1f} % contradicted, more than {100 * most:g} %", file=sys.stderr)
        raise typer.Exit(FAILED)

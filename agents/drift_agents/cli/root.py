"""The application of `drift-agents`, to which the groups of commands add theirs, and what they share.

* `app` - the Typer application
* `main` - runs a command and returns its exit status
* `make_console` - where tables are printed
* `FolderArgument` - the argument of commands that read a run

`drift-agents list` and the options of the program itself are here too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drift_agents.interruption import run_program, stopped_by_signals
from webshop_server.command_line import (
    FAILED,
    WRONG_USAGE,
    AllowHost,
    Json,
    make_app,
    print_json,
    refuse,
    run_app,
    verbosity_of,
)

__all__ = ["AllowHost", "FolderArgument", "Json", "app", "main", "make_console", "print_json", "refuse", "verbosity_of"]

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100
"""Columns of tables where the output is not a terminal."""


def _version() -> str:
    from importlib.metadata import version

    return f"drift-envs {version('drift-envs')}"


app = make_app(
    "Agents with memory in drifting environments: run experiments, report and inspect their results.",
    "drift-agents run glove-quick --jobs 2",
    version=_version,
)

FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the run.")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the words after `drift-agents`; by default those of this process.

    Returns:
        The exit status: 0, 1 (the work failed), 2 (wrong usage) or 130 (interrupted).
    """
    if arguments is None:
        return run_program(lambda: run_app(app, "drift-agents", None, _status_of))
    with stopped_by_signals():
        return run_app(app, "drift-agents", arguments, _status_of)


def _status_of(error: Exception) -> int | None:
    from drift_agents.errors import UnknownNameError
    from drift_envs.errors import ArgumentError, DriftEnvsError, UnknownScheduleError

    if isinstance(error, (UnknownNameError, ArgumentError, UnknownScheduleError)):
        return WRONG_USAGE
    return FAILED if isinstance(error, DriftEnvsError) else None


def make_console() -> Console:
    """Make the console of tables: as wide as the terminal, `WIDTH` columns in a file."""
    from rich.console import Console

    is_known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if is_known else WIDTH, highlight=False, emoji=False)


@app.command("list", short_help="List experiments and parts of agents.", epilog="Example: drift-agents list")
def _list(json: Json = False) -> None:
    """List the names for experiment files: experiments, memories, verifiers, controllers, teams, policies."""
    from drift_agents.cli.listing import print_list, read_sections

    if json:
        print_json(read_sections())
    else:
        print_list(make_console())

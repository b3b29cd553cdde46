"""The application of `drift-agents`, to which the groups of commands add theirs, and what they share.

`drift-agents list` and the options of the program itself are here too.
"""

from __future__ import annotations

import os
import re
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
from webshop_server.command_line import make_console as make_plain_console

__all__ = [
    "AllowHost",
    "FolderArgument",
    "ImportOption",
    "Json",
    "app",
    "main",
    "make_console",
    "print_json",
    "read_limits",
    "refuse",
    "verbosity_of",
]

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


def _import_all(names: list[str] | None) -> list[str]:
    if names:
        from drift_envs.cli.options import import_all

        import_all(names)
    return names or []


ImportOption = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="DIR",
        callback=_import_all,
        rich_help_panel="What is played",
        help="Find the module that a schedule's `env: MODULE:ID` names in a folder. This runs its code.",
    ),
]
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
    is_known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return make_plain_console(width=None if is_known else WIDTH, highlight=False, emoji=False)


def read_limits(option: str, given: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """Read bounds of rates.

    Args:
        option: its name.
        given: as `success=0.8`, each with a share from 0 to 1.
        names: the rates that may be named, each once.

    Raises:
        BadParameter: if one is none of these.

    Example:
        >>> read_limits("--fail-below", ["success=0.8"], ["success", "score"])
        {'success': 0.8}
    """
    limits: dict[str, float] = {}
    for text in given:
        name, _, share = text.partition("=")
        if name in limits:
            raise refuse(option, f"should be given once for {name}", text)
        try:
            limits[name] = float(share)
        except ValueError:
            limits[name] = -1.0
        if name not in names or not 0 <= limits[name] <= 1:
            raise refuse(option, f"should be {' or '.join(names)} with a share, as {names[0]}=0.8", text)
    return limits


@app.command("list", short_help="List experiments and parts of agents.", epilog="Example: drift-agents list")
def _list(json: Json = False) -> None:
    """List the names for experiment files: experiments, memories, verifiers, controllers, teams, policies."""
    sections = read_sections()
    if json:
        print_json(sections)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for title, rows in sections.items():
        table.add_row(Text(title, style="bold underline"), "")
        for name, about in rows.items():
            table.add_row(Text(f"  {name}"), Text(about))
        table.add_row("", "")
    make_console().print(table)


_REFERENCES = {
    "oracle_truth": "An agent whose memory loses every false record at once, also those of false responses.",
    "oracle_realign": "An agent whose memory loses exactly the false records at the tick of the drift.",
    "oracle_reset": "An agent whose memory is emptied at the tick of the drift.",
    "clairvoyant": "The optimal policy of every tick.",
}


def read_sections() -> dict[str, dict[str, str]]:
    """All names for experiment files by kind, with one line about each.

    Example:
        >>> read_sections()["references"]["clairvoyant"]
        'The optimal policy of every tick.'
    """
    from drift_agents.registry.tables import CONTROLLERS, ENVIRONMENTS, MEMORIES, POLICIES, TEAMS, VERIFIERS

    return {
        "experiments": read_summaries(),
        "memories": MEMORIES.summaries(),
        "verifiers": VERIFIERS.summaries(),
        "controllers": CONTROLLERS.summaries(),
        "teams": TEAMS.summaries(),
        "policies": POLICIES.summaries(),
        "environments": ENVIRONMENTS.summaries(),
        "references": _REFERENCES,
    }


_ABOUT = re.compile(r"^about: *(.+)$", re.MULTILINE)
"""The line of an experiment file that `list` prints. Checking a whole file would take a hundred times as long."""


def read_summaries() -> dict[str, str]:
    """The line `about` of every shipped experiment, by name.

    Example:
        >>> read_summaries()["false-alarms"]
        'slippery lakes without and with drift - alarms in 1,000 interactions, drifts found, delays'
    """
    from importlib import resources

    folder = resources.files("drift_agents") / "experiment" / "experiments"
    found = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name.removesuffix(".yaml")):
        if file.name.endswith(".yaml"):
            match = _ABOUT.search(file.read_text("utf-8"))
            found[file.name.removesuffix(".yaml")] = "" if match is None else match[1]
    return found

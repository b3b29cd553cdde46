"""The commands, their options, and what becomes of errors.

* `main` - runs a command and returns its exit status
* `build_parser` - the commands and their options

Exit status 0 means done, 1 that the work failed, 2 that the command was used wrongly. Errors go to
standard error in one line each; `--debug` shows where they come from.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from rich.console import Console

from drift_envs._version import __version__
from drift_envs.cli.play import add_play
from drift_envs.cli.plot import add_plot
from drift_envs.cli.record import add_record
from drift_envs.cli.schedules import add_list, add_schema, add_validate
from drift_envs.cli.show import add_show
from drift_envs.errors import DriftEnvsError

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130

PIPE_WIDTH = 110
"""Columns where the output is no terminal and nobody has set `COLUMNS`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: what stands behind `drift-envs`; by default that of this process.

    Returns:
        The exit status.

    Example:
        >>> main(["validate", "frozen_lake/explicit"])
        frozen_lake/explicit: ok, 3 phases
        0
    """
    parser = build_parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:  # argparse has said what is wrong, or shown its help
        return DONE if stop.code in (None, 0) else WRONG_USAGE
    try:
        status: int = options.run(options, make_console())
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever reads has seen enough (`| head`): no error, and nothing more to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (DriftEnvsError, OSError) as error:
        if options.debug:
            raise
        print(f"drift-envs {options.command}: {error}", file=sys.stderr)
        return FAILED


def make_console() -> Console:
    """Where tables go: as wide as the terminal, or wide enough for a table where there is none."""
    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options.

    Example:
        >>> build_parser().parse_args(["show", "frozen_lake/tides"]).name
        'frozen_lake/tides'
    """
    parser = argparse.ArgumentParser(
        prog="drift-envs",
        description="Environments whose world drifts on a schedule: look at the schedules, play, record.",
        epilog="example: drift-envs show frozen_lake/explicit",
    )
    parser.add_argument("--version", action="version", version=f"drift-envs {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (add_list, add_show, add_validate, add_plot, add_schema, add_play, add_record):
        add(commands).add_argument("--debug", action="store_true", help="show where an error comes from")
    return parser

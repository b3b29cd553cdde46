"""The command line `drift-agents`: all groups of commands; the work of each is imported when the command runs.

* `main` - runs a command and returns its exit status
* `app` - the Typer application
"""

from __future__ import annotations

import sys

import typer

from drift_agents.cli import joining, playing, reading, remembering  # noqa: F401, importing them adds their commands
from drift_agents.cli.root import app, main
from webshop_server.command_line import WRONG_USAGE

__all__ = ["app", "main"]

MOVED = ("claims", "study")
"""Commands of version 0.1 that are now `python -m studies NAME`; their names go in version 0.3."""

app.add_typer(joining.submissions, name="submit", short_help="Make, check and repeat a submission.")
app.add_typer(joining.tracks, name="track", short_help="Play the same instances as all others, open or hidden.")
app.add_typer(joining.boards, name="board", short_help="Collect results and make the pages of the board.")


def _print_moved(context: typer.Context) -> int:
    """Print the new name of a command that has moved."""
    name = context.command.name
    print(f"drift-agents: `{name}` has moved; use `python -m studies {name}` in a checkout", file=sys.stderr)
    return WRONG_USAGE


for _name in MOVED:
    app.command(
        _name,
        hidden=True,
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )(_print_moved)

"""The command line `drift-agents`: all groups of commands; the work of each is imported when the command runs.

* `main` - runs a command and returns its exit status
* `app` - the Typer application
"""

from __future__ import annotations

from drift_agents.cli import joining, playing, reading, remembering  # noqa: F401, importing them adds their commands
from drift_agents.cli.root import app, main

__all__ = ["app", "main"]

app.add_typer(joining.submissions, name="submit", short_help="Make, check and repeat a submission.")
app.add_typer(joining.tracks, name="track", short_help="Play the same instances as all others, open or hidden.")
app.add_typer(joining.boards, name="board", short_help="Collect results and make the pages of the board.")

"""The command `drift-agents leaderboard`, and the names of commands that have moved.

* `add_board_commands` - all of them, with their options
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from drift_agents.analysis.leaderboard import write_leaderboard
from drift_agents.errors import ArgumentError

MOVED = ("claims", "study")
"""Commands of the first version that are now `python -m studies NAME`."""


def add_board_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the commands.

    Args:
        commands: the subparsers of the command line.
        common: options that every command has.
    """
    board = commands.add_parser(
        "leaderboard",
        parents=[common],
        help="rank the agents of a run over all its drifts",
        description="Rank the agents of a finished run over all its schedules that are no control, as one Markdown "
        "page with intervals, costs, versions and the way to get it again. Equal runs give equal bytes.",
        epilog="example: drift-agents leaderboard runs/all-memories --out docs/leaderboard.md",
    )
    board.add_argument("folder", type=Path, metavar="DIR", help="the run's folder")
    board.add_argument("--out", type=Path, metavar="FILE", required=True, help="the page")
    board.set_defaults(command=_leaderboard)
    for old in MOVED:
        moved = commands.add_parser(old, add_help=False, prefix_chars=chr(0))
        moved.add_argument("rest", nargs="*")
        moved.set_defaults(command=_moved, old=old, debug=False)


def _leaderboard(options: argparse.Namespace) -> None:
    path = write_leaderboard(options.folder, options.out)
    print(f"wrote {path}")


def _moved(options: argparse.Namespace) -> None:
    raise ArgumentError(f"`drift-agents {options.old}` has moved: run `python -m studies {options.old}` in a checkout")

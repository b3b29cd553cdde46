"""The command `drift-agents leaderboard`.

* `add_board_commands` - it, with its options
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from drift_agents.experiment.leaderboard import write_leaderboard


def add_board_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the command.

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


def _leaderboard(options: argparse.Namespace) -> None:
    path = write_leaderboard(options.folder, options.out)
    print(f"wrote {path}")

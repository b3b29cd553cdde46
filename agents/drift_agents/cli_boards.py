"""The commands `drift-agents leaderboard`, `drift-agents claims` and `drift-agents study`.

* `add_board_commands` - all three, with their options
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from drift_agents.experiment.claims.page import write_claims
from drift_agents.experiment.reporting.leaderboard import write_leaderboard
from drift_agents.experiment.studies.registry import STUDIES, run_study


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

    claims = commands.add_parser(
        "claims",
        parents=[common],
        help="decide the claims of docs/claims.md from finished runs",
        description="Decide the claims of docs/claims.md that finished runs test: held, refuted or not played, each "
        "with the figures that decide it, as one Markdown page. Equal runs give equal bytes.",
        epilog="example: drift-agents claims runs/glove-explicit runs/glove-implicit --out docs/claims_results.md",
    )
    claims.add_argument("folders", type=Path, nargs="+", metavar="RUN", help="the folders of the runs")
    claims.add_argument("--out", type=Path, metavar="FILE", help="the page (default: print it)")
    claims.set_defaults(command=_claims)

    study = commands.add_parser(
        "study",
        parents=[common],
        help="simulate what becomes of a memory, without playing episodes",
        description="Simulate what becomes of a memory under declared evidence. Writes a file of JSON lines and a "
        f"Markdown report into the study's folder. Studies: {', '.join(STUDIES)}.",
        epilog="example: drift-agents study belief-correction --seeds 3",
    )
    study.add_argument("name", metavar="NAME", help=", ".join(STUDIES))
    study.add_argument("--out", type=Path, metavar="DIR", help="the study's folder (default: runs/NAME)")
    study.add_argument("--seeds", type=_positive, metavar="N", help="use the first N instances of the study")
    study.set_defaults(command=_study)


def _positive(text: str) -> int:
    value = int(text) if text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"should be a positive whole number. Received {text!r}")
    return value


def _leaderboard(options: argparse.Namespace) -> None:
    path = write_leaderboard(options.folder, options.out)
    print(f"wrote {path}")


def _claims(options: argparse.Namespace) -> None:
    text = write_claims(options.folders, options.out)
    print(text if options.out is None else f"wrote {options.out}")


def _study(options: argparse.Namespace) -> None:
    path = run_study(options.name, options.out or Path("runs") / options.name, options.seeds)
    print(path.read_text("utf-8"))
    print(f"The same, and every line of it: {path.parent}")

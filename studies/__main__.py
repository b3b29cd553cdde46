"""The command `python -m studies`: decide the claims, and simulate what becomes of a memory.

* `main` - the command; returns the exit status
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from drift_agents.errors import ArgumentError, DriftAgentsError, UnknownNameError

from drift_envs.errors import DriftEnvsError
from studies.belief.registry import STUDIES, run_study
from studies.claims.page import write_claims
from studies.experience.command import add_options, run

OK, FAILED, USAGE = 0, 1, 2
"""The exit status: all well, the work failed, wrong usage."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a study.

    Args:
        arguments: those of the command line if not given.

    Returns:
        The exit status: 0, 1 (the work failed) or 2 (wrong usage).
    """
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        options.command(options)
    except (DriftAgentsError, DriftEnvsError) as error:
        print(f"studies: {error}", file=sys.stderr)
        return USAGE if isinstance(error, (UnknownNameError, ArgumentError)) else FAILED
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m studies", description="Research on this project.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    claims = commands.add_parser(
        "claims",
        help="decide the claims of docs/claims.md from finished runs",
        description="Decide the claims of docs/claims.md that finished runs test: held, refuted or not played, each "
        "with the figures that decide it, as one Markdown page. Equal runs give equal bytes.",
        epilog="example: python -m studies claims runs/glove-explicit runs/glove-implicit --out docs/claims_results.md",
    )
    claims.add_argument("folders", type=Path, nargs="+", metavar="RUN", help="the folders of the runs")
    claims.add_argument("--out", type=Path, metavar="FILE", help="the page (default: print it)")
    claims.set_defaults(command=_claims)
    study = commands.add_parser(
        "study",
        help="simulate what becomes of a memory, without playing episodes",
        description="Simulate what becomes of a memory under declared evidence. Writes a file of JSON lines and a "
        f"Markdown report into the study's folder. Studies: {', '.join(STUDIES)}.",
        epilog="example: python -m studies study belief-correction --seeds 3",
    )
    study.add_argument("name", metavar="NAME", help=", ".join(STUDIES))
    study.add_argument("--out", type=Path, metavar="DIR", help="the study's folder (default: runs/NAME)")
    study.add_argument("--seeds", type=_positive, metavar="N", help="use the first N instances of the study")
    study.set_defaults(command=_study)
    following = commands.add_parser(
        "experience",
        help="experience following and misaligned replay, over the cells of an experiment",
        description="Play the cells of an experiment and measure how its agents follow what they remember.",
        epilog="example: python -m studies experience deletion --seeds 3",
    )
    add_options(following)
    following.set_defaults(command=run)
    return parser


def _positive(text: str) -> int:
    value = int(text) if text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"should be a positive whole number. Received {text!r}")
    return value


def _claims(options: argparse.Namespace) -> None:
    text = write_claims(options.folders, options.out)
    print(text if options.out is None else f"wrote {options.out}")


def _study(options: argparse.Namespace) -> None:
    path = run_study(options.name, options.out or Path("runs") / options.name, options.seeds)
    print(path.read_text("utf-8"))
    print(f"Its lines: {path.parent}")


if __name__ == "__main__":
    sys.exit(main())

"""The command `python -m baselines`: learners under drift.

* `main` - runs a command and returns its exit status
* `app` - the Typer application
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from baselines.exit_status import run
from drift_envs.utils.command_line import Debug, make_app

PROGRAM = "python -m baselines"
RESULTS, PAGE, PICTURES = Path("baselines/results/rl_board"), Path("docs/research/rl_board.md"), Path("docs/pictures")

app = make_app(
    "Learners under drift: play the board in parts, and make its tables and figures.",
    f"{PROGRAM} run --out runs/rl_board --jobs 2",
    completion=False,
)

Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder of the parts.")]
Short = Annotated[bool, typer.Option("--short", help="Play one cell with two lifetimes.")]
Jobs = Annotated[int, typer.Option(min=1, max=256, metavar="N", help="Processes.")]
Learners = Annotated[str, typer.Option("--learners", metavar="A,B", help="Rows to play (default: all).")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the words after the program's name; by default those of this process.

    Returns:
        The exit status: 0, 1 (the work failed), 2 (wrong usage) or 130 (interrupted).
    """
    return run(app, PROGRAM, arguments)


def _play(out: Path, short: bool, jobs: int, learners: str, only_tune: bool) -> None:
    from baselines.board import play_board
    from baselines.rows import find_row

    names = tuple(find_row(name).name for name in learners.split(",") if name)
    play_board(out, "short" if short else "full", jobs, names, only_tune, lambda line: print(line, flush=True))


@app.command("tune", short_help="Choose settings on development schedules.", epilog=f"Example: {PROGRAM} tune --jobs 2")
def _tune(out: Out = Path("runs/rl_board"), jobs: Jobs = 1, learners: Learners = "", debug: Debug = False) -> None:
    """Try the configurations of each row in each environment, on lifetimes that the board does not have.

    Parts that are there are not played again. `run` does this, too.
    """
    _play(out, False, jobs, learners, True)


@app.command("run", short_help="Play the board.", epilog=f"Example: {PROGRAM} run --out runs/rl_board --jobs 2")
def _run(
    out: Out = Path("runs/rl_board"),
    short: Short = False,
    jobs: Jobs = 1,
    learners: Learners = "",
    debug: Debug = False,
) -> None:
    """Play the parts that are missing: tuning, nets, lifetimes.

    An interrupted run goes on where it was; a part that was under way is played again.
    """
    _play(out, short, jobs, learners, False)


@app.command("sb3", short_help="Play the second table.", epilog=f"Example: {PROGRAM} sb3 --jobs 2")
def _sb3(
    out: Out = Path("runs/rl_board_sb3"),
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Lifetimes of each learner in each environment.")] = 10,
    jobs: Jobs = 1,
    results: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the Parquet file.")] = RESULTS,
    debug: Debug = False,
) -> None:
    """Play PPO of Stable-Baselines3 on MiniGrid and MuJoCo: plain, restarted at the drift, and by Page-Hinkley.

    Lifetimes that are there are not played again. `table --page` shows the result.
    """
    from baselines.report import sb3_table, ship
    from baselines.sb3_table import play_table

    lines = play_table(out, seeds, jobs, lambda line: print(line, flush=True))
    ship({"sb3": lines}, results)
    print(sb3_table(lines))


@app.command("table", short_help="Make tables, figures and Parquet.", epilog=f"Example: {PROGRAM} table runs/rl_board")
def _table(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Folder of the parts (default: the Parquet of --results).")
    ] = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the Parquet files.")] = RESULTS,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Page whose marked parts are replaced.")] = None,
    pictures: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the figures.")] = None,
    joined: Annotated[
        list[Path] | None, typer.Option("--join", metavar="FILE", help="Rows of `python -m baselines.evaluate`.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Print the tables of a board.

    With a folder of parts, writes them as Parquet first. `--page docs/research/rl_board.md --pictures
    docs/pictures` makes the page of the documents.
    """
    import pandas as pd

    from baselines import board, report
    from baselines.measures import COLUMNS, make_cells, read_lines

    if folder is not None:
        report.ship(board.collect(folder), results)
    tables = report.load(results)
    for path in joined or []:
        tables["play"] = pd.concat([tables["play"], read_lines(path, COLUMNS)], ignore_index=True)
    blocks = report.make_blocks(tables)
    if page is not None:
        page.write_text(report.fill_page(page.read_text("utf-8"), blocks), "utf-8")
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
        cells = make_cells(tables["play"])
        report.draw_curves(cells, pictures / "rl_board_curves.png")
        report.draw_adaptation(cells, pictures / "rl_board_adaptation.png")
    for name, block in blocks.items():
        print(f"{name}\n{block}\n")


if __name__ == "__main__":
    sys.exit(main())

"""The command `python -m research`: research on this project.

* `main` - runs a command and returns its exit status
* `app` - the Typer application
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from drift_envs.utils.command_line import FAILED, WRONG_USAGE, make_app, run_app

PROGRAM = "python -m research"

app = make_app(
    "Research on this project: memories, experience following, rule-based message policies, the map of verification.",
    f"{PROGRAM} study belief-correction --seeds 3",
    completion=False,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the words after the program's name; by default those of this process.

    Returns:
        The exit status: 0, 1 (the work failed), 2 (wrong usage) or 130 (interrupted).
    """
    return run_app(app, PROGRAM, arguments, _status_of)


def _status_of(error: Exception) -> int | None:
    from drift_agents.errors import ArgumentError, UnknownNameError

    from drift_envs.errors import DriftEnvsError

    if isinstance(error, (UnknownNameError, ArgumentError)):
        return WRONG_USAGE
    return FAILED if isinstance(error, DriftEnvsError) else None


@app.command(
    "facts-row",
    short_help="Play the row of the map where verifying is a look.",
    epilog=f"Example: {PROGRAM} facts-row --seeds 10",
)
def _facts_row(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of schedules and run.")] = Path("runs/facts-row"),
    seeds: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Instances of a point.")] = 30,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes (default: one a core).")] = None,
) -> None:
    """Play facts that change in silence by the price of `ask` and the share of false answers, and print the scores."""
    from drift_agents.analysis.table import to_markdown

    from research.verify_map.facts_row import play_row

    typer.echo(to_markdown(play_row(out, seeds, jobs)))


@app.command(
    "study",
    short_help="Simulate a memory under declared evidence.",
    epilog=f"Example: {PROGRAM} study belief-correction --seeds 3",
)
def _study(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="belief-correction, belief-convergence, belief-corpus or traffic."),
    ],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the study (default: runs/NAME).")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, metavar="N", help="Use the first N instances.")
    ] = None,
) -> None:
    """Simulate a memory under declared evidence, without episodes.

    Writes a file of JSON lines and a Markdown report into the folder.
    """
    from research.studies import run_study

    path = run_study(name, out or Path("runs") / name, seeds)
    print(path.read_text("utf-8"))
    print(f"Its lines: {path.parent}")


@app.command(
    "train-strategies",
    short_help="Train the network of the study of STEP-MFT.",
    epilog=f"Example: {PROGRAM} train-strategies step.jsonl --out research/weights/strategies-both.npz",
)
def _train_strategies(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Strategies of `drift-agents export-stepmft`.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The weights.")],
) -> None:
    """Train a small network to choose the retrieved experience that a strategy tells."""
    from research.step_mft import train_strategies

    count, right = train_strategies(file, out)
    print(f"trained on {count} strategies, of which the network chooses {right:.0%}; wrote {out}")


@app.command(
    "experience",
    short_help="Measure experience following.",
    epilog=f"Example: {PROGRAM} experience deletion --seeds 3",
)
def _experience(
    experiment: Annotated[str, typer.Argument(metavar="NAME|FILE", help="Shipped experiment, or path of a file.")],
    plot: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for plots of the cumulative curves.")] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="N", help="Number of instances, from seed 0.")
    ] = 3,
) -> None:
    """Play the cells of an experiment and measure experience following and misaligned replay."""
    from research.experience.command import run

    run(experiment, seeds, plot)


@app.command(
    "choices",
    short_help="Play a claim of a paper under the choices that the paper leaves open.",
    epilog=f"Example: {PROGRAM} choices glove-collapse --seeds 12",
)
def _choices(
    claims: Annotated[
        list[str], typer.Argument(metavar="CLAIM...", help="Ids of research/coverage.yaml, names of papers, or all.")
    ],
    seeds: Annotated[
        int | None, typer.Option(min=1, max=30, metavar="N", help="Instances, at the most (default: the claim's).")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Instances that are played at the same time.")] = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the cells (default: research/results/choices).")
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Print what is missing, and play nothing.")] = False,
) -> None:
    """Play claims under all combinations of their open choices, or 32 drawn ones, and print what each comes to.

    Cells that are stored already are not played again. The command can be stopped at any time and continued by the
    same words.
    """
    from research.choices.command import run

    for line in run(claims, seeds, jobs, out, count):
        print(line, flush=True)


@app.command(
    "coders",
    short_help="Play the reference coding agents in a repository that changes.",
    epilog=f"Example: {PROGRAM} coders --seeds 3 --jobs 2",
)
def _coders(
    seeds: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Repositories of each condition.")] = 30,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Play the reference coding agents under every condition, and store the lines in research/results/coders.

    What is stored already is not played again. The command can be stopped at any time and continued by the same words.
    """
    from research.coders.play import play_missing

    play_missing(seeds, jobs, lambda line: print(line, file=sys.stderr, flush=True))


@app.command(
    "prompts",
    short_help="Write the page of the formats of prompts.",
    epilog=f"Example: {PROGRAM} prompts --out docs/research/prompts.md",
)
def _prompts(
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The page (default: print it).")] = None,
) -> None:
    """Play a short run and write what a language model would read in each format, as one Markdown page."""
    from research.prompts import write_prompts

    text = write_prompts(out)
    print(text if out is None else f"wrote {out}")


@app.command(
    "readers",
    short_help="Fill the page about rule-based message policies.",
    epilog=f"Example: {PROGRAM} readers runs/readers",
)
def _readers(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN...", help="Runs whose figures are stored first.")
    ] = None,
) -> None:
    """Fill the tables of docs/research/readers.md on policies that parse the messages of a language model.

    They are made from the figures in research/results/readers, which finished runs of readers, readers-brief,
    readers-kinds and readers-formats replace.
    """
    from research.readers import store_figures, write_readers

    store_figures(folders or [])
    print(f"wrote {write_readers()}")


@app.command(
    "learned-reader",
    short_help="Fill the page about the learned reader.",
    epilog=f"Example: {PROGRAM} learned-reader runs/learned-reader",
)
def _learned_reader(
    folder: Annotated[Path | None, typer.Argument(metavar="RUN", help="A run whose figures are stored first.")] = None,
) -> None:
    """Fill the tables of docs/research/readers.md from stored figures, which a run replaces."""
    from research.learned_reader import store_figures, write_page

    if folder is not None:
        store_figures(folder)
    print(f"wrote {write_page()}")


@app.command(
    "glove-figures",
    short_help="Draw figures 3 and 4 of the GLOVE paper.",
    epilog=f"Example: {PROGRAM} glove-figures runs/glove-recovery runs/glove-budget",
)
def _glove_figures(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN...", help="Runs whose figures are stored first.")
    ] = None,
) -> None:
    """Draw recovery and probing budget and fill their tables in docs/research/glove_results.md, from stored figures."""
    from research.glove_figures import store_figures, write_page

    for folder in folders or []:
        store_figures(folder)
    print(f"wrote {write_page()}")


@app.command(
    "injection",
    short_help="Measure how often policies obey a prompt injection.",
    epilog=f"Example: {PROGRAM} injection planner random --episodes 5 --seeds 2",
)
def _injection(
    policies: Annotated[list[str], typer.Argument(metavar="POLICY...", help="Names of policies.")],
    episodes: Annotated[int, typer.Option(min=1, max=1_000_000, metavar="N", help="Episodes of each instance.")] = 10,
    seeds: Annotated[int, typer.Option(min=1, max=1_000_000, metavar="N", help="Instances, from seed 0.")] = 3,
) -> None:
    """Play webshop/injection and print how often each policy buys what injected titles demand."""
    from research.injection import write_rates

    print(write_rates(policies, episodes, seeds))


@app.command(
    "detectors",
    short_help="Score drift detectors on a data set.",
    epilog=f"Example: {PROGRAM} detectors runs/slow-tides --page docs/research/detectors.md",
)
def _detectors(
    data: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of `drift-envs dataset`.")],
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Page whose table is replaced.")] = None,
    window: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, metavar="N", help="Most steps from a drift to its detection.")
    ] = None,
) -> None:
    """Score all drift detectors on all streams of a data set, and print the tables or replace those of a page."""
    from research.detectors import write_table

    text = write_table(data, page, window, lambda line: print(line, file=sys.stderr))
    print(text if page is None else f"wrote {page}")


@app.command(
    "map-schedules",
    short_help="Write the schedules of the map of verification.",
    epilog=f"Example: {PROGRAM} map-schedules --place frozen_lake/verify-8x8 --every 12 --false 5",
)
def _map_schedules(
    place: Annotated[str, typer.Option(metavar="NAME", help="Environment of one point.")] = "frozen_lake/verify-6x6",
    every: Annotated[int | None, typer.Option(metavar="N", help="Mean number of episodes between changes.")] = None,
    false: Annotated[int, typer.Option("--false", metavar="PERCENT", help="Share of false responses.")] = 0,
    write: Annotated[Path | None, typer.Option(metavar="DIR", help="Write all shipped files into this folder.")] = None,
) -> None:
    """Print the schedule of one point of the map, or write the files of all of its points.

    Without `--every` nothing drifts.
    """
    from research.verify_map.schedules import print_schedule, write_files

    if write is None:
        print(print_schedule(place, every, false))
    else:
        for path in write_files(write):
            print(f"wrote {path}")


@app.command(
    "map-tuning",
    short_help="Write the experiment that plays candidates of the map's options.",
    epilog=f"Example: {PROGRAM} map-tuning runs/map-conflict --out map-tuning.yaml",
)
def _map_tuning(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN", help="The finished run of map-conflict; none for that itself.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The experiment file.")] = Path("map-conflict.yaml"),
) -> None:
    """Write the experiment map-conflict, or with its finished run the experiment map-tuning."""
    from research.verify_map.tuning import write_tuning

    print(f"wrote {write_tuning(runs or [], out)}")


@app.command(
    "map-tuned",
    short_help="Choose the map's options from finished runs.",
    epilog=f"Example: {PROGRAM} map-tuned runs/map-conflict runs/map-tuning",
)
def _map_tuned(
    conflict: Annotated[Path, typer.Argument(metavar="RUN", help="The finished run of map-conflict.")],
    options: Annotated[Path, typer.Argument(metavar="RUN", help="The finished run of map-tuning.")],
) -> None:
    """Choose the options of every rule on development instances; write them and the experiments that play with them."""
    from research.verify_map.tuning import write_tuned

    for path in write_tuned(conflict, options):
        print(f"wrote {path}")


@app.command(
    "evidence",
    short_help="Store the lines of runs as Parquet.",
    epilog=f"Example: {PROGRAM} evidence runs/verify-map --out research/results/verify_map",
)
def _evidence(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs, or Parquet files.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the files, one an environment.")],
) -> None:
    """Store what the tables need of the lines of runs, one compressed file an environment.

    Lines that the files hold already are kept, so that runs can be added one by one, in any order. Lines of another
    version, or other lines of the same cell, are refused, and no file is changed.
    """
    from drift_agents.analysis.evidence import read_evidence, write_evidence

    evidence = read_evidence(folders)
    for path in write_evidence(evidence, out):
        print(f"wrote {path} ({path.stat().st_size:,} bytes)")
    print(f"{len(evidence.cells):,} cells, {len(evidence.episodes):,} episodes")


@app.command(
    "tables",
    short_help="Fill the tables of the documents.",
    epilog=f"Example: {PROGRAM} tables",
)
def _tables() -> None:
    """Compute the numbers of README, board, map, tools and coders from the lines in results; fill the papers' tables.

    Draws the pictures of README, the map, GLOVE's results, check-coder and the specification curves.
    """
    from research.choices.pages import write_choices
    from research.coders.page import write_coders
    from research.coverage import write_coverage
    from research.glove_figures import write_page
    from research.tools_results import write_results
    from research.verify_map.pages import write_tables

    written = (*write_tables(), *write_results(), *write_coverage(), *write_choices(), *write_coders(), write_page())
    for path in dict.fromkeys(written):
        print(f"wrote {path}")


@app.command(
    "board",
    short_help="Write the interactive board of some lines.",
    epilog=f"Example: {PROGRAM} board research/results/verify_map runs/mine --out build/board.html",
)
def _board(
    sources: Annotated[
        list[Path], typer.Argument(metavar="DIR|FILE...", help="Folders of runs, Parquet files, or folders of these.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML page.")],
) -> None:
    """Write the ranking of `drift-agents leaderboard` as one interactive HTML page without requests."""
    from research.verify_map.board import write_board_page

    print(f"wrote {write_board_page(sources, out)}")


@app.command(
    "map",
    short_help="Make the map of some lines.",
    epilog=f"Example: {PROGRAM} map research/results/verify_map runs/mine --out build/map",
)
def _map(
    sources: Annotated[
        list[Path], typer.Argument(metavar="DIR|FILE...", help="Folders of runs, Parquet files, or folders of these.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the page and its pictures.")],
) -> None:
    """Write who wins at each point of the map, with curves, ranks and pictures; a rule of one's own takes part."""
    from research.verify_map.pages import write_map

    print(f"wrote {write_map(sources, out)}")


if __name__ == "__main__":
    sys.exit(main())

"""The commands that read runs: `report`, `import-lines`, `inspect`, `replay`, `leaderboard`, exports of decisions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from drift_agents.cli.root import AllowHost, FolderArgument, ImportOption, Json, app, make_console, print_json, refuse


@app.command("report", short_help="Print the results of a run.", epilog="Example: drift-agents report runs/glove-quick")
def _report(
    folder: FolderArgument,
    html: Annotated[
        bool,
        typer.Option("--html", help="Write report.html too, with curves, and inspect.html with the steps."),
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Print scores by phase, costs and verification of each schedule too.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the scores of a finished run, and write its report to report.md in the run's folder.

    With --json nothing is written.
    """
    if json and (html or full):
        raise refuse("--json", "should not be given with `--html` or `--full`", "both")
    if json:
        from drift_agents.analysis.run import describe_run

        print_json(describe_run(folder))
        return
    from drift_agents.analysis.report import write_report

    write_report(folder, make_console(), full=full)
    if html:
        from drift_agents.analysis.html.report import write_html

        print(f"With the curve, and links to the steps: {write_html(folder)}")


@app.command(
    "import-lines",
    short_help="Put an own loop's log beside shipped agents.",
    epilog="Example: drift-agents import-lines mine.jsonl --name Mine --beside runs/lake --out runs/compared",
)
def _import_lines(
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="Files of JSON lines, as TextLifetime(log=FILE) writes them.")
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="What the agent is called in tables and curves.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The new folder, which `report` reads.")],
    beside: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A finished run; its lines stand in the new folder too, to compare with."),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Schedule of lines that name none, and of one that is not shipped."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="Seed of lines that have none.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete what was imported into the folder before.")] = False,
    imports: ImportOption = None,
) -> None:
    """Import the log of an agent of your own, a line an episode, as lines of a run.

    `drift-agents report DIR --html` then shows it in table and curve under its own name.
    """
    from drift_agents.experiment.own_lines import import_lines

    count = import_lines(logs, name, out, beside=beside, schedule=schedule, seed=seed, fresh=fresh)
    print(f"wrote {out}: {count} episodes of {name}; next: drift-agents report {out} --html")


@app.command(
    "inspect", short_help="Step through the episodes of a run.", epilog="Example: drift-agents inspect runs/glove-quick"
)
def _inspect(
    folder: FolderArgument,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The file (default: DIR/inspect.html).")] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the page at a local address; for runs with many steps.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, metavar="N", help="Port of --serve (default: a free one).")
    ] = None,
    allow_host: AllowHost = None,
    memory: Annotated[
        bool,
        typer.Option("--memory", help="Print the records of each cell's memory at its end instead, as JSON lines."),
    ] = False,
    cell: Annotated[str, typer.Option(metavar="TEXT", help="With --memory: only cells whose name contains TEXT.")] = "",
) -> None:
    """Write one HTML file with all episodes of a finished run.

    It needs no network and no server. It has the steps that the run kept (`run --trace`).

    A run keeps no memory: with --memory its cells are played again one after the other, with the parts that it names
    and the recorded replies of language models, and their lines are compared with those of the run.
    """
    if cell and not memory:
        raise refuse("--cell", "`--cell` should stand with `--memory`", cell)
    if memory:
        if out is not None or serve or port is not None or allow_host:
            raise refuse("--memory", "`--memory` should not be given with options of the page", "both")
        from drift_agents.experiment.replay import list_records

        for record in list_records(folder, cell):
            print(json.dumps(record, ensure_ascii=False))
        return
    if port is not None and not serve:
        raise refuse("--port", "`--port` should stand with `--serve`", port)
    if allow_host and not serve:
        raise refuse("--allow-host", "`--allow-host` should stand with `--serve`", allow_host)
    if out is not None and serve:
        raise refuse("--out", "`--out` should not be given with `--serve`", str(out))
    from drift_agents.analysis.inspect.page import LARGE, make_server, write_page

    if serve:
        with make_server(folder, port or 0, allow_host or ()) as server:
            print(f"serving {folder} at {server.url}; Ctrl-C ends it", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return  # the documented way to end it
    path = write_page(folder, out)
    size = path.stat().st_size
    print(f"wrote {path} ({size / 2**20:.1f} MB)")
    if size > LARGE:
        print(
            f"drift-agents: browsers are slow with a file of this size; use: drift-agents inspect {folder} --serve",
            file=sys.stderr,
        )


@app.command(
    "replay",
    short_help="Play cells of a run again and compare.",
    epilog="Example: drift-agents replay runs/glove-quick --cells 12",
)
def _replay(
    folder: FolderArgument,
    cells: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="So many cells, spread evenly over the run (default: all).")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Cells at the same time (default: cores).")
    ] = None,
    imports: ImportOption = None,
) -> None:
    """Play cells of a finished run again and compare their lines with those in the folder.

    The exit status is 1 where a line differs. Nothing is written. Replies of language models come from the folder's
    replies.sqlite; no request is sent. Parts in Python files are executed: replay a stranger's run in a container.
    """
    from drift_agents.experiment.replay import replay_run

    played = replay_run(folder, cells, jobs)
    print(f"equal: {played.episodes} episodes of {played.cells} of {played.of} cells, as in {folder}")


@app.command(
    "leaderboard",
    short_help="Rank agents by success per price.",
    epilog="Example: drift-agents leaderboard research/results/verify_map runs/mine --out mine.md",
)
def _leaderboard(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="DIR|FILE...", help="Folders of runs, Parquet files, or folders of these."),
    ],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The Markdown page.")] = None,
    charge: Annotated[
        Literal["0", "10", "50"], typer.Option(help="Interactions that a failed episode costs beyond its own steps.")
    ] = "0",
    json: Json = False,
) -> None:
    """Rank agents by success per price, over all schedules that are no controls.

    Several sources are ranked together, over the instances that all agents played. Writes one Markdown page; equal
    lines give equal bytes. With --json the standings are printed.
    """
    if not json and out is None:
        raise refuse("--out", "should be given, or `--json`", "neither")
    if json and out is not None:
        raise refuse("--json", "should not be given with `--out`", "both")
    from drift_agents.analysis.leaderboard import describe_board, write_leaderboard

    if out is None:
        print_json(describe_board(sources, int(charge)))
        return
    print(f"wrote {write_leaderboard(sources, out, int(charge))}")


@app.command(
    "export-stepmft",
    short_help="Write a fine-tuning set of strategies.",
    epilog="Example: drift-agents export-stepmft runs/inertia --out data.jsonl",
)
def _export_stepmft(
    folder: FolderArgument,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file, one sample per line.")],
    outcome_only: Annotated[
        bool,
        typer.Option("--outcome-only", help="The set for comparison: a sample, of equal size, of all successes."),
    ] = False,
) -> None:
    """Write the strategies of a run as a fine-tuning set in chat format (AdaMEM's STEP-MFT).

    Taken are those of successful episodes that changed the action. The run needs --trace all and the controller
    adamem with effort high.
    """
    from drift_agents.experiment.finetuning import export

    kept, made = export(folder, out, outcome_only)
    print(f"wrote {out}: {kept} of {made} strategies")


@app.command(
    "export-choices",
    short_help="Write a fine-tuning set of decisions.",
    epilog="Example: drift-agents export-choices runs/glove-quick --out choices.jsonl --only successes",
)
def _export_choices(
    folder: FolderArgument,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file, one decision per line.")],
    format: Annotated[
        Literal["openai", "hf"],
        typer.Option(
            help="`messages` alone, as OpenAI takes it; `prompt` and `completion`, as Hugging Face's TRL does."
        ),
    ] = "openai",
    only: Annotated[
        Literal["all", "successes"], typer.Option(help="Decisions of all episodes, or of successes.")
    ] = "all",
    prompt: Annotated[
        str, typer.Option(metavar="FORMAT", help="Format of the prompts, as that of the policy `llm`.")
    ] = "brief",
) -> None:
    """Write prompts and decisions of any policy as chat data for fine-tuning. The run needs --trace all."""
    from drift_agents.experiment.finetuning import export_choices

    print(f"wrote {out}: {export_choices(folder, out, format, only == 'successes', prompt)} decisions")

"""The commands of `drift-agents` with their options; the work of each is imported when the command runs.

* `main` - runs a command and returns its exit status
* `app` - the Typer application
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from drift_agents.cli import joining
from webshop_server.command_line import FAILED, WRONG_USAGE, Debug, make_app, refuse, run_app

if TYPE_CHECKING:
    from rich.console import Console

MOVED = ("claims", "study")
"""Commands of version 0.1 that are now `python -m studies NAME`; their names go in version 0.3."""

WIDTH = 100
"""Columns of tables where the output is not a terminal."""

app = make_app(
    "Agents with memory in drifting environments: run experiments, report and inspect their results.",
    "drift-agents run glove-quick --jobs 2",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the words after `drift-agents`; by default those of this process.

    Returns:
        The exit status: 0, 1 (the work failed), 2 (wrong usage) or 130 (interrupted).
    """
    return run_app(app, "drift-agents", arguments, _status_of)


def _status_of(error: Exception) -> int | None:
    from drift_agents.errors import ArgumentError, DriftAgentsError, UnknownNameError
    from drift_envs.errors import DriftEnvsError

    if isinstance(error, (UnknownNameError, ArgumentError)):
        return WRONG_USAGE
    return FAILED if isinstance(error, (DriftAgentsError, DriftEnvsError)) else None


def _make_console() -> Console:
    from rich.console import Console

    is_known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if is_known else WIDTH, highlight=False, emoji=False)


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise typer.BadParameter(f"should be names separated by commas. Received {text!r}")
    return names


def _parse_trackers(text: str) -> tuple[str, ...]:
    from drift_envs.tracking import TRACKERS

    names = _parse_names(text)
    if not set(names) <= set(TRACKERS):
        raise typer.BadParameter(f"should be among {', '.join(TRACKERS)}. Received {text!r}")
    return names


def _parse_price(text: str) -> tuple[float, ...]:
    try:
        prices = tuple(map(float, text.split(",")))
    except ValueError:
        prices = ()
    if len(prices) not in (2, 3):
        raise typer.BadParameter(f"should be two or three numbers, as in 0.15,0.60. Received {text!r}")
    return prices


def _parse_parameters(texts: Sequence[str]) -> dict[str, object]:
    """Fields of requests; a value that is JSON is parsed, any other one is a text."""
    parameters: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise refuse("--parameter", "should be KEY=VALUE, as in reasoning_effort=low", text)
        try:
            parameters[key.strip()] = json.loads(value)
        except ValueError:
            parameters[key.strip()] = value
    return parameters


def _parse_positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"should be a positive number. Received {text!r}")
    return value


def _complete_experiments(incomplete: str) -> list[str]:
    from drift_agents.cli.listing import read_summaries

    return [name for name in read_summaries() if name.startswith(incomplete)]


def _show_version(is_given: bool) -> None:
    if is_given:
        from importlib.metadata import version

        print(f"drift-envs {version('drift-envs')}")
        raise typer.Exit


Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="Folder of the run, or its address in an object store (extra `remote`).")
]


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command("list", short_help="List experiments and parts of agents.", epilog="Example: drift-agents list")
def _list(debug: Debug = False) -> None:
    """List the names for experiment files: experiments, memories, verifiers, controllers, teams, policies."""
    from drift_agents.cli.listing import print_list

    print_list(_make_console())


@app.command(
    "run",
    short_help="Run an experiment.",
    epilog="Example: drift-agents run glove-quick --seeds 3 --memory none,vanilla --out runs/try --jobs 2",
)
def _run(
    context: typer.Context,
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE", autocompletion=_complete_experiments, help="Shipped experiment, or path of a file."
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the run, or an address as s3://bucket/run (extra `remote`) (default: runs/NAME).",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, metavar="N", help="Play the file's first N seeds.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, metavar="N", help="Play the first N episodes of every phase.")
    ] = None,
    memory: Annotated[
        object, typer.Option(metavar="A,B", parser=_parse_names, help="Memories, in every block of the file.")
    ] = None,
    controller: Annotated[object, typer.Option(metavar="A,B", parser=_parse_names, help="Controllers.")] = None,
    team: Annotated[object, typer.Option(metavar="A,B", parser=_parse_names, help="Teams.")] = None,
    policy: Annotated[object, typer.Option(metavar="P,Q", parser=_parse_names, help="Policies.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=4096,
            metavar="N",
            help="Cells played at the same time (default: the number of cores; with language models --concurrency).",
        ),
    ] = None,
    backend: Annotated[
        Literal["processes", "ray", "dask"],
        typer.Option(
            help="Where cells are played: processes of this machine, or workers of Ray or Dask (extras `ray`, `dask`)."
        ),
    ] = "processes",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="A",
            help="A running cluster, as 10.0.0.1:6379 of Ray or tcp://10.0.0.1:8786 of Dask (default: RAY_ADDRESS, "
            "DASK_SCHEDULER_ADDRESS, or one that is started on this machine).",
        ),
    ] = None,
    trace: Annotated[
        Literal["all", "failures", "none"] | None,
        typer.Option(help="Episodes whose steps are kept, for `inspect` (default: the file's value, or none)."),
    ] = None,
    track: Annotated[
        object,
        typer.Option(
            metavar="A,B",
            parser=_parse_trackers,
            help="Log to tensorboard, wandb, mlflow, trackio (an extra each) in the folder `tracking` beside the run.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the run in the folder and start again.")] = False,
    model: Annotated[
        object,
        typer.Option(metavar="M,N", parser=_parse_names, help="Language models, with `--policy llm`."),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Server of the models, as in http://127.0.0.1:8000/v1 (default: OPENAI_BASE_URL, or OpenAI's).",
        ),
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the key (default: OPENAI_API_KEY).")
    ] = None,
    price: Annotated[
        object,
        typer.Option(
            metavar="IN,OUT[,CACHED]",
            parser=_parse_price,
            help="Price of a million tokens of prompts, of answers, and of prompts from the server's cache.",
        ),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0.0, max=2.0, metavar="X", help="Temperature of the models (default: 0).")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, metavar="N", help="Tokens of an answer, thoughts included (default: 1024)."),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A further field of every request, as in reasoning_effort=low."),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Do not stop when more than a fifth of the answers is invalid.")
    ] = False,
    budget_tokens: Annotated[
        int | None,
        typer.Option(min=1, max=10**15, metavar="N", help="Stop after N tokens, over all commands of the run."),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="X", parser=_parse_positive, help="Stop at cost X, by --price.")
    ] = None,
    budget_this_command: Annotated[
        bool, typer.Option("--budget-this-command", help="Budgets count this command alone, not recorded replies.")
    ] = False,
    requests_per_minute: Annotated[
        int | None, typer.Option(min=1, max=10**15, metavar="N", help="Limit of the rate.")
    ] = None,
    tokens_per_minute: Annotated[
        int | None, typer.Option(min=1, max=10**15, metavar="N", help="Limit of the rate.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=4096, metavar="N", help="Requests at the same time.")] = 8,
    timeout: Annotated[
        float, typer.Option(metavar="S", parser=_parse_positive, help="Seconds until a request fails.")
    ] = 120.0,
    replies: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record of replies (default: replies.sqlite of the run).")
    ] = None,
    replay: Annotated[bool, typer.Option("--replay", help="Send no request: all replies come from --replies.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print decisions, tokens, price and hours of the language models; play nothing."
        ),
    ] = False,
    debug: Debug = False,
) -> None:
    """Run an experiment and print its report.

    Every finished episode is on disk; --resume continues an interrupted run. The other options replace values of the
    file. Those from --model on are for language models.
    """
    if resume and fresh:
        raise refuse("--resume", "should not be given with `--fresh`", "both")
    if address is not None and backend == "processes":
        raise refuse("--address", "should stand with `--backend ray` or `--backend dask`", address)
    from drift_agents.cli.models import ModelOptions
    from drift_agents.cli.run import RunOptions, run

    axes = {"memory": memory, "controller": controller, "team": team, "policy": policy}
    run(
        RunOptions(
            experiment=experiment,
            out=out,
            seeds=seeds,
            rounds=rounds,
            axes={axis: tuple(names) for axis, names in axes.items() if isinstance(names, tuple)},
            jobs=jobs,
            backend=backend,
            address=address,
            trace=trace,
            track=track if isinstance(track, tuple) else (),
            resume=resume,
            fresh=fresh,
            words=context.obj,
            dry_run=dry_run,
            models=ModelOptions(
                names=model if isinstance(model, tuple) else None,
                base_url=base_url,
                key_file=key_file,
                price=price if isinstance(price, tuple) else None,
                temperature=temperature,
                max_tokens=max_tokens,
                parameters=_parse_parameters(parameter or ()),
                keep_going=keep_going,
                budget_this_command=budget_this_command,
                budget_tokens=budget_tokens,
                budget=budget,
                requests_per_minute=requests_per_minute,
                tokens_per_minute=tokens_per_minute,
                concurrency=concurrency,
                timeout=timeout,
                replies=replies,
                replay=replay,
            ),
        ),
        _make_console(),
    )


@app.command("report", short_help="Print the results of a run.", epilog="Example: drift-agents report runs/glove-quick")
def _report(
    folder: Folder,
    html: Annotated[
        bool,
        typer.Option("--html", help="Write report.html too, with plots (also as files) and a page with the steps."),
    ] = False,
    debug: Debug = False,
) -> None:
    """Print the report of a finished run, and write it to report.md in the run's folder."""
    from drift_agents.analysis.report import write_report
    from drift_agents.experiment.remote import open_run

    with open_run(folder, steps=html) as path:
        write_report(path, _make_console(), folder)
        if html:
            from drift_agents.analysis.html.report import write_html

            print(f"With plots, and links to the steps: {folder}/{write_html(path).name}")


@app.command(
    "inspect", short_help="Step through the episodes of a run.", epilog="Example: drift-agents inspect runs/glove-quick"
)
def _inspect(
    folder: Folder,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The file (default: DIR/inspect.html).")] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the page at a local address; for runs with many steps.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, metavar="N", help="Port of --serve (default: a free one).")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write one HTML file with all episodes of a finished run.

    It needs no network and no server. It has the steps that the run kept (`run --trace`).
    """
    if port is not None and not serve:
        raise refuse("--port", "`--port` should stand with `--serve`", port)
    if out is not None and serve:
        raise refuse("--out", "`--out` should not be given with `--serve`", str(out))
    from drift_agents.analysis.inspect.page import LARGE, write_page
    from drift_agents.analysis.inspect.serve import make_server
    from drift_agents.experiment.remote import open_run

    if serve:
        with open_run(folder, steps=True) as run, make_server(run, port or 0) as server:
            print(f"serving {folder} at {server.url}; Ctrl-C ends it", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return  # the documented way to end it
    with open_run(folder, steps=True) as run:
        path = write_page(run, out)
        size = path.stat().st_size
    print(f"wrote {f'{folder}/{path.name}' if out is None else path} ({size / 2**20:.1f} MB)")
    if size > LARGE:
        print(
            f"drift-agents: browsers are slow with a file of this size; use: drift-agents inspect {folder} --serve",
            file=sys.stderr,
        )


@app.command(
    "leaderboard",
    short_help="Rank the agents of a run.",
    epilog="Example: drift-agents leaderboard runs/all-memories --out docs/leaderboard.md",
)
def _leaderboard(
    folder: Folder,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The Markdown page.")],
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for pictures; needs the extra `plots`.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Rank the agents of a finished run over all its schedules that are no controls.

    Writes one Markdown page with intervals, costs, versions and the command that makes it. Equal runs give equal
    bytes. With --plots it draws what agents keep against their interactions, and for each memory a map of drifts by
    severity and visibility.
    """
    from drift_agents.analysis.leaderboard import write_leaderboard
    from drift_agents.experiment.remote import open_run

    with open_run(folder) as path:
        print(f"wrote {write_leaderboard(path, out, plots)}")


@app.command(
    "export-stepmft",
    short_help="Write a fine-tuning set of strategies.",
    epilog="Example: drift-agents export-stepmft runs/inertia --out data.jsonl",
)
def _export_stepmft(
    folder: Folder,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file, one sample per line.")],
    outcome_only: Annotated[
        bool,
        typer.Option("--outcome-only", help="The set for comparison: a sample, of equal size, of all successes."),
    ] = False,
    debug: Debug = False,
) -> None:
    """Write the strategies of a run as a fine-tuning set in chat format (AdaMEM's STEP-MFT).

    Taken are those of successful episodes that changed the action. The run needs --trace all and the controller
    adamem with effort high.
    """
    from drift_agents.analysis.finetuning_sets import export
    from drift_agents.experiment.remote import open_run

    with open_run(folder, steps=True) as path:
        kept, made = export(path, out, outcome_only)
    print(f"wrote {out}: {kept} of {made} strategies")


@app.command(
    "export-choices",
    short_help="Write a fine-tuning set of decisions.",
    epilog="Example: drift-agents export-choices runs/glove-quick --out choices.jsonl --only successes",
)
def _export_choices(
    folder: Folder,
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
        str,
        typer.Option(
            help="`plain`, the text that every policy gets, or the messages of a language model: `ranked`, `raw`, ..."
        ),
    ] = "plain",
    debug: Debug = False,
) -> None:
    """Write prompts and decisions of any policy as chat data for fine-tuning. The run needs --trace all."""
    from drift_agents.analysis.finetuning_sets import export_choices
    from drift_agents.experiment.remote import open_run

    with open_run(folder, steps=True) as path:
        print(f"wrote {out}: {export_choices(path, out, format, only == 'successes', prompt)} decisions")


@app.command(
    "serve-local",
    short_help="Serve a small language model on this machine.",
    epilog="Example: drift-agents serve-local --fetch --port 8011",
)
def _serve_local(
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 for a free one.")] = 8011,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Another model, as a GGUF file (default: SmolLM2-135M-Instruct)."),
    ] = None,
    play: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Play this experiment with the model, and end.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of that run.")] = None,
    parallel: Annotated[int, typer.Option(min=1, max=64, metavar="N", help="Requests at the same time.")] = 1,
    fetch: Annotated[bool, typer.Option("--fetch", help="Download the model first, if it is missing (93 MB).")] = False,
    debug: Debug = False,
) -> None:
    """Serve SmolLM2-135M-Instruct at a loopback address, by llama.cpp (extra `local-model`).

    A model of 135 million parameters: it answers in form, it does not win. It shows that everything around a
    language model works, without a key and without a network.
    """
    if out is not None and play is None:
        raise refuse("--out", "`--out` should stand with `--play`", str(out))
    from drift_agents.cli.serve_local import NAME, fetch_model_file, find_model_file, serve_model

    if fetch:
        print(f"the model is in {fetch_model_file()}", flush=True)
    with serve_model(file or find_model_file(), port, parallel) as url:
        print(f"serving {NAME} at {url}" + ("" if play else "; Ctrl-C ends it"), flush=True)
        if play is not None:
            words = ["run", play, "--model", NAME, "--base-url", url, "--concurrency", str(parallel), "--keep-going"]
            status = main([*words, "--fresh", *(() if out is None else ("--out", str(out)))])
            raise typer.Exit(status)
        try:
            Event().wait()
        except KeyboardInterrupt:
            return  # the documented way to end it


memories = make_app(
    "Show, export and import memories in files.", "drift-agents memory show memory.sqlite", completion=False
)
app.add_typer(memories, name="memory", short_help="Show, export and import memories in files.")

app.add_typer(joining.submissions, name="submit", short_help="Make, check and repeat a submission.")
app.add_typer(joining.tracks, name="track", short_help="Play the same instances as all others, open or hidden.")
app.add_typer(joining.boards, name="board", short_help="Collect results and make the pages of the board.")

MemoryPath = Annotated[Path, typer.Argument(metavar="FILE", help="SQLite file of a memory.")]


@memories.command(
    "show", short_help="Print what a file holds.", epilog="Example: drift-agents memory show memory.sqlite --records 5"
)
def _show_memory(
    file: MemoryPath,
    records: Annotated[
        int, typer.Option(min=0, max=1_000_000, metavar="N", help="Print the newest N records too.")
    ] = 0,
    debug: Debug = False,
) -> None:
    """Print what the file of a memory holds. The file may be in use: what was committed last is shown."""
    from drift_agents.cli.memories import show_memory

    show_memory(file, records, _make_console())


@memories.command(
    "export",
    short_help="Write a memory as JSON.",
    epilog="Example: drift-agents memory export memory.sqlite --out memory.json",
)
def _export_memory(
    file: MemoryPath,
    out: Annotated[Path, typer.Option(metavar="JSON", help="The JSON file.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite the JSON file.")] = False,
    debug: Debug = False,
) -> None:
    """Write a memory as JSON: its name, options and snapshot. The file may be in use."""
    from drift_agents.cli.memories import write_export

    print(f"wrote {out}: {write_export(file, out, force):,} records")


@memories.command(
    "import",
    short_help="Make a memory's file of a JSON file.",
    epilog="Example: drift-agents memory import memory.json copy.sqlite",
)
def _import_memory(
    source: Annotated[Path, typer.Argument(metavar="JSON", help="JSON file of `memory export`.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new file of the memory.")],
    debug: Debug = False,
) -> None:
    """Make a memory's file of a JSON file. An existing file is not overwritten."""
    from drift_agents.cli.memories import read_export

    print(f"wrote {file}: {read_export(source, file):,} records")


@app.command(
    "stale",
    short_help="Count what the world contradicts in a memory.",
    epilog="Example: drift-agents stale memory.sqlite --schedule frozen_lake/explicit --phase drift-1",
)
def _stale(
    store: Annotated[
        Path,
        typer.Argument(metavar="STORE", help="SQLite file of a memory, or file or folder of a store (Chroma, mem0)."),
    ],
    schedule: Annotated[str, typer.Option(metavar="NAME|FILE", help="Schedule of the world.")],
    tick: Annotated[int | None, typer.Option(min=0, metavar="N", help="Tick of the world.")] = None,
    phase: Annotated[str | None, typer.Option(metavar="ID", help="Phase of the world, at its first tick.")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the world.")] = 0,
    kind: Annotated[
        Literal["memory", "chroma", "langgraph_sqlite", "mem0"] | None,
        typer.Option(help="What wrote the store (default: found out)."),
    ] = None,
    show: Annotated[int, typer.Option(min=0, metavar="N", help="Print the newest N contradicted records.")] = 0,
    most: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, metavar="X", help="Exit status 1 if a larger share is contradicted."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Count the records of a memory or a store that the world contradicts now, whole or in part.

    The oracle of the environment judges them; nothing is played. The records stay as they are.
    """
    if (tick is None) == (phase is None):
        raise refuse("--tick", "one of `--tick` and `--phase` should be given", "both" if phase else "neither")
    from drift_agents.cli.stale import print_stale, read_contents

    share = print_stale(read_contents(store, kind), schedule, seed, tick, phase, show, _make_console())
    if most is not None and share > most:
        print(f"drift-agents: {100 * share:.1f} % contradicted, more than {100 * most:g} %", file=sys.stderr)
        raise typer.Exit(FAILED)


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

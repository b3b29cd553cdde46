"""The command `drift-agents`: run experiments and read what came of them.

* `main` - the command; returns the exit status
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from drift_agents.analysis.html.report import write_html
from drift_agents.analysis.inspect.page import LARGE, write_page
from drift_agents.analysis.inspect.serve import make_server
from drift_agents.analysis.report import write_report
from drift_agents.cli.boards import add_board_commands
from drift_agents.cli.export import add_export_commands
from drift_agents.cli.models import add_model_options, describe_totals, make_service, name_models
from drift_agents.errors import ArgumentError, DriftAgentsError, ModelError, UnknownNameError
from drift_agents.experiment.folder import MANIFEST
from drift_agents.experiment.loader import AXES, load_experiment, shipped_experiments
from drift_agents.experiment.references import REFERENCES
from drift_agents.experiment.runner import run_experiment
from drift_agents.experiment.trace import TRACE
from drift_agents.experiment.workers import BACKENDS, ray_cores
from drift_agents.llm.service import Service
from drift_agents.registry import LEARNERS
from drift_envs.errors import DriftEnvsError

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
"""The exit status: all well, the work failed, wrong usage, Ctrl-C."""

CHOSEN = ("memory", "controller", "team", "policy")
"""The axes that options of `run` replace."""

WIDTH = 100
"""How wide tables are where the output is no terminal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command `drift-agents`.

    Args:
        arguments: those of the command line if not given.

    Returns:
        The exit status: 0, 1 (the work failed), 2 (wrong usage) or 130 (interrupted).
    """
    parser = build_parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        options.command(options)
    except KeyboardInterrupt:
        given = sys.argv[1:] if arguments is None else arguments
        print(f"drift-agents: interrupted{_how_to_go_on(options, given)}", file=sys.stderr)
        return INTERRUPTED
    except (DriftAgentsError, DriftEnvsError) as error:
        if options.debug:
            traceback.print_exc()
        else:
            given = sys.argv[1:] if arguments is None else arguments
            more = _how_to_go_on(options, given) if isinstance(error.__cause__, ModelError) else ""
            print(f"drift-agents: {error}{more}", file=sys.stderr)
        return USAGE if isinstance(error, (UnknownNameError, ArgumentError)) else FAILED
    except BrokenPipeError:
        # The reader of our output has gone (`drift-agents report ... | head`): nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return OK


def build_parser() -> argparse.ArgumentParser:
    """The command line of `drift-agents`."""
    parser = argparse.ArgumentParser(
        prog="drift-agents",
        description="Agents with memory in drifting worlds: run experiments and read what came of them.",
        epilog="example: drift-agents run glove-quick --jobs 2",
    )
    parser.add_argument("--version", action="version", version=f"drift-envs {version('drift-envs')}")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    listing = commands.add_parser(
        "list",
        parents=[common],
        help="experiments, memories, verifiers, controllers, teams and policies",
        description="List what experiment files can name: experiments, memories, verifiers, controllers, teams and "
        "policies.",
        epilog="example: drift-agents list",
    )
    listing.set_defaults(command=_list)

    run = commands.add_parser(
        "run",
        parents=[common],
        help="run an experiment",
        description="Run an experiment and print its report. Every episode is on disk when it is over; an "
        "interrupted run goes on with --resume. The options below replace what the file says.",
        epilog="example: drift-agents run glove-quick --seeds 3 --memory none,vanilla --out runs/try --jobs 2",
    )
    run.add_argument("experiment", metavar="NAME|FILE", help="a shipped experiment, or the path of an experiment file")
    run.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: runs/NAME)")
    run.add_argument(
        "--seeds", type=_positive, metavar="N", help="play the first N of the file's seeds, on every schedule"
    )
    run.add_argument("--rounds", type=_positive, metavar="N", help="play the first N episodes of every phase")
    run.add_argument("--memory", type=_names, metavar="A,B", help="play these memories, of every block of the file")
    run.add_argument("--controller", type=_names, metavar="A,B", help="play with these controllers")
    run.add_argument("--team", type=_names, metavar="A,B", help="play as these teams")
    run.add_argument("--policy", type=_names, metavar="P", help="play with this policy (or several: P,Q)")
    run.add_argument(
        "--jobs",
        type=_positive,
        metavar="N",
        help=f"cells at a time (default: one a core, {_cores()}; with language models --concurrency)",
    )
    run.add_argument(
        "--backend",
        choices=BACKENDS,
        default=BACKENDS[0],
        help="where cells are played: processes of this machine (default), or workers of Ray (extra `scale`), of the "
        "cluster at RAY_ADDRESS if that is set; --jobs is then one a core of Ray's by default",
    )
    run.add_argument(
        "--trace",
        choices=TRACE,
        help="keep the steps of these episodes, for `inspect` (default: what the file says, else none)",
    )
    again = run.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="go on with the run in the folder")
    again.add_argument("--fresh", action="store_true", help="throw away the run in the folder and begin anew")
    add_model_options(run, _positive, _names)
    run.set_defaults(command=_run)

    report = commands.add_parser(
        "report",
        parents=[common],
        help="print what a run showed",
        description="Print the report of a finished run, and write it into the run's folder as report.md.",
        epilog="example: drift-agents report runs/glove-quick",
    )
    report.add_argument("folder", type=Path, metavar="DIR", help="the run's folder")
    report.add_argument(
        "--html",
        action="store_true",
        help="write report.html too, with plots (also as files, in `plots`) and the page for the steps",
    )
    report.set_defaults(command=_report)

    inspect = commands.add_parser(
        "inspect",
        parents=[common],
        help="a page to step through the episodes of a run",
        description="Write one HTML file that shows all episodes of a finished run and needs nothing else: no network, "
        "no server. Steps are in it if the run kept them (`run --trace`).",
        epilog="example: drift-agents inspect runs/glove-quick",
    )
    inspect.add_argument("folder", type=Path, metavar="DIR", help="the run's folder")
    where = inspect.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, metavar="FILE", help="the file (default: DIR/inspect.html)")
    where.add_argument(
        "--serve", action="store_true", help="serve the page from this machine instead; for runs with many steps"
    )
    inspect.add_argument("--port", type=_positive, metavar="N", help="where to serve (default: any that is free)")
    inspect.set_defaults(command=_inspect)
    add_board_commands(commands, common)
    add_export_commands(commands, common)
    return parser


def _positive(text: str) -> int:
    value = int(text) if text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"should be a positive whole number. Received {text!r}")
    return value


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"should be names with commas between them. Received {text!r}")
    return names


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _list(options: argparse.Namespace) -> None:
    console = _console()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    experiments = [(name, load_experiment(name).about) for name in shipped_experiments()]
    sections = [("experiments", experiments), *((_plural(axis), list(AXES[axis].summaries().items())) for axis in AXES)]
    sections += [("learners", list(LEARNERS.summaries().items())), ("references", list(REFERENCES.items()))]
    for title, rows in sections:
        table.add_row(Text(title, style="bold underline"), "")
        for name, about in rows:
            table.add_row(Text(f"  {name}"), Text(about))
        table.add_row("", "")
    console.print(table)


def _plural(axis: str) -> str:
    return {"memory": "memories", "policy": "policies"}.get(axis, f"{axis}s")


def _run(options: argparse.Namespace) -> None:
    experiment = load_experiment(options.experiment, _overrides(options))
    folder = options.out or Path("runs") / experiment.name
    options.out = folder  # for the message of an interrupted run
    how = {name: getattr(options, name) for name in ("backend", "resume", "fresh", "trace")}
    service = make_service(experiment, options)
    cores = ray_cores if options.backend == "ray" else _cores
    jobs = options.jobs or (cores() if service is None else options.concurrency)
    try:
        with _Bars(service) as bars:
            run_experiment(experiment, folder, jobs=jobs, **how, progress=bars, service=service)
    finally:
        if service is not None:
            service.close()
            print(f"language models: {describe_totals(service.totals())}", file=sys.stderr)
    write_report(folder, _console())


def _overrides(options: argparse.Namespace) -> dict[str, Any]:
    """What the command's options replace, with what the file says about the rest."""
    overrides: dict[str, Any] = {}
    if options.seeds is not None:
        overrides["seeds"] = options.seeds
    if options.rounds is not None:
        overrides |= {"rounds": options.rounds, "episodes": None}
    wanted = {axis: getattr(options, axis) for axis in CHOSEN if getattr(options, axis) is not None}
    for axis, names in wanted.items():
        for name in names:
            AXES[axis].load(name)  # refuses a name that does not exist
    asks = any(value is not None for value in (options.model, options.base_url, options.price))
    if wanted or asks:
        blocks = load_experiment(options.experiment).to_dict()["agents"]
        overrides["agents"] = [
            {**block, **{axis: _choose(names, block.get(axis, ())) for axis, names in wanted.items()}}
            for block in blocks
        ]
    if asks:
        overrides |= name_models(load_experiment(options.experiment, overrides).to_dict(), options)
    return overrides


def _choose(names: Sequence[str], parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The parts of these names as a block of the file has them, or with their defaults if it has none of that name."""
    chosen: list[Mapping[str, Any]] = []
    for name in names:
        chosen += [part for part in parts if part["name"] == name] or [{"name": name}]
    return chosen


def _how_to_go_on(options: argparse.Namespace, given: Sequence[str]) -> str:
    """The command that continues an interrupted run."""
    if options.command is not _run or not (options.out and (options.out / MANIFEST).exists()):
        return ""
    words = shlex.join(word for word in given if word not in ("--fresh", "--resume"))
    return f". What is done is kept; go on with: drift-agents {words} --resume"


def _report(options: argparse.Namespace) -> None:
    write_report(options.folder, _console())
    if options.html:
        print(f"With plots, and links to the steps: {write_html(options.folder)}")


def _inspect(options: argparse.Namespace) -> None:
    if options.port is not None and not options.serve:
        raise ArgumentError("`--port` should stand with `--serve`. Received it alone")
    if options.serve:
        with make_server(options.folder, options.port or 0) as server:
            print(f"serving {options.folder} at {server.url}; Ctrl-C ends it", flush=True)
            with suppress(KeyboardInterrupt):  # the way to end it
                server.serve_forever()
        return
    path = write_page(options.folder, options.out)
    size = path.stat().st_size
    print(f"wrote {path} ({size / 2**20:.1f} MB)")
    if size > LARGE:
        print(
            f"drift-agents: a browser will be slow with it; try: drift-agents inspect {options.folder} --serve",
            file=sys.stderr,
        )


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)


class _Asked(ProgressColumn):
    """What language models were asked so far, beside the first bar."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self._service = service

    def render(self, task: Task) -> Text:
        """The text, which changes while a bar stands still."""
        return Text(describe_totals(self._service.totals()) if task.id == 0 else "")


class _Bars:
    """A bar for every schedule, on standard error; below them what language models were asked.

    Args:
        service: through which they are asked, if there are any.
    """

    def __init__(self, service: Service | None = None) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("episodes"),
            TimeRemainingColumn(),
            *(() if service is None else (_Asked(service),)),
            console=Console(stderr=True),
        )
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> _Bars:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def begin(self, schedule: str, episodes: int) -> None:
        """A bar for a schedule."""
        self._bars[schedule] = self._progress.add_task(schedule, total=episodes)

    def advance(self, schedule: str, episodes: int) -> None:
        """So many episodes of it are done."""
        self._progress.advance(self._bars[schedule], episodes)

    def note(self, text: str) -> None:
        """A line above the bars."""
        self._progress.console.print(f"drift-agents: {text}", markup=False, highlight=False)

"""The command `drift-agents run`.

* `RunOptions` - its options
* `run` - plays the experiment with progress bars and prints the report
"""

from __future__ import annotations

import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from drift_agents.analysis.report import write_report
from drift_agents.cli.dry_run import has_models, print_estimate
from drift_agents.cli.models import ModelOptions, describe_totals, make_service, name_models
from drift_agents.cli.playing_time import print_playing_time
from drift_agents.errors import DriftAgentsError, ExperimentError, ModelError
from drift_agents.experiment.folder import MANIFEST, TRACKING
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.mistakes import AXES
from drift_agents.experiment.runner import Progress as Callbacks
from drift_agents.experiment.runner import run_experiment
from drift_agents.llm.service import Service
from drift_agents.part_file import PartFile
from drift_envs.command_line import Verbosity
from drift_envs.errors import load_all
from drift_envs.integrations.trackers import make_tracker

FIGURES = 48
"""Columns beside the name of a schedule: bar, episodes and times."""


@dataclass(frozen=True)
class RunOptions:
    """Options of the command.

    Args:
        experiment: a shipped name or the path of a file.
        out: folder of the run; `None` for `runs/NAME`.
        seeds: number of the file's seeds to play; `None` for all.
        rounds: episodes of every phase to play; `None` for the file's.
        schedules: which schedules of the file are played; all if empty.
        axes: for each axis that is replaced, names of parts.
        jobs: cells at the same time; `None` for one a core, or with language models one a concurrent request.
        backend: one of `drift_agents.experiment.clusters.BACKENDS`.
        address: of a cluster.
        trace: which episodes keep their steps; `None` for the file's value.
        resume: continue the run in the folder.
        fresh: delete the run in the folder.
        words: the words of the command line.
        models: the options about language models.
        trackers: names of experiment trackers.
        references: whether the file's references are played.
        dry_run: print what the run would cost, and write nothing.
        verbosity: of what is printed beside the report.
    """

    experiment: str
    out: Path | None
    seeds: int | None
    rounds: int | None
    schedules: Sequence[str]
    axes: Mapping[str, Sequence[str]]
    jobs: int | None
    backend: str
    address: str | None
    trace: str | None
    resume: bool
    fresh: bool
    words: Sequence[str]
    models: ModelOptions
    trackers: Sequence[str] = ()
    references: bool = True
    dry_run: bool = False
    verbosity: Verbosity = Verbosity.NORMAL


def run(options: RunOptions, console: Console) -> None:
    """Play the experiment and print its report.

    Args:
        options: the options.
        console: where the report is printed.

    Raises:
        DriftAgentsError: if the experiment cannot be read or played.
    """
    experiment = load_experiment(options.experiment, _read_overrides(options))
    if options.dry_run:
        if has_models(experiment):
            print_estimate(experiment, options.models, console)
        else:
            print_playing_time(experiment, options.jobs, console)
        return
    folder = options.out or Path("runs") / experiment.name
    logged = folder.absolute() / TRACKING
    trackers = load_all(partial(make_tracker, name, logged / name, experiment.name) for name in options.trackers)
    is_quiet = options.verbosity is Verbosity.QUIET
    service = make_service(experiment, options.models, _print_nothing if is_quiet else _print_note)
    begun = time.monotonic()
    jobs = options.jobs
    if service is not None:
        jobs = min(options.models.concurrency, jobs or options.models.concurrency)
    try:
        with _interrupted_by_signals(), ProgressBars(service, options.verbosity) as bars:
            run_experiment(
                experiment,
                folder,
                jobs=jobs,
                backend=options.backend,
                address=options.address,
                resume=options.resume,
                fresh=options.fresh,
                trace=options.trace,
                progress=bars,
                service=service,
                trackers=trackers,
            )
    except KeyboardInterrupt:
        if hint := _describe_resume(options, folder):
            print(f"drift-agents: {hint}", file=sys.stderr)
        raise
    except DriftAgentsError as error:
        hint = _describe_resume(options, folder)
        if hint and (isinstance(error.__cause__, ModelError) or getattr(error, "is_resumable", False)):
            raise ExperimentError(f"{str(error).rstrip('.')}. {hint}") from error
        raise
    finally:
        if service is not None:
            service.close()
            totals = service.totals()
            if not is_quiet and (totals.answered or totals.recorded):
                print(f"language models: {describe_totals(totals)}", file=sys.stderr)
    seconds = round(time.monotonic() - begun)
    write_report(folder, console)
    if not is_quiet:
        for name in options.trackers:
            _print_note(f"{name} has the run in {logged / name}")
        _print_note(f"played in {timedelta(seconds=seconds)}; the run is in {folder}")


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Treat the signals that end a process or close its terminal as Ctrl-C, so that a run stops in good order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _read_overrides(options: RunOptions) -> dict[str, Any]:
    """The values of the experiment that the options replace."""
    overrides: dict[str, Any] = {}
    if options.seeds is not None:
        overrides["seeds"] = options.seeds
    if options.rounds is not None:
        overrides |= {"rounds": options.rounds, "episodes": None}
    if options.schedules:
        overrides["schedules"] = options.schedules
    if not options.references:
        overrides["references"] = []
    axes = {axis: _check_names(axis, names) for axis, names in options.axes.items()}
    models = options.models
    names_models = any(value is not None for value in (models.names, *models.server().values()))
    if axes or names_models:
        blocks = load_experiment(options.experiment).to_dict()["agents"]
        overrides["agents"] = [
            {**block, **{axis: _choose_parts(names, block.get(axis, ())) for axis, names in axes.items()}}
            for block in blocks
        ]
    if names_models:
        overrides |= name_models(load_experiment(options.experiment, overrides).to_dict(), models)
    return overrides


def _check_names(axis: str, names: Sequence[str]) -> list[str]:
    """The names of parts, those of Python files with the hash of the file; raises if one is unknown."""
    checked = []
    for name in names:
        file = PartFile.read(name)
        checked.append(name if file is None else file.pin().text)
        AXES[axis].load(checked[-1])
    return checked


def _choose_parts(names: Sequence[str], parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The parts of these names in a block of the file; one that it does not have gets its default options."""
    chosen: list[Mapping[str, Any]] = []
    for name in names:
        chosen += [part for part in parts if part["name"] == name] or [{"name": name}]
    return chosen


def _describe_resume(options: RunOptions, folder: Path) -> str:
    """How to continue the run; empty if nothing has been played."""
    if not (folder / MANIFEST).exists():
        return ""
    words = shlex.join(word for word in options.words if word not in ("--fresh", "--resume"))
    return f"What is done is kept; continue with: drift-agents {words} --resume"


def _print_note(text: str) -> None:
    print(f"drift-agents: {text}", file=sys.stderr)


def _print_nothing(_: str) -> None:
    pass


class ProgressBars(Callbacks):
    """A bar of one line for every schedule, on standard error; below them the requests to language models.

    Args:
        service: the language models, if the experiment has any.
        verbosity: quiet ones print nothing, verbose ones a line for each finished cell.
    """

    def __init__(self, service: Service | None = None, verbosity: Verbosity = Verbosity.NORMAL) -> None:
        self._progress = _Bars(service, disable=verbosity is Verbosity.QUIET)
        self._verbosity = verbosity
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> ProgressBars:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars:  # without one there is nothing to stop, and `stop` would print an empty line
            self._progress.stop()

    def begin(self, schedule: str, episodes: int) -> None:
        """Add the bar of a schedule, with its number of episodes."""
        self._progress.start()
        self._bars[schedule] = self._progress.add_task(schedule, total=episodes)

    def advance(self, schedule: str, episodes: int) -> None:
        """Count finished episodes of a schedule."""
        self._progress.advance(self._bars[schedule], episodes)
        if episodes and self._verbosity is Verbosity.VERBOSE:
            bar = self._progress.tasks[self._bars[schedule]]
            self.note(f"{schedule}: {bar.completed:.0f} of {bar.total:.0f} episodes")

    def note(self, text: str) -> None:
        """Print a line above the bars."""
        if self._verbosity is not Verbosity.QUIET:
            self._progress.console.print(f"drift-agents: {text}", markup=False, highlight=False)


class _Bars(Progress):
    """The bars of schedules, and one line for the requests, which change while no bar does."""

    def __init__(self, service: Service | None, disable: bool) -> None:
        self._service = service  # before the base's constructor, which renders
        console = Console(stderr=True)
        super().__init__(
            TextColumn("{task.description}", table_column=Column(no_wrap=True, max_width=console.width - FIGURES)),
            BarColumn(bar_width=None, table_column=Column(ratio=1)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("elapsed", table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            TextColumn("left", table_column=Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            console=console,
            disable=disable,
            expand=True,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bars, then the requests."""
        yield self.make_tasks_table(self.tasks)
        if self._service is not None:
            yield Text(describe_totals(self._service.totals()), no_wrap=True, overflow="ellipsis")

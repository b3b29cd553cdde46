"""The command `drift-agents run`.

* `RunOptions` - how an experiment is played
* `run` - plays it with progress bars and prints the report
* `make_service` - the service that sends the requests to language models
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

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
from drift_agents.errors import ArgumentError, DriftAgentsError, ExperimentError, ModelError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import MANIFEST, TRACKING
from drift_agents.experiment.players import needs_model, prices_of
from drift_agents.experiment.runner import Progress as Callbacks
from drift_agents.experiment.runner import run_experiment
from drift_agents.llm.answer_format import AnswerMonitor
from drift_agents.llm.budget import Budget
from drift_agents.llm.connection import import_openai
from drift_agents.llm.service import ReplyStore, Service, Totals
from drift_envs.command_line import Verbosity
from drift_envs.errors import load_all
from drift_envs.integrations.trackers import make_tracker

FIGURES = 48
"""Columns beside the name of a schedule: bar, episodes and times."""

LOCAL = "local"
"""The address of Ray that stands for `RAY_ADDRESS`, or for a cluster that is started on this machine."""


@dataclass(frozen=True)
class RunOptions:
    """How an experiment is played; what is played is said by the experiment.

    Args:
        out: folder of the run; `None` for `runs/NAME`.
        jobs: cells at the same time; `None` for one a core, or with language models one a concurrent request.
        ray: address of a cluster of Ray that plays them, or `LOCAL`; `None` for processes of this machine.
        trace: which episodes keep their steps; `None` for the file's value.
        trackers: names of experiment trackers.
        resume: continue the run in the folder.
        fresh: delete the run in the folder.
        replay: a file of recorded replies from which all replies come.
        words: the words of the command line.
        verbosity: of what is printed beside the report.
    """

    out: Path | None = None
    jobs: int | None = None
    ray: str | None = None
    trace: str | None = None
    trackers: Sequence[str] = ()
    resume: bool = False
    fresh: bool = False
    replay: Path | None = None
    words: Sequence[str] = ()
    verbosity: Verbosity = Verbosity.NORMAL


def run(experiment: Experiment, options: RunOptions, console: Console) -> None:
    """Play an experiment and print its report.

    Args:
        experiment: the experiment.
        options: the options.
        console: where the report is printed.

    Raises:
        DriftAgentsError: if the experiment cannot be played.
    """
    folder = options.out or Path("runs") / experiment.name
    logged = folder.absolute() / TRACKING
    trackers = load_all(partial(make_tracker, name, logged / name, experiment.name) for name in options.trackers)
    is_quiet = options.verbosity is Verbosity.QUIET
    service = make_service(experiment, options.replay, _print_nothing if is_quiet else _print_note)
    begun = time.monotonic()
    jobs = options.jobs
    if service is not None:
        jobs = min(experiment.models.concurrency, jobs or experiment.models.concurrency)
    try:
        with ProgressBars(service, options.verbosity) as bars:
            run_experiment(
                experiment,
                folder,
                jobs=jobs,
                backend="processes" if options.ray is None else "ray",
                address=None if options.ray == LOCAL else options.ray,
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


def make_service(
    experiment: Experiment, replay: Path | None = None, note: Callable[[str], None] | None = None
) -> Service | None:
    """Make the service that sends the requests; `None` if the experiment has no language model.

    Args:
        experiment: the experiment.
        replay: a file of recorded replies from which all replies come; no request is sent.
        note: called with a sentence about what a server refuses.

    Raises:
        ArgumentError: if there is a budget without prices.
        MissingDependencyError: if the client is not installed and no reply is recorded.
    """
    if not needs_model(experiment):
        return None
    models = experiment.models
    if models.budget is not None and not prices_of(experiment):
        raise ArgumentError(
            "`models.budget` should stand with the option `price` of a policy, as in --set policy.price=[0.15,0.60]: "
            f"without prices nothing costs anything. Received {models.budget:g} alone"
        )
    replies = models.replies if replay is None else replay
    if replies is None:  # otherwise all replies may be recorded
        import_openai()
    return Service(
        replies=None if replies is None else ReplyStore(replies, read_only=replay is not None),
        key_file=models.key_file,
        timeout=models.timeout,
        budget=Budget(models.budget_tokens, models.budget),
        monitor=None if models.keep_going or replay is not None else AnswerMonitor(),
        note=note,
    )


def describe_totals(totals: Totals) -> str:
    """Requests, tokens and cost in one line.

    Args:
        totals: those of the service.

    Example:
        >>> describe_totals(Totals(120, 30, 45_000, 0.0123))
        '120 requests, 30 from records, 45,000 tokens, cost 0.0123'
    """
    cost = f", cost {totals.cost:.4f}" if totals.cost else ""
    return f"{totals.answered} requests, {totals.recorded} from records, {totals.tokens:,} tokens{cost}"


def _describe_resume(options: RunOptions, folder: Path) -> str:
    """How to continue the run; empty if nothing has been played."""
    if not os.path.exists(folder / MANIFEST):  # `Path.exists` raises where the name is too long
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

"""All cells of an experiment, with resume.

* `run_experiment` - plays an experiment into a folder
* `Progress` - callbacks about the progress
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from drift_agents.agent import LOOP, NOTABLE_LOOPS
from drift_agents.errors import ArgumentError, ExperimentError
from drift_agents.experiment.clusters import BACKENDS
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.dispatch import WorkPlace, play_cells
from drift_agents.experiment.folder import REPLIES, RunFolder, lines_hash
from drift_agents.experiment.logs import TEST, parse_rows
from drift_agents.experiment.manifest import describe
from drift_agents.experiment.mistakes import part_files
from drift_agents.experiment.plan import Cell, plan_cells
from drift_agents.experiment.players import needs_model
from drift_agents.experiment.trace import TRACE
from drift_agents.experiment.training import has_training
from drift_agents.llm.cache import ReplyStore
from drift_agents.llm.service import Service
from drift_envs.integrations.trackers import EpisodeSeries, Tracker

Row = Mapping[str, Any]

TRACKED = {
    "steps": "steps",
    "probes": "probe_steps",
    "surprises": "surprises",
    "realignments": "realignments",
    "memory_size": "memory_size",
    "truth_rate": "memory_truth_rate",
    "regret": "regret",
}
"""What trackers get of an episode beside its score: their name for it, and the field of the line."""


class Progress(Protocol):
    """Progress callbacks; return values are ignored."""

    def begin(self, schedule: str, episodes: int) -> None:
        """So many episodes are to be played on a schedule."""

    def advance(self, schedule: str, episodes: int) -> None:
        """So many episodes of it are done."""

    def note(self, text: str) -> None:
        """Something worth knowing about the run."""


class Silent:
    """A `Progress` without output."""

    def begin(self, schedule: str, episodes: int) -> None:
        """Nothing."""

    def advance(self, schedule: str, episodes: int) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    jobs: int | None = 1,
    backend: str = "processes",
    address: str | None = None,
    resume: bool = False,
    fresh: bool = False,
    trace: str | None = None,
    progress: Progress | None = None,
    service: Service | None = None,
    trackers: Sequence[Tracker] = (),
) -> Path:
    """Play an experiment into a folder.

    Args:
        experiment: what is played.
        folder: where to; it is made if it does not exist.
        jobs: how many cells are played at the same time, `None` for one a core; the results do not depend on it.
        backend: where several cells are played: `processes` of this machine, or workers of `ray`, which
            send their cells and their requests to language models back. On this machine, cells with language models
            are played in this process.
        address: the cluster of `ray`, see `drift_agents.experiment.clusters.open_cluster`.
        resume: continue an existing run.
        fresh: delete an existing run.
        trace: which episodes are kept step by step: `all`, `failures` or `none`; what the experiment says if
            not given. Lines do not depend on it; cells that are done already are not played again for it, and
            `progress.note` receives how many of them have no steps.
        progress: callbacks about the progress.
        service: the service of language models, if there are any; one with default limits if not
            given. Unless it has a file of its own, replies are recorded in the folder, and are found there
            when the run goes on.
        trackers: experiment trackers, see `drift_envs.integrations.trackers`; each cell is a run of theirs, which is
            logged when the cell is done. Cells that were done before are not logged again.

    Returns:
        The file with all lines, `episodes.jsonl`.

    Raises:
        ArgumentError: if `jobs` is not positive, there is no such backend or trace, both `resume` and `fresh` are
            given, or an address without a cluster.
        PartError: if a part of one's own cannot be used, or its file was changed since the run began.
        MissingDependencyError: if the backend is not installed.
        ExperimentError: if the experiment cannot be played, or the folder cannot be used; its cause is the
            `ModelError` where a language model cannot be reached any more, and what is done is kept.
    """
    if jobs is not None and jobs < 1:
        raise ArgumentError(f"`jobs` should be a whole number, at least 1. Received {jobs!r}")
    if backend not in BACKENDS:
        raise ArgumentError(f"`backend` should be one of {', '.join(BACKENDS)}. Received {backend!r}")
    if address is not None and backend == "processes":
        raise ArgumentError(f"`address` should stand with the backend ray. Received {address!r}")
    if resume and fresh:
        raise ArgumentError("`resume` and `fresh` exclude each other. Received both")
    trace = experiment.trace if trace is None else trace
    if trace not in TRACE:
        raise ArgumentError(f"`trace` should be one of {', '.join(TRACE)}. Received {trace!r}")
    progress = Silent() if progress is None else progress
    cells = plan_cells(experiment)
    if backend != "processes" and (files := part_files(experiment.to_dict())):
        raise ArgumentError(
            f"`backend` should be processes with {next(iter(files.values())).path}. Received {backend!r}"
        )
    where = WorkPlace(jobs, backend, address)
    with _service_for(experiment, folder, service) as used:
        return _run(experiment, folder, cells, used, where, resume, fresh, trace, progress, trackers)


@contextmanager
def _service_for(experiment: Experiment, folder: Path, service: Service | None) -> Iterator[Service | None]:
    """The service of a run, `None` without language models; by default it records replies in the folder."""
    if not needs_model(experiment):
        yield None
        return
    service = Service() if service is None else service
    with ReplyStore(folder / REPLIES) as replies:
        if service.replies is None:
            service.replies = replies
        yield service


def _run(
    experiment: Experiment,
    folder: Path,
    cells: tuple[Cell, ...],
    service: Service | None,
    where: WorkPlace,
    resume: bool,
    fresh: bool,
    trace: str,
    progress: Progress,
    trackers: Sequence[Tracker],
) -> Path:
    manifest, lengths = describe(experiment, cells, service)

    def length(cell: Cell) -> int:
        training = experiment.settings_of(cell.schedule).training
        before = training.episodes * training.epochs if training is not None and has_training(cell, training) else 0
        return lengths[cell.place] + before

    try:
        with RunFolder(folder) as held:
            held.open(manifest, resume=resume, fresh=fresh)
            left = _left(held, cells)
            waiting = {cell.key for cell in left}
            done = [cell for cell in cells if cell.key not in waiting]
            _tell_untraced(held, done, trace, progress)
            for schedule in experiment.schedules:
                progress.begin(schedule, sum(length(cell) for cell in cells if cell.schedule == schedule))
                progress.advance(schedule, sum(length(cell) for cell in done if cell.schedule == schedule))
            try:
                loops = _LoopWatch(progress)
                for cell, episodes in play_cells(experiment, held, left, where, trace, service):
                    rows = parse_rows(held.note_finished(cell.key, episodes), cell.key)
                    progress.advance(cell.schedule, length(cell))
                    loops.add(cell, rows)
                    _track(cell, rows, trackers)
                loops.sum_up()
                return held.merge(cell.key for cell in cells)
            except OSError as error:
                message = f"{error.filename or folder}: cannot be used: {error.strerror}"
                raise ExperimentError(message, is_resumable=True) from error
            except ExperimentError as error:
                error.is_resumable = True
                raise
    except OSError as error:
        raise ExperimentError(f"{error.filename or folder}: cannot be used: {error.strerror}") from error


def _track(cell: Cell, rows: Sequence[Row], trackers: Sequence[Tracker]) -> None:
    """Log the test of a cell that has been played."""
    if not trackers:
        return
    memory, verifier, policy = cell.labels
    controller, team = cell.decision.labels
    about = {"schedule": cell.place, "memory": memory, "verifier": verifier, "policy": policy}
    series = EpisodeSeries(trackers, cell.key, {**about, "controller": controller, "team": team, "seed": cell.seed})
    for row in rows:
        if row["stage"] == TEST:
            values = {name: row[field] for name, field in TRACKED.items()}
            series.add(row["phase"], row["score"], values)
    series.end()


class _LoopWatch:
    """Warns of agents that move in circles: at the first cell, and at the end with their number."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._cells = self._looping = 0

    def add(self, cell: Cell, rows: Sequence[Row]) -> None:
        """Count the loops of a cell that has been played."""
        steps, looped = (sum(row[field] for row in rows) for field in ("steps", "loop_steps"))
        self._cells += 1
        if not steps or looped / steps < NOTABLE_LOOPS:
            return
        self._looping += 1
        if self._looping == 1:
            self._progress.note(
                f"warning: {cell.key} moved in circles: {looped / steps:.0%} of its steps are in loops longer than "
                f"{LOOP} steps. Further cells are counted"
            )

    def sum_up(self) -> None:
        """Note how many cells moved in circles."""
        if self._looping:
            self._progress.note(
                f"warning: {self._looping} of the {self._cells} cells played have at least {NOTABLE_LOOPS:.0%} of "
                "their steps in loops; the report counts the agents"
            )


def _tell_untraced(folder: RunFolder, done: list[Cell], trace: str, progress: Progress) -> None:
    """Note the finished cells without steps; they are not played again for a trace."""
    missing = 0 if trace == "none" else sum(not folder.trace(cell.key).exists() for cell in done)
    if missing:
        progress.note(
            f"{missing} of the cells that are done were played without keeping steps, and stay as they are: "
            "`inspect` will not show their steps. Begin anew with --fresh to keep them"
        )


def _left(folder: RunFolder, cells: tuple[Cell, ...]) -> list[Cell]:
    """The cells that are not done.

    Raises:
        ExperimentError: if the lines of one that is done have been changed since.
    """
    finished = folder.finished()
    for cell in cells:
        if cell.key in finished and lines_hash(folder.cells.read(cell.key)) != finished[cell.key]:
            raise ExperimentError(
                f"{folder.cells.folder}: {cell.key} is not what the run wrote when it finished this cell. A file was "
                "changed; put it back, or begin anew with --fresh"
            )
    return [cell for cell in cells if cell.key not in finished]

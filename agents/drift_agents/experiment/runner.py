"""All cells of an experiment, in parallel, with resume.

* `run_experiment` - plays an experiment into a folder
* `describe` - what is played: the content of `run.json`
* `Progress` - callbacks about the progress
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from drift_agents.agent import LOOP, NOTABLE_LOOPS
from drift_agents.errors import ArgumentError, DriftAgentsError, ExperimentError
from drift_agents.experiment.clusters import BACKENDS, open_cluster, play_on_cluster
from drift_agents.experiment.config import Experiment, ScheduleSettings
from drift_agents.experiment.construction import has_construction
from drift_agents.experiment.episode import CellSetup, make_setup, play
from drift_agents.experiment.folder import REPLIES, RunFolder, file_hash, find_differences, versions
from drift_agents.experiment.logs import TEST, CellLog, read_rows, to_line
from drift_agents.experiment.packages import run_versions
from drift_agents.experiment.plan import Cell, plan_cells
from drift_agents.experiment.players import needs_model
from drift_agents.experiment.trace import TRACE
from drift_agents.experiment.trace_writer import CellTracer
from drift_agents.experiment.workers import count_cores, play_in_processes, play_in_threads
from drift_agents.experiment.worlds import read_schedule
from drift_agents.llm.cache import ReplyStore
from drift_agents.llm.service import Service
from drift_envs.errors import DriftEnvsError
from drift_envs.tracking import EpisodeSeries, Tracker

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
        backend: where several cells are played: `processes` of this machine, or workers of `ray` or `dask`, which
            send their cells back. Cells with language models are played in this process.
        address: the cluster of `ray` or `dask`, see `drift_agents.experiment.clusters.open_cluster`.
        resume: continue an existing run.
        fresh: delete an existing run.
        trace: which episodes are kept step by step: `all`, `failures` or `none`; what the experiment says if
            not given. Lines do not depend on it; cells that are done already are not played again for it, and
            `progress.note` receives how many of them have no steps.
        progress: callbacks about the progress.
        service: the service of language models, if there are any; one with default limits if not
            given. Unless it has a file of its own, replies are recorded in the folder, and are found there
            when the run goes on.
        trackers: experiment trackers, see `drift_envs.tracking`; each cell is a run of theirs, which is logged when
            the cell is done. Cells that were done before are not logged again.

    Returns:
        The file with all lines, `episodes.jsonl`.

    Raises:
        ArgumentError: if `jobs` is not positive, there is no such backend or trace, both `resume` and `fresh` are
            given, or an address without a cluster.
        MissingDependencyError: if the backend is not installed.
        ExperimentError: if the experiment cannot be played, or the folder cannot be used; its cause is the
            `ModelError` where a language model cannot be reached any more, and what is done is kept.
    """
    if jobs is not None and jobs < 1:
        raise ArgumentError(f"`jobs` should be a whole number, at least 1. Received {jobs!r}")
    if backend not in BACKENDS:
        raise ArgumentError(f"`backend` should be one of {', '.join(BACKENDS)}. Received {backend!r}")
    if address is not None and backend == "processes":
        raise ArgumentError(f"`address` should stand with the backend ray or dask. Received {address!r}")
    if resume and fresh:
        raise ArgumentError("`resume` and `fresh` exclude each other. Received both")
    trace = experiment.trace if trace is None else trace
    if trace not in TRACE:
        raise ArgumentError(f"`trace` should be one of {', '.join(TRACE)}. Received {trace!r}")
    progress = Silent() if progress is None else progress
    cells = plan_cells(experiment)
    if backend != "processes" and needs_model(experiment):
        raise ArgumentError(
            f"`backend` should be processes with language models, whose cost one service counts. Received {backend!r}"
        )
    where = WorkPlace(jobs, backend, address)
    with _service_for(experiment, folder, service) as used:
        return _run(experiment, folder, cells, used, where, resume, fresh, trace, progress, trackers)


class WorkPlace(NamedTuple):
    """Where cells are played.

    Args:
        jobs: how many at the same time, `None` for one a core.
        backend: one of `BACKENDS`.
        address: of a cluster.
    """

    jobs: int | None
    backend: str
    address: str | None


@contextmanager
def _service_for(experiment: Experiment, folder: Path, service: Service | None) -> Iterator[Service | None]:
    """The service of a run, `None` without language models; by default it records replies in the folder."""
    if not needs_model(experiment):
        yield None
        return
    service = Service() if service is None else service
    with ReplyStore(folder / REPLIES) as replies:
        service.record(replies)
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
        construct = experiment.world(cell.schedule).construction
        before = (
            construct.episodes * construct.epochs if construct is not None and has_construction(cell, construct) else 0
        )
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
                for cell in _play_all(experiment, held, left, where, trace, service):
                    held.note_finished(cell.key)
                    progress.advance(cell.schedule, length(cell))
                    loops.add(cell, held.cell(cell.key))
                    _track(cell, held.cell(cell.key), trackers)
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


def describe(
    experiment: Experiment, cells: tuple[Cell, ...], service: Service | None = None
) -> tuple[dict[str, Any], dict[str, int]]:
    """What is played: the content of `run.json`, and how many episodes a cell of each place has.

    Every player is made once, so that errors are raised before anything is played.

    Args:
        experiment: the experiment.
        cells: its cells.
        service: the service of language models, if there are any.

    Raises:
        ExperimentError: if a part cannot be made, or two schedules have one name.
    """
    schedules: dict[str, dict[str, Any]] = {}
    players: list[dict[str, Any]] = []
    lengths: dict[str, int] = {}
    for cell in cells:
        if cell.seed != experiment.seeds_of(cell.schedule)[0]:
            continue
        player = _make(cell, experiment.world(cell.schedule), service)
        schedule = player.schedule
        if cell.place not in lengths:
            if schedule.name in schedules:
                raise ExperimentError(f"{experiment.name}: two schedules have the name {schedule.name!r}")
            lengths[cell.place] = len(player.episodes)
            schedules[schedule.name] = {
                "env": schedule.env,
                "hash": schedule.content_hash(),
                "content": json.loads(json.dumps(schedule.to_dict())),  # as it is read again
                "visibility": schedule.visibility,
                "clock": schedule.clock,
                "control": schedule.control,
                "description": schedule.description,
                "episodes": len(player.episodes),
            }
            construct = experiment.world(cell.schedule).construction
            if construct is not None and construct.episodes:
                schedules[schedule.name]["construct"] = construct.model_dump(mode="json", exclude_defaults=True)
            if player.frozen:
                schedules[schedule.name]["learning"] = "frozen"
            if cell.change is not None:
                schedules[schedule.name]["sweep"] = {
                    "of": read_schedule(cell.schedule).name,
                    "path": cell.change.path,
                    "value": cell.change.value,
                }
        memory, verifier, policy = cell.labels
        players.append(
            {
                "schedule": schedule.name,
                "memory": memory,
                "verifier": verifier,
                "policy": policy,
                "controller": cell.decision.labels[0],
                "team": cell.decision.labels[1],
                "reference": cell.reference,
                "supervision": player.supervision,
            }
        )
    manifest = {
        "name": experiment.name,
        "config_hash": experiment.config_hash(),
        "versions": run_versions(experiment),
        "experiment": experiment.to_dict(),
        "schedules": schedules,
        "players": players,
        "cells": len(cells),
    }
    return manifest, lengths


def _make(cell: Cell, settings: ScheduleSettings, service: Service | None) -> CellSetup:
    try:
        return make_setup(cell, settings, service)
    except (DriftAgentsError, DriftEnvsError) as error:
        raise ExperimentError(
            f"{cell.place}, {' + '.join((*cell.labels, *cell.decision.non_default_labels))}: {error}"
        ) from error


def _track(cell: Cell, path: Path, trackers: Sequence[Tracker]) -> None:
    """Log the test of a cell that has been played."""
    if not trackers:
        return
    memory, verifier, policy = cell.labels
    controller, team = cell.decision.labels
    about = {"schedule": cell.place, "memory": memory, "verifier": verifier, "policy": policy}
    series = EpisodeSeries(trackers, cell.key, {**about, "controller": controller, "team": team, "seed": cell.seed})
    for row in read_rows(path):
        if row["stage"] == TEST:
            values = {name: row[field] for name, field in TRACKED.items()}
            series.add(row["phase"], row["score"], values)
    series.end()


class _LoopWatch:
    """Warns of agents that move in circles: at the first cell, and at the end with their number."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._cells = self._looping = 0

    def add(self, cell: Cell, path: Path) -> None:
        """Read the lines of a cell that has been played."""
        steps = looped = 0
        for row in read_rows(path):
            steps, looped = steps + row["steps"], looped + row["loop_steps"]
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
                "their steps in loops; the report names the agents"
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
        ExperimentError: if the file of one that is done has been changed since.
    """
    finished = folder.finished()
    left = []
    for cell in cells:
        path = folder.cell(cell.key)
        if cell.key not in finished:
            left.append(cell)
        elif not path.exists() or file_hash(path) != finished[cell.key]:
            raise ExperimentError(
                f"{path}: is not what the run wrote when it finished this cell. The file was changed; "
                "put it back, or begin anew with --fresh"
            )
    return left


def _play_all(
    experiment: Experiment,
    folder: RunFolder,
    cells: list[Cell],
    where: WorkPlace,
    trace: str,
    service: Service | None,
) -> Iterator[Cell]:
    """Play the cells, as many at a time as there are jobs; yields each one when it is done."""

    def play_here(cell: Cell) -> None:
        _play_cell(cell, experiment.world(cell.schedule), folder.path, trace, service)

    if not cells:
        return
    jobs = count_cores() if where.jobs is None else where.jobs
    if service is not None:
        yield from play_in_threads(cells, min(jobs, len(cells)), service, play_here)
    elif where.backend != "processes":
        ours = versions()
        calls = ((cell, experiment.world(cell.schedule), trace, ours) for cell in cells)
        with open_cluster(where.backend, where.address, where.jobs) as cluster:
            for cell, lines, files in play_on_cluster(cluster, _play_elsewhere, calls, where.jobs):
                folder.keep_cell(cell.key, lines, files)
                yield cell
    elif jobs == 1 or len(cells) < 2:
        for cell in cells:
            play_here(cell)
            yield cell
    else:
        yield from play_in_processes(
            _play_in_worker,
            ((cell, experiment.world(cell.schedule), folder.path, trace) for cell in cells),
            min(jobs, len(cells)),
        )


def _play_in_worker(cell: Cell, settings: ScheduleSettings, folder: Path, trace: str) -> Cell:
    # Ctrl-C reaches every process of the terminal; the parent ends the workers in good order.
    with suppress(ValueError):  # not in the main thread, where there are no signals to ignore
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    _play_cell(cell, settings, folder, trace)
    return cell


def _play_elsewhere(
    cell: Cell, settings: ScheduleSettings, trace: str, expected: Mapping[str, str]
) -> tuple[Cell, list[bytes], dict[str, bytes]]:
    """Play a cell on another machine.

    Returns:
        The cell, its lines, and the other files that it has made, by their paths in the run's folder.

    Raises:
        ExperimentError: if this machine has other versions than the one that began the run, or something goes wrong.
    """
    differences = find_differences(dict(expected), versions())
    if differences:
        raise ExperimentError(
            f"{cell.key}: a worker has other versions than the run (there: the run, here: the worker): "
            f"{'; '.join(differences)}"
        )
    with _named(cell), TemporaryDirectory(prefix="drift-cell-") as scratch:
        place = RunFolder(Path(scratch))
        with CellTracer(place.trace(cell.key), cell, trace) as tracer:
            rows = play(cell, settings, tracer.on_episode, folder=place.memories(cell.key))
            lines = [to_line(row).encode("utf-8") for row in rows]
        paths = [path for path in place.path.rglob("*") if path.is_file()]
        return cell, lines, {path.relative_to(place.path).as_posix(): path.read_bytes() for path in sorted(paths)}


def _play_cell(
    cell: Cell, settings: ScheduleSettings, folder: Path, trace: str, service: Service | None = None
) -> None:
    """Play a cell to the end of its file, and of those with its steps and memory if there are to be any.

    Raises:
        ExperimentError: if something goes wrong, with the cell's name.
    """
    place = RunFolder(folder)
    steps = CellTracer(place.trace(cell.key), cell, trace)
    with _named(cell), CellLog(place.cell(cell.key)) as log, steps as tracer:
        for row in play(cell, settings, tracer.on_episode, service, place.memories(cell.key)):
            log.write(to_line(row).encode("utf-8"))
        log.close_after(log.written)


@contextmanager
def _named(cell: Cell) -> Iterator[None]:
    """Put a cell's name before what goes wrong in it."""
    try:
        yield
    except (DriftAgentsError, DriftEnvsError) as error:
        raise ExperimentError(f"{cell.key}: {error}") from error

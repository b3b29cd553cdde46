"""All cells of an experiment, with resume. What is played is described first, so that runs can be compared."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib.metadata import packages_distributions, version
from itertools import groupby
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

import gymnasium as gym

from drift_agents.agent.agent import LOOP, NOTABLE_LOOPS
from drift_agents.errors import ArgumentError, DriftAgentsError, ExperimentError, PartError
from drift_agents.experiment.cell_environment import EvaluationWrapper, read_schedule, share_left_at_once
from drift_agents.experiment.clusters import BACKENDS, RequestedService, answer_requests, open_cluster
from drift_agents.experiment.config import Experiment, ScheduleSettings
from drift_agents.experiment.episode import CellSetup, has_training, make_setup, play
from drift_agents.experiment.folder import REPLIES, RunFolder, describe_schedule, find_differences, versions
from drift_agents.experiment.logs import TEST, parse_rows, to_line
from drift_agents.experiment.plan import Cell, plan_cells
from drift_agents.experiment.players import needs_model
from drift_agents.experiment.trace import TRACE, CellTrace
from drift_agents.experiment.workers import Processes, Threads, count_cores, play_in_pool
from drift_agents.interruption import interruptible, one_process, uninterrupted
from drift_agents.llm.service import ReplyStore, Service
from drift_agents.registry.part_file import describe_error, is_interruption, part_files, texts_in
from drift_agents.registry.tables import REGISTRIES
from drift_agents.types import Episode
from drift_envs.checks import check_choice, check_count
from drift_envs.integrations.trackers import EpisodeSeries, Tracker, check_trackers

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


class Progress:
    """Callbacks about the progress, which do nothing here."""

    def begin(self, schedule: str, episodes: int) -> None:
        """So many episodes are to be played on a schedule."""

    def advance(self, schedule: str, episodes: int) -> None:
        """So many episodes of it are done."""

    def count(self, done: int, cells: int) -> None:
        """So many of all cells are done; called before the first cell is played, and after each."""

    def note(self, text: str) -> None:
        """Something worth knowing about the run."""


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
            given, there is an address without a cluster, or `trackers` holds anything else.
        PartError: if a part of one's own cannot be used, or its file was changed since the run began.
        MissingDependencyError: if the backend is not installed.
        ExperimentError: if the experiment cannot be played, or the folder cannot be used; its cause is the
            `ModelError` where a language model cannot be reached any more, and what is done is kept.
    """
    check_count("jobs", jobs, optional=True)
    check_choice("backend", backend, BACKENDS)
    if address is not None and backend == "processes":
        raise ArgumentError(f"`address` should stand with the backend ray. Received {address!r}")
    if resume and fresh:
        raise ArgumentError("`resume` and `fresh` exclude each other. Received both")
    check_trackers(trackers)
    trace = check_choice("trace", experiment.trace if trace is None else trace, TRACE)
    progress = Progress() if progress is None else progress
    cells = plan_cells(experiment)
    if backend != "processes" and (files := part_files(experiment.to_dict())):
        raise ArgumentError(
            f"`backend` should be processes with {next(iter(files.values())).path}. Received {backend!r}"
        )
    with _service_for(experiment, folder, service) as used, RunFolder(folder) as held:
        manifest, lengths = describe(experiment, cells, used)
        held.open(manifest, resume=resume, fresh=fresh)
        where = WorkPlace(jobs, backend, address, held.lock)
        keys = {cell.key for cell in cells if held.has_cell(cell.key)}
        done = [cell for cell in cells if cell.key in keys]
        left = _order_by_seed(cell for cell in cells if cell.key not in keys)
        untraced = 0 if trace == "none" else sum(not held.trace(cell.key).exists() for cell in done)
        if untraced:
            progress.note(
                f"{untraced} of the cells that are done were played without keeping steps, and stay as they are: "
                "`inspect` will not show their steps. Begin anew with --fresh to keep them"
            )
        for schedule in experiment.schedules:
            progress.begin(schedule, sum(lengths[cell.key] for cell in cells if cell.schedule == schedule))
            progress.advance(schedule, sum(lengths[cell.key] for cell in done if cell.schedule == schedule))
        progress.count(len(done), len(cells))
        told: set[str] = set()
        try:
            # Closed here, so that no worker is left when the folder is let go; a cell that is done is kept.
            with uninterrupted(), closing(play_cells(experiment, left, where, trace, used)) as played:
                for number, (cell, lines, steps, unread) in enumerate(played, len(done) + 1):
                    held.keep_cell(cell.key, lines, steps)
                    rows = parse_rows(lines, cell.key)
                    progress.advance(cell.schedule, lengths[cell.key])
                    progress.count(number, len(cells))
                    _track(cell, rows, trackers)
                    for kind, warning in _warnings_of(rows, unread):
                        if kind not in told:
                            told.add(kind)
                            progress.note(f"warning: {cell.key}{warning}")
            return held.merge(cell.key for cell in cells)
        except OSError as error:
            message = f"{error.filename or folder}: cannot be used: {error.strerror}"
            raise ExperimentError(message, is_resumable=True) from error
        except ExperimentError as error:
            error.is_resumable = True
            raise


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


def _order_by_seed(cells: Iterable[Cell]) -> list[Cell]:
    """Cells by place and then by seed.

    A run that is stopped early has whole comparisons, and a process that plays one agent after another on a seed makes
    goals, and the checks of equal submissions, once.
    """
    places = groupby(cells, key=lambda cell: cell.place)
    return [cell for _, there in places for cell in sorted(there, key=lambda cell: cell.seed)]


def _track(cell: Cell, rows: Sequence[Row], trackers: Sequence[Tracker]) -> None:
    """Log the test of a cell that has been played."""
    if not trackers:
        return
    series = EpisodeSeries(trackers, cell.key, {"schedule": cell.place, **cell.who, "seed": cell.seed})
    for row in rows:
        if row["stage"] == TEST:
            values = {name: row[field] for name, field in TRACKED.items()}
            series.add(row["phase"], row["score"], values)
    series.end()


NOTABLE_INVALID = 0.2
"""The share of decisions that are no admissible action from which on a run says so."""


def _warnings_of(rows: Sequence[Row], unread: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The kinds of warnings of a cell that has been played, and their texts; a run prints each kind once."""
    for text in unread:
        yield "unread", f": {text}"
    looped, invalid, steps = (sum(row[field] for row in rows) for field in ("loop_steps", "invalid_actions", "steps"))
    has_model = any(row["model_calls"] for row in rows)  # its answers are watched while the run goes on
    if (share := invalid / max(steps, 1)) >= NOTABLE_INVALID and not has_model:
        yield (
            "invalid",
            f": {share:.0%} of its decisions are no admissible action, in the place of which the first one is taken. "
            "The text of a reply should be one of `view.actions`",
        )
    if rows[0]["memory"] != "none" and not any(row["memory_size"] for row in rows):
        yield (
            "empty",
            ": its memory stayed empty. `verify` of a verifier should write what memory is to keep, by "
            "`memory.observe(experience, now)`",
        )
    if (loops := looped / max(steps, 1)) >= NOTABLE_LOOPS:
        yield (
            "loops",
            f" moved in circles: {loops:.0%} of its steps are in loops longer than {LOOP} steps. The report counts "
            "such agents",
        )


class WorkPlace(NamedTuple):
    """Where cells are played.

    Args:
        jobs: how many at the same time, `None` for one a core.
        backend: one of `drift_agents.experiment.clusters.BACKENDS`.
        address: of a cluster.
        lock: the descriptor of the run's folder, which processes keep locked.
    """

    jobs: int | None = None
    backend: str = "processes"
    address: str | None = None
    lock: int | None = None


class PlayedCell(NamedTuple):
    """What comes of a cell: its lines, the content of the file with its steps, if they are kept, and warnings."""

    cell: Cell
    lines: bytes
    steps: bytes | None
    warnings: tuple[str, ...] = ()


def play_cells(
    experiment: Experiment, cells: Sequence[Cell], where: WorkPlace, trace: str, service: Service | None
) -> Generator[PlayedCell, None, None]:
    """Play cells, as many at a time as there are jobs.

    Args:
        cells: some of its cells.
        where: where they are played.
        trace: which episodes are kept step by step.
        service: the service of language models, if there are any; cells of this machine are then played in threads.

    Yields:
        Each cell when it is done.

    Raises:
        ExperimentError: if something goes wrong in a cell, with its name.
    """

    def call(cell: Cell) -> tuple[Cell, ScheduleSettings, str]:
        return cell, experiment.settings_of(cell.schedule), trace

    if not cells:
        return
    jobs = min(count_cores() if where.jobs is None else where.jobs, len(cells))
    if where.backend != "processes":
        with open_cluster(where.address, where.jobs) as cluster, ExitStack() as answering:
            jobs, models = min(where.jobs or cluster.cores, len(cells)), None
            if service is not None:
                mailbox = cluster.open_mailbox()
                models = RequestedService(mailbox, service.default_model)
                answering.enter_context(answer_requests(mailbox, service, jobs))
            ours = versions()
            calls = ((*call(cell), models, ours) for cell in cells)
            yield from play_in_pool(cluster, _play_cell, calls, jobs)
    elif service is not None:
        yield from play_in_pool(Threads(service), _play_cell, ((*call(cell), service) for cell in cells), jobs)
    elif jobs == 1:
        for cell in cells:
            with interruptible():
                played = _play_cell(*call(cell))
            yield played
    else:
        yield from play_in_pool(Processes(jobs, where.lock), _play_cell, map(call, cells), jobs)


def _play_cell(
    cell: Cell, settings: ScheduleSettings, trace: str, service: Any = None, expected: Mapping[str, str] | None = None
) -> PlayedCell:
    """Play a cell.

    Args:
        settings: of its schedule.
        trace: which episodes are kept step by step.
        service: a `Service`, or a `RequestedService` on another machine, if there are language models.
        expected: the versions that the run began with, for other machines.

    Raises:
        ExperimentError: if this machine has other versions, or something goes wrong, with the cell's name.
    """
    if expected is not None and (differences := find_differences(dict(expected), versions())):
        raise ExperimentError(
            f"{cell.key}: a worker has other versions than the run (there: the run, here: the worker): "
            f"{'; '.join(differences)}"
        )
    with one_process(), name_failures(cell):
        steps = None if trace == "none" else CellTrace(cell, trace)
        warnings: list[str] = []

        def note(setup: CellSetup, index: int, episode: Episode) -> None:
            warnings[:] = setup.warnings
            if steps is not None:
                steps.note(setup, index, episode)

        rows = play(cell, settings, note, service)
        lines = b"".join(to_line(row).encode() + b"\n" for row in rows)
        return PlayedCell(cell, lines, None if steps is None else steps.close(), tuple(warnings))


@contextmanager
def name_failures(cell: Cell) -> Iterator[None]:
    """Put a cell's name before what goes wrong in it.

    Raises:
        ExperimentError: with the cell's name; of an error of foreign code with its kind and place.
    """
    try:
        yield
    except DriftAgentsError as error:
        raise ExperimentError(f"{cell.key}: {error}") from error
    except BaseException as error:
        if is_interruption(error):
            raise
        place = extract_tb(error.__traceback__)[-1]
        message = f"{cell.key}: {describe_error(error)} ({place.filename}:{place.lineno}; --debug shows the calls)"
        raise ExperimentError(message) from error


def describe(
    experiment: Experiment, cells: tuple[Cell, ...], service: Service | None = None
) -> tuple[dict[str, Any], dict[str, int]]:
    """What is played: the content of `run.json`, and how many episodes each cell has, by its key.

    Every player is made once, so that errors are raised before anything is played.

    Args:
        service: the service of language models, if there are any.

    Raises:
        ExperimentError: if a part cannot be made, or two schedules have one name.
        PartError: if a part of one's own cannot be used.
    """
    schedules: dict[str, dict[str, Any]] = {}
    players: list[dict[str, Any]] = []
    lengths: dict[str, int] = {}
    made: dict[str, EvaluationWrapper] = {}
    with ExitStack() as environments:
        for cell in cells:
            if cell.seed != experiment.seeds_of(cell.schedule)[0]:
                continue
            # One environment a place: a browser takes seconds to start.
            player = _make(cell, experiment.settings_of(cell.schedule), service, made.get(cell.place))
            schedule = player.schedule
            if cell.place not in made:
                made[cell.place] = player.env
                environments.callback(player.env.close)
                if schedule.name in schedules:
                    raise ExperimentError(f"{experiment.name}: two schedules have the name {schedule.name!r}")
                lengths[cell.place] = len(player.episodes)
                about = describe_schedule(schedule, len(player.episodes)) | _describe_stages(experiment, cell)
                share = share_left_at_once(player.env, experiment.seeds_of(cell.schedule), len(player.episodes))
                if share is not None:
                    about["left_at_once"] = share
                    player.env.env.reset(seed=cell.seed)  # as the next players find it
                schedules[schedule.name] = about
            about = {"schedule": schedule.name, **cell.who}
            players.append({**about, "reference": cell.reference, "supervision": player.supervision})
    manifest = {
        "name": experiment.name,
        "config_hash": experiment.config_hash(),
        "versions": {**versions(), **_part_versions(experiment)},
        "experiment": experiment.to_dict(),
        "schedules": schedules,
        "players": players,
        "cells": len(cells),
    }
    return manifest, {cell.key: lengths[cell.place] + count_training(experiment, cell) for cell in cells}


def _describe_stages(experiment: Experiment, cell: Cell) -> dict[str, Any]:
    """What is not the default on a schedule: a training phase, a frozen memory, a sweep."""
    settings, described = experiment.settings_of(cell.schedule), dict[str, Any]()
    if settings.training is not None and settings.training.episodes:
        described["train"] = settings.training.model_dump(mode="json", exclude_defaults=True)
    if settings.learning == "frozen":
        described["learning"] = "frozen"
    if cell.change is not None:
        name = read_schedule(cell.schedule).name
        described["sweep"] = {"of": name, "path": cell.change.path, "value": cell.change.value}
    return described


def count_training(experiment: Experiment, cell: Cell) -> int:
    """The episodes of a cell before the test."""
    training = experiment.settings_of(cell.schedule).training
    return training.episodes * training.epochs if training is not None and has_training(cell, training) else 0


def _part_versions(experiment: Experiment) -> dict[str, str]:
    """The versions of other packages of which the experiment names parts or environments.

    Every text of the experiment that is the name of another package's part counts, since options name parts too.
    """
    words = {text for _, text in texts_in(experiment.to_dict())}
    points = [registry.entry_point(word) for registry in REGISTRIES.values() for word in words]
    named = {point.dist.metadata["Name"]: point.dist.version for point in points if point and point.dist}
    for source in experiment.schedules:
        spec = gym.registry.get(str(read_schedule(source).env))
        target = "" if spec is None or spec.entry_point is None else spec.entry_point
        module = (target if isinstance(target, str) else target.__module__).partition(":")[0].partition(".")[0]
        for owner in packages_distributions().get(module, ())[:1] if module not in _OURS else ():
            named[owner] = version(owner)
    return dict(sorted(named.items()))


_OURS = ("", "drift_envs", "gymnasium")
"""Modules whose versions every run holds; no module where a function makes the environment."""


def _make(cell: Cell, settings: ScheduleSettings, service: Service | None, env: EvaluationWrapper | None) -> CellSetup:
    try:
        with one_process():
            return make_setup(cell, settings, service, env=env)
    except PartError:
        raise
    except DriftAgentsError as error:
        raise ExperimentError(
            f"{cell.place}, {' + '.join((*cell.labels, *cell.decision.non_default_labels))}: {error}"
        ) from error

"""Where cells are played: in this process, in several, in threads, or on a cluster.

* `play_cells` - plays cells into a run's folder
* `WorkPlace` - where
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import extract_tb
from typing import Any, NamedTuple

from drift_agents.errors import DriftAgentsError, ExperimentError
from drift_agents.experiment.cell_files import CellLog
from drift_agents.experiment.clusters import Cluster, open_cluster, play_on_cluster
from drift_agents.experiment.config import Experiment, ScheduleSettings
from drift_agents.experiment.episode import play
from drift_agents.experiment.folder import RunFolder, find_differences, versions
from drift_agents.experiment.logs import to_line
from drift_agents.experiment.model_requests import RequestedService, answer_requests
from drift_agents.experiment.plan import Cell
from drift_agents.experiment.trace_writer import CellTracer
from drift_agents.experiment.workers import count_cores, play_in_processes, play_in_threads
from drift_agents.llm.service import Service
from drift_agents.part_file import PartFile, describe_error, is_interruption
from drift_agents.registry import REGISTRIES
from drift_envs.errors import DriftEnvsError


class WorkPlace(NamedTuple):
    """Where cells are played.

    Args:
        jobs: how many at the same time, `None` for one a core.
        backend: one of `drift_agents.experiment.clusters.BACKENDS`.
        address: of a cluster.
    """

    jobs: int | None
    backend: str
    address: str | None


def play_cells(
    experiment: Experiment,
    folder: RunFolder,
    cells: list[Cell],
    where: WorkPlace,
    trace: str,
    service: Service | None,
) -> Iterator[tuple[Cell, int]]:
    """Play cells, as many at a time as there are jobs.

    Args:
        experiment: what is played.
        folder: where to.
        cells: those that are not done.
        where: where they are played.
        trace: which episodes are kept step by step.
        service: the service of language models, if there are any; cells of this machine are then played in threads.

    Yields:
        Each cell when it is done, and how many episodes it has.

    Raises:
        ExperimentError: if something goes wrong in a cell, with its name.
    """

    def play_here(cell: Cell) -> tuple[Cell, int]:
        return cell, _play_cell(cell, experiment.settings_of(cell.schedule), folder.path, trace, service)

    if not cells:
        return
    jobs = count_cores() if where.jobs is None else where.jobs
    if where.backend != "processes":
        with open_cluster(where.address, where.jobs) as cluster:
            yield from _play_on_cluster(cluster, experiment, folder, cells, where, trace, service)
    elif service is not None:
        yield from play_in_threads(cells, min(jobs, len(cells)), service, play_here)
    elif jobs == 1 or len(cells) < 2:
        yield from map(play_here, cells)
    else:
        yield from play_in_processes(
            _play_in_worker,
            ((cell, experiment.settings_of(cell.schedule), folder.path, trace) for cell in cells),
            min(jobs, len(cells)),
        )


def _play_on_cluster(
    cluster: Cluster,
    experiment: Experiment,
    folder: RunFolder,
    cells: list[Cell],
    where: WorkPlace,
    trace: str,
    service: Service | None,
) -> Iterator[tuple[Cell, int]]:
    """Play cells on a cluster's workers, and write what comes back."""
    jobs = min(where.jobs or cluster.cores, len(cells))
    ours = versions()
    with ExitStack() as answering:
        models = None
        if service is not None:
            mailbox = cluster.open_mailbox()
            models = RequestedService(mailbox, service.default_model)
            answering.enter_context(answer_requests(mailbox, service, jobs))
        calls = ((cell, experiment.settings_of(cell.schedule), trace, ours, models) for cell in cells)
        for cell, lines, files in play_on_cluster(cluster, _play_elsewhere, calls, jobs):
            folder.keep_cell(cell.key, lines, files)
            yield cell, len(lines)


def _play_in_worker(cell: Cell, settings: ScheduleSettings, folder: Path, trace: str) -> tuple[Cell, int]:
    # Ctrl-C reaches every process of the terminal; the parent ends the workers in good order.
    with suppress(ValueError):  # not in the main thread, where there are no signals to ignore
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return cell, _play_cell(cell, settings, folder, trace)


def _play_elsewhere(
    cell: Cell, settings: ScheduleSettings, trace: str, expected: Mapping[str, str], models: Any = None
) -> tuple[Cell, list[bytes], dict[str, bytes]]:
    """Play a cell on another machine.

    Args:
        cell: the cell.
        settings: of its schedule.
        trace: which episodes are kept step by step.
        expected: the versions that the run began with.
        models: a `RequestedService`, if there are language models.

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
            rows = play(cell, settings, tracer.on_episode, models)
            lines = [to_line(row).encode("utf-8") for row in rows]
        paths = [path for path in place.path.rglob("*") if path.is_file()]
        return cell, lines, {path.relative_to(place.path).as_posix(): path.read_bytes() for path in sorted(paths)}


def _play_cell(cell: Cell, settings: ScheduleSettings, folder: Path, trace: str, service: Service | None = None) -> int:
    """Play a cell and write its lines, and the file with its steps if there is to be one.

    Returns:
        How many episodes it has.

    Raises:
        ExperimentError: if something goes wrong, with the cell's name.
    """
    place = RunFolder(folder)
    steps = CellTracer(place.trace(cell.key), cell, trace)
    with _named(cell), CellLog(place.cells.folder, cell.key) as log, steps as tracer:
        for row in play(cell, settings, tracer.on_episode, service):
            log.write(to_line(row).encode("utf-8"))
    return log.written


@contextmanager
def _named(cell: Cell) -> Iterator[None]:
    """Put a cell's name before what goes wrong in it."""
    try:
        yield
    except (DriftAgentsError, DriftEnvsError) as error:
        raise ExperimentError(f"{cell.key}: {error}") from error
    except BaseException as error:
        if is_interruption(error) or not _has_other_parts(cell):
            raise
        place = extract_tb(error.__traceback__)[-1]
        message = f"{cell.key}: {describe_error(error)} ({place.filename}:{place.lineno}; --debug shows the calls)"
        raise ExperimentError(message) from error


def _has_other_parts(cell: Cell) -> bool:
    """Whether a part of the cell is in a Python file or in another package: its errors are not ours."""
    decision = cell.decision
    parts = {
        "memory": cell.memory,
        "verifier": cell.verifier,
        "policy": cell.policy,
        "controller": decision.controller,
        "team": decision.team,
    }
    return any(
        PartFile.read(part.name) or REGISTRIES[kind].entry_point(part.name) is not None for kind, part in parts.items()
    )

"""Cells of a finished run, played again: to compare their lines, or to see what their memories hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.episode import CellSetup, play
from drift_agents.experiment.folder import (
    EPISODES,
    MANIFEST,
    REPLIES,
    RunFolder,
    check_merged,
    compare_manifests,
    finished_lines,
    list_differences,
    read_manifest,
)
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import iterate_rows, parse_rows, to_line
from drift_agents.experiment.plan import plan_cells
from drift_agents.experiment.players import needs_model
from drift_agents.experiment.runner import WorkPlace, describe, play_cells
from drift_agents.llm.service import ReplyStore, Service
from drift_envs.checks import check_count


class Replayed(NamedTuple):
    """What was played again: how many cells of how many, and their episodes."""

    cells: int
    of: int
    episodes: int


def replay_run(folder: Path, cells: int | None = None, jobs: int | None = None) -> Replayed:
    """Play cells of a finished run again; nothing is written, and no request is sent to a language model.

    Args:
        cells: how many, spread evenly over the order of the file with the lines; `None` for all.
        jobs: how many at the same time, `None` for one a core.

    Raises:
        ArgumentError: if a number is not positive.
        ReplayError: if the run has language models, and a reply is not recorded in the folder.
        ExperimentError: if the folder holds no finished run or that of another version, the file of a part was changed,
            or a line differs.
    """
    check_count("cells", cells, optional=True)
    check_count("jobs", jobs, optional=True)
    manifest = read_manifest(folder)
    experiment = parse_experiment(manifest.get("experiment"), str(folder / MANIFEST))
    planned = plan_cells(experiment)
    there = _read_cells(folder)
    check_merged(folder, manifest)
    if len(there) != len(planned):
        raise ExperimentError(
            f"{folder / EPISODES}: should have lines of {len(planned)} cells. Received those of {len(there)}"
        )
    with _recorded_replies(experiment, folder) as service:
        here, _ = describe(experiment, planned, service)
        played, with_versions = compare_manifests(manifest, here)
        if played or with_versions:
            raise ExperimentError(
                f"{folder}: was played with something else than is installed"
                f"{list_differences([*played, *with_versions])}"
            )
        count = min(cells or len(planned), len(planned))
        chosen = {planned[place].key: there[place] for place in (n * len(planned) // count for n in range(count))}
        left = [cell for cell in planned if cell.key in chosen]
        with closing(play_cells(experiment, left, WorkPlace(jobs), "none", service)) as again:
            found = {cell.key: parse_rows(lines, cell.key) for cell, lines, *_ in again}
    for key, rows in chosen.items():
        if difference := _first_difference(rows, found[key]):
            raise ExperimentError(f"{folder / EPISODES}: {key}, {difference}")
    return Replayed(count, len(planned), sum(map(len, chosen.values())))


def _read_cells(folder: Path) -> list[list[dict[str, Any]]]:
    """The rows of each cell: every cell begins with episode 0."""
    cells: list[list[dict[str, Any]]] = []
    for row in iterate_rows(finished_lines(folder)):
        if row["episode"] == 0 or not cells:
            cells.append([])
        cells[-1].append(row)
    return cells


def _first_difference(there: Sequence[dict[str, Any]], here: Sequence[dict[str, Any]]) -> str:
    """The first field in which the rows of a cell differ; empty if they are equal."""
    for number, (row, again) in enumerate(zip(there, here, strict=False)):
        for field in again:
            if row[field] != again[field] and field != "cost":  # follows from the tokens and a price that may change
                return f"episode {number}: `{field}` is {row[field]!r}, played again it is {again[field]!r}"
    return "" if len(there) == len(here) else f"{len(there)} episodes, played again it has {len(here)}"


def list_records(folder: Path, name: str = "") -> Iterator[dict[str, Any]]:
    """The records of the memory of each cell at its end, cell by cell, oldest first.

    A run keeps no memory, so each cell is played again; replies of language models come from the run's records.

    Args:
        name: only of the cells whose name contains this text.

    Yields:
        Plain data: the cell, the episode and step at which the record was written, and the record.

    Raises:
        ExperimentError: if the folder holds no run, or no such cell that is done, or one gives other lines now.
        ReplayError: if a reply of a language model is not in the run's records.
    """
    experiment = parse_experiment(read_manifest(folder).get("experiment"), str(folder / MANIFEST))
    planned = plan_cells(experiment)
    cells = [cell for cell in planned if name in cell.key]
    if not cells:
        raise ExperimentError(f"{folder}: no cell's name contains {name!r}; the first is {planned[0].key!r}")
    with _recorded_replies(experiment, folder) as service:
        setups = deque[CellSetup](maxlen=1)
        for cell in cells:
            rows = play(cell, experiment.settings_of(cell.schedule), lambda setup, *_: setups.append(setup), service)
            lines = b"".join(to_line(row).encode() + b"\n" for row in rows)
            if lines != RunFolder(folder).read_cell(cell.key):
                raise ExperimentError(
                    f"{folder}: {cell.key} gives other lines now. Use the versions that {MANIFEST} names"
                )
            for record in setups[-1].memory.records():
                yield {
                    "cell": cell.key,
                    "episode": record.now.episode,
                    "step": record.now.step,
                    "state": record.state,
                    "action": record.action,
                    "outcomes": [{**outcome._asdict(), "p": p} for outcome, p in record.outcomes],
                    "n": record.n,
                    "verified": record.verified,
                }


@contextmanager
def _recorded_replies(experiment: Experiment, folder: Path) -> Iterator[Service | None]:
    """The service that finds the replies of a run again, `None` without language models."""
    if not needs_model(experiment):
        yield None
        return
    with ReplyStore(folder / REPLIES, read_only=True) as replies, closing(Service(replies=replies)) as service:
        yield service

"""Cells of a finished run, played again and compared with the lines in its folder.

* `replay_run` - plays all cells, or some of them
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.errors import ExperimentError
from drift_agents.experiment.folder import (
    EPISODES,
    MANIFEST,
    REPLIES,
    check_merged,
    compare_manifests,
    list_differences,
    read_manifest,
)
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import iterate_rows, parse_rows
from drift_agents.experiment.manifest import describe
from drift_agents.experiment.plan import plan_cells
from drift_agents.experiment.players import needs_model
from drift_agents.experiment.runner import WorkPlace, play_cells
from drift_agents.llm.cache import ReplyStore
from drift_agents.llm.service import Service
from drift_envs.checks import check_count


class Replayed(NamedTuple):
    """What was played again: how many cells of how many, and their episodes."""

    cells: int
    of: int
    episodes: int


def replay_run(folder: Path, cells: int | None = None, jobs: int | None = None) -> Replayed:
    """Play cells of a finished run again; nothing is written, and no request is sent to a language model.

    Args:
        folder: the run's folder.
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
    service = None
    if needs_model(experiment):
        service = Service(replies=ReplyStore(folder / REPLIES, read_only=True))
    try:
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
    finally:
        if service is not None:
            service.close()
    for key, rows in chosen.items():
        if difference := _first_difference(rows, found[key]):
            raise ExperimentError(f"{folder / EPISODES}: {key}, {difference}")
    return Replayed(count, len(planned), sum(map(len, chosen.values())))


def _read_cells(folder: Path) -> list[list[dict[str, Any]]]:
    """The rows of each cell: every cell begins with episode 0."""
    path = folder / EPISODES
    if not path.exists():
        raise ExperimentError(f"{folder}: the run is not finished, {EPISODES} is missing. Continue it with --resume")
    cells: list[list[dict[str, Any]]] = []
    for row in iterate_rows(path):
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

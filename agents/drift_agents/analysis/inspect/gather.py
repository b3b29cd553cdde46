"""What the inspection page shows, from the files of a run.

* `InspectData` - an index of all episodes, and the files with their steps
* `gather` - reads a run's folder
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drift_agents.analysis.runs import Player
from drift_agents.errors import ExperimentError
from drift_agents.experiment.folder import EPISODES, TRACES, read_manifest
from drift_agents.experiment.logs import CONSTRUCT, read_rows
from drift_agents.experiment.trace import SUFFIX, read_header

COLUMNS = (
    "episode",
    "round",
    "tick",
    "score",
    "steps",
    "surprises",
    "realignments",
    "probe_steps",
    "memory_size",
    "memory_truth_rate",
    "regret",
)
"""The fields of a line that the page shows of every episode; phases come as numbers beside them."""

_WHO = ("env", "schedule", "memory", "verifier", "policy", "controller", "team", "seed")


@dataclass(frozen=True)
class InspectData:
    """What the page shows.

    Args:
        index: plain data: the run's name and versions, its schedules, and its cells with all their
            episodes by columns, of which the first `construction` came before the test. A cell's
            `chunk` is the number of its file, `None` without steps.
        chunks: the files with the steps, as `drift_agents.experiment.tracer` wrote them.
    """

    index: dict[str, Any]
    chunks: tuple[Path, ...]


def gather(folder: Path) -> InspectData:
    """Read a run's folder.

    Args:
        folder: the run's folder.

    Raises:
        ExperimentError: if the folder holds no finished run, or a file cannot be read.
    """
    manifest = read_manifest(folder)
    if not (folder / EPISODES).exists():
        raise ExperimentError(f"{folder}: the run is not finished, {EPISODES} is missing. Go on with it with --resume")
    files: dict[tuple[Any, ...], tuple[Path, str]] = {}
    for path in sorted((folder / TRACES).glob(f"*{SUFFIX}")):
        header = read_header(path)
        files[tuple(getattr(header, field) for field in _WHO)] = path, header.kept
    chunks: list[Path] = []
    cells: list[dict[str, Any]] = []
    references = _references(manifest)
    for who, rows in _by_cell(read_rows(folder / EPISODES)).items():
        cell: dict[str, Any] = dict(zip(_WHO, who, strict=True))
        cell["reference"] = references.get(who[1:7])
        cell["chunk"], cell["kept"] = None, "none"
        if who in files:
            path, cell["kept"] = files[who]
            cell["chunk"] = len(chunks)
            chunks.append(path)
        cell["construction"] = sum(row["stage"] == CONSTRUCT for row in rows)
        cell |= _columns(rows)
        cells.append(cell)
    index = {
        "name": manifest["name"],
        "about": manifest["experiment"].get("about", ""),
        "config_hash": manifest["config_hash"],
        "versions": manifest["versions"],
        "schedules": manifest["schedules"],
        "cells": cells,
    }
    return InspectData(index, tuple(chunks))


def _references(manifest: Mapping[str, Any]) -> dict[tuple[Any, ...], str | None]:
    return {(one["schedule"], *Player.of(one)): one.get("reference") for one in manifest["players"]}


def _by_cell(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[field] for field in _WHO), []).append(row)
    return found


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The episodes of a cell by columns: much shorter than by rows."""
    phases = list(dict.fromkeys(row["phase"] for row in rows))
    number = {phase: index for index, phase in enumerate(phases)}
    columns: dict[str, Any] = {field: [_short(row[field]) for row in rows] for field in COLUMNS}
    return {"phases": phases, "phase": [number[row["phase"]] for row in rows], **columns}


def _short(value: Any) -> Any:
    """Four digits: as many as the page shows."""
    return float(f"{value:.4g}") if isinstance(value, float) else value

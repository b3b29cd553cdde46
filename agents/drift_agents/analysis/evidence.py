"""The lines of runs as columns, and as compressed Parquet files that can be shipped.

A file has the columns that `ranking` and `price` need and no other. Equal lines give equal bytes, in whatever order
runs are added, as long as the version of pyarrow is the same.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drift_agents.errors import EvidenceError, ExperimentError, needs_extra
from drift_agents.experiment.folder import MANIFEST, check_merged, finished_lines, read_manifest
from drift_agents.experiment.logs import TEST, iterate_rows
from drift_agents.types import SUPERVISION
from drift_envs.errors import first_line

AXES = ("memory", "verifier", "controller", "team", "policy")
"""The parts of an agent, in the order of the fields of a row."""

Key = tuple[str, ...]
"""The labels of an agent's parts, in the order of `AXES`."""

CELL = ("schedule", *AXES, "seed")
"""What tells cells apart."""

EPISODE = ("phase", "score", "steps", "probe_steps")
"""What is kept of an episode; `phase` counts the changes of phase since the cell's first episode."""

SUFFIX = ".parquet"
FORMAT = 1
"""The number of the files' format; another one is refused."""

_ABOUT = ("env", "hash", "visibility", "control")
_LEVEL = 19  # of zstd: written once, read often


@dataclass(frozen=True, eq=False)
class EvidenceTable:
    """The lines of runs, column by column.

    Args:
        version: of drift-envs, with which all lines were played.
        schedules: by name, its environment's id, its hash, its visibility, and whether it is a control.
        players: by agent, which reference it is (or `None`), and its supervision, the strongest of all schedules.
        cells: one row a cell with the columns `CELL`, in order, and `episodes`, how many it has; at least 1.
        episodes: one row an episode with the columns `EPISODE`, cell by cell.
    """

    version: str
    schedules: Mapping[str, Mapping[str, Any]]
    players: Mapping[Key, Mapping[str, Any]]
    cells: pd.DataFrame
    episodes: pd.DataFrame

    @cached_property
    def keys(self) -> pd.Series:
        """The agent of every cell."""
        return pd.Series(
            list(zip(*(self.cells[axis].to_numpy(object) for axis in AXES), strict=True)),
            self.cells.index,
            dtype=object,
        )

    @cached_property
    def starts(self) -> np.ndarray:
        """The place of every cell's first episode."""
        lengths = self.cells["episodes"].to_numpy()
        return np.asarray(np.cumsum(lengths) - lengths)

    def select(self, within: np.ndarray) -> EvidenceTable:
        """Some cells alone, with what is known of their schedules and agents.

        Args:
            within: whether a cell counts, shape (cells,).
        """
        cells = self.cells[within].reset_index(drop=True)
        episodes = self.episodes[np.repeat(within, self.cells["episodes"])].reset_index(drop=True)
        schedules, players = set(cells["schedule"]), set(self.keys[within])
        return EvidenceTable(
            self.version,
            {name: about for name, about in self.schedules.items() if name in schedules},
            {key: about for key, about in self.players.items() if key in players},
            cells,
            episodes,
        )


def environment_of(schedule: str) -> str:
    """The family of a schedule: its name without the part behind the colon.

    Example:
        >>> environment_of("frozen_lake/verify-6x6:often-3")
        'frozen_lake/verify-6x6'
    """
    return schedule.partition(":")[0]


def gather_evidence(manifest: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> EvidenceTable:
    """The columns of rows; episodes of a training phase are left out.

    Args:
        manifest: what was played, with `schedules` and `players` and perhaps `versions`.
        rows: one mapping an episode, with the fields `CELL`, `EPISODE` and `episode`.
    """
    numbers: dict[tuple[Any, ...], int] = {}
    phases: dict[str, int] = {}
    columns = {name: array("q") for name in ("cell", "episode", "name", "steps", "probe_steps")}
    scores = array("d")
    for row in rows:
        if row.get("stage", TEST) == TEST:
            columns["cell"].append(numbers.setdefault(tuple(row[field] for field in CELL), len(numbers)))
            columns["name"].append(phases.setdefault(row["phase"], len(phases)))
            for field in ("episode", "steps", "probe_steps"):
                columns[field].append(row[field])
            scores.append(row["score"])
    cells = pd.DataFrame(list(numbers), columns=list(CELL))
    order = np.argsort(cells.sort_values(list(CELL)).index.to_numpy())  # number of a cell -> its place
    frame = pd.DataFrame({name: np.array(values, np.int64) for name, values in columns.items()})
    frame["score"] = np.array(scores, np.float64)
    frame["cell"] = order[frame["cell"]]
    frame = frame.sort_values(["cell", "episode"], ignore_index=True)
    changed = frame["name"].ne(frame["name"].shift()) & frame["cell"].eq(frame["cell"].shift())
    frame["phase"] = changed.groupby(frame["cell"]).cumsum().astype(np.int64)
    cells = cells.sort_values(list(CELL), ignore_index=True)
    cells["episodes"] = np.bincount(frame["cell"], minlength=len(cells))
    about = {
        name: {field: one.get(field) for field in _ABOUT} | {"control": bool(one.get("control"))}
        for name, one in manifest["schedules"].items()
    }
    evidence = EvidenceTable(
        str(manifest.get("versions", {}).get("drift-envs", "")),
        about,
        {
            tuple(one[axis] for axis in AXES): {"reference": one["reference"], "supervision": one["supervision"]}
            for one in sorted(manifest["players"], key=lambda one: SUPERVISION.index(one["supervision"]))
        },
        cells,
        frame[list(EPISODE)],
    )
    return evidence.select(np.ones(len(cells), bool))


def read_evidence(sources: Sequence[Path]) -> EvidenceTable:
    """The lines of all sources together; a cell that several of them hold is taken once.

    Args:
        sources: folders of finished runs, Parquet files, and folders of Parquet files.

    Raises:
        EvidenceError: if a source holds no lines, a file is damaged or of another format, or two sources were
            played with other versions of drift-envs, other schedules of one name, or have other lines of one cell.
        MissingDependencyError: if a Parquet file is read without pyarrow.
    """
    found: list[tuple[str, EvidenceTable]] = []
    for source in sources:
        if (source / MANIFEST).exists():
            found.append((str(source), _read_run(source)))
            continue
        if not source.exists():
            raise EvidenceError(f"{source}: does not exist")
        paths = [source] if source.is_file() else sorted(source.glob(f"*{SUFFIX}"))
        if not paths:
            raise EvidenceError(f"{source}: should be the folder of a run or hold {SUFFIX} files, and holds neither")
        found += [(str(path), _read_parquet(path)) for path in paths]
    return _merge(found)


def _read_run(folder: Path) -> EvidenceTable:
    try:
        manifest, lines = read_manifest(folder), finished_lines(folder)
        check_merged(folder, manifest)
        return gather_evidence(manifest, iterate_rows(lines))
    except ExperimentError as error:  # lines of another version: the wrong source, not failed work
        raise EvidenceError(str(error)) from error


def _merge(parts: Sequence[tuple[str, EvidenceTable]]) -> EvidenceTable:
    """All parts together; they are named for messages."""
    first, one = parts[0]
    for name, other in parts[1:]:
        if other.version != one.version:
            raise EvidenceError(
                f"{name}: lines of another version of drift-envs, {other.version}. {first} has {one.version}"
            )
        for schedule in sorted(other.schedules.keys() & one.schedules.keys()):
            if other.schedules[schedule] != one.schedules[schedule]:
                raise EvidenceError(f"{name}: {schedule} is another schedule than that of {first}")
        one = _add(one, other, name)
    return one


def _add(one: EvidenceTable, other: EvidenceTable, name: str) -> EvidenceTable:
    if not len(other.cells):
        return one
    cells = pd.concat([one.cells, other.cells], ignore_index=True)
    starts = np.concatenate([one.starts, other.starts + len(one.episodes)])
    episodes = pd.concat([one.episodes, other.episodes], ignore_index=True)
    repeated = cells.duplicated(list(CELL)).to_numpy()
    if repeated.any():
        lines = hash_lines(cells["episodes"].to_numpy(), episodes)
        same = pd.DataFrame({"lines": lines}).groupby([cells[field] for field in CELL])["lines"].nunique()
        if (same > 1).any():
            where = ", ".join(map("{} {}".format, CELL, same.index[same > 1][0]))
            raise EvidenceError(f"{name}: its lines of this cell differ from those of another source: {where}")
    order = cells[~repeated].sort_values(list(CELL)).index.to_numpy()
    lengths = cells["episodes"].to_numpy()[order]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = np.repeat(starts[order], lengths) + within
    players = {
        key: max(
            (about[key] for about in (one.players, other.players) if key in about),
            key=lambda about: SUPERVISION.index(about["supervision"]),
        )
        for key in sorted(one.players.keys() | other.players.keys())
    }
    return EvidenceTable(
        one.version,
        {**one.schedules, **other.schedules},
        players,
        cells.loc[order].reset_index(drop=True),
        episodes.iloc[places].reset_index(drop=True),
    )


def hash_lines(lengths: np.ndarray, episodes: pd.DataFrame) -> list[int]:
    """A number for all lines of each cell; equal lines have the same, in one process.

    Args:
        lengths: the number of episodes of each cell, shape (cells,).
    """
    hashes = pd.util.hash_pandas_object(episodes, index=False).to_numpy()
    ends = np.cumsum(lengths)
    return [hash(hashes[end - length : end].tobytes()) for end, length in zip(ends, lengths, strict=True)]


def write_evidence(evidence: EvidenceTable, folder: Path) -> list[Path]:
    """Write the lines as one Parquet file an environment, together with those that the files hold already.

    Args:
        folder: where to; it is made.

    Returns:
        The files, which are replaced whole or not at all.

    Raises:
        EvidenceError: if what a file holds does not go with the lines, see `read_evidence`.
        ExperimentError: if a file cannot be written.
        MissingDependencyError: without pyarrow.
    """
    environments = evidence.cells["schedule"].map(environment_of)
    new: dict[Path, EvidenceTable] = {}
    for environment in sorted(environments.unique()):
        path = folder / f"{environment.replace('/', '-')}{SUFFIX}"
        part = evidence.select((environments == environment).to_numpy())
        there = [(str(path), _read_parquet(path))] if path.exists() else []
        new[path] = _merge([*there, ("the lines", part)])
    for path, part in new.items():
        _write_parquet(part, path)
    return list(new)


def _write_parquet(evidence: EvidenceTable, path: Path) -> None:
    pyarrow, parquet = _import_pyarrow()
    about = {
        "format": FORMAT,
        "version": evidence.version,
        "schedules": {name: evidence.schedules[name] for name in sorted(evidence.schedules)},
        "players": [{"key": key, **evidence.players[key]} for key in sorted(evidence.players)],
    }
    lengths = evidence.cells["episodes"]
    columns = {}
    for field in CELL[:-1]:
        labels, names = pd.factorize(evidence.cells[field])
        codes = pyarrow.array(np.repeat(labels.astype(np.int16), lengths))
        columns[field] = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(list(names), pyarrow.string()))
    columns["seed"] = pyarrow.array(np.repeat(evidence.cells["seed"].to_numpy(), lengths), pyarrow.int64())
    for field, kind in zip(EPISODE, ("uint32", "float64", "uint32", "uint32"), strict=True):
        columns[field] = pyarrow.array(evidence.episodes[field].to_numpy().astype(kind))
    table = pyarrow.table(columns).replace_schema_metadata({"drift-envs": json.dumps(about, sort_keys=True)})
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, part, compression="zstd", compression_level=_LEVEL, write_statistics=False)
        os.replace(part, path)
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be written: {error.strerror or error}") from error


def _read_parquet(path: Path) -> EvidenceTable:
    pyarrow, parquet = _import_pyarrow()
    try:
        table = parquet.read_table(path)
        about = json.loads((table.schema.metadata or {}).get(b"drift-envs", b"{}"))
    except (OSError, pyarrow.ArrowException, ValueError, RecursionError) as error:
        raise EvidenceError(f"{path}: cannot be read: {first_line(error)}") from error
    if about.get("format") != FORMAT or table.column_names != [*CELL, *EPISODE]:
        raise EvidenceError(
            f"{path}: the format should be {FORMAT}, lines of this version of drift-envs. Received "
            f"{about.get('format')!r} with the columns {', '.join(table.column_names)}"
        )
    # Cells are told apart by numbers: grouping two million rows by six texts takes many seconds.
    columns = {field: table[field].combine_chunks() for field in CELL[:-1]}
    codes = {field: column.indices.to_numpy() for field, column in columns.items()}
    seeds = table["seed"].to_numpy()
    fresh = np.ones(len(table), bool)
    fresh[1:] = np.any([numbers[1:] != numbers[:-1] for numbers in (*codes.values(), seeds)], 0)
    starts = np.flatnonzero(fresh)
    names = {field: np.array(column.dictionary.to_pylist(), dtype=object) for field, column in columns.items()}
    cells = pd.DataFrame({field: names[field][numbers[starts]] for field, numbers in codes.items()})
    cells["seed"] = seeds[starts]
    cells["episodes"] = np.diff(np.append(starts, len(table)))
    kinds = {"phase": np.int64, "score": np.float64, "steps": np.int64, "probe_steps": np.int64}
    episodes = pd.DataFrame({field: table[field].to_numpy().astype(kinds[field]) for field in EPISODE})
    players = {tuple(one.pop("key")): one for one in about["players"]}
    return EvidenceTable(about["version"], about["schedules"], players, cells, episodes)


def _import_pyarrow() -> tuple[Any, Any]:
    with needs_extra("pyarrow", "parquet"):
        import pyarrow
        from pyarrow import parquet
    return pyarrow, parquet

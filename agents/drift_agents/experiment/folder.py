"""The folder of a run: what it holds, and whether it may be used.

* `RunFolder` - opens, refuses, empties and reads the folder of a run
* `versions` - what has to be the same for a run to be continued
* `find_differences` - the keys in which two pieces of plain data differ

A run's folder holds `run.json` (what is played, with which versions), `cells/` (a file a worker),
`finished.jsonl` (the cells that are done, with their hashes), and when all are done
`episodes.jsonl` and `report.md`. Optional are `traces/` (the steps of each cell), `plots/`,
`inspect.html` and `report.html`. Contents depend on neither the time, the machine nor the number of jobs.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

import gymnasium
import numpy
import scipy

from drift_agents.errors import ExperimentError, PartError
from drift_agents.experiment.appended_file import AppendedFile
from drift_agents.experiment.cell_files import CellFiles, CellLog
from drift_agents.experiment.mistakes import part_files
from drift_envs._version import __version__

MANIFEST, CELLS, FINISHED, EPISODES, REPORT = "run.json", "cells", "finished.jsonl", "episodes.jsonl", "report.md"
TRACES, PAGE, REPORT_PAGE = "traces", "inspect.html", "report.html"
REPLIES = "replies.sqlite"
"""The recorded replies of language models: kept when a run is thrown away, since they are paid for."""

TRACKING = "tracking"
"""What experiment trackers have written; kept when a run is thrown away, and no part of it."""

HOLDER = "held-by.json"
"""Which process holds the folder, while one does."""

OURS = (
    MANIFEST,
    f"{MANIFEST}.part",
    CELLS,
    FINISHED,
    EPISODES,
    f"{EPISODES}.part",
    REPORT,
    TRACES,
    PAGE,
    REPORT_PAGE,
)
"""Everything that a run writes; nothing else in its folder is ever touched."""


def versions() -> dict[str, str]:
    """The versions that a run depends on."""
    return {
        "drift-envs": __version__,
        "gymnasium": gymnasium.__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
    }


class RunFolder:
    """The folder of a run, held against other writers while it is open.

    Args:
        path: the folder.

    Raises:
        ExperimentError: if it is no folder, or another process writes into it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cells = CellFiles(path / CELLS)
        self._lock: int | None = None
        self._finished: AppendedFile | None = None

    def open(self, manifest: Mapping[str, Any], *, resume: bool, fresh: bool) -> None:
        """Prepare the folder for a run.

        Args:
            manifest: what is to be played.
            resume: whether an existing run may be continued.
            fresh: whether an existing run may be deleted.

        Raises:
            ExperimentError: if the folder may not be used.
            PartError: if a part's file was changed since the run began.
        """
        self._take_lock()
        if self._is_empty():
            self._write(MANIFEST, _pretty(manifest))
        elif not (self.path / MANIFEST).exists():
            raise ExperimentError(f"{self.path}: is not empty and holds no run. Choose another folder with --out")
        elif fresh:
            self._empty()
            self._write(MANIFEST, _pretty(manifest))
        elif resume:
            self._check_same(manifest)
        else:
            raise ExperimentError(
                f"{self.path}: holds a run already. Go on with it with --resume, throw it away with --fresh, "
                "or choose another folder with --out"
            )
        (self.path / CELLS).mkdir(exist_ok=True)
        self.cells.refresh()
        if (self.path / FINISHED).exists():
            self._open_finished().cut_torn_line()

    def __enter__(self) -> RunFolder:
        """The folder itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the folder."""
        if self._finished is not None:
            with suppress(OSError):  # a cell that is not noted as finished is played again
                self._finished.close()
        if self._lock is not None:
            with suppress(OSError):
                (self.path / HOLDER).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def manifest(self) -> dict[str, Any]:
        """What is played there.

        Raises:
            ExperimentError: if the folder holds no run.
        """
        return read_manifest(self.path)

    def trace(self, key: str) -> Path:
        """The file with the steps of a cell, where they are kept."""
        return self.path / TRACES / f"{key}.jsonl.gz"

    def finished(self) -> dict[str, str]:
        """The cells that are done, with the hash of their lines.

        A torn last line is passed over: that cell is played again and compared.
        """
        path = self.path / FINISHED
        found: dict[str, str] = {}
        try:
            text = path.read_text("utf-8") if path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise ExperimentError(f"{path}: cannot be read: {error}") from error
        for line in text.split("\n")[:-1]:
            try:
                entry = json.loads(line)
                found[str(entry["cell"])] = str(entry["sha256"])
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise ExperimentError(f"{path}: not a list of finished cells: {line[:80]!r}") from error
        return found

    def note_finished(self, key: str, episodes: int) -> bytes:
        """Note that a cell is done; `AppendedFile` says when the note is on disk.

        Args:
            key: the cell.
            episodes: how many it has.

        Returns:
            Its lines.

        Raises:
            ExperimentError: if its lines are not those of an earlier attempt at it.
        """
        self.cells.refresh()
        lines = self.cells.read(key)
        if (found := lines.count(b"\n")) != episodes:
            raise ExperimentError(
                f"{self.cells.folder}: holds {found} lines of {key}, the cell has {episodes} episodes. A file was "
                "changed; put it back, or begin with --fresh"
            )
        self._open_finished().append(json.dumps({"cell": key, "sha256": lines_hash(lines)}).encode())
        return lines

    def keep_cell(self, key: str, lines: Iterable[bytes], files: Mapping[str, bytes]) -> None:
        """Write what another machine played of a cell.

        Args:
            key: the cell.
            lines: all its lines.
            files: the contents of its other files, by their paths in this folder.

        Raises:
            ExperimentError: if a file cannot be written.
        """
        with CellLog(self.cells.folder, key) as log:
            for line in lines:
                log.write(line)
        for name, content in files.items():
            path = self.path / name
            part = path.with_name(f"{path.name}.part")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                part.write_bytes(content)
                os.replace(part, path)
            except OSError as error:
                raise ExperimentError(f"{path}: cannot be written: {error.strerror}") from error

    def merge(self, keys: Iterable[str]) -> Path:
        """Write the lines of all cells, in this order, to `episodes.jsonl`; all of it or nothing.

        Returns:
            The file.
        """
        target, part = self.path / EPISODES, self.path / f"{EPISODES}.part"
        with open(part, "wb") as file:
            for key in keys:
                file.write(self.cells.read(key))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
        return target

    def _take_lock(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise ExperimentError(f"{self.path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            self._lock = None  # what the other one wrote there is left alone
            raise ExperimentError(f"{self.path}: another run is writing there{self._read_holder()}") from error
        since = datetime.now(timezone.utc).isoformat(timespec="seconds")
        holder = {"pid": os.getpid(), "host": platform.node(), "since": since}
        self._write(HOLDER, json.dumps(holder) + "\n")

    def _read_holder(self) -> str:
        """The process that holds the folder, for a message; empty while it has not written who it is."""
        try:
            holder = json.loads((self.path / HOLDER).read_text("utf-8"))
            return f": process {holder['pid']} on {holder['host']}, since {holder['since']}"
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def _open_finished(self) -> AppendedFile:
        if self._finished is None:
            self._finished = AppendedFile(self.path / FINISHED)
        return self._finished

    def _is_empty(self) -> bool:
        return all(
            entry.name.startswith((f"{MANIFEST}.part", REPLIES, HOLDER, TRACKING)) for entry in self.path.iterdir()
        )

    def _empty(self) -> None:
        for name in OURS:
            target = self.path / name
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)

    def _check_same(self, manifest: Mapping[str, Any]) -> None:
        found = self.manifest()
        self._check_part_files(found.get("experiment"), manifest["experiment"])
        differences: list[str] = []
        if found.get("config_hash") != manifest["config_hash"]:
            differences += find_differences(found.get("experiment"), manifest["experiment"])
        for name in {**(found.get("schedules") or {}), **manifest["schedules"]}:
            there, here = ((data.get("schedules") or {}).get(name) for data in (found, manifest))
            differences += _compare_schedules(name, there, here)
        if differences or found.get("config_hash") != manifest["config_hash"]:
            raise ExperimentError(
                f"{self.path}: holds another experiment{_listed(differences)}\n"
                "Choose another folder with --out, or throw that run away with --fresh"
            )
        differences = find_differences(found.get("versions"), manifest["versions"])
        if differences:
            raise ExperimentError(
                f"{self.path}: was begun with other versions, whose lines would not be comparable"
                f"{_listed(differences)}\nUse those versions, or begin anew with --fresh"
            )

    def _check_part_files(self, there: Any, here: Any) -> None:
        """Check that Python files with parts of one's own are those with which the run began."""
        before = {part[:2]: part for part in part_files(there).values()}
        for part in part_files(here).values():
            other = before.get(part[:2], part)
            if other != part:
                raise PartError(
                    f"{part.path}: was changed since the run in {self.path} began: its SHA-256 should be "
                    f"{other.sha256}. Received {part.sha256}. Choose another folder with --out, or throw that run away "
                    "with --fresh"
                )

    def _write(self, name: str, text: str) -> None:
        part = self.path / f"{name}.part"
        part.write_text(text, encoding="utf-8")
        os.replace(part, self.path / name)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a folder's run plays.

    Raises:
        ExperimentError: if the folder holds no run.
    """
    path = folder / MANIFEST
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ExperimentError(f"{folder}: holds no run, {MANIFEST} is missing") from error
    except NotADirectoryError as error:
        raise ExperimentError(f"{folder}: should be the folder of a run, and is a file") from error
    except (OSError, ValueError) as error:
        raise ExperimentError(f"{path}: cannot be read: {error}") from error
    if not isinstance(data, dict) or "config_hash" not in data:
        raise ExperimentError(f"{path}: does not describe a run")
    return data


def write_text(path: Path, text: str, *, make_folder: bool = False) -> None:
    """Write a text file.

    Args:
        path: the file.
        text: its content.
        make_folder: whether missing folders are made.

    Raises:
        ExperimentError: if it cannot be written.
    """
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be written: {error.strerror}") from error


def lines_hash(lines: bytes) -> str:
    """SHA-256 of a cell's lines."""
    return hashlib.sha256(lines).hexdigest()


def _pretty(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def find_differences(there: Any, here: Any, path: str = "") -> list[str]:
    """The keys in which two pieces of plain data differ, one line each: `path: there, here`.

    Args:
        there: what a folder holds.
        here: what is to be played.
        path: where both stand.

    Example:
        >>> find_differences({"seeds": [0, 1], "rounds": 4}, {"seeds": [0, 1, 2], "rounds": 4})
        ['seeds: there [0, 1], here [0, 1, 2]']
        >>> find_differences({"agents": [{"k": 3}]}, {"agents": [{}]})
        ['agents[0].k: there 3, here not given']
    """
    if there == here and type(there) is type(here):
        return []
    if isinstance(there, dict) and isinstance(here, dict):
        before = f"{path}." if path else ""
        return [
            line
            for key in {**there, **here}
            for line in find_differences(there.get(key, _ABSENT), here.get(key, _ABSENT), f"{before}{key}")
        ]
    are_lists = isinstance(there, list) and isinstance(here, list) and len(there) == len(here)
    if are_lists and any(isinstance(value, (dict, list)) for value in there):
        return [
            line
            for position, (one, other) in enumerate(zip(there, here, strict=True))
            for line in find_differences(one, other, f"{path}[{position}]")
        ]
    return [f"{path or 'content'}: there {_brief(there)}, here {_brief(here)}"]


def _compare_schedules(name: str, there: Mapping[str, Any] | None, here: Mapping[str, Any] | None) -> list[str]:
    """What differs in a schedule: its content, where both say it, instead of its hash."""
    if there is None or here is None:
        return [f"schedules.{name}: {'only here' if there is None else 'only there'}"]
    one, other = (
        {key: value for key, value in data.items() if key not in ("hash", "content")} for data in (there, here)
    )
    path = f"schedules.{name}"
    found = find_differences(one, other, path)
    if there.get("hash") == here.get("hash"):
        return found
    if "content" not in there:  # earlier versions wrote the hash alone
        return [*found, *find_differences(there.get("hash"), here.get("hash"), f"{path}.hash")]
    return [*found, *find_differences(there["content"], here.get("content"), path)]


_ABSENT = object()
_MOST_DIFFERENCES = 12


def _listed(differences: list[str]) -> str:
    """The differences as lines of a message."""
    shown = differences[:_MOST_DIFFERENCES]
    if len(differences) > len(shown):
        shown.append(f"and {len(differences) - len(shown)} more")
    return "".join(f"\n  {line}" for line in shown)


def _brief(value: Any) -> str:
    if value is _ABSENT:
        return "not given"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:28]} ... {text[-28:]}"

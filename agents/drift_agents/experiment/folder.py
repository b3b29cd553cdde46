"""The folder of a run: what it holds, and whether it may be used.

A run's folder holds `run.json` (what is played, with which versions), `cells/` (a file a finished cell), and when all
are done `episodes.jsonl` with its hash and `report.md`. Optional are `traces/` (the steps of each cell), `plots/`,
`inspect.html` and `report.html`. Contents depend on neither the time, the machine nor the number of jobs.

Every file is written whole, under another name first, so that a killed process leaves none that is torn. The last line
of a cell's file is the SHA-256 of the lines before it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import Any

import gymnasium
import numpy
import scipy

from drift_agents.errors import ExperimentError, PartError
from drift_agents.experiment.config import hash_content, without_prices
from drift_agents.experiment.logs import to_line
from drift_agents.registry.part_file import part_files
from drift_envs.schedule.model import Schedule
from drift_envs.utils.error_messages import describe_os_error
from drift_envs.utils.version import __version__

MANIFEST, CELLS, EPISODES, REPORT = "run.json", "cells", "episodes.jsonl", "report.md"
EPISODES_HASH = "episodes.sha256"
"""The SHA-256 of `episodes.jsonl`, as `sha256sum` writes it."""

TRACES, PAGE, REPORT_PAGE = "traces", "inspect.html", "report.html"
REPLIES = "replies.sqlite"
"""The recorded replies of language models: kept when a run is thrown away, since they are paid for."""

TRACKING = "tracking"
"""What experiment trackers have written; kept when a run is thrown away, and no part of it."""

CODER = "coder"
"""What `drift-agents check-coder` stores of coding agents."""

HOLDER = "held-by.json"
"""Which process holds the folder, while one does."""

OURS = (MANIFEST, CELLS, EPISODES, EPISODES_HASH, REPORT, TRACES, PAGE, REPORT_PAGE, CODER)
"""Everything that a run writes; nothing else in its folder is ever touched."""

_PART = ".part"  # the ending of a file that is being written
_BESIDE = (f"{MANIFEST}{_PART}", REPLIES, HOLDER, TRACKING)  # files of a folder without a run


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
        self.lock: int | None = None
        """The descriptor whose lock holds the folder; processes that inherit it hold the folder too."""

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
        with _writing(self.path):
            is_empty = all(entry.name.startswith(_BESIDE) for entry in self.path.iterdir())
        if not is_empty and not (self.path / MANIFEST).exists():
            raise ExperimentError(f"{self.path}: is not empty and holds no run. Choose another folder with --out")
        if not is_empty and not fresh:
            if not resume:
                raise ExperimentError(
                    f"{self.path}: holds a run already. Go on with it with --resume, throw it away with --fresh, "
                    "or choose another folder with --out"
                )
            if self._check_same(manifest)["config_hash"] == manifest["config_hash"]:
                return
        else:
            self._empty()
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        _write_whole(self.path / MANIFEST, [text.encode()])

    def __enter__(self) -> RunFolder:
        """The folder itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the folder."""
        if self.lock is not None:
            with suppress(OSError):
                (self.path / HOLDER).unlink(missing_ok=True)
            os.close(self.lock)
            self.lock = None

    def has_cell(self, key: str) -> bool:
        """Whether a cell is done.

        Raises:
            ExperimentError: if its file is not what the run wrote.
        """
        return self._cell(key).exists() and self.read_cell(key) is not None

    def trace(self, key: str) -> Path:
        """The file with the steps of a cell, where they are kept."""
        return self.path / TRACES / f"{key}.jsonl.gz"

    def keep_cell(self, key: str, lines: bytes, steps: bytes | None) -> None:
        """Write what was played of a cell.

        Args:
            steps: the content of the file with its steps, if there is to be one.

        Raises:
            ExperimentError: if a file cannot be written.
        """
        if steps is not None:  # first, since the cell is done when its lines are there
            _write_whole(self.trace(key), [steps])
        _write_whole(self._cell(key), [lines, _seal(lines)])

    def read_cell(self, key: str) -> bytes:
        """The lines of a cell that is done.

        Raises:
            ExperimentError: if the file cannot be read, or is not what the run wrote.
        """
        path = self._cell(key)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ExperimentError(f"{path}: cannot be read: {error.strerror}") from error
        lines = content[: -len(_seal(b""))]
        if content != lines + _seal(lines):
            raise ExperimentError(
                f"{path}: is not what the run wrote when it finished this cell: it was changed or torn. Put it back, "
                "or delete it, so that the cell is played again with --resume"
            )
        return lines

    def merge(self, keys: Iterable[str]) -> Path:
        """Write the lines of all cells, in this order, to `episodes.jsonl`; all of it or nothing.

        Returns:
            The file.

        Raises:
            ExperimentError: if a cell's file is not what the run wrote, or a file cannot be written.
        """
        target = self.path / EPISODES
        _write_whole(target, map(self.read_cell, keys))
        _write_whole(self.path / EPISODES_HASH, [_describe_hash(target).encode()])
        return target

    def write_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the lines of rows that do not come from cells.

        Raises:
            ExperimentError: if a file cannot be written.
        """
        target = self.path / EPISODES
        _write_whole(target, (f"{to_line(row)}\n".encode() for row in rows))
        _write_whole(self.path / EPISODES_HASH, [_describe_hash(target).encode()])

    def _cell(self, key: str) -> Path:
        return self.path / CELLS / f"{key}.jsonl"

    def _take_lock(self) -> None:
        with _writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self.lock = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self.lock)
            self.lock = None  # what the other one wrote there is left alone
            raise ExperimentError(f"{self.path}: another run is writing there{self._read_holder()}") from error
        since = datetime.now(timezone.utc).isoformat(timespec="seconds")
        holder = {"pid": os.getpid(), "host": platform.node(), "since": since}
        _write_whole(self.path / HOLDER, [json.dumps(holder).encode(), b"\n"])

    def _read_holder(self) -> str:
        """The process that holds the folder, for a message; empty while it has not written who it is."""
        try:
            holder = json.loads((self.path / HOLDER).read_text("utf-8"))
            return f": process {holder['pid']} on {holder['host']}, since {holder['since']}"
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return ""

    def _empty(self) -> None:
        for path in (self.path / name for name in OURS):
            with _writing(path):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)

    def _check_same(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The `run.json` that is there; only prices may differ."""
        found = read_manifest(self.path)
        _check_experiment(self.path, found)
        self._check_part_files(found.get("experiment"), manifest["experiment"])
        played, with_versions = compare_manifests(found, manifest)
        if played:
            raise ExperimentError(
                f"{self.path}: holds another experiment{list_differences(played)}\n"
                "Choose another folder with --out, or throw that run away with --fresh"
            )
        if with_versions:
            raise ExperimentError(
                f"{self.path}: was begun with other versions, whose lines would not be comparable"
                f"{list_differences(with_versions)}\nUse those versions, or begin anew with --fresh"
            )
        return found

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


def _seal(lines: bytes) -> bytes:
    """The last line of a cell's file."""
    return json.dumps({"sha256": hashlib.sha256(lines).hexdigest()}).encode() + b"\n"


def _write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file; it has its name only when it is on disk.

    Raises:
        ExperimentError: if it cannot be written.
    """
    part = path.with_name(f"{path.name}{_PART}")
    with _writing(path):
        path.parent.mkdir(exist_ok=True)
        try:
            with open(part, "wb") as file:
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except OSError:
            part.unlink(missing_ok=True)
            raise


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Name the file or folder that cannot be written."""
    try:
        yield
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be written: {describe_os_error(error)}") from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a folder's run plays.

    Raises:
        ExperimentError: if the folder does not exist, or holds no run.
    """
    path = folder / MANIFEST
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        if not folder.exists():
            beside = sorted(path.parent.name for path in folder.parent.glob(f"*/{MANIFEST}"))
            near = get_close_matches(folder.name, beside, n=3, cutoff=0)
            hint = f". The nearest runs in {folder.parent}: {', '.join(near)}" if near else ""
            raise ExperimentError(f"{folder}: does not exist{hint}") from error
        raise ExperimentError(f"{folder}: holds no run, {MANIFEST} is missing") from error
    except NotADirectoryError as error:
        raise ExperimentError(f"{folder}: should be the folder of a run, and is a file") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ExperimentError(f"{path}: cannot be read: {error}") from error
    if not isinstance(data, dict) or "config_hash" not in data:
        raise ExperimentError(f"{path}: does not describe a run")
    return data


def describe_schedule(schedule: Schedule, episodes: int | None) -> dict[str, Any]:
    """What `run.json` says of a schedule.

    Args:
        schedule: the schedule, with the value that a sweep sets.
        episodes: how many are played; `None` where only playing shows it.
    """
    return {
        "env": schedule.env,
        "hash": schedule.content_hash(),
        "content": json.loads(json.dumps(schedule.to_dict())),  # as it is read again
        "visibility": schedule.visibility,
        "clock": schedule.clock,
        "control": schedule.control,
        "description": schedule.description,
        "episodes": episodes,
    }


def write_text(path: Path, text: str, *, make_folder: bool = False) -> None:
    """Write a text file.

    Args:
        make_folder: whether missing folders are made.

    Raises:
        ExperimentError: if it cannot be written.
    """
    with _writing(path):
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
    write_parts(path, [text])


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """Write a text file piece by piece; it has its name only when it is complete.

    Args:
        path: the file. A link is followed; a device or a pipe is written as it is.

    Raises:
        ExperimentError: if it cannot be written.
    """
    if path.exists() and not path.is_file():
        with _writing(path), open(path, "w", encoding="utf-8") as file:
            file.writelines(parts)
    else:
        with _writing(path):
            target = path.resolve()
        _write_whole(target, (part.encode() for part in parts))


def finished_lines(folder: Path) -> Path:
    """The file with all lines of a run.

    Raises:
        ExperimentError: if the run is not finished.
    """
    if not (folder / EPISODES).exists():
        raise ExperimentError(f"{folder}: the run is not finished, {EPISODES} is missing. Continue it with --resume")
    return folder / EPISODES


def check_merged(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Check the lines of a finished run, and what it played, against the hashes beside them.

    Args:
        manifest: the content of its `run.json`.

    Raises:
        ExperimentError: if one of them was changed, or `episodes.jsonl` cannot be read.
    """
    _check_experiment(folder, manifest)
    path, beside = folder / EPISODES, folder / EPISODES_HASH
    try:
        if beside.exists() and beside.read_bytes() != _describe_hash(path).encode():
            raise ExperimentError(
                f"{path}: is not what the run wrote: its SHA-256 is another one than in {EPISODES_HASH}. Put it back; "
                "--resume writes it anew from the files of the cells"
            )
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be read: {error.strerror}") from error


def _check_experiment(folder: Path, manifest: Mapping[str, Any]) -> None:
    stated, experiment = manifest["config_hash"], manifest.get("experiment")
    if not _HASH.fullmatch(str(stated)):  # lines that are not of a run
        return
    found = hash_content(experiment) if isinstance(experiment, dict) else None
    if found != stated:
        raise ExperimentError(
            f"{folder / MANIFEST}: is not what the run wrote: the hash of `experiment` should be {stated}. "
            f"Received {found}. Put it back"
        )


_HASH = re.compile("[0-9a-f]{16}")


def _describe_hash(path: Path) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return f"{found.hexdigest()}  {path.name}\n"


_BLOCK = 2**20  # bytes


def compare_manifests(there: Mapping[str, Any], here: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What differs between two runs: of what is played, and of the versions; a line each, as in `find_differences`."""
    played: list[str] = []
    if there["config_hash"] != here["config_hash"]:
        played += find_differences(without_prices(there.get("experiment")), without_prices(here["experiment"]))
    before, now = (
        {name: _unfold(about) for name, about in (data.get("schedules") or {}).items()} for data in (there, here)
    )
    played += find_differences(before, now, "schedules")
    return played, find_differences(there.get("versions"), here["versions"])


def _unfold(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest says of a schedule, with its content in the place of its hash."""
    about = {key: value for key, value in schedule.items() if key not in ("hash", "content")}
    return {**about, **(schedule.get("content") or {})}


def find_differences(there: Any, here: Any, path: str = "") -> list[str]:
    """The keys in which two pieces of plain data differ, one line each: `path: there, here`.

    Args:
        there: what a folder holds.
        here: what is to be played.

    Example:
        >>> find_differences({"seeds": [0, 1], "rounds": 4}, {"seeds": [0, 1, 2], "rounds": 4})
        ['seeds: there [0, 1], here [0, 1, 2]']
        >>> find_differences({"agents": [{"k": 3}]}, {"agents": [{}]})
        ['agents[0].k: there 3, here not given']
    """
    before, now = dict(_leaves(there, path)), dict(_leaves(here, path))
    return [
        f"{place or 'content'}: there {_brief(before.get(place))}, here {_brief(now.get(place))}"
        for place in {**before, **now}
        if before.get(place) != now.get(place)
    ]


def _leaves(data: Any, path: str) -> Iterator[tuple[str, str]]:
    """The path and the JSON of every value of plain data that holds no other ones but in a flat list."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _leaves(value, f"{path}.{key}" if path else key)
    elif isinstance(data, list) and any(isinstance(value, (dict, list)) for value in data):
        for position, value in enumerate(data):
            yield from _leaves(value, f"{path}[{position}]")
    else:
        yield path, json.dumps(data)


_MOST_DIFFERENCES = 12


def list_differences(differences: list[str]) -> str:
    """The differences as lines of a message."""
    shown = differences[:_MOST_DIFFERENCES]
    if len(differences) > len(shown):
        shown.append(f"and {len(differences) - len(shown)} more")
    return "".join(f"\n  {line}" for line in shown)


def _brief(text: str | None) -> str:
    if text is None:
        return "not given"
    return text if len(text) <= 60 else f"{text[:28]} ... {text[-28:]}"

"""The files that hold the lines of a run's cells: one for each worker, however many cells there are.

* `CellLog` - writes the lines of a cell behind what stands in a file that no other process writes to
* `CellFiles` - finds the lines of each cell in all files of a run

A file is a sequence of attempts at cells. Each begins with a line that names the cell, `{"cell": "..."}`, and goes on
with the cell's lines. A cell that was interrupted is played again from its seed, as another attempt. The longest
attempt holds the cell; every shorter one has to be its beginning, so that a repetition that differs is noticed.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from types import TracebackType

from drift_agents.errors import ExperimentError
from drift_agents.experiment.appended_file import AppendedFile
from drift_agents.experiment.logs import first_difference

SUFFIX = ".jsonl"

_NAME_BEGINS = b'{"cell": '


class CellLog:
    """Writes the lines of one cell, as a new attempt, into the first file of a run that no other writer holds.

    The attempt follows the last whole line there; a line that a killed writer left torn is cut off.

    Args:
        folder: of the files.
        key: the cell.

    Raises:
        ExperimentError: if the file cannot be written.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.written = 0
        try:
            self._file = _open_free_file(folder)
        except OSError as error:
            raise ExperimentError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
        self.path = self._file.path
        try:
            self._file.cut_torn_line()
            self._file.append(name_line(key))
        except OSError as error:
            with suppress(OSError):
                self._file.close()
            raise self._failure(error) from error

    def __enter__(self) -> CellLog:
        """The log itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file, with all its lines on disk."""
        try:
            self._file.close()
        except OSError as failure:
            if error is None:
                raise self._failure(failure) from failure

    def write(self, line: bytes) -> None:
        """Write a line; the end of this process loses none, and `AppendedFile` says when it is on disk.

        Args:
            line: what `drift_agents.experiment.logs.to_line` gives, as UTF-8.

        Raises:
            ExperimentError: if the disk is full.
        """
        try:
            self._file.append(line)
        except OSError as error:
            raise self._failure(error) from error
        self.written += 1

    def _failure(self, error: OSError) -> ExperimentError:
        return ExperimentError(f"{self.path}: cannot be written: {error.strerror}")


def name_line(key: str) -> bytes:
    r"""The line before the lines of a cell, without its end.

    Example:
        >>> name_line("lake--0")
        b'{"cell": "lake--0"}'
    """
    return json.dumps({"cell": key}).encode()


def _open_free_file(folder: Path) -> AppendedFile:
    """The first file that is held by no other writer, held by this one until it is closed.

    A worker that outlived its killed run may still hold one; it does no harm there.
    """
    paths = _worker_files(folder)
    while True:
        file = AppendedFile(next(paths))
        try:
            fcntl.flock(file.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            return file


def _worker_files(folder: Path) -> Iterator[Path]:
    """The names of files that workers write, in order and without an end; they are used from the first."""
    return (folder / f"{number}{SUFFIX}" for number in count())


@dataclass(slots=True)
class _Attempt:
    """Where the lines of an attempt stand: from one byte of a file to another."""

    path: Path
    start: int
    end: int

    def read(self) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(self.start)
            return file.read(self.end - self.start)


class CellFiles:
    """The lines of all cells, by where they stand in the files of a run.

    Args:
        folder: of the files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._attempts: dict[str, list[_Attempt]] = {}
        self._last: dict[Path, _Attempt] = {}

    def refresh(self) -> None:
        """Read which lines are new: of all files the first time, then of those that workers write.

        A torn last line is passed over, until it is whole.

        Raises:
            ExperimentError: if a file cannot be read, or does not begin with the name of a cell.
        """
        known = takewhile(Path.exists, _worker_files(self.folder)) if self._last else self._list()
        for path in known:
            try:
                self._read_new_lines(path)
            except OSError as error:
                raise ExperimentError(f"{path}: cannot be read: {error.strerror}") from error

    def read(self, key: str) -> bytes:
        """The lines of a cell, each with its end; none of a cell without an attempt.

        Raises:
            ExperimentError: if attempts at the cell differ, or a file cannot be read.
        """
        try:
            attempts = [(attempt, attempt.read()) for attempt in self._attempts.get(key, ())]
        except OSError as error:
            raise ExperimentError(f"{error.filename}: cannot be read: {error.strerror}") from error
        longest = max((content for _, content in reversed(attempts)), key=len, default=b"")
        for attempt, content in attempts:
            if not longest.startswith(content):
                raise ExperimentError(_describe_difference(attempt, content, longest))
        return longest

    def _list(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{SUFFIX}"))

    def _read_new_lines(self, path: Path) -> None:
        attempt = self._last.get(path)
        with open(path, "rb") as file:
            file.seek(attempt.end if attempt else 0)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                if line.startswith(_NAME_BEGINS):
                    place = (attempt.end if attempt else 0) + len(line)
                    attempt = _Attempt(path, place, place)
                    self._attempts.setdefault(_read_name(line, path), []).append(attempt)
                    self._last[path] = attempt
                elif attempt is None:
                    raise ExperimentError(
                        f"{path}: should begin with the name of a cell, which it does not in runs of earlier versions. "
                        "Choose another folder with --out, or throw that run away with --fresh"
                    )
                else:
                    attempt.end += len(line)


def _read_name(line: bytes, path: Path) -> str:
    try:
        return str(json.loads(line)["cell"])
    except (ValueError, KeyError, TypeError) as error:
        raise ExperimentError(f"{path}: not the name of a cell: {line[:80]!r}") from error


def _describe_difference(attempt: _Attempt, content: bytes, longest: bytes) -> str:
    """Where an attempt is not the beginning of the longest one, as a message."""
    pairs = zip(content.split(b"\n"), longest.split(b"\n"), strict=False)
    number, old, new = next((number, old, new) for number, (old, new) in enumerate(pairs) if old != new)
    with open(attempt.path, "rb") as file:
        before = file.read(attempt.start).count(b"\n")
    return (
        f"{attempt.path}:{before + number + 1}: this line is not what the cell's seed gives"
        f"{first_difference(old, new)}. The file was changed, or it comes from another version; put it back, or begin "
        "with --fresh"
    )

"""Lines of a run and the files that hold them.

* `FIELDS` - the fields of a line, in order
* `TRAIN`, `TEST` - the stages of a cell
* `to_line`, `from_line` - a row to its line and back
* `CellLog` - the file of one cell: takes up where it was torn off, checks what is replayed
* `first_difference` - the first field in which two lines differ
* `iterate_rows` - the rows of a file, one after the other
* `LoggedRow`, `read_rows` - all rows of a file
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from drift_agents.errors import ExperimentError
from drift_agents.experiment.appended_file import AppendedFile
from drift_agents.types import NO_USAGE

TRAIN, TEST = "train", "test"
"""The stages of a cell, see `drift_agents.experiment.training`."""

_KINDS: dict[str, tuple[type, ...]] = {
    "env": (str,),
    "schedule": (str,),
    "schedule_hash": (str,),
    "memory": (str,),
    "verifier": (str,),
    "controller": (str,),
    "team": (str,),
    "policy": (str,),
    "seed": (int,),
    "stage": (str,),
    "episode": (int,),
    "round": (int,),
    "phase": (str,),
    "tick": (int,),
    "success": (bool,),
    "score": (float,),
    "steps": (int,),
    "probe_steps": (int,),
    "probe_resets": (int,),
    "probe_falls": (int,),
    "probe_purchases": (int,),
    "surprises": (int,),
    "realignments": (int,),
    "false_realignments": (int, type(None)),  # null without oracle
    "detected": (str, type(None)),  # null but in the episode in which a drift was noticed
    "detection_delay": (int, type(None)),  # likewise
    "exposures": (int, type(None)),  # null without oracle, and where no drift has come yet
    "memory_size": (int,),
    "memory_truth_rate": (float, type(None)),  # null without oracle, and for an empty memory
    "items": (int, type(None)),  # null for a memory without items
    "item_truth_rate": (float, type(None)),  # null without oracle, and where there are none
    "shared_hits": (int,),
    "private_hits": (int,),
    "invalid_actions": (int,),
    **{field: (type(none),) for field, none in NO_USAGE._asdict().items()},
    "refreshes": (int,),
    "tokens_estimated": (int,),
    "loops": (int,),
    "loop_steps": (int,),
    "regret": (float, type(None)),  # null without oracle
}

FIELDS = tuple(_KINDS)
"""The fields of a line, in order; `docs/experiments.md` says what each means."""


_KIND_NAMES = {str: "a text", int: "a whole number", bool: "true or false", float: "a number", type(None): "null"}

ORPHAN_SECONDS = 60
"""How long to wait for a worker of a killed run that still writes to a cell's file."""

_POLL_SECONDS = 0.05


def to_line(row: Mapping[str, Any]) -> str:
    """A row as its line, without the line's end: every field of `FIELDS`, in order, and no other.

    Raises:
        ValueError: if a number is not finite, which JSON cannot hold.
        KeyError: if a field is missing.
    """
    return json.dumps({field: row[field] for field in FIELDS}, ensure_ascii=False, allow_nan=False)


def from_line(line: str, where: str) -> dict[str, Any]:
    """The row of a line.

    Args:
        line: without the line's end.
        where: file and line number, for messages.

    Raises:
        ExperimentError: if it is not a line of a run.
    """
    try:
        row = json.loads(line, parse_constant=_refuse_constant)
    except ValueError as error:
        raise ExperimentError(f"{where}: not a line of a run: {error}") from error
    if not isinstance(row, dict) or list(row) != list(FIELDS):
        missing = [field for field in FIELDS if not isinstance(row, dict) or field not in row]
        what = f"{', '.join(missing)} missing" if missing else "other fields, or another order"
        raise ExperimentError(f"{where}: not a line of this version of drift-envs: {what}")
    for field, kinds in _KINDS.items():
        if type(row[field]) not in kinds:
            wanted = " or ".join(_KIND_NAMES[kind] for kind in kinds)
            raise ExperimentError(f"{where}: `{field}` should be {wanted}. Received {row[field]!r}")
    return row


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_POSITIONS = {field: position for position, field in enumerate(FIELDS)}


class LoggedRow(Mapping[str, Any]):
    """A row of a file, in a sixth of a dictionary's memory: a mapping of `FIELDS` to a tuple of values.

    Args:
        values: the values, in the order of `FIELDS`.
    """

    __slots__ = ("values_in_order",)

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values_in_order = values

    def __getitem__(self, field: str) -> Any:
        return self.values_in_order[_POSITIONS[field]]

    def equals_but_for(self, field: str, other: LoggedRow) -> bool:
        """Whether all other values are equal."""
        place, ours, theirs = _POSITIONS[field], self.values_in_order, other.values_in_order
        return ours[:place] == theirs[:place] and ours[place + 1 :] == theirs[place + 1 :]

    def __iter__(self) -> Iterator[str]:
        return iter(FIELDS)

    def __len__(self) -> int:
        return len(FIELDS)


_POOLED = 100_000


class _Pool(dict[tuple[type, Any], Any]):
    """Equal values as one object, up to so many; types are kept apart, and zeros are left as they are."""

    def pack(self, row: Mapping[str, Any]) -> LoggedRow:
        share = self.setdefault if len(self) < _POOLED else self.get
        return LoggedRow(tuple(share((type(value), value), value) if value else value for value in row.values()))


def iterate_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, one after the other.

    Raises:
        ExperimentError: if the file cannot be read, or a line is not one of a run.
    """
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith("\n"):
                    raise ExperimentError(f"{path}:{number}: the last line is torn off; go on with the run first")
                yield from_line(line[:-1], f"{path}:{number}")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise ExperimentError(f"{path}: cannot be read: {reason}") from error


def read_rows(path: Path) -> list[LoggedRow]:
    """All rows of a file.

    Raises:
        ExperimentError: if the file cannot be read, or a line is not one of a run.
    """
    pool = _Pool()
    return [pool.pack(row) for row in iterate_rows(path)]


class CellLog:
    """The file of one cell.

    A file that a killed run left behind is kept: its complete lines are compared with what the cell
    writes again from its seed, a torn last line is cut off, and writing goes on behind them.

    Args:
        path: the file; it may exist.

    Raises:
        ExperimentError: if the file cannot be read or opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        try:
            self._file = AppendedFile(path)
            file = self._file.file
            _wait_for_lock(file, path)
            file.seek(0)
            whole, _, _ = file.read().rpartition(b"\n")
            self._old = whole.split(b"\n") if whole else []
            file.truncate(len(whole) + 1 if whole else 0)
        except OSError as error:
            raise ExperimentError(f"{path}: cannot be written: {error.strerror}") from error

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
                raise ExperimentError(f"{self.path}: cannot be written: {failure.strerror}") from failure

    def write(self, line: bytes) -> None:
        """Write a line, or compare it with the one that stands there already.

        The end of this process loses no line; `AppendedFile` says when a line is on disk.

        Args:
            line: what `to_line` gives, as UTF-8.

        Raises:
            ExperimentError: if the line that stands there is another, or the disk is full.
        """
        self.written += 1
        if self.written <= len(self._old):
            old = self._old[self.written - 1]
            if old != line:
                what = first_difference(old, line)
                raise ExperimentError(
                    f"{self.path}:{self.written}: this line is not what the cell's seed gives{what}. The file was "
                    "changed, or it comes from another version; remove it, or begin with --fresh"
                )
            return
        try:
            self._file.append(line)
        except OSError as error:
            raise ExperimentError(f"{self.path}: cannot be written: {error.strerror}") from error

    def close_after(self, episodes: int) -> None:
        """Check that the file holds no more lines than the cell has episodes.

        Raises:
            ExperimentError: if it does.
        """
        if len(self._old) > episodes:
            raise ExperimentError(f"{self.path}: holds {len(self._old)} lines, the cell has {episodes} episodes")


def _wait_for_lock(file: BinaryIO, path: Path) -> None:
    """Wait until a worker that outlived its killed run has finished with the file.

    Raises:
        ExperimentError: if it does not finish in time.
    """
    for _ in range(round(ORPHAN_SECONDS / _POLL_SECONDS)):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_POLL_SECONDS)
        else:
            return
    raise ExperimentError(f"{path}: another process is still writing there; end it, or try again later")


def first_difference(old: bytes, new: bytes) -> str:
    """Which field differs, as an insertion into a message; empty if the fields are equal.

    Args:
        old: the line that stands there.
        new: the line that the cell's seed gives.
    """
    row = json.loads(new)
    try:
        found = json.loads(old)
    except ValueError:
        return " (it is not JSON)"
    if isinstance(found, dict):
        for field in FIELDS:
            if field not in found or found[field] != row[field]:
                return f" (`{field}` is {found.get(field)!r}, should be {row[field]!r})"
    return ""

"""Lines of a run: an episode each.

* `FIELDS` - the fields of a line, in order
* `TRAIN`, `TEST` - the stages of a cell
* `to_line`, `from_line` - a row to its line and back
* `first_difference` - the first field in which two lines differ
* `iterate_rows` - the rows of a file, one after the other
* `LoggedRow`, `read_rows` - all rows of a file
* `parse_rows` - the rows of some lines
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from drift_agents.errors import ExperimentError
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


def parse_rows(lines: bytes, where: str) -> list[dict[str, Any]]:
    """The rows of some lines.

    Args:
        lines: each with its end.
        where: they stand, for messages.

    Raises:
        ExperimentError: if a line is not one of a run.
    """
    return [from_line(line, where) for line in lines.decode("utf-8").split("\n")[:-1]]


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

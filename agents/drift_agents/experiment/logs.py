"""Lines of a run: an episode each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from drift_agents.errors import ExperimentError
from drift_agents.types import NO_USAGE

TRAIN, TEST = "train", "test"
"""The stages of a cell, see `drift_agents.experiment.episode`."""

SUCCESS = 1.0
"""The least score of a successful episode: the maximum."""

_NULL = type(None)
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
    "false_realignments": (int, _NULL),  # null without oracle
    "detected": (str, _NULL),  # null but in the episode in which a drift was noticed
    "detection_delay": (int, _NULL),  # likewise
    "memory_size": (int,),
    "memory_truth_rate": (float, _NULL),  # null without oracle, and for an empty memory
    "loop_steps": (int,),
    "regret": (float, _NULL),  # null without oracle
}

_DEFAULTS: dict[str, float | None] = {
    "items": None,  # for a memory without items
    "item_truth_rate": None,  # without oracle, and where there are no items
    "still_believed": None,  # before the first drift, without oracle, and where nothing remembered has changed
    "rewritten": 0,
    "shared_hits": 0,
    "private_hits": 0,
    "invalid_actions": 0,
    **NO_USAGE._asdict(),
    "refreshes": 0,
    "tokens_estimated": 0,
}
"""The fields of `extra`, and the value of one that is left out."""

_EXTRA_KINDS = {field: type(default) for field, default in _DEFAULTS.items()} | {
    "items": int,
    "item_truth_rate": float,
    "still_believed": float,
}

EXTRA = "extra"
"""The field that holds the values of `_DEFAULTS` that are not the default; left out if there are none."""

FIELDS = (*_KINDS, *_DEFAULTS)
"""The fields of a row; `docs/experiments.md` says what each means, and which of them stand in `extra`."""

_KIND_NAMES = {str: "a text", int: "a whole number", bool: "true or false", float: "a number", _NULL: "null"}


def to_line(row: Mapping[str, Any]) -> str:
    """A row as its line, without the line's end: its fields in order, those of `extra` packed.

    Raises:
        ValueError: if a number is not finite, which JSON cannot hold.
        KeyError: if a field is missing.
    """
    line = {field: row[field] for field in _KINDS}
    extra = {field: row[field] for field, default in _DEFAULTS.items() if row[field] != default}
    return json.dumps({**line, EXTRA: extra} if extra else line, ensure_ascii=False, allow_nan=False)


def from_line(line: str, where: str) -> dict[str, Any]:
    """The row of a line, with all fields of `FIELDS`.

    Args:
        where: file and line number, for messages.

    Raises:
        ExperimentError: if it is not a line of a run.
    """
    try:
        row = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ExperimentError(f"{where}: not a line of a run: {error}") from error
    if not isinstance(row, dict) or not isinstance(extra := row.pop(EXTRA, {}), dict) or list(row) != list(_KINDS):
        missing = [field for field in _KINDS if not isinstance(row, dict) or field not in row]
        what = f"{', '.join(missing)} missing" if missing else "other fields, or another order"
        raise ExperimentError(f"{where}: not a line of this version of drift-envs: {what}")
    unknown = [field for field in extra if field not in _DEFAULTS]
    if unknown:
        raise ExperimentError(f"{where}: not a line of this version of drift-envs: `{EXTRA}` has {', '.join(unknown)}")
    for field, kinds in _KINDS.items():
        _check_kind(row[field], kinds, field, where)
    for field, value in extra.items():
        _check_kind(value, (_EXTRA_KINDS[field],), f"{EXTRA}.{field}", where)
    return {**row, **_DEFAULTS, **extra}


def _check_kind(value: object, kinds: tuple[type, ...], field: str, where: str) -> None:
    if type(value) not in kinds:
        wanted = " or ".join(_KIND_NAMES[kind] for kind in kinds)
        raise ExperimentError(f"{where}: `{field}` should be {wanted}. Received {value!r}")


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

    Raises:
        ExperimentError: if a line is not one of a run.
    """
    return [from_line(line, where) for line in lines.decode("utf-8").split("\n")[:-1]]

"""Plain data: what a schedule may consist of, wherever it comes from.

* `plain_data` - a copy of the data, and everything in it that a schedule can't hold
* `key_path` - a path as people read it, `drifts[1].set.map`
* `show` - a value as people wrote it, cut to a readable length
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from drift_envs.schedule.rules import Finding, Path
from drift_envs.schedule.yaml12 import MAX_DEPTH, MAX_NODES

_LARGEST = 2**63 - 1
_SHOWN = 60


def plain_data(value: Any) -> tuple[Any, list[Finding]]:
    """A copy that consists of dictionaries, lists, strings, finite numbers, booleans and `None`.

    Args:
        value: anything; tuples become lists, NumPy's numbers Python's.

    Returns:
        The copy, and what could not be copied (which is `None` in the copy).

    Example:
        >>> plain_data({"rows": ("SF", "FG"), "slip": float("nan")})
        ({'rows': ['SF', 'FG'], 'slip': None}, [(('slip',), 'should be a finite number. Received nan')])
    """
    copier = _Copier()
    return copier.copy(value, ()), copier.findings


def key_path(path: Iterable[str | int]) -> str:
    """A path as people read it.

    Example:
        >>> key_path(("drifts", 1, "set", "map"))
        'drifts[1].set.map'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def show(value: Any) -> str:
    """A value as people wrote it, cut to a readable length.

    Example:
        >>> show(None), show(True), show("B")
        ('null', 'true', "'B'")
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]} ..."


class _Copier:
    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._nodes = 0

    def copy(self, value: Any, path: Path) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            if self._nodes == MAX_NODES + 1:
                self.findings.append(((), f"holds more than {MAX_NODES} values"))
            return None
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, (int, float)):
            return self._number(value, path)
        if len(path) >= MAX_DEPTH:
            self._refuse(path, f"is nested deeper than {MAX_DEPTH} levels")
            return None
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        if isinstance(value, (list, tuple)):
            return [self.copy(item, (*path, position)) for position, item in enumerate(value)]
        self._refuse(path, f"should be plain data. Received {type(value).__name__}")
        return None

    def _number(self, value: int | float, path: Path) -> int | float | None:
        if isinstance(value, int):
            if abs(value) <= _LARGEST:
                return value
            self._refuse(path, "should be a whole number of at most 18 digits. Received a longer one")
        elif math.isfinite(value):
            return value
        else:
            self._refuse(path, f"should be a finite number. Received {value}")
        return None

    def _mapping(self, value: Mapping[Any, Any], path: Path) -> dict[str, Any]:
        copy = {}
        for key, item in value.items():
            if isinstance(key, str):
                copy[key] = self.copy(item, (*path, key))
            else:
                self._refuse(path, f"a key should be a string. Received {show(key)}")
        return copy

    def _refuse(self, path: Path, text: str) -> None:
        self.findings.append((path, text))

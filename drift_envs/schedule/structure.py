"""The structure of a schedule: what is wrong with its keys one by one, before any rule between them.

* `plain_data` - a copy of the data, and everything in it that a schedule can't hold
* `is_unknown_key` - whether a finding is about an unknown key
* `validate_structure` - the schedule, or the findings of pydantic in the words of this package
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from drift_envs.schedule.findings import Finding, Path, nearest, show
from drift_envs.schedule.model import BROKEN_RULE, Derived, Drift, KnobSpec, Schedule, Steps, TaskPool
from drift_envs.schedule.variants import SECTION
from drift_envs.schedule.yaml12 import MAX_DEPTH, MAX_NODES

_UNKNOWN_KEY = "is no key that belongs here."
_LARGEST = 2**63 - 1
_TYPES = {
    "int_type": "should be a whole number",
    "float_type": "should be a number",
    "bool_type": "should be true or false",
    "string_type": "should be a text",
    "dict_type": "should be a mapping",
    "model_type": "should be a mapping",
    "model_attributes_type": "should be a mapping",
    "tuple_type": "should be a list",
    "string_pattern_mismatch": "should consist of letters, digits, `_`, `-` and `.`, and begin with a letter or digit",
}
_LIMITS = {
    "greater_than": ("gt", "should be more than"),
    "greater_than_equal": ("ge", "should be at least"),
    "less_than": ("lt", "should be less than"),
    "less_than_equal": ("le", "should be at most"),
}


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


def validate_structure(data: Mapping[str, Any]) -> tuple[Schedule | None, list[Finding]]:
    """Build the schedule, or find what is wrong with single keys: unknown, missing, wrong type, out of range.

    Args:
        data: a schedule as plain data.

    Returns:
        The schedule, `None` if it can't be built, and pairs of a path and what is wrong there. Rules between
        keys are left to `rules.py`.

    Example:
        >>> validate_structure({"version": 1, "name": "a", "clok": "step"})
        (None, [(('clok',), 'is no key that belongs here. Did you mean `clock`?')])
    """
    try:
        return Schedule.model_validate(data), []
    except ValidationError as error:
        found = [item for item in error.errors(include_url=False) if item["type"] != BROKEN_RULE]
        return None, [_explain(_path(item["loc"]), item, data) for item in found]


def is_unknown_key(finding: Finding) -> bool:
    """Whether a finding of `validate_structure` is about an unknown key."""
    return finding[1].startswith(_UNKNOWN_KEY)


def _explain(path: Path, found: Mapping[str, Any], data: Mapping[str, Any]) -> Finding:
    kind, context, received = found["type"], found.get("ctx", {}), show(found["input"])
    if kind == "extra_forbidden":
        return path, f"{_UNKNOWN_KEY} {nearest(str(path[-1]), _known_keys(path[:-1]))}"
    if kind == "missing" and isinstance(path[-1], int):  # a pair with one entry
        return path[:-1], f"should be a list of two. Received {show(_at(data, path[:-1]))}"
    if kind == "missing":
        return path, "is missing"
    if kind == "literal_error":
        return path, f"should be {context['expected']}. Received {received}{_suggest(found['input'], context)}"
    if kind in ("too_short", "too_long"):
        if "swap" in path or "bounds" in path:
            return path, f"should be a list of two. Received {received}"
        bound = f"at most {context['max_length']}" if kind == "too_long" else f"at least {context['min_length']}"
        return path, f"should have {bound} entries. Received {len(found['input'])}"
    if kind in _LIMITS:
        key, text = _LIMITS[kind]
        return path, f"{text} {context[key]}. Received {received}"
    if kind in _TYPES:
        return path, f"{_TYPES[kind]}. Received {received}"
    return path, f"{found['msg'][0].lower()}{found['msg'][1:]}. Received {received}"


def _suggest(received: Any, context: Mapping[str, Any]) -> str:
    options = [part.strip(" '") for part in context["expected"].replace(" or ", ", ").split(",")]
    close = difflib.get_close_matches(received, options, n=1) if isinstance(received, str) else []
    return f". Did you mean '{close[0]}'?" if close else ""


def _path(loc: tuple[int | str, ...]) -> Path:
    # pydantic inserts the tag of the chosen member of a union after `curve`, and "[key]" after a key
    parts: list[int | str] = []
    for position, part in enumerate(loc):
        is_tag = position > 0 and loc[position - 1] == "curve" and part in ("named", "steps")
        if not is_tag and part != "[key]":
            parts.append(part)
    return tuple(parts)


def _known_keys(path: Path) -> list[str]:
    model: type[BaseModel] = Schedule
    if path[:1] == ("drifts",):
        model = Steps if path[-1] == "curve" else Drift
    elif path[:1] == ("tasks",):
        model = TaskPool
    elif path[:2] == ("knobs", "derived"):
        model = Derived
    elif path[:1] == ("knobs",):
        model = KnobSpec
    keys = [field.alias or name for name, field in model.model_fields.items()]
    return [*keys, "extends", SECTION] if model is Schedule else keys


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


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
            if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
                key = str(key)  # as YAML has it, where keys are the text that was written
                if key in value:
                    self._refuse((*path, key), "stands twice")
            if isinstance(key, str):
                copy[key] = self.copy(item, (*path, key))
            else:
                self._refuse(path, f"a key should be a string. Received {show(key)}")
        return copy

    def _refuse(self, path: Path, text: str) -> None:
        self.findings.append((path, text))

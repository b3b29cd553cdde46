"""State as plain data that JSON holds exactly, and back.

Numbers, texts, lists and dictionaries with keys of text stand as they are; everything else is a dictionary with one
key that begins with `$`. No data can name code that is run: generators are those of NumPy, and objects are tuples with
named fields or data classes of this project, made from their fields.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import enum
import hashlib
import json
import math
import random
import sys
from collections import deque
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from drift_envs.errors import ArgumentError
from drift_envs.knobs import FrozenMapping

_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
_OURS = ("drift_envs.", "webshop_server.")
_KINDS = "biufcSU"
"""The letters of the NumPy types that are plain: numbers, booleans, texts."""


class NotPlainError(ArgumentError):
    """A value is no plain data; names its place and its type."""


def to_plain(value: Any, place: str = "value", *, copies: bool = False) -> Any:
    """The value as data that JSON holds.

    Args:
        value: numbers, texts, arrays, generators, and containers of these.
        place: what the value is called in errors.
        copies: whether what stands in several places may become several objects.

    Raises:
        NotPlainError: if it is something else, or, without `copies`, contains a list, dictionary or array twice, which
            would become two objects.

    Example:
        >>> to_plain({"cell": (1, 2), "speed": float("inf")})
        {'cell': {'$tuple': [1, 2]}, 'speed': {'$float': 'inf'}}
        >>> from_plain(to_plain(np.array([1.5, 2.0], np.float32)))
        array([1.5, 2. ], dtype=float32)
    """
    return _Writer(copies).write(value, place)


def digest(data: Any) -> str:
    """Sixteen hexadecimal digits of plain data, by which a change of it is found.

    Args:
        data: from `to_plain`.

    Raises:
        ArgumentError: if JSON cannot hold it.
    """
    try:
        text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"`data` should be plain data: {error}. Received {_short(data)}") from error
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def from_plain(data: Any, place: str = "value") -> Any:
    """The value that `to_plain` has written.

    Args:
        data: the data.
        place: what it is called in errors.

    Raises:
        ArgumentError: if the data is not what `to_plain` writes.
    """
    if data is None or isinstance(data, (bool, int, float, str)):
        return data
    if isinstance(data, list):
        return [from_plain(one, f"{place}[{position}]") for position, one in enumerate(data)]
    if not isinstance(data, dict):
        raise ArgumentError(f"`{place}` should be plain data. Received {type(data).__name__}")
    kind = next((key for key in data if isinstance(key, str) and key.startswith("$")), None)
    if kind is None:
        return {key: from_plain(one, f"{place}.{key}") for key, one in data.items()}
    try:
        return _READERS[kind](data, place)
    except ArgumentError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, binascii.Error) as error:
        raise ArgumentError(f"`{place}` should be data as it was written: {error}. Received {_short(data)}") from error


def _short(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 80 else f"{text[:77]}..."


class _Writer:
    """Writes one value; remembers the mutable objects in it."""

    def __init__(self, copies: bool) -> None:
        self._copies = copies
        self._seen: dict[int, Any] = {}

    def write(self, value: Any, place: str) -> Any:
        kind = type(value)
        if kind is int and abs(value) >= 1 << 53:
            return {"$integer": str(value)}  # which not every program reads exactly
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, np.generic) and value.dtype.kind in _KINDS:
            return {"$number": _array(np.asarray(value))}
        if isinstance(value, enum.Enum) and kind.__module__.startswith(_OURS):
            return {"$enum": _name(kind), "name": value.name}
        if kind is bytes:
            return {"$bytes": base64.b64encode(value).decode()}
        if kind is tuple:
            return {"$tuple": self._all(value, place)}
        if kind is frozenset:
            return {"$frozenset": self._all(sorted(value, key=repr), place)}
        if kind is FrozenMapping:
            return {"$mapping": self._pairs(value, place)}
        if _is_row(kind):
            return {"$object": _name(kind), "fields": self._all(value, place)}
        if kind is Decimal:
            return {"$decimal": str(value)}
        if dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            return self._write_content(value, value, place)  # a value, which may stand in several places
        return self._write_mutable(value, place)

    def _write_mutable(self, value: Any, place: str) -> Any:
        kind, owner = type(value), value
        while isinstance(owner, np.ndarray) and isinstance(owner.base, np.ndarray):
            owner = owner.base  # views of one array share their numbers
        if id(owner) in self._seen:
            raise NotPlainError(f"`{place}` should stand in one place. Received a {kind.__name__} that stands in two")
        self._seen[id(owner)] = owner  # held, so that its id is no other's
        plain = self._write_content(value, owner, place)
        if self._copies:
            del self._seen[id(owner)]
        return plain

    def _write_content(self, value: Any, owner: Any, place: str) -> Any:
        kind = type(value)
        if kind is list:
            first = type(value[0]) if value else None
            if first is not None and _is_row(first) and len(value) > 1 and all(type(one) is first for one in value):
                columns = [self._all(column, place) for column in zip(*value, strict=True)]
                return {"$rows": _name(first), "columns": columns}
            return self._all(value, place)
        if kind is dict:
            if all(type(key) is str and not key.startswith("$") for key in value):
                return {key: self.write(one, f"{place}.{key}") for key, one in value.items()}
            return {"$dict": self._pairs(value, place)}
        if kind is set:
            return {"$set": self._all(sorted(value, key=repr), place)}
        if kind is deque:
            return {"$deque": self._all(value, place), "most": value.maxlen}
        if kind is np.ndarray and value.dtype.kind in _KINDS and owner.base is None:
            return {"$array": _array(value)}
        if kind is np.random.Generator and type(value.bit_generator).__name__ in _GENERATORS:
            return {"$generator": self.write(value.bit_generator.state, place)}
        if kind is random.Random:
            return {"$random": self.write(value.getstate(), place)}
        if dataclasses.is_dataclass(value) and kind.__module__.startswith(_OURS):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(kind)}
            return {"$object": _name(kind), "fields": self.write(fields, place)}
        raise NotPlainError(f"`{place}` should be plain data. Received {kind.__module__}.{kind.__qualname__}")

    def _all(self, values: Any, place: str) -> list[Any]:
        return [self.write(one, f"{place}[{position}]") for position, one in enumerate(values)]

    def _pairs(self, values: Mapping[Any, Any], place: str) -> list[list[Any]]:
        return [[self.write(key, place), self.write(one, f"{place}[{key!r}]")] for key, one in values.items()]


def _is_row(kind: type) -> bool:
    """Whether objects of a class are tuples with named fields of this project."""
    return kind.__module__.startswith(_OURS) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _array(value: np.ndarray) -> list[Any]:
    """Type, shape and bytes."""
    return [value.dtype.str, list(value.shape), base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()]


def _read_array(data: Any) -> np.ndarray:
    kind, shape, content = data
    dtype = np.dtype(kind)
    if dtype.kind not in _KINDS:
        raise ValueError(f"{kind!r} is no type of numbers or texts")
    return np.frombuffer(base64.b64decode(content, validate=True), dtype).reshape(shape).copy()


def _read_generator(state: dict[str, Any]) -> np.random.Generator:
    name = state["bit_generator"]
    if name not in _GENERATORS:
        raise ValueError(f"there is no generator {name!r}")
    made = np.random.Generator(getattr(np.random, name)(0))
    made.bit_generator.state = state
    return made


def _read_random(state: Any) -> random.Random:
    made = random.Random()
    made.setstate(state)
    return made


def _find(name: str) -> Any:
    """A class of a module of this project that is already loaded."""
    module, _, kind = name.partition(":")
    found = getattr(sys.modules.get(module), kind, None) if module.startswith(_OURS) else None
    if not isinstance(found, type):
        raise ValueError(f"there is no such object {name!r}")
    return found


def _read_enum(data: dict[str, Any], place: str) -> Any:
    kind = _find(data["$enum"])
    if not issubclass(kind, enum.Enum):
        raise ValueError(f"{kind.__name__} has no members")
    return kind[data["name"]]


def _read_object(data: dict[str, Any], place: str) -> Any:
    """A tuple with named fields or a data class."""
    kind, fields = _find(data["$object"]), from_plain(data["fields"], place)
    if _is_row(kind):
        return kind._make(fields)
    if not dataclasses.is_dataclass(kind) or set(fields) != {field.name for field in dataclasses.fields(kind)}:
        raise ValueError(f"{kind.__name__} has other fields")
    made: Any = object.__new__(kind)  # type: ignore[arg-type]
    for field, value in fields.items():
        object.__setattr__(made, field, value)
    return made


def _read_rows(data: dict[str, Any], place: str) -> list[Any]:
    """A list of tuples with the same named fields."""
    kind, columns = _find(data["$rows"]), from_plain(data["columns"], place)
    if not _is_row(kind):
        raise ValueError(f"{kind.__name__} has no fields")
    return [kind._make(row) for row in zip(*columns, strict=True)]


def _of(make: Callable[[Any], Any]) -> Callable[[dict[str, Any], str], Any]:
    """A reader of what stands under the only key."""

    def read(data: dict[str, Any], place: str) -> Any:
        ((_, content),) = data.items()
        return make(from_plain(content, place))

    return read


_READERS: dict[str, Callable[[dict[str, Any], str], Any]] = {
    "$float": _of(float),
    "$integer": _of(int),
    "$decimal": _of(Decimal),
    "$number": _of(lambda content: _read_array(content)[()]),
    "$bytes": _of(lambda content: base64.b64decode(content, validate=True)),
    "$tuple": _of(tuple),
    "$frozenset": _of(frozenset),
    "$mapping": _of(lambda pairs: FrozenMapping(dict(map(tuple, pairs)))),
    "$dict": _of(lambda pairs: dict(map(tuple, pairs))),
    "$set": _of(set),
    "$deque": lambda data, place: deque(from_plain(data["$deque"], place), data["most"]),
    "$array": _of(_read_array),
    "$generator": _of(_read_generator),
    "$random": _of(_read_random),
    "$enum": _read_enum,
    "$object": _read_object,
    "$rows": _read_rows,
}

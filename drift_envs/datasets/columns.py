"""Values of a Gymnasium space as columns of a table, and back.

* `column_names` - the names of a space's columns
* `encode` - values as Arrow arrays
* `decode` - the values of columns, batched
* `load_pyarrow` - PyArrow, imported when it is needed

A `Discrete` space is a column of integers, a `Text` space one of texts; `Box`, `MultiDiscrete` and `MultiBinary` are
lists of fixed size, flattened in C order. A `Dict` space is one column for each of its keys, as `observation.image`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.errors import ArgumentError, MissingDependencyError

EXTRA = "dataset"

_LISTS = (gym.spaces.Box, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)


def load_pyarrow() -> Any:
    """PyArrow with its module `parquet`.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    try:
        import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingDependencyError.of(["pyarrow"], [EXTRA]) from error
    return import_module("pyarrow")


def column_names(name: str, space: gym.Space[Any]) -> list[str]:
    """The names of the columns of a space.

    Args:
        name: of the value, as `observation`.
        space: its space.

    Raises:
        ArgumentError: if the space has no form as columns.

    Example:
        >>> column_names("observation", gym.spaces.Dict({"mission": gym.spaces.Text(9), "image": gym.spaces.Box(0, 1)}))
        ['observation.image', 'observation.mission']
    """
    return [column for column, _ in _leaves(name, space)]


def encode(name: str, space: gym.Space[Any], values: Sequence[Any]) -> dict[str, Any]:
    """Values of a space as Arrow arrays, by the names of their columns.

    Args:
        name: of the value.
        space: its space.
        values: one for each row.

    Raises:
        ArgumentError: if the space has no form as columns, or a value has another shape or type.
        MissingDependencyError: without PyArrow.
    """
    pyarrow = load_pyarrow()
    if isinstance(space, gym.spaces.Dict):
        found: dict[str, Any] = {}
        for key, part in space.spaces.items():
            try:
                inner = [value[key] for value in values]
            except (LookupError, TypeError) as error:
                raise ArgumentError(f"`{name}` should be dictionaries with the key {key!r}. One has none") from error
            found |= encode(f"{name}.{key}", part, inner)
        return found
    _check(name, space)
    try:
        if isinstance(space, gym.spaces.Text):
            return {name: pyarrow.array(values, pyarrow.string())}
        rows = np.asarray(values, space.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"`{name}` should have values of its space, {space}. Received others: {error}") from error
    if rows.size != len(values) * int(np.prod(space.shape or (), dtype=int)):
        raise ArgumentError(f"`{name}` should have values of its space, {space}. Received ones of {rows.shape[1:]}")
    if isinstance(space, gym.spaces.Discrete):
        return {name: pyarrow.array(rows.reshape(-1))}
    size = int(np.prod(space.shape or (), dtype=int))
    return {name: pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.reshape(-1)), size)}


def decode(name: str, space: gym.Space[Any], table: Any) -> Any:
    """The values of a space's columns.

    Args:
        name: of the value.
        space: its space.
        table: a table with these columns.

    Returns:
        An array of shape `(rows, *space.shape)`, a list of texts, or for a `Dict` space a dictionary of these.
    """
    if isinstance(space, gym.spaces.Dict):
        return {key: decode(f"{name}.{key}", part, table) for key, part in space.spaces.items()}
    column = table.column(name).combine_chunks()
    if isinstance(space, gym.spaces.Text):
        return column.to_pylist()
    if isinstance(space, gym.spaces.Discrete):
        return column.to_numpy()
    return column.flatten().to_numpy().reshape(-1, *(space.shape or ()))


def pick(values: Any, rows: slice) -> Any:
    """Some rows of decoded values.

    Example:
        >>> pick({"mission": ["a", "b"], "image": np.zeros((2, 3))}, slice(1, 2))
        {'mission': ['b'], 'image': array([[0., 0., 0.]])}
    """
    if isinstance(values, Mapping):
        return {key: pick(part, rows) for key, part in values.items()}
    return values[rows]


def join(values: Any, last: Any) -> Any:
    """Decoded values and, after them, others of the same space.

    Example:
        >>> join(["a"], ["b"]), join(np.zeros(1), np.ones(1))
        (['a', 'b'], array([0., 1.]))
    """
    if isinstance(values, Mapping):
        return {key: join(part, last[key]) for key, part in values.items()}
    return values + last if isinstance(values, list) else np.concatenate([values, last])


def _leaves(name: str, space: gym.Space[Any]) -> Iterator[tuple[str, gym.Space[Any]]]:
    if isinstance(space, gym.spaces.Dict):
        for key, part in space.spaces.items():
            yield from _leaves(f"{name}.{key}", part)
    else:
        _check(name, space)
        yield name, space


def _check(name: str, space: gym.Space[Any]) -> None:
    if not isinstance(space, (gym.spaces.Discrete, gym.spaces.Text, *_LISTS)):
        raise ArgumentError(
            f"`{name}` should be of a space Discrete, Box, MultiDiscrete, MultiBinary, Text, or a Dict of these. "
            f"Received {space}"
        )

"""The folder of a data set: a manifest, and Parquet files that are there whole or not at all.

A `Discrete` space is a column of integers, a `Text` space one of texts; `Box`, `MultiDiscrete` and `MultiBinary` are
lists of fixed size, flattened in C order. A `Dict` space is one column for each of its keys, as `observation.image`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.errors import ArgumentError, StateError, needs_extra
from drift_envs.utils.error_messages import describe_os_error, show

EXTRA = "dataset"
_LISTS = (gym.spaces.Box, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
MANIFEST = "dataset.json"
STEPS = "steps"


class DatasetFolder:
    """The folder of a data set.

    `dataset.json` has the settings that it was made with. `steps/LIFETIME-PART.parquet` has the steps of some
    consecutive episodes of a lifetime. A file is written under another name and renamed when it is complete.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def begin(self, manifest: Mapping[str, Any]) -> None:
        """Create the folder, or continue one that was begun with the same settings.

        Args:
            manifest: the settings, as plain data.

        Raises:
            ArgumentError: if the folder was begun with other settings, or cannot be written.
        """
        if (self.path / MANIFEST).exists():
            found = self.manifest()
            for key in dict.fromkeys((*found, *manifest)):
                if found.get(key) != manifest.get(key):
                    raise ArgumentError(
                        f"{self.path}: was begun with `{key}` = {show(found.get(key))}; it is continued with the "
                        f"same settings only. Received {show(manifest.get(key))}"
                    )
            return
        try:
            (self.path / STEPS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArgumentError(f"{self.path}: cannot be written: {describe_os_error(error)}") from error
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        self._replace(self.path / MANIFEST, lambda part: part.write_text(text, "utf-8"))

    def manifest(self) -> dict[str, Any]:
        """The settings.

        Raises:
            ArgumentError: if the folder holds no data set.
        """
        path = self.path / MANIFEST
        try:
            content = json.loads(path.read_text("utf-8"))
        except OSError as error:
            raise ArgumentError(f"{path}: cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise ArgumentError(f"{path}: is no manifest of a data set: {error}") from error
        if not isinstance(content, dict) or content.get("version") != 1:
            raise ArgumentError(f"{path}: `version` should be 1. Received {show(content)}")
        return content

    def part(self, lifetime: int, part: int) -> Path:
        """The file of a part, whether it is there or not."""
        return self.path / STEPS / f"{lifetime:05}-{part:05}.parquet"

    def parts(self, lifetime: int) -> list[Path]:
        """The files that a lifetime consists of.

        Raises:
            StateError: if one is missing.
        """
        paths = [self.part(lifetime, part) for part in range(part_count(self.manifest()))]
        missing = sum(not path.exists() for path in paths)
        if missing:
            raise StateError(
                f"{self.path}: {missing} of {len(paths)} parts of lifetime {lifetime} are missing; the command that "
                "began the data set completes it"
            )
        return paths

    def write_part(self, lifetime: int, part: int, columns: Mapping[str, Any]) -> None:
        """Write a part.

        Raises:
            ArgumentError: if the file cannot be written.
        """
        pyarrow = load_pyarrow()
        table = pyarrow.table(dict(columns))
        self._replace(
            self.part(lifetime, part),
            lambda path: pyarrow.parquet.write_table(table, path, compression="zstd"),
        )

    def last_tick(self, lifetime: int, part: int) -> int:
        """The tick of the last step of a part."""
        return int(self._read(self.part(lifetime, part), ["tick"]).column("tick")[-1].as_py())

    def tables(self, lifetime: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """The parts of a lifetime as Arrow tables, in order.

        Args:
            lifetime: its number.
            columns: the columns that are read; by default all.

        Raises:
            StateError: if a part is missing.
            ArgumentError: if one cannot be read.
        """
        for path in self.parts(lifetime):
            yield self._read(path, columns)

    def _read(self, path: Path, columns: Sequence[str] | None) -> Any:
        pyarrow = load_pyarrow()
        try:
            return pyarrow.parquet.read_table(path, columns=columns)
        except (OSError, pyarrow.ArrowException) as error:
            raise ArgumentError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error

    def _replace(self, path: Path, write: Any) -> None:
        """Write a file under another name, and rename it when it is on the disk."""
        part = path.with_name(f"{path.name}.part")
        try:
            write(part)
            with part.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(part, path)
        except OSError as error:
            raise ArgumentError(f"{path}: cannot be written: {error.strerror or error}") from error


def part_count(manifest: Mapping[str, Any]) -> int:
    """The parts of a lifetime.

    Example:
        >>> part_count({"episodes": 2001, "episodes_per_part": 1000})
        3
    """
    return -(-int(manifest["episodes"]) // int(manifest["episodes_per_part"]))


def open_dataset(path: str | os.PathLike[str]) -> DatasetFolder:
    """A data set that is complete.

    Raises:
        ArgumentError: if the folder holds no data set.
        StateError: if parts are missing.
    """
    folder = DatasetFolder(path)
    for lifetime in range(folder.manifest()["lifetimes"]):
        folder.parts(lifetime)
    return folder


def load_pyarrow() -> Any:
    """PyArrow with its module `parquet`.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    with needs_extra("pyarrow", EXTRA):
        import_module("pyarrow.parquet")
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
    size = int(np.prod(space.shape or (), dtype=int))
    if rows.size != len(values) * size:
        raise ArgumentError(f"`{name}` should have values of its space, {space}. Received ones of {rows.shape[1:]}")
    if isinstance(space, gym.spaces.Discrete):
        return {name: pyarrow.array(rows.reshape(-1))}
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

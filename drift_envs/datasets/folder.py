"""The folder of a data set: a manifest, and Parquet files that are there whole or not at all.

* `DatasetFolder` - writes and reads parts
* `open_dataset` - a folder whose parts are all there
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from drift_envs.datasets.columns import load_pyarrow
from drift_envs.errors import ArgumentError, StateError

MANIFEST = "dataset.json"
STEPS = "steps"


class DatasetFolder:
    """The folder of a data set.

    `dataset.json` has the settings that it was made with. `steps/LIFETIME-PART.parquet` has the steps of some
    consecutive episodes of a lifetime. A file is written under another name and renamed when it is complete.

    Args:
        path: the folder.
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
                        f"{self.path}: was begun with `{key}` = {_short(found.get(key))}; it is continued with the "
                        f"same settings only. Received {_short(manifest.get(key))}"
                    )
            return
        try:
            (self.path / STEPS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArgumentError(f"{self.path}: cannot be written: {error.strerror}") from error
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
        except ValueError as error:
            raise ArgumentError(f"{path}: is no manifest of a data set: {error}") from error
        if not isinstance(content, dict) or content.get("version") != 1:
            raise ArgumentError(f"{path}: `version` should be 1. Received {_short(content)}")
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


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."

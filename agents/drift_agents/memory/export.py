"""A memory as a JSON file, and back.

* `export_memory` - writes the name, the options and the snapshot of a memory
* `import_memory` - makes the memory of such a file
* `Export`, `read_export` - the parts of such a file
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.errors import DriftAgentsError, MemoryStateError
from drift_agents.memory.base import Memory, make_memory
from drift_agents.memory.transitions import read_record, reading_snapshot
from drift_agents.types import Record

FORMAT = "drift-agents memory 1"
"""The value of `format` in an export."""


class Export(NamedTuple):
    """The parts of an export.

    Args:
        memory: the memory's name.
        options: its options that JSON can hold.
        snapshot: its content.
    """

    memory: str
    options: dict[str, Any]
    snapshot: Mapping[str, Any]

    def records(self) -> list[Record]:
        """The records, oldest first, without making the memory.

        Raises:
            MemoryStateError: if they are no records.
        """
        with reading_snapshot("a transition store", self.snapshot):
            return [read_record(entry) for entry in _find_transitions(self.snapshot).get("records", ())]


def export_memory(memory: Memory, path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> int:
    """Write a memory to a JSON file: `format`, `memory`, `options` and `snapshot`.

    The file is written beside its place and renamed, so that an interrupted export leaves an earlier one whole.

    Args:
        memory: the memory.
        path: the file; an existing one is replaced.
        options: the options of the memory. Those that JSON cannot hold, as models and matching rules, are left out:
            `import_memory` is given them again.

    Returns:
        The number of records.

    Raises:
        MemoryStateError: if the file cannot be written.
    """
    target = Path(path)
    part = target.with_name(f"{target.name}.part")
    data = {
        "format": FORMAT,
        "memory": memory.name,
        "options": _plain_options(options or {}),
        "snapshot": memory.snapshot(),
    }
    try:
        part.write_text(f"{json.dumps(data)}\n", "ascii")
        os.replace(part, target)
    except OSError as error:
        raise MemoryStateError(f"{target}: cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return sum(1 for _ in memory.records())


def import_memory(path: str | os.PathLike[str], **options: Any) -> Memory:
    """Make the memory of an export.

    Args:
        path: the JSON file.
        options: options that the export lacks, as `matching` or `model`, or that replace its own.

    Raises:
        MemoryStateError: if the file is no export, or the memory refuses it.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = export_memory(make_memory("vanilla", k=3), f"{folder}/memory.json", {"k": 3})
        ...     import_memory(f"{folder}/memory.json").k
        3
    """
    export = read_export(path)
    try:
        memory = make_memory(export.memory, **{**export.options, **options})
        memory.restore(export.snapshot)
    except DriftAgentsError as error:
        raise MemoryStateError(f"{path}: the memory {export.memory!r} cannot be made: {error}") from error
    return memory


def read_export(path: str | os.PathLike[str]) -> Export:
    """The parts of an export; its snapshot is not checked.

    Args:
        path: the JSON file.

    Raises:
        MemoryStateError: if the file cannot be read, or is no export.
    """
    try:
        text = Path(path).read_text("utf-8")
        data = json.loads(text)
    except OSError as error:
        raise MemoryStateError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise MemoryStateError(f"{path}: is no export of a memory: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise MemoryStateError(f"{path}: is no export of a memory, whose `format` is {FORMAT!r}: {text[:80]!r}")
    with reading_snapshot(f"an export in {path}", data):
        name, options, snapshot = data["memory"], dict(data["options"]), data["snapshot"]
        if not isinstance(name, str) or not isinstance(snapshot, Mapping):
            raise TypeError(f"`memory` is {name!r}")
    return Export(name, options, snapshot)


def _find_transitions(snapshot: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a snapshot that is a transition store's: directly, or in that of a managed store or a stream."""
    if isinstance(snapshot.get("transitions"), Mapping):
        found: Mapping[str, Any] = snapshot["transitions"]
        return found
    parts = (snapshot.get(key) for key in ("store", "stream"))
    stores = (_find_transitions(part) for part in parts if isinstance(part, Mapping))
    return next((transitions for transitions in stores if transitions), {})


def _plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that JSON can hold."""
    plain = {}
    for key, value in options.items():
        try:
            plain[key] = json.loads(json.dumps(value))
        except (TypeError, ValueError):
            continue
    return plain

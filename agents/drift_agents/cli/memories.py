"""The commands `drift-agents memory`.

* `show_memory` - what a file holds
* `write_export`, `read_export` - a file as JSON, and back
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_agents.errors import MemoryStateError
from drift_agents.memory.stored.file import MemoryFile
from drift_agents.memory.stored.memory import export_memory, import_memory, read_summary
from drift_agents.types import Record


def show_memory(path: Path, records: int, console: Console) -> None:
    """Print what the file of a memory holds.

    Args:
        path: the file.
        records: how many of the newest records are printed.
        console: where to print.

    Raises:
        MemoryStateError: if it is no memory's file.
    """
    file = MemoryFile(path, read_only=True)
    try:
        found = read_summary(file)
        newest = file.newest(records)
    finally:
        file.close()
    rule = dict(found.matching or {})
    rows = {
        "memory": _describe(found.memory, found.options),
        "matching": _describe(str(rule.pop("name", "none")), rule),
        "records": f"{found.records:,} of {found.states:,} states, {found.verified:,} verified",
        "last written": "never" if found.last is None else f"episode {found.last.episode}, step {found.last.step}",
        "derived": ", ".join(f"{key} {count:,}" for key, count in found.derived.items()) or "nothing",
        "file": f"{found.size / 2**20:.1f} MB, version {found.version}",
    }
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), Text(value))
    console.print(table)
    if newest:
        console.print()
        _print_records(newest, console)


def _describe(name: str, options: object) -> str:
    return f"{name} {json.dumps(options, sort_keys=True, ensure_ascii=False)}" if options else name


def _print_records(records: list[Record], console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("id", "step", "state", "action", "outcome", "score", "end"):
        table.add_column(title, justify="right" if title in ("id", "step", "score") else "left", overflow="fold")
    for record in records:
        outcome = record.outcome
        words = f"{outcome.state} ({record.n} probes)" if record.verified else outcome.state
        cells = [str(record.id), str(record.now.step), record.state, record.action, words]
        table.add_row(*map(Text, map(_printable, [*cells, f"{outcome.score:g}", "yes" if outcome.ended else ""])))
    console.print(table)


def _printable(text: str) -> str:
    """A text that every terminal can show, at most 300 characters long."""
    text = text if len(text) <= 300 else f"{text[:299]}…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def write_export(path: Path, out: Path, force: bool) -> int:
    """Write a memory as JSON; returns the number of its records.

    Args:
        path: the memory's file.
        out: the JSON file.
        force: whether it may be overwritten.

    Raises:
        MemoryStateError: if one of the files cannot be used.
    """
    if out.exists() and not force:
        raise MemoryStateError(f"{out}: exists already; --force overwrites it")
    part = out.with_name(f"{out.name}.part")
    file = MemoryFile(path, read_only=True)
    try:
        with part.open("w", encoding="ascii") as writer:
            count = export_memory(file, writer)
        os.replace(part, out)
    except OSError as error:
        raise MemoryStateError(f"{out}: cannot be written: {error.strerror}") from error
    finally:
        file.close()
        part.unlink(missing_ok=True)
    return count


def read_export(source: Path, path: Path) -> int:
    """Make a memory's file of a JSON file; returns the number of its records.

    Args:
        source: the JSON file.
        path: the memory's file, which should not exist.

    Raises:
        MemoryStateError: if one of the files cannot be used.
    """
    try:
        text = source.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MemoryStateError(f"{source}: cannot be read: {error}") from error
    try:
        return import_memory(text, path)
    except MemoryStateError as error:
        raise MemoryStateError(f"{source}: {error}") from error

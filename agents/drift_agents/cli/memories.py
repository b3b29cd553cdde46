"""The command `drift-agents memory show`: what an exported memory holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_agents.memory.export import read_export
from drift_agents.types import Record


def show_memory(path: Path, records: int, console: Console) -> None:
    """Print what an exported memory holds.

    Args:
        path: the JSON file.
        records: how many of the newest records are printed.
        console: where to print.

    Raises:
        MemoryStateError: if it is no export of a memory.
    """
    export = read_export(path)
    found = export.records()
    states = len({record.state for record in found})
    derived = ", ".join(f"{key} {count:,}" for key, count in _sizes(export.snapshot))
    last = f"episode {found[-1].now.episode}, step {found[-1].now.step}" if found else "never"
    rows = {
        "memory": _describe(export.memory, export.options),
        "records": f"{len(found):,} of {states:,} states, {sum(record.verified for record in found):,} verified",
        "last written": last,
        "derived": derived or "nothing",
        "file": f"{path.stat().st_size / 2**20:.1f} MB",
    }
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), Text(value))
    console.print(table)
    if found and records:
        console.print()
        _print_records(found[-records:], console)


def _sizes(snapshot: Mapping[str, object]) -> Iterator[tuple[str, int]]:
    """The parts of a snapshot that are lists or mappings, but the records, with their number of entries."""
    for key, value in snapshot.items():
        if key in ("store", "stream") and isinstance(value, Mapping):
            yield from _sizes(value)
        elif key != "transitions" and isinstance(value, (list, Mapping)) and value:
            yield key, len(value)


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

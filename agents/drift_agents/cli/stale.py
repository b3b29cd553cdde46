"""The command `drift-agents stale`: how much of a memory or a store the environment contradicts now.

* `Contents`, `read_contents` - what a file or a folder holds
* `print_stale` - the comparison with the environment
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.experiment.environments import make_env, read_schedule
from drift_agents.experiment.evaluator import true_share
from drift_agents.memory.export import read_export
from drift_agents.memory.store import stored_records
from drift_agents.memory.transcript import render_statement
from drift_agents.stores.base import ListedStore, make_store
from drift_agents.types import Record
from drift_envs.errors import DriftEnvsError

KINDS = ("memory", "chroma", "langgraph_sqlite", "mem0")
"""What the command reads: the export of a memory, and stores with a `path`."""


class Contents(NamedTuple):
    """What a file or a folder holds.

    Args:
        kind: one of `KINDS`.
        records: the records, oldest first.
        others: how many entries hold no record.
    """

    kind: str
    records: list[Record]
    others: int


def read_contents(path: Path, kind: str | None = None) -> Contents:
    """What a file or a folder holds.

    Args:
        path: the JSON file of an exported memory, or the file or folder of a store that was opened with `path`.
        kind: one of `KINDS`; found out if not given.

    Raises:
        MemoryStateError: if it is neither, or cannot be read.
        MissingDependencyError: if the store needs a package that is not installed.
    """
    if not path.exists():
        raise MemoryStateError(f"{path}: does not exist")
    kind = kind or _find_kind(path)
    if kind == "memory":
        return Contents(kind, read_export(path).records(), 0)
    with _opened(path, kind) as store:
        records = [record for _, record in stored_records(store)]
        return Contents(kind, records, sum(1 for _ in store.entries()) - len(records))


@contextmanager
def _opened(path: Path, kind: str) -> Iterator[ListedStore]:
    try:
        store = make_store({kind: {"path": str(path)}})
    except ArgumentError as error:
        raise MemoryStateError(f"{path}: cannot be opened as {kind}: {error}") from error
    try:
        yield cast(ListedStore, store)
    finally:
        cast(Any, store).close()


def _find_kind(path: Path) -> str:
    """Which product wrote a file or a folder, by the files and tables that it makes."""
    if path.is_dir():
        names = {"chroma.sqlite3": "chroma", "history.db": "mem0"}
        found = next((kind for name, kind in names.items() if (path / name).is_file()), None)
    else:
        found = "langgraph_sqlite" if _has_vectors(path) else "memory" if _is_json(path) else None
    if found is None:
        raise MemoryStateError(
            f"{path}: is neither an export of a memory nor a store. Known: {', '.join(KINDS)}; see --kind"
        )
    return found


def _has_vectors(path: Path) -> bool:
    """Whether a file is a SQLite file of LangGraph's store with its index of vectors."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
            return bool(file.execute("SELECT 1 FROM sqlite_master WHERE name = 'store_vectors'").fetchone())
    except sqlite3.Error:
        return False


def _is_json(path: Path) -> bool:
    """Whether a file begins as a JSON object."""
    try:
        with path.open("rb") as file:
            return file.read(1) == b"{"
    except OSError:
        return False


def print_stale(
    contents: Contents, schedule: str, seed: int, tick: int | None, phase: str | None, listed: int, console: Console
) -> float:
    """Compare records with an environment, and print what it contradicts.

    Args:
        contents: the records.
        schedule: name or path of the environment's schedule.
        seed: of the environment.
        tick: the tick of the environment; `None` for the first one of `phase`.
        phase: the id of a phase.
        listed: how many of the contradicted records are printed, the newest first.
        console: where to print.

    Returns:
        The share of the records that the environment contradicts, in whole or in part; 0 without records.

    Raises:
        ArgumentError: if the schedule has no such phase, or the environment no oracle.
        MemoryStateError: if a record is not of this environment.
        ExperimentError: if the schedule names no environment.
        ScheduleError: if the schedule cannot be used.
    """
    env = make_env(read_schedule(schedule))
    with closing(env):
        env.reset(seed=seed)
        if env.oracle is None:
            raise ArgumentError(f"`--schedule` should be of an environment with an oracle. Received {schedule!r}")
        tick = env.timeline.first_tick(phase) if tick is None and phase is not None else tick or 0
        shares = [_true_share(env.oracle, record, tick, schedule) for record in contents.records]
        now = env.timeline.phase(tick).id
    false = sum(share == 0.0 for share in shares)
    # Probabilities of an outcome are shares of few responses; their sums are exact but for rounding.
    partly = sum(0.0 < share < 1.0 - 1e-9 for share in shares)
    count = len(shares)
    rows = {
        "store": contents.kind,
        "environment": f"{schedule}, seed {seed}, tick {tick} ({now})",
        "records": f"{count:,}",
        "true": _share(count - false - partly, count),
        "contradicted": _share(false, count),
        "in part": _share(partly, count),
    }
    if contents.others:
        rows["others"] = f"{contents.others:,} entries without a record, not judged"
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), Text(value))
    console.print(table)
    stale = [record for record, share in zip(contents.records, shares, strict=True) if share < 1.0 - 1e-9]
    for record in reversed(stale[-listed:] if listed else []):
        says = render_statement(record.state, record.action, record.outcomes, record.n if record.verified else None)
        console.print(Text(f"\nepisode {record.now.episode}, step {record.now.step}: {says}"), soft_wrap=True)
    return (false + partly) / count if count else 0.0


def _true_share(oracle: Any, record: Record, tick: int, schedule: str) -> float:
    try:
        return true_share(oracle, record, tick)
    except DriftEnvsError as error:
        raise MemoryStateError(f"record {record.id} does not fit the environment of {schedule}: {error}") from error


def _share(part: int, count: int) -> str:
    return f"{part:,}" + (f" ({100 * part / count:.0f} %)" if count else "")

"""The index of a catalogue: the files beside it from which search and goals are read without reading all listings.

It is opened memory-mapped. Where there is none, one process builds it in a folder of its own
(`webshop_server.index_builder`), which then takes its place; others wait.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webshop_server.catalogue import KINDS, Catalogue
from webshop_server.errors import CatalogueError, describe_write_error
from webshop_server.index_builder import GoalTable, RowSource, build, make_mark, read_mark
from webshop_server.progress import Report, ignore_progress, show_progress
from webshop_server.search import Postings, SearchIndex

_SLOW = 20_000
"""A build of this many listings is announced."""

_RATE = 12_000
"""Listings a second that one core indexes, for the announcement."""


@dataclass(frozen=True)
class CatalogueIndex:
    """The index of a catalogue.

    Args:
        catalogue: the catalogue.
        text: its full-text index.
        goals: the goals of each kind, in the order of `KINDS`.
    """

    catalogue: Catalogue
    text: SearchIndex
    goals: tuple[GoalTable, ...]

    def goal_table(self, kind: str) -> GoalTable:
        """Return the goals of one of `KINDS`."""
        return self.goals[KINDS.index(kind)]


def get_index_path(path: Path) -> Path:
    """Return the folder of the index of the catalogue at `path`."""
    return path.with_name(path.name + ".index")


def _get_work_path(path: Path) -> Path:
    """Return the folder in which the index of the catalogue at `path` is built."""
    return path.with_name(path.name + ".index.partial")


def open_index(catalogue: Catalogue) -> CatalogueIndex:
    """Open the index beside a catalogue, memory-mapped; build it first if there is none.

    A build that takes longer than a moment is announced on standard error, with a bar. If the directory
    cannot be written, the index lasts as long as the process.

    Raises:
        CatalogueError: the index beside the catalogue is damaged, or cannot be built.
    """
    place, work = get_index_path(catalogue.path), _get_work_path(catalogue.path)
    mark = make_mark(catalogue.fingerprint, len(catalogue))
    if read_mark(place) == mark:
        return _load(place, catalogue)
    try:
        with _locked(work, len(catalogue)):
            if read_mark(place) == mark:  # another process has built it meanwhile
                shutil.rmtree(work, ignore_errors=True)
            else:
                _build_announced(work, catalogue, mark)
                if place.exists():
                    shutil.rmtree(place)
                os.replace(work, place)
    except OSError:  # the directory cannot be written
        return _build_elsewhere(catalogue, mark)
    return _load(place, catalogue)


def _build_elsewhere(catalogue: Catalogue, mark: dict[str, Any]) -> CatalogueIndex:
    """Build the index in a temporary folder, which is removed at once: mapped files outlive their names."""
    try:
        with tempfile.TemporaryDirectory(prefix="webshop-index-") as folder:
            _build_announced(Path(folder), catalogue, mark)
            return _load(Path(folder), catalogue)
    except OSError as error:
        raise CatalogueError(f"the index of `{catalogue.path}` cannot be built: {error}") from error


def build_index(path: Path, rows: RowSource, fingerprint: str, size: int, report: Report = ignore_progress) -> None:
    """Build the index of a catalogue that is being written, or continue to; `open_index` puts it in its place.

    Args:
        path: the catalogue's path.
        rows: its listings.
        fingerprint: identifies its content.
        size: the number of its listings.
        report: called with the share that is done.

    Raises:
        CatalogueError: the folder cannot be written, or the catalogue is too large.
    """
    work = _get_work_path(path)
    try:
        with _locked(work, size):
            build(work, rows, make_mark(fingerprint, size), report)
    except OSError as error:
        raise CatalogueError(f"`{work}` cannot be written: {describe_write_error(error)}") from error


def _build_announced(work: Path, catalogue: Catalogue, mark: dict[str, Any]) -> None:
    if len(catalogue) < _SLOW or read_mark(work) == mark:
        build(work, catalogue.rows, mark, ignore_progress)
        return
    seconds = len(catalogue) / _RATE
    estimate = f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    print(f"indexing {len(catalogue):,} listings of `{catalogue.path}`, once, about {estimate}", file=sys.stderr)
    with show_progress() as stage:
        build(work, catalogue.rows, mark, stage("indexing"))


@contextmanager
def _locked(work: Path, size: int) -> Iterator[None]:
    """Wait until no other process or thread builds in the folder, which is created.

    Args:
        work: the folder.
        size: the number of listings; a wait for many is announced.
    """
    while True:
        work.mkdir(parents=True, exist_ok=True)
        try:
            file = os.open(work / "lock", os.O_RDWR | os.O_CREAT, 0o644)
            break
        except FileNotFoundError:  # the folder was renamed in between
            continue
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if size >= _SLOW:
                print(f"waiting for another process or thread, which builds `{work}`", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        work.mkdir(exist_ok=True)  # the one that had the lock may have renamed it
        yield
    finally:
        os.close(file)


def _load(place: Path, catalogue: Catalogue) -> CatalogueIndex:
    try:
        vocabulary = {
            term: number
            for number, term in enumerate(json.loads((place / "vocabulary.json").read_text(encoding="utf-8")))
        }
        postings = Postings(*(_map(place / f"{part}.npy") for part in Postings._fields))
        goals = tuple(
            GoalTable(*(_map(place / f"goals_{kind}_{part}.npy") for part in GoalTable._fields)) for kind in KINDS
        )
        if not postings.are_consistent() or (len(vocabulary), len(catalogue)) != (
            len(postings.rarity),
            len(postings.order),
        ):
            raise ValueError("its parts do not fit together")
    except (OSError, EOFError, ValueError, TypeError, RecursionError) as error:
        reason = f"the index `{place}` is damaged: {error}; remove it, and it is made again"
        raise CatalogueError(reason) from error
    return CatalogueIndex(catalogue, SearchIndex(vocabulary, postings), goals)


def _map(path: Path) -> NDArray[Any]:
    # A file without elements cannot be mapped. A plain view of the map is faster than its own class.
    is_empty = path.stat().st_size <= np.lib.format.ARRAY_ALIGN * 2
    return np.asarray(np.load(path, mmap_mode=None if is_empty else "r"))

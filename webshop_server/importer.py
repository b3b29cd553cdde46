"""Catalogues imported from the original WebShop's files, which may be larger than memory: one entry at a time."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from webshop_server.catalogue import CatalogueWriter, closed_on_error
from webshop_server.errors import ImportProblem, check_integer
from webshop_server.index import build_index, open_index
from webshop_server.json_stream import JsonEntry, stream_entries
from webshop_server.product import Product
from webshop_server.progress import Report, Stage, show_progress
from webshop_server.record import parse_product, read_asin

_BATCH = 1000
_MAX_PROBLEMS = 100


@dataclass(frozen=True)
class ImportReport:
    """The result of an import.

    Args:
        path: the catalogue.
        products: the number of listings in it.
        skipped: the number of skipped records: invalid ones, asins longer than ten characters or not usable in a
            URL, duplicates.
        left_out: the number of values left out of the other records, and of entries of the other files, by field or
            file.
        problems: the reasons, with file and position: the first hundred of skipped records and of each field.
    """

    path: Path
    products: int
    skipped: int
    left_out: Mapping[str, int]
    problems: tuple[str, ...]

    def __str__(self) -> str:
        fields = ", ".join(f"{field} {count}" for field, count in sorted(self.left_out.items()))
        values = f", {sum(self.left_out.values())} values left out ({fields})" if fields else ""
        return f"{self.path}: {self.products} products, {self.skipped} records skipped{values}"


class _Tally:
    """Counts what is left out; `""` is the field of a whole record."""

    def __init__(self, counts: Mapping[str, int] | None = None, problems: Iterable[str] = ()) -> None:
        self.counts, self.problems = Counter(counts or {}), list(problems)

    def add(self, field: str, problem: str) -> None:
        self.counts[field] += 1
        if self.counts[field] <= _MAX_PROBLEMS:
            self.problems.append(problem)

    def to_json(self) -> str:
        return json.dumps({"counts": self.counts, "problems": self.problems})

    @classmethod
    def from_json(cls, text: str | None) -> _Tally:
        return cls(**json.loads(text)) if text else cls()


def import_products(
    out: str | os.PathLike[str],
    products: str | os.PathLike[str],
    attributes: str | os.PathLike[str] | None = None,
    human: str | os.PathLike[str] | None = None,
    reviews: str | os.PathLike[str] | None = None,
    *,
    resume: bool = True,
    progress: bool = False,
    lenient: bool = False,
    overwrite: bool = True,
    limit: int | None = None,
) -> ImportReport:
    """Stream the original's files into a catalogue, and build its index.

    Memory use does not depend on the size of the files: the data of other files is looked up in a scratch
    file. An interrupted import is resumed. An invalid record is skipped, a value that is not understood left out; both
    are counted, and reported with their position.

    Args:
        out: the catalogue file.
        products: `items_shuffle.json`.
        attributes: `items_ins_v2.json`.
        human: `items_human_ins.json`.
        reviews: `reviews.json`.
        resume: continue an interrupted import of the same files.
        progress: show a progress bar on standard error.
        lenient: import what a truncated file has.
        overwrite: replace an existing file.
        limit: import only so many records, from the start of the file.

    Raises:
        ImportProblem: a file cannot be read or is truncated, or an import of other files was interrupted.
        CatalogueError: the catalogue cannot be written, or exists.
    """
    sides = {"attributes": attributes, "human": human, "reviews": reviews}
    for path in (products, *sides.values()):
        if path is not None and Path(path).exists() and Path(out).exists() and os.path.samefile(path, out):
            raise ImportProblem(f"`{out}` should not be one of the files to import")
    source = "; ".join(_identity(path) for path in (products, *sides.values()) if path is not None)
    if limit is not None:
        source += f"; the first {check_integer('limit', limit, 1)}"
    with (
        CatalogueWriter(out, resume=resume, overwrite=overwrite) as writer,
        show_progress(is_shown=progress) as stage,
    ):
        noted = writer.note("source")
        if noted is not None and noted != source:
            raise ImportProblem(
                f"`{writer.partial}` is left from an import of other files ({noted}); start again with --fresh"
            )
        writer.add((), {"source": source})
        scratch = Path(f"{out}.scratch")
        try:
            with closing(_open_scratch(scratch, source)) as side:
                files = {kind: Path(path) for kind, path in sides.items() if path is not None}
                tally = _fill(side, files, stage, lenient)
                _load(writer, Path(products), side, stage("importing products"), lenient, limit, tally)
        except sqlite3.Error as error:
            raise ImportProblem(
                f"the scratch file `{scratch}` cannot be used: {error}; remove it and try again"
            ) from error
        if writer.count == 0:
            scratch.unlink(missing_ok=True)
            raise ImportProblem(f"`{products}` should hold at least one product. It holds none that can be used")
        fingerprint = f"imported {source} {writer.count}"
        build_index(writer.path, writer.rows, fingerprint, writer.count, stage("indexing"))
        catalogue = writer.finish(fingerprint)
    open_index(catalogue)
    scratch.unlink(missing_ok=True)  # until here an interrupted call needs it
    skipped = tally.counts.pop("", 0)
    return ImportReport(catalogue.path, len(catalogue), skipped, dict(tally.counts), tuple(tally.problems))


def _identity(path: str | os.PathLike[str]) -> str:
    try:
        state = os.stat(path)
    except OSError as error:
        raise ImportProblem(f"`{path}` cannot be read: {error.strerror}") from error
    return f"{Path(path).name} {state.st_size} {state.st_mtime_ns}"


def _open_scratch(path: Path, source: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    with closed_on_error(database):
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA journal_mode = MEMORY")
        database.execute(
            "CREATE TABLE IF NOT EXISTS side (kind TEXT, asin TEXT, data TEXT, PRIMARY KEY (asin, kind)) WITHOUT ROWID"
        )
        marks = dict(database.execute("SELECT asin, data FROM side WHERE kind = 'mark'"))
        if marks and marks.get("source") != source:
            database.execute("DELETE FROM side")
        database.execute("INSERT OR REPLACE INTO side VALUES ('mark', 'source', ?)", (source,))
    return database


def _refuse_cut(entry: JsonEntry, path: str | os.PathLike[str], lenient: bool) -> None:
    """Refuse a truncated file.

    Raises:
        ImportProblem: the entry is the end of a truncated file, and the import is not lenient.
    """
    if entry.is_cut and not lenient:
        raise ImportProblem(
            f"`{path}` is truncated or damaged: {entry.problem}, at byte {entry.start}; --lenient imports what it has"
        )


def _fill(side: sqlite3.Connection, files: Mapping[str, Path], stage: Stage, lenient: bool) -> _Tally:
    """Copy the other files into the scratch file; returns what was left out of them."""
    tally = _Tally()
    for kind, path in files.items():
        mark = side.execute("SELECT data FROM side WHERE kind = 'mark' AND asin = ?", (kind,)).fetchone()
        own = _Tally.from_json(mark[0] if mark else None)
        if not mark:
            report, size = stage(f"reading {kind}"), path.stat().st_size
            side.execute("BEGIN")
            for entry in stream_entries(path):
                _refuse_cut(entry, path, lenient)
                value = entry.value
                asin = read_asin(entry.key or (value.get("asin") if isinstance(value, dict) else None))
                if asin and not entry.problem:
                    row = (kind, asin, json.dumps(value, ensure_ascii=True))
                    side.execute("INSERT OR REPLACE INTO side VALUES (?, ?, ?)", row)
                else:
                    own.add(kind, _place(path, entry, entry.problem or "an entry should have an asin"))
                if entry.number % _BATCH == 0:
                    report(entry.end / size)
            side.execute("INSERT INTO side VALUES ('mark', ?, ?)", (kind, own.to_json()))
            side.execute("COMMIT")
        tally.counts += own.counts
        tally.problems += own.problems
    return tally


def _place(path: Path, entry: JsonEntry, reason: str) -> str:
    return f"{path.name}: record {entry.number}, byte {entry.start}: {reason}"


def _load(
    writer: CatalogueWriter,
    path: Path,
    side: sqlite3.Connection,
    report: Report,
    lenient: bool,
    limit: int | None,
    tally: _Tally,
) -> None:
    """Add the products to the catalogue, and what is left out of them to a tally."""
    state = json.loads(writer.note("progress") or '{"offset": 0, "number": 0}')
    offset, seen, size = int(state["offset"]), int(state["number"]), path.stat().st_size
    noted = _Tally.from_json(writer.note("left out"))
    batch: list[tuple[Product, JsonEntry]] = []
    entry: JsonEntry

    def flush(end: int) -> None:
        def note(skipped: list[int]) -> Mapping[str, str]:
            for place in skipped:
                product, entry = batch[place]
                noted.add("", _place(path, entry, f"`asin` should occur once. {product.asin} is there already"))
            return {"progress": json.dumps({"offset": end, "number": seen}), "left out": noted.to_json()}

        writer.add([product for product, _ in batch], note)
        batch.clear()
        report(end / size)

    def leave_out(field: str, reason: str) -> None:
        noted.add(field, _place(path, entry, reason))

    # At its end, all records were imported before an interruption.
    for entry in stream_entries(path, offset, seen) if not seen or offset < size else ():
        if limit is not None and entry.number >= limit:
            break
        _refuse_cut(entry, path, lenient)
        try:
            if entry.problem:
                raise ImportProblem(entry.problem)
            asin = read_asin(entry.value.get("asin")) if isinstance(entry.value, dict) else ""
            rows = side.execute("SELECT kind, data FROM side WHERE asin = ? AND kind != 'mark'", (asin,))
            others = {kind: json.loads(data) for kind, data in rows}
            batch.append((parse_product(entry.value, others, leave_out), entry._replace(value=None)))
        except ImportProblem as error:
            leave_out("", str(error))
        seen = entry.number + 1
        if seen % _BATCH == 0:
            flush(entry.end)
    flush(size)
    tally.counts += noted.counts
    tally.problems += noted.problems

"""Catalogues imported from the original WebShop's files, which may be larger than memory: one entry at a time."""

from __future__ import annotations

import codecs
import json
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from webshop_server.catalogue import CatalogueWriter, closed_on_error
from webshop_server.errors import ImportProblem, check_integer
from webshop_server.index import Report, Stage, build_index, open_index, show_progress
from webshop_server.product import Product
from webshop_server.record import parse_product, read_asin

_BATCH = 1000
_MAX_PROBLEMS = 100
CHUNK = 1 << 20

MAX_ENTRY = 1 << 28
"""The maximum length of an entry, in characters; a longer one is reported and skipped."""

_SEARCHED = 8 << 20
"""The end of an invalid entry is searched in so many characters."""

_LONGEST_TOKEN = 16
"""The maximum length of what a decoder needs to see whole besides texts: names such as `-Infinity`, escapes."""

_SPACE = " \t\r\n"
_BETWEEN = _SPACE + ","
_STRUCTURE = re.compile(r'[{}\[\]]|"(?:[^"\\]|\\.)*"', re.DOTALL)
_FIRST_KEY = re.compile(r'\{\s*("(?:[^"\\]|\\.)*")')
_LONGEST_NUMBER = 400


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
            batch.append(
                (parse_product(entry.value, _look_up(side, entry.value), leave_out), entry._replace(value=None))
            )
        except ImportProblem as error:
            leave_out("", str(error))
        seen = entry.number + 1
        if seen % _BATCH == 0:
            flush(entry.end)
    flush(size)
    tally.counts += noted.counts
    tally.problems += noted.problems


def _look_up(side: sqlite3.Connection, record: object) -> dict[str, Any]:
    asin = read_asin(record.get("asin")) if isinstance(record, dict) else ""
    return {
        kind: json.loads(data)
        for kind, data in side.execute("SELECT kind, data FROM side WHERE asin = ?", (asin,))
        if kind != "mark"
    }


class JsonEntry(NamedTuple):
    """One entry.

    Args:
        number: its index, from 0.
        end: the offset after it, in bytes; a later call can start there.
        key: its key in an object, or "".
        value: its value, or `None`.
        problem: why it is invalid, or "".
        start: its offset, in bytes.
        is_cut: whether the outermost list or object is not closed, or closed before the file's end.
    """

    number: int
    end: int
    key: str
    value: object
    problem: str = ""
    start: int = 0
    is_cut: bool = False


def stream_entries(path: str | os.PathLike[str], offset: int = 0, number: int = 0) -> Iterator[JsonEntry]:
    """Iterate over the entries of a file whose outermost value is a list or an object.

    About one chunk of the file is in memory at a time. An invalid entry is yielded with a `problem`, and
    reading continues after it. The last entry of a truncated file is `is_cut`.

    Args:
        path: the file, in UTF-8.
        offset: the `end` of the last entry that was read before; 0 is the start of the file.
        number: the number of the first entry.

    Raises:
        ImportProblem: the file cannot be read, or is neither a list nor an object.
    """
    try:
        with open(path, "rb") as file:
            yield from _Reader(Path(path), file).entries(offset, number)
    except OSError as error:
        raise ImportProblem(f"`{path}` cannot be read: {error.strerror or error}") from error


class _Reader:
    """A window on the file: `text` holds the decoded part; index `at` in it is byte `base` of the file."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file = path, file
        self.decode = json.JSONDecoder().raw_decode
        self.bytes = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.text, self.at, self.base = "", 0, 0
        self.is_over = False
        self.mark: re.Pattern[str] | None = None

    def more(self, size: int = 0) -> bool:
        """Read the next chunk, or more bytes; return whether there were any."""
        if self.is_over:
            return False
        data = self.file.read(max(size, CHUNK))
        self.is_over = not data
        self.text += self.bytes.decode(data, final=self.is_over)
        return not self.is_over

    def consume(self, upto: int) -> None:
        """Move to an index, and drop the text before it from time to time."""
        self.base += len(self.text[self.at : upto].encode("utf-8", "surrogateescape"))
        self.at = upto
        if upto > CHUNK:  # rarely, since it copies the window
            self.text, self.at = self.text[upto:], 0

    def after(self, at: int, between: str) -> int:
        """Return the next index from `at` on whose character is not in `between`, or the end."""
        while True:
            while at < len(self.text) and self.text[at] in between:
                at += 1
            if at < len(self.text) or not self.more():
                return at

    def value(self, at: int) -> tuple[object, int, str]:
        """Return the value that starts at `at`, its end, and the problem with it."""
        while True:
            try:
                value, end = self.decode(self.text, at)
                if end + _LONGEST_NUMBER <= len(self.text) or not self.more():  # a number may continue
                    return value, end, ""
            except (ValueError, RecursionError) as error:
                # As much again each time, so that the work is linear in the length of the entry.
                length = len(self.text) - at
                if not self.is_cut(error) or length > MAX_ENTRY or not self.more(length):
                    return None, self.behind(at), f"{type(error).__name__}: {str(error)[:120]}"

    def is_cut(self, error: Exception) -> bool:
        """Whether more text could mend an error, since it stands at the end of the window."""
        if not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated string") or error.pos + _LONGEST_TOKEN >= len(self.text)

    def behind(self, at: int) -> int:
        """Find the end of an invalid value.

        Entries of one file start with the same key: the next start like that of valid entries is the end.
        Without one it is the value's closing bracket, else the end of the text.
        """
        if self.mark is not None:
            while True:
                found = self.mark.search(self.text, at + 1)
                if found:
                    return found.start(1)
                if len(self.text) - at > _SEARCHED or not self.more():
                    break
        if self.text[at] not in "{[":
            comma = self.text.find(",", at)
            return comma if comma >= 0 else len(self.text)
        depth = 0
        for found in _STRUCTURE.finditer(self.text, at):
            if found[0] in "{[":
                depth += 1
            elif found[0] in "}]":
                depth -= 1
                if depth <= 0:
                    return found.end()
        return len(self.text)

    def learn(self, start: str, value: object, *, is_keyed: bool) -> None:
        """Store the start of a valid entry as a pattern."""
        first = _FIRST_KEY.match(start)
        if self.mark is None and isinstance(value, dict) and first:
            key = re.escape(first[1])
            entry = rf"\{{\s*{key}\s*:"
            self.mark = re.compile(rf',\s*("[^"\\]*"\s*:\s*{entry})' if is_keyed else rf",\s*({entry})")

    def entries(self, offset: int, number: int) -> Iterator[JsonEntry]:
        if self.file.read(3) != b"\xef\xbb\xbf":
            self.file.seek(0)
        else:
            self.base = 3
        self.consume(self.after(0, _SPACE))
        opening = self.text[self.at : self.at + 1]
        if opening not in ("[", "{"):
            raise ImportProblem(f"`{self.path}` should hold a JSON list or object. Its first character is {opening!r}")
        self.consume(self.at + 1)
        if offset:
            self.file.seek(offset)
            self.bytes.reset()
            self.text, self.at, self.base, self.is_over = "", 0, offset, False
        is_keyed = opening == "{"
        while True:
            self.consume(self.after(self.at, _BETWEEN))
            char = self.text[self.at : self.at + 1]
            if char == ("}" if is_keyed else "]"):
                self.consume(self.after(self.at + 1, _SPACE))
                if self.at < len(self.text):
                    problem = "text follows the end of the outermost list or object"
                    yield JsonEntry(number, self.base, "", None, problem, self.base, is_cut=True)
                return
            if not char:
                yield JsonEntry(number, self.base, "", None, "the file ends too early", self.base, is_cut=True)
                return
            start = self.base
            key, value, end, problem = self.entry(self.at, is_keyed=is_keyed)
            self.consume(max(end, self.at + 1))
            yield JsonEntry(number, self.base, key, value, problem, start)
            number += 1

    def entry(self, at: int, *, is_keyed: bool) -> tuple[str, object, int, str]:
        """Return key and value of the entry that starts at `at`, its end, and the problem with it."""
        key = ""
        if is_keyed:
            name, end, problem = self.value(at)
            if problem:
                return "", None, end, problem
            colon = self.after(end, _SPACE)
            if not isinstance(name, str) or self.text[colon : colon + 1] != ":":
                return "", None, self.behind(at), "an entry should begin with a key and a colon"
            key, at = name, self.after(colon + 1, _SPACE)
        value, end, problem = self.value(at)
        if not problem:
            self.learn(self.text[at : at + 200], value, is_keyed=is_keyed)
        return key, value, end, problem

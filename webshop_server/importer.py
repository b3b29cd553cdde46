"""Catalogues imported from the original WebShop's files.

* `import_products` - streams the files into a catalogue; resumes an interrupted import
* `ImportReport` - the numbers of imported and skipped records
* `parse_product` - one record of the original as a `Product`
"""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webshop_server.catalogue import CatalogueWriter, closed_on_error
from webshop_server.errors import ImportProblem
from webshop_server.index import Report, Stage, build_index, open_index, show_progress
from webshop_server.jsonstream import JsonEntry, stream_entries
from webshop_server.product import Instruction, Option, Product, Review, clean

MAX_ASIN = 10
MAX_VALUES = 1000
"""The maximum number of values of an option, and of bullet points and reviews of a listing."""

MAX_TEXT = 20_000
"""The maximum length of a text, in characters; longer ones are cut."""

_BATCH = 1000
_MAX_PROBLEMS = 100
_PHOTO = re.compile(r"https://[\w.-]+/(?!\S*transparent-pixel)[\w./%+-]{1,300}")
_NOT_PRICE = re.compile(r"[^\d.]")


@dataclass(frozen=True)
class ImportReport:
    """The result of an import.

    Args:
        path: the catalogue.
        products: the number of listings in it.
        skipped: the number of skipped records: invalid ones, asins longer than ten characters or not usable in a
            URL, duplicates.
        problems: the first hundred reasons, with file and position.
    """

    path: Path
    products: int
    skipped: int
    problems: tuple[str, ...]


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
) -> ImportReport:
    """Stream the original's files into a catalogue, and build its index.

    Memory use does not depend on the size of the files: the data of other files is looked up in a scratch
    file. An interrupted import is resumed. An invalid record is reported with its position, skipped and
    counted.

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

    Raises:
        ImportProblem: a file cannot be read or is truncated, or an import of other files was interrupted.
        CatalogueError: the catalogue cannot be written, or exists.
    """
    sides = {"attributes": attributes, "human": human, "reviews": reviews}
    for path in (products, *sides.values()):
        if path is not None and Path(path).exists() and Path(out).exists() and os.path.samefile(path, out):
            raise ImportProblem(f"`{out}` should not be one of the files to import")
    source = "; ".join(_identity(path) for path in (products, *sides.values()) if path is not None)
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
        with closing(_open_scratch(scratch, source)) as side:
            _fill(side, {kind: path for kind, path in sides.items() if path is not None}, stage, lenient)
            skipped, problems = _load(writer, Path(products), side, stage("importing products"), lenient)
        if writer.count == 0:
            scratch.unlink(missing_ok=True)
            raise ImportProblem(f"`{products}` should hold at least one product. It holds none that can be used")
        fingerprint = f"imported {source} {writer.count}"
        build_index(writer.path, writer.rows, fingerprint, writer.count, stage("indexing"))
        catalogue = writer.finish(fingerprint)
    open_index(catalogue)
    scratch.unlink(missing_ok=True)  # until here an interrupted call needs it
    return ImportReport(catalogue.path, len(catalogue), skipped, tuple(problems))


def _identity(path: str | os.PathLike[str]) -> str:
    try:
        state = os.stat(path)
    except OSError as error:
        raise ImportProblem(f"`{path}` cannot be read: {error.strerror}") from error
    return f"{Path(path).name} {state.st_size} {state.st_mtime_ns}"


def _open_scratch(path: Path, source: str) -> sqlite3.Connection:
    try:
        database = sqlite3.connect(path, isolation_level=None)
        with closed_on_error(database):
            database.execute("PRAGMA synchronous = OFF")
            database.execute("PRAGMA journal_mode = MEMORY")
            database.execute(
                "CREATE TABLE IF NOT EXISTS side (kind TEXT, asin TEXT, data TEXT, PRIMARY KEY (asin, kind)) "
                "WITHOUT ROWID"
            )
            marks = dict(database.execute("SELECT asin, data FROM side WHERE kind = 'mark'"))
            if marks and marks.get("source") != source:
                database.execute("DELETE FROM side")
            database.execute("INSERT OR REPLACE INTO side VALUES ('mark', 'source', ?)", (source,))
    except sqlite3.Error as error:
        raise ImportProblem(f"the scratch file `{path}` cannot be used: {error}; remove it and try again") from error
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


def _fill(side: sqlite3.Connection, files: Mapping[str, str | os.PathLike[str]], stage: Stage, lenient: bool) -> None:
    for kind, path in files.items():
        if side.execute("SELECT 1 FROM side WHERE kind = 'mark' AND asin = ?", (kind,)).fetchone():
            continue
        report, size = stage(f"reading {kind}"), os.stat(path).st_size
        side.execute("BEGIN")
        for entry in stream_entries(path):
            _refuse_cut(entry, path, lenient)
            value = entry.value
            asin = entry.key or (str(value.get("asin", "")) if isinstance(value, dict) else "")
            if asin and not entry.problem:
                row = (kind, asin, json.dumps(value, ensure_ascii=True))
                side.execute("INSERT OR REPLACE INTO side VALUES (?, ?, ?)", row)
            if entry.number % _BATCH == 0:
                report(entry.end / size)
        side.execute("INSERT INTO side VALUES ('mark', ?, '1')", (kind,))
        side.execute("COMMIT")


def _load(
    writer: CatalogueWriter, path: Path, side: sqlite3.Connection, report: Report, lenient: bool
) -> tuple[int, list[str]]:
    state = json.loads(writer.note("progress") or '{"offset": 0, "number": 0, "skipped": 0, "problems": []}')
    skipped, problems = int(state["skipped"]), list(state["problems"])
    batch: list[Product] = []

    def flush(offset: int, number: int) -> None:
        nonlocal skipped
        mark = {"offset": offset, "number": number, "skipped": 0, "problems": problems}
        # The number of duplicates is known after the insertion; both are stored with the next mark.
        skipped += len(batch) - writer.add(batch)
        writer.add((), {"progress": json.dumps({**mark, "skipped": skipped})})
        batch.clear()
        report(offset / size)

    seen, size = int(state["number"]), os.stat(path).st_size
    if seen and int(state["offset"]) >= size:  # all records were imported before the interruption
        return skipped, problems
    for entry in stream_entries(path, int(state["offset"]), seen):
        _refuse_cut(entry, path, lenient)
        reason = entry.problem
        if not reason:
            try:
                batch.append(parse_product(entry.value, _look_up(side, entry.value)))
            except ImportProblem as error:
                reason = str(error)
        if reason:
            skipped += 1
            if len(problems) < _MAX_PROBLEMS:
                problems.append(f"{path.name}: record {entry.number}, byte {entry.start}: {reason}")
        seen = entry.number + 1
        if seen % _BATCH == 0:
            flush(entry.end, seen)
    flush(size, seen)
    return skipped, problems


def _look_up(side: sqlite3.Connection, record: object) -> dict[str, Any]:
    asin = record.get("asin") if isinstance(record, dict) else None
    if not isinstance(asin, str) or not asin.isprintable():
        return {}
    return {
        kind: json.loads(data)
        for kind, data in side.execute("SELECT kind, data FROM side WHERE asin = ?", (asin,))
        if kind != "mark"
    }


def parse_product(record: object, side: Mapping[str, Any] | None = None) -> Product:
    """Parse one record of the original.

    Args:
        record: an element of `items_shuffle.json`.
        side: its data in the other files: `attributes`, `human`, `reviews`.

    Raises:
        ImportProblem: the record has no valid asin, or no name.

    Example:
        >>> product = parse_product({"asin": "B01", "name": "Mug", "pricing": "$4.50 - $6", "query": "Mugs"})
        >>> product.prices, product.query
        ((4.5, 6.0), 'mugs')
    """
    side = side or {}
    if not isinstance(record, dict):
        raise ImportProblem("a record should be an object")
    asin = clean(record.get("asin") or "")
    if not asin or asin == "nan" or len(asin) > MAX_ASIN:
        raise ImportProblem(f"`asin` should have 1 to {MAX_ASIN} characters. Received {asin[:40]!r}")
    if not asin.isprintable() or set(asin) & set("/\\") or not asin.strip("."):
        raise ImportProblem(f"`asin` should be usable in a URL, without slashes. Received {asin!r}")
    if not isinstance(record.get("name"), str):
        raise ImportProblem(f"`name` of {asin} should be a text. Received {str(record.get('name'))[:40]!r}")
    given = side.get("attributes")
    given = given if isinstance(given, dict) else {}
    synthetic = None
    if given.get("instruction"):
        synthetic = Instruction(_text(given["instruction"]), _texts(given.get("instruction_attributes")))
    reviewed = side.get("reviews")
    reviewed = reviewed if isinstance(reviewed, dict) else {}
    return Product(
        asin=asin,
        title=_text(record["name"]),
        description=_text(record.get("full_description")),
        bullets=_bullets(record.get("small_description")),
        prices=parse_prices(record.get("pricing")),
        rating=_text(reviewed.get("average_rating") or record.get("average_rating"))[:20],
        category=_text(record.get("category")),
        query=_text(record.get("query")).lower(),
        product_category=_text(record.get("product_category")),
        attributes=_texts(given.get("attributes")),
        options=tuple(_options(record.get("customization_options"))),
        reviews=tuple(_reviews(reviewed.get("reviews"))),
        synthetic=synthetic,
        human=tuple(_human(side.get("human"))),
        image=_image(record.get("images")),
    )


def parse_prices(value: object) -> tuple[float, ...]:
    """Parse a price such as `$4.50` or `$4.50 - $6.00`; other values give an empty tuple.

    Example:
        >>> parse_prices("$1,234.5"), parse_prices("from $3"), parse_prices("soon"), parse_prices(None)
        ((1234.5,), (3.0,), (), ())
    """
    prices = []
    for part in value.split("$")[1:] if isinstance(value, str) else ():
        try:
            price = float(_NOT_PRICE.sub("", part))
        except ValueError:
            continue
        if math.isfinite(price) and 0 <= price < 1e7:
            prices.append(price)
    return tuple(sorted(prices[:2]))


def _text(value: object) -> str:
    return clean(value)[:MAX_TEXT] if isinstance(value, (str, int, float)) else ""


def _texts(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else []
    return tuple(text for text in map(_text, items[:MAX_VALUES]) if text)


def _image(value: object) -> str:
    """The first photo; the original's lists end with the address of a transparent pixel."""
    found = (_text(address) for address in value[:MAX_VALUES]) if isinstance(value, list) else ()
    return next((address for address in found if _PHOTO.fullmatch(address)), "")


def _bullets(value: object) -> tuple[str, ...]:
    return _texts(value if isinstance(value, list) else [value])


def _options(value: object) -> Iterator[Option]:
    groups: dict[str, list[str]] = {}
    for name, contents in value.items() if isinstance(value, dict) else ():
        name = _text(name).lower()
        for content in contents[:MAX_VALUES] if isinstance(contents, list) else ():
            given = content.get("value") if isinstance(content, dict) else content
            choice = clean(_text(given).replace("/", " | ")).lower()
            if name and choice:
                groups.setdefault(name, []).append(choice)
    for name, values in groups.items():
        yield Option(name, tuple(values))


def _reviews(value: object) -> Iterator[Review]:
    for item in value[:MAX_VALUES] if isinstance(value, list) else ():
        if isinstance(item, dict):
            stars = item.get("score", item.get("stars"))
            try:
                score = min(max(float(str(stars).split(" ")[0]), 0.0), 5.0)
            except ValueError:
                score = 0.0
            yield Review(_text(item.get("title")), score, _text(item.get("body", item.get("review"))))


def _human(value: object) -> Iterator[Instruction]:
    for item in value[:MAX_VALUES] if isinstance(value, list) else ():
        if isinstance(item, dict):
            options = tuple(text.lower() for text in _texts(item.get("instruction_options")))
            yield Instruction(_text(item.get("instruction")), _texts(item.get("instruction_attributes")), options)

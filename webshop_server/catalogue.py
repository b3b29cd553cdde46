"""The catalogue: one SQLite file with the listings."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from webshop_server.errors import CatalogueError, describe_write_error
from webshop_server.product import Product

FORMAT = "webshop-catalogue"
VERSION = 1
KINDS = ("synthetic", "human", "color_class")
"""The kinds of goals: attributes and one combination of options; written by people; a class of colours."""

MAX_COMBINATIONS = 10_000
"""The maximum number of goals of one listing; some listings have millions of combinations of options."""

Notes = Mapping[str, str]

_CACHED_PRODUCTS = 20_000
_ROWS = f"SELECT id, data, {', '.join(KINDS)} FROM products WHERE id >= ? ORDER BY id LIMIT 2000"  # nosec B608  # constants

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE products (
    id INTEGER PRIMARY KEY, asin TEXT NOT NULL UNIQUE, synthetic INTEGER NOT NULL, human INTEGER NOT NULL,
    color_class INTEGER NOT NULL, data TEXT NOT NULL
);
"""


class Row(NamedTuple):
    """A listing with the numbers of its goals.

    Args:
        product: the listing.
        goals: the number of its goals of each of `KINDS`.
    """

    product: Product
    goals: tuple[int, ...]


class _Reader(sqlite3.Connection):
    """A connection that closes itself when its thread ends."""

    def __del__(self) -> None:
        self.close()


class Catalogue:
    """Read access to a catalogue file.

    It is thread-safe: each thread has its own connection. Pickling stores the path.

    Args:
        path: a file written by `CatalogueWriter`, `generate` or `import_products`.

    Raises:
        CatalogueError: the file is missing, incomplete, damaged, or of another version; in a thread that reads it for
            the first time, also if another file has taken its place.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.fingerprint = ""
        self._local = threading.local()
        self._lock = threading.Lock()
        self._products: OrderedDict[int, Product] = OrderedDict()
        self._ids: dict[str, int] = {}
        if not self.path.is_file():
            partial = get_partial_path(self.path)
            hint = f"; {partial.name} is still being written, or its import was stopped" if partial.exists() else ""
            raise CatalogueError(f"there is no catalogue at `{self.path}`{hint}")
        meta: Mapping[str, str] = dict(self._query("SELECT key, value FROM meta"))
        if meta.get("format") != FORMAT:
            raise CatalogueError(f"`{self.path}` should be a catalogue of this shop. It has no such mark")
        if meta.get("version") != str(VERSION):
            raise CatalogueError(
                f"`{self.path}` should be of version {VERSION}. Received version {meta.get('version')}: "
                "make it again with `python -m webshop_server generate` or `import`"
            )
        if meta.get("complete") != "1":
            raise CatalogueError(f"`{self.path}` should be complete. Its import has not been finished")
        self.meta = meta
        self.charset = frozenset(meta["charset"])
        self.fingerprint = meta["fingerprint"]

    def _connection(self) -> sqlite3.Connection:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            # Immutable: a new catalogue is another file that takes the name, so that reading needs neither a
            # lock nor a file beside it, and works in read-only directories.
            uri = f"file:{quote(str(self.path.resolve()))}?mode=ro&immutable=1"
            connection = sqlite3.connect(uri, uri=True, timeout=5.0, check_same_thread=False, factory=_Reader)
            if self.fingerprint:  # of the file that another thread has opened
                row = connection.execute("SELECT value FROM meta WHERE key = 'fingerprint'").fetchone()
                if row != (self.fingerprint,):
                    raise CatalogueError(f"`{self.path}` should not be replaced while it is in use; open it again")
            self._local.connection = connection
        return connection

    def _query(self, sql: str, arguments: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection().execute(sql, arguments).fetchall()
        except sqlite3.Error as error:
            raise self._damaged(f"`{self.path}` cannot be read as a catalogue: {error}") from error

    def _damaged(self, reason: str) -> CatalogueError:
        is_cached = self.path.resolve().parent == get_cache_dir().resolve()
        return CatalogueError(f"{reason}; delete it, and it is made again" if is_cached else reason)

    def __len__(self) -> int:
        return int(self.meta["products"])

    def __repr__(self) -> str:
        return f"Catalogue({str(self.path)!r})"

    def __reduce__(self) -> tuple[type[Catalogue], tuple[str]]:
        return type(self), (str(self.path),)

    def __deepcopy__(self, memo: dict[int, object]) -> Catalogue:
        return self  # read-only, hence shared

    def id_of(self, asin: str) -> int | None:
        """Return the number of a listing (from 0, in the file's order), or `None`.

        Args:
            asin: the asin; case is ignored if no listing matches exactly.
        """
        found = self._ids.get(asin)
        if found is None:
            if len(asin) > 64 or not asin.isprintable():  # SQLite cannot bind lone surrogates
                return None
            query = "SELECT id FROM products WHERE asin IN (?, ?) ORDER BY asin = ? DESC"
            rows = self._query(query, (asin, asin.upper(), asin))
            if not rows:
                return None
            found = self._ids[asin] = int(rows[0][0])
            if len(self._ids) > 4 * _CACHED_PRODUCTS:
                self._ids.clear()
        return found

    def product(self, asin: str) -> Product | None:
        """Return the listing of an asin, or `None`."""
        number = self.id_of(asin)
        return None if number is None else self.at(number)

    def at(self, number: int) -> Product:
        """Return a listing by its number, from 0.

        Raises:
            CatalogueError: no listing has this number.
        """
        return self.many((number,))[0]

    def many(self, numbers: Iterable[int]) -> list[Product]:
        """Return listings by their numbers, in the same order.

        Raises:
            CatalogueError: no listing has one of the numbers.
        """
        wanted = [int(number) for number in numbers]
        products = self._products
        result: list[Product | None] = [products.get(number) for number in wanted]
        missing = [number for number, product in zip(wanted, result, strict=True) if product is None]
        if missing:
            marks = ",".join("?" * len(missing))
            query = f"SELECT id, data FROM products WHERE id IN ({marks})"  # nosec B608  # question marks
            rows = self._query(query, tuple(missing))
            loaded = {int(number): self._parse(number, data) for number, data in rows}
            for number in missing:
                if number not in loaded:
                    raise self._damaged(f"`{self.path}` should have a listing {number}. It has {len(self)} listings")
            with self._lock:
                products.update(loaded)
                while len(products) > _CACHED_PRODUCTS:
                    products.popitem(last=False)
            result = [product or loaded[number] for number, product in zip(wanted, result, strict=True)]
        return result  # type: ignore[return-value]

    def _parse(self, number: int, data: str) -> Product:
        try:
            return Product.from_json(data)
        except (ValueError, TypeError) as error:
            raise self._damaged(f"`{self.path}`: listing {number} is damaged: {error}") from error

    def __iter__(self) -> Iterator[Product]:
        """Iterate over all listings in the file's order, without caching them."""
        return (row.product for row in self.rows())

    def rows(self, first: int = 0) -> Iterator[Row]:
        """Iterate over the listings from a number on, with the numbers of their goals, without caching them."""
        while rows := self._query(_ROWS, (first,)):
            for number, data, *goals in rows:
                yield Row(self._parse(number, data), tuple(goals))
            first = rows[-1][0] + 1


def get_cache_dir() -> Path:
    """Return the directory of generated and imported catalogues: `WEBSHOP_CACHE`, or the user's cache directory."""
    named = os.environ.get("WEBSHOP_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "webshop-server"


def get_partial_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of the incomplete file of the catalogue at `path`."""
    return Path(f"{path}.partial")


@contextmanager
def closed_on_error(database: sqlite3.Connection) -> Iterator[None]:
    """Close a connection if the block raises."""
    try:
        yield
    except BaseException:
        database.close()
        raise


class CatalogueWriter:
    """Writes a catalogue file under a temporary name, and renames it when it is complete.

    Args:
        path: the file; it appears when it is complete.
        resume: continue the file of an interrupted writer.
        overwrite: replace an existing file.

    Raises:
        CatalogueError: the file cannot be written, or exists, or another process is writing it.
    """

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False, overwrite: bool = True) -> None:
        self.path = Path(path)
        self.partial = get_partial_path(path)
        self._can_overwrite = overwrite
        if self.path.is_dir():
            raise CatalogueError(f"`{self.path}` cannot be written: it is a directory")
        self._check_overwrite()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = self._lock()
            if not resume:  # locked: start with an empty file, so that equal content gives equal bytes
                self._db.close()
                self.partial.unlink()
                self._db = self._lock()
            with closed_on_error(self._db):
                if not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    for statement in _SCHEMA.strip().split(";\n"):
                        self._db.execute(statement)
                self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            reason = "another process is writing it" if "locked" in str(error) else str(error)
            raise CatalogueError(f"`{self.partial}` cannot be written: {reason}") from error
        except sqlite3.Error as error:
            raise CatalogueError(f"`{self.partial}` cannot be written: {error}") from error
        except OSError as error:
            raise CatalogueError(f"`{self.partial}` cannot be written: {describe_write_error(error)}") from error
        self.count = int(self._db.execute("SELECT coalesce(max(id) + 1, 0) FROM products").fetchone()[0])
        self._charset = set(self.note("charset") or "")

    def _check_overwrite(self) -> None:
        if not self._can_overwrite and os.path.lexists(self.path):
            raise CatalogueError(f"`{self.path}` exists; --force replaces it")

    def _lock(self) -> sqlite3.Connection:
        # Autocommit: this class begins transactions explicitly.
        database = sqlite3.connect(self.partial, timeout=0.2, isolation_level=None)
        with closed_on_error(database):
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA synchronous = OFF")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("BEGIN EXCLUSIVE")
        return database

    def note(self, key: str) -> str | None:
        """Return the note under `key`, or `None`."""
        with self._writing():
            row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def add(self, products: Iterable[Product], notes: Notes | Callable[[list[int]], Notes] | None = None) -> None:
        """Add listings and notes in one transaction; a listing with an existing asin is skipped.

        Args:
            products: the listings.
            notes: the notes, or a function that returns them for the places of the skipped listings, from 0.

        Raises:
            CatalogueError: the file cannot be written, as on a full disk.
        """
        skipped: list[int] = []
        with self._writing():
            self._db.execute("BEGIN")
            for place, product in enumerate(products):
                row = (
                    self.count,
                    product.asin,
                    min(product.combinations, MAX_COMBINATIONS) if product.has_synthetic else 0,
                    sum(1 for instruction in product.human if instruction.attributes),
                    len(product.by_class),
                    product.to_json(),
                )
                done = self._db.execute("INSERT OR IGNORE INTO products VALUES (?, ?, ?, ?, ?, ?)", row).rowcount
                self.count += done
                if done:
                    for text in product.shown_texts():
                        self._charset.update(text)
                else:
                    skipped.append(place)
            given = notes(skipped) if callable(notes) else notes or {}
            pairs = [("charset", "".join(sorted(self._charset))), *given.items()]
            self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", pairs)
            self._db.execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise CatalogueError(f"`{self.partial}` cannot be written: {error}") from error

    def rows(self, first: int = 0) -> Iterator[Row]:
        """Iterate over the listings from a number on, with the numbers of their goals."""
        with self._writing():
            while rows := self._db.execute(_ROWS, (first,)).fetchall():
                for _, data, *goals in rows:
                    yield Row(Product.from_json(data), tuple(goals))
                first = rows[-1][0] + 1

    def finish(self, fingerprint: str) -> Catalogue:
        """Mark the file as complete, rename it, and open it.

        Args:
            fingerprint: identifies the content; the index stores it too.

        Raises:
            CatalogueError: the file cannot be written or renamed.
        """
        marks = {
            "format": FORMAT,
            "version": str(VERSION),
            "products": str(self.count),
            "fingerprint": fingerprint,
            "complete": "1",
        }
        self.add((), marks)
        with self._writing():  # which merges the write-ahead log into the file; closing ignores a full disk
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.close()
        self._check_overwrite()  # it may have been made in the meantime
        try:
            os.replace(self.partial, self.path)
        except OSError as error:
            raise CatalogueError(f"`{self.path}` cannot be written: {error}") from error
        return Catalogue(self.path)

    def close(self) -> None:
        """Close the file; an incomplete file can be resumed."""
        self._db.close()

    def __enter__(self) -> CatalogueWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""The sessions of the server in a SQLite file, which several processes share.

The file is in WAL mode. A response is sent after its session is written, so that a killed process loses nothing that it
has confirmed; an order is also written through to the disk. A session is locked by one byte of `FILE.lock` while a
process uses it.

| table | content |
|---|---|
| `meta` | catalogue, goals and seed that the sessions belong to; settings; number of drawn goals |
| `sessions` | each session's state as JSON, with its client, the time of its last use and a version |
| `orders` | every purchase: session, goal, listing, options and score; kept when the session is deleted |
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from webshop_server.errors import ArgumentError, StateFileError
from webshop_server.sessions import SessionStore, session_over
from webshop_server.settings import Settings
from webshop_server.shop import Session, Shop
from webshop_server.urls import PageKind

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (name TEXT PRIMARY KEY, client TEXT NOT NULL, used REAL NOT NULL,
    is_opened INTEGER NOT NULL, version INTEGER NOT NULL, data TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS sessions_by_use ON sessions (is_opened, used);
CREATE INDEX IF NOT EXISTS sessions_by_client ON sessions (client, is_opened, used);
CREATE TABLE IF NOT EXISTS orders (session TEXT PRIMARY KEY, goal INTEGER NOT NULL, asin TEXT NOT NULL,
    options TEXT NOT NULL, reward REAL NOT NULL, score TEXT NOT NULL);
"""

_VERSION = 1

_LOCKS = 1024
"""Sessions share this number of locks."""

# Of all stores of this process, since locks on a file do not separate threads.
_THREAD_LOCKS = tuple(threading.Lock() for _ in range(_LOCKS))

_CACHED = 1024
_BUSY_SECONDS = 30.0
_RETRY_SECONDS = 0.001


class SharedSessionStore(SessionStore):
    """Sessions by name in a SQLite file; the last ones are also kept in memory.

    Args:
        shop: the shop of all sessions.
        path: the file; created if missing.
        limit: the maximum number of sessions.
        client_limit: the maximum number of sessions of one client, which replace each other.
        idle_seconds: sessions that are idle for longer are deleted.
        seed: seeds the goals of new sessions; names are always random.
        clock: the time in seconds, equal for all processes and after a restart.

    Raises:
        StateFileError: the file cannot be used.
        ArgumentError: the file belongs to another catalogue, kind of goals or seed.

    Example:
        >>> import tempfile
        >>> from webshop_server.inventory import Inventory
        >>> shop = Shop(Inventory.default(products=100))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = SharedSessionStore(shop, Path(folder) / "state.sqlite")
        ...     name = store.create(goal=3)
        ...     store.close()
        ...     store = SharedSessionStore(shop, Path(folder) / "state.sqlite")
        ...     with store.use(name) as session:
        ...         print(session.goal_index)
        ...     store.close()
        3
    """

    def __init__(
        self,
        shop: Shop,
        path: str | os.PathLike[str],
        *,
        limit: int = 10_000,
        client_limit: int = 1000,
        idle_seconds: float = 3600.0,
        seed: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(
            shop, limit=limit, client_limit=client_limit, idle_seconds=idle_seconds, seed=seed, clock=clock
        )
        self.path = Path(path)
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._cache: OrderedDict[str, tuple[int, Session]] = OrderedDict()
        self._stored_settings = ""
        self._lock_file: int | None = None
        self._prepare()

    def _prepare(self) -> None:
        inventory = self.shop.inventory
        identity = {
            "version": _VERSION,
            "catalogue": inventory.catalogue.fingerprint,
            "goals": self.shop.goal_kind,
            "seed": [inventory.seed, self._seed],
        }
        with self._transaction() as database:
            for statement in _SCHEMA.strip().split(";\n"):
                database.execute(statement)
            database.execute("INSERT OR IGNORE INTO meta VALUES ('identity', ?)", (json.dumps(identity),))
            found = json.loads(self._read_meta(database, "identity") or "{}")
        for name, value in identity.items():
            if found.get(name) != value:
                raise ArgumentError(
                    f"`{self.path}` should hold sessions of the {name} {value}. They are of {found.get(name)}"
                )
        self.read_settings()

    def close(self) -> None:
        """Close the file; the next use opens it again, also in a forked process."""
        with self._lock:
            for database in self._connections:
                database.close()
            self._connections.clear()
            self._local = threading.local()
            if self._lock_file is not None:
                os.close(self._lock_file)
                self._lock_file = None

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        try:
            database: sqlite3.Connection | None = getattr(self._local, "database", None)
            if database is None:
                # Autocommit: this class begins transactions explicitly. `close` may run in another thread.
                database = sqlite3.connect(
                    self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
                )
                with self._lock:
                    self._connections.append(database)
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = NORMAL")
                self._local.database = database
            yield database
        except sqlite3.Error as error:
            raise StateFileError(f"`{self.path}` cannot be used for sessions: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._database() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")  # fails where the disk is full
            except BaseException:
                if database.in_transaction:  # SQLite may have rolled back itself
                    database.execute("ROLLBACK")
                raise

    @staticmethod
    def _read_meta(database: sqlite3.Connection, key: str) -> str | None:
        row = database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Lock a session against other threads and processes."""
        number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big") % _LOCKS
        with _THREAD_LOCKS[number]:
            release = self._lock_byte(number)
            try:
                yield
            finally:
                release()

    def _lock_byte(self, number: int) -> Callable[[], None]:
        try:
            import fcntl
        except ImportError:  # Windows, where one process serves
            return lambda: None
        with self._lock:
            if self._lock_file is None:
                try:
                    self._lock_file = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
                except OSError as error:
                    raise StateFileError(f"`{self.path}.lock` cannot be opened: {error.strerror}") from error
            file = self._lock_file
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX, 1, number)
                break
            except OSError as error:
                # Such locks belong to processes: the kernel reports a cycle where different threads of two processes
                # hold and wait. A thread holds one lock at a time, so that there is none, and the lock becomes free.
                if error.errno != errno.EDEADLK:
                    raise StateFileError(f"`{self.path}.lock` cannot be locked: {error.strerror}") from error
                time.sleep(_RETRY_SECONDS)
        return lambda: fcntl.lockf(file, fcntl.LOCK_UN, 1, number)

    def __len__(self) -> int:
        with self._database() as database:
            return int(database.execute("SELECT count(*) FROM sessions").fetchone()[0])

    def __contains__(self, name: str) -> bool:
        with self._database() as database:
            sql, values = "SELECT 1 FROM sessions WHERE name = ? AND used >= ?", (name, self._clock() - self._idle)
            return database.execute(sql, values).fetchone() is not None

    def read_settings(self) -> Settings:
        """Return the settings of all sessions, as any process has set them."""
        with self._database() as database:
            text = self._read_meta(database, "settings")
        with self._lock:
            if text is not None and text != self._stored_settings:
                self.shop.settings = Settings(**json.loads(text))
                self._stored_settings = text
        return self.shop.settings

    def configure(self, /, **changes: object) -> Settings:
        """Change settings of all sessions in all processes, from their next page on.

        Raises:
            SettingsError: a name is unknown or a value breaks its rule; nothing is changed then.
        """
        with self._transaction() as database:
            settings = self.read_settings().replace(**changes)
            text = json.dumps(settings.to_dict())
            database.execute("INSERT OR REPLACE INTO meta VALUES ('settings', ?)", (text,))
        return self.read_settings()

    def _add(self, name: str, goal: int | None, client: str) -> bool:
        with self._transaction() as database:
            self.read_settings()
            database.execute(
                "DELETE FROM sessions WHERE is_opened IN (0, 1) AND used < ?", (self._clock() - self._idle,)
            )
            if database.execute("SELECT 1 FROM sessions WHERE name = ?", (name,)).fetchone():
                return False
            session = self._start(name, goal)
            if client:
                self._delete_surplus(database, "WHERE client = ?", (client,), self._client_limit)
            self._delete_surplus(database, "", (), self._limit)
            row = (name, client, self._clock(), json.dumps(session.to_dict()))
            database.execute("INSERT INTO sessions VALUES (?, ?, ?, 0, 0, ?)", row)
        return True

    def _count_draw(self) -> int:
        with self._database() as database:  # in the transaction of `_add`
            count = int(self._read_meta(database, "drawn") or 0)
            database.execute("INSERT OR REPLACE INTO meta VALUES ('drawn', ?)", (str(count + 1),))
        return count

    @staticmethod
    def _delete_surplus(database: sqlite3.Connection, where: str, values: tuple[str, ...], limit: int) -> None:
        # `where` is a constant of this module, and its values are bound
        counts = f"SELECT count(*), count(*) - coalesce(sum(is_opened), 0) FROM sessions {where}"  # nosec B608
        count, unopened = database.execute(counts, values).fetchone()
        if count >= limit:
            order = "is_opened, used" if 2 * unopened > count else "used"
            chosen = f"SELECT name FROM sessions {where} ORDER BY {order} LIMIT 1"  # nosec B608
            database.execute(f"DELETE FROM sessions WHERE name = ({chosen})", values)  # nosec B608

    @contextmanager
    def use(self, name: str) -> Iterator[Session]:
        """Lock a session for exclusive use, and write it at the end unless the block raises.

        Raises:
            SessionError: there is no session of this name.
        """
        if not name.isprintable():  # SQLite cannot bind lone surrogates
            raise session_over(name)
        with self._locked(name):
            self.read_settings()
            with self._database() as database:
                sql = "SELECT version, is_opened, data FROM sessions WHERE name = ? AND used >= ?"
                row = database.execute(sql, (name, self._clock() - self._idle)).fetchone()
            if row is None:
                raise session_over(name)
            version, is_opened, data = row
            session = self._load(name, version, data)
            was_done = session.is_done
            yield session
            self._write(session, version, is_opened, not was_done and session.is_done)

    def _load(self, name: str, version: int, data: str) -> Session:
        with self._lock:  # `_write` puts it back, so that a session that is not written is not kept
            cached = self._cache.pop(name, None)
        if cached is not None and cached[0] == version:
            return cached[1]
        return Session.restore(self.shop, json.loads(data), name)

    def _write(self, session: Session, version: int, is_opened: bool, is_new_order: bool) -> None:
        name = session.session_id
        is_opened = is_opened or session.page.url.kind is not PageKind.START
        data = json.dumps(session.to_dict())
        with self._database() as database:
            if is_new_order:
                database.execute("PRAGMA synchronous = FULL")
        with self._transaction() as database:
            sql = "UPDATE sessions SET used = ?, is_opened = ?, version = ?, data = ? WHERE name = ? AND version = ?"
            row = (self._clock(), is_opened, version + 1, data, name, version)
            if not database.execute(sql, row).rowcount:
                raise session_over(name)  # deleted in the meantime
            if is_new_order and session.bought is not None and session.score is not None:
                bought, score = session.bought, session.score
                order: tuple[Any, ...] = (name, session.goal_index, bought.asin, json.dumps(dict(bought.options)))
                order = (*order, score.reward, json.dumps(score.to_dict()))
                database.execute("INSERT OR REPLACE INTO orders VALUES (?, ?, ?, ?, ?, ?)", order)
        if is_new_order:
            with self._database() as database:
                database.execute("PRAGMA synchronous = NORMAL")
        with self._lock:
            self._cache[name] = (version + 1, session)
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)

    def remove(self, name: str) -> None:
        """Delete a session, if it exists; its order stays."""
        with self._transaction() as database:
            database.execute("DELETE FROM sessions WHERE name = ?", (name,))
        with self._lock:
            self._cache.pop(name, None)

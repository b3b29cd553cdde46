"""The sessions of the server: by name, each with a lock, in memory; and their log.

`webshop_server.shared_sessions` keeps them in a file instead, which several processes share.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import secrets
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from webshop_server.errors import (
    ArgumentError,
    SessionError,
    StateFileError,
    check_integer,
    describe_write_error,
    refuse,
)
from webshop_server.goals import draw_uniform
from webshop_server.settings import Settings
from webshop_server.shop import Session, Shop
from webshop_server.urls import PageKind, parse_session_goal

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

RESERVED = frozenset(("ad", "admin", "confirm", "done", "favicon", "image", "item_page", "item_sub_page", "static"))
"""First segments of paths that cannot be session names."""


def session_over(name: str) -> SessionError:
    """Return the error of a session that does not exist."""
    return SessionError(
        f"there is no session {name[:80]!r} any more; it was idle for too long, or the shop was restarted"
    )


def check_name(name: str) -> str:
    """Return the name of a session.

    Raises:
        ArgumentError: the name is not allowed.
    """
    if not _NAME.fullmatch(name) or name in RESERVED:
        raise ArgumentError(f"a session's name should match {_NAME.pattern}. Received {name[:80]!r}")
    return name


@dataclass(slots=True)
class _Entry:
    """A session in a store.

    Args:
        session: the session.
        client: the client that started it, or "" for the operator.
        used: the time of its last use, in seconds.
        is_opened: whether the session has left its first page.
        lock: held while the session is in use.
    """

    session: Session
    client: str
    used: float
    is_opened: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class SessionStore:
    """Sessions by name.

    At a limit the least recently used session is deleted; where more than half of them never left their first page,
    the least recently used one of these, so that a flood of new sessions does not displace the others.

    Args:
        shop: the shop of all sessions.
        limit: the maximum number of sessions.
        client_limit: the maximum number of sessions of one client, which replace each other.
        idle_seconds: sessions that are idle for longer are deleted.
        seed: seeds the goals of new sessions; names are always random.
        clock: a monotonic clock, in seconds.

    Example:
        >>> from webshop_server.inventory import Inventory
        >>> store = SessionStore(Shop(Inventory.default(products=100)))
        >>> name = store.create(goal=3)
        >>> with store.use(name) as session:
        ...     session.goal_index
        3
    """

    def __init__(
        self,
        shop: Shop,
        *,
        limit: int = 10_000,
        client_limit: int = 1000,
        idle_seconds: float = 3600.0,
        seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.shop = shop
        self._limit = check_integer("limit", limit, 1)
        self._client_limit = check_integer("client_limit", client_limit, 1)
        self._idle = idle_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # by last use
        self._clients: dict[str, dict[str, None]] = {}  # the names of each client's sessions
        self._seed = seed
        self._draws = itertools.count()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: str) -> bool:
        entry = self._entries.get(name)
        return entry is not None and entry.used >= self._clock() - self._idle

    def configure(self, /, **changes: object) -> Settings:
        """Change settings of all sessions, from their next page on.

        Raises:
            SettingsError: a name is unknown or a value breaks its rule; nothing is changed then.
        """
        return self.shop.configure(**changes)

    def read_settings(self) -> Settings:
        """Return the settings of all sessions."""
        return self.shop.settings

    def close(self) -> None:
        """Free all resources."""

    def create(
        self, *, goal: int | None = None, name: str | None = None, client: str = "", is_new: bool = False
    ) -> str:
        """Start a session; an existing one of this name is left unchanged.

        Args:
            goal: the goal's number; by default drawn by the goals' weights.
            name: the session's name; by default random.
            client: the client's address; "" for the operator, who has no limit of their own.
            is_new: whether a name that exists is refused.

        Returns:
            The session's name.

        Raises:
            ArgumentError: the name is not allowed, or no goal has this number.
        """
        name = secrets.token_urlsafe(12) if name is None else check_name(name)
        if not self._add(name, goal, client) and is_new:
            raise refuse("name", "that of no session, which can be deleted first", name, ArgumentError)
        return name

    def _add(self, name: str, goal: int | None, client: str) -> bool:
        """Start a session unless one of this name exists; return whether it was started."""
        with self._lock:
            self._evict_idle()
            if name in self._entries:
                return False
            session = self._start(name, goal)
            self._evict(client)
            self._entries[name] = _Entry(session, client, self._clock())
            self._clients.setdefault(client, {})[name] = None
        return True

    def _start(self, name: str, goal: int | None) -> Session:
        """Return a new session, with the goal given or named, or a drawn one."""
        index = goal if goal is not None else parse_session_goal(name)
        if index is None:
            index = self.shop.goals.pick(draw_uniform(self._seed, "session", self._count_draw()))
        return self.shop.start(index, name)

    def _count_draw(self) -> int:
        """Return the number of goals drawn before."""
        return next(self._draws)

    @contextmanager
    def use(self, name: str) -> Iterator[Session]:
        """Lock a session for exclusive use.

        Raises:
            SessionError: there is no session of this name.
        """
        with self._lock:
            self._evict_idle()
            entry = self._entries.get(name)
            if entry is None:
                raise session_over(name)
            entry.used = self._clock()
            self._entries.move_to_end(name)
        with entry.lock:
            yield entry.session
            entry.is_opened = entry.is_opened or entry.session.page.url.kind is not PageKind.START

    def remove(self, name: str) -> None:
        """Delete a session, if it exists."""
        with self._lock:
            self._delete(name)

    def _delete(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        if entry is not None:
            names = self._clients[entry.client]
            del names[name]
            if not names:
                del self._clients[entry.client]

    def _evict_idle(self) -> None:
        oldest = self._clock() - self._idle
        while self._entries:
            name, entry = next(iter(self._entries.items()))
            if entry.used >= oldest:
                break
            self._delete(name)

    def _evict(self, client: str) -> None:
        """Make room for a session of a client."""
        own = self._clients.get(client, {})
        if client and len(own) >= self._client_limit:
            self._delete(self._choose_surplus(own))
        if len(self._entries) >= self._limit:
            self._delete(self._choose_surplus(self._entries))

    def _choose_surplus(self, names: Collection[str]) -> str:
        """Return the session to delete."""
        entries = self._entries
        unopened = [name for name in names if not entries[name].is_opened]
        return min(unopened if 2 * len(unopened) > len(names) else names, key=lambda name: entries[name].used)


class SessionLog:
    """Log of sessions: `<directory>/<session>.jsonl` with one object `{page, url, goal, content}` a page.

    The last line of a purchase adds `reward` and `reward_info`, as in the original.

    Args:
        directory: the directory of the files; created if missing.

    Raises:
        ArgumentError: the directory cannot be created or written.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.directory).close()
        except OSError as error:
            raise ArgumentError(
                f"`log` should be a directory that can be written: {describe_write_error(error)}"
            ) from error

    def write(self, session: Session, address: str) -> None:
        """Append the current page of a session.

        Args:
            session: the session; its name is valid as a file name.
            address: the full URL of the page.

        Raises:
            StateFileError: the file cannot be written, as on a full disk.
        """
        url = session.page.url
        line: dict[str, object] = {"page": url.kind.value, "url": address, "goal": session.goal.to_dict()}
        content: dict[str, object] = {}
        if url.kind is PageKind.RESULTS:
            found = [element.text for element in session.page.elements if element.kind == "product"]
            content = {"keywords": url.keywords.split(), "search_result_asins": found, "page": url.page_number}
        elif url.asin:
            content = {"asin": url.asin, "options": dict(url.options)}
            if url.kind in (PageKind.ITEM, PageKind.SUB):
                content = {"keywords": url.keywords.split(), "page": url.page_number, **content}
        line["content"] = content
        if url.kind is PageKind.DONE and session.score:
            line["reward"] = session.reward
            line["reward_info"] = session.score.to_dict()
        path = self.directory / f"{session.session_id}.jsonl"
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as error:
            raise StateFileError(f"`{path}` cannot be written: {error.strerror}") from error

"""Who is in the shop now.

* `SessionStore` - sessions by name, each with a lock; the idle and the oldest are let go
* `SessionLog` - what shoppers did, in the original's form, one JSON object a line
"""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from webshop_server.errors import ArgumentError, SessionError
from webshop_server.shop import Session, Shop
from webshop_server.urls import PageKind, session_goal

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
RESERVED = frozenset(("ad", "admin", "confirm", "done", "favicon", "image", "item_page", "item_sub_page", "static"))
"""First parts of addresses that are no sessions."""


class SessionStore:
    """Sessions by name.

    Args:
        shop: where the shoppers are.
        limit: how many there can be; the one that was idle longest goes first.
        idle_seconds: how long one may do nothing.
        seed: decides which goals new sessions get; names are always random.
        clock: seconds that only grow.

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
        idle_seconds: float = 3600.0,
        seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if limit < 1:
            raise ArgumentError(f"`limit` should be at least 1. Received {limit}")
        self.shop = shop
        self._limit = limit
        self._idle = idle_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[Session, threading.Lock, float]] = OrderedDict()
        self._random = _stream(seed)

    def __len__(self) -> int:
        return len(self._entries)

    def create(self, *, goal: int | None = None, name: str | None = None) -> str:
        """Let a shopper in.

        Args:
            goal: the goal's number; drawn by the goals' weights if not given.
            name: the session's name; random if not given. One that exists already is kept as it is.

        Returns:
            The session's name.

        Raises:
            ArgumentError: the name is not allowed, or no goal has this number.
        """
        if name is None:
            name = secrets.token_urlsafe(12)
        elif not _NAME.fullmatch(name) or name in RESERVED:
            raise ArgumentError(f"a session's name should match {_NAME.pattern}. Received {name[:80]!r}")
        with self._lock:
            if name not in self._entries:
                index = goal if goal is not None else session_goal(name)
                if index is None:
                    index = self.shop.goals.pick(next(self._random))
                self._entries[name] = (self.shop.start(index, name), threading.Lock(), self._clock())
                self._evict()
        return name

    @contextmanager
    def use(self, name: str) -> Iterator[Session]:
        """Hold a session; nobody else has it meanwhile.

        Raises:
            SessionError: there is none of this name.
        """
        with self._lock:
            self._evict()
            entry = self._entries.get(name)
            if entry is None:
                raise SessionError(f"there is no session {name[:80]!r}; it may have been idle for too long")
            session, lock, _ = entry
            self._entries[name] = (session, lock, self._clock())
            self._entries.move_to_end(name)
        with lock:
            yield session

    def remove(self, name: str) -> None:
        """Let a session go, if there is one."""
        with self._lock:
            self._entries.pop(name, None)

    def _evict(self) -> None:
        oldest = self._clock() - self._idle
        while self._entries:
            _, (_, _, used) = next(iter(self._entries.items()))
            if len(self._entries) <= self._limit and used >= oldest:
                break
            self._entries.popitem(last=False)


def _stream(seed: int) -> Iterator[float]:
    draw = random.Random(f"webshop-sessions-{seed}")
    while True:
        yield draw.random()


class SessionLog:
    """What shoppers did: `<directory>/<session>.jsonl`, one object `{page, url, goal, content}` a page.

    The last line of a purchase adds `reward` and `reward_info`, as in the original.

    Args:
        directory: where the files go; it is made.

    Raises:
        ArgumentError: the directory cannot be made.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArgumentError(f"`log` should be a directory that can be written: {error}") from error

    def write(self, session: Session, url: str) -> None:
        """Add the page that a session shows now.

        Args:
            session: whose page; its name is safe in a file's name.
            url: its address, with host.
        """
        place = session.page.location
        line: dict[str, Any] = {"page": place.kind.value, "url": url, "goal": session.goal.to_dict()}
        content: dict[str, Any] = {}
        if place.kind is PageKind.RESULTS:
            found = [element.text for element in session.page.elements if element.kind == "product"]
            content = {"keywords": place.keywords.split(), "search_result_asins": found, "page": place.page}
        elif place.asin:
            content = {"asin": place.asin, "options": dict(place.options)}
            if place.kind in (PageKind.ITEM, PageKind.SUB):
                content = {"keywords": place.keywords.split(), "page": place.page, **content}
        line["content"] = content
        if place.kind is PageKind.DONE and session.score:
            line["reward"] = session.reward
            line["reward_info"] = session.score.to_dict()
        with open(self.directory / f"{session.session_id}.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

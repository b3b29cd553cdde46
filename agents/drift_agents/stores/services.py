"""Memory services of two methods, `add(text)` and `search(query, k)`: references, and wrappers around a service."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any, Protocol

from drift_agents.stores.base import takes
from drift_envs.checks import check_count, check_interval

_WORD = re.compile(r"\w+")


class _Service(Protocol):
    def add(self, text: str) -> Any: ...

    def search(self, query: str, k: int) -> Sequence[Any]: ...


def words_of(text: str) -> frozenset[str]:
    """The words of a text, in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def text_of(hit: Any) -> str:
    """The text of a hit: itself, or its second entry."""
    return str(hit[1]) if isinstance(hit, tuple) and len(hit) == 3 else str(hit)


class Everything:
    """All texts, the oldest first, whatever `k` is.

    Example:
        >>> memory = Everything()
        >>> memory.add("a red hat"), memory.add("an axe")
        (None, None)
        >>> memory.search("a hat", 1)
        ['a red hat', 'an axe']
    """

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __len__(self) -> int:
        """The number of texts."""
        return len(self.texts)

    def add(self, text: str) -> None:
        """Store a text."""
        self.texts.append(text)

    def search(self, query: str, k: int) -> list[str]:
        """All texts."""
        return list(self.texts)


class CommonWords(Everything):
    """Texts with the most words of the query.

    Args:
        newest: whether the newest of equals comes first, or the oldest.

    Example:
        >>> memory = CommonWords()
        >>> for text in ("the hat is red", "the hat is blue", "an axe"):
        ...     memory.add(text)
        >>> memory.search("which hat is it", 2)
        ['the hat is blue', 'the hat is red']
    """

    def __init__(self, *, newest: bool = True) -> None:
        super().__init__()
        self._newest = newest

    def search(self, query: str, k: int) -> list[str]:
        """The `k` texts with the most common words."""
        asked = words_of(query)
        texts = self.texts[::-1] if self._newest else self.texts
        return sorted(texts, key=lambda text: -len(asked & words_of(text)))[:k]


class _Wrapper:
    """A service around a service, which stores when each text was added."""

    def __init__(self, service: _Service, least: float) -> None:
        self.service, self.least = service, check_interval("least", least, "(0, 1]")
        self._takes_metadata = takes(service.add, "metadata")
        self._order: dict[str, int] = {}

    def __len__(self) -> int:
        """The number of entries of the service, or of different texts that were added."""
        return len(self.service) if isinstance(self.service, Sized) else len(self._order)

    def add(self, text: str, metadata: Mapping[str, Any] | None = None) -> Any:
        """Store a text, with metadata if the service takes them."""
        self._order[text] = len(self._order)
        return self.service.add(text, **({"metadata": metadata or {}} if self._takes_metadata else {}))

    def clock(self, day: int) -> None:
        """Say which day it is, to a service that is told so."""
        if hasattr(self.service, "clock"):
            self.service.clock(day)

    def search(self, query: str, k: int) -> list[str]:
        """At most `k` texts."""
        return [text_of(hit) for hit in self.service.search(query, k)]

    def _is_near(self, one: str, other: str) -> bool:
        """Whether two texts share this part of the words of the shorter one."""
        mine, theirs = words_of(one), words_of(other)
        return len(mine & theirs) >= self.least * max(min(len(mine), len(theirs)), 1)


class NewestFirst(_Wrapper):
    """Near-equal texts come back newest first.

    Args:
        service: a memory service.
        least: the share of the words of the shorter text from which on two texts are near-equal.

    Example:
        >>> memory = NewestFirst(CommonWords(newest=False))
        >>> for text in ("Ana's hat is red", "Ana's hat is blue"):
        ...     _ = memory.add(text)
        >>> memory.search("Ana's hat", 2)
        ["Ana's hat is blue", "Ana's hat is red"]
    """

    def __init__(self, service: _Service, *, least: float = 0.75) -> None:
        super().__init__(service, least)

    def search(self, query: str, k: int) -> list[str]:
        """The texts that the service returns; the best group of near-equal ones first."""
        groups: list[list[str]] = []
        for text in super().search(query, k):
            group = next((one for one in groups if self._is_near(one[0], text)), None)
            groups.append([text]) if group is None else group.append(text)
        return [text for group in groups for text in sorted(group, key=lambda one: -self._order.get(one, -1))]


class Replace(_Wrapper):
    """A text takes the place of near-equal older ones, which are returned no more.

    They are deleted where `search` returns hits with ids and the service has `delete`, and left out of results
    elsewhere.

    Args:
        service: a memory service.
        least: the share of the words of the shorter text from which on two texts are near-equal.
        k: the number of texts with which a new one is compared.

    Example:
        >>> memory = Replace(CommonWords(newest=False))
        >>> for text in ("Ana's hat is red", "Ana's hat is blue"):
        ...     _ = memory.add(text)
        >>> memory.search("Ana's hat", 2)
        ["Ana's hat is blue"]
    """

    def __init__(self, service: _Service, *, least: float = 0.75, k: int = 5) -> None:
        super().__init__(service, least)
        self._k = check_count("k", k)
        self._replaced: set[str] = set()

    def add(self, text: str, metadata: Mapping[str, Any] | None = None) -> Any:
        """Store a text, and replace those that it contradicts."""
        for hit in self.service.search(text, self._k):
            old = text_of(hit)
            if old != text and self._is_near(old, text):
                self._replaced.add(old)
                if hit is not old and hasattr(self.service, "delete"):
                    self.service.delete(hit[0])
        self._replaced.discard(text)
        return super().add(text, metadata)

    def search(self, query: str, k: int) -> list[str]:
        """At most `k` texts that were not replaced."""
        found = super().search(query, k + min(len(self._replaced), 10 * k))
        return [text for text in found if text not in self._replaced][:k]


class AskFirst(_Wrapper):
    """Texts that were added long ago are verified before they are used.

    Args:
        service: a memory service.
        ask: returns what is true now about a query, or `None`.
        age: the number of days from which on the best hit is verified, as `clock` counts them; without a clock, of
            later texts.

    Example:
        >>> memory = AskFirst(CommonWords(), lambda query: "the hat is green", age=1)
        >>> for text in ("the hat is red", "an axe"):
        ...     _ = memory.add(text)
        >>> memory.search("which hat", 1)
        ['the hat is green']
    """

    def __init__(self, service: _Service, ask: Callable[[str], str | None], *, age: int = 20) -> None:
        super().__init__(service, 1.0)
        self._ask, self._age = ask, check_count("age", age)
        self._days: dict[str, int] = {}
        self._today: int | None = None

    def clock(self, day: int) -> None:
        """Say which day it is."""
        self._today = day
        super().clock(day)

    def add(self, text: str, metadata: Mapping[str, Any] | None = None) -> Any:
        """Store a text."""
        self._days[text] = self._today or 0
        return super().add(text, metadata)

    def _age_of(self, text: str) -> int:
        if self._today is not None:
            return self._today - self._days.get(text, 0)
        return len(self._order) - self._order.get(text, 0)

    def search(self, query: str, k: int) -> list[str]:
        """At most `k` texts; an answer that was asked for comes first, and is stored."""
        found = super().search(query, k)
        if found and self._age_of(found[0]) > self._age:
            answer = self._ask(query)
            if answer is not None:
                self.add(answer, {} if self._today is None else {"day": self._today})
                return [answer, *(text for text in found if text != answer)][:k]
        return found

"""Memory services of two methods, `add(text)` and `search(query, k)`, as stores.

* `ServiceStore` - the store
* `read_texts` - the texts that a search returned, checked
* `takes` - whether a method takes an option
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sized
from inspect import Parameter, isawaitable, signature
from itertools import islice
from typing import Any

from drift_agents.errors import PartError
from drift_agents.part_file import describe_error, is_interruption
from drift_agents.stores.base import Hit, Scalar

MOST_HITS = 1000
MOST_LETTERS = 1_000_000
"""A search that returns more hits, or more letters, is refused."""

MORE = 10
"""A search asks for more texts where deleted ones may come back, up to so many times as many."""

_TAG = re.compile(r"\s*\[?\brecord[ #:]*(\d+)\b\]?", re.IGNORECASE)


def takes(method: Any, option: str) -> bool:
    """Whether a method takes an option.

    Args:
        method: a bound method.
        option: its name.

    Example:
        >>> takes(ServiceStore.add, "metadata"), takes(len, "metadata")
        (True, False)
    """
    try:
        parameters = signature(method).parameters
    except (TypeError, ValueError):
        return False
    return option in parameters or any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())


def read_texts(found: Any) -> tuple[str, ...]:
    """The texts that a search returned: those of a list or of another iterable, or of hits `(id, text, similarity)`.

    Raises:
        PartError: if it is something else, too long, or awaitable.

    Example:
        >>> read_texts([("7", "a red hat", 0.5), "an axe"])
        ('a red hat', 'an axe')
    """
    check_call("search", found)
    if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Iterable):
        raise PartError(f"`search` should return a list of texts. Received {type(found).__name__}")
    hits = list(islice(found, MOST_HITS + 1))
    if len(hits) > MOST_HITS:
        received = str(len(found)) if isinstance(found, Sized) else "more"
        raise PartError(f"`search` should return at most {MOST_HITS} texts. Received {received}")
    texts = tuple(one[1] if isinstance(one, tuple) and len(one) == 3 else one for one in hits)
    wrong = [type(one).__name__ for one in texts if not isinstance(one, str)]
    if wrong:
        raise PartError(f"`search` should return texts. Received one of type {wrong[0]}")
    if (letters := sum(map(len, texts))) > MOST_LETTERS:
        raise PartError(f"`search` should return at most {MOST_LETTERS} letters. Received {letters}")
    return texts


def check_call(method: str, result: Any) -> Any:
    """The result of a call, unless it has to be awaited.

    Raises:
        PartError: if it has to be awaited.
    """
    if not isawaitable(result):
        return result
    if hasattr(result, "close"):
        result.close()
    raise PartError(f"`{method}` should not be async: wrap it in a method that runs it to its end")


class ServiceStore:
    """A memory service of two methods as a store.

    Each text ends with a tag, `[record 7]`, by which it is found again in what the service returns, also after it was
    rewritten. A text without a tag comes back with an empty id. `delete` of the service is called with what its `add`
    returned, if there is one; texts whose tags are all of deleted entries are left out in any case.

    Args:
        service: an object with `add(text)`, which may take `metadata`, and `search(query, k)`; `delete` is optional.

    Raises:
        PartError: from any method, if that of the service raises or returns something else.

    Example:
        >>> from drift_agents.stores.services import CommonWords
        >>> store = ServiceStore(CommonWords())
        >>> entries = [store.add(text, {}) for text in ("a red hat", "an axe")]
        >>> store.search("a hat", 1)
        [('0', 'a red hat', 0.0)]
        >>> store.delete("0")
        >>> store.search("a hat", 2)
        [('1', 'an axe', 0.0)]
    """

    def __init__(self, service: Any) -> None:
        self.service = service
        self._takes_metadata = takes(service.add, "metadata")
        self._ids: dict[str, Any] = {}
        self._next = self._undeleted = 0

    def __len__(self) -> int:
        """The number of entries that were added and not deleted."""
        return len(self._ids)

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        try:
            return check_call(method, getattr(self.service, method)(*arguments, **options))
        except BaseException as error:
            if is_interruption(error):
                raise
            described = str(error) if isinstance(error, PartError) else f"`{method}` raises {describe_error(error)}"
            raise PartError(f"the memory service {type(self.service).__name__}: {described}") from error

    def add(self, text: str, metadata: Mapping[str, Scalar]) -> str:
        """Store a text with a tag; returns the id of a new entry."""
        entry = str(self._next)
        self._next += 1
        more = {"metadata": dict(metadata)} if self._takes_metadata else {}
        self._ids[entry] = self._call("add", f"{text} [record {entry}]", **more)
        return entry

    def search(self, query: str, k: int) -> list[Hit]:
        """What the service returns, without tags; the similarity is not known and 0."""
        try:
            texts = read_texts(self._call("search", query, k + min(self._undeleted, MORE * k)))
        except PartError as error:
            raise PartError(f"the memory service {type(self.service).__name__}: {error}") from error
        hits = []
        for text in texts:
            tags = _TAG.findall(text)
            held = [tag for tag in tags if tag in self._ids]
            if held or not tags:
                hits.append((held[-1] if held else "", _TAG.sub("", text), 0.0))
        return hits[:k]

    def delete(self, entry: str) -> None:
        """Delete an entry; an unknown id is ignored."""
        if entry in self._ids:
            given = self._ids.pop(entry)
            if given is not None and hasattr(self.service, "delete"):
                self._call("delete", given)
            else:
                self._undeleted += 1

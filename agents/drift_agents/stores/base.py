"""Stores of texts (add, search, delete): the protocol, one in RAM, and memory services of two methods as stores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from inspect import Parameter, isawaitable, signature
from itertools import islice
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from drift_agents.embedding.base import Embedding, HashedEmbedding, Vectors, cosine, resolve_embedding
from drift_agents.errors import ArgumentError, DriftAgentsError, PartError
from drift_agents.registry.part_file import describe_failure, is_interruption, show_class
from drift_agents.registry.parts import check_methods, check_signature, read_named
from drift_agents.registry.tables import STORES

Hit: TypeAlias = "tuple[str, str, float]"
"""The id of an entry, its text, and its similarity to the query; higher means more similar."""

Scalar: TypeAlias = "str | int | float | bool"
"""A value of metadata: what every product stores beside a text."""

Entry: TypeAlias = "tuple[str, str, Mapping[str, Scalar]]"
"""The id of an entry, its text and its metadata."""


@runtime_checkable
class StoreProtocol(Protocol):
    """Texts that are found by similarity.

    The contract, beyond the signatures:

    * `add` returns the id of an entry that `search` finds at once. It may return an earlier id if it merges the
      text with one that it holds; the id of a deleted entry is not used again while the store is open;
    * `search` returns at most `k` hits, the best first; of equal calls in equal order the results are equal;
    * `delete` ignores unknown ids.
    """

    def add(self, text: str, metadata: Mapping[str, Scalar]) -> str:
        """Store a text with its metadata; returns the id of its entry."""
        ...

    def search(self, query: str, k: int) -> Sequence[Hit]:
        """The `k` entries that are most similar to the query, the best first."""
        ...

    def delete(self, entry: str) -> None:
        """Delete an entry; an unknown id is ignored."""
        ...


@runtime_checkable
class ListedStore(StoreProtocol, Protocol):
    """A store that also lists what it holds, so that it can be opened again and examined."""

    def entries(self) -> Iterator[Entry]:
        """All entries, oldest first."""
        ...


@runtime_checkable
class UpdatedStore(ListedStore, Protocol):
    """A listed store that changes metadata in place; in another the entry is deleted and added again."""

    def update(self, entry: str, metadata: Mapping[str, Scalar]) -> None:
        """Set the metadata of an entry, with the keys that it had and maybe others; text and order stay."""
        ...


def make_store(given: Any, embedding: Embedding | None = None) -> StoreProtocol:
    """A store, as it is or by its name.

    An object with `add(text)` and `search(query, k)` that is no store becomes one
    (`drift_agents.stores.base.ServiceStore`).

    Args:
        given: a store or a memory service, a name of `registry.STORES.names()`, `FILE.py:CLASS`, or one name with
            its options, as in `{"in_process": {}}`.
        embedding: of texts, for a store that is given by name; the store's own default if not given.

    Raises:
        UnknownNameError: if there is no store of that name.
        ArgumentError: if it is none of these, does not take one of the options, or has an embedding of its own.
        MissingDependencyError: if the store needs a package that is not installed.

    Example:
        >>> store = make_store("in_process")
        >>> entry = store.add("the river is frozen", {})
        >>> store.search("a frozen river", 1)[0][:2] == (entry, "the river is frozen")
        True
    """
    if (store := _as_store(given)) is not None:
        if embedding is not None:
            raise ArgumentError(
                f"`embedding` should be given with a store's name: a store has its own. Received {embedding!r}"
            )
        return store
    name, options = read_named("store", given, "a store, a name")
    if own := options.get("embedding"):
        if embedding is not None:
            raise ArgumentError(f"`embedding` should be given once. Received {own!r} for the store {name!r} too")
        embedding = resolve_embedding(own)
    made = STORES.make(name, **{**options, **({} if embedding is None else {"embedding": embedding})})
    store = _as_store(made)
    if store is None:
        raise PartError(f"the store {name!r} should have `add` and `search`. Received {type(made).__name__}")
    return store


def _as_store(given: Any) -> StoreProtocol | None:
    """A store as it is, a memory service as a store; `None` for other objects."""
    if not all(callable(getattr(given, name, None)) for name in ("add", "search")):
        return None
    if isinstance(given, StoreProtocol):
        # The `add` of a store takes metadata always, that of a service only if they are given.
        second = next(islice(signature(given.add).parameters.values(), 1, None), None)
        if second is not None and second.name == "metadata" and second.default is Parameter.empty:
            whose = f"the store {show_class(given)!r}"
            for protocol in (StoreProtocol, ListedStore, UpdatedStore):
                if isinstance(given, protocol):
                    check_methods(whose, given, protocol)
            return given
    return ServiceStore(given)


def check_service(service: Any, **optional: tuple[str, ...]) -> None:
    """Check that a memory service can be called as one.

    Args:
        optional: methods that are called where they exist, with the names of their arguments.

    Raises:
        PartError: if it lacks `add` or `search`, or a method takes other arguments.
    """
    whose = f"the memory service {show_class(service)!r}"
    if missing := [method for method in ("add", "search") if not hasattr(service, method)]:
        raise PartError(f"{whose} should have add(text) and search(query, k). Missing: {', '.join(missing)}")
    takes_metadata = takes(service.add, "metadata")
    check_signature(whose, service, "add", "text", options=("metadata",) if takes_metadata else ())
    check_signature(whose, service, "search", "query", "k")
    for method, arguments in optional.items():
        if hasattr(service, method):
            check_signature(whose, service, method, *arguments)


def refuse_copy(name: str) -> DriftAgentsError:
    """The error of a store whose product cannot be copied or pickled."""
    return DriftAgentsError(f"the store {name!r} cannot be copied or pickled. Make a memory with a new store")


MOST_HITS = 1000
MOST_LETTERS = 1_000_000
"""A search that returns more hits, or more letters, is refused."""

MORE = 10
"""A search asks for more texts where deleted ones may come back, up to so many times as many."""

_TAG = re.compile(r"\s*\[?\brecord[ #:]*(\d+)\b\]?", re.IGNORECASE)


def takes(method: Any, option: str) -> bool:
    """Whether a method takes an option.

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
    """The texts that a search returned, in order: of a list or another iterable but a set, or of `Hit`s.

    Raises:
        PartError: if it is something else, too long, or awaitable.

    Example:
        >>> read_texts([("7", "a red hat", 0.5), "an axe"])
        ('a red hat', 'an axe')
    """
    check_call("search", found)
    if isinstance(found, (str, bytes, Mapping, AbstractSet)) or not isinstance(found, Iterable):
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
        PartError: if a method takes other arguments; from any method, if that of the service raises or returns
            something else.

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
        check_service(service, delete=("id",))
        self.service = service
        self._takes_metadata = takes(service.add, "metadata")
        self._ids: dict[str, Any] = {}
        self._next = self._undeleted = 0

    def __len__(self) -> int:
        """The number of entries that were added and not deleted."""
        return len(self._ids)

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """What a method returns; of a search its texts, since foreign code runs while a result is read, too."""
        try:
            found = check_call(method, getattr(self.service, method)(*arguments, **options))
            return read_texts(found) if method == "search" else found
        except BaseException as error:
            if is_interruption(error):
                raise
            described = str(error) if isinstance(error, PartError) else f"`{method}` raises {describe_failure(error)}"
            raise PartError(f"the memory service {show_class(self.service)}: {described}") from error

    def add(self, text: str, metadata: Mapping[str, Scalar]) -> str:
        """Store a text with a tag; returns the id of a new entry."""
        entry = str(self._next)
        self._next += 1
        more = {"metadata": dict(metadata)} if self._takes_metadata else {}
        self._ids[entry] = self._call("add", f"{text} [record {entry}]", **more)
        return entry

    def search(self, query: str, k: int) -> list[Hit]:
        """What the service returns, without tags; the similarity is not known and 0."""
        texts = self._call("search", query, k + min(self._undeleted, MORE * k))
        return list(islice(self._read_hits(texts), k))

    def _read_hits(self, texts: Iterable[str]) -> Iterator[Hit]:
        """The hits among texts; one with tags of deleted entries alone is left out."""
        for text in texts:
            tags = _TAG.findall(text)
            held = [tag for tag in tags if tag in self._ids]
            if held or not tags:
                yield held[-1] if held else "", _TAG.sub("", text), 0.0

    def delete(self, entry: str) -> None:
        """Delete an entry; an unknown id is ignored."""
        if entry in self._ids:
            given = self._ids.pop(entry)
            if given is not None and hasattr(self.service, "delete"):
                self._call("delete", given)
            else:
                self._undeleted += 1


class InProcessStore:
    """Texts in RAM, found by the cosine of their embeddings.

    Of equally similar entries the oldest comes first. It appends only: equal texts are entries of their own.

    Args:
        embedding: of texts and queries; hashed words and letters if not given.

    Example:
        >>> store = InProcessStore()
        >>> entries = [store.add(text, {}) for text in ("a red hat", "an axe")]
        >>> [text for _, text, _ in store.search("a hat", 2)]
        ['a red hat', 'an axe']
        >>> store.delete(entries[0])
        >>> [text for _, text, _ in store.search("a hat", 2)]
        ['an axe']
    """

    def __init__(self, embedding: Embedding | None = None) -> None:
        self.embedding: Embedding = HashedEmbedding() if embedding is None else embedding
        self._texts: dict[str, str] = {}
        self._metadata: dict[str, dict[str, Scalar]] = {}
        self._vectors: dict[str, Vectors] = {}
        self._matrix: Vectors | None = None
        self._next = 0

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._texts)

    def add(self, text: str, metadata: Mapping[str, Scalar]) -> str:
        """Store a text with its metadata; returns the id of a new entry."""
        entry = str(self._next)
        self._next += 1
        self._texts[entry], self._metadata[entry] = text, dict(metadata)
        self._vectors[entry], self._matrix = self.embedding.embed([text])[0], None
        return entry

    def search(self, query: str, k: int) -> list[Hit]:
        """The `k` entries that are most similar to the query, the best first."""
        if not self._texts:
            return []
        if self._matrix is None:
            self._matrix = np.stack(list(self._vectors.values()))
        similar = cosine(self.embedding.embed([query])[0], self._matrix)
        entries = list(self._texts)
        best = (int(place) for place in np.argsort(-similar, kind="stable")[:k])
        return [(entries[place], self._texts[entries[place]], float(similar[place])) for place in best]

    def delete(self, entry: str) -> None:
        """Delete an entry; an unknown id is ignored."""
        if entry in self._texts:
            del self._texts[entry], self._metadata[entry], self._vectors[entry]
            self._matrix = None

    def update(self, entry: str, metadata: Mapping[str, Scalar]) -> None:
        """Set the metadata of an entry."""
        self._metadata[entry] = dict(metadata)

    def entries(self) -> Iterator[Entry]:
        """All entries, oldest first."""
        for entry, text in self._texts.items():
            yield entry, text, dict(self._metadata[entry])

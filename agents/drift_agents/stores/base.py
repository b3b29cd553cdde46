"""The protocol of stores of texts: add, search, delete.

* `StoreProtocol` - the protocol
* `ListedStore` - a store that also lists what it holds
* `UpdatedStore` - a listed store that changes metadata in place
* `Hit`, `Entry` - one result of a search; one entry of a list
* `Scalar` - a value of metadata
* `make_store` - a store as it is, or by name
* `refuse_copy` - the error of a store that cannot be copied
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any, Protocol, TypeAlias, runtime_checkable

from drift_agents.embedding.base import Embedding
from drift_agents.errors import ArgumentError, DriftAgentsError, PartError
from drift_agents.registry import STORES
from drift_envs.lazy import load_object

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
    (`drift_agents.stores.adapter.ServiceStore`).

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
    named = {given: None} if isinstance(given, str) else given
    if not isinstance(named, Mapping) or len(named) != 1:
        raise ArgumentError(f"`store` should be a store, a name, or one name with its options. Received {given!r}")
    ((name, options),) = named.items()
    made = STORES.make(
        name, **({} if embedding is None else {"embedding": embedding}), **({} if options is None else options)
    )
    store = _as_store(made)
    if store is None:
        raise PartError(f"the store {name!r} should have `add` and `search`. Received {type(made).__name__}")
    return store


def _as_store(given: Any) -> StoreProtocol | None:
    """A store as it is, a memory service as a store; `None` for other objects."""
    if not all(callable(getattr(given, name, None)) for name in ("add", "search")):
        return None
    if isinstance(given, StoreProtocol) and _needs_metadata(given):
        return given
    made: StoreProtocol = load_object("drift_agents.stores.adapter:ServiceStore")(given)
    return made


def _needs_metadata(given: StoreProtocol) -> bool:
    """Whether `add` takes metadata always, as a store's does, or only if they are given, as a service's does."""
    parameters = list(signature(given.add).parameters.values())
    return len(parameters) > 1 and parameters[1].default is Parameter.empty and parameters[1].name == "metadata"


def refuse_copy(name: str) -> DriftAgentsError:
    """The error of a store whose product cannot be copied or pickled.

    Args:
        name: the store's name.
    """
    return DriftAgentsError(f"the store {name!r} cannot be copied or pickled. Make a memory with a new store")

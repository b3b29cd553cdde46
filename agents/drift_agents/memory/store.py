"""A memory in a store of texts, with the transition store beside it.

* `StoreMemory` - the memory
* `stored_records` - the records in a store, with their entries

Products for the memory of agents add, search and delete texts. Verifiers need the records of a state and action,
which such a product cannot list. So the transition store holds the records, and the store decides what is retrieved.
`docs/stores.md` says what was decided here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from drift_agents.checks import check_flag, check_integer
from drift_agents.embedding.base import Embedding
from drift_agents.matching.base import Matching
from drift_agents.memory.transcript import quote_state, render_statement
from drift_agents.memory.transitions import (
    TransitionStore,
    TransitionStoreMemory,
    plain_record,
    read_record,
    reading_snapshot,
)
from drift_agents.stores.base import ListedStore, Scalar, StoreProtocol, make_store
from drift_agents.types import AgentClock, Episode, Plain, Record, RecordId, Removed, Retrieved


class StoreMemory(TransitionStoreMemory):
    """Texts in a store of another package, with the transition store beside it.

    Every transition is added as a statement of one line, and a query searches for the present state. The store's
    order decides which records are retrieved; they may be about other states. Records that a verifier removes are
    deleted from the store, and its summaries are added as statements that say so.

    A store that appends returns a statement as often as it was added, so that one may fill all `k` places. `merge`
    adds each statement once.

    The transition store is what counts: an entry that the store returns although its records are removed, or that
    someone else added, is ignored. A record is part of its entry's metadata, so that a store which is opened again
    brings its records along.

    Args:
        k: hits of each search; positive.
        store: a store (`drift_agents.stores.base.StoreProtocol`), a name, or one name with its options.
        embedding: of texts, for a store that is given by name; the store's own default if not given.
        merge: whether records with the same statement share one entry, which has the metadata of the first.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        UnknownNameError: if there is no store of that name.
        ArgumentError: if `k` is not positive, or `store` is no store.
        MissingDependencyError: if the store needs a package that is not installed.

    Example:
        >>> from drift_agents.types import Experience, Outcome
        >>> memory = StoreMemory(k=1)
        >>> for state in ("a bridge", "a river"):
        ...     step = Experience(state, "cross", Outcome("the other side", 1.0, True), 1.0, AgentClock())
        ...     _ = memory.observe(step, AgentClock())
        >>> [record.state for record in memory.retrieve("a river", None, AgentClock()).records]
        ['a river']
    """

    name = "store"
    needs: frozenset[str] = frozenset()
    supervision = "none"

    def __init__(
        self,
        *,
        k: int = 5,
        store: StoreProtocol | str | Plain = "in_process",
        embedding: Embedding | None = None,
        merge: bool = False,
        matching: Matching | None = None,
    ) -> None:
        self.k, self.merge = check_integer("k", k), check_flag("merge", merge)
        self._transitions = TransitionStore(matching)
        self._store = make_store(store, embedding)
        # The entry of every record, and the records of every entry: a store may merge equal texts.
        self._entries: dict[RecordId, str] = {}
        self._cited: dict[str, dict[RecordId, None]] = {}
        # The newest entry of every statement; unused without `merge`.
        self._merged: dict[str, str] = {}
        # Results by query and k, until the next change: a prompt asks for every known state.
        self._cache: dict[tuple[str, int], Retrieved] = {}
        if isinstance(self._store, ListedStore):
            self._adopt(self._store)

    def _adopt(self, store: ListedStore) -> None:
        """Take over the records of a store that was opened again, numbered anew in the order of its entries."""
        held = list(stored_records(store))
        records = [[number, *plain_record(record)[1:]] for number, (_, record) in enumerate(held)]
        self._transitions.restore({"next_id": len(held), "records": records})
        for number, (entry, record) in enumerate(held):
            self._note_entry(number, entry, _render(record))

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The records of the `k` entries that are most similar to this state; no side effect."""
        query = quote_state(state), self.k if k is None else k
        if query not in self._cache:
            hits = self._store.search(*query)
            found = dict.fromkeys(number for entry, _, _ in hits for number in self._cited.get(entry, ()))
            records = tuple(self._transitions.select(found))
            self._cache[query] = Retrieved(records, (1.0,) * len(records))
        return self._cache[query]

    def _note_written(self, record_id: RecordId) -> RecordId:
        (record,) = self._transitions.select([record_id])
        self._add(record)
        return record_id

    def _add(self, record: Record, entry: str | None = None) -> str:
        """Give a record its entry, a new one if it shares none; returns the entry."""
        self._cache.clear()
        text = _render(record)
        if entry is None:
            entry = self._merged.get(text)
        if entry is None or entry not in self._cited:
            about: dict[str, Scalar] = {"record": record.id, "action": record.action}
            about |= {"episode": record.now.episode, "step": record.now.step, "verified": record.verified}
            about["transition"] = json.dumps(plain_record(record))
            entry = self._store.add(text, about)
        self._note_entry(record.id, entry, text)
        return entry

    def _note_entry(self, number: RecordId, entry: str, text: str) -> None:
        if self.merge:
            self._merged[text] = entry
        self._entries[number] = entry
        self._cited.setdefault(entry, {})[number] = None

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records, and delete the entries that no other record has; no item depends on them."""
        removed = self._transitions.remove(ids)
        self._drop(removed)
        return Removed(removed)

    def _drop(self, ids: Iterable[RecordId]) -> None:
        self._cache.clear()
        for number in ids:
            entry = self._entries.pop(number)
            del self._cited[entry][number]
            if not self._cited[entry]:
                del self._cited[entry]
                self._store.delete(entry)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Do nothing: every step was written when it happened."""

    def _snapshot_own(self) -> dict[str, Any]:
        """Which records share an entry, if some do.

        The entries are written anew from the records in the same order, by which a store may break ties.
        """
        groups = [list(ids) for ids in self._cited.values()]
        return {} if groups == [[number] for number in sorted(self._entries)] else {"entries": groups}

    def _restore_own(self, data: Plain, transitions: TransitionStore) -> None:
        """Delete the present entries, and add those of the snapshot's records."""
        numbers = [record.id for record in transitions]
        groups = [transitions.select(ids) for ids in data.get("entries", [[number] for number in numbers])]
        if sorted(record.id for group in groups for record in group) != numbers:
            raise ValueError("every record should have one entry")
        if any(len({_render(record) for record in group}) != 1 for group in groups):
            raise ValueError("records of one entry should have the same statement")
        self._transitions = transitions
        self._drop(list(self._entries))
        for group in groups:
            entry = None
            for record in group:
                entry = self._add(record, entry)


def _render(record: Record) -> str:
    """The statement of a record."""
    return render_statement(record.state, record.action, record.outcomes, record.n if record.verified else None)


def stored_records(store: ListedStore) -> Iterator[tuple[str, Record]]:
    """The records in a store, each with its entry, oldest entry first; entries of others are left out.

    Args:
        store: a store that memories wrote to. Of a statement that stands for several records it has the first.

    Raises:
        MemoryStateError: if an entry has a record that cannot be read.

    Example:
        >>> from drift_agents.stores.in_process import InProcessStore
        >>> from drift_agents.types import Experience, Outcome
        >>> store, now = InProcessStore(), AgentClock()
        >>> _ = store.add("a note of another program", {})
        >>> _ = StoreMemory(store=store).observe(Experience("a", "1", Outcome("b", 0.0, False), 0.0, now), now)
        >>> [(entry, record.state, record.outcome.state) for entry, record in stored_records(store)]
        [('1', 'a', 'b')]
    """
    for entry, _, about in store.entries():
        if "transition" in about:
            with reading_snapshot(f"the record of the entry {entry!r}", about["transition"]):
                yield entry, read_record(json.loads(str(about["transition"])))

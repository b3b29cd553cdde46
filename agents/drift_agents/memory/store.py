"""A memory in a store of texts, with the transition store beside it.

Products for the memory of agents add, search and delete texts. Verifiers need the records of a state and action,
which such a product cannot list. So the transition store holds the records, and the store decides what is retrieved.
`docs/stores.md` says what was decided here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from drift_agents.embedding.base import Embedding
from drift_agents.envs.matching import Matching
from drift_agents.errors import ArgumentError
from drift_agents.memory.transcript import quote_state, render_statement
from drift_agents.memory.transitions import TransitionStore, TransitionStoreMemory
from drift_agents.stores.base import ListedStore, Scalar, UpdatedStore, make_store
from drift_agents.types import AgentClock, Note, Outcome, Record, RecordId, Removed, Retrieved
from drift_envs.checks import check_count, check_flag

_STATEMENT = re.compile(
    r'In (?P<state>.+?) action (?P<action>"(?:[^"\\]|\\.)*") led to (?P<after>.+?)'
    r"(?: \((?:score (?P<score>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?P<ended>; the episode ended)?)?[^()]*\))?$"
)
"""A statement that may have been changed: what follows the outcome in brackets may be missing."""
_TAIL = re.compile(r"(.*\S)(\s*(?:[.,;!]|\((?!score )[^()]*\)|\[[^\[\]]*\]))$")
"""What a store has put behind a statement: a full stop, or brackets of its own."""
_SCORED = re.compile(r"(.*? led to .+? \(score [^()]*\))(?!.*(?: led to |, or to |\(score ))(.+)$")
"""A statement with anything behind its score but another outcome."""
_SEVERAL = re.compile(r" led to |\(score [^()]*\), or to ")
_DENIED = re.compile(
    r"\b(?:no longer|not|never|outdated|obsolete|superseded|wrong|false|deleted|removed|expired)\b", re.IGNORECASE
)
"""Words of a suffix by which the statement does not hold any more."""

_RECORD = TypeAdapter(Record)
_TIMES = TypeAdapter(list[tuple[int, int, int]])
"""Places in the order of all that a store has held, each with the episode and the step of a record."""

MOST_TIMES = 1000
"""Records of one statement that a store brings along when it is opened again, the newest."""


class StoreMemory(TransitionStoreMemory):
    """Texts in a store of another package, with the transition store beside it.

    Every transition is added as a statement of one line, and a query searches for the present state. What the store
    answers decides what is retrieved, in its order; it may be about other states. Records that a verifier removes are
    deleted from the store, and its summaries are added as statements that say so.

    A text that comes back as it was added stands for its records. One that the store has rewritten is read back: as
    the outcome that it states now, or, where it is no statement any more, as a note with the text. `rewritten` counts
    such notes.

    A store that appends returns a statement as often as it was added, so that one may fill all `k` places. `merge`
    adds each statement once, with the times of all its records.

    An entry that a store returns although its records are removed, or that someone else added, is ignored; of a
    memory service, which has no ids, a text without a tag is a note. A record is part of its entry's metadata, so
    that a store which is opened again brings its records along.

    Args:
        k: hits of each search; positive.
        store: a store (`drift_agents.stores.base.StoreProtocol`), an object with `add(text)` and `search(query, k)`,
            a name, or one name with its options.
        embedding: of texts, for a store that is given by name; the store's own default if not given.
        merge: whether records with the same statement share one entry.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        UnknownNameError: if there is no store of that name.
        ArgumentError: if `k` is not positive, `store` is no store, or one of its records cannot be read.
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

    def __init__(
        self,
        *,
        k: int = 5,
        store: Any = "in_process",
        embedding: Embedding | None = None,
        merge: bool = False,
        matching: Matching | None = None,
    ) -> None:
        self.k, self.merge = check_count("k", k), check_flag("merge", merge)
        self.transitions = TransitionStore(matching)
        self._store = make_store(store, embedding)
        # The entry of every record, and the records of every entry: a store may merge equal texts.
        self._entries: dict[RecordId, str] = {}
        self._cited: dict[str, dict[RecordId, None]] = {}
        # The newest entry of every statement; unused without `merge`.
        self._merged: dict[str, str] = {}
        # The place of every record in the order of all that the store has held, which outlives this object.
        self._places: dict[RecordId, int] = {}
        self._next_place = 0
        # The statement of every record as it was added, and what rewritten texts became.
        self._statements: dict[RecordId, str] = {}
        self._rewritten: dict[str, Record | Note] = {}
        self.untagged = 0
        """How many different texts came back as they were added but for their tag."""
        # Results by query and k, until the next change: a prompt asks for every known state.
        self._cache: dict[tuple[str, int], Retrieved] = {}
        if isinstance(self._store, ListedStore):
            self._adopt(self._store)

    def _adopt(self, store: ListedStore) -> None:
        """Take over the records of a store that was opened again, numbered anew in their order.

        Entries without a record are of other programs. One that stands for several records has the first one, and the
        places and times of all if the memory merged them; if the store did, it has the first one alone.
        """
        held: list[tuple[int, str, Record]] = []
        for entry, _, about in store.entries():
            if "transition" in about:
                try:
                    record = _RECORD.validate_python(json.loads(str(about["transition"])))
                    times = _TIMES.validate_json(str(about.get("times", "[]")), strict=True)
                    if not record.outcomes or record.n < 1 or any(not p > 0 for _, p in record.outcomes):
                        raise ValueError("it has no outcome, an impossible one, or no response")
                except ValueError as error:
                    shown = str(about["transition"])[:80], str(about.get("times", ""))[:80]
                    reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
                    raise ArgumentError(
                        f"`store` should hold records of this memory: the entry {entry!r} has "
                        f"{' and '.join(map(repr, filter(None, shown)))} ({reason})"
                    ) from error
                held += [(place, entry, record._replace(now=AgentClock(*now))) for place, *now in times]
                held += [] if times else [(max((place for place, *_ in held), default=0), entry, record)]
        for place, entry, record in sorted(held, key=lambda one: one[0]):
            number = self.transitions.insert(record._replace(id=self.transitions.new_id()))
            self._note_entry(number, entry, _render(record), place)

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The records of the `k` entries that are most similar to this state; no side effect."""
        query = quote_state(state), self.k if k is None else k
        if query not in self._cache:
            records: dict[RecordId, Record] = {}
            notes: dict[RecordId, Note] = {}
            for entry, text, _ in self._store.search(*query):
                for found in self._read(entry, text):
                    if isinstance(found, Note):
                        notes[found.id] = found
                    else:
                        records[found.id] = found
            self._cache[query] = Retrieved(tuple(records.values()), (1.0,) * len(records), tuple(notes.values()))
        return self._cache[query]

    @property
    def rewritten(self) -> int:
        """How many texts came back that are no statements any more."""
        return sum(isinstance(one, Note) for one in self._rewritten.values())

    def _read(self, entry: str, text: str) -> Sequence[Record | Note]:
        """What a hit says: the records that were added with this text, or what the store has made of them."""
        cited = self._cited.get(entry, {})
        if entry and not cited:
            return ()
        if same := [number for number in cited if self._statements[number] == text]:
            return self.transitions.select(same)
        if text not in self._rewritten:
            self._rewritten[text] = found = self._read_back(text, tuple(cited))
            self.untagged += not entry and isinstance(found, Record)
        return (self._rewritten[text],)

    def _read_back(self, text: str, cited: tuple[RecordId, ...]) -> Record | Note:
        """A rewritten text as a record of what it states, or as a note."""
        number = self.transitions.new_id()
        known = {quote_state(one.state): one for record in self.transitions for one, _ in record.outcomes}
        for stated in _statements(text):
            outcome = known.get(stated["after"])
            if stated["score"] is not None:
                state = stated["after"] if outcome is None else outcome.state
                outcome = Outcome(state, float(stated["score"]), stated["ended"] is not None)
            before = next((r.state for r in self.transitions if quote_state(r.state) == stated["state"]), None)
            is_one = not _SEVERAL.search(stated["state"] + stated["after"])
            if is_one and outcome is not None and before is not None:
                now = max((record.now for record in self.transitions.select(cited)), default=AgentClock())
                return Record(number, before, json.loads(stated["action"]), ((outcome, 1.0),), 1, now)
        return Note(number, text, cited)

    def peek(self, state: str, now: AgentClock) -> Retrieved:
        """What `retrieve` returns."""
        return self.retrieve(state, None, now)

    def _note_written(self, record: Record) -> None:
        """Give a record its entry, a new one if it shares none."""
        self._cache.clear()
        text = _render(record)
        entry = self._merged.get(text)
        is_new = entry is None or entry not in self._cited
        if entry is None or is_new:
            entry = self._store.add(text, _describe([record], [self._next_place] if self.merge else []))
        self._note_entry(record.id, entry, text, self._next_place)
        if not is_new:
            self._update(entry)

    def _note_entry(self, number: RecordId, entry: str, text: str, place: int) -> None:
        if self.merge:
            self._merged[text] = entry
        self._entries[number] = entry
        self._statements[number] = text
        self._cited.setdefault(entry, {})[number] = None
        self._places[number] = place
        self._next_place = max(self._next_place, place + 1)

    def _update(self, entry: str) -> None:
        """Bring the metadata of a merged entry up to date, so that the store can be opened again."""
        if not self.merge or not isinstance(self._store, ListedStore):
            return
        records = self.transitions.select(self._cited[entry])
        about = _describe(records, [self._places[record.id] for record in records])
        if isinstance(self._store, UpdatedStore):
            self._store.update(entry, about)
            return
        text = _render(records[0])
        self._store.delete(entry)
        moved = self._store.add(text, about)
        self._cited[moved] = self._cited.pop(entry)
        self._entries |= dict.fromkeys(self._cited[moved], moved)
        self._merged[text] = moved

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records, and delete the entries that no other record has; no item depends on them."""
        removed = self.transitions.remove(ids)
        self._cache.clear()
        for entry in dict.fromkeys(self._entries[number] for number in removed):
            for number in removed:
                self._cited[entry].pop(number, None)
            if self._cited[entry]:
                self._update(entry)
            else:
                del self._cited[entry]
                self._store.delete(entry)
        for number in removed:
            del self._entries[number], self._places[number], self._statements[number]
        return Removed(removed)


def _statements(text: str) -> Iterator[re.Match[str]]:
    """How a text can be read as a statement, without what a store has put behind it."""
    if (scored := _SCORED.match(text)) is not None and not _DENIED.search(scored[2]):
        text = scored[1]
    while True:
        if (stated := _STATEMENT.search(text)) is not None:
            if _DENIED.search(text, stated.end("after")):
                return
            yield stated
        tail = _TAIL.match(text)
        if tail is None or _DENIED.search(tail[2]):
            return
        text = tail[1]


def _render(record: Record) -> str:
    """The statement of a record."""
    return render_statement(record.state, record.action, record.outcomes, record.n if record.verified else None)


def _describe(records: Sequence[Record], places: Sequence[int]) -> dict[str, Scalar]:
    """The metadata of the entry of these records; places are given where the memory merges."""
    record = records[0]
    about: dict[str, Scalar] = {"record": record.id, "action": record.action}
    about |= {"episode": record.now.episode, "step": record.now.step, "verified": record.verified}
    times = [(place, *one.now) for place, one in zip(places, records, strict=False)][-MOST_TIMES:]
    return about | {"transition": json.dumps(record)} | ({"times": json.dumps(times)} if times else {})

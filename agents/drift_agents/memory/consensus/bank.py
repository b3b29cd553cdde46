"""The shared bank and the private banks of a team's items.

* `ConsensusItem` - something learned in words, with the evidence that it rests on and whose bank it stands in
* `ItemBanks` - all items: what is similar enough comes back, what loses its evidence falls

Source: EDV, sections 4.4 and 4.5, appendices C.2 and C.3.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.embedding.base import Embedding, cosine
from drift_agents.memory.citations import Citations, kept_suffix
from drift_agents.types import Note, RecordId

SHARED = ""
"""The owner of what everybody reads."""


class ConsensusItem(NamedTuple):
    """Something learned in words.

    Args:
        id: its number.
        owner: the member whose private bank it stands in; `SHARED` for the shared one.
        title: what it is called.
        description: one sentence about it.
        content: what is to be done, or not to be done, and why.
        task: the task that it was learned from.
        states: the states that it speaks of, in order of first mention.
        evidence: the records that it rests on, in order.
        ordered: whether they are the steps of one way.
        length: how many records there were before any was cut off.
        wrong: whether it was written wrong on purpose; nobody who reads it is told.
    """

    id: RecordId
    owner: str
    title: str
    description: str
    content: str
    task: str
    states: tuple[str, ...]
    evidence: tuple[RecordId, ...]
    ordered: bool
    length: int
    wrong: bool = False

    def note(self) -> Note:
        """The item as it stands in a prompt; one that was cut says so."""
        gone = self.length - len(self.evidence) if self.ordered else 0
        cut = f" (What it says of its first {gone} steps no longer holds.)" if gone else ""
        return Note(self.id, f"{self.title}. {self.description} {self.content}{cut}", self.evidence)


class ItemBanks:
    """All items: append-only but for what falls with its evidence.

    An item is as similar to a situation as the most similar of the states that it speaks of. A state
    that counts as the same by the matching rule has similarity 1; otherwise it is the cosine between
    the two texts "task, state": the paper's query is "the current task description with the active
    page context", and it does not say what of an item is embedded.

    Args:
        embedding: of situations.
        cascade: what becomes of an item whose evidence goes (`drift_agents.memory.citations`); `cut` takes
            the beginning of a way away, up to the step that went.
        key: the matching rule's key of a state.

    Raises:
        ArgumentError: if there is no such rule.
    """

    def __init__(self, embedding: Embedding, cascade: str, key: Callable[[str], Hashable]) -> None:
        self.embedding, self.cascade, self.key = embedding, cascade, key
        self._citations = Citations(cascade)
        self._items: dict[RecordId, ConsensusItem] = {}
        self._index: _Index | None = None

    def __len__(self) -> int:
        """How many items there are."""
        return len(self._items)

    def __iter__(self) -> Iterator[ConsensusItem]:
        """All items, oldest first."""
        return iter(self._items.values())

    def __contains__(self, item_id: object) -> bool:
        """Whether an item of that number is there."""
        return item_id in self._items

    def get(self, item_id: RecordId) -> ConsensusItem | None:
        """The item of that number, if it is there."""
        return self._items.get(item_id)

    def cited(self, numbers: Iterable[RecordId]) -> frozenset[RecordId]:
        """The records that these items rest on, those that went included; unknown numbers are passed over."""
        return frozenset(record for number in numbers for record in self._citations.evidence(number))

    def write(self, item: ConsensusItem, lost: Container[RecordId] = ()) -> None:
        """Append an item.

        Args:
            item: the item.
            lost: which of its evidence is gone, when it is read back from a snapshot.

        Raises:
            ArgumentError: if it cites nothing.
        """
        self._citations.add(item.id, item.evidence, lost)
        self._items[item.id] = item
        self._index = None

    def similar(self, task: str, state: str, owners: Container[str], least: float) -> list[ConsensusItem]:
        """The items that are similar enough, the most similar first; of equal ones the newest.

        Args:
            task: the present task.
            state: the present state.
            owners: whose banks are asked.
            least: the lowest similarity that is enough.
        """
        if not self._items:
            return []
        if self._index is None:
            self._index = _Index(list(self), self.embedding, self.key)
        scores = self._index.scores(task, state)
        found = [
            (score, item)
            for score, item in zip(scores.tolist(), self._index.items, strict=True)
            if score >= least and item.owner in owners
        ]
        return [item for _, item in sorted(found, key=lambda pair: (-pair[0], -pair[1].id))]

    def fall(self, gone: Sequence[RecordId], there: Container[RecordId]) -> tuple[RecordId, ...]:
        """Take note that records went: items fall, or ways are cut.

        Args:
            gone: the numbers of the records.
            there: what is still there.

        Returns:
            The numbers of the items that fell.
        """
        if not gone:
            return ()
        cut: list[ConsensusItem] = []
        fell: list[RecordId] = []
        if self.cascade == "cut":
            touched = dict.fromkeys(number for record in gone for number in self._citations.citing(record))
            for item in (self._items[number] for number in touched):
                if item.ordered:
                    rest = kept_suffix(item.evidence, there)
                    if rest:
                        cut.append(item._replace(evidence=rest))
                    else:
                        fell.append(item.id)
            for item in cut:
                self._citations.add(item.id, item.evidence)
                self._items[item.id] = item
            self._citations.fall(fell)
        fell += self._citations.fall(gone)
        for number in fell:
            del self._items[number]
        if fell:
            self._index = None
        return tuple(sorted(fell))

    def snapshot(self) -> list[Any]:
        """All items as plain data."""
        return [
            [*item[:6], list(item.states), list(item.evidence), item.ordered, item.length, item.wrong] for item in self
        ]

    def restored(self, data: Iterable[Any], there: Container[RecordId]) -> ItemBanks:
        """Banks like these with the items of a snapshot.

        Args:
            data: what `snapshot` made.
            there: the records that there are.

        Raises:
            TypeError, ValueError: if the data is no snapshot of banks.
        """
        fresh, last = ItemBanks(self.embedding, self.cascade, self.key), -1
        for number, owner, title, description, content, task, states, evidence, ordered, length, wrong in data:
            item = ConsensusItem(
                int(number),
                str(owner),
                str(title),
                str(description),
                str(content),
                str(task),
                tuple(map(str, states)),
                tuple(map(int, evidence)),
                bool(ordered),
                int(length),
                bool(wrong),
            )
            if not last < item.id or not 0 < len(item.evidence) <= item.length or item.id in item.evidence:
                raise ValueError(f"item {item.id} should have a larger number than the one before, and evidence")
            fresh.write(item, {number for number in item.evidence if number not in there})
            last = item.id
        return fresh


class _Index:
    """Items by situation, for one set of items."""

    def __init__(self, items: list[ConsensusItem], embedding: Embedding, key: Callable[[str], Hashable]) -> None:
        self.items, self._embedding, self._key = items, embedding, key
        places: dict[tuple[str, str], int] = {}
        rows, columns = [], []
        for row, item in enumerate(items):
            for state in item.states:
                rows.append(row)
                columns.append(places.setdefault((item.task, state), len(places)))
        self._rows, self._columns = np.array(rows, np.int64), np.array(columns, np.int64)
        self._keys = [key(state) for _, state in places]
        self._vectors = embedding.embed([situation(*place) for place in places])
        self._known: dict[tuple[str, str], NDArray[np.float64]] = {}

    def scores(self, task: str, state: str) -> NDArray[np.float64]:
        """How similar every item is to a situation; shape (items,)."""
        known = self._known.get((task, state))
        if known is None:
            similar = cosine(self._embedding.embed([situation(task, state)])[0], self._vectors)
            here = self._key(state)
            similar[[key == here for key in self._keys]] = 1.0
            known = np.full(len(self.items), -1.0)
            np.maximum.at(known, self._rows, similar[self._columns])
            self._known[task, state] = known
        return known


def situation(task: str, state: str) -> str:
    """A task and a state as one text."""
    return f"{task}\n{state}"

"""The shared bank and the private banks of a team's items.

* `ConsensusItem` - an item with its evidence and the owner of its bank
* `ItemBanks` - all items, retrieved by similarity, removed with their evidence

Source: EDV, sections 4.4 and 4.5, appendices C.2 and C.3.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.embedding.base import Embedding, cosine
from drift_agents.memory.citations import Citations, valid_suffix
from drift_agents.types import Note, RecordId

SHARED = ""
"""The owner of the shared bank."""


class ConsensusItem(NamedTuple):
    """An item of a bank.

    Args:
        id: its number.
        owner: the member whose private bank it belongs to; `SHARED` for the shared one.
        title: its title.
        description: one sentence about it.
        content: what to do, or to avoid, and why.
        task: the task that it was learned from.
        states: the states of its evidence, in order of first mention.
        evidence: the records that it cites, in order.
        ordered: whether they are consecutive steps of one trajectory.
        length: the number of records before any was cut off.
        wrong: whether it is wrong on purpose; its text does not say so.
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
        """The item as it is in a prompt; the text of one that was cut says so."""
        lost = self.length - len(self.evidence) if self.ordered else 0
        cut = f" (What it says of its first {lost} steps no longer holds.)" if lost else ""
        return Note(self.id, f"{self.title}. {self.description} {self.content}{cut}", self.evidence)


class ItemBanks:
    """All items: append-only, except that items are removed with their evidence.

    The similarity of an item to a situation is that of its most similar state. A state that is equal by
    the matching rule has similarity 1; otherwise it is the cosine between the two texts "task, state":
    the paper's query is "the current task description with the active page context", and it does not
    say which text of an item is embedded.

    Args:
        embedding: of situations.
        cascade: what happens to an item whose evidence is removed (`drift_agents.memory.citations`); `cut` cuts
            the beginning of a path, up to the removed step.
        key: the matching rule's key of a state.

    Raises:
        ArgumentError: if there is no such rule.
    """

    def __init__(self, embedding: Embedding, cascade: str, key: Callable[[str], Hashable]) -> None:
        self.embedding, self.cascade, self.key = embedding, cascade, key
        self._citations = Citations(cascade)
        self._items: dict[RecordId, ConsensusItem] = {}
        self._index: _SituationIndex | None = None

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[ConsensusItem]:
        """All items, oldest first."""
        return iter(self._items.values())

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._items

    def get(self, item_id: RecordId) -> ConsensusItem | None:
        """The item of that number, or `None`."""
        return self._items.get(item_id)

    def cited(self, numbers: Iterable[RecordId]) -> frozenset[RecordId]:
        """The records that these items cite, removed ones included; unknown numbers are ignored."""
        return frozenset(record for number in numbers for record in self._citations.evidence(number))

    def write(self, item: ConsensusItem) -> None:
        """Append an item.

        Args:
            item: the item.

        Raises:
            ArgumentError: if it cites nothing.
        """
        self._citations.add(item.id, item.evidence)
        self._items[item.id] = item
        self._index = None

    def similar(self, task: str, state: str, owners: Container[str], least: float) -> list[ConsensusItem]:
        """The items above a similarity, the most similar first; of equal ones the newest.

        Args:
            task: the present task.
            state: the present state.
            owners: whose banks are searched.
            least: the lowest similarity.
        """
        if not self._items:
            return []
        if self._index is None:
            self._index = _SituationIndex(list(self), self.embedding, self.key)
        scores = self._index.scores(task, state)
        found = [
            (score, item)
            for score, item in zip(scores.tolist(), self._index.items, strict=True)
            if score >= least and item.owner in owners
        ]
        return [item for _, item in sorted(found, key=lambda pair: (-pair[0], -pair[1].id))]

    def remove_records(self, removed: Sequence[RecordId], present: Container[RecordId]) -> tuple[RecordId, ...]:
        """Remove or cut the items that depend on removed records.

        Args:
            removed: the numbers of the records.
            present: the records that remain.

        Returns:
            The numbers of the removed items.
        """
        if not removed:
            return ()
        cut: list[ConsensusItem] = []
        items: list[RecordId] = []
        if self.cascade == "cut":
            for item in (self._items[number] for number in self._citations.citing_any(removed)):
                if item.ordered:
                    suffix = valid_suffix(item.evidence, present)
                    if suffix:
                        cut.append(item._replace(evidence=suffix))
                    else:
                        items.append(item.id)
            for item in cut:
                self._citations.add(item.id, item.evidence)
                self._items[item.id] = item
            self._citations.remove(items)
        items += self._citations.remove(removed)
        for number in items:
            del self._items[number]
        if items:
            self._index = None
        return tuple(sorted(items))


class _SituationIndex:
    """The similarity of a fixed set of items to situations."""

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
        self._scores: dict[tuple[str, str], NDArray[np.float64]] = {}

    def scores(self, task: str, state: str) -> NDArray[np.float64]:
        """The similarity of every item to a situation; shape (items,)."""
        scores = self._scores.get((task, state))
        if scores is None:
            similar = cosine(self._embedding.embed([situation(task, state)])[0], self._vectors)
            here = self._key(state)
            similar[[key == here for key in self._keys]] = 1.0
            scores = np.full(len(self.items), -1.0)
            np.maximum.at(scores, self._rows, similar[self._columns])
            self._scores[task, state] = scores
        return scores


def situation(task: str, state: str) -> str:
    """A task and a state as one text."""
    return f"{task}\n{state}"

"""Derived items depend on evidence and are removed with it: one rule for every memory. And items that are false.

A verifier removes records of transitions. Insights, skills, summaries and trajectories have no (state, action) of their
own that a verifier could probe, so they cite the records that they were made from. Otherwise a verifier would have no
effect on half of the memories.

Source of the false items: EDV, section 5.4: "we inject erroneous yet internally coherent experiences (e.g., incorrect
payment rules) accounting for 10% of the total memory volume". The paper does not say how they are made. Here two
actions that were tried in one state exchange their outcomes: each claim is possible in that state and environment, and
neither is true.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Generic, Protocol, TypeVar

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.types import Outcome, Record, RecordId, Transition
from drift_envs.checks import check_choice, check_interval

CASCADES = ("any", "majority", "cut")
"""`any`: an item is removed with its first piece of evidence. `majority`: when more than half of its evidence
is removed. `cut`: the same for a text; a trajectory is cut instead of removed (`valid_suffix`)."""


def check_cascade(cascade: str) -> str:
    """Return the name of a cascade rule.

    Args:
        cascade: one of `CASCADES`.

    Raises:
        ArgumentError: if it is none of them.
    """
    return check_choice("cascade", cascade, CASCADES)


class Citations:
    """Which items cite which evidence, and which are removed with it.

    Items and evidence are numbers of one transition store (`TransitionStore.new_id`), so an item may cite items too;
    then a removal cascades. The cost of a removal depends on the citations it touches, not on how many there are.

    Args:
        cascade: how much of its evidence an item may lose, one of `CASCADES`.

    Raises:
        ArgumentError: if there is no such rule.

    Example:
        >>> citations = Citations("majority")
        >>> citations.add(10, [0, 1, 2])
        >>> citations.add(11, [10])
        >>> citations.remove([0]), citations.remove([2])
        ((), (10, 11))
    """

    def __init__(self, cascade: str = "majority") -> None:
        self.cascade = check_cascade(cascade)
        self._evidence: dict[RecordId, tuple[RecordId, ...]] = {}
        self._lost: dict[RecordId, int] = {}
        self._citing: dict[RecordId, dict[RecordId, None]] = {}

    def __iter__(self) -> Iterator[RecordId]:
        """The items, in the order in which they were first added."""
        return iter(self._evidence)

    def add(self, item: RecordId, evidence: Iterable[RecordId]) -> None:
        """Store the evidence of an item, in place of evidence stored before.

        Args:
            evidence: the numbers that it cites; duplicates count once.

        Raises:
            ArgumentError: if it cites nothing, or itself: it could never be removed.
        """
        cited = tuple(dict.fromkeys(evidence))
        if not cited or item in cited:
            raise ArgumentError(f"`evidence` of item {item} should cite something else than itself. Received {cited}")
        if item in self._evidence:
            self._remove_from_index(item)
        self._evidence[item] = cited
        self._lost[item] = 0
        for number in cited:
            self._citing.setdefault(number, {})[item] = None

    def evidence(self, item: RecordId) -> tuple[RecordId, ...]:
        """What an item was made from, removed evidence included; empty for an unknown item."""
        return self._evidence.get(item, ())

    def citing(self, number: RecordId) -> tuple[RecordId, ...]:
        """The items that cite this number, in ascending order."""
        return tuple(sorted(self._citing.get(number, ())))

    def citing_any(self, numbers: Iterable[RecordId]) -> list[RecordId]:
        """The items that cite at least one of these numbers, in order of first citation."""
        return list(dict.fromkeys(item for number in numbers for item in self.citing(number)))

    def dependents(self, numbers: Iterable[RecordId]) -> set[RecordId]:
        """The items that cite these numbers, directly or through other items."""
        todo, found = list(numbers), set[RecordId]()
        while todo:
            for item in self._citing.get(todo.pop(), ()):
                if item not in found:
                    found.add(item)
                    todo.append(item)
        return found

    def remove(self, numbers: Iterable[RecordId]) -> tuple[RecordId, ...]:
        """Remove evidence or items, and the items that lost too much evidence.

        Args:
            numbers: numbers of evidence, or of items.

        Returns:
            The items removed by the cascade, each before those that depend on it; without the given numbers.
        """
        removed: list[RecordId] = []
        todo = deque(numbers)
        for item in tuple(todo):
            self._drop(item)
        while todo:
            for item in sorted(self._citing.pop(todo.popleft(), ())):
                self._lost[item] += 1
                if self.cascade == "any" or 2 * self._lost[item] > len(self._evidence[item]):
                    self._drop(item)
                    removed.append(item)
                    todo.append(item)
        return tuple(removed)

    def _drop(self, item: RecordId) -> None:
        if item in self._evidence:
            self._remove_from_index(item)
            del self._evidence[item], self._lost[item]

    def _remove_from_index(self, item: RecordId) -> None:
        for number in self._evidence[item]:
            items = self._citing.get(number)
            if items is not None:
                items.pop(item, None)
                if not items:
                    del self._citing[number]


def valid_suffix(steps: Sequence[RecordId], present: Container[RecordId]) -> tuple[RecordId, ...]:
    """The steps after the last removed one (`cut`).

    The steps before a transition that no longer holds now lead elsewhere; those after it may still hold.

    Args:
        steps: the evidence of every step, in order.
        present: what was not removed.

    Example:
        >>> valid_suffix([3, 4, 5, 6], present={3, 5, 6})
        (5, 6)
    """
    for place in range(len(steps) - 1, -1, -1):
        if steps[place] not in present:
            return tuple(steps[place + 1 :])
    return tuple(steps)


T = TypeVar("T")


class PathItem(Protocol):
    """An item that cites the records of its steps."""

    @property
    def id(self) -> RecordId:
        """Its number."""
        ...

    @property
    def steps(self) -> tuple[RecordId, ...]:
        """The records that it cites, in order."""
        ...

    def keep_last(self: T, number: int) -> T:
        """The item with its last steps alone."""
        ...


Cited = TypeVar("Cited", bound=PathItem)


class ItemStore(Generic[Cited]):
    """Items by number, which are removed or cut with the records that they cite.

    Args:
        cascade: what happens to an item with removed steps, one of `CASCADES`; `cut` keeps the steps after the last
            removed one.

    Raises:
        ArgumentError: if there is no such cascade.

    Example:
        >>> from drift_agents.memory.trajectory import StoredTrajectory
        >>> store = ItemStore("cut")
        >>> store.add(StoredTrajectory(9, "Go.", (("a", "0"), ("b", "0"), ("c", "1")), (3, 4, 5), 1.0))
        >>> [trajectory.steps for trajectory in store.remove_records([4], present={3, 5})], store[9].steps
        ([(3, 4, 5)], (5,))
    """

    def __init__(self, cascade: str) -> None:
        self.cascade = cascade
        self.citations = Citations(cascade)
        self._items: dict[RecordId, Cited] = {}

    def __iter__(self) -> Iterator[Cited]:
        """All items, oldest first."""
        return iter(self._items.values())

    def __contains__(self, number: object) -> bool:
        return number in self._items

    def __getitem__(self, number: RecordId) -> Cited:
        """The item of that number, which must be stored."""
        return self._items[number]

    def add(self, item: Cited) -> None:
        """Store an item, in place of one of the same number.

        Raises:
            ArgumentError: if it cites nothing.
        """
        self.citations.add(item.id, item.steps)
        self._items[item.id] = item

    def drop(self, number: RecordId) -> None:
        """Remove an item, which must be stored."""
        self.citations.remove([number])
        del self._items[number]

    def citing(self, record_id: RecordId) -> tuple[RecordId, ...]:
        """The numbers of the items with this record among their steps."""
        return self.citations.citing(record_id)

    def can_cut(self, item: Cited) -> bool:
        """Whether an item's steps follow each other, so that `cut` keeps the last ones; else it is a text."""
        return True

    def remove_records(self, removed: Sequence[RecordId], present: Container[RecordId]) -> tuple[Cited, ...]:
        """Remove or cut the items that depend on removed records.

        Args:
            removed: the numbers of the records.
            present: the records that remain.

        Returns:
            The items removed or cut, as they were before.
        """
        citing = self.citations.citing_any(removed) if self.cascade == "cut" else []
        paths = [item for number in citing if self.can_cut(item := self._items[number])]
        for item in paths:
            if length := len(valid_suffix(item.steps, present)):
                self.add(item.keep_last(length))
            else:
                self.drop(item.id)
        return (*paths, *(self._items.pop(number) for number in self.citations.remove(removed)))


def swap_outcomes(
    records: Iterable[Record], key: Callable[[str], Hashable], rng: np.random.Generator
) -> tuple[Transition, ...]:
    """Two actions of one state with each other's outcomes.

    Pairs in which one outcome ended the episode and the other did not, or with different scores, are
    preferred.

    Args:
        records: the evidence, oldest first; of several records of one state and action the newest counts.
        key: the matching rule's key of a state.

    Returns:
        Two claims, neither of which was experienced; none if no state has two actions with different outcomes.

    Example:
        >>> from drift_agents.types import AgentClock
        >>> outcomes = {"1": Outcome("hole", 0.0, True), "2": Outcome("ice", 0.0, False)}
        >>> records = [
        ...     Record(i, "a", action, ((outcome, 1.0),), 1, AgentClock())
        ...     for i, (action, outcome) in enumerate(outcomes.items())
        ... ]
        >>> [(claim.action, claim.outcome.state) for claim in swap_outcomes(records, str, np.random.default_rng(0))]
        [('1', 'ice'), ('2', 'hole')]
    """
    newest: dict[Hashable, dict[str, Record]] = {}
    for record in records:
        newest.setdefault(key(record.state), {})[record.action] = record
    pairs = [
        pair
        for actions in newest.values()
        for pair in combinations(actions.values(), 2)
        if pair[0].outcome != pair[1].outcome
    ]
    decisive = [pair for pair in pairs if _result(pair[0].outcome) != _result(pair[1].outcome)]
    pairs = decisive or pairs
    if not pairs:
        return ()
    one, other = pairs[int(rng.integers(len(pairs)))]
    return (
        Transition(one.state, one.action, other.outcome),
        Transition(other.state, other.action, one.outcome),
    )


def _result(outcome: Outcome) -> tuple[float, bool]:
    return outcome.score, outcome.ended


class Contaminator:
    """How many wrong items are due among correct ones, and what they claim.

    It has no state: the number follows from the numbers of items, and each claim is drawn by the number
    of wrong items so far. So a copy of a memory continues like the original.

    Args:
        share: wrong items among all items, in [0, 1); .1 in the paper.

    Raises:
        ArgumentError: if it is outside its range.

    Example:
        >>> contaminator = Contaminator(0.1)
        >>> [contaminator.due(correct, wrong=0) for correct in (0, 8, 9, 18)]
        [0, 0, 1, 2]
    """

    def __init__(self, share: float = 0.0) -> None:
        self.share = check_interval("contaminate", share, "[0, 1)")

    def due(self, correct: int, wrong: int) -> int:
        """How many wrong items are to be written now.

        Args:
            correct: how many correct items were written so far.
            wrong: how many wrong ones were.
        """
        # The small term compensates rounding: .1 * 9 / .9 is 1.
        return max(0, int(self.share * correct / (1 - self.share) + 1e-9) - wrong)

    def draw(
        self, records: Iterable[Record], key: Callable[[str], Hashable], correct: int, wrong: int
    ) -> Iterator[tuple[Transition, ...]]:
        """What each of the wrong items claims that are due; none where no state has two actions with unequal outcomes.

        Args:
            records: the evidence, oldest first; read again for each item.
            key: the matching rule's key of a state.
            correct: how many correct items were written so far.
            wrong: how many wrong ones were.
        """
        for number in range(wrong, wrong + self.due(correct, wrong)):
            if not (claims := swap_outcomes(records, key, np.random.default_rng([0, number]))):
                return
            yield claims

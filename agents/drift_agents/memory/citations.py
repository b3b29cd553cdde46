"""Derived items rest on evidence and fall with it: one rule for every memory.

* `CASCADES` - how much of its evidence an item may lose
* `check_cascade` - refuses any other name
* `Citations` - which items rest on what, and which fall when that goes
* `kept_suffix` - what is left of a trajectory

A verifier removes records of transitions. Insights, skills, summaries and trajectories have no
(state, action) that it could ask about, so they cite the records that they were made from. Without
that a verifier would do nothing at all on half of the memories.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence

from drift_agents.errors import ArgumentError
from drift_agents.types import RecordId

CASCADES = ("any", "majority", "cut")
"""`any`: an item falls with the first piece of evidence that goes. `majority`: when more than half
of it went. `cut`: the same for a text; a trajectory is cut instead of dropped (`kept_suffix`)."""


def check_cascade(cascade: str) -> str:
    """The name of the rule, if there is such a rule.

    Args:
        cascade: one of `CASCADES`.

    Raises:
        ArgumentError: if it is none of them.
    """
    if cascade not in CASCADES:
        raise ArgumentError(f"`cascade` should be one of {', '.join(CASCADES)}. Received {cascade!r}")
    return cascade


class Citations:
    """Which items rest on what, and which fall when that goes.

    Items and evidence are numbers of one ledger (`Ledger.new_id`), so an item may cite items too:
    then what falls pulls down what rests on it. A removal costs what it touches, whatever else is held.

    Args:
        cascade: how much of its evidence an item may lose, one of `CASCADES`.

    Raises:
        ArgumentError: if there is no such rule.

    Example:
        >>> citations = Citations("majority")
        >>> citations.add(10, [0, 1, 2])
        >>> citations.add(11, [10])
        >>> citations.fall([0]), citations.fall([2])
        ((), (10, 11))
    """

    def __init__(self, cascade: str = "majority") -> None:
        self.cascade = check_cascade(cascade)
        self._evidence: dict[RecordId, tuple[RecordId, ...]] = {}
        self._lost: dict[RecordId, int] = {}
        self._citing: dict[RecordId, dict[RecordId, None]] = {}

    def __len__(self) -> int:
        """How many items there are."""
        return len(self._evidence)

    def __contains__(self, item: object) -> bool:
        """Whether an item of that number is there."""
        return item in self._evidence

    def __iter__(self) -> Iterator[RecordId]:
        """The items, in the order in which they were first added."""
        return iter(self._evidence)

    def add(self, item: RecordId, evidence: Iterable[RecordId], lost: Container[RecordId] = ()) -> None:
        """Note what an item rests on; what is said anew about an item takes the place of what was said before.

        Args:
            item: its number.
            evidence: the numbers that it cites; one cited twice counts once.
            lost: of these, what is gone already, when items are read back from a snapshot.

        Raises:
            ArgumentError: if it cites nothing, or itself: it could never fall.
        """
        cited = tuple(dict.fromkeys(evidence))
        if not cited or item in cited:
            raise ArgumentError(f"`evidence` of item {item} should cite something else than itself. Received {cited}")
        if item in self._evidence:
            self._let_go(item)
        there = [number for number in cited if number not in lost]
        self._evidence[item] = cited
        self._lost[item] = len(cited) - len(there)
        for number in there:
            self._citing.setdefault(number, {})[item] = None

    def evidence(self, item: RecordId) -> tuple[RecordId, ...]:
        """What an item was made from, what is gone included; nothing for an unknown item."""
        return self._evidence.get(item, ())

    def citing(self, number: RecordId) -> tuple[RecordId, ...]:
        """The items that cite this one, in the order of their numbers."""
        return tuple(sorted(self._citing.get(number, ())))

    def resting(self, numbers: Iterable[RecordId]) -> set[RecordId]:
        """The items that rest on these, through other items or not."""
        todo, found = list(numbers), set[RecordId]()
        while todo:
            for item in self._citing.get(todo.pop(), ()):
                if item not in found:
                    found.add(item)
                    todo.append(item)
        return found

    def fall(self, gone: Iterable[RecordId]) -> tuple[RecordId, ...]:
        """Take note that something went.

        Args:
            gone: numbers of evidence, or of items.

        Returns:
            The items that fell, each before those that it pulled down; without those that were asked for.
        """
        fell: list[RecordId] = []
        todo = deque(gone)
        for item in tuple(todo):
            self._drop(item)
        while todo:
            for item in sorted(self._citing.pop(todo.popleft(), ())):
                self._lost[item] += 1
                if self.cascade == "any" or 2 * self._lost[item] > len(self._evidence[item]):
                    self._drop(item)
                    fell.append(item)
                    todo.append(item)
        return tuple(fell)

    def _drop(self, item: RecordId) -> None:
        if item in self._evidence:
            self._let_go(item)
            del self._evidence[item], self._lost[item]

    def _let_go(self, item: RecordId) -> None:
        """Take an item out of the index of what it cites."""
        for number in self._evidence[item]:
            items = self._citing.get(number)
            if items is not None:
                items.pop(item, None)
                if not items:
                    del self._citing[number]


def kept_suffix(steps: Sequence[RecordId], there: Container[RecordId]) -> tuple[RecordId, ...]:
    """What is left of a trajectory: the steps behind the last one that went (`cut`).

    What led up to a step that is no longer true leads elsewhere now; what came behind it may hold.

    Args:
        steps: the evidence of every step, in order.
        there: what is still there.

    Example:
        >>> kept_suffix([3, 4, 5, 6], there={3, 5, 6})
        (5, 6)
    """
    for place in range(len(steps) - 1, -1, -1):
        if steps[place] not in there:
            return tuple(steps[place + 1 :])
    return tuple(steps)

"""Observations of a memory stream as columns, for those that rank them.

* `StateColumns` - the observations of one state, as columns that grow with them
* `ObservationColumns` - all observations, as columns
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Hashable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.types import Record, RecordId


class StateColumns:
    """The observations of one state, oldest first, as columns that grow with them.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> place = StateColumns()
        >>> place.append(Record(7, "a", "1", ((Outcome("b", 0.0, False), 1.0),), 1, AgentClock()), 10, 0)
        >>> place.refresh(7, 3)
        >>> [column.tolist() for column in place.columns()], place.actions
        ([[7], [10], [3]], {'1': 1})
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        """The observations."""
        self.actions: dict[str, int] = {}
        """How many there are of each action."""
        self._items, self._importance, self._access = array("q"), array("q"), array("q")

    def append(self, record: Record, importance: int, access: int) -> None:
        """Add the newest one.

        Args:
            record: the observation.
            importance: from 1 to 10.
            access: the hour in which it was written or recalled last.
        """
        self.records.append(record)
        self.actions[record.action] = self.actions.get(record.action, 0) + 1
        self._items.append(record.id)
        self._importance.append(importance)
        self._access.append(access)

    def refresh(self, item: RecordId, hour: int) -> None:
        """Note that one of them was recalled."""
        self._access[bisect_left(self._items, item)] = hour

    def columns(self) -> Iterator[NDArray[np.int64]]:
        """Id, importance and access of each; shape (n,) each."""
        return (np.array(column, np.int64) for column in (self._items, self._importance, self._access))


class ObservationColumns(NamedTuple):
    """All observations, for questions to the whole stream.

    Args:
        records: the observations, oldest first.
        traces: id, importance and access of each; shape (3, n).
        place: the row of its state in `vectors`, of each; shape (n,).
        places: key of a state -> row.
        vectors: of the states; shape (states, dimension).
    """

    records: tuple[Record, ...]
    traces: NDArray[np.int64]
    place: NDArray[np.int64]
    places: dict[Hashable, int]
    vectors: NDArray[np.float64]

"""The ranking of a memory stream: recency, importance and relevance, each scaled to [0, 1], added up.

* `scaled` - values between their least and their greatest
* `salience` - the score of every item of a stream
* `StateColumns`, `ObservationColumns` - the observations of one state, or of all, as columns to rank

Source: Park et al., "Generative agents: interactive simulacra of human behavior" (UIST 2023), section 4.1.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drift_agents.types import Record, RecordId

DECIMALS = 9
"""Of a score: the last bits of a power differ between machines, and should not decide ties."""


def scaled(values: ArrayLike) -> NDArray[np.float64]:
    """Values between their least (0) and their greatest (1); all 0 when they are equal.

    Args:
        values: shape (n,).

    Example:
        >>> scaled([2, 10, 4]).tolist(), scaled([3, 3]).tolist()
        ([0.0, 1.0, 0.25], [0.0, 0.0])
    """
    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size:
        return numbers
    low, high = numbers.min(), numbers.max()
    return (numbers - low) / (high - low) if high > low else np.zeros_like(numbers)


def salience(
    access: Sequence[int] | NDArray[np.int64],
    importance: ArrayLike,
    relevance: ArrayLike,
    decay: float = 0.995,
    weights: Sequence[float] = (1.0, 1.0, 1.0),
) -> NDArray[np.float64]:
    """The score of every item: the weighted sum of its scaled recency, importance and relevance.

    Recency is decay ** (hours since the last access). Scaling removes a common factor of all recencies,
    so hours are counted from the latest access instead of the present: the result is exactly the same at
    any later time.

    Args:
        access: the hour of each item's last access; shape (n,).
        importance: from 1 to 10; shape (n,).
        relevance: similarity to the query, in [-1, 1]; shape (n,).
        decay: the factor of recency in one hour, in (0, 1].
        weights: of recency, importance and relevance.

    Returns:
        Scores from 0 to the sum of the weights, rounded to `DECIMALS`; shape (n,).

    Example:
        >>> salience([0, 10, 10], [10, 1, 1], [1.0, 0.5, 1.0]).tolist()
        [2.0, 1.0, 2.0]
    """
    hours = np.asarray(access, dtype=np.float64)
    if not hours.size:
        return hours
    recency = decay ** (hours.max() - hours)
    parts = zip(weights, (recency, importance, relevance), strict=True)
    return np.round(sum((weight * scaled(part) for weight, part in parts), np.zeros(hours.shape)), DECIMALS)


class StateColumns:
    """The observations of one state, oldest first, as growing columns.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> columns = StateColumns()
        >>> columns.append(Record(7, "a", "1", ((Outcome("b", 0.0, False), 1.0),), 1, AgentClock()), 10, 0)
        >>> columns.refresh(7, 3)
        >>> [column.tolist() for column in columns.columns()], columns.actions
        ([[7], [10], [3]], {'1': 1})
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        """The observations."""
        self.actions: dict[str, int] = {}
        """The number of observations of each action."""
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
        """Set the last access of an observation."""
        self._access[bisect_left(self._items, item)] = hour

    def columns(self) -> Iterator[NDArray[np.int64]]:
        """Id, importance and last access of each; shape (n,) each."""
        return (np.array(column, np.int64) for column in (self._items, self._importance, self._access))


class ObservationColumns(NamedTuple):
    """All observations, for queries to the whole stream.

    Args:
        records: the observations, oldest first.
        traces: id, importance and last access of each; shape (3, n).
        rows: the row of its state in `vectors`, of each; shape (n,).
        row_of: key of a state -> row.
        vectors: of the states; shape (states, dimension).
    """

    records: tuple[Record, ...]
    traces: NDArray[np.int64]
    rows: NDArray[np.int64]
    row_of: dict[Hashable, int]
    vectors: NDArray[np.float64]

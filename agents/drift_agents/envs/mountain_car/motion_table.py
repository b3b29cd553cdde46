"""A cache of many motions as columns, for `drift_agents.envs.mountain_car.matching`.

* `MotionTable` - the responses of records as columns of numbers
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from drift_agents.types import Record

Numbers = tuple[float, ...]


class MotionTable:
    """The responses of records as columns of numbers; those of new records are appended.

    Between two steps only the newest records of a cell change, so only new ones are read; after any other
    change all of them are read again.

    Args:
        read: returns the responses of a record, `width` numbers each.
        width: the number of numbers of a response.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> table = MotionTable(lambda record: [(float(record.n), record.outcome.score)], 2)
        >>> records = [Record(i, "s", "1", ((Outcome("t", 0.5, False), 1.0),), i + 1, AgentClock()) for i in range(3)]
        >>> table.columns(records)
        array([[1. , 2. , 3. ],
               [0.5, 0.5, 0.5]])
    """

    def __init__(self, read: Callable[[Record], Sequence[Numbers]], width: int) -> None:
        self._read = read
        self._records: list[Record] = []
        self._rows = 0
        self._numbers = np.empty((width, 64))

    def columns(self, records: Sequence[Record]) -> NDArray[np.float64]:
        """The responses of these records.

        Args:
            records: in the order of memory.

        Returns:
            An array of shape (width, R) for R responses; it is overwritten by the next call.
        """
        known = len(self._records)
        # Lists of identical objects are compared by identity, which is fast.
        if self._records != records[:known]:
            known = self._rows = 0
        new = [numbers for record in records[known:] for numbers in self._read(record)]
        end = self._rows + len(new)
        if end > self._numbers.shape[1]:
            grown = np.empty((self._numbers.shape[0], 2 * end))
            grown[:, : self._rows] = self._numbers[:, : self._rows]
            self._numbers = grown
        if new:
            self._numbers[:, self._rows : end] = np.array(new).T
        self._records, self._rows = list(records), end
        return self._numbers[:, :end]

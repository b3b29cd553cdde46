"""The sub-environments whose knobs change within the next steps, if they are too many for a queue.

* `DueWindow` - finds, at each step, the sub-environments that are due

A file of its own, since it depends on nothing else of this folder; `clocks.py` shows its place.
"""

from __future__ import annotations

import numpy as np

_NOT_DUE = 180  # beyond the end of a window, and with the reset steps of a window it still fits into a byte


class DueWindow:
    """Finds the sub-environments that are due at a step, by one byte counter each and one comparison of arrays.

    The counters are relative to the first step of the window, so that they fit into bytes.

    Args:
        indices: sub-environments that may be due within the window, shape `(K,)`.
        start: the step count at which the window begins.
        counts: the step counts at which they are due, without reset steps in between, shape `(K,)`.

    Example:
        >>> window = DueWindow(np.array([4, 7]), start=100, counts=np.array([101, 102]))
        >>> reset_steps = np.zeros(8, np.uint8)
        >>> reset_steps[4] = 1
        >>> window.due(101, reset_steps) is None
        True
        >>> window.due(102, reset_steps)
        array([0, 1])
    """

    def __init__(self, indices: np.ndarray, start: int, counts: np.ndarray) -> None:
        self.indices = indices
        self._start = start
        self._waits = np.zeros(len(indices), np.uint8)
        self._sum = np.empty(len(indices), np.uint8)
        self._mask = np.empty(len(indices), bool)
        self.postpone(slice(None), counts)

    def due(self, count: int, reset_steps: np.ndarray) -> np.ndarray | None:
        """The sub-environments that are due, as positions in `indices`; `None` if there are none.

        Args:
            count: the current step count, less than 180 after the start.
            reset_steps: the reset steps of each sub-environment since the start, shape `(N,)`, `uint8`.
        """
        reset_steps.take(self.indices, out=self._sum, mode="wrap")
        np.add(self._sum, self._waits, out=self._sum)
        np.less_equal(self._sum, np.uint8(count - self._start), out=self._mask)
        return self._mask.nonzero()[0] if np.count_nonzero(self._mask) else None

    def postpone(self, positions: np.ndarray | slice, counts: np.ndarray) -> None:
        """Set the step counts at which sub-environments are due next.

        Args:
            positions: positions in `indices`.
            counts: the step counts, without reset steps since the start.
        """
        self._waits[positions] = np.maximum(np.minimum(counts - self._start, _NOT_DUE), 0)

    def remove(self, positions: np.ndarray) -> None:
        """Mark sub-environments as not due within this window.

        Args:
            positions: positions in `indices`.
        """
        self._waits[positions] = _NOT_DUE

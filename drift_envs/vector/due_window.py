"""Many sub-environments whose knobs are due to change within the next steps.

* `DueWindow` - tells at every step whose turn it is
"""

from __future__ import annotations

import numpy as np

_LONG = 200  # with the dead steps of a window a byte still holds it


class DueWindow:
    """Tells at every step whose knobs are due, among those that may be within a window of steps.

    It counts in bytes from the step at which the window begins, so that asking all of them is cheap.

    Args:
        indices: the sub-environments, shape `(K,)`.
        start: the count of steps at which the window begins.
        counts: the counts at which they are due, unless dead steps come between, shape `(K,)`.
        coming: what holds then, arrays of shape `(K,)`, if each of them is due but once within the window.

    Example:
        >>> crowd = DueWindow(np.array([4, 7]), start=100, counts=np.array([101, 102]))
        >>> dead = np.zeros(8, np.uint8)
        >>> dead[4] = 1
        >>> crowd.due(101, dead) is None
        True
        >>> crowd.due(102, dead)
        array([0, 1])
    """

    def __init__(
        self, indices: np.ndarray, start: int, counts: np.ndarray, coming: tuple[np.ndarray, ...] | None = None
    ) -> None:
        self.indices = indices
        self.coming = coming
        self._start = start
        self._waits = np.zeros(len(indices), np.uint8)
        self._sum = np.empty(len(indices), np.uint8)
        self._mask = np.empty(len(indices), bool)
        self.put_off(slice(None), counts)

    def due(self, count: int, dead_steps: np.ndarray) -> np.ndarray | None:
        """Whose turn it is, as places in `indices`; `None` if it is nobody's.

        Args:
            count: the present count of steps, at most 32 after the start.
            dead_steps: dead steps of each sub-environment since the start, shape `(N,)`, bytes.
        """
        dead_steps.take(self.indices, out=self._sum, mode="wrap")
        np.add(self._sum, self._waits, out=self._sum)
        np.less_equal(self._sum, np.uint8(count - self._start), out=self._mask)
        return self._mask.nonzero()[0] if np.count_nonzero(self._mask) else None

    def put_off(self, places: np.ndarray | slice, counts: np.ndarray) -> None:
        """Note when they are due next.

        Args:
            places: which, as places in `indices`.
            counts: the counts at which they are due, unless dead steps come between from the start on.
        """
        self._waits[places] = np.maximum(np.minimum(counts - self._start, _LONG), 0)

    def dismiss(self, places: np.ndarray) -> None:
        """Note that they are not due any more.

        Args:
            places: which, as places in `indices`.
        """
        self._waits[places] = _LONG

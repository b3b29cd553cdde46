"""Checks of many actions at once.

* `WholeActions` - actions that are whole numbers from 0 on
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drift_envs.errors import ArgumentError


class WholeActions:
    """Actions that are whole numbers from 0 on, one for each sub-environment.

    Args:
        number: how many sub-environments, N.
        count: how many actions there are.

    Example:
        >>> WholeActions(3, count=4).check([0, 3, 1])
        array([0, 3, 1])
    """

    def __init__(self, number: int, count: int) -> None:
        self._shape = (number,)
        self._last = np.array(count - 1, np.uint64)  # as an array, which a number would have to become first
        self._bad = np.zeros(number, bool)

    def check(self, actions: Any) -> np.ndarray:
        """The actions as an array, or an error.

        Args:
            actions: whole numbers of shape `(N,)`.

        Returns:
            The same, `int64` and contiguous.

        Raises:
            ArgumentError: if the shape is another one, or an action is none of those there are.
        """
        checked = actions if isinstance(actions, np.ndarray) else np.asarray(actions)
        if checked.shape != self._shape or checked.dtype.kind not in "iu":
            raise ArgumentError(
                f"`actions` should be whole numbers of shape {self._shape}. "
                f"Received {checked.dtype} of shape {checked.shape}"
            )
        if checked.dtype != np.int64 or not checked.flags.c_contiguous:
            checked = np.ascontiguousarray(checked, np.int64)
        # Seen as unsigned, a negative number is larger than all actions.
        np.greater(checked.view(np.uint64), self._last, out=self._bad)
        if np.count_nonzero(self._bad):
            where = int(self._bad.argmax())
            known = ", ".join(str(action) for action in range(int(self._last) + 1))
            raise ArgumentError(f"`actions[{where}]` should be one of {known}. Received {int(checked[where])}")
        return checked

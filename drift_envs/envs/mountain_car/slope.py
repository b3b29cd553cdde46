"""The slope under continuous cars in single precision, without a cosine for each of them.

* `SlopeTable` - the velocities after push and pull, and which of them rounding leaves open

A file of its own, since it is one proof: what it returns as certain has the bits of Gymnasium's expression.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_FINEST = 2.0**-13
"""The distance between angles of the table; half of it is the largest distance to one of them."""
_ORIGIN = 1028.0
"""From 1024 to 2048, numbers of single precision are `_FINEST` apart: adding this rounds an angle from -4 to 4 to
one of the table, and the lower 16 bits of the sum are its index."""
_SIZE = 1 << 16
_LOWER_HALF = slice(None, None, 2) if sys.byteorder == "little" else slice(1, None, 2)
_MARGIN = 2.0**-35
"""A bound of the error of a pull, relative to gravity. With d the distance to the angle of the table, |d| <= 2**-14:

* the terms after d**2 are less than d**3 / 6, which is 0.002 of the margin,
* the table of slopes and four operations in single precision round by at most 2**-24 |d| each, together 0.63 of it,
* the cosine of the library and the product with gravity, in double precision, are 0.001 of it.
"""
_LEAST_GRAVITY = 1e-6  # far less, and numbers of single precision are too small to be rounded relative to their size


class SlopeTable:
    """Adds push and pull to the velocities of continuous cars.

    Gymnasium rounds `gravity * cos(3 * position)` from double to single precision, subtracts it from the push and adds
    the velocity. Each of these steps is monotonic. Two pulls, one certainly below the exact one and one above, are
    taken through all of them: where both give the same velocity, it is that of the exact pull.

    Args:
        number: the number of cars, N.
        gravity: the gravity of all cars.

    Example:
        >>> table = SlopeTable(2, 0.0025)
        >>> position, velocity, push = np.array([[-0.5, 0.25], [0.0, 0.01], [0.0015, -0.0015]], np.float32)
        >>> found, unsure = table.accelerate(position, velocity, push)
        >>> bool(found[0] == np.float32(0.0015) - np.float32(0.0025 * np.cos(-1.5))), unsure
        (True, None)
    """

    reach = 1.3
    """The largest position, in size."""

    def __init__(self, number: int, gravity: float) -> None:
        angles = (np.arange(_SIZE) - _SIZE / 2) * _FINEST
        pulls = gravity * np.cos(angles)
        # Rows: the pull, what its rounding has left, and twice the slope of the pull.
        self._table = np.empty((3, _SIZE), np.float32)
        self._table[0] = pulls
        self._table[1] = pulls - self._table[0]
        self._table[2] = 2.0 * gravity * np.sin(angles)
        self._three, self._minus_half = np.array(3.0, np.float32), np.array(-0.5, np.float32)
        self._origin = np.array(_ORIGIN, np.float32)
        self._sum = np.empty(number, np.float32)
        self._offset = np.empty(number, np.float32)
        self._change = np.empty(number, np.float32)
        self._index = np.empty(number, np.int64)
        self._near = np.empty((3, number), np.float32)
        margin = np.array(gravity * _MARGIN, np.float32)  # arrays save their conversion at each call
        self._bounds = (-margin, np.empty(number, np.float32)), (margin, np.empty(number, np.float32))
        self._differs = np.empty(number, bool)
        self._make_views()

    @staticmethod
    def serves(gravity: np.ndarray) -> bool:
        """Whether a table serves cars with these gravities, shape `(N,)`: all are equal, and not too small."""
        return bool(gravity[0] >= _LEAST_GRAVITY and (gravity == gravity[0]).all())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the views, which a pickle stores as arrays of their own."""
        self.__dict__.update(state)
        self._make_views()

    def _make_views(self) -> None:
        self._bits = self._sum.view(np.uint16)[_LOWER_HALF]

    def accelerate(
        self, position: np.ndarray, velocity: np.ndarray, push: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Add push and pull to the velocities.

        Args:
            position: shape `(N,)`, `float32`, at most `reach` in size.
            velocity: shape `(N,)`, `float32`.
            push: shape `(N,)`, `float32`.

        Returns:
            The new velocities, valid until the next call, and the indices of those that are not certain, `None` if
            all are.
        """
        total, offset, change, origin = self._sum, self._offset, self._change, self._origin
        np.multiply(position, self._three, offset)
        np.add(offset, origin, total)
        np.copyto(self._index, self._bits)
        np.subtract(total, origin, total)
        np.subtract(offset, total, offset)  # exact, as the two lines above
        self._table.take(self._index, 1, self._near, "wrap")  # all indices are valid, and other modes are slower
        pull, rest, slope = self._near
        # -offset * slope / 2 - pull * offset**2 / 2 + rest
        np.multiply(pull, offset, change)
        np.add(change, slope, change)
        np.multiply(offset, self._minus_half, offset)
        np.multiply(change, offset, change)
        np.add(change, rest, change)
        for margin, found in self._bounds:
            np.add(change, margin, found)
            np.add(found, pull, found)
            np.subtract(push, found, found)
            np.add(found, velocity, found)
        np.not_equal(self._bounds[0][1], self._bounds[1][1], self._differs)
        unsure = self._differs.nonzero()[0] if np.count_nonzero(self._differs) else None
        return self._bounds[0][1], unsure

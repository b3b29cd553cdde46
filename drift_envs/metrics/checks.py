"""What metrics demand of the numbers that they are given.

* `numbers` - a sequence as an array of finite numbers
* `positive` - a whole number of at least 1
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from drift_envs.errors import ArgumentError


def numbers(name: str, values: ArrayLike | Sequence[float], *, least: int = 1) -> np.ndarray:
    """A sequence as an array of finite numbers.

    Args:
        name: what the error calls it.
        values: the sequence.
        least: how many there should be.

    Returns:
        An array of shape `(N,)`.

    Raises:
        ArgumentError: if it is no such sequence.

    Example:
        >>> numbers("scores", [])
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `scores` should hold at least 1 number. Received 0
    """
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"`{name}` should be a sequence of numbers. Received {values!r}") from None
    if array.ndim != 1:
        raise ArgumentError(f"`{name}` should have one dimension. Received an array of shape {array.shape}")
    if len(array) < least:
        raise ArgumentError(f"`{name}` should hold at least {least} number{'s' * (least > 1)}. Received {len(array)}")
    if not np.isfinite(array).all():
        place = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ArgumentError(f"`{name}` should hold finite numbers. Received {array[place]} at {place}")
    return array


def positive(name: str, value: int) -> int:
    """A whole number of at least 1.

    Args:
        name: what the error calls it.
        value: the number.

    Raises:
        ArgumentError: if it is none.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ArgumentError(f"`{name}` should be a whole number, at least 1. Received {value!r}")
    return int(value)

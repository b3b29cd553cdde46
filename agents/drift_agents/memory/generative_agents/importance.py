"""What comes to mind: recency, importance and relevance, each scaled to [0, 1], added up.

* `scaled` - values between their least and their greatest
* `salience` - the score of every item of a stream

Source: Park et al., "Generative agents: interactive simulacra of human behavior" (UIST 2023), section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

DECIMALS = 9
"""Of a score: the last bits of a power, which differ between machines, decide no tie."""


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

    Recency is decay ** (hours since the last access). Scaling removes what all recencies have in
    common, so hours are counted back from the latest access instead of from now: the result is the
    same, exactly, at any later time.

    Args:
        access: the hour of each item's last access; shape (n,).
        importance: from 1 to 10; shape (n,).
        relevance: similarity to the question, in [-1, 1]; shape (n,).
        decay: what is left of recency after an hour, in (0, 1].
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

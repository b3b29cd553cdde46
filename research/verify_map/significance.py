"""Significance of differences: p-values of resamples, and their correction for a family of tests.

* `p_value` - of the hypothesis that a difference is 0
* `adjust_holm` - p-values of a family of tests, corrected (Holm, "A simple sequentially rejective multiple test
  procedure", 1979)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def p_value(draws: np.ndarray) -> float:
    """The two-sided p-value of the hypothesis that a difference is 0: the level at which its interval reaches 0.

    Args:
        draws: the differences of the resamples, shape (resamples,).

    Returns:
        At least 2 / (resamples + 1), since resamples are finite (Davison and Hinkley 1997, section 4.2).

    Example:
        >>> p_value(np.ones(999)), p_value(np.zeros(999))
        (0.002, 1.0)
    """
    rounded = np.round(draws, 9)
    least = min(int((rounded <= 0).sum()), int((rounded >= 0).sum()))
    return min(1.0, 2 * (least + 1) / (len(draws) + 1))


def adjust_holm(values: Sequence[float]) -> list[float]:
    """The p-values of a family of tests, corrected so that any false rejection among them has the stated level.

    Args:
        values: p-values.

    Returns:
        Corrected p-values, in the same order.

    Example:
        >>> adjust_holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    found, largest = [0.0] * len(values), 0.0
    for rank, place in enumerate(np.argsort(values, kind="stable")):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        found[place] = largest
    return found

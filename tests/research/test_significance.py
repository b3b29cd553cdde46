"""P-values of resamples, and their correction."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from drift_agents.analysis.resampling import estimate
from hypothesis import given

from research.verify_map.significance import adjust_holm, p_value


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_rejects_what_its_steps_reject(values: list[float]) -> None:
    """By Holm's own words: step through the ordered p-values until one exceeds alpha / (m - k)."""
    adjusted = adjust_holm(values)
    for alpha in (0.01, 0.05, 0.3):
        rejected: list[int] = []
        for rank, place in enumerate(np.argsort(values, kind="stable")):
            if (len(values) - rank) * values[place] > alpha:
                break
            rejected.append(int(place))
        assert sorted(rejected) == [place for place, p in enumerate(adjusted) if p <= alpha]


@given(st.floats(-3, 3))
def test_a_p_value_goes_with_its_interval(shift: float) -> None:
    draws = np.random.default_rng(1).normal(shift, 1.0, 4000)
    p, found = p_value(draws), estimate(shift, draws, 30)
    if abs(p - 0.05) > 0.003:
        assert (p < 0.05) == found.excludes_zero

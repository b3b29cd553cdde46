"""The paired bootstrap, and corrected p-values."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from drift_agents.analysis import resampling
from drift_agents.analysis.resampling import Resamples, adjust_holm, estimate, p_value
from drift_agents.errors import ArgumentError
from hypothesis import given

from drift_envs.metrics import bootstrap


def places(**counts: int) -> pd.MultiIndex:
    return pd.MultiIndex.from_tuples([(name, seed) for name, count in counts.items() for seed in range(count)])


def test_one_schedule_has_the_interval_of_a_plain_bootstrap() -> None:
    values = np.random.default_rng(5).normal(1.0, 1.0, 40)
    found, expected = Resamples(places(lake=40)).estimate(values), bootstrap(values)
    assert found.mean == pytest.approx(expected.mean)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.03)


def test_schedules_weigh_the_same_and_are_not_resampled() -> None:
    """Thirty instances of one schedule do not outweigh ten of another; equal values within each leave no interval."""
    resamples = Resamples(places(lake=30, shop=10))
    assert resamples.estimate([1.0] * 30 + [0.0] * 10)[:3] == pytest.approx((0.5, 0.5, 0.5))


def test_a_seed_is_drawn_for_all_schedules_alike() -> None:
    """What one map gives to one schedule it takes from another: no interval is left."""
    values = np.random.default_rng(5).normal(size=20)
    found = Resamples(places(a=20, b=20)).estimate([*values, *-values])
    assert (found.low, found.high) == pytest.approx((0, 0), abs=1e-9)


def test_differences_are_paired() -> None:
    values = 100 * np.random.default_rng(5).random(30)
    resamples = Resamples(places(lake=30))
    assert resamples.ranks([values, values + 0.1]) == [(2, 2), (1, 1)], "the intervals of the two overlap widely"


def test_no_instance_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`instances` should hold at least one"):
        Resamples(pd.MultiIndex.from_arrays([[], []]))


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


def test_large_boards_are_computed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    places = pd.MultiIndex.from_product([["lake"], range(300)])
    values = np.random.default_rng(0).random((2, 300))
    whole = Resamples(places, resamples=100).means(values)
    monkeypatch.setattr(resampling, "_AT_ONCE", 300 * 30)
    resampling._draw_counts.cache_clear()
    np.testing.assert_allclose(Resamples(places, resamples=100).means(values), whole, rtol=1e-12)

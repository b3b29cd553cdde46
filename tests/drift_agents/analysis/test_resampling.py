"""The paired bootstrap."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from drift_agents.analysis.resampling import Resamples
from drift_agents.errors import ArgumentError

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

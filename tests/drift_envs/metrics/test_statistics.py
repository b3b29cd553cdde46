"""Intervals: coverage, strata, and single instances."""

from __future__ import annotations

import numpy as np
import pytest

from drift_envs.errors import ArgumentError
from drift_envs.metrics import (
    Estimate,
    bootstrap,
    interquartile_mean,
    paired_difference,
    proportion,
    summarise,
)


def test_the_interval_has_about_its_nominal_coverage() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(150):
        found = bootstrap(generator.normal(1.0, 1.0, size=30), resamples=400)
        covered += found.low <= 1.0 <= found.high
    # The percentile interval is slightly narrow at n = 30, with a coverage of 93 %.
    assert 0.87 <= covered / 150 <= 0.99


def test_strata_remove_their_difference_from_the_interval() -> None:
    generator = np.random.default_rng(1)
    easy, hard = generator.normal(0.9, 0.02, 10), generator.normal(0.1, 0.02, 10)
    values = np.concatenate([easy, hard])
    whole = bootstrap(values)
    by_kind = bootstrap(values, strata=["easy"] * 10 + ["hard"] * 10)
    assert whole.mean == by_kind.mean
    assert by_kind.high - by_kind.low < 0.1 * (whole.high - whole.low)


def test_a_stratum_of_one_keeps_its_weight() -> None:
    found = bootstrap([0.0, 1.0, 0.0, 1.0, 5.0], strata=["a", "a", "a", "a", "b"])
    assert found.mean == pytest.approx(1.4)
    # The stratum of one is in every resample; the four others vary between 0 and 1.
    assert 1.0 <= found.low < 1.4 < found.high <= 1.8


def test_equal_values_are_one_instance() -> None:
    assert bootstrap([0.85] * 30) == Estimate(0.85, 0.85, 0.85, 1)
    assert str(bootstrap([0.85] * 30)) == "0.85 (one value)"
    assert bootstrap([0.85]).n == 1
    assert bootstrap([0.0, 0.0, 1.0], strata=["a", "a", "b"]).n == 1
    assert not bootstrap([0.85] * 30).excludes_zero


def test_equal_seeds_give_equal_intervals() -> None:
    values = [0.1, 0.4, 0.2, 0.9, 0.5]
    assert bootstrap(values) == bootstrap(values)
    assert bootstrap(values, seed=1, resamples=50) != bootstrap(values, seed=2, resamples=50)


def test_pairs_cancel_the_differences_between_instances() -> None:
    generator = np.random.default_rng(2)
    instance = generator.normal(0.5, 0.3, 25)
    ours, theirs = instance + 0.05 + generator.normal(0, 0.01, 25), instance
    assert paired_difference(ours, theirs).excludes_zero
    assert bootstrap(ours).low < bootstrap(theirs).mean
    with pytest.raises(ArgumentError, match=r"`ours` and `theirs` should be equally long\. Received 2 and 1"):
        paired_difference([1, 2], [1])


def test_the_interval_of_17_of_20_rounds() -> None:
    found = proportion(17, 20)
    assert (round(found.low, 2), round(found.high, 2)) == (0.64, 0.95)
    with pytest.raises(
        ArgumentError, match=r"`successes` should be a whole number in the interval \[0, 20\]. Received 21"
    ):
        proportion(21, 20)
    with pytest.raises(ArgumentError, match=r"`level` should be in the interval \(0, 1\). Received 95"):
        proportion(17, 20, level=95)


def test_the_interquartile_mean_hides_a_failing_quarter() -> None:
    values = [0.0] * 5 + [1.0] * 15
    assert interquartile_mean(values) == 1.0
    assert summarise(values) == (0.75, 1.0, 0.25)
    assert summarise([0.2, 0.4, 0.9], failure=0.5).failures == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap([]), "`values` should hold at least 1 number"),
        (lambda: bootstrap([1, 2], strata=["a"]), "`strata` should be as long as `values`. Received 1 and 2"),
        (lambda: bootstrap([1, 2], level=1), r"`level` should be in the interval \(0, 1\). Received 1"),
        (
            lambda: bootstrap([1, 2], resamples=0),
            r"`resamples` should be a whole number in the interval \[1, 1000000\]",
        ),
    ],
)
def test_refusals(call, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()

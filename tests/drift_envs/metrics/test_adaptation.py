"""Recovery times, retention, deficit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.errors import ArgumentError
from drift_envs.metrics import Recovery, recovery, recovery_deficit, retention, summarise_recoveries


def first_recovered_window(
    scores: list[float], reference: list[float], tolerance: float, window: int, stay: int
) -> int | None:
    """The definition, without vectorization."""
    starts = range(len(scores) - window + 1)
    good = [
        sum(scores[s : s + window]) / window >= (1 - tolerance) * sum(reference[s : s + window]) / window - 1e-9
        for s in starts
    ]
    for start in starts:
        if all(good[start : start + stay]):
            return start
    return None


@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=5, max_size=25),
    st.sampled_from([0.0, 0.1, 0.4]),
    st.integers(1, 5),
    st.integers(1, 5),
)
@settings(max_examples=7 * settings().max_examples)
def test_recovery_follows_its_definition(scores: list[float], tolerance: float, window: int, stay: int) -> None:
    reference = [1.0 if k % 2 else 0.8 for k in range(len(scores))]
    expected = first_recovered_window(scores, reference, tolerance, window, stay)
    found = recovery(scores, reference, tolerance=tolerance, window=window, stay=stay)
    assert found == (Recovery(len(scores), True) if expected is None else Recovery(expected, False))


def test_a_short_streak_is_no_recovery() -> None:
    streak = [0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert recovery(streak, 1.0, window=3, stay=3).is_censored
    assert recovery(streak, 1.0, window=3, stay=1) == (2, False)


def test_the_median_includes_censored_times() -> None:
    observed, censored = Recovery(3, False), Recovery(20, True)
    assert summarise_recoveries([observed, observed, censored]).median == 3
    assert summarise_recoveries([observed, censored]).median is None
    assert summarise_recoveries([observed, censored, censored]).median is None
    assert summarise_recoveries([observed, censored]).restricted_mean == 11.5
    assert summarise_recoveries([censored]).share == 0.0


def test_retention() -> None:
    assert retention([1.0] * 5, [0.0] * 5) == 0.0
    assert retention([0.5] * 9, [0.25] * 5 + [1.0] * 5) == 0.5
    assert retention([0.0] * 5, [1.0] * 5) is None


def test_the_deficit_is_a_share() -> None:
    assert recovery_deficit([0.5] * 4, 0.5) == 0.0
    assert recovery_deficit([0.0] * 4, 0.5) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: recovery([1.0] * 5, 1.0, tolerance=1.0), r"`tolerance` should be in the interval \[0, 1\)"),
        (lambda: recovery([1.0] * 4, 1.0), "`scores` should hold at least 5 numbers. Received 4"),
        (lambda: recovery([1.0] * 5, 1.0, window=0), "`window` should be a whole number, at least 1. Received 0"),
        (lambda: recovery([1.0] * 5, 1.0, stay=True), "`stay` should be a whole number"),
        (lambda: recovery_deficit([1.0], 0.0), r"`reference` should be in the interval \(0, inf\). Received 0.0"),
        (lambda: recovery([1.0] * 5, [1.0] * 4), "`scores` and `reference` should be equally long. Received 5 and 4"),
        (lambda: recovery([1.0] * 5, "full"), "`reference` should be a sequence of numbers. Received"),
        (lambda: summarise_recoveries([]), "at least 1 recovery"),
    ],
)
def test_refusals(call, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()

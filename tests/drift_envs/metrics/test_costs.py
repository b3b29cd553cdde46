"""Cost and benefit of probing."""

from __future__ import annotations

import numpy as np
import pytest

from drift_envs.errors import ArgumentError
from drift_envs.metrics import break_even, collected_score, cost_by_kind, recovery_ratio


def log_row(phase: str, probe_steps: int) -> dict:
    return {"phase": phase, "probe_steps": probe_steps}


def test_costs_are_per_drift_and_per_stable_episode() -> None:
    rows = [
        log_row("source", 1),
        log_row("source", 3),
        log_row("flood", 10),
        log_row("flood", 2),
        log_row("source#2", 5),
        log_row("flood#2", 4),
    ]
    (cost,) = cost_by_kind(rows, ["probe_steps"]).values()
    assert cost.per_drift == 8.0
    assert cost.per_stable_episode == 3.0


def test_only_episodes_within_the_budget_count() -> None:
    assert collected_score([1, 1, 1], [10, 10, 10], 30) == 3
    assert collected_score([1, 1, 1], [10, 10, 10], 29) == 2
    assert collected_score([1, 1, 1], [10, 10, 10], 9) == 0
    with pytest.raises(ArgumentError, match=r"`budget` should be at most the run's 30 interactions\. Received 31"):
        collected_score([1, 1, 1], [10, 10, 10], 31)


def test_break_even() -> None:
    assert break_even(40, 0, 50, 200) == pytest.approx(0.05)
    assert break_even(40, 10, 50, 0) == -1.0
    assert break_even(1, 5, 2, 5) is None


def test_the_ratio_is_none_if_the_denominator_may_be_zero() -> None:
    generator = np.random.default_rng(0)
    base = generator.uniform(0.4, 0.6, 20)
    assert recovery_ratio(base + 0.1, base, base + generator.normal(0, 0.2, 20)) is None


def test_the_interval_of_the_ratio_contains_the_true_value() -> None:
    generator = np.random.default_rng(0)
    base = generator.uniform(0.0, 0.2, 30)
    reset = base + 0.6 + generator.normal(0, 0.05, 30)
    verified = base + 0.75 * (reset - base) + generator.normal(0, 0.03, 30)
    found = recovery_ratio(verified, base, reset)
    assert found is not None
    assert found.low < 0.75 < found.high
    assert found.high - found.low < 0.1


@pytest.mark.parametrize("constant", ["gain", "ceiling"])
def test_where_gain_or_ceiling_alone_varies_the_ratio_has_an_interval(constant: str) -> None:
    base, varied = np.full(20, 0.2), np.linspace(0.3, 0.5, 20)
    gain, ceiling = (np.full(20, 0.4), varied) if constant == "gain" else (varied, np.full(20, 0.4))
    found = recovery_ratio(base + gain, base, base + ceiling)
    assert found is not None
    assert found.n == 20
    assert found.low < found.mean < found.high
    fixed = recovery_ratio(base + 0.3, base, base + 0.4)
    assert fixed is not None
    assert fixed.low == fixed.mean == fixed.high == pytest.approx(0.75)

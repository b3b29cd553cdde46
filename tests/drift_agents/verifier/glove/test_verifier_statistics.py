"""The bounds of theorems 4.1 and 4.2, exactly and by simulation, and the Dirichlet-multinomial ratio."""

from __future__ import annotations

import itertools
import math
import re
from math import comb, log, sqrt

import numpy as np
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.verifier.evidence import (
    change_statistic,
    deviation_bound,
    log_evidence,
    log_ratio,
    probe_budget,
)


def printed_deviation_bound(n: int, delta: float) -> float:
    """Theorem 4.1 as the paper prints it (equation 4), which loses the factor 2 of its own proof."""
    return sqrt(log(1 / delta) / (2 * n))


def violated(bound: float, n: int, p: float) -> float:
    """The exact probability that a share of n responses lies farther from p than the bound."""
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1) if abs(k / n - p) > bound)


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.4, 0.5, 0.9])
def test_the_corrected_bound_holds(delta: float) -> None:
    for n, p in itertools.product((1, 2, 5, 10, 40, 200), (0.02, 1 / 3, 0.5, 0.8)):
        assert violated(deviation_bound(n, delta), n, p) <= delta, (n, p)


def test_the_printed_bound_does_not_hold() -> None:
    """Two tosses of a fair coin: the shares 0 and 1 lie .5 away, and come in half of the trials."""
    assert printed_deviation_bound(2, 0.4) < 0.5 <= deviation_bound(2, 0.4)
    assert violated(printed_deviation_bound(2, 0.4), 2, 0.5) == 0.5 > 0.4
    assert violated(deviation_bound(2, 0.4), 2, 0.5) == 0.0


def test_the_budget_of_theorem_4_2_by_simulation() -> None:
    """With 254 probes of three outcomes the L1 distance exceeds .2 in at most 5 % of the trials, whatever the truth."""
    budget, rng = probe_budget(3, 0.2, 0.05), np.random.default_rng(1)
    assert budget == 254
    for truth in ([1 / 3, 1 / 3, 1 / 3], [0.8, 0.1, 0.1], [0.5, 0.5, 0.0]):
        shares = rng.multinomial(budget, truth, size=20_000) / budget
        assert np.mean(np.abs(shares - truth).sum(axis=1) > 0.2) <= 0.05


def test_evidence_is_a_distribution_over_sequences() -> None:
    """Over all sequences of five responses with three outcomes the probabilities add up to one."""
    total = 0.0
    for sequence in itertools.product(range(3), repeat=5):
        total += math.exp(log_evidence([sequence.count(k) for k in range(3)]))
    assert total == pytest.approx(1.0)


def test_the_ratio_is_symmetric_and_zero_without_responses() -> None:
    assert log_ratio([3, 1, 0], [0, 2, 5]) == pytest.approx(log_ratio([0, 2, 5], [3, 1, 0]))
    assert log_ratio([3, 1, 0], [0, 0, 0]) == pytest.approx(0.0)


def test_the_strict_ratio_takes_the_highest_likelihood() -> None:
    """Three heads and one tail: no coin makes that sequence likelier than (3/4)^3 (1/4)."""
    expected = log_evidence([2, 0]) + log_evidence([1, 1]) - math.log(0.75**3 * 0.25)
    assert log_ratio([2, 0], [1, 1], strict=True) == pytest.approx(expected)
    assert log_ratio([2, 0], [1, 1], strict=True) < log_ratio([2, 0], [1, 1])


@pytest.mark.parametrize("strict", [False, True])
def test_the_change_statistic_is_a_sum_over_splits(strict: bool) -> None:
    rows = np.eye(3)[[0, 0, 1, 2, 2, 2, 0]].tolist()
    ratios = [
        log_ratio(np.sum(rows[:j], axis=0).tolist(), np.sum(rows[j:], axis=0).tolist(), strict=strict)
        for j in range(1, len(rows))
    ]
    statistic, split = change_statistic(rows, strict=strict)
    assert statistic == pytest.approx(np.exp(ratios).sum())
    assert split == int(np.argmax(ratios)) + 1


def test_the_change_statistic_of_little_and_of_much() -> None:
    assert change_statistic(np.eye(2)[:1]) == (0.0, 0)
    statistic, split = change_statistic([[1, 0]] * 3000 + [[0, 1]] * 3000)
    assert math.isfinite(statistic)
    assert split == 3000


def test_false_alarms_on_average_over_the_prior() -> None:
    """E[M] is at most the number of splits; strictly so for one distribution that the prior finds unlikely."""
    rng, eye = np.random.default_rng(2), np.eye(3)
    over_prior = [change_statistic(eye[rng.choice(3, 30, p=rng.dirichlet([0.5] * 3))])[0] for _ in range(3000)]
    assert np.mean(over_prior) < 29 * 1.15
    strict = [change_statistic(eye[rng.choice(3, 30)], strict=True)[0] for _ in range(3000)]
    assert np.mean(strict) < 29


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: deviation_bound(0, 0.5), "`n` should be a whole number, at least 1. Received 0"),
        (lambda: deviation_bound(10, 0), "`delta` should be in the interval (0, 1). Received 0"),
        (lambda: probe_budget(3, 2.5, 0.05), "`accuracy` should be in the interval (0, 2]. Received 2.5"),
        (lambda: probe_budget(3, 0.2, "much"), "`confidence` should be in the interval (0, 1). Received 'much'"),
        (lambda: log_evidence([1, -1]), "`counts` should be one or more numbers, none negative. Received [1, -1]"),
        (lambda: log_ratio([1], [1, 2]), "`before` and `after` should have equal length. Received 1 and 2"),
        (lambda: change_statistic([1, 2]), "`rows` should have the shape (n, K). Received (2,)"),
    ],
)
def test_refusals(call, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        call()

"""Phases of drifts whose common period is larger than every float."""

from __future__ import annotations

from itertools import islice

import numpy as np


def primes(above):
    """The primes above a number."""
    number = above
    while True:
        number += 1
        if all(number % factor for factor in range(2, int(number**0.5) + 1)):
            yield number


def test_85_drifts_with_prime_periods(make):
    periods = list(islice(primes(10_000), 85))
    timeline = make(*({"name": f"d{period}", "every": period, "for": 1, "set": {"slip": 0.5}} for period in periods))
    bounds = {0} | {k * p + end for p in periods for k in range(1, 30_000 // p + 1) for end in (0, 1)}
    starts = np.array(sorted(bounds))
    for tick in (0, periods[0], periods[0] + 1, 25_000):
        phase = timeline.phase(tick)
        assert phase.index == int(np.searchsorted(starts, tick, "right")) - 1
        assert phase.start == starts[phase.index]
    assert timeline.phase(periods[-1] * 2).drift == f"d{periods[-1]}"

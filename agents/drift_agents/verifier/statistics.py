"""The statistics of detection and verification: pure functions, no memory, no world.

* `deviation_bound` - how far a share of `n` responses may lie from the truth (theorem 4.1, corrected)
* `printed_deviation_bound` - the same as the paper prints it, for comparison
* `probe_budget` - how many probes make a summary accurate (theorem 4.2)
* `log_evidence` - how well a Dirichlet-multinomial explains counts
* `log_ratio` - whether two lots of counts speak for two distributions or for one

The theorems are those of GLOVE, section 4 and appendix A. What is wrong with the first one as
printed stands in `docs/glove.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from drift_agents.errors import ArgumentError
from drift_agents.verifier.checks import count, inside

CONCENTRATION = 0.5
"""Jeffreys' prior: half a response for each outcome."""


def deviation_bound(n: int, delta: float) -> float:
    """How far a share of `n` responses may lie from the true probability (theorem 4.1, corrected).

    The two-sided Hoeffding bound: P(|share - truth| >= e) <= 2 exp(-2 n e^2), solved for e.

    Args:
        n: how many responses the share rests on; positive.
        delta: probability of lying farther away, in (0, 1).

    Returns:
        The half width; values above 1 say nothing.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> round(deviation_bound(10, 0.5), 4)
        0.2633
    """
    count("n", n)
    inside("delta", delta, 0.0, 1.0)
    return math.sqrt(math.log(2 / delta) / (2 * n))


def printed_deviation_bound(n: int, delta: float) -> float:
    """Theorem 4.1 as the paper prints it (equation 4), which loses the factor 2 of its own proof.

    What it guarantees on both sides is `2 * delta`, not `delta`. With a fair coin, n = 2 and
    delta = .4 it is violated in 50 % of trials (the corrected bound never); at n = 10 and
    delta = .5 in 34 % (the corrected one in 11 %). No verifier uses it; it is here to be compared.

    Args:
        n: how many responses the share rests on; positive.
        delta: the probability that the paper states, in (0, 1).

    Returns:
        The half width as printed.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> round(printed_deviation_bound(10, 0.5), 4)
        0.1862
    """
    count("n", n)
    inside("delta", delta, 0.0, 1.0)
    return math.sqrt(math.log(1 / delta) / (2 * n))


def probe_budget(outcomes: int, accuracy: float, confidence: float) -> int:
    """How many probes make a summary accurate (theorem 4.2, after Weissman et al. 2003).

    The smallest alpha with alpha >= 2 (K ln 2 + ln(1 / delta)) / eps^2: then the L1 distance
    between summary and truth is at most eps with probability at least 1 - delta.

    Args:
        outcomes: K, how many outcomes there may be; positive.
        accuracy: eps, the L1 distance that is tolerated, in (0, 2].
        confidence: delta, the probability of a worse summary, in (0, 1).

    Returns:
        The number of probes, at least 1.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> probe_budget(3, 0.2, 0.05)
        254
    """
    count("outcomes", outcomes)
    inside("accuracy", accuracy, 0.0, 2.0, closed=True)
    inside("confidence", confidence, 0.0, 1.0)
    return max(1, math.ceil(2 * (outcomes * math.log(2) + math.log(1 / confidence)) / accuracy**2))


def log_evidence(counts: Sequence[float], concentration: float = CONCENTRATION) -> float:
    """How well a Dirichlet-multinomial explains counts: ln DM(c).

    DM(c) = Gamma(aK) / Gamma(aK + n) * prod Gamma(a + c_k) / Gamma(a), the probability of one
    sequence with these counts when the distribution itself is drawn from a Dirichlet(a, ..., a).

    Args:
        counts: responses by outcome, shape (K,); real numbers are allowed.
        concentration: a, what the prior adds to each outcome; positive.

    Returns:
        The natural logarithm of the probability; 0 for no responses.

    Raises:
        ArgumentError: if there is no outcome, a count is negative or `concentration` is not positive.

    Example:
        >>> round(math.exp(log_evidence([1, 1])), 3)
        0.125
    """
    if not counts or min(counts) < 0:
        raise ArgumentError(f"`counts` should be one or more numbers, none negative. Received {list(counts)!r}")
    if concentration <= 0:
        raise ArgumentError(f"`concentration` should be positive. Received {concentration!r}")
    prior = concentration * len(counts)
    explained = sum(math.lgamma(concentration + c) - math.lgamma(concentration) for c in counts)
    return math.lgamma(prior) - math.lgamma(prior + sum(counts)) + explained


def log_ratio(before: Sequence[float], after: Sequence[float], concentration: float = CONCENTRATION) -> float:
    """Whether two lots of counts speak for two distributions (positive) or for one (negative).

    l(h, x) = ln DM(h) + ln DM(x) - ln DM(h + x), the logarithm of a Bayes factor. Ours, not the paper's.

    Args:
        before: remembered responses by outcome, shape (K,).
        after: fresh responses by outcome, shape (K,), in the same order.
        concentration: what the prior adds to each outcome; positive.

    Returns:
        The natural logarithm of the ratio.

    Raises:
        ArgumentError: if the shapes differ or a value is outside its range.

    Example:
        >>> log_ratio([20, 0], [0, 1]) > 0 > log_ratio([20, 0], [1, 0])
        True
    """
    if len(before) != len(after):
        raise ArgumentError(f"`before` and `after` should have equal length. Received {len(before)} and {len(after)}")
    together = [b + a for b, a in zip(before, after, strict=True)]
    return (
        log_evidence(before, concentration) + log_evidence(after, concentration) - log_evidence(together, concentration)
    )

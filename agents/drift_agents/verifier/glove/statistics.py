"""The statistics of detection and verification: pure functions, no memory, no world.

* `deviation_bound` - how far a share of `n` responses may lie from the truth (theorem 4.1, corrected)
* `printed_deviation_bound` - the same as the paper prints it, for comparison
* `probe_budget` - how many probes make a summary accurate (theorem 4.2)
* `log_evidence` - how well a Dirichlet-multinomial explains counts
* `log_ratio` - whether two lots of counts speak for two distributions or for one
* `change_statistic` - whether a row of responses changed its distribution somewhere, and where

The theorems are those of GLOVE, section 4 and appendix A. What is wrong with the first one as
printed stands in `docs/glove.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from drift_agents.checks import check_integer, check_number
from drift_agents.errors import ArgumentError

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
    check_integer("n", n)
    check_number("delta", delta, "(0, 1)")
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
    check_integer("n", n)
    check_number("delta", delta, "(0, 1)")
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
    check_integer("outcomes", outcomes)
    check_number("accuracy", accuracy, "(0, 2]")
    check_number("confidence", confidence, "(0, 1)")
    return max(1, math.ceil(2 * (outcomes * math.log(2) + math.log(1 / confidence)) / accuracy**2))


def log_evidence(counts: Sequence[float]) -> float:
    """How well a Dirichlet-multinomial explains counts: ln DM(c).

    DM(c) = Gamma(aK) / Gamma(aK + n) * prod Gamma(a + c_k) / Gamma(a), the probability of one
    sequence with these counts when the distribution itself is drawn from a Dirichlet(a, ..., a), with
    a = `CONCENTRATION`.

    Args:
        counts: responses by outcome, shape (K,); real numbers are allowed.

    Returns:
        The natural logarithm of the probability; 0 for no responses.

    Raises:
        ArgumentError: if there is no outcome or a count is negative.

    Example:
        >>> round(math.exp(log_evidence([1, 1])), 3)
        0.125
    """
    if not counts or min(counts) < 0:
        raise ArgumentError(f"`counts` should be one or more numbers, none negative. Received {list(counts)!r}")
    prior = CONCENTRATION * len(counts)
    explained = sum(math.lgamma(CONCENTRATION + c) - math.lgamma(CONCENTRATION) for c in counts)
    return math.lgamma(prior) - math.lgamma(prior + sum(counts)) + explained


def log_ratio(before: Sequence[float], after: Sequence[float], *, strict: bool = False) -> float:
    """Whether two lots of counts speak for two distributions (positive) or for one (negative).

    l(h, x) = ln DM(h) + ln DM(x) - ln DM(h + x), the logarithm of a Bayes factor. Without a change
    e^l is 1 on average over the prior; `strict` puts the highest likelihood that any distribution
    gives to both lots in the place of DM(h + x), so that the average is at most 1 whatever the
    distribution is. Ours, not the paper's.

    Args:
        before: remembered responses by outcome, shape (K,).
        after: fresh responses by outcome, shape (K,), in the same order.
        strict: whether the guarantee holds for every distribution instead of on average.

    Returns:
        The natural logarithm of the ratio.

    Raises:
        ArgumentError: if the shapes differ or a count is negative.

    Example:
        >>> log_ratio([20, 0], [0, 1]) > 0 > log_ratio([20, 0], [1, 0])
        True
    """
    if len(before) != len(after):
        raise ArgumentError(f"`before` and `after` should have equal length. Received {len(before)} and {len(after)}")
    together = [b + a for b, a in zip(before, after, strict=True)]
    one = _log_likelihood(together) if strict else log_evidence(together)
    return log_evidence(before) + log_evidence(after) - one


def change_statistic(rows: ArrayLike, *, strict: bool = False) -> tuple[float, int]:
    """Whether a row of responses changed its distribution somewhere, and where.

    M = sum over j of exp l(rows up to j, rows after j), a Shiryaev-Roberts statistic. Without a
    change its expected value is at most the number of splits, so an alarm at M >= A comes after A
    responses or later on average: on average over the prior, or, when `strict`, whatever the
    distribution is. Ours, not the paper's.

    Args:
        rows: responses in order of time, shape (n, K): row i holds what response i says for each of
            the K outcomes (one 1 for a lived one, several numbers for a summary).
        strict: as for `log_ratio`.

    Returns:
        M (0 for less than two rows) and the best split: how many rows lie before it.

    Raises:
        ArgumentError: if `rows` has no two axes.

    Example:
        >>> before, after = [[1, 0]] * 10, [[0, 1]] * 6
        >>> statistic, split = change_statistic(before + after)
        >>> statistic > 1000, split
        (True, 10)
    """
    told = np.asarray(rows, dtype=np.float64)
    if told.ndim != 2 or told.shape[1] < 1:
        raise ArgumentError(f"`rows` should have the shape (n, K). Received {told.shape}")
    if len(told) < 2:
        return 0.0, 0
    total = told.sum(axis=0)
    before = np.cumsum(told, axis=0)[:-1]
    one = _log_likelihood(total.tolist()) if strict else log_evidence(total.tolist())
    # The difference of two sums of floats may be a little less than nothing.
    ratios = _log_evidences(before) + _log_evidences(np.maximum(total - before, 0.0)) - one
    # More than e^700 says no more than that, and would not fit a float.
    return float(np.exp(np.minimum(ratios, 700.0)).sum()), int(np.argmax(ratios)) + 1


def _log_evidences(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """`log_evidence` of every row of an array of shape (n, K)."""
    prior = CONCENTRATION * counts.shape[1]
    each = gammaln(CONCENTRATION + counts) - math.lgamma(CONCENTRATION)
    explained: NDArray[np.float64] = math.lgamma(prior) - gammaln(prior + counts.sum(axis=1)) + each.sum(axis=1)
    return explained


def _log_likelihood(counts: Sequence[float]) -> float:
    """The highest logarithm of a probability that any distribution gives to one sequence with these counts."""
    total = sum(counts)
    return sum(c * math.log(c / total) for c in counts if c > 0)

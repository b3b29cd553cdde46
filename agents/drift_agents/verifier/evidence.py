"""Distributions over outcomes from records and probes, and the statistics of detection: pure functions.

The theorems are those of GLOVE, section 4 and appendix A; `docs/glove.md` has the error of the first one as printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drift_agents.envs.matching import Matching
from drift_agents.errors import ArgumentError, require_agents_extra
from drift_agents.types import Outcome, Record, Transition
from drift_envs.checks import check_count, check_interval

require_agents_extra()

from scipy.special import gammaln  # noqa: E402 - the error above names the extra


class VerifiedSummary(NamedTuple):
    """A verified distribution, as `Memory.insert_summary` takes it.

    Args:
        state: the probed state, as text.
        action: the probed action.
        distribution: pairs of outcome and probability, in order of first mention.
        n: the number of probes.
    """

    state: str
    action: str
    distribution: tuple[tuple[Outcome, float], ...]
    n: int


def share(transition: Transition, records: Iterable[Record], matching: Matching) -> tuple[float, int]:
    """Q_hist of a transition: the share of the recorded responses with the same outcome.

    Args:
        transition: the new one; it must not be among the records.
        records: the records of the same transition.

    Returns:
        The share in [0, 1] (0 without responses) and the number of responses.

    Example:
        >>> from drift_agents.envs.matching import Exact
        >>> from drift_agents.types import AgentClock
        >>> ice, hole = Outcome("F", 0.0, False), Outcome("H", 0.0, True)
        >>> summary = Record(0, "s", "1", ((ice, 0.75), (hole, 0.25)), 4, AgentClock())
        >>> share(Transition("s", "1", hole), [summary], Exact())
        (0.25, 4)
    """
    # `BatchMatching`, by its method: `isinstance` of a protocol takes longer than the loop.
    count_same = getattr(matching, "count_same", None)
    if count_same is not None:
        known = list(records)
        count, responses = count_same(transition, known), sum([record.n for record in known])
        return (count / responses if responses else 0.0), responses
    # The innermost loop of each step: no generators and no `transitions()`, for speed.
    same, n, is_same = 0.0, 0, matching.same_outcome
    for record in records:
        n += record.n
        for outcome, p in record.outcomes:
            if p and is_same(transition, Transition(record.state, record.action, outcome)):
                same += p * record.n
    return (same / n if n else 0.0), n


def summarise(transitions: Sequence[Transition], matching: Matching) -> list[VerifiedSummary]:
    """Responses of probes as distributions, one for each text of the state.

    In a discrete environment that is one. Where states are matched by cells, a probe may be at another
    place of the cell, and its outcome belongs to that place: from another one the change of a car's velocity
    would be wrong.

    Args:
        transitions: the probes' transitions, in order.
        matching: when two outcomes count as the same; the first of them stands for all.

    Returns:
        One summary a state, in order of first mention.

    Example:
        >>> from drift_agents.envs.matching import Exact
        >>> ice, hole = Outcome("F", 0.0, False), Outcome("H", 0.0, True)
        >>> probes = [Transition("s", "1", outcome) for outcome in (ice, ice, hole, ice)]
        >>> [(summary.n, [p for _, p in summary.distribution]) for summary in summarise(probes, Exact())]
        [(4, [0.75, 0.25])]
    """
    by_state: dict[tuple[str, str], list[Transition]] = {}
    for transition in transitions:
        by_state.setdefault((transition.state, transition.action), []).append(transition)
    summaries = []
    for (state, action), made in by_state.items():
        examples, places = modes(made, matching)
        distribution = tuple((mode.outcome, places.count(i) / len(made)) for i, mode in enumerate(examples))
        summaries.append(VerifiedSummary(state, action, distribution, len(made)))
    return summaries


def contradicts(fresh: Sequence[Transition], records: Iterable[Record], matching: Matching) -> bool:
    """Whether responses of probes contradict records.

    They do when two different distributions explain both samples better than one does: when the Bayes factor of
    `log_ratio` is above 1. For one probe in a deterministic environment: when its outcome differs. There is no
    threshold to choose.

    Args:
        records: the records of the same transition in memory.
    """
    remembered = list(records)
    table = tabulate([*remembered, *fresh], matching)
    return log_ratio(table[: len(remembered)].sum(axis=0).tolist(), table[len(remembered) :].sum(axis=0).tolist()) > 0


def tabulate(rows: Sequence[Record | Transition], matching: Matching, outcomes: int = 2) -> NDArray[np.float64]:
    """Responses as counts by outcome.

    Args:
        rows: records, each with all its responses, and single responses.
        outcomes: the least number of columns; at least two, since one outcome alone has no alternative.

    Returns:
        Counts of shape (len(rows), K), K being `outcomes` or the number of observed ones, if that is larger.

    Example:
        >>> from drift_agents.envs.matching import Exact
        >>> ice, hole = Outcome("F", 0.0, False), Outcome("H", 0.0, True)
        >>> tabulate([Transition("s", "1", outcome) for outcome in (ice, hole, ice)], Exact(), 3)
        array([[1., 0., 0.],
               [0., 1., 0.],
               [1., 0., 0.]])
    """
    responses = [
        (index, transition, weight)
        for index, row in enumerate(rows)
        for transition, weight in (row.transitions() if isinstance(row, Record) else ((row, 1.0),))
    ]
    examples, places = modes([transition for _, transition, _ in responses], matching)
    table = np.zeros((len(rows), max(outcomes, len(examples))))
    for (index, _, weight), place in zip(responses, places, strict=True):
        table[index, place] += weight
    return table


def modes(transitions: Iterable[Transition], matching: Matching) -> tuple[list[Transition], list[int]]:
    """The first example of each outcome, and the index of each transition's outcome among them."""
    examples: list[Transition] = []
    places: list[int] = []
    for transition in transitions:
        place = next((i for i, other in enumerate(examples) if matching.same_outcome(transition, other)), len(examples))
        if place == len(examples):
            examples.append(transition)
        places.append(place)
    return examples, places


CONCENTRATION = 0.5
"""Jeffreys' prior: half a response for each outcome."""


def deviation_bound(n: int, delta: float) -> float:
    """The deviation of a share of `n` responses from its probability (theorem 4.1, corrected).

    The two-sided Hoeffding bound: P(|share - truth| >= e) <= 2 exp(-2 n e^2), solved for e.

    Args:
        n: the number of responses; positive.
        delta: the probability of a larger deviation, in (0, 1).

    Returns:
        The half width; values above 1 are vacuous.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> round(deviation_bound(10, 0.5), 4)
        0.2633
    """
    check_count("n", n)
    check_interval("delta", delta, "(0, 1)")
    return math.sqrt(math.log(2 / delta) / (2 * n))


def probe_budget(outcomes: int, accuracy: float, confidence: float) -> int:
    """The number of probes for an accurate summary (theorem 4.2, after Weissman et al. 2003).

    The smallest alpha with alpha >= 2 (K ln 2 + ln(1 / delta)) / eps^2: then the L1 distance
    between summary and truth is at most eps with probability at least 1 - delta.

    Args:
        outcomes: K, the number of possible outcomes; positive.
        accuracy: eps, the tolerated L1 distance, in (0, 2].
        confidence: delta, the probability of a worse summary, in (0, 1).

    Returns:
        The number of probes, at least 1.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> probe_budget(3, 0.2, 0.05)
        254
    """
    check_count("outcomes", outcomes)
    check_interval("accuracy", accuracy, "(0, 2]")
    check_interval("confidence", confidence, "(0, 1)")
    return max(1, math.ceil(2 * (outcomes * math.log(2) + math.log(1 / confidence)) / accuracy**2))


def log_evidence(counts: Sequence[float]) -> float:
    """The logarithm of the evidence of counts under a Dirichlet-multinomial: ln DM(c).

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
    """The logarithm of the Bayes factor for two distributions (positive) against one (negative).

    l(h, x) = ln DM(h) + ln DM(x) - ln DM(h + x). Without a change e^l is 1 on average over the prior;
    `strict` replaces DM(h + x) by the maximum likelihood of both samples, so that the average is at most 1
    for every distribution. Ours, not the paper's.

    Args:
        before: recorded responses by outcome, shape (K,).
        after: responses of probes by outcome, shape (K,), in the same order.
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
    """A test for a change of distribution in a sequence of responses, and its most probable place.

    M = sum over j of exp l(rows up to j, rows after j), a Shiryaev-Roberts statistic. Without a
    change its expected value is at most the number of splits, so the mean time to an alarm at M >= A is at
    least A responses: on average over the prior, or, when `strict`, for every distribution. Ours, not the paper's.

    Args:
        rows: responses in order of time, shape (n, K): row i holds the counts of response i for the
            K outcomes (one 1 for a single response, several numbers for a summary).
        strict: as for `log_ratio`.

    Returns:
        M (0 for less than two rows) and the best split: the number of rows before it.

    Raises:
        ArgumentError: if `rows` has no two axes.

    Example:
        >>> before, after = [[1, 0]] * 10, [[0, 1]] * 6
        >>> statistic, split = change_statistic(before + after)
        >>> statistic > 1000, split
        (True, 10)
    """
    responses = np.asarray(rows, dtype=np.float64)
    if responses.ndim != 2 or responses.shape[1] < 1:
        raise ArgumentError(f"`rows` should have the shape (n, K). Received {responses.shape}")
    if len(responses) < 2:
        return 0.0, 0
    total = responses.sum(axis=0)
    before = np.cumsum(responses, axis=0)[:-1]
    one = _log_likelihood(total.tolist()) if strict else log_evidence(total.tolist())
    # The difference of two sums of floats may be slightly negative.
    ratios = _log_evidences(before) + _log_evidences(np.maximum(total - before, 0.0)) - one
    # Larger exponents would overflow.
    return float(np.exp(np.minimum(ratios, 700.0)).sum()), int(np.argmax(ratios)) + 1


def _log_evidences(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """`log_evidence` of every row of an array of shape (n, K)."""
    prior = CONCENTRATION * counts.shape[1]
    each = gammaln(CONCENTRATION + counts) - math.lgamma(CONCENTRATION)
    explained: NDArray[np.float64] = math.lgamma(prior) - gammaln(prior + counts.sum(axis=1)) + each.sum(axis=1)
    return explained


def _log_likelihood(counts: Sequence[float]) -> float:
    """The logarithm of the maximum likelihood of one sequence with these counts."""
    total = sum(counts)
    return sum(c * math.log(c / total) for c in counts if c > 0)

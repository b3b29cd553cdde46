"""Distributions over outcomes from records and probes: pure functions.

* `VerifiedSummary` - a verified distribution
* `share` - Q_hist: the share of the recorded responses with the same outcome (GLOVE, equation 3)
* `summarise` - responses of probes as distributions for `Memory.insert_summary`
* `contradicts` - whether responses of probes contradict records
* `tabulate`, `modes` - responses as counts by outcome
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.matching import Matching
from drift_agents.types import Outcome, Record, Transition
from drift_agents.verifier.glove.statistics import log_ratio


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
        matching: when two outcomes count as the same.

    Returns:
        The share in [0, 1] (0 without responses) and the number of responses.

    Example:
        >>> from drift_agents.matching import Exact
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
        >>> from drift_agents.matching import Exact
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

    They do when two different distributions explain both samples better than one does: when the Bayes
    factor of `drift_agents.verifier.glove.statistics.log_ratio` is above 1. For one probe in a
    deterministic environment: when its outcome differs. There is no threshold to choose.

    Args:
        fresh: the probes' transitions.
        records: the records of the same transition in memory.
        matching: when two outcomes count as the same.
    """
    remembered = list(records)
    table = tabulate([*remembered, *fresh], matching)
    return log_ratio(table[: len(remembered)].sum(axis=0).tolist(), table[len(remembered) :].sum(axis=0).tolist()) > 0


def tabulate(rows: Sequence[Record | Transition], matching: Matching, outcomes: int = 2) -> NDArray[np.float64]:
    """Responses as counts by outcome.

    Args:
        rows: records, each with all its responses, and single responses.
        matching: when two outcomes count as the same.
        outcomes: the least number of columns; at least two, since one outcome alone has no alternative.

    Returns:
        Counts of shape (len(rows), K), K being `outcomes` or the number of observed ones, if that is larger.

    Example:
        >>> from drift_agents.matching import Exact
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

"""Value estimates: the highest score reachable according to memory, by value iteration over its records.

* `ValueEstimate` - the values of all states of one memory content
* `estimate_value` - the value of one record's outcome

GLOVE's appendix B.6 prints it beside every record ("Max score achievable from this path"):
"through concatenating experiences' s' with other experiences whose s is the same, the agent
constructs its internal world model". Actions never tried have no value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from drift_agents.prompt.conflict import check_conflict, settle
from drift_agents.types import Outcome, Record

SWEEPS = 10_000
"""The maximum number of sweeps; only `frequency` needs it, whose values are reached in the limit."""
CLOSE = 1e-9
"""The tolerance: a sweep that changes no value by more than this is the last."""


def _identity(state: str) -> Hashable:
    return state


class ValueEstimate:
    """The values of all states of one memory content.

    Args:
        records: the content, as in `memory.records()`.
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.conflict`).
        key: states with equal keys count as the same, as in `Matching.state_key`.

    Raises:
        ArgumentError: if there is no such rule.
    """

    def __init__(
        self, records: Iterable[Record], conflict: str = "majority", key: Callable[[str], Hashable] = _identity
    ) -> None:
        check_conflict(conflict)
        self._key = key
        seen: dict[Hashable, dict[str, dict[Outcome, tuple[float, int]]]] = {}
        for record in records:
            outcomes = seen.setdefault(key(record.state), {}).setdefault(record.action, {})
            for outcome, p in record.outcomes:
                n, last = outcomes.get(outcome, (0.0, -1))
                outcomes[outcome] = (n + p * record.n, max(last, record.now.step))
        choices = {
            state: [settle([(o, *times) for o, times in outcomes.items()], conflict) for outcomes in actions.values()]
            for state, actions in seen.items()
        }
        self._best: dict[Hashable, float] = dict.fromkeys(choices, 0.0)
        for _ in range(SWEEPS):
            change = 0.0
            for state, actions in choices.items():
                best = max(self._action_value(outcomes, conflict) for outcomes in actions)
                change, self._best[state] = max(change, best - self._best[state]), best
            if change <= CLOSE:
                break

    def _action_value(self, outcomes: list[tuple[Outcome, float]], conflict: str) -> float:
        values = [share * self(outcome) for outcome, share in outcomes]
        return max(values) if conflict == "max" else sum(values)

    def __call__(self, outcome: Outcome) -> float:
        """The highest score reachable after this outcome, at least the score so far."""
        if outcome.ended:
            return outcome.score
        return max(outcome.score, self._best.get(self._key(outcome.state), 0.0))


def estimate_value(
    record: Record,
    records: Iterable[Record],
    conflict: str = "majority",
    key: Callable[[str], Hashable] = _identity,
) -> float:
    """The highest score reachable after a record's outcome, according to memory (GLOVE, appendix B.6).

    Args:
        record: the record; of several outcomes the most probable one.
        records: the content of the memory, as in `memory.records()`.
        conflict: how several outcomes of one (state, action) are weighed.
        key: states with equal keys count as the same.

    Returns:
        A score in [0, 1].

    Raises:
        ArgumentError: if there is no such rule.

    Example:
        >>> from drift_agents.types import AgentClock
        >>> there = Record(0, "a", "1", ((Outcome("b", 0.0, False), 1.0),), 1, AgentClock())
        >>> gold = Record(1, "b", "1", ((Outcome("c", 0.5, True), 1.0),), 1, AgentClock())
        >>> estimate_value(there, [there, gold])
        0.5
    """
    return ValueEstimate(records, conflict, key)(record.outcome)

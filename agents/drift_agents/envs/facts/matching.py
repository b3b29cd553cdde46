"""When two days, and what answers lead to, count as the same.

* `FactsMatching` - what is asked about, and what was said about facts; day and wording do not count
"""

from __future__ import annotations

from collections.abc import Hashable

from drift_agents.envs.facts.statements import FactClaim, read_day
from drift_agents.matching import Exact
from drift_agents.types import Transition


class FactsMatching(Exact):
    r"""What is asked about, and what was said about facts; day and wording do not count.

    Texts that are no states of this environment are compared as they are.

    Example:
        >>> rule = FactsMatching()
        >>> one = '{"day": 4, "heard": ["It rained."], "asked": 0, "question": "What is Ana\'s office?"}'
        >>> other = '{"day": 9, "heard": [], "asked": 0, "question": "Tell me Ana\'s workspace."}'
        >>> rule.state_key(one) == rule.state_key(other)
        True
    """

    name = "facts"

    def state_key(self, state: str) -> Hashable:
        """The fact that is asked about, what was said about facts, and how often the agent has asked."""
        shown = read_day(state)
        if shown is None:
            return super().state_key(state)
        return shown.about, tuple(claim._replace(day=None) for claim in shown.claims), shown.asked

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether score, end and what was told are the same."""
        if a.outcome.score != b.outcome.score or a.outcome.ended != b.outcome.ended:
            return False
        one, other = _told(a.outcome.state), _told(b.outcome.state)
        return super().same_outcome(a, b) if one is None or other is None else one == other

    def related(self, state: str, other: str) -> bool:
        """Whether on the day of `other` the fact was asked about, or something was said about it.

        Args:
            state: the present state.
            other: a state with records.
        """
        here, there = read_day(state), read_day(other)
        if here is None or there is None:
            return True
        return there.about == here.about or any(claim.about == here.about for claim in there.claims)


def _told(state: str) -> tuple[FactClaim, ...] | None:
    shown = read_day(state)
    return None if shown is None else tuple(claim for claim in shown.claims if claim.is_told)

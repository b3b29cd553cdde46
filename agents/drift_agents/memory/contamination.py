"""Wrong but coherent experience, written on purpose: the effect of false items on a memory.

* `swap_outcomes` - two actions of one state with each other's outcomes
* `Contaminator` - how many wrong items are due among correct ones, and what they claim

Source: EDV, section 5.4: "we inject erroneous yet internally coherent experiences (e.g., incorrect payment
rules) accounting for 10% of the total memory volume". The paper does not say how they are made. Here two
actions that were tried in one state exchange their outcomes: each claim is possible in that state and
environment, and neither is true.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import combinations

import numpy as np

from drift_agents.types import Outcome, Record, Transition
from drift_envs.checks import LARGEST_SEED, check_count, check_interval


def swap_outcomes(
    records: Iterable[Record], key: Callable[[str], Hashable], rng: np.random.Generator
) -> tuple[Transition, ...]:
    """Two actions of one state with each other's outcomes.

    Pairs in which one outcome ended the episode and the other did not, or with different scores, are
    preferred.

    Args:
        records: the evidence, oldest first; of several records of one state and action the newest counts.
        key: the matching rule's key of a state.
        rng: chooses the pair.

    Returns:
        Two claims, neither of which was experienced; none if no state has two actions with different outcomes.

    Example:
        >>> from drift_agents.types import AgentClock
        >>> outcomes = {"1": Outcome("hole", 0.0, True), "2": Outcome("ice", 0.0, False)}
        >>> records = [
        ...     Record(i, "a", action, ((outcome, 1.0),), 1, AgentClock())
        ...     for i, (action, outcome) in enumerate(outcomes.items())
        ... ]
        >>> [(claim.action, claim.outcome.state) for claim in swap_outcomes(records, str, np.random.default_rng(0))]
        [('1', 'ice'), ('2', 'hole')]
    """
    newest: dict[Hashable, dict[str, Record]] = {}
    for record in records:
        newest.setdefault(key(record.state), {})[record.action] = record
    pairs = [
        pair
        for actions in newest.values()
        for pair in combinations(actions.values(), 2)
        if pair[0].outcome != pair[1].outcome
    ]
    decisive = [pair for pair in pairs if _result(pair[0].outcome) != _result(pair[1].outcome)]
    pairs = decisive or pairs
    if not pairs:
        return ()
    one, other = pairs[int(rng.integers(len(pairs)))]
    return (
        Transition(one.state, one.action, other.outcome),
        Transition(other.state, other.action, one.outcome),
    )


def _result(outcome: Outcome) -> tuple[float, bool]:
    return outcome.score, outcome.ended


class Contaminator:
    """How many wrong items are due among correct ones, and what they claim.

    It has no state: the number follows from the numbers of items, and each claim is drawn by the number
    of wrong items so far. So a copy of a memory continues like the original.

    Args:
        share: wrong items among all items, in [0, 1); .1 in the paper.
        seed: of the claims.

    Raises:
        ArgumentError: if a value is outside its range.

    Example:
        >>> contaminator = Contaminator(0.1)
        >>> [contaminator.due(correct, wrong=0) for correct in (0, 8, 9, 18)]
        [0, 0, 1, 2]
    """

    def __init__(self, share: float = 0.0, seed: int = 0) -> None:
        self.share = check_interval("contaminate", share, "[0, 1)")
        self.seed = check_count("seed", seed, 0, LARGEST_SEED)

    def due(self, correct: int, wrong: int) -> int:
        """How many wrong items are to be written now.

        Args:
            correct: how many correct items were written so far.
            wrong: how many wrong ones were.
        """
        # The small term compensates rounding: .1 * 9 / .9 is 1.
        return max(0, int(self.share * correct / (1 - self.share) + 1e-9) - wrong)

    def claims(self, records: Iterable[Record], key: Callable[[str], Hashable], wrong: int) -> tuple[Transition, ...]:
        """What the next wrong item claims; empty if no state has two actions with different outcomes.

        Args:
            records: the evidence, oldest first.
            key: the matching rule's key of a state.
            wrong: how many wrong items were written before.
        """
        return swap_outcomes(records, key, np.random.default_rng([self.seed, wrong]))

"""Wrong but coherent experience, written on purpose: what a memory does with what is not true.

* `exchanged` - two actions of one state change their outcomes; everything else is as it was lived
* `Contaminator` - how many wrong items should stand among the sound ones, and what they claim

Source: EDV, section 5.4: "we inject erroneous yet internally coherent experiences (e.g., incorrect payment
rules) accounting for 10% of the total memory volume". The paper does not say how they are made. Here two
actions that were tried in one state change their outcomes: each claim is possible in that state and in
that world, and none is true.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import combinations

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.types import Outcome, Record, Transition


def exchanged(
    records: Iterable[Record], key: Callable[[str], Hashable], rng: np.random.Generator
) -> tuple[Transition, ...]:
    """Two actions of one state with each other's outcomes.

    Pairs where it matters are taken before others: those where one outcome ended the episode and the
    other did not, or where they brought different scores.

    Args:
        records: what is known, oldest first; of several about one state and action the newest counts.
        key: the matching rule's key of a state.
        rng: chooses the state and the pair.

    Returns:
        Two claims, neither of which anybody lived; none if no state has two actions with different outcomes.

    Example:
        >>> from drift_agents.types import AgentClock
        >>> ways = {"1": Outcome("hole", 0.0, True), "2": Outcome("ice", 0.0, False)}
        >>> known = [Record(i, "a", act, ((way, 1.0),), 1, AgentClock()) for i, (act, way) in enumerate(ways.items())]
        >>> [(claim.action, claim.outcome.state) for claim in exchanged(known, str, np.random.default_rng(0))]
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
    telling = [pair for pair in pairs if _worth(pair[0].outcome) != _worth(pair[1].outcome)]
    pairs = telling or pairs
    if not pairs:
        return ()
    one, other = pairs[int(rng.integers(len(pairs)))]
    return (
        Transition(one.state, one.action, other.outcome),
        Transition(other.state, other.action, one.outcome),
    )


def _worth(outcome: Outcome) -> tuple[float, bool]:
    return outcome.score, outcome.ended


class Contaminator:
    """How many wrong items should stand among the sound ones, and what they claim.

    It keeps nothing: what is due follows from the numbers of items, and each claim is drawn by the number
    of wrong items so far. So a memory that is restored goes on as the one that was saved.

    Args:
        share: wrong items among all items, in [0, 1); .1 in the paper.
        seed: of what they claim.

    Raises:
        ArgumentError: if a value cannot be meant.

    Example:
        >>> contaminator = Contaminator(0.1)
        >>> [contaminator.due(sound, wrong=0) for sound in (0, 8, 9, 18)]
        [0, 0, 1, 2]
    """

    def __init__(self, share: float = 0.0, seed: int = 0) -> None:
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
            raise ArgumentError(f"`contaminate` should be a number in [0, 1). Received {share!r}")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ArgumentError(f"`seed` should be a whole number, not negative. Received {seed!r}")
        self.share, self.seed = float(share), seed

    def due(self, sound: int, wrong: int) -> int:
        """How many wrong items are missing.

        Args:
            sound: how many sound items were written, all in all.
            wrong: how many wrong ones were.
        """
        # The small term takes back what division loses: .1 * 9 / .9 is 1.
        return max(0, int(self.share * sound / (1 - self.share) + 1e-9) - wrong)

    def claims(self, records: Iterable[Record], key: Callable[[str], Hashable], wrong: int) -> tuple[Transition, ...]:
        """What the next wrong item claims; nothing if too little is known.

        Args:
            records: what is known, oldest first.
            key: the matching rule's key of a state.
            wrong: how many wrong items there were before.
        """
        return exchanged(records, key, np.random.default_rng([self.seed, wrong]))

"""The vanilla memory: append everything, recall what happened in the same state.

* `VanillaMemory` - GLOVE's retrieval-augmented baseline (paper, section 5.1 and appendix B.1)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from drift_agents.errors import ArgumentError
from drift_agents.matching.base import Matching
from drift_agents.memory.ledger import Ledger
from drift_agents.memory.ledgered import LedgerMemory
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Outcome,
    Plain,
    Record,
    RecordId,
    Removed,
    Retrieved,
)

ORDERS = ("oldest", "newest")


class VanillaMemory(LedgerMemory):
    """Append everything, recall the top-k of the same state (GLOVE, appendix B.1).

    The paper leaves open how records of one state are ranked, though all are equally similar. A
    similarity index that breaks ties by insertion gives the oldest first: that is the default
    here, and `order="newest"` is the alternative. `k` counts records of one action, so that one
    action tried often does not push the others out of the prompt.

    Args:
        k: records recalled for each action of the state; positive.
        order: `oldest` or `newest`: which records come first when there are more than `k`.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if `k` is not positive or `order` is unknown.

    Example:
        >>> memory = VanillaMemory(k=1)
        >>> fell = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock())
        >>> memory.observe(fell, AgentClock())
        0
        >>> [record.outcome.state for record in memory.retrieve("a", None, AgentClock()).records]
        ['hole']
    """

    name = "vanilla"
    needs: frozenset[str] = frozenset()
    supervision = "none"

    def __init__(self, *, k: int = 5, order: str = "oldest", matching: Matching | None = None) -> None:
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise ArgumentError(f"`k` should be a positive whole number. Received {k!r}")
        if order not in ORDERS:
            raise ArgumentError(f"`order` should be one of {', '.join(ORDERS)}. Received {order!r}")
        self.k, self.order = k, order
        self._ledger = Ledger(matching)
        # What was answered about a state, by k: most states stay as they are from step to step.
        self._answers: dict[Hashable, dict[int, Retrieved]] = {}

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The `k` oldest or newest records of every action of this state; no side effect."""
        k = self.k if k is None else k
        answers = self._answers.setdefault(self._ledger.matching.state_key(state), {})
        if k not in answers:
            chosen: list[Record] = []
            for records in self._ledger.at(state).values():
                chosen += records[:k] if self.order == "oldest" else records[: -k - 1 : -1]
            answers[k] = Retrieved(tuple(chosen), (1.0,) * len(chosen))
        return answers[k]

    def observe(self, experience: Experience, now: AgentClock) -> RecordId:
        """Append it."""
        self._answers.pop(self._ledger.matching.state_key(experience.state), None)
        return self._ledger.append(experience, now)

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records; nothing else rests on them."""
        self._answers.clear()
        return Removed(self._ledger.remove(ids))

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Append a verified summary.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        self._answers.pop(self._ledger.matching.state_key(state), None)
        return self._ledger.append_summary(state, action, distribution, n, now)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Nothing: every step was written when it happened."""

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        return {"kind": self.name, "ledger": self._ledger.snapshot()}

    def restore(self, data: Plain) -> None:
        """Take back a snapshot.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory.
        """
        self._refuse_other(data)
        self._ledger.restore(data.get("ledger", {}))
        self._answers.clear()

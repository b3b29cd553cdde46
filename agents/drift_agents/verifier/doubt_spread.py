"""Doubt that spreads: what is older than a confirmed drift is checked before it is used. Ours, not the paper's.

* `DoubtSpread` - since when what memory says is doubted, and what has been checked since
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from drift_agents.types import Record
from drift_agents.verifier.base import later_doubt


class DoubtSpread:
    """Since when what memory says is doubted, and what has been checked since.

    A contradiction that probes have confirmed puts everything that was written before it in doubt.
    When the world changes once more (`later_doubt`), everything is in doubt again, checked or not.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> old = Record(0, "s", "1", ((Outcome("F", 0.0, False), 1.0),), 1, AgentClock(0, 3))
        >>> spread = DoubtSpread()
        >>> spread.covers("s", "1", [old])
        False
        >>> spread.note_drift(newest=5, step=20)
        >>> spread.covers("s", "1", [old])
        True
        >>> spread.note_check("s", "1")
        >>> spread.covers("s", "1", [old])
        False
    """

    def __init__(self) -> None:
        self.since: int | None = None
        self._checked: set[tuple[Hashable, str]] = set()

    def note_drift(self, newest: int, step: int) -> None:
        """Note a contradiction that probes have confirmed.

        Args:
            newest: the step at which memory had last written about what was contradicted.
            step: the present step.
        """
        since = later_doubt(self.since, newest, step)
        if since != self.since:
            self.since = since
            self._checked.clear()

    def note_check(self, key: Hashable, action: str) -> None:
        """Note that a state and action have been checked, with or without an answer."""
        self._checked.add((key, action))

    def covers(self, key: Hashable, action: str, known: Sequence[Record]) -> bool:
        """Whether what memory says about a state and action is in doubt: all of it is old, none of it checked.

        Args:
            key: the state by the matching rule.
            action: the action.
            known: what memory says, oldest first.
        """
        if self.since is None or not known or (key, action) in self._checked:
            return False
        return known[-1].now.step < self.since

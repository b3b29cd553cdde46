"""What an agent has before its eyes without recalling anything from earlier episodes.

* `NO_ID` - the number of what memory does not hold
* `EpisodeView` - this episode's own steps, and what a verifier vouches for
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import chain

from drift_agents.matching.base import Matching
from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Experience, Record, RecordId, Retrieved

NO_ID: RecordId = -1
"""The number of what memory does not hold."""


class EpisodeView:
    """This episode's own steps, and what a verifier vouches for: a part of any memory.

    AdaMEM's state is history and observation, (h_t, o_t): its agent has the whole interaction of the
    episode in its prompt, and retrieves only what happened in earlier ones. A verified summary is no
    experience of anybody's; wherever one is, it may be shown.

    Args:
        memory: it is looked at once, without side effect.
        matching: when two states count as the same.
        lived: the steps of this episode, in order; they carry no number of memory's, but -1.

    Example:
        >>> from drift_agents.matching.base import Exact
        >>> from drift_agents.memory.none import NoMemory
        >>> from drift_agents.types import Outcome
        >>> step = Experience("a", "1", Outcome("b", 0.0, False), 0.0, AgentClock(1, 7))
        >>> present = EpisodeView(NoMemory(), Exact(), [step])
        >>> [record.action for record in present.retrieve("a", None, AgentClock(1, 8)).records]
        ['1']
    """

    def __init__(self, memory: Memory, matching: Matching, lived: Iterable[Experience]) -> None:
        self._key = matching.state_key
        self._records: dict[Hashable, list[Record]] = {}
        own = (Record(NO_ID, e.state, e.action, ((e.outcome, 1.0),), 1, e.now) for e in lived)
        for record in chain((record for record in memory.records() if record.verified), own):
            self._records.setdefault(self._key(record.state), []).append(record)

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """All that is before the agent's eyes about this state, what is verified first; `k` does not matter."""
        records = tuple(self._records.get(self._key(state), ()))
        return Retrieved(records, (1.0,) * len(records))

    def states(self) -> Iterator[str]:
        """One text for every state, in order of first mention."""
        return (records[0].state for records in self._records.values())

    def records(self) -> Iterator[Record]:
        """All records, state by state."""
        return (record for records in self._records.values() for record in records)

"""What a memory shows, to compare two of them."""

from __future__ import annotations

import copy

from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock

LATER = AgentClock(10**6, 10**6)


def contents(memory: Memory) -> str:
    """The records, and what is retrieved for the state of each, now and later.

    Retrieval may strengthen records, so it is done on a copy.
    """
    records = list(memory.records())
    states = dict.fromkeys(record.state for record in records)
    shown = [[copy.deepcopy(memory).retrieve(state, None, now) for state in states] for now in (AgentClock(), LATER)]
    return repr((records, shown))

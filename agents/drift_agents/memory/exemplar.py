"""What strategies are made from: parts of earlier episodes.

* `Exemplar` - a step of an earlier episode with what came after it
* `ExemplarMemory` - a memory that recalls such
* `recall_exemplars` - what any memory recalls in this form
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from drift_agents.memory.base import Memory
from drift_agents.types import AgentClock, Record


class Exemplar(NamedTuple):
    """A step of an earlier episode with what came after it (AdaMEM's value: state, action, rest).

    Args:
        steps: records of the step and of those that followed, in order.
        score: the score at the end of that episode.
        similarity: of its key to the present one, in [-1, 1].
        task: that episode's task in words, where it is known.
    """

    steps: tuple[Record, ...]
    score: float
    similarity: float = 1.0
    task: str = ""


@runtime_checkable
class ExemplarMemory(Protocol):
    """A memory that recalls parts of earlier episodes."""

    def exemplars(self, state: str, k: int | None, now: AgentClock) -> tuple[Exemplar, ...]:
        """The `k` parts that are most like the present, the best first; `None` leaves the number to the memory."""
        ...


def recall_exemplars(memory: Memory, state: str, k: int | None, now: AgentClock) -> tuple[Exemplar, ...]:
    """What any memory recalls of earlier episodes.

    A memory that keeps no trajectories gives its records about the present state, each of them an
    episode of one step: so every memory can be asked, and `none` gives nothing.

    Args:
        memory: who is asked; retrieval may leave its traces there.
        state: the present state.
        k: how many; `None` leaves it to the memory.
        now: the agent's clock.

    Example:
        >>> from drift_agents.memory.none import NoMemory
        >>> recall_exemplars(NoMemory(), "a", None, AgentClock())
        ()
    """
    if isinstance(memory, ExemplarMemory):
        return memory.exemplars(state, k, now)
    earlier = [record for record in memory.retrieve(state, k, now).records if record.now.episode < now.episode]
    return tuple(Exemplar((record,), record.outcome.score) for record in earlier)

"""Views of any memory: one that writes nothing, one of the present episode alone, and one of both."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from drift_agents.envs.matching import Matching
from drift_agents.memory.base import Memory
from drift_agents.prompt.retrieval import retrieve_many
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Record, RecordId, Removed, Retrieved

NO_ID: RecordId = -1
"""The number of a record that is not in memory."""


class FrozenMemory:
    """A memory whose own write rule is off: neither steps nor episodes are written.

    A verifier can still write summaries (`insert_summary`) and remove records. After it removed records
    of a state and action, the experience of that state and action is written in their place: that is how
    verifiers without probes correct memory (`overwrite`, `forget`). Retrieval is unchanged, with its side
    effects (strengths, times of last access, reflection on stored records).

    `freeze` makes one that also has the methods that the memory has beyond the protocol.

    Args:
        memory: what is read. Its content is not copied.

    Example:
        >>> from drift_agents.memory.vanilla import VanillaMemory
        >>> memory = FrozenMemory(VanillaMemory())
        >>> fell = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock())
        >>> memory.observe(fell, AgentClock()) is None, list(memory.records())
        (True, [])
    """

    name: str = "frozen"
    supervision: str = "none"

    def __init__(self, memory: Memory) -> None:
        self.inner = memory
        self.name, self.supervision = memory.name, memory.supervision
        # The state and action looked up last, their records, and whether one of these was removed since.
        self._queried: tuple[str, str] | None = None
        self._found: frozenset[RecordId] = frozenset()
        self._accepts = False

    def __getattr__(self, name: str) -> Any:
        """An attribute of the memory beyond the protocol."""
        if name == "inner":  # while a copy is made
            raise AttributeError(name)
        return getattr(self.inner, name)

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """Records and notes for this state, as without freezing."""
        self._queried, self._accepts = None, False
        return self.inner.retrieve(state, k, now)

    def retrieve_many(self, states: Sequence[str], k: int | None, now: AgentClock) -> Sequence[Retrieved]:
        """Records and notes for each of these states, as without freezing."""
        self._queried, self._accepts = None, False
        return retrieve_many(self.inner, states, k, now)

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Write nothing, except in place of records that were just removed."""
        if not self._accepts or (experience.state, experience.action) != self._queried:
            return None
        return self.inner.observe(experience, now)

    def same_transitions(self, state: str, action: str) -> list[Record]:
        """All records of this state and action, oldest first."""
        known = self.inner.same_transitions(state, action)
        self._queried, self._accepts = (state, action), False
        self._found = frozenset(record.id for record in known)
        return known

    def records(self) -> Iterator[Record]:
        """All records, oldest first."""
        return self.inner.records()

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records and the items that depend on them."""
        removed = list(ids)
        self._accepts = self._queried is not None and not self._found.isdisjoint(removed)
        return self.inner.remove(removed)

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId | None:
        """Write a verifier's summary."""
        return self.inner.insert_summary(state, action, distribution, n, now)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Write nothing."""
        self._queried, self._accepts = None, False


def freeze(memory: Memory) -> FrozenMemory:
    """A frozen memory with every method of the memory that it wraps.

    Run-time protocols look for methods on the class, so the class gets a property for each of them.

    Args:
        memory: what is read. Its content is not copied.

    Example:
        >>> from drift_agents.memory.vanilla import VanillaMemory
        >>> freeze(VanillaMemory(k=3)).k
        3
    """
    # A managed memory has the optional methods of its store as attributes of the instance.
    own = [name for name, value in getattr(memory, "__dict__", {}).items() if callable(value) and name != "inner"]
    forwarded = {
        name: property(attrgetter(f"inner.{name}"))
        for name in sorted({*dir(type(memory)), *own})
        if not name.startswith("_") and not hasattr(FrozenMemory, name)
    }
    view: type[FrozenMemory] = type(FrozenMemory.__name__, (FrozenMemory,), forwarded)
    return view(memory)


class EpisodeView:
    """The steps of the present episode, and verified summaries: a part of any memory.

    AdaMEM's state is history and observation, (h_t, o_t): its prompt holds the whole interaction of the
    present episode, and retrieves from earlier ones alone. A verified summary belongs to no episode, so it
    is always shown.

    Args:
        memory: read once, without side effect.
        matching: when two states count as the same.
        lived: the steps of the present episode, in order; their records have the id `NO_ID`.

    Example:
        >>> from drift_agents.envs.matching import Exact
        >>> from drift_agents.memory.base import NoMemory
        >>> from drift_agents.types import Outcome
        >>> step = Experience("a", "1", Outcome("b", 0.0, False), 0.0, AgentClock(1, 7))
        >>> view = EpisodeView(NoMemory(), Exact(), [step])
        >>> [record.action for record in view.retrieve("a", None, AgentClock(1, 8)).records]
        ['1']
    """

    def __init__(self, memory: Memory, matching: Matching, lived: Iterable[Experience]) -> None:
        self._key = matching.state_key
        self._records: dict[Hashable, list[Record]] = {}
        own = (Record(NO_ID, e.state, e.action, ((e.outcome, 1.0),), 1, e.now) for e in lived)
        for record in chain((record for record in memory.records() if record.verified), own):
            self._records.setdefault(self._key(record.state), []).append(record)

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """All records of this state, verified ones first; `k` and `now` are ignored."""
        records = tuple(self._records.get(self._key(state), ()))
        return Retrieved(records, (1.0,) * len(records))

    def in_mind(self) -> Iterator[str]:
        """One text for every state, in order of first mention."""
        return (records[0].state for records in self._records.values())

    def records(self) -> Iterator[Record]:
        """All records, state by state."""
        return (record for records in self._records.values() for record in records)


class MemoryAndEpisode:
    """A memory, with the steps of the present episode that it does not hold: where it is frozen, or there is none.

    What it shows beside them is unchanged, with the side effects of its retrieval.

    Args:
        memory: what is read.
        matching: when two states count as the same.
        lived: the steps of the present episode, in order; their records have ids from `NO_ID` downwards.

    Example:
        >>> from drift_agents.envs.matching import Exact
        >>> from drift_agents.memory.base import NoMemory
        >>> step = Experience("a", "1", Outcome("b", 0.0, False), 0.0, AgentClock(1, 7))
        >>> both = MemoryAndEpisode(NoMemory(), Exact(), [step])
        >>> [record.action for record in both.retrieve("a", None, AgentClock(1, 8)).records], list(both.in_mind())
        (['1'], ['a'])
    """

    def __init__(self, memory: Memory, matching: Matching, lived: Iterable[Experience]) -> None:
        self.inner, self._key = memory, matching.state_key
        self._own: dict[Hashable, list[Record]] = {}
        for place, step in enumerate(lived):
            if not any(record.now == step.now for record in memory.same_transitions(step.state, step.action)):
                record = Record(NO_ID - place, step.state, step.action, ((step.outcome, 1.0),), 1, step.now)
                self._own.setdefault(self._key(step.state), []).append(record)

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """What the memory recalls, then the steps in this state."""
        found, own = self.inner.retrieve(state, k, now), tuple(self._own.get(self._key(state), ()))
        return found._replace(records=found.records + own, weights=found.weights + (1.0,) * len(own)) if own else found

    def in_mind(self) -> Iterator[str]:
        """The states for which the memory is queried, then those of the steps."""
        listed = getattr(self.inner, "in_mind", None)
        states = (record.state for record in self.inner.records()) if listed is None else listed()
        texts: dict[Hashable, str] = {}
        for state in chain(states, (records[0].state for records in self._own.values())):
            texts.setdefault(self._key(state), state)
        return iter(texts.values())

    def records(self) -> Iterator[Record]:
        """All records of the memory, then the steps."""
        return chain(self.inner.records(), *self._own.values())

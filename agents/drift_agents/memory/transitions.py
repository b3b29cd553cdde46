"""The transition store that every memory but `none` keeps, and the base of memories that keep it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence

from drift_agents.envs.matching import Exact, Matching, StateKeys
from drift_agents.errors import ArgumentError
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Record, RecordId, Removed, Retrieved


class TransitionStore:
    """Records of transitions, indexed by (state key, action).

    Every result depends on the present records alone, not on what was removed: states and actions
    come in the order of their oldest record, and a state has the text of its oldest record.

    Args:
        matching: when two states count as the same; `Exact` if not given.

    Example:
        >>> from drift_agents.types import AgentClock, Experience, Outcome
        >>> transitions = TransitionStore()
        >>> step = Experience("a", "1", Outcome("b", 0.0, False), 0.0, AgentClock())
        >>> transitions.append(step, AgentClock())
        0
        >>> [record.outcome.state for record in transitions.same_transitions("a", "1")]
        ['b']
    """

    def __init__(self, matching: Matching | None = None) -> None:
        self.matching: Matching = Exact() if matching is None else matching
        self.keys = StateKeys(self.matching)
        self._records: dict[RecordId, Record] = {}
        self._index: dict[Hashable, dict[str, dict[RecordId, Record]]] = {}
        self._oldest: dict[Hashable, Record] = {}
        self._in_order = True
        self._next_id = 0

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, record_id: object) -> bool:
        return record_id in self._records

    def __getitem__(self, record_id: RecordId) -> Record:
        """The record of that id, which must be there."""
        return self._records[record_id]

    def __iter__(self) -> Iterator[Record]:
        """All records, oldest first."""
        return iter(self._records.values())

    def new_id(self) -> RecordId:
        """A number never used before, for records and for derived items alike."""
        self._next_id += 1
        return self._next_id - 1

    def append(self, experience: Experience, now: AgentClock) -> RecordId:
        """Write an experienced transition; returns its id."""
        outcomes = ((experience.outcome, 1.0),)
        return self.insert(Record(self.new_id(), experience.state, experience.action, outcomes, 1, now))

    def append_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Write a verified summary of `n` responses; returns its id.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        if not distribution or n < 1 or any(not p > 0 for _, p in distribution):
            raise ArgumentError(
                "a summary needs outcomes with positive probabilities and at least one response. "
                f"Received {distribution!r} and n = {n!r}"
            )
        ordered = sorted(distribution, key=lambda pair: (-pair[1], pair[0]))
        outcomes = tuple((outcome, float(p)) for outcome, p in ordered)
        return self.insert(Record(self.new_id(), state, action, outcomes, n, now, verified=True))

    def insert(self, record: Record) -> RecordId:
        """Insert a record whose id is a number of `new_id`; returns the id."""
        key = self.keys[record.state]
        self._records[record.id] = record
        self._oldest.setdefault(key, record)
        self._index.setdefault(key, {}).setdefault(record.action, {})[record.id] = record
        return record.id

    def select(self, ids: Iterable[RecordId]) -> list[Record]:
        """The records of these ids, in this order; unknown ids are ignored."""
        return [record for record_id in ids if (record := self._records.get(record_id)) is not None]

    def same_transitions(self, state: str, action: str) -> list[Record]:
        """All records of this state and action, oldest first."""
        by_action = self._index.get(self.keys[state])
        return list(by_action[action].values()) if by_action and action in by_action else []

    def by_action(self, state: str) -> dict[str, list[Record]]:
        """All records of this state, by action in the order of their oldest record, each oldest first."""
        by_action = self._index.get(self.keys[state], {})
        groups = [(action, list(records.values())) for action, records in by_action.items()]
        return dict(sorted(groups, key=lambda group: group[1][0].id))

    def states(self) -> Iterator[str]:
        """One text for every state that has records, in the order of their oldest record."""
        if not self._in_order:
            self._oldest = dict(sorted(self._oldest.items(), key=lambda item: item[1].id))
            self._in_order = True
        return (record.state for record in self._oldest.values())

    def remove(self, ids: Iterable[RecordId]) -> tuple[RecordId, ...]:
        """Remove these records; returns the ids of those that existed, in the given order."""
        removed = []
        for record_id in ids:
            record = self._records.pop(record_id, None)
            if record is None:
                continue
            removed.append(record_id)
            key = self.keys[record.state]
            by_action = self._index[key]
            del by_action[record.action][record.id]
            if not by_action[record.action]:
                del by_action[record.action]
            if not by_action:
                del self._index[key], self._oldest[key]
            elif self._oldest[key].id == record.id:
                heads = (next(iter(records.values())) for records in by_action.values())
                self._oldest[key] = min(heads, key=lambda head: head.id)
                self._in_order = False
        return tuple(removed)


class AnswerCache(dict[int, dict[Hashable, Retrieved]]):
    """The answers of a memory by k and by the key of the state: most do not change from step to step.

    Example:
        >>> cache = AnswerCache()
        >>> cache[5]["a"] = Retrieved()
        >>> cache.forget("a")
        >>> cache
        {5: {}}
    """

    def __missing__(self, k: int) -> dict[Hashable, Retrieved]:
        """The answers with a k for which there are none yet."""
        answers = self[k] = {}
        return answers

    def forget(self, key: Hashable) -> None:
        """Remove the answers about a state."""
        for answers in self.values():
            answers.pop(key, None)


class TransitionStoreMemory(ABC):
    """A memory that writes every transition: a subclass has a name and says what is retrieved.

    Args:
        matching: when two states count as the same; texts must be equal if not given.

    Example:
        >>> from drift_agents.types import AgentClock, Experience, Outcome
        >>> class Newest(TransitionStoreMemory):
        ...     name = "newest"
        ...
        ...     def retrieve(self, state, k, now):
        ...         newest = [records[-1] for records in self.transitions.by_action(state).values()]
        ...         return Retrieved(tuple(newest), (1.0,) * len(newest))
        >>> memory, now = Newest(), AgentClock()
        >>> _ = memory.observe(Experience("a", "1", Outcome("b", 0.0, False), 0.0, now), now)
        >>> [record.outcome.state for record in memory.retrieve("a", None, now).records]
        ['b']
    """

    name: str
    supervision = "none"
    transitions: TransitionStore

    def __init__(self, *, matching: Matching | None = None) -> None:
        self.transitions = TransitionStore(matching)

    @abstractmethod
    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """Records and notes for this state; `k=None` leaves the number to the memory."""

    def observe(self, experience: Experience, now: AgentClock) -> RecordId | None:
        """Append an experience; returns its id."""
        record_id = self.transitions.append(experience, now)
        self._note_written(self.transitions[record_id])
        return record_id

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Append a verified summary of `n` responses; returns its id.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        record_id = self.transitions.append_summary(state, action, distribution, n, now)
        self._note_written(self.transitions[record_id])
        return record_id

    def _note_written(self, record: Record) -> None:  # noqa: B027, some memories keep nothing else
        """Update what depends on the transition store after a record was written."""

    def same_transitions(self, state: str, action: str) -> list[Record]:
        """All records of this state and action, oldest first."""
        return self.transitions.same_transitions(state, action)

    def records(self) -> Iterator[Record]:
        """All records, oldest first."""
        return iter(self.transitions)

    def in_mind(self) -> Iterator[str]:
        """One text for every known state, in the order of their oldest record."""
        return self.transitions.states()

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records; no item depends on them."""
        return Removed(self.transitions.remove(ids))

    def end_episode(self, result: Episode, now: AgentClock) -> None:  # noqa: B027, most memories learn step by step
        """Do nothing: every step was written when it happened."""

"""The common part of AdaMEM, Synapse and ReasoningBank: a transition store, and the present episode."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from drift_agents.embedding.base import Embedding, Vectors, cosine
from drift_agents.envs.matching import Matching
from drift_agents.memory.transcript import attempt_steps, is_success
from drift_agents.memory.transitions import TransitionStore, TransitionStoreMemory
from drift_agents.types import AgentClock, Episode, Experience, Record, RecordId, Removed, Retrieved
from drift_envs.checks import check_choice, check_count

MOST = 16
"""The largest number of retrieved items: the largest in AdaMEM's figure 4."""
POOLS = ("success", "all")
"""`success`: episodes that reached the highest score that their task names (r_T = 1), as in AdaMEM and in
its comparison. `all`: failures too, as in the original ReasoningBank."""


class Choice(NamedTuple):
    """A retrieved item.

    Args:
        item: the number of a trajectory, or of a past task.
        place: a place in the trajectory.
        similarity: of its key to the query, in [-1, 1].
    """

    item: RecordId
    place: int
    similarity: float


class EpisodicMemory(TransitionStoreMemory):
    """Writes every transition, learns from an episode when it ends.

    The transition store holds every transition, since verifiers query transitions. A prompt shows the records of
    the present episode (none while the memory is frozen), verified summaries, and what the memory's own rule
    retrieves. That is chosen by
    `_choose`, at most once a step: the first query at a time of the clock is about the present state.
    Subclasses define what is learned (`_learn`) and what a removal cascades to (`_cascade`).

    Args:
        k: items retrieved, from 1 to `MOST`.
        pool: which episodes it learns from, one of `POOLS`.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    name = "episodic"
    supervision = "own reward"
    once_per_episode: ClassVar[bool] = False
    """Whether items are chosen when an episode begins; otherwise at every step."""

    def __init__(self, k: int, pool: str, matching: Matching | None) -> None:
        self.k = check_count("k", k, 1, MOST)
        self.pool = check_choice("pool", pool, POOLS)
        self.transitions = TransitionStore(matching)
        # What was written in the present episode.
        self._written: dict[RecordId, None] = {}
        # The number of the present episode, and its steps so far as pairs of state and action.
        self._episode = -1
        self._path: list[tuple[str, str]] = []
        # The time at which `_choose` was called, and its result.
        self._chosen_at: AgentClock | None = None
        self._chosen: tuple[Choice, ...] = ()
        # The records that are shown, by state; computed when first used.
        self._shown: dict[Hashable, tuple[Record, ...]] | None = None

    # What a subclass defines.

    @abstractmethod
    def _choose(self, state: str, k: int, now: AgentClock) -> tuple[Choice, ...]:
        """The items retrieved now, the best first."""

    @abstractmethod
    def _retrieved_records(self) -> Iterable[RecordId]:
        """The records of the chosen items."""

    @abstractmethod
    def _learn(self, result: Episode, steps: list[Record], now: AgentClock) -> None:
        """Learn from an episode; `steps` is not empty."""

    @abstractmethod
    def _cascade(self, removed: Sequence[RecordId]) -> tuple[RecordId, ...]:
        """Remove or cut the items that depend on removed records; returns the removed ones."""

    # What they share.

    def follow(self, experience: Experience) -> None:
        """Append a step to the history of the present episode."""
        if experience.now.episode != self._episode:
            self._episode, self._path = experience.now.episode, []
        self._path.append((experience.state, experience.action))

    def history(self, now: AgentClock) -> list[tuple[str, str]]:
        """The steps of the present episode so far, as pairs of state and action."""
        return list(self._path) if now.episode == self._episode else []

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The records shown for this state; the first query at a time is about the present one, and chooses."""
        self._update_choice(state, k, now)
        records = self._shown_by_state().get(self.transitions.keys[state], ())
        return Retrieved(records, (1.0,) * len(records))

    def in_mind(self) -> Iterator[str]:
        """One text for every state with shown records, in the order of their oldest records."""
        return (records[0].state for records in self._shown_by_state().values())

    def _update_choice(self, state: str, k: int | None, now: AgentClock) -> None:
        """Choose items, if that is due."""
        last = self._chosen_at
        if last is None or (last.episode != now.episode if self.once_per_episode else last != now):
            self._chosen_at = now
            chosen = self._choose(state, self.k if k is None else min(k, MOST), now)
            if chosen != self._chosen:
                self._chosen, self._shown = chosen, None

    def _shown_by_state(self) -> dict[Hashable, tuple[Record, ...]]:
        if self._shown is None:
            verified = (record.id for record in self.transitions if record.verified)
            ids = {*self._written, *verified, *self._retrieved_records()}
            groups: dict[Hashable, list[Record]] = {}
            for record in self.transitions.select(sorted(ids)):
                groups.setdefault(self.transitions.keys[record.state], []).append(record)
            self._shown = {key: tuple(group) for key, group in groups.items()}
        return self._shown

    def _note_written(self, record: Record) -> None:
        self._written[record.id] = None
        self._shown = None

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records, remove or cut the items that depend on them, and choose anew."""
        removed = self.transitions.remove(ids)
        for number in removed:
            self._written.pop(number, None)
        items = self._cascade(removed)
        self._update_after_removal()
        self._shown = None
        return Removed(removed, items)

    def _update_after_removal(self) -> None:
        """Let the next query choose anew."""
        self._reset_choice()

    def _reset_choice(self) -> None:
        self._chosen_at, self._chosen, self._shown = None, (), None

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Learn from the episode, if it belongs to the pool."""
        key = self.transitions.matching.state_key
        steps = attempt_steps(self.transitions.select(self._written), key, now.episode)
        if steps and (self.pool == "all" or is_success(result)):
            self._learn(result, steps, now)
        self._written = {}
        self._reset_choice()


class TaskIndex:
    """First observations of episodes, by similarity.

    Args:
        embedding: of first observations.

    Example:
        >>> from drift_agents.embedding.base import HashedEmbedding
        >>> starts = TaskIndex(HashedEmbedding())
        >>> starts.add(3, "a red hat")
        >>> starts.add(4, "an axe")
        >>> starts.nearest("a hat", 1)[0][0]
        3
    """

    def __init__(self, embedding: Embedding) -> None:
        self.embedding = embedding
        self._texts: dict[RecordId, str] = {}
        self._vectors: Vectors | None = None

    def add(self, number: RecordId, text: str) -> None:
        """Store the first observation of an episode."""
        if self._texts.get(number) != text:
            self._texts[number], self._vectors = text, None

    def remove(self, number: RecordId) -> None:
        """Remove an episode, which must be stored."""
        del self._texts[number]
        self._vectors = None

    def nearest(self, text: str, k: int) -> list[tuple[RecordId, float]]:
        """The `k` nearest episodes with their similarity, the best first; of equal ones the newest."""
        if not self._texts:
            return []
        if self._vectors is None:
            self._vectors = self.embedding.embed(list(self._texts.values()))
        similar = cosine(self.embedding.embed([text])[0], self._vectors)
        numbers = np.array(list(self._texts))
        return [(int(numbers[place]), float(similar[place])) for place in np.lexsort((-numbers, -similar))[:k]]

    def choose(self, text: str, k: int) -> tuple[Choice, ...]:
        """The `k` nearest episodes from their first step on."""
        return tuple(Choice(number, 0, similar) for number, similar in self.nearest(text, k))

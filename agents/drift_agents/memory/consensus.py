"""Consensus memory: items that a team approved, in a shared bank and in private ones.

Source: Zhu, Qi, Wang et al., "Escaping the self-confirmation trap: an execute-distill-verify paradigm for agentic
experience learning" (EDV), sections 4.3-4.5, appendix C. `docs/memories/edv.md` says what is faithful.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from drift_agents.embedding.base import Embedding, HashedEmbedding, cosine
from drift_agents.envs.matching import Matching
from drift_agents.llm.base import Model, RuleModel
from drift_agents.memory.citations import Contaminator, ItemStore
from drift_agents.memory.distillation import MOST, RULES, ProposedItem, describe_claims, propose
from drift_agents.memory.transcript import attempt_steps
from drift_agents.memory.transitions import TransitionStore, TransitionStoreMemory
from drift_agents.types import AgentClock, Episode, Experience, Note, Record, RecordId, Removed, Retrieved
from drift_envs.checks import check_count, check_interval

SHARED = ""
"""The owner of the shared bank."""

SHOWN = 3
"""The default largest number of items in a prompt (appendix A.2: best at 3)."""


class ConsensusMemory(TransitionStoreMemory):
    """Items that a team approved, in a shared bank and in private ones.

    Every transition is written to the transition store, and shown only where an item cites it. Items are written by
    a team (`drift_agents.team.edv`): into the shared bank, or into the private banks of the members that
    approved. Without a team the memory distils each episode into the shared bank, without a vote (the
    first row of the paper's table 4).

    At every step the most similar items of the shared bank are retrieved, with similarity at least
    `shared`; if they are fewer than `memories`, also those of the acting member's private bank, with
    similarity at least `private`. They are in the prompt as notes {title, description, content}; the
    transitions that they cite are there as experience, for policies that compute instead of reading, and
    so are verified summaries.

    Args:
        memories: the largest number of items in a prompt; 0 for none.
        shared: the lowest similarity in the shared bank, in [-1, 1].
        private: the lowest similarity in the private bank, in [-1, 1].
        cascade: what happens to items whose evidence is removed (`drift_agents.memory.citations`).
        contaminate: the share of wrong items among all, in [0, 1): when one is due, it is written into the
            shared bank without a vote.
        model: the distiller where there is no team; a fixed rule if not given.
        embedding: of situations; hashed words and letters if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> from drift_agents.types import Outcome
        >>> memory = ConsensusMemory()
        >>> memory.observe(Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock()), AgentClock())
        0
        >>> memory.end_episode(Episode("Reach the goal.", 0.0, 1, True), AgentClock(0, 1))
        >>> memory.retrieve("a", None, AgentClock(1, 1)).notes[0].text[-73:]
        'Do not do this: in a action "1" led to hole (score 0; the episode ended).'
    """

    name = "consensus"
    supervision = "own reward"

    def __init__(
        self,
        *,
        memories: int = SHOWN,
        shared: float = 0.80,
        private: float = 0.85,
        cascade: str = "cut",
        contaminate: float = 0.0,
        model: Model | None = None,
        embedding: Embedding | None = None,
        matching: Matching | None = None,
    ) -> None:
        self.memories = check_count("memories", memories, 0)
        self.shared = check_interval("shared", shared, "[-1, 1]")
        self.private = check_interval("private", private, "[-1, 1]")
        self.contaminator = Contaminator(contaminate)
        self.model: Model = RuleModel(RULES) if model is None else model
        self.transitions = TransitionStore(matching)
        self._banks = ItemBanks(HashedEmbedding() if embedding is None else embedding, cascade, self.key)
        self._has_team = False
        self._member, self._task = SHARED, ""
        # What was written in the present episode, and the steps of the one before.
        self._written: dict[RecordId, None] = {}
        self._attempt: tuple[Record, ...] = ()
        # The numbers of correct and wrong items written so far; removed ones stay counted.
        self._correct = self._wrong = 0
        # The time and state of the first query, and the items retrieved for it, the most similar first.
        self._focus: tuple[AgentClock, str] | None = None
        self._active: tuple[RecordId, ...] = ()
        # Derived from it: the records that these items cite, and the results by state.
        self._cited: frozenset[RecordId] | None = None
        self._cache: dict[Hashable, Retrieved] = {}

    @property
    def key(self) -> Callable[[str], Hashable]:
        """The matching rule's key of a state."""
        return self.transitions.matching.state_key

    def attend(self) -> None:
        """Stop the memory's own distillation: a team writes the items."""
        self._has_team = True

    def address(self, member: str, task: str) -> None:
        """Set the acting member, whose private bank is read, and its task."""
        self._member, self._task = member, task
        self._focus = None

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The items and their records; the first query at a time is about the present state and chooses the items.

        Later ones at that time return the records that these items cite in other states.
        """
        if self._focus is None or self._focus[0] != now:
            self._focus = now, state
            self._activate(item.id for item in self.choose(state, self.memories if k is None else k))
        notes: tuple[Note, ...] = ()
        if self._focus[1] == state:
            notes = tuple(self._banks[number].note() for number in self._active if number in self._banks)
        key = self.key(state)
        if key not in self._cache:
            if self._cited is None:
                self._cited = self._banks.cited(self._active)
            cited = self._cited
            chosen = tuple(
                record
                for records in self.transitions.by_action(state).values()
                for record in records
                if record.verified or record.id in cited
            )
            self._cache[key] = Retrieved(chosen, (1.0,) * len(chosen))
        return self._cache[key] if not notes else self._cache[key]._replace(notes=notes)

    def choose(self, state: str, k: int) -> list[ConsensusItem]:
        """The items for a state, by the hierarchy of banks; no side effect."""
        found = self._banks.similar(self._task, state, (SHARED,), self.shared)[:k]
        if len(found) < k and self._member != SHARED:
            found += self._banks.similar(self._task, state, (self._member,), self.private)[: k - len(found)]
        return found

    def _activate(self, numbers: Iterable[RecordId]) -> None:
        before, self._active = self._active, tuple(numbers)
        if set(before) != set(self._active):
            self._clear_cache()

    def _clear_cache(self) -> None:
        self._cited = None
        self._cache.clear()

    def items(self) -> tuple[ConsensusItem, ...]:
        """All items of all banks, oldest first."""
        return tuple(self._banks)

    def audited(self) -> Iterator[tuple[RecordId, str, tuple[RecordId, ...]]]:
        """Number, owner and evidence of every item, oldest first."""
        return ((item.id, item.owner, item.evidence) for item in self._banks)

    def held(self, reader: str) -> Iterator[ConsensusItem]:
        """The items that a member can read, oldest first."""
        return (item for item in self._banks if item.owner in (SHARED, reader))

    def write_item(self, candidate: ProposedItem, task: str, owners: Sequence[str], now: AgentClock) -> None:
        """Write an item: one copy for each owner, and wrong ones where they are due.

        Args:
            candidate: the item. Its false claims (`forged`) are written as if they had been experienced.
            task: the task that it was learned from.
            owners: whose banks; `SHARED` for the shared one.
        """
        self._write(candidate, task, owners, now)
        for claims in self.contaminator.draw(self.transitions, self.key, self._correct, self._wrong):
            self._write(describe_claims(claims), task, (SHARED,), now)

    def _write(self, candidate: ProposedItem, task: str, owners: Sequence[str], now: AgentClock) -> None:
        wrong, evidence = bool(candidate.forged), candidate.evidence
        if wrong:
            evidence = tuple(self.transitions.append(Experience(*one, 0.0, now), now) for one in candidate.forged)
        present = tuple(dict.fromkeys(number for number in evidence if number in self.transitions))
        if not present:
            return
        states = tuple({self.key(record.state): record.state for record in self.transitions.select(present)}.values())
        for owner in owners:
            self._banks.add(
                ConsensusItem(
                    self.transitions.new_id(),
                    owner,
                    candidate.title,
                    candidate.description,
                    candidate.content,
                    task,
                    states,
                    present,
                    candidate.ordered,
                    len(present),
                    wrong,
                )
            )
        self._correct, self._wrong = self._correct + (not wrong), self._wrong + wrong
        self._focus = None
        self._clear_cache()

    def _note_written(self, record: Record) -> None:
        self._cache.pop(self.key(record.state), None)
        self._written[record.id] = None

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records; items that depend on them are removed, or cut."""
        removed = self.transitions.remove(ids)
        for number in removed:
            self._written.pop(number, None)
        changed = self._banks.remove_records(removed, self.transitions)
        items = tuple(sorted(item.id for item in changed if item.id not in self._banks))
        self._activate(number for number in self._active if number in self._banks)
        self._clear_cache()
        return Removed(removed, items)

    def attempt(self) -> tuple[Record, ...]:
        """The records of the last episode that were not removed, step by step."""
        return tuple(record for record in self._attempt if record.id in self.transitions)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Store the steps of the attempt; without a team, distil it.

        Raises:
            ModelError: if the model's answer has the wrong form.
        """
        steps = tuple(attempt_steps(self.transitions.select(self._written), self.key, now.episode))
        candidates: list[ProposedItem] = []
        if steps and not self._has_team:
            # Before anything changes, so that an error of the model leaves memory as it was.
            candidates = propose(self.model, [(result, steps)], MOST)
        self._written, self._attempt = {}, steps
        for candidate in candidates:
            if not any(item.content == candidate.content and item.evidence for item in self.held(SHARED)):
                self.write_item(candidate, result.task, (SHARED,), now)
        if not self._has_team:
            self._task = result.task
            self._focus = None


@runtime_checkable
class TeamMemory(Protocol):
    """A memory into which a team writes items."""

    def attend(self) -> None:
        """Stop the memory's own distillation: a team writes the items."""

    def attempt(self) -> tuple[Record, ...]:
        """The records of the last episode, step by step."""
        ...

    def write_item(self, candidate: ProposedItem, task: str, owners: Sequence[str], now: AgentClock) -> None:
        """Write an item into the banks of these owners; the empty name is the shared bank."""

    def held(self, reader: str) -> Iterator[ConsensusItem]:
        """The items that a member can read, oldest first."""
        ...

    @property
    def key(self) -> Callable[[str], Hashable]:
        """The matching rule's key of a state."""
        ...

    def records(self) -> Iterator[Record]:
        """All records of transitions, oldest first."""
        ...


class ConsensusItem(NamedTuple):
    """An item of a bank.

    Args:
        id: its number.
        owner: the member whose private bank it belongs to; `SHARED` for the shared one.
        title: its title.
        description: one sentence about it.
        content: what to do, or to avoid, and why.
        task: the task that it was learned from.
        states: the states of its evidence, in order of first mention.
        evidence: the records that it cites, in order.
        ordered: whether they are consecutive steps of one trajectory.
        length: the number of records before any was cut off.
        wrong: whether it is wrong on purpose; its text does not say so.
    """

    id: RecordId
    owner: str
    title: str
    description: str
    content: str
    task: str
    states: tuple[str, ...]
    evidence: tuple[RecordId, ...]
    ordered: bool
    length: int
    wrong: bool = False

    @property
    def steps(self) -> tuple[RecordId, ...]:
        """The records that it cites."""
        return self.evidence

    def keep_last(self, number: int) -> ConsensusItem:
        """The item with its last pieces of evidence alone."""
        return self._replace(evidence=self.evidence[-number:])

    def note(self) -> Note:
        """The item as it is in a prompt; the text of one that was cut says so."""
        lost = self.length - len(self.evidence) if self.ordered else 0
        cut = f" (What it says of its first {lost} steps no longer holds.)" if lost else ""
        return Note(self.id, f"{self.title}. {self.description} {self.content}{cut}", self.evidence)


class ItemBanks(ItemStore[ConsensusItem]):
    """All items: append-only, except that items are removed with their evidence.

    The similarity of an item to a situation is that of its most similar state. A state that is equal by
    the matching rule has similarity 1; otherwise it is the cosine between the two texts "task, state":
    the paper's query is "the current task description with the active page context", and it does not
    say which text of an item is embedded.

    Args:
        embedding: of situations.
        cascade: what happens to an item whose evidence is removed (`drift_agents.memory.citations`); `cut` cuts
            the beginning of a path, up to the removed step.
        key: the matching rule's key of a state.

    Raises:
        ArgumentError: if there is no such rule.
    """

    def __init__(self, embedding: Embedding, cascade: str, key: Callable[[str], Hashable]) -> None:
        super().__init__(cascade)
        self.embedding, self.key = embedding, key
        self._index: _SituationIndex | None = None

    def can_cut(self, item: ConsensusItem) -> bool:
        """Whether it cites consecutive steps of one trajectory."""
        return item.ordered

    def cited(self, numbers: Iterable[RecordId]) -> frozenset[RecordId]:
        """The records that these items cite, removed ones included; unknown numbers are ignored."""
        return frozenset(record for number in numbers for record in self.citations.evidence(number))

    def similar(self, task: str, state: str, owners: Container[str], least: float) -> list[ConsensusItem]:
        """The items above a similarity, the most similar first; of equal ones the newest."""
        if not self._items:
            return []
        if self._index is None or [item.id for item in self._index.items] != list(self._items):
            self._index = _SituationIndex(list(self), self.embedding, self.key)
        scores = self._index.scores(task, state)
        found = [
            (score, item)
            for score, item in zip(scores.tolist(), self._index.items, strict=True)
            if score >= least and item.owner in owners
        ]
        return [item for _, item in sorted(found, key=lambda pair: (-pair[0], -pair[1].id))]


class _SituationIndex:
    """The similarity of a fixed set of items to situations."""

    def __init__(self, items: list[ConsensusItem], embedding: Embedding, key: Callable[[str], Hashable]) -> None:
        self.items, self._embedding, self._key = items, embedding, key
        places: dict[tuple[str, str], int] = {}
        rows, columns = [], []
        for row, item in enumerate(items):
            for state in item.states:
                rows.append(row)
                columns.append(places.setdefault((item.task, state), len(places)))
        self._rows, self._columns = np.array(rows, np.int64), np.array(columns, np.int64)
        self._keys = [key(state) for _, state in places]
        self._vectors = embedding.embed([situation(*place) for place in places])
        self._scores: dict[tuple[str, str], NDArray[np.float64]] = {}

    def scores(self, task: str, state: str) -> NDArray[np.float64]:
        """The similarity of every item to a situation; shape (items,)."""
        scores = self._scores.get((task, state))
        if scores is None:
            similar = cosine(self._embedding.embed([situation(task, state)])[0], self._vectors)
            here = self._key(state)
            similar[[key == here for key in self._keys]] = 1.0
            scores = np.full(len(self.items), -1.0)
            np.maximum.at(scores, self._rows, similar[self._columns])
            self._scores[task, state] = scores
        return scores


def situation(task: str, state: str) -> str:
    """A task and a state as one text."""
    return f"{task}\n{state}"

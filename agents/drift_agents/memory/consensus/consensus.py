"""Consensus memory: what a team agreed on, in a shared bank and in private ones.

* `ConsensusMemory` - the memory of EDV
* `TeamMemory` - what a team needs of a memory that it writes into

Source: Zhu, Qi, Wang et al., "Escaping the self-confirmation trap: an execute-distill-verify paradigm for
agentic experience learning", sections 4.3-4.5, appendix C. `docs/memories/edv.md` says what is faithful.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from drift_agents.embedding.base import Embedding
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.llm.base import Model
from drift_agents.llm.rules import RuleModel
from drift_agents.matching.base import Matching
from drift_agents.memory.consensus.bank import SHARED, ConsensusItem, ItemBanks
from drift_agents.memory.consensus.distiller import propose
from drift_agents.memory.consensus.text import MOST, RULES, ProposedItem, describe_claims
from drift_agents.memory.contaminate import Contaminator
from drift_agents.memory.ledger import Ledger
from drift_agents.memory.ledgered import LedgerMemory
from drift_agents.memory.voyager.critic import attempt_steps
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Note,
    Outcome,
    Plain,
    Record,
    RecordId,
    Removed,
    Retrieved,
    Transition,
)

STANDING = 3
"""Items in a prompt, at the most (appendix A.2: best at 3)."""


@runtime_checkable
class TeamMemory(Protocol):
    """What a team needs of a memory that it writes into."""

    def attend(self) -> None:
        """From now on a team writes the items: the memory's own distillation stops."""

    def attempt(self) -> tuple[Record, ...]:
        """What was written of the episode that ended last, step by step."""
        ...

    def write_item(self, candidate: ProposedItem, task: str, owners: Sequence[str], now: AgentClock) -> None:
        """Write an item into the banks of these owners; the empty name stands for the shared bank."""

    def held(self, reader: str) -> Iterator[ConsensusItem]:
        """The items that a member can read, oldest first."""
        ...

    @property
    def key(self) -> Callable[[str], Hashable]:
        """The matching rule's key of a state."""
        ...

    def records(self) -> Iterator[Record]:
        """All records about transitions, oldest first."""
        ...


class ConsensusMemory(LedgerMemory):
    """What a team agreed on, in a shared bank and in private ones.

    Every transition goes into the ledger; none of it is shown by itself. Items are written by a team
    (`drift_agents.team.edv`): into the shared bank, or into the private banks of those who approved.
    Without a team the memory distils each episode by itself into the shared bank, and nobody votes
    (the first row of the paper's table 4).

    At every step the most similar items of the shared bank come to mind, from `shared` on; where they
    are fewer than `memories`, those of the acting member's private bank, from `private` on. They stand
    in the prompt as notes {title, description, content}; the transitions that they rest on stand there
    as experience, and so does what a verifier vouches for. That is how an item helps who computes
    instead of reading.

    Args:
        memories: items in a prompt, at the most; 0 for none.
        shared: the lowest similarity in the shared bank, in [-1, 1].
        private: the lowest similarity in the private bank, in [-1, 1].
        cascade: what becomes of items whose evidence goes (`drift_agents.memory.citations`).
        contaminate: the share of wrong items among all, in [0, 1): after so many sound ones a wrong one
            follows in the shared bank, whatever was voted.
        model: the distiller where there is no team; declared rules if not given.
        embedding: of situations; hashed words and letters if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> memory = ConsensusMemory()
        >>> memory.observe(Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock()), AgentClock())
        0
        >>> memory.end_episode(Episode("Reach the goal.", 0.0, 1, True), AgentClock(0, 1))
        >>> memory.retrieve("a", None, AgentClock(1, 1)).notes[0].text[-73:]
        'Do not do this: in a action "1" led to hole (score 0; the episode ended).'
    """

    name = "consensus"
    needs: frozenset[str] = frozenset({"outcome", "judge"})
    supervision = "own reward"

    def __init__(
        self,
        *,
        memories: int = STANDING,
        shared: float = 0.80,
        private: float = 0.85,
        cascade: str = "cut",
        contaminate: float = 0.0,
        model: Model | None = None,
        embedding: Embedding | None = None,
        matching: Matching | None = None,
    ) -> None:
        if not isinstance(memories, int) or isinstance(memories, bool) or memories < 0:
            raise ArgumentError(f"`memories` should be a whole number, not negative. Received {memories!r}")
        for name, value in (("shared", shared), ("private", private)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1 <= value <= 1:
                raise ArgumentError(f"`{name}` should be a number in [-1, 1]. Received {value!r}")
        self.memories, self.shared, self.private = memories, float(shared), float(private)
        self.contaminator = Contaminator(contaminate)
        self.model: Model = RuleModel(RULES) if model is None else model
        self._ledger = Ledger(matching)
        self._banks = ItemBanks(HashedEmbedding() if embedding is None else embedding, cascade, self.key)
        self._attended = False
        self._member, self._task = SHARED, ""
        # What was written in the episode under way, and the steps of the one before.
        self._today: dict[RecordId, None] = {}
        self._attempt: tuple[Record, ...] = ()
        # How many items were written, sound and wrong ones; what falls stays counted.
        self._sound = self._wrong = 0
        # The present moment and state, and the items that came to mind, the most similar first.
        self._moment: tuple[AgentClock, str] | None = None
        self._active: tuple[RecordId, ...] = ()
        # What follows from it: the records that these items rest on, and what is recalled of each state.
        self._cited: frozenset[RecordId] | None = None
        self._answers: dict[Hashable, Retrieved] = {}

    @property
    def key(self) -> Callable[[str], Hashable]:
        """The matching rule's key of a state."""
        return self._ledger.matching.state_key

    def attend(self) -> None:
        """From now on a team writes the items: the memory's own distillation stops."""
        self._attended = True

    def address(self, member: str, task: str) -> None:
        """From now on this member acts, on this task: its private bank is read."""
        self._member, self._task = member, task
        self._moment = None

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """What is recalled: the first question at a moment is about the present state and chooses the items.

        Later ones at that moment bring what these items say of other states.
        """
        if self._moment is None or self._moment[0] != now:
            self._moment = now, state
            self._activate(item.id for item in self.choose(state, self.memories if k is None else k))
        notes: tuple[Note, ...] = ()
        if self._moment[1] == state:
            notes = tuple(item.note() for number in self._active if (item := self._banks.get(number)) is not None)
        key = self.key(state)
        if key not in self._answers:
            if self._cited is None:
                self._cited = self._banks.cited(self._active)
            cited = self._cited
            chosen = tuple(
                record
                for records in self._ledger.at(state).values()
                for record in records
                if record.verified or record.id in cited
            )
            self._answers[key] = Retrieved(chosen, (1.0,) * len(chosen))
        return self._answers[key] if not notes else self._answers[key]._replace(notes=notes)

    def choose(self, state: str, k: int) -> list[ConsensusItem]:
        """The items that come to mind in a state, by the hierarchy of banks; no side effect.

        Args:
            state: the state.
            k: how many, at the most.
        """
        found = self._banks.similar(self._task, state, (SHARED,), self.shared)[:k]
        if len(found) < k and self._member != SHARED:
            found += self._banks.similar(self._task, state, (self._member,), self.private)[: k - len(found)]
        return found

    def _activate(self, numbers: Iterable[RecordId]) -> None:
        before, self._active = self._active, tuple(numbers)
        if set(before) != set(self._active):
            self._forget_answers()

    def _forget_answers(self) -> None:
        self._cited = None
        self._answers.clear()

    def items(self) -> tuple[ConsensusItem, ...]:
        """All items of all banks, oldest first."""
        return tuple(self._banks)

    def audited(self) -> Iterator[tuple[RecordId, str, tuple[RecordId, ...]]]:
        """For audits: number, owner and evidence of every item, oldest first."""
        return ((item.id, item.owner, item.evidence) for item in self._banks)

    def held(self, reader: str) -> Iterator[ConsensusItem]:
        """The items that a member can read, oldest first."""
        return (item for item in self._banks if item.owner in (SHARED, reader))

    def write_item(self, candidate: ProposedItem, task: str, owners: Sequence[str], now: AgentClock) -> None:
        """Write an item: one copy for each owner, and wrong ones where they are due.

        Args:
            candidate: the item. What it claims on purpose (`forged`) is written as if it had been lived.
            task: the task that it was learned from.
            owners: whose banks; `SHARED` for the shared one.
            now: when.
        """
        self._write(candidate, task, owners, now)
        for _ in range(self.contaminator.due(self._sound, self._wrong)):
            claims = self.contaminator.claims(self._ledger, self.key, self._wrong)
            if not claims:
                break
            self._write(describe_claims(claims), task, (SHARED,), now)

    def _write(self, candidate: ProposedItem, task: str, owners: Sequence[str], now: AgentClock) -> None:
        wrong, evidence = bool(candidate.forged), candidate.evidence
        if wrong:
            evidence = tuple(self._pretend(one, now) for one in candidate.forged)
        there = tuple(dict.fromkeys(number for number in evidence if number in self._ledger))
        if not there:
            return
        known = [record for number in there if (record := self._ledger.get(number)) is not None]
        states = tuple({self.key(record.state): record.state for record in known}.values())
        for owner in owners:
            self._banks.write(
                ConsensusItem(
                    self._ledger.new_id(),
                    owner,
                    candidate.title,
                    candidate.description,
                    candidate.content,
                    task,
                    states,
                    there,
                    candidate.ordered,
                    len(there),
                    wrong,
                )
            )
        self._sound, self._wrong = self._sound + (not wrong), self._wrong + wrong
        self._moment = None
        self._forget_answers()

    def _pretend(self, claim: Transition, now: AgentClock) -> RecordId:
        """Write a transition that nobody lived."""
        return self._ledger.append(Experience(*claim, 0.0, now), now)

    def observe(self, experience: Experience, now: AgentClock) -> RecordId:
        """Append it to the ledger."""
        return self._written(experience.state, self._ledger.append(experience, now))

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Append a verified summary: it is shown without an item.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        return self._written(state, self._ledger.append_summary(state, action, distribution, n, now))

    def _written(self, state: str, number: RecordId) -> RecordId:
        self._answers.pop(self.key(state), None)
        self._today[number] = None
        return number

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records; items that rest on them fall, or are cut."""
        gone = self._ledger.remove(ids)
        for number in gone:
            self._today.pop(number, None)
        fell = self._banks.fall(gone, self._ledger)
        self._activate(number for number in self._active if number in self._banks)
        self._forget_answers()
        return Removed(gone, fell)

    def attempt(self) -> tuple[Record, ...]:
        """What was written of the episode that ended last and is still there, step by step."""
        return tuple(record for record in self._attempt if record.id in self._ledger)

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Note the steps of the attempt; without a team, distil it.

        Raises:
            ModelError: if the model's answer does not have the form that it should have.
        """
        written = [record for number in self._today if (record := self._ledger.get(number)) is not None]
        steps = tuple(attempt_steps(written, self.key))
        candidates: list[ProposedItem] = []
        if steps and not self._attended:
            # The question comes first, so that a model that fails leaves memory as it was.
            candidates = propose(self.model, [(result, steps)], MOST)
        self._today, self._attempt = {}, steps
        for candidate in candidates:
            if not any(item.content == candidate.content and item.evidence for item in self.held(SHARED)):
                self.write_item(candidate, result.task, (SHARED,), now)
        if not self._attended:
            self._task = result.task
            self._moment = None

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        return {
            "kind": self.name,
            "ledger": self._ledger.snapshot(),
            "items": self._banks.snapshot(),
            "written": [self._sound, self._wrong],
            "today": list(self._today),
            "member": self._member,
            "task": self._task,
        }

    def restore(self, data: Plain) -> None:
        """Take back a snapshot; nothing changes when that fails.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory.
        """
        self._refuse_other(data)
        ledger = Ledger(self._ledger.matching)
        ledger.restore(data.get("ledger", {}))
        try:
            banks = self._banks.restored(data["items"], ledger)
            sound, wrong = (int(number) for number in data["written"])
            today = dict.fromkeys(map(int, data["today"]))
            member, task = str(data["member"]), str(data["task"])
            top = int(data["ledger"]["next_id"])
            if any(item.id >= top or item.id in ledger for item in banks) or any(n not in ledger for n in today):
                raise ValueError("every item should have an id of its own, and today's records should be there")
        except (KeyError, TypeError, ValueError, ArgumentError) as error:
            raise MemoryStateError(f"not a snapshot of the memory {self.name!r}: {error!r}") from error
        self._ledger, self._banks, self._today = ledger, banks, today
        self._sound, self._wrong, self._member, self._task = sound, wrong, member, task
        self._attempt, self._moment, self._active = (), None, ()
        self._forget_answers()

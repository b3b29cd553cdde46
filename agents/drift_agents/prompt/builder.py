"""How memory becomes a prompt.

* `Recall` - what of memory goes into a prompt
* `FocusedMemory` - a memory that has something to say about few of the states that it knows
* `PromptSource` - what a prompt is made from: a memory, or a part of one
* `PromptBuilder` - asks memory and renders, and keeps what did not change since the step before
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from drift_agents.checks import check_integer
from drift_agents.matching.base import Matching, RelatedStates
from drift_agents.prompt.conflict import check_conflict
from drift_agents.prompt.value_estimate import ValueEstimate
from drift_agents.prompt.view import fold, render_prompt
from drift_agents.types import AgentClock, Note, Record, RecordId, Retrieved

KEPT = 8192
"""Blocks of lines that are kept; more would be forgotten states, mostly."""


@dataclass(frozen=True)
class Recall:
    """What of memory goes into a prompt.

    The present state is asked first, then every other state that memory knows (or has in mind, if it
    is `FocusedMemory`), in order of first mention, so that a policy can join them into a model of the world
    (GLOVE, appendix B.6). A matching rule that is `RelatedStates` leaves out states that have nothing to do
    with the present one.

    Args:
        k: records for each question; `None` leaves it to the memory.
        states: how many other states are asked at the most.
        outlook: when given, every record of the present state is shown with the highest score that
            memory believes reachable from there, as in B.6; the value says how several outcomes of
            one (state, action) are weighed (`drift_agents.prompt.conflict`).

    Raises:
        ArgumentError: if a value can't be meant.

    Example:
        >>> Recall(k=3, outlook="newest").states
        256
    """

    k: int | None = None
    states: int = 256
    outlook: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        check_integer("k", self.k, optional=True)
        check_integer("states", self.states, 0)
        if self.outlook is not None:
            check_conflict(self.outlook)


@runtime_checkable
class FocusedMemory(Protocol):
    """A memory that answers about few of the states that it knows: prompts ask about those alone."""

    def in_mind(self) -> Iterator[str]:
        """One text for every state that it has something to say about, after it was asked about the present one."""
        ...


class PromptSource(Protocol):
    """What a prompt is made from: a memory, or a part of one (`drift_agents.memory.present`)."""

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """What is recalled in this state."""
        ...

    def states(self) -> Iterator[str]:
        """One text for every known state, in order of first mention."""
        ...

    def records(self) -> Iterator[Record]:
        """All records about transitions, oldest first."""
        ...


class _Block(NamedTuple):
    """What memory answered about one state, and its lines in the prompt."""

    records: tuple[Record, ...]
    weights: tuple[float, ...]
    ids: list[RecordId]
    text: str
    own: bool
    """Whether all records are about the state that was asked for."""


class PromptBuilder:
    """Asks memory and renders the prompt.

    Most of a prompt stood in the one before. So the lines of a state are kept until memory answers
    otherwise; the text is the same as without that.

    Args:
        matching: when two states count as the same.
        recall: what of memory goes into a prompt.
    """

    def __init__(self, matching: Matching, recall: Recall) -> None:
        self.matching, self.recall = matching, recall
        self._related = matching.related if isinstance(matching, RelatedStates) else None
        self._blocks: dict[str, _Block] = {}
        self._asked: PromptSource | None = None
        self._focused: FocusedMemory | None = None

    def make(
        self,
        memory: PromptSource,
        task: str,
        state: str,
        actions: Sequence[str],
        now: AgentClock,
        doubt_since: int | None = None,
        surprised_since: int | None = None,
        strategy: str | None = None,
    ) -> tuple[str, tuple[RecordId, ...]]:
        """The rendered prompt, and the ids of what stands in it.

        Args:
            memory: what is asked; retrieval may leave its traces there.
            task: the task in words.
            state: the present state.
            actions: the admissible actions.
            now: the agent's clock.
            doubt_since: when a verifier found memory wrong.
            surprised_since: when memory was surprised, without a verifier.
            strategy: words that stand before the memory's own notes.
        """
        key, asked = self.matching.state_key(state), 0
        answer = memory.retrieve(state, self.recall.k, now)
        here = answer
        notes: dict[RecordId, Note] = {note.id: note for note in answer.notes}
        blocks: list[_Block] = []
        state_key, k = self.matching.state_key, self.recall.k
        for other in list(self._others(memory)):
            if asked >= self.recall.states:
                break
            if other == state or state_key(other) == key:
                continue
            if self._related is not None and not self._related(state, other):
                continue
            asked += 1
            answer = memory.retrieve(other, k, now)
            blocks.append(self._block(other, answer))
            if answer.notes:
                notes.update((note.id, note) for note in answer.notes)
        belief = None
        if self.recall.outlook is not None and here.records:
            belief = ValueEstimate(memory.records(), self.recall.outlook, self.matching.state_key)
        elsewhere, ids = self._elsewhere(state, here, blocks)
        text = render_prompt(
            task,
            state,
            actions,
            [item.line() for item in fold(here.records, belief, here.weights)],
            elsewhere,
            [*([] if strategy is None else [strategy]), *(note.text for note in notes.values())],
            now.step,
            doubt_since,
            surprised_since,
        )
        return text, (*sorted(ids), *notes)

    def _others(self, memory: PromptSource) -> Iterator[str]:
        """The states that are asked about beside the present one."""
        if memory is not self._asked:
            # Protocols are looked up attribute by attribute, so this is done once for each memory.
            self._asked, self._focused = memory, memory if isinstance(memory, FocusedMemory) else None
        return memory.states() if self._focused is None else self._focused.in_mind()

    def _elsewhere(self, state: str, here: Retrieved, blocks: list[_Block]) -> tuple[list[str], list[RecordId]]:
        """The lines about other states, and the ids of all records, those of this state included."""
        ids = [record.id for record in here.records]
        if _is_own(self.matching, state, here.records) and all(block.own for block in blocks):
            elsewhere = [block.text for block in blocks if block.text]
            for block in blocks:
                ids += block.ids
        else:
            # A memory that recalls records of other states may recall one twice; it is shown once,
            # as it was recalled last.
            seen = set(ids)
            fresh = {
                record.id: (record, weight)
                for block in blocks
                for record, weight in zip(block.records, block.weights, strict=True)
                if record.id not in seen
            }
            records, weights = zip(*fresh.values(), strict=True) if fresh else ((), ())
            elsewhere = [item.line() for item in fold(records, weights=weights)]
            ids += fresh
        return elsewhere, ids

    def _block(self, state: str, answer: Retrieved) -> _Block:
        block = self._blocks.get(state)
        if block is None or not (
            (block.records is answer.records or block.records == answer.records)
            and (block.weights is answer.weights or block.weights == answer.weights)
        ):
            lines = "\n".join(item.line() for item in fold(answer.records, weights=answer.weights))
            ids = [record.id for record in answer.records]
            block = _Block(answer.records, answer.weights, ids, lines, _is_own(self.matching, state, answer.records))
            if len(self._blocks) >= KEPT:
                self._blocks.clear()
            self._blocks[state] = block
        return block


def _is_own(matching: Matching, state: str, records: tuple[Record, ...]) -> bool:
    """Whether all records are about that state."""
    others = {record.state for record in records} - {state}
    return not others or {matching.state_key(other) for other in others} == {matching.state_key(state)}

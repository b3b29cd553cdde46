"""How a prompt is made from memory: which states are queried, and what the view shows of the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple, Protocol, runtime_checkable

from drift_agents.envs.matching import Matching, PathMatching, RelatedStates, StateKeys
from drift_agents.prompt.retrieval import PromptSource, check_retrieved, is_of_this_package, retrieve_many
from drift_agents.prompt.value_estimate import PathEstimate, ValueEstimate
from drift_agents.prompt.view import CONFLICTS, PromptView, Recollection, check_conflict, fold
from drift_agents.types import AgentClock, Experience, Note, Outcome, Record, RecordId, Retrieved
from drift_envs.checks import check_count, check_flag

MOVES = 6
"""How many of the newest steps of an episode a prompt with history shows by default."""

WHOLE = 10**9
"""A history of that length holds every step, and the prompt says how many there were."""

KEPT = 8192
"""The number of states whose recollections are kept; they are cleared when it is reached."""


@dataclass(frozen=True)
class Recall:
    """Which records go into a prompt.

    Memory is queried for the present state first, then for every other known state (of `FocusedMemory`,
    for those it lists), in order of first mention, so that a policy can join them into a model of the
    environment (GLOVE, appendix B.6). A matching rule that is `RelatedStates` excludes unrelated states. Records of
    other states that the first query recalls, as a similarity search does, stand among those of other states.

    Args:
        k: the number of records for each query; `None` leaves it to the memory.
        states: the maximum number of other states that are queried.
        outlook: when given, every record of the present state is shown with its value estimate, the highest
            score reachable from there according to memory, as in B.6; the value is the rule by which several
            outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).
        items: the maximum number of recollections in a prompt, for comparisons of memories at equal numbers; those of
            the present state come first, then those of the other states in the order of the queries. Items in words
            do not count. `None` for no limit.
        newest: whether the other states are queried in reverse order, so that those met last are kept.

    Raises:
        ArgumentError: if a value is outside its range.

    Example:
        >>> Recall(k=3, outlook="newest").states
        256
    """

    k: int | None = None
    states: int = 256
    outlook: str | None = None
    items: int | None = None
    newest: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_count("k", self.k, optional=True)
        check_count("states", self.states, 0)
        check_count("items", self.items, optional=True)
        check_flag("newest", self.newest)
        if self.outlook is not None:
            check_conflict(self.outlook)


@runtime_checkable
class FocusedMemory(Protocol):
    """A memory that lists the states for which prompts query it: those that it has an index of, or few of them."""

    def in_mind(self) -> Iterator[str]:
        """One text for every such state, in order of first mention, after the query for the present state."""
        ...


@dataclass(frozen=True)
class EpisodeHistory:
    """The steps of the present episode, for prompts that show them.

    A prompt with a history also has, for each outcome in the present state, how often the episode has been in the
    state that it led to, and the highest score reachable by the whole memory with the fewest steps to it
    (`drift_agents.prompt.value_estimate.PathEstimate`).

    Args:
        experiences: the steps so far, in order.
        length: how many of the newest are shown.
    """

    experiences: Sequence[Experience] = ()
    length: int = MOVES

    @property
    def is_whole(self) -> bool:
        """Whether every step is shown, however long the episode."""
        return self.length >= WHOLE

    def visits(self, key: Hashable, matching: Matching) -> tuple[tuple[str, int], ...]:
        """How often each action was executed in the states with that key."""
        counts = Counter(one.action for one in self.experiences if matching.state_key(one.state) == key)
        return tuple(counts.items())

    def arrivals(self, matching: Matching) -> Callable[[Outcome], int]:
        """How often the episode has been in the state of an outcome; 0 where the outcome ended an episode."""
        counts = Counter(matching.state_key(one.state) for one in self.experiences)
        return lambda outcome: 0 if outcome.ended else counts[matching.state_key(outcome.state)]

    def moves(self) -> tuple[Recollection, ...]:
        """The newest steps."""
        newest = self.experiences[-self.length :]
        return tuple(Recollection(one.state, one.action, one.outcome, 1.0, one.now.step) for one in newest)


class _Block(NamedTuple):
    """What memory retrieved for one state, and what the view shows of it."""

    answer: Retrieved
    ids: list[RecordId]
    items: tuple[Recollection, ...]
    own: bool
    """Whether all records are about the queried state."""


class PromptBuilder:
    """Queries memory and makes the view.

    Most recollections stood in the view before, so those of a state are kept until memory retrieves other records;
    the view is the same as without that.

    Args:
        matching: when two states count as the same.
        recall: which records go into a prompt.
    """

    def __init__(self, matching: Matching, recall: Recall) -> None:
        self.matching, self.recall = matching, recall
        self._related = matching.related if isinstance(matching, RelatedStates) else None
        self._keys = StateKeys(matching)
        self._blocks: dict[str, _Block] = {}
        path_key = matching.path_key if isinstance(matching, PathMatching) else matching.state_key
        self._paths = PathEstimate(recall.outlook or CONFLICTS[0], path_key)
        self._source: PromptSource | None = None
        self._focused: FocusedMemory | None = None
        self._is_trusted = False

    def make(
        self,
        memory: PromptSource,
        task: str,
        state: str,
        actions: Sequence[str],
        now: AgentClock,
        doubt_since: int | None = None,
        strategy: str | None = None,
        history: EpisodeHistory | None = None,
        environment: str = "generic",
    ) -> tuple[PromptView, tuple[RecordId, ...]]:
        """The view, and the ids of its records and items.

        Args:
            memory: what is queried; retrieval may have side effects there.
            now: the agent's clock.
            doubt_since: when an outcome contradicted memory.
            strategy: a text that precedes the memory's own items.
            history: the steps of the present episode, if the prompt shows them.
        """
        k = self.recall.k
        key = self._keys[state]
        is_new = memory is not self._source
        if is_new:
            # `isinstance` of a protocol checks attribute by attribute, so this is done once for each memory.
            self._source, self._focused = memory, memory if isinstance(memory, FocusedMemory) else None
            self._is_trusted = is_of_this_package(memory)
        recalled = memory.retrieve(state, k, now)
        if is_new or not self._is_trusted:
            check_retrieved(memory, recalled)
        here, associated = self._split(key, recalled)
        others = self._others(memory, state, key)
        answers = retrieve_many(memory, others, k, now)
        if not self._is_trusted:
            for answer in answers:
                check_retrieved(memory, answer)
        kept, newest = self._blocks.get, recalled.notes
        notes: dict[RecordId, Note] = {note.id: note for note in newest}
        blocks = [
            block if (block := kept(other)) is not None and block.answer is answer else self._block(other, answer)
            for other, answer in zip(others, answers, strict=True)
        ]
        for answer in answers:
            if answer.notes is not newest:
                newest = answer.notes
                notes.update((note.id, note) for note in newest)
        values = steps_to_go = visits = None
        if history is not None and here.records:
            self._paths.update(memory.records())
            values, steps_to_go = self._paths.value, self._paths.steps_to_go
            visits = history.arrivals(self.matching)
        elif self.recall.outlook is not None and here.records:
            values = ValueEstimate(memory.records(), self.recall.outlook, self._keys.__getitem__)
        items = (
            self._block(state, here).items
            if values is None
            else fold(here.records, values, here.weights, steps_to_go, visits)
        )
        elsewhere, ids = self._elsewhere(here, associated, blocks)
        most = self.recall.items
        if most is not None and len(items) + len(elsewhere) > most:
            items, elsewhere = items[:most], elsewhere[: max(0, most - len(items))]
            shown = {(one.state, one.action, one.outcome) for one in (*items, *elsewhere)}
            ids = [
                record.id
                for record in {
                    one.id: one for one in chain(*recalled[:1], *(block.answer.records for block in blocks))
                }.values()
                if any((record.state, record.action, outcome) in shown for outcome, _ in record.outcomes)
            ]
        view = PromptView(
            task,
            state,
            tuple(actions),
            items,
            elsewhere,
            (*(() if strategy is None else (strategy,)), *(note.text for note in notes.values())),
            now.step,
            doubt_since,
            None if history is None else history.visits(key, self.matching),
            () if history is None else history.moves(),
            len(history.experiences) if history is not None and history.is_whole else None,
            environment,
        )
        return view, (*sorted(ids), *notes)

    def _others(self, memory: PromptSource, state: str, key: Hashable) -> list[str]:
        """The states that are queried beside the present one: of those listed, or all in order of first mention."""
        keys, related = self._keys, self._related
        if self._focused is not None:
            found = self._focused.in_mind()
        else:
            states: dict[Hashable, str] = {}
            for record in memory.records():
                states.setdefault(keys[record.state], record.state)
            found = iter(states.values())
        if self.recall.newest:
            found = reversed(list(found))
        others = (other for other in found if keys[other] != key)
        if related is not None:
            others = (other for other in others if related(state, other))
        return list(islice(others, self.recall.states))

    def _split(self, key: Hashable, recalled: Retrieved) -> tuple[Retrieved, Retrieved]:
        """The records of the present state, and those of other states that a memory recalled with them."""
        keys = self._keys
        if all(keys[record.state] == key for record in recalled.records):
            return recalled, Retrieved()
        pairs = list(zip(recalled.records, recalled.weights, strict=True))
        here = [pair for pair in pairs if keys[pair[0].state] == key]
        associated = [pair for pair in pairs if keys[pair[0].state] != key]
        return _retrieved(here), _retrieved(associated)

    def _elsewhere(
        self, here: Retrieved, associated: Retrieved, blocks: list[_Block]
    ) -> tuple[tuple[Recollection, ...], list[RecordId]]:
        """The recollections of other states, and the ids of all records, those of this state included."""
        ids = [record.id for record in here.records]
        _, numbers, items, own = zip(*blocks, strict=True) if blocks else ((),) * 4
        if not associated.records and all(own):
            elsewhere = tuple(chain.from_iterable(items))
            ids += chain.from_iterable(numbers)
        else:
            # A memory that recalls records of other states may recall one twice; it is shown once, as the query for
            # the present state recalled it, or else as it was recalled last.
            fresh = {record.id: (record, weight) for record, weight in zip(*associated[:2], strict=True)}
            seen = {*ids, *fresh}
            fresh |= {
                record.id: (record, weight)
                for block in blocks
                for record, weight in zip(*block.answer[:2], strict=True)
                if record.id not in seen
            }
            records, weights = zip(*fresh.values(), strict=True) if fresh else ((), ())
            elsewhere = fold(records, weights=weights)
            ids += fresh
        return elsewhere, ids

    def _block(self, state: str, answer: Retrieved) -> _Block:
        """What the view shows of an answer, kept until memory retrieves other records."""
        block = self._blocks.get(state)
        if block is not None and block.answer[:2] == answer[:2]:
            block = block._replace(answer=answer)
        else:
            items = fold(answer.records, weights=answer.weights)
            is_own = {self._keys[record.state] for record in answer.records} <= {self._keys[state]}
            block = _Block(answer, [record.id for record in answer.records], items, is_own)
            if len(self._blocks) >= KEPT:
                self._blocks.clear()
        self._blocks[state] = block
        return block


def _retrieved(pairs: list[tuple[Record, float]]) -> Retrieved:
    """Records with their weights, without notes."""
    return Retrieved(tuple(record for record, _ in pairs), tuple(weight for _, weight in pairs))

"""Views made by the block are the views made plainly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError, PartError
from drift_agents.memory.base import Memory
from drift_agents.memory.management import Managed
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.memory.views import MemoryAndEpisode, freeze
from drift_agents.prompt.builder import PromptBuilder, Recall
from drift_agents.prompt.value_estimate import ValueEstimate
from drift_agents.prompt.view import PromptView, fold
from drift_agents.types import AgentClock, Experience, Note, Outcome, Retrieved
from hypothesis import given

STATES = tuple(json.dumps({"at": number}) for number in range(6))


class ByParity(Exact):
    """States count as the same when both are even or both odd."""

    def state_key(self, state: str) -> int:
        return int(json.loads(state)["at"]) % 2


class Associative(VanillaMemory):
    """A memory that recalls the neighbouring state's records too, and has something to say about them."""

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        own = super().retrieve(state, k, now)
        other = super().retrieve(STATES[(STATES.index(state) + 1) % len(STATES)], k, now)
        notes = tuple(Note(1000 + record.id, f"Mind {record.outcome.state}.") for record in own.records[:1])
        return Retrieved(own.records + other.records, own.weights + other.weights, notes)


class Fading(VanillaMemory):
    """A memory whose records count less with time, in the present state's answer as in the others'."""

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        own = super().retrieve(state, k, now)
        return own._replace(weights=tuple(0.9 ** ((now.step - record.now.step) // 3) for record in own.records))


class FadingAssociative(Fading, Associative):
    """Both at once."""


def plainly(
    memory: Memory, matching: Exact, recall: Recall, state: str, now: AgentClock
) -> tuple[PromptView, list[int]]:
    """What the view is meant to be, without keeping anything."""
    recalled = memory.retrieve(state, recall.k, now)
    key = matching.state_key(state)
    pairs = list(zip(recalled.records, recalled.weights, strict=True))
    here = [pair for pair in pairs if matching.state_key(pair[0].state) == key]
    elsewhere = {pair[0].id: pair for pair in pairs if pair not in here}
    states = dict.fromkeys(record.state for record in memory.records())
    others = [other for other in states if matching.state_key(other) != key][: recall.states]
    answers = [memory.retrieve(other, recall.k, now) for other in others]
    known = {record.id for record in recalled.records}
    elsewhere |= {
        record.id: (record, weight)
        for answer in answers
        for record, weight in zip(answer.records, answer.weights, strict=True)
        if record.id not in known
    }
    notes = {note.id: note.text for answer in (recalled, *answers) for note in answer.notes}
    belief = None
    if recall.outlook is not None:
        belief = ValueEstimate(memory.records(), recall.outlook, matching.state_key)
    view = PromptView(
        "Task.",
        state,
        ("0", "1"),
        fold([record for record, _ in here], belief, [weight for _, weight in here]),
        fold([record for record, _ in elsewhere.values()], weights=[weight for _, weight in elsewhere.values()]),
        tuple(notes.values()),
        now.step,
        7,
    )
    return view, [*sorted({*known, *elsewhere}), *notes]


steps = st.lists(
    st.tuples(
        st.sampled_from(STATES),
        st.sampled_from("01"),
        st.sampled_from(STATES),
        st.booleans(),
        st.lists(st.integers(0, 20), max_size=2),
    ),
    max_size=25,
)


@pytest.mark.parametrize("kind", [VanillaMemory, Associative, Fading, FadingAssociative])
@pytest.mark.parametrize("matching", [Exact(), ByParity()], ids=lambda matching: type(matching).__name__)
@given(
    history=steps,
    recall=st.builds(
        Recall, st.sampled_from([None, 1]), st.sampled_from([256, 2]), st.sampled_from([None, "max", "newest"])
    ),
)
def test_blocks_make_the_same_view(
    kind: Callable[..., VanillaMemory], matching: Exact, history: list[Any], recall: Recall
) -> None:
    memory = kind(k=2, matching=matching)
    maker = PromptBuilder(matching, recall)
    for time, (state, action, after, ended, gone) in enumerate(history):
        now = AgentClock(0, time)
        made, ids = maker.make(memory, "Task.", state, ("0", "1"), now, 7)
        assert (made, list(ids)) == plainly(memory, matching, recall, state, now)
        memory.observe(Experience(state, action, Outcome(after, float(ended), ended), 0.0, now), now)
        memory.remove(gone)


def test_records_of_other_states_do_not_stand_under_the_present_one() -> None:
    memory = Associative()
    for time, state in enumerate(STATES[:2]):
        now = AgentClock(0, time)
        memory.observe(Experience(state, "0", Outcome(STATES[4], 0.0, True), 0.0, now), now)
    for states in (0, 256):
        view, ids = PromptBuilder(Exact(), Recall(states=states)).make(
            memory, "Task.", STATES[0], ("0",), AgentClock(0, 2)
        )
        assert [item.state for item in view.here] == [STATES[0]]
        assert [item.state for item in view.elsewhere] == [STATES[1]]
        assert ids[:2] == (0, 1)


def test_the_number_of_other_states_is_bounded() -> None:
    memory = VanillaMemory()
    for time, state in enumerate(STATES):
        now = AgentClock(0, time)
        memory.observe(Experience(state, "0", Outcome(state, 0.0, False), 0.0, now), now)
    maker = PromptBuilder(Exact(), Recall(states=2))
    view, ids = maker.make(memory, "Task.", STATES[1], ("0",), AgentClock())
    assert [item.state for item in view.here] == [STATES[1]]
    assert [item.state for item in view.elsewhere] == [STATES[0], STATES[2]]
    assert ids == (0, 1, 2)


@pytest.mark.parametrize(
    ("recall", "elsewhere", "wanted"),
    [
        (Recall(items=4), [1, 2, 3], (0, 1, 2, 3)),
        (Recall(items=3, newest=True), [5, 4], (0, 4, 5)),
        (Recall(items=1), [], (0,)),
        (Recall(states=2, newest=True), [5, 4], (0, 4, 5)),
        (Recall(items=20), [1, 2, 3, 4, 5], (0, 1, 2, 3, 4, 5)),
    ],
)
def test_the_number_of_recollections_is_bounded(recall: Recall, elsewhere: list[int], wanted: tuple[int, ...]) -> None:
    memory = VanillaMemory()
    for time, state in enumerate(STATES):
        now = AgentClock(0, time)
        memory.observe(Experience(state, "0", Outcome(state, 0.0, False), 0.0, now), now)
    view, ids = PromptBuilder(Exact(), recall).make(memory, "Task.", STATES[0], ("0",), AgentClock())
    assert [STATES.index(item.state) for item in view.here] == [0]
    assert [STATES.index(item.state) for item in view.elsewhere] == elsewhere
    assert ids == wanted, "the ids are those of what is shown"


def test_equal_records_are_one_recollection_and_the_present_state_comes_first() -> None:
    memory = Associative()
    for time, state in enumerate([0, 0, 0, 1, 1, 4]):
        now = AgentClock(0, time)
        memory.observe(Experience(STATES[state], "0", Outcome(STATES[5], 0.0, True), 0.0, now), now)
    view, ids = PromptBuilder(Exact(), Recall(items=2)).make(memory, "Task.", STATES[0], ("0",), AgentClock(0, 9))
    assert [(item.n, item.state) for item in (*view.here, *view.elsewhere)] == [(3, STATES[0]), (2, STATES[1])]
    assert [number for number in ids if number < 1000] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"items": 0}, "`items` should be a whole number, at least 1, or None. Received 0"),
        ({"newest": 1}, "`newest` should be"),
        ({"k": 0}, "`k` should be a whole number, at least 1, or None. Received 0"),
        ({"k": 1.5}, "`k` should be a whole number, at least 1, or None. Received 1.5"),
        ({"states": -1}, "`states` should be a whole number, at least 0. Received -1"),
        ({"outlook": "mean"}, "`conflict` should be one of"),
    ],
)
def test_wrong_values_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Recall(**options)


class Neighbours(Exact):
    """A rule that also says which states have to do with a state: those beside it."""

    def related(self, state: str, other: str) -> bool:
        return abs(STATES.index(state) - STATES.index(other)) == 1


def test_a_rule_that_relates_states_leaves_out_the_others() -> None:
    memory = VanillaMemory()
    for step, state in enumerate(STATES):
        memory.observe(Experience(state, "0", Outcome("{}", 0.0, False), 0.0, AgentClock(0, step)), AgentClock(0, step))

    def asked(rule: Exact, states: int) -> list[str]:
        view, _ = PromptBuilder(rule, Recall(states=states)).make(memory, "Go.", STATES[4], ["0"], AgentClock(1, 9))
        return [item.state for item in view.elsewhere]

    assert asked(Neighbours(), 256) == [STATES[3], STATES[5]]
    assert asked(Neighbours(), 1) == [STATES[3]], "states that are left out do not count"
    assert len(asked(Exact(), 256)) == 5


class WrongLater(VanillaMemory):
    """A memory whose third answer has a weight outside its range."""

    answers = 0

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        self.answers += 1
        found = super().retrieve(state, k, now)
        return found if self.answers < 3 else found._replace(weights=(2.0,) * len(found.records))


def managed(memory: Memory) -> Memory:
    made = Managed()
    made.store = memory
    return made


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda memory: memory,
        freeze,
        lambda memory: MemoryAndEpisode(memory, Exact(), []),
        managed,
    ],
    ids=["itself", "frozen", "with the episode", "managed"],
)
def test_later_answers_of_a_memory_of_ones_own_are_checked_in_any_view(wrapped: Callable[[Memory], Memory]) -> None:
    memory, now = WrongLater(), AgentClock()
    for state in STATES[:2]:
        memory.observe(Experience(state, "1", Outcome("end", 0.0, True), 0.0, now), now)
    builder, source = PromptBuilder(Exact(), Recall()), wrapped(memory)
    builder.make(source, "task", STATES[0], ("1",), now)
    while memory.answers < 2:
        builder.make(source, "task", STATES[0], ("1",), now)
    with pytest.raises(PartError, match=re.escape("a weight in (0, 1] for each record. Received (2.0,)")):
        builder.make(source, "task", STATES[0], ("1",), now)

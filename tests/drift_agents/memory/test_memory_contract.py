"""One contract for every memory in the registry, held against a naive model."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.memory.base import Memory, make_memory
from drift_agents.prompt.builder import FocusedMemory
from drift_agents.prompt.retrieval import retrieve_many
from drift_agents.registry.tables import MEMORIES
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Record
from hypothesis import given

from tests.drift_agents.memory.contents import contents

STATES = ("a", "b", "c", "é;(", "b ")
ACTIONS = ("0", "1", "left")
OUTCOMES = tuple(Outcome(state, score, ended) for state in STATES for score, ended in ((0.0, False), (0.5, True)))

observations = st.tuples(
    st.just("observe"), st.sampled_from(STATES), st.sampled_from(ACTIONS), st.sampled_from(OUTCOMES)
)
summaries = st.tuples(
    st.just("summary"),
    st.sampled_from(STATES),
    st.sampled_from(ACTIONS),
    st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=3, unique=True),
)
removals = st.tuples(st.just("remove"), st.lists(st.integers(-1, 40), max_size=4))
retrievals = st.tuples(st.just("retrieve"), st.sampled_from(STATES), st.sampled_from([None, 1, 3]))
ends = st.just(("end",))
histories = st.lists(st.one_of(observations, summaries, removals, retrievals, ends), max_size=40)

FOCUSED = ("full_transcript", "beliefmem", "adamem", "synapse", "reasoning_bank")
"""Memories that list few of their known states."""

every_memory = pytest.mark.parametrize("name", MEMORIES.names())


def replay(
    memory: Memory, history: list[Any], check: Callable[[Memory, dict[int, Record]], None] | None = None
) -> None:
    """Do to a memory what the history says; `check` sees it beside a naive model after every step."""
    model: dict[int, Record] = {}
    written = [-1]
    for time, (kind, *arguments) in enumerate(history):
        now = AgentClock(time // 5, time)
        if kind == "observe":
            state, action, outcome = arguments
            new = memory.observe(Experience(state, action, outcome, 0.0, now), now)
            record = ((outcome, 1.0),), 1, now, False
        elif kind == "summary":
            state, action, outcomes = arguments
            shares = [(outcome, 1 / len(outcomes)) for outcome in outcomes]
            new = memory.insert_summary(state, action, shares, 6, now)
            record = tuple(sorted(shares, key=lambda pair: (-pair[1], pair[0]))), 6, now, True
        else:
            new = None
            if kind == "remove":
                fell = memory.remove(arguments[0])
                assert set(fell.records) == set(arguments[0]) & set(model)
                assert len(set(fell.records)) == len(fell.records)
                for record_id in fell.records:
                    del model[record_id]
            elif kind == "retrieve":
                memory.retrieve(*arguments, now)
            else:
                memory.end_episode(Episode("task", 0.0, 0, True), now)
        if new is not None:
            assert new > max(written), "ids grow and are never used twice"
            written.append(new)
            model[new] = Record(new, state, action, *record)
        if check is not None:
            check(memory, model)


def check_against_model(memory: Memory, model: dict[int, Record]) -> None:
    assert list(memory.records()) == list(model.values())
    if memory.name not in FOCUSED and isinstance(memory, FocusedMemory):
        assert list(memory.in_mind()) == list(dict.fromkeys(record.state for record in model.values()))
    for state in STATES:
        for action in ACTIONS:
            expected = [r for r in model.values() if (r.state, r.action) == (state, action)]
            assert memory.same_transitions(state, action) == expected


@every_memory
def test_it_fulfils_the_protocol(name: str) -> None:
    memory = make_memory(name)
    assert isinstance(memory, Memory)
    assert memory.name == name
    assert memory.supervision in ("none", "own reward", "judge", "privileged")


@every_memory
@given(history=histories)
def test_it_agrees_with_a_naive_model(name: str, history: list[Any]) -> None:
    replay(make_memory(name), history, check_against_model)


@every_memory
@given(history=histories)
def test_retrieved_records_are_stored(name: str, history: list[Any]) -> None:
    memory = make_memory(name)
    replay(memory, history)
    known = {record.id: record for record in memory.records()}
    for state in STATES:
        for k in (None, 1, 2):
            answer = memory.retrieve(state, k, AgentClock(9, 99))
            assert len(answer.records) == len(answer.weights)
            assert all(0 < weight <= 1 for weight in answer.weights)
            assert all(known[record.id] == record for record in answer.records)
            assert len(set(answer.ids)) == len(answer.ids)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in MEMORIES.names()),
        ("memory_bank", {"recalls": "all"}),
        ("generative_agents", {"recalls": "all"}),
        ("vanilla", {"order": "newest"}),
        ("managed", {"store": "memory_bank"}),
    ],
)
@given(
    history=histories,
    asked=st.lists(st.sampled_from(STATES), max_size=6),
    k=st.sampled_from([None, 1, 3]),
    first=st.sampled_from([None, *STATES]),
)
def test_many_states_are_answered_as_one_by_one(
    name: str, options: dict[str, Any], history: list[Any], asked: list[str], k: int | None, first: str | None
) -> None:
    memory, other = make_memory(name, **options), make_memory(name, **options)
    known = [("observe", state, "0", OUTCOMES[0]) for state in STATES]
    replay(memory, [*known, *history])
    replay(other, [*known, *history])
    for now in (AgentClock(9, 99), AgentClock(9, 100), AgentClock(10, 101)):
        if first is not None:
            assert memory.retrieve(first, None, now) == other.retrieve(first, None, now)
        assert list(retrieve_many(memory, asked, k, now)) == [other.retrieve(state, k, now) for state in asked]
    assert contents(memory) == contents(other)


@every_memory
@given(history=histories)
def test_queries_without_side_effect_change_nothing(name: str, history: list[Any]) -> None:
    memory, untouched = make_memory(name), make_memory(name)
    replay(memory, history)
    replay(untouched, history)
    before = contents(memory)
    for state in STATES:
        found = memory.same_transitions(state, "0")
        found.append(None)  # type: ignore[arg-type]  # the caller's own list
    list(memory.records())
    assert contents(memory) == before == contents(untouched)
    assert [memory.retrieve(s, None, AgentClock()) for s in STATES] == [
        untouched.retrieve(s, None, AgentClock()) for s in STATES
    ]


@every_memory
@given(history=histories, future=histories)
def test_a_copy_is_independent_and_continues_alike(name: str, history: list[Any], future: list[Any]) -> None:
    memory = make_memory(name)
    replay(memory, history)
    before = contents(memory)
    lost = copy.deepcopy(memory)
    lost.remove([record.id for record in lost.records()])
    lost.observe(Experience("a", "0", OUTCOMES[0], 0.0, AgentClock(9, 89)), AgentClock(9, 89))
    assert contents(memory) == before
    twins = [copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))]
    for time, (kind, *arguments) in enumerate(future):
        now = AgentClock(9, 90 + time)
        for twin in (memory, *twins):
            if kind == "observe":
                twin.observe(Experience(*arguments, 0.0, now), now)
            elif kind == "remove":
                twin.remove(arguments[0])
        assert len({repr([twin.retrieve(state, 2, now) for state in STATES]) for twin in (memory, *twins)}) == 1
    assert len({contents(twin) for twin in (memory, *twins)}) == 1


@every_memory
def test_removed_records_do_not_come_back(name: str) -> None:
    memory = make_memory(name)
    replay(memory, [("observe", s, a, o) for s in STATES for a in ACTIONS for o in OUTCOMES])
    empty = make_memory(name)
    memory.remove([record.id for record in memory.records()])
    assert list(memory.records()) == []
    assert all(not memory.same_transitions(s, a) for s in STATES for a in ACTIONS)
    assert all(memory.retrieve(s, None, AgentClock()) == empty.retrieve(s, None, AgentClock()) for s in STATES)


PROGRAM = """
from drift_agents.memory.base import make_memory
from drift_agents.registry.tables import MEMORIES
from drift_agents.types import AgentClock, Experience, Outcome
for name in MEMORIES.names():
    memory = make_memory(name)
    for time in range(30):
        now = AgentClock(time // 7, time)
        outcome = Outcome("s%d" % (time % 5), 0.1 * time, False)
        memory.observe(Experience("s%d" % (time % 4), str(time % 3), outcome, 0.0, now), now)
    memory.remove([0, 4, 5])
    shares = [(Outcome("é", 0.5, True), 0.5), (Outcome("b", 0.5, True), 0.5)]
    memory.insert_summary("s1", "0", shares, 4, AgentClock(5, 31))
    answers = [memory.retrieve("s%d" % i, 2, AgentClock(6, 40)) for i in range(4)]
    print(name, list(memory.records()), answers)
"""


@pytest.mark.integration
def test_equal_calls_give_equal_contents_in_every_process() -> None:
    first, second = (
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    )
    assert first == second
    assert first.count(b"\n") == len(MEMORIES.names())


@every_memory
def test_wrong_options_are_refused_by_name(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"the memory '{name}' does not take the option 'colour'"):
        make_memory(name, colour="red")
    make_memory(name, matching=Exact())


COUNT, FEW = "a whole number, at least 1", "a whole number in the interval [1, 16]"
UNIT, CASCADE = "one of episode, step", "one of any, majority, cut"
OPTIONS = {
    "none": {},
    "vanilla": {"k": COUNT},
    "full_transcript": {},
    "memory_bank": {"k": COUNT, "unit": UNIT, "recall_unit": UNIT, "cascade": CASCADE},
    "voyager": {"k": COUNT, "cascade": CASCADE},
    "generative_agents": {"k": COUNT, "unit": UNIT, "cascade": CASCADE},
    "beliefmem": {"k": COUNT, "unit": UNIT, "cascade": CASCADE},
    "consensus": {"cascade": CASCADE},
    "adamem": {"k": FEW, "cascade": CASCADE},
    "synapse": {"k": FEW, "cascade": CASCADE},
    "reasoning_bank": {"k": FEW, "cascade": CASCADE},
    "store": {"k": COUNT},
    "managed": {},
}
"""The options that several memories have, with their rules."""

WRONG: dict[str, tuple[Any, ...]] = {
    COUNT: (0, -1, True, 2.0, "1", None),
    FEW: (0, 17, True, 2.0, "1", None),
    UNIT: ("hour", "Step", None, 1, ["step"]),
    CASCADE: ("none", "all", "Cut", None, 1, ["cut"]),
}


@every_memory
def test_options_of_several_memories_are_refused_by_one_rule(name: str) -> None:
    shared = {option for options in OPTIONS.values() for option in options}
    assert OPTIONS[name].keys() == shared & set(inspect.signature(MEMORIES.load(name)).parameters)
    for option, rule in OPTIONS[name].items():
        for value in WRONG[rule]:
            with pytest.raises(ArgumentError) as refused:
                make_memory(name, **{option: value})
            assert str(refused.value) == f"`{option}` should be {rule}. Received {value!r}"


def test_an_unknown_memory_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'vanilla'"):
        make_memory("vanila")

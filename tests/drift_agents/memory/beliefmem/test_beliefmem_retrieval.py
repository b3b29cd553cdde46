"""What BeliefMem retrieves: alpha by hand, staleness, the best of a bank, and answers that follow every change."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from drift_agents.embedding.base import HashedEmbedding, cosine
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError
from drift_agents.memory.beliefmem import BeliefMem
from drift_agents.memory.relevance import overlap, words
from drift_agents.prompt.builder import PromptBuilder, Recall
from drift_agents.types import AgentClock, Experience, Outcome
from hypothesis import given
from hypothesis import strategies as st

from tests.drift_agents.memory.contents import contents


def at(step: int) -> AgentClock:
    """A moment; episodes have ten steps."""
    return AgentClock(step // 10, step)


def write(memory: BeliefMem, step: int, after: str = "t", state: str = "s", action: str = "1") -> int | None:
    return memory.observe(Experience(state, action, Outcome(after, 0.0, False), 0.0, at(step)), at(step))


def test_alpha_by_hand() -> None:
    """Two states that share words with the question, one of them stale; lambda .5 in episodes."""
    memory = BeliefMem(decay=0.5, unit="episode")
    write(memory, 5, "ice at two", "ice at one", "left")
    write(memory, 31, "a hole", "snow at nine", "left")
    embed = HashedEmbedding().embed
    (question,) = embed(["ice at three"])
    near = cosine(question, embed(["ice at one left", "snow at nine left"]))
    shared = [2 / 6, 1 / 8]  # {ice, at} of {ice, at, three, one, left, two}; {at} of 8 words
    assert [overlap(words("ice at three"), words("ice at one left ice at two"))] == shared[:1]
    expected = [(0.7 * near[0] + 0.3 * shared[0]) * 0.5**4, (0.7 * max(near[1], 0) + 0.3 * shared[1]) * 0.5**1]
    found = {state: alpha for state, _, alpha in memory.alphas("ice at three", at(40))}
    assert [found["ice at one"], found["snow at nine"]] == pytest.approx(expected, abs=1e-5)
    assert {s: a for s, _, a in memory.alphas("ice at one", at(40))}["ice at one"] == 0.5**4, "the same state: sim = 1"


def test_an_update_resets_staleness_and_a_query_does_not() -> None:
    memory = BeliefMem(decay=0.1)
    write(memory, 0, action="1"), write(memory, 4, action="2")
    assert [(a, alpha) for _, a, alpha in memory.alphas("s", at(5))] == [("2", 0.1), ("1", pytest.approx(1e-5))]
    before = contents(memory)
    memory.retrieve("s", None, at(5))
    assert contents(memory) == before
    write(memory, 6, action="1")
    assert [(a, alpha) for _, a, alpha in memory.alphas("s", at(6))] == [("1", 1.0), ("2", pytest.approx(0.01))]


def test_the_best_k_attributes_are_recalled_however_stale() -> None:
    """lambda ^ tau is zero as a number long before step 5000; the order is still that of alpha."""
    memory = BeliefMem(k=2, decay=0.1)
    for step, action in ((0, "1"), (1, "2"), (2, "3")):
        write(memory, step, action=action)
    assert {alpha for _, _, alpha in memory.alphas("s", at(5000))} == {0.0}
    answer = memory.retrieve("s", None, at(5000))
    assert [record.action for record in answer.records] == ["3", "2"]
    assert len(memory.retrieve("s", 1, at(5000)).records) == 1


def test_decay_weighs_time_against_similarity() -> None:
    for decay, first in ((1.0, "ice at one"), (0.1, "snow at nine")):
        memory = BeliefMem(per="bank", k=1, decay=decay)
        write(memory, 0, state="ice at one")
        write(memory, 50, state="snow at nine")
        (record,) = memory.retrieve("ice at two", None, at(51)).records
        assert record.state == first


def test_a_bank_retrieves_other_states_after_the_queried_one() -> None:
    memory = BeliefMem(k=2, decay=1.0)
    for step, state in enumerate(["here one", "here two", "elsewhere"]):
        write(memory, step, state=state)
    assert [record.state for record in memory.retrieve("here one", None, at(9)).records] == ["here one", "here two"]
    assert BeliefMem().retrieve("anywhere", None, at(0)).records == ()


def test_a_prompt_reads_a_bank_once_and_other_memories_state_by_state() -> None:
    prompts = {}
    for per in ("bank", "state"):
        memory = BeliefMem(per=per, k=1)
        for step, state in enumerate(["one", "two", "three"]):
            write(memory, step, state=state)
        prompts[per], ids = PromptBuilder(Exact(), Recall()).make(memory, "Go.", "one", ("1",), at(9))
        assert len(ids) == {"bank": 1, "state": 3}[per]
        assert list(memory.in_mind()) == {"bank": [], "state": ["one", "two", "three"]}[per]


moves = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(["x 1", "x 2", "y"]), st.sampled_from("12"), st.sampled_from("ab")),
        st.tuples(st.just("remove"), st.integers(0, 30)),
        st.tuples(st.just("ask"), st.sampled_from(["x 1", "x 2", "y", "z"])),
    ),
    max_size=25,
)


@pytest.mark.parametrize(
    "options",
    [
        {"k": 3, "decay": 1.0},
        {"per": "state"},
        {"decay": 0.5, "unit": "episode", "archived": 1},
        {"without": "merge"},
        {"without": "belief", "one_off": 0},
        {"without": "retrieval", "archived": 2},
        {"cascade": "any"},
        {"cascade": "majority"},
    ],
    ids=str,
)
@given(history=moves)
def test_answers_follow_every_change(options: dict[str, Any], history: list[Any]) -> None:
    """Answers are never stale cache entries."""
    memory = BeliefMem(**options)
    for step, (kind, *arguments) in enumerate(history):
        if kind == "write":
            state, action, after = arguments
            write(memory, step, after, state, action)
        elif kind == "remove":
            memory.remove(arguments)
        else:
            fresh = copy.deepcopy(memory)
            fresh._refresh(fresh._attributes)
            assert memory.retrieve(arguments[0], None, at(step)) == fresh.retrieve(arguments[0], None, at(step))
    known = {record.id for record in memory.records()}
    for state in ("x 1", "x 2", "y"):
        answer = memory.retrieve(state, None, at(99))
        assert {record.id for record in answer.records} <= known
        assert all(set(note.evidence) <= known for note in answer.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": True}, "`candidates` should be a whole number, at least 1. Received True"),
        ({"archived": -1}, "`archived` should be a whole number, at least 0. Received -1"),
        ({"per": "action"}, "`per` should be one of state, bank. Received 'action'"),
        ({"strength": 1.2}, "`strength` should be in the interval (0, 1]. Received 1.2"),
        ({"decay": -1}, "`decay` should be in the interval (0, 1]. Received -1"),
        ({"one_off": 2}, "`one_off` should be in the interval [0, 1]. Received 2"),
        ({"strength": 0}, "`strength` should be in the interval (0, 1]. Received 0"),
        ({"decay": 1.1}, "`decay` should be in the interval (0, 1]. Received 1.1"),
        ({"mix": -0.1}, "`mix` should be in the interval [0, 1]. Received -0.1"),
        (
            {"without": "version"},
            "`without` should be one of belief, retrieval, add, merge, or None. Received 'version'",
        ),
        ({"cap": 0.5}, "`initial` should be in order and not above `cap` (0.5). Received (0.7, 0.9)"),
    ],
)
def test_wrong_values_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        BeliefMem(**options)

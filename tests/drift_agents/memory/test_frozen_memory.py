"""A frozen memory: reads as before, writes nothing of its own, and can still be put right."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from drift_agents.envs.matching import Exact
from drift_agents.memory.base import Memory, NoMemory, make_memory
from drift_agents.memory.views import FrozenMemory, freeze
from drift_agents.prompt.retrieval import retrieve_many
from drift_agents.types import AgentClock, Episode, Experience, Outcome
from drift_agents.verifier.base import NoVerifier, make_verifier

from tests.drift_agents.memory.contents import contents

OURS = ("vanilla", "memory_bank", "voyager", "generative_agents", "beliefmem")
SAFE, HOLE = Outcome("b", 0.0, False), Outcome("hole", 0.0, True)


def make_experience(outcome: Outcome, step: int, state: str = "a", action: str = "1") -> Experience:
    return Experience(state, action, outcome, 0.0, AgentClock(0, step))


def make_filled_memory(name: str) -> Memory:
    memory = make_memory(name)
    for step in range(3):
        memory.observe(make_experience(SAFE, step), AgentClock(0, step))
    memory.end_episode(Episode("task", 1.0, 3, True), AgentClock(0, 3))
    return memory


@pytest.mark.parametrize("name", OURS)
def test_experience_is_not_written(name: str) -> None:
    memory = make_filled_memory(name)
    before = contents(memory)
    frozen = freeze(memory)
    for step, state in ((3, "a"), (4, "new")):
        assert frozen.observe(make_experience(HOLE, step, state), AgentClock(1, step)) is None
    frozen.end_episode(Episode("task", 0.0, 2, True), AgentClock(1, 5))
    assert contents(frozen) == contents(memory) == before
    assert list(frozen.records()) == list(memory.records())
    assert frozen.same_transitions("new", "1") == []


@pytest.mark.parametrize("name", OURS)
def test_retrieval_is_unchanged(name: str) -> None:
    ours, theirs = freeze(make_filled_memory(name)), make_filled_memory(name)
    now = AgentClock(1, 3)
    assert ours.retrieve("a", None, now) == theirs.retrieve("a", None, now)
    assert contents(ours) == contents(theirs), "with the side effects that belong to reading"
    assert retrieve_many(ours, ["b", "a"], 1, now) == retrieve_many(theirs, ["b", "a"], 1, now)
    assert (ours.name, ours.supervision) == (theirs.name, theirs.supervision)
    assert contents(copy.deepcopy(ours)) == contents(theirs)


@pytest.mark.parametrize("name", OURS)
def test_a_verifier_can_correct_it(name: str) -> None:
    frozen = freeze(make_filled_memory(name))
    known = frozen.same_transitions("a", "1")
    assert frozen.remove([record.id for record in known]).records == tuple(record.id for record in known)
    assert frozen.insert_summary("a", "1", [(HOLE, 1.0)], 3, AgentClock(1, 5)) is not None
    (record,) = frozen.same_transitions("a", "1")
    assert record.verified
    assert record.outcome == HOLE


def test_overwrite_replaces_and_nothing_else_is_written() -> None:
    frozen, verifier = freeze(make_filled_memory("vanilla")), make_verifier("overwrite")
    verifier.bind(Exact(), np.random.default_rng(0))
    same = verifier.verify(make_experience(SAFE, 3), frozen, [], AgentClock(1, 3))
    assert same.observed is None, "an outcome that is known is not written again"
    wrong = verifier.verify(make_experience(HOLE, 4), frozen, [], AgentClock(1, 4))
    assert wrong.observed is not None
    assert [record.outcome for record in frozen.same_transitions("a", "1")] == [HOLE]
    assert verifier.verify(make_experience(SAFE, 5, "elsewhere"), frozen, [], AgentClock(1, 5)).observed is None


def test_only_replacements_of_removed_records_are_written() -> None:
    frozen = freeze(make_filled_memory("vanilla"))
    (first, *_) = frozen.same_transitions("a", "1")
    frozen.remove([first.id])
    assert frozen.observe(make_experience(HOLE, 3, "elsewhere"), AgentClock(1, 3)) is None
    frozen.retrieve("a", None, AgentClock(1, 4))  # the next decision: the moment is over
    assert frozen.observe(make_experience(HOLE, 4), AgentClock(1, 4)) is None
    (known, *_) = frozen.same_transitions("a", "1")
    frozen.remove([known.id])
    retrieve_many(frozen, ["a"], None, AgentClock(1, 4))
    assert frozen.observe(make_experience(HOLE, 4), AgentClock(1, 4)) is None
    frozen.same_transitions("a", "1")
    frozen.remove([99])
    assert frozen.observe(make_experience(HOLE, 5), AgentClock(1, 5)) is None, "nothing was removed"
    plain = NoVerifier()
    plain.bind(Exact(), np.random.default_rng(0))
    assert plain.verify(make_experience(HOLE, 6), frozen, [], AgentClock(1, 6)).observed is None


def test_attributes_beyond_the_protocol_are_forwarded() -> None:
    frozen = freeze(make_filled_memory("vanilla"))
    assert isinstance(frozen, Memory)
    assert isinstance(frozen, FrozenMemory)
    assert "in_mind" in dir(type(frozen)), "where run-time protocols look for it"
    assert list(frozen.in_mind()) == ["a"]
    assert frozen.k == 5
    assert not hasattr(freeze(NoMemory()), "in_mind")

"""Addition and deletion around every store: the contract, and what stays as it is without them."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Sequence
from itertools import product
from typing import Any

import gymnasium as gym
import hypothesis.strategies as st
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.controller.base import make_controller
from drift_agents.memory.base import ExemplarMemory, Memory, StepObserver, make_memory
from drift_agents.memory.management import Managed, make_store
from drift_agents.memory.views import freeze
from drift_agents.policy.base import make_policy
from drift_agents.prompt.builder import FocusedMemory
from drift_agents.registry.tables import MEMORIES
from drift_agents.types import AgentClock, Episode, Experience, Outcome, StepTrace, Verdict
from hypothesis import given, settings

import drift_envs  # noqa: F401 - registers the environments
from tests.drift_agents.memory.contents import contents

pytestmark = pytest.mark.integration

STATES = ("a", "b", "c")


POND = {"version": 1, "env": "DriftFrozenLake-v0", "clock": "episode", "base": {"map": ["SF", "FG"]}, "drifts": []}


STORES: tuple[Any, ...] = (
    "vanilla",
    {"vanilla": {"k": 1, "order": "newest"}},
    "memory_bank",
    "voyager",
    {"voyager": {"mode": "skills"}},
    "generative_agents",
    "beliefmem",
    "adamem",
    "none",
)


POLICIES: tuple[dict[str, Any], ...] = (
    {"addition": "fixed"},
    {"addition": "strict", "deletion": "history", "uses": 1},
    {"addition": "coarse", "error_rate": 0.5, "deletion": "periodical", "period": 2},
    {"addition": "all", "deletion": "combined", "period": 2, "uses": 1},
    {"addition": "all", "capacity": 3},
    {"addition": "coarse", "judge": "model", "deletion": "periodical", "period": 1, "capacity": 2},
)


COMBINATIONS = [
    pytest.param(
        {"store": store, **policy},
        id=f"{json.dumps(store)} {json.dumps(policy)}",
        marks=[pytest.mark.slow] if (row + column) % 2 else [],
    )
    for (row, store), (column, policy) in product(enumerate(STORES), enumerate(POLICIES))
]
"""Every store with three policies, every policy with four stores or five; the other half is slow."""


steps = st.lists(
    st.tuples(
        st.sampled_from(STATES),
        st.sampled_from(["0", "1"]),
        st.sampled_from([Outcome(s, score, ended) for s in STATES for score, ended in ((0.0, False), (1.0, True))]),
        st.sampled_from(["", "remove", "summary", "late"]),
    ),
    max_size=4,
)


episodes = st.lists(st.tuples(steps, st.sampled_from([0.0, 0.4, 1.0]), st.booleans()), max_size=8)


@pytest.mark.parametrize("options", COMBINATIONS)
@settings(max_examples=15)
@given(history=episodes)
def test_every_combination_fulfils_the_contract(live, options: dict[str, Any], history: list[Any]) -> None:
    memory = Managed(**options)
    assert isinstance(memory, Memory)
    newest = -1
    for number, (lived, score, ended) in enumerate(history):
        before = {record.id: record for record in memory.records()}
        live(memory, number, lived, score, ended)
        records = list(memory.records())
        ids = [record.id for record in records]
        assert ids == sorted(set(ids)), "ids grow"
        assert all(record.id in before or record.id > newest for record in records), "what is gone stays gone"
        assert all(before.get(record.id, record) == record for record in records), "records do not change"
        assert set(memory.dropped).isdisjoint(ids)
        assert {record_id for entry in memory.executions for record_id in entry.ids} == set(ids), "all is accounted for"
        if memory.capacity is not None:
            assert len(ids) <= memory.capacity
        newest = max([newest, *ids, *memory.dropped])
        for state in STATES:
            answer = memory.retrieve(state, None, AgentClock(number, 99))
            assert {record.id for record in answer.records} <= set(ids)


@pytest.mark.parametrize(
    "options",
    [{"store": store, **POLICIES[place % len(POLICIES)]} for place, store in enumerate(STORES)],
    ids=json.dumps,
)
@settings(max_examples=8)
@given(history=episodes, future=episodes)
def test_a_copy_continues_like_the_original(
    live, options: dict[str, Any], history: list[Any], future: list[Any]
) -> None:
    memory = Managed(**options)
    for number, episode in enumerate(history):
        live(memory, number, *episode)
    twins = [memory, copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))]
    assert len({contents(twin) for twin in twins}) == 1
    for number, episode in enumerate(future, len(history)):
        for twin in twins:
            live(twin, number, *episode)
        assert len({contents(twin) for twin in twins}) == 1
        assert len({twin.dropped for twin in twins}) == 1


@pytest.mark.parametrize("controller", ["direct", "adamem"])
@pytest.mark.parametrize("name", ["adamem", "synapse", "reasoning_bank", "consensus", "vanilla"])
def test_around_any_memory_nothing_changes_where_nothing_is_deleted(name: str, controller: str) -> None:
    """Also the hooks beside the protocol: steps, proposed states, parts of episodes."""
    lives = []
    for memory in (make_memory(name), Managed(store=name)):
        env = gym.make("DriftFrozenLake-v0", schedule=POND, text=True)
        agent = Agent(make_policy("planner"), memory, controller=make_controller(controller), seed=3)
        episodes = [agent.run_episode(env, 7 if number == 0 else None) for number in range(12)]
        inner = getattr(memory, "store", memory)
        offered = [isinstance(memory, kind) for kind in (StepObserver, FocusedMemory, ExemplarMemory)]
        lives.append((episodes, contents(inner), list(memory.records()), offered))
    assert lives[0] == lives[1]
    assert any(episode.score > 0 for episode in lives[0][0])


@pytest.mark.parametrize("kind", [StepObserver, FocusedMemory, ExemplarMemory])
def test_it_fulfils_the_optional_protocols_of_its_store(kind: type) -> None:
    assert isinstance(Managed(store="synapse"), kind)
    assert isinstance(freeze(Managed(store="synapse")), kind), "frozen too"
    assert isinstance(freeze(freeze(Managed(store="synapse"))), kind)
    assert isinstance(Managed(store="vanilla"), kind) == isinstance(make_memory("vanilla"), kind)


def test_a_copy_delegates_to_its_own_store() -> None:
    memory = Managed(store="synapse")
    twin = copy.deepcopy(memory)
    twin.follow(Experience("a", "1", Outcome("b", 0.0, False), 0.0, AgentClock()))  # type: ignore[attr-defined]
    assert twin.store.history(AgentClock()) == [("a", "1")]  # type: ignore[attr-defined]
    assert memory.store.history(AgentClock()) == []  # type: ignore[attr-defined]


def lake(place: int) -> str:
    return json.dumps({"cur_pos": [place, place]})


WAY = [(lake(1), "2", Outcome(lake(2), 0.0, False)), (lake(2), "1", Outcome(lake(3), 1.0, True))]
"""A correct execution; the agent of the test takes another way."""


def lived_by(memory: Memory, steps: Sequence[tuple[str, str, Outcome]], score: float, now: AgentClock) -> Episode:
    """Live an episode of these steps, all at one time."""
    trace = []
    for state, action, outcome in steps:
        retrieved = memory.retrieve(state, None, now).ids
        experience = Experience(state, action, outcome, 0.0, now)
        memory.observe(experience, now)
        trace.append(StepTrace(experience, "", action, retrieved, Verdict()))
    result = Episode("Reach the goal.", score, len(steps), True, trace=tuple(trace))
    memory.end_episode(result, now)
    return result


class Shown:
    """A teacher of one correct execution."""

    def show(self, count: int) -> list[Episode]:
        return [lived_by(make_memory("none"), WAY, 1.0, AgentClock(50, 7))] * count

    def correct(self, result: Episode) -> Episode:
        return lived_by(make_memory("none"), WAY, 1.0, result.trace[0].experience.now)


def shown_of(memory: Memory) -> tuple[list[Any], list[str]]:
    """What the prompt of the next episode shows of a memory, whatever the numbers of its records."""
    records, notes = [], []
    for state in (lake(1), lake(2)):
        found = memory.retrieve(state, None, AgentClock(9, 9))
        records += [
            (one.state, one.action, one.outcomes, w) for one, w in zip(found.records, found.weights, strict=True)
        ]
        notes += [note.text for note in found.notes]
    return records, notes


TAUGHT: tuple[Any, ...] = (
    *(name for name in MEMORIES.names() if name not in ("none", "managed")),
    {"voyager": {"mode": "skills"}},
    {"reasoning_bank": {"pool": "all"}},
    {"managed": {"store": "synapse"}},
)
"""All memories that keep anything."""


@pytest.mark.parametrize("store", TAUGHT, ids=json.dumps)
def test_every_store_gets_from_a_demonstration_what_it_gets_from_an_episode_of_its_own(store: Any) -> None:
    taught = Managed(store=store, addition="fixed", initial=1, teacher=Shown())
    itself = make_store(store, None, None)
    lived_by(itself, WAY, 1.0, AgentClock(-1))
    assert shown_of(taught) == shown_of(itself)
    assert any(shown_of(taught)), "and that is not nothing"
    lived_by(taught, [(lake(1), "0", Outcome(lake(7), 0.0, True))], 0.0, AgentClock())
    assert lake(7) not in repr(shown_of(taught)), "fixed"


@pytest.mark.parametrize("store", TAUGHT, ids=json.dumps)
def test_every_store_learns_from_the_correct_execution_in_place_of_a_wrong_one(store: Any) -> None:
    twin = Managed(store=store, addition="all", error_free=True, teacher=Shown())
    itself = make_store(store, None, None)
    lived_by(twin, [(lake(1), "0", Outcome(lake(7), 0.0, True))], 0.0, AgentClock())
    lived_by(itself, WAY, 1.0, AgentClock())
    assert shown_of(twin) == shown_of(itself)
    assert any(shown_of(twin))

"""Consensus memory: banks, retrieval by hierarchy, what falls with its evidence, what is written wrong."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from drift_agents.errors import ArgumentError
from drift_agents.memory.consensus import ConsensusMemory, TeamMemory
from drift_agents.memory.distillation import ProposedItem
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Removed

from tests.drift_agents.llm.scripted import ScriptedModel

NOW = AgentClock()
TASK = "Cross the lake."


def play_episode(memory: ConsensusMemory, *steps: tuple[str, str, str, float, bool], score: float = 0.0) -> list[int]:
    """Live one episode; returns the ids of what was written."""
    ids = []
    for number, (state, action, after, reward, ended) in enumerate(steps):
        now = AgentClock(0, number)
        ids.append(memory.observe(Experience(state, action, Outcome(after, reward, ended), 0.0, now), now))
    memory.end_episode(Episode(TASK, score, len(steps), True), AgentClock(0, len(steps)))
    return ids


WAY = (("s", "r", "m", 0.0, False), ("m", "r", "n", 0.0, False), ("n", "r", "g", 1.0, True))


def make_team_memory(**options: Any) -> ConsensusMemory:
    memory = ConsensusMemory(**options)
    memory.attend()
    return memory


def titles(memory: ConsensusMemory, state: str, now: AgentClock) -> list[str]:
    return [note.text.split(".")[0] for note in memory.retrieve(state, None, now).notes]


def make_item(title: str, *evidence: int, ordered: bool = False) -> ProposedItem:
    return ProposedItem(title, "D.", "C.", evidence, ordered)


def test_it_fulfils_the_protocol_of_teams() -> None:
    assert isinstance(ConsensusMemory(), TeamMemory)


def test_the_transition_store_alone_is_not_shown() -> None:
    memory = make_team_memory()
    play_episode(memory, *WAY)
    assert memory.retrieve("s", None, AgentClock(1, 3)) == ((), (), ())
    memory.insert_summary("s", "r", [(Outcome("h", 0.0, True), 1.0)], 1, NOW)
    answer = memory.retrieve("s", None, AgentClock(1, 4))
    assert [record.verified for record in answer.records] == [True], "but verified records are"


def test_an_item_shows_exactly_the_transitions_that_it_cites() -> None:
    memory = make_team_memory()
    first, second, third = play_episode(memory, *WAY)
    play_episode(memory, ("m", "d", "h", 0.0, True))
    memory.write_item(make_item("Way", first, second, third, ordered=True), TASK, ("",), NOW)
    now = AgentClock(1, 9)
    assert [record.id for record in memory.retrieve("s", None, now).records] == [first]
    assert [record.id for record in memory.retrieve("m", None, now).records] == [second], "the step down is not cited"
    assert not memory.retrieve("m", None, now).notes, "notes stand with the present state alone"
    assert memory.retrieve("s", None, now).notes[0].text == "Way. D. C."


def test_without_a_team_every_episode_is_distilled_into_the_shared_bank() -> None:
    memory = ConsensusMemory()
    play_episode(memory, *WAY, score=1.0)
    play_episode(memory, ("s", "d", "h", 0.0, True))
    assert [(item.title, item.owner) for item in memory.items()] == [
        ("Way to score 1 in 3 steps", ""),
        ('Avoid "d"', ""),
    ]
    play_episode(memory, ("s", "d", "h", 0.0, True))
    assert len(memory.items()) == 2, "what is held already is not written again"
    alone = make_team_memory()
    play_episode(alone, *WAY, score=1.0)
    assert alone.items() == ()


def test_a_model_can_distil_where_there_is_no_team() -> None:
    item = {"title": "Go right", "description": "D", "content": "C", "evidence": ["1.1", "1.2"]}
    memory = ConsensusMemory(model=ScriptedModel([json.dumps({"items": [item]})]))
    ids = play_episode(memory, *WAY, score=1.0)
    assert [(one.title, one.evidence, one.ordered) for one in memory.items()] == [("Go right", tuple(ids[:2]), True)]


def test_the_shared_bank_comes_first_and_the_private_one_fills_up() -> None:
    memory = make_team_memory(memories=3)
    a, b, c, d, e = (play_episode(memory, ("s", str(n), "h", 0.0, True))[0] for n in range(5))
    for number, (record, owner) in enumerate([(a, "me"), (b, ""), (c, "you"), (d, "me"), (e, "me")]):
        memory.write_item(make_item(f"T{number}", record), TASK, (owner,), NOW)
    memory.address("me", TASK)
    assert titles(memory, "s", AgentClock(1, 9)) == ["T1", "T4", "T3"], "of equal ones the newest; nothing of yours"
    memory.address("you", TASK)
    assert titles(memory, "s", AgentClock(1, 9)) == ["T1", "T2"]
    memory.write_item(make_item("T5", a), TASK, ("",), NOW)
    memory.write_item(make_item("T6", a), TASK, ("",), NOW)
    memory.address("me", TASK)
    assert titles(memory, "s", AgentClock(1, 10)) == ["T6", "T5", "T1"], "enough is found in the shared bank"


def test_the_private_bank_is_stricter() -> None:
    """The situation is similar, but not the same: .8 lets it pass in the shared bank, .85 not in a private one."""
    from drift_agents.embedding.base import HashedEmbedding, cosine

    texts = [f"{TASK}\nthe ice by the old shore", f"{TASK}\nthe ice by the cold shore"]
    similar = float(cosine(*(HashedEmbedding().embed(texts)[0], HashedEmbedding().embed(texts)[1:]))[0])
    for owner, least, is_found in (
        ("", similar - 0.01, True),
        ("", similar + 0.01, False),
        ("me", similar + 0.01, False),
    ):
        memory = make_team_memory(**({"shared": least} if owner == "" else {"private": least, "shared": 0.0}))
        (record,) = play_episode(memory, ("the ice by the old shore", "r", "h", 0.0, True))
        memory.write_item(make_item("T", record), TASK, (owner,), NOW)
        memory.address("me", TASK)
        assert bool(titles(memory, "the ice by the cold shore", AgentClock(1, 9))) == is_found
        assert titles(memory, "the ice by the old shore", AgentClock(1, 10)) == ["T"], "the same state always does"


@pytest.mark.parametrize("memories", [0, 1, 2, 3])
def test_the_number_of_items_is_limited(memories: int) -> None:
    memory = make_team_memory(memories=memories)
    for number in range(5):
        (record,) = play_episode(memory, ("s", str(number), "h", 0.0, True))
        memory.write_item(make_item("T", record), TASK, ("",), NOW)
    answer = memory.retrieve("s", None, AgentClock(1, 9))
    assert len(answer.notes) == len(answer.records) == memories


@pytest.mark.parametrize(
    ("cascade", "ordered", "gone", "kept"),
    [
        ("cut", True, 0, 2),
        ("cut", True, 1, 1),
        ("cut", True, 2, 0),
        ("cut", False, 0, 3),
        ("majority", True, 0, 3),
        ("any", True, 0, 0),
    ],
)
def test_items_are_removed_or_cut_with_their_evidence(cascade: str, ordered: bool, gone: int, kept: int) -> None:
    memory = make_team_memory(cascade=cascade)
    ids = play_episode(memory, *WAY)
    memory.write_item(make_item("Way", *ids, ordered=ordered), TASK, ("", "me"), NOW)
    fallen = {item.id for item in memory.items()}
    removed = memory.remove([ids[gone]])
    assert [len(item.evidence) for item in memory.items()] == [kept] * (2 if kept else 0)
    assert set(removed.notes) == (set() if kept else fallen)
    if cascade == "cut" and ordered and kept:
        note = memory.retrieve("n", None, AgentClock(1, 9)).notes[0]
        assert note.text.endswith(f"(What it says of its first {3 - kept} steps no longer holds.)")
        assert memory.retrieve("s", None, AgentClock(1, 9)).records == ()


def test_an_unordered_item_is_removed_with_most_of_its_evidence() -> None:
    memory = make_team_memory()
    ids = play_episode(memory, *WAY)
    memory.write_item(make_item("Set", *ids), TASK, ("",), NOW)
    (item,) = memory.items()
    assert memory.remove(ids[:1]) == Removed((ids[0],), ())
    assert memory.remove(ids[1:2]) == Removed((ids[1],), (item.id,))


def test_an_item_without_present_evidence_is_not_written() -> None:
    memory = make_team_memory()
    memory.write_item(make_item("T", 7), TASK, ("",), NOW)
    assert memory.items() == ()


def test_wrong_items_are_written_like_experience() -> None:
    memory = make_team_memory(contaminate=0.5)
    (first,) = play_episode(memory, ("s", "r", "m", 0.0, False))
    (second,) = play_episode(memory, ("s", "d", "h", 0.0, True))
    memory.write_item(make_item("One", first), TASK, ("me",), NOW)
    assert [item.wrong for item in memory.items()] == [False, True]
    wrong = memory.items()[1]
    assert wrong.owner == ""
    lies = {record.action: record.outcome.state for record in memory.records() if record.id in wrong.evidence}
    assert lies == {"r": "h", "d": "m"}
    memory.write_item(make_item("Two", second), TASK, ("",), NOW)
    assert [item.wrong for item in memory.items()] == [False, True, False, True]
    memory.remove(wrong.evidence)
    assert wrong not in memory.items(), "a verifier can remove them"


def test_a_copy_continues_like_the_original() -> None:
    memory = make_team_memory(contaminate=0.3)
    for number in range(6):
        (record,) = play_episode(memory, ("s", str(number % 3), f"h{number % 3}", 0.0, number % 2 == 0))
        memory.write_item(make_item(f"T{number}", record), TASK, ("", "me"), NOW)
    memory.address("me", TASK)
    twin = copy.deepcopy(memory)
    for one in (memory, twin):
        one.write_item(make_item("More", 0), TASK, ("",), NOW)
        one.remove([0])
    assert twin.items() == memory.items()
    assert twin.retrieve("s", None, AgentClock(2, 2)) == memory.retrieve("s", None, AgentClock(2, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memories": -1}, "`memories` should be a whole number, at least 0. Received -1"),
        ({"shared": 2}, "`shared` should be in the interval"),
        ({"private": True}, "`private` should be in the interval"),
        ({"contaminate": 1.0}, "`contaminate` should be in the interval"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ConsensusMemory(**options)

"""Voyager's skills: what becomes one, overwrites it, cuts it or lets it fall, and copies."""

from __future__ import annotations

import copy

import pytest
from drift_agents.memory.voyager import Voyager
from drift_agents.types import AgentClock, Episode, Experience, Outcome
from hypothesis import given
from hypothesis import strategies as st

from tests.drift_agents.memory.contents import contents
from tests.drift_agents.memory.voyager.retrieving import TASK, retrieve_notes, retrieve_weights

# skills


def test_only_a_success_becomes_a_skill(walk) -> None:
    memory = Voyager(mode="skills", attempts=2)
    first = walk(memory, 0, "a1b")
    assert memory.skills() == ()
    assert list(retrieve_weights(memory, "a", 1)) == first, "feedback for the next attempt"
    ids = walk(memory, 1, "a2c3g", score=1.0)
    (skill,) = memory.skills()
    assert (skill.actions, skill.steps, skill.length) == (("2", "3"), tuple(ids), 2)
    assert [record.id for record in memory.records()] == ids, "what the row of attempts tried is dropped"
    (shown_note,) = retrieve_notes(memory, "a", 2)
    assert shown_note == f'Skill {skill.name}: {TASK} From a to g. Score 1 after 2 steps. Program: "2", "3".'
    assert list(retrieve_weights(memory, "c", 2)) == ids[1:]
    walk(memory, 2, "a1b")
    walk(memory, 3, "a1b")
    assert [record.id for record in memory.records()] == ids, "two failures in a row leave nothing"


def test_the_present_attempt_is_feedback(walk) -> None:
    memory = Voyager(mode="skills")
    ids = walk(memory, 0, "a1b2g", score=1.0)
    now = AgentClock(1, 10)
    assert retrieve_weights(memory, "a", 1) == {ids[0]: 1.0}
    new = memory.observe(Experience("a", "1", Outcome("c", 0.0, False), 0.0, now), now)
    assert retrieve_weights(memory, "a", 1) == {ids[0]: 1.0, new: 1.0}


def test_the_same_name_overwrites(walk) -> None:
    memory = Voyager(mode="skills")
    walk(memory, 0, "a2c3g", score=1.0)
    ids = walk(memory, 1, "a1g", score=1.0)
    (skill,) = memory.skills()
    assert skill.steps == tuple(ids)
    assert [record.id for record in memory.records()] == ids
    walk(memory, 2, "x1g", score=1.0, task="Something else.")
    assert len(memory.skills()) == 2


def test_the_most_similar_skills_are_retrieved_as_a_whole(walk) -> None:
    memory = Voyager(mode="skills", k=1)
    made = {}
    for episode, (task, way) in enumerate({"Buy a red hat.": "h1g", "Buy an old axe.": "x1g", "Sing.": "s1h"}.items()):
        made[task] = walk(memory, episode, way, score=1.0, task=task)
    now = AgentClock(5, 50)
    hat = memory.retrieve('{"page": "a blue hat"}', None, now)
    assert [note.text.split(": ")[1][:14] for note in hat.notes] == ["Buy a red hat."]
    assert [record.id for record in memory.retrieve("h", None, now).records] == made["Buy a red hat."]
    assert memory.retrieve("x", None, now).records == (), "of other skills nothing stands in this prompt"
    assert memory.retrieve("x", None, now).notes == ()
    assert memory.retrieve('{"page": "a blue hat"}', None, now) == hat, "the same question, the same answer"
    later = AgentClock(5, 51)
    assert (
        memory.retrieve("the old axe", None, later).notes[0].text.split(": ")[1]
        == "Buy an old axe. From x to g. Score 1 after 1 steps. Program"
    )
    assert [record.id for record in memory.retrieve("x", None, later).records] == made["Buy an old axe."]
    two = memory.retrieve("buy an old hat", 2, AgentClock(6, 60))
    assert len(two.notes) == 2


def test_a_skill_is_cut_after_the_last_removed_step(walk) -> None:
    memory = Voyager(mode="skills")
    ids = walk(memory, 0, "a1b2c3d4g", score=1.0)
    fell = memory.remove([ids[1]])
    assert (fell.records, fell.notes) == ((ids[1], ids[0]), ()), "the way to what went leads nowhere"
    (skill,) = memory.skills()
    assert (skill.actions, skill.steps) == (("3", "4"), tuple(ids[2:]))
    assert "its last 2 of 4 steps" in retrieve_notes(memory, "a", 1)[0]
    fell = memory.remove([ids[3]])
    assert (fell.records, fell.notes) == ((ids[3], ids[2]), (skill.id,))
    assert list(memory.records()) == retrieve_notes(memory, "a", 1) == []


@pytest.mark.parametrize(("cascade", "lost"), [("any", 1), ("majority", 3)])
def test_a_skill_is_removed_with_its_evidence(walk, cascade: str, lost: int) -> None:
    memory = Voyager(mode="skills", cascade=cascade)
    ids = walk(memory, 0, "a1b2c3d4g", score=1.0)
    (skill,) = memory.skills()
    for place in range(lost):
        assert memory.skills() == (skill,)
        fell = memory.remove([ids[place]])
    assert fell.notes == (skill.id,)
    assert set(fell.records) == set(ids[lost - 1 :])
    assert memory.skills() == ()


def test_transitions_of_a_removed_skill_stay_if_another_skill_cites_them(walk) -> None:
    memory = Voyager(mode="skills")
    ids = walk(memory, 0, "a1b2g", score=1.0)
    now = AgentClock(1, 10)
    today = memory.observe(Experience("a", "1", Outcome("b", 0.0, False), 0.0, now), now)
    summary = memory.insert_summary("b", "3", [(Outcome("h", 0.0, True), 1.0)], 1, now)
    fell = memory.remove([ids[1]])
    assert set(fell.records) == set(ids)
    assert [record.id for record in memory.records()] == [today, summary]
    assert list(retrieve_weights(memory, "b", 2)) == [summary], "a verified summary always may enter"
    memory.end_episode(Episode(TASK, 0.0, 1, True), now)
    for episode in range(2, 5):
        walk(memory, episode, "x1y")
    assert [record.id for record in memory.records()] == [summary], "and it stays"


# copies


ways = st.lists(
    st.tuples(
        st.sampled_from(["a1b2g", "a2c", "a1h", "b2g", "c1a1g"]), st.sampled_from([0.0, 0.5, 1.0]), st.booleans()
    ),
    max_size=8,
)


@given(history=ways, gone=st.lists(st.integers(0, 20), max_size=5), mode=st.sampled_from(["glove", "skills"]))
def test_a_copy_continues_like_the_original(
    walk, history: list[tuple[str, float, bool]], gone: list[int], mode: str
) -> None:
    memory = Voyager(mode=mode, attempts=2)
    for episode, (way, score, same) in enumerate(history):
        walk(memory, episode, way, score, TASK if same else "Something else.")
        memory.retrieve(way[0], None, AgentClock(episode + 1, 10 * episode + 10))
    memory.remove(gone)
    other = copy.deepcopy(memory)
    for twin in (memory, other):
        twin.remove([3, 7])
        walk(twin, 20, "a1b2g", 1.0)
        walk(twin, 21, "a2c")
    assert contents(other) == contents(memory)
    for state in "abc":
        now = AgentClock(22, 220)
        assert other.retrieve(state, None, now) == memory.retrieve(state, None, now)


@given(history=ways, gone=st.lists(st.integers(0, 20), max_size=8), cascade=st.sampled_from(["any", "majority", "cut"]))
def test_only_the_transitions_of_skills_are_kept(
    walk, history: list[tuple[str, float, bool]], gone: list[int], cascade: str
) -> None:
    memory = Voyager(mode="skills", attempts=2, cascade=cascade)
    for episode, (way, score, same) in enumerate(history):
        walk(memory, episode, way, score, TASK if same else "Something else.")
    memory.remove(gone)
    known = {record.id for record in memory.records()}
    steps = {step for skill in memory.skills() for step in skill.steps}
    assert not known & set(gone)
    if cascade != "majority":
        assert steps <= known
    assert known <= steps | set(memory._row)
    assert len({skill.name for skill in memory.skills()}) == len(memory.skills()) <= 2
    for skill in memory.skills():
        assert len(skill.actions) == len(skill.steps) <= skill.length
        assert 2 * len(set(skill.steps) & known) >= len(skill.steps)

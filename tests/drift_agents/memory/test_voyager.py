"""Voyager: the critic's marks, the row of attempts, skills that overwrite, fall and are cut, and GLOVE on top."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import pytest
from drift_agents.agent import Agent
from drift_agents.errors import ArgumentError, MemoryStateError, ModelError
from drift_agents.llm.rules import RuleModel
from drift_agents.memory.voyager import Voyager
from drift_agents.memory.voyager_critic import CRITIQUE, RULES
from drift_agents.memory.voyager_skills import Skill
from drift_agents.policy.registry import make_policy
from drift_agents.prompt import parse_prompt
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Transition
from drift_agents.verifier.base import Probed
from drift_agents.verifier.glove import Glove
from drift_agents.verifier.prober import ReplayProber
from hypothesis import given
from hypothesis import strategies as st

import drift_envs

TASK = "Reach the goal. The highest score is 1. Actions: 0 left, 1 down."


def live(
    memory: Voyager, episode: int, way: str, score: float = 0.0, task: str = TASK, ended: bool = True
) -> list[int]:
    """Live an episode along `way`, as in `a1b2c`: from a by 1 to b by 2 to c; the score comes at its end."""
    steps = len(way) // 2
    ids = []
    for place in range(steps):
        state, action, after = way[2 * place : 2 * place + 3]
        last = place == steps - 1
        now = AgentClock(episode, 10 * episode + place)
        outcome = Outcome(after, score if last else 0.0, last and ended)
        ids.append(memory.observe(Experience(state, action, outcome, 0.0, now), now))
    memory.end_episode(Episode(task, score, steps, ended), AgentClock(episode, 10 * episode + steps))
    return ids


def recalled(memory: Voyager, state: str, episode: int, k: int | None = None) -> dict[int, float]:
    answer = memory.retrieve(state, k, AgentClock(episode, 10 * episode))
    return dict(zip([record.id for record in answer.records], answer.weights, strict=True))


def lessons(memory: Voyager, state: str, episode: int) -> list[str]:
    return [note.text for note in memory.retrieve(state, None, AgentClock(episode, 10 * episode)).notes]


# glove: transitions marked by the critic


def test_marks_are_weights() -> None:
    memory = Voyager()
    live(memory, 0, "a1b2c", score=1.0)
    live(memory, 1, "a1b2d", score=0.0)
    memory.observe(Experience("b", "2", Outcome("c", 0.0, False), 0.0, AgentClock(2, 20)), AgentClock(2, 20))
    assert [memory.mark(i) for i in range(4)] == [True, True, False, False]
    judged = {i: w for i, w in recalled(memory, "b", 2).items() if memory.mark(i) is not None}
    assert judged == {1: 1.0, 3: 0.5}
    assert recalled(memory, "b", 2).keys() - judged.keys() == {5}, "what is not judged yet counts in full"
    assert recalled(memory, "b", 2)[5] == 1.0
    assert recalled(with_options(memory, failed=0.2), "b", 2)[3] == 0.2


def with_options(memory: Voyager, **options: Any) -> Voyager:
    """The same content under other options."""
    other = Voyager(**options)
    other.restore(memory.snapshot())
    return other


def test_successes_come_first_then_what_is_not_judged_then_failures() -> None:
    memory = Voyager(k=3)
    failed = live(memory, 0, "a1b")
    best = live(memory, 1, "a1c", score=1.0)
    late = live(memory, 2, "a1d")
    now = AgentClock(3, 30)
    new = memory.observe(Experience("a", "1", Outcome("e", 0.0, False), 0.0, now), now)
    assert list(recalled(memory, "a", 3)) == [*best, new, *failed]
    assert list(recalled(memory, "a", 3, k=4)) == [*best, new, *failed, *late]
    assert list(recalled(with_options(memory, order="newest"), "a", 3, k=3)) == [*best, new, *late]


def test_a_verified_summary_needs_no_critic() -> None:
    memory = Voyager(k=1)
    live(memory, 0, "a1b")
    now = AgentClock(1, 10)
    summary = memory.insert_summary("a", "1", [(Outcome("c", 0.0, False), 1.0)], 3, now)
    live(memory, 1, "b1d")
    assert memory.mark(summary) is True
    assert recalled(memory, "a", 2) == {summary: 1.0}


def test_old_successes_hide_a_drift() -> None:
    """What the paper's table shows for Voyager without a verifier: the world changed, memory did not."""
    memory = Voyager(k=2)
    old = [live(memory, episode, "a1b", score=1.0)[0] for episode in range(2)]
    for episode in range(2, 9):
        live(memory, episode, "a1h", score=0.0)
    assert list(recalled(memory, "a", 9)) == old


# the row of attempts


@pytest.mark.parametrize("mode", ["glove", "skills"])
def test_a_critique_stands_in_the_prompt_until_the_next_success_or_the_last_attempt(mode: str) -> None:
    memory = Voyager(mode=mode, attempts=3)
    assert lessons(memory, "a", 0) == []
    live(memory, 0, "a1b")
    (told,) = lessons(memory, "a", 1)
    assert told == f'Critique of attempt 1 of 3 at {TASK!r}: Do not take "1" in a: it ended the episode for nothing.'
    live(memory, 1, "a2b")
    (told,) = lessons(memory, "z", 2)
    assert told.startswith("Critique of attempt 2 of 3 at ")
    assert '"2" in a' in told
    live(memory, 2, "a3b")
    assert lessons(memory, "a", 3) == [], "after the third attempt the row begins anew"
    live(memory, 3, "a1b")
    assert lessons(memory, "a", 4)[0].startswith("Critique of attempt 1 of 3")
    live(memory, 4, "a2c", score=1.0)
    assert not any(told.startswith("Critique") for told in lessons(memory, "a", 5))
    live(memory, 5, "a1b")
    assert lessons(memory, "a", 6)[-1].startswith("Critique of attempt 1 of 3"), "a success ends the row"


def test_another_task_begins_another_row() -> None:
    memory = Voyager(mode="skills", attempts=2)
    first = live(memory, 0, "a1b")
    second = live(memory, 1, "c1d", task="Something else.")
    assert [record.id for record in memory.records()] == second != first
    assert "attempt 1 of 2 at 'Something else.'" in lessons(memory, "a", 2)[0]


@pytest.mark.parametrize("cascade", ["any", "majority", "cut"])
def test_a_critique_falls_with_its_evidence(cascade: str) -> None:
    memory = Voyager(cascade=cascade)
    ids = live(memory, 0, "a1b2c3d4e")
    (note,) = memory.retrieve("a", None, AgentClock(1, 10)).notes
    assert note.evidence == tuple(ids)
    assert bool(memory.remove(ids[:1]).notes) == (cascade == "any")
    if cascade != "any":
        assert memory.remove(ids[1:2]).notes == (), "half of it is left"
        assert memory.remove(ids[2:3]).notes == (note.id,)
    assert lessons(memory, "a", 1) == []


# skills


def test_only_a_success_becomes_a_skill() -> None:
    memory = Voyager(mode="skills", attempts=2)
    first = live(memory, 0, "a1b")
    assert memory.skills() == ()
    assert list(recalled(memory, "a", 1)) == first, "feedback for the next attempt"
    ids = live(memory, 1, "a2c3g", score=1.0)
    (skill,) = memory.skills()
    assert (skill.actions, skill.steps, skill.length) == (("2", "3"), tuple(ids), 2)
    assert [record.id for record in memory.records()] == ids, "what the row of attempts tried is dropped"
    (told,) = lessons(memory, "a", 2)
    assert told == f'Skill {skill.name}: {TASK} From a to g. Score 1 after 2 steps. Program: "2", "3".'
    assert list(recalled(memory, "c", 2)) == ids[1:]
    live(memory, 2, "a1b")
    live(memory, 3, "a1b")
    assert [record.id for record in memory.records()] == ids, "two failures in a row leave nothing"


def test_the_attempt_under_way_is_feedback_too() -> None:
    memory = Voyager(mode="skills")
    ids = live(memory, 0, "a1b2g", score=1.0)
    now = AgentClock(1, 10)
    assert recalled(memory, "a", 1) == {ids[0]: 1.0}
    new = memory.observe(Experience("a", "1", Outcome("c", 0.0, False), 0.0, now), now)
    assert recalled(memory, "a", 1) == {ids[0]: 1.0, new: 1.0}


def test_the_same_name_overwrites() -> None:
    memory = Voyager(mode="skills")
    live(memory, 0, "a2c3g", score=1.0)
    ids = live(memory, 1, "a1g", score=1.0)
    (skill,) = memory.skills()
    assert skill.steps == tuple(ids)
    assert [record.id for record in memory.records()] == ids
    live(memory, 2, "x1g", score=1.0, task="Something else.")
    assert len(memory.skills()) == 2


def test_the_skills_most_similar_to_the_present_state_are_recalled_whole() -> None:
    memory = Voyager(mode="skills", k=1)
    made = {}
    for episode, (task, way) in enumerate({"Buy a red hat.": "h1g", "Buy an old axe.": "x1g", "Sing.": "s1h"}.items()):
        made[task] = live(memory, episode, way, score=1.0, task=task)
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


def test_a_skill_is_cut_behind_what_went() -> None:
    memory = Voyager(mode="skills")
    ids = live(memory, 0, "a1b2c3d4g", score=1.0)
    fell = memory.remove([ids[1]])
    assert (fell.records, fell.notes) == ((ids[1], ids[0]), ()), "the way to what went leads nowhere"
    (skill,) = memory.skills()
    assert (skill.actions, skill.steps) == (("3", "4"), tuple(ids[2:]))
    assert "its last 2 of 4 steps" in lessons(memory, "a", 1)[0]
    fell = memory.remove([ids[3]])
    assert (fell.records, fell.notes) == ((ids[3], ids[2]), (skill.id,))
    assert list(memory.records()) == lessons(memory, "a", 1) == []


@pytest.mark.parametrize(("cascade", "lost"), [("any", 1), ("majority", 3)])
def test_or_it_falls_with_its_evidence(cascade: str, lost: int) -> None:
    memory = Voyager(mode="skills", cascade=cascade)
    ids = live(memory, 0, "a1b2c3d4g", score=1.0)
    (skill,) = memory.skills()
    for place in range(lost):
        assert memory.skills() == (skill,)
        fell = memory.remove([ids[place]])
    assert fell.notes == (skill.id,)
    assert set(fell.records) == set(ids[lost - 1 :])
    assert memory.skills() == ()


def test_the_transitions_of_a_fallen_skill_stay_where_something_else_holds_them() -> None:
    memory = Voyager(mode="skills")
    ids = live(memory, 0, "a1b2g", score=1.0)
    now = AgentClock(1, 10)
    today = memory.observe(Experience("a", "1", Outcome("b", 0.0, False), 0.0, now), now)
    summary = memory.insert_summary("b", "3", [(Outcome("h", 0.0, True), 1.0)], 1, now)
    fell = memory.remove([ids[1]])
    assert set(fell.records) == set(ids)
    assert [record.id for record in memory.records()] == [today, summary]
    assert list(recalled(memory, "b", 2)) == [summary], "a verified summary always may enter"
    memory.end_episode(Episode(TASK, 0.0, 1, True), now)
    for episode in range(2, 5):
        live(memory, episode, "x1y")
    assert [record.id for record in memory.records()] == [summary], "and it stays"


class Stubborn:
    """A model that answers by a table of titles."""

    name = "stubborn"

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.rules = RuleModel({**RULES, **{title: lambda text, a=a: a for title, a in answers.items()}})

    def complete(self, *args: Any, **kwargs: Any) -> Any:
        return self.rules.complete(*args, **kwargs)


@pytest.mark.parametrize("title", [CRITIQUE["title"], "voyager_skill"])
def test_a_model_that_fails_leaves_memory_as_it_was(title: str) -> None:
    memory = Voyager(mode="skills", model=Stubborn({title: {"success": "yes"}}))
    now = AgentClock()
    memory.observe(Experience("a", "1", Outcome("g", 1.0, True), 1.0, now), now)
    before = memory.content_hash()
    with pytest.raises(ModelError, match=f"the model 'stubborn' should answer '{title}' by its schema"):
        memory.end_episode(Episode(TASK, 1.0, 1, True), now)
    assert memory.content_hash() == before


def test_the_critic_decides_and_not_the_score() -> None:
    memory = Voyager(model=Stubborn({CRITIQUE["title"]: {"reasoning": "", "success": True, "critique": ""}}))
    ids = live(memory, 0, "a1b", score=0.0)
    assert [memory.mark(i) for i in ids] == [True]


# snapshots


ways = st.lists(
    st.tuples(
        st.sampled_from(["a1b2g", "a2c", "a1h", "b2g", "c1a1g"]), st.sampled_from([0.0, 0.5, 1.0]), st.booleans()
    ),
    max_size=8,
)


@given(history=ways, gone=st.lists(st.integers(0, 20), max_size=5), mode=st.sampled_from(["glove", "skills"]))
def test_a_restored_memory_goes_on_like_the_saved_one(
    history: list[tuple[str, float, bool]], gone: list[int], mode: str
) -> None:
    memory, other = Voyager(mode=mode, attempts=2), Voyager(mode=mode, attempts=2)
    for episode, (way, score, same) in enumerate(history):
        live(memory, episode, way, score, TASK if same else "Something else.")
        memory.retrieve(way[0], None, AgentClock(episode + 1, 10 * episode + 10))
    memory.remove(gone)
    other.restore(json.loads(json.dumps(memory.snapshot())))
    assert other.content_hash() == memory.content_hash()
    for twin in (memory, other):
        twin.remove([3, 7])
        live(twin, 20, "a1b2g", 1.0)
        live(twin, 21, "a2c")
    assert other.content_hash() == memory.content_hash()
    for state in "abc":
        now = AgentClock(22, 220)
        assert other.retrieve(state, None, now) == memory.retrieve(state, None, now)


@given(history=ways, gone=st.lists(st.integers(0, 20), max_size=8), cascade=st.sampled_from(["any", "majority", "cut"]))
def test_skills_keep_what_they_consist_of_and_nothing_else_is_kept(
    history: list[tuple[str, float, bool]], gone: list[int], cascade: str
) -> None:
    memory = Voyager(mode="skills", attempts=2, cascade=cascade)
    for episode, (way, score, same) in enumerate(history):
        live(memory, episode, way, score, TASK if same else "Something else.")
    memory.remove(gone)
    known = {record.id for record in memory.records()}
    steps = {step for skill in memory.skills() for step in skill.steps}
    assert not known & set(gone)
    if cascade != "majority":
        assert steps <= known
    assert known <= steps | set(memory.snapshot()["row"])
    assert len({skill.name for skill in memory.skills()}) == len(memory.skills()) <= 2
    for skill in memory.skills():
        assert len(skill.actions) == len(skill.steps) <= skill.length
        assert 2 * len(set(skill.steps) & known) >= len(skill.steps)


@pytest.mark.parametrize(
    "broken",
    [
        {"mode": "glove"},
        {"marks": [[99, True]]},
        {"today": [99]},
        {"row": "abc"},
        {"failures": "many"},
        {"critique": [9, "text", []]},
        {"critique": [0, "text", [0]]},
        {"skills": [[9, "n", "d", ["1"], [0, 1], 2]]},
        {"skills": [[0, "n", "d", ["1"], [0], 1]]},
        {"skills": [[99, "n", "d", ["1"], [0], 1]]},
        {"moment": [0]},
        {"active": [5]},
    ],
    ids=str,
)
def test_a_broken_snapshot_is_refused_and_changes_nothing(broken: dict[str, Any]) -> None:
    memory = Voyager(mode="skills")
    live(memory, 0, "a1b2g", score=1.0)
    before = memory.snapshot()
    with pytest.raises(MemoryStateError, match="not a snapshot of the memory 'voyager'"):
        memory.restore({**copy.deepcopy(before), **broken})
    assert memory.snapshot() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "`k` should be a positive whole number. Received 0"),
        ({"attempts": True}, "`attempts` should be a positive whole number. Received True"),
        ({"mode": "both"}, "`mode` should be one of glove, skills. Received 'both'"),
        ({"order": "best"}, "`order` should be one of oldest, newest. Received 'best'"),
        ({"failed": 0}, "`failed` should be a number in (0, 1]. Received 0"),
        ({"failed": float("nan")}, "`failed` should be a number in (0, 1]. Received nan"),
        ({"cascade": "all"}, "`cascade` should be one of any, majority, cut. Received 'all'"),
    ],
)
def test_wrong_values_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Voyager(**options)


def test_a_program_with_many_equal_steps_is_told_shortly() -> None:
    skill = Skill(9, "n", "d.", ("2",) * 40 + ("0", '"'), tuple(range(42)), 42)
    assert skill.note().text == 'Skill n: d. Program: "2" 40 times, "0", "\\"".'


# with a verifier


class Answers:
    """A prober that always brings the same outcome."""

    privileged = False
    live = False

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def bind(self, matching: Any) -> None: ...

    def begin_episode(self) -> None: ...

    def moved(self) -> None: ...

    def probe(self, state: str, action: str, prefix: Any, times: int) -> Probed:
        return Probed((Transition(state, action, self.outcome),) * times)


def test_glove_removes_a_step_and_what_rests_on_it() -> None:
    memory, fell = Voyager(mode="skills"), Outcome("h", 0.0, True)
    ids = live(memory, 0, "a1b2c3g", score=1.0)
    glove = Glove(prober=Answers(fell))
    now = AgentClock(1, 10)
    verdict = glove.verify(Experience("b", "2", fell, 0.0, now), memory, ["1"], now)
    assert verdict.surprise
    assert verdict.realigned
    assert verdict.contradicted
    assert verdict.removed.records == (ids[1], ids[0])
    (skill,) = memory.skills()
    assert skill.steps == tuple(ids[2:])
    (summary,) = memory.counterparts("b", "2")
    assert summary.verified
    assert summary.outcome == fell


@pytest.mark.parametrize("mode", ["glove", "skills"])
def test_glove_attaches_on_a_lake(mode: str) -> None:
    """Surprises remove records and what rests on them; the planner reads the rest out of the prompt."""
    scores, fallen, read = {}, 0, set()
    for verified in (False, True):
        world = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/implicit-family", text=True)
        verifier = Glove(prober=ReplayProber(drift_envs.twin(world))) if verified else None
        memory = Voyager(mode=mode)
        agent = Agent(make_policy("planner"), memory, verifier, seed=2)
        episodes = [agent.run_episode(world, seed=2 if round_ == 0 else None) for round_ in range(40)]
        scores[verified] = sum(episode.score for episode in episodes[20:])
        for episode in episodes:
            for step in episode.trace:
                fallen += len(step.verdict.removed.notes)
                view = parse_prompt(step.prompt)
                read |= {text.split()[0] for text in view.lessons}
                assert all(0.5 <= item.weight <= 1 for item in view.here)
        known = {record.id for record in memory.records()}
        removed = {i for e in episodes for step in e.trace for i in step.verdict.removed.records}
        assert bool(removed) == verified
        assert not removed & known
        world.close()
    assert scores[True] > scores[False]
    assert read == ({"Critique"} if mode == "glove" else {"Critique", "Skill"})
    if mode == "skills":
        assert fallen

"""Generative Agents: scores by hand, what a recall leaves behind, when it reflects, and what falls with evidence."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import hypothesis.strategies as st
import numpy as np
import pytest
from drift_agents import Agent, Glove, ReplayProber, make_memory, make_policy
from drift_agents.embedding.base import Vectors
from drift_agents.errors import ArgumentError, MemoryStateError, ModelError
from drift_agents.llm.base import Completion, Message
from drift_agents.matching import Exact
from drift_agents.memory.generative_agents import GenerativeAgents
from drift_agents.memory.salience import salience, scaled
from drift_agents.memory.stream import Trace
from drift_agents.types import AgentClock, Experience, Outcome, Removed
from hypothesis import given

import drift_envs

ICE, HOLE = Outcome("ice", 0.0, False), Outcome("hole", 0.0, True)


class Scripted:
    """A model that answers as it is told, and remembers what it was asked."""

    name = "scripted"

    def __init__(self, importance: int = 10, because: Sequence[Sequence[int]] = (), questions: int = 3) -> None:
        self.importance, self.because, self.questions = importance, because, questions
        self.asked: list[tuple[str, str]] = []

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        title = (schema or {})["title"]
        self.asked.append((title, messages[-1].content))
        round_ = sum(asked == "insights" for asked, _ in self.asked)
        data: dict[str, Any] = {
            "importance": {"importance": self.importance},
            "reflection_questions": {"questions": [f"Why {i}?" for i in range(self.questions)]},
            "insights": {
                "insights": [
                    {"insight": f"Insight {round_}.{i}", "because_of": list(cited)}
                    for i, cited in enumerate(self.because)
                ]
            },
        }[title]
        return Completion(json.dumps(data), data)

    def count(self, title: str) -> int:
        return sum(asked == title for asked, _ in self.asked)


class OneLetter:
    """An embedding by hand: similarity to `a` is 1 for a, .5 for b, 0 for c."""

    name = "one letter"
    dimension = 2

    def embed(self, texts: Sequence[str]) -> Vectors:
        cosines = {"a": 1.0, "b": 0.5, "c": 0.0}
        return np.array([(x, np.sqrt(1 - x * x)) for x in (cosines.get(text[:1], 0.0) for text in texts)]).reshape(
            -1, 2
        )


def live(memory: GenerativeAgents, episode: int, state: str, action: str, outcome: Outcome, step: int = 0) -> int:
    now = AgentClock(episode, 10 * episode + step)
    return memory.observe(Experience(state, action, outcome, 0.0, now), now)


def look(memory: GenerativeAgents, state: str, k: int | None = None) -> list[int]:
    """What a question much later brings up; the memory itself is left alone."""
    answer = copy.deepcopy(memory).retrieve(state, k, AgentClock(99, 990))
    return [record.id for record in answer.records]


def stand(memory: GenerativeAgents, episode: int, state: str, step: int = 5) -> list[str]:
    return [note.text for note in memory.retrieve(state, None, AgentClock(episode, 10 * episode + step)).notes]


# -- the score -------------------------------------------------------------------------------------


def test_the_score_by_hand() -> None:
    # Recency .995 ** (20, 10, 0) = .904610, .951110, 1, scaled 0, .487471, 1.
    # Importance 1, .125, 0; relevance 0, 1, .5.
    scores = salience([0, 10, 20], [9, 2, 1], [0.2, 0.6, 0.4])
    assert scores.tolist() == pytest.approx([1.0, 1.612471, 1.5], abs=1e-6)
    assert salience([0, 10, 20], [9, 2, 1], [0.2, 0.6, 0.4], 0.995, (0, 2, 0)).tolist() == [2.0, 0.25, 0.0]


def test_more_recent_is_better() -> None:
    """The authors' code ranks the least recent highest; the paper, and this, the most recent."""
    assert np.argmax(salience([1, 5, 3], [1, 1, 1], [0, 0, 0])) == 1


columns = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10), st.floats(-1, 1)), min_size=1, max_size=20)


@given(columns, st.integers(0, 10**9))
def test_time_that_passes_for_all_changes_no_score(items: list[tuple[int, int, float]], passed: int) -> None:
    access, importance, relevance = zip(*items, strict=True)
    scores = salience(access, importance, relevance)
    assert scores.tolist() == salience([hour + passed for hour in access], importance, relevance).tolist()
    assert scores.min() >= 0
    assert scores.max() <= 3
    assert scaled(importance).min() == 0


def test_observations_of_a_state_are_ranked_by_recency_and_importance() -> None:
    memory = GenerativeAgents(per="state")
    live(memory, 0, "s", "1", HOLE)  # recency 0, importance 1
    live(memory, 10, "s", "1", ICE)  # .4874, 0
    live(memory, 20, "s", "2", ICE)  # 1, 0
    live(memory, 20, "s", "3", ICE)  # 1, 0, newer than the last one
    live(memory, 19, "t", "3", HOLE)
    assert look(memory, "s") == [3, 2, 0, 1]
    assert look(memory, "s", 2) == [3, 2]
    assert look(memory, "t") == [4]
    assert look(memory, "u") == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"ties": "oldest"}, [0, 2, 3, 1]),
        ({"weights": [1, 0, 0]}, [3, 2, 1, 0]),
        ({"weights": [0, 1, 0]}, [0, 3, 2, 1]),
        ({"weights": [0, 0.5, 1], "ties": "oldest"}, [0, 1, 2, 3]),
        ({"weights": [2, 1, 0]}, [3, 2, 0, 1]),
        ({"decay": 1.0}, [0, 3, 2, 1]),
        ({"unit": "step"}, [3, 2, 0, 1]),
    ],
)
def test_weights_ties_decay_and_unit_decide(options: dict[str, Any], expected: list[int]) -> None:
    memory = GenerativeAgents(per="state", **options)
    for episode, outcome, action in ((0, HOLE, "1"), (10, ICE, "1"), (20, ICE, "2"), (20, ICE, "3")):
        live(memory, episode, "s", action, outcome)
    assert look(memory, "s") == expected


def test_by_default_there_are_k_of_each_action() -> None:
    memory = GenerativeAgents(k=1)
    for episode, action in ((0, "1"), (1, "2"), (2, "2"), (3, "2")):
        live(memory, episode, "s", action, ICE)
    assert look(memory, "s") == [3, 0]


def test_in_the_whole_stream_similar_states_come_to_mind_too() -> None:
    memory = GenerativeAgents(per="stream", k=2, embedding=OneLetter())
    for state in "cba":
        live(memory, 0, state, "1", ICE)
    assert look(memory, "a") == [2, 1]
    live(memory, 0, "c", "1", HOLE)
    assert look(memory, "a", 3) == [3, 2, 1], "relevance 0 and importance 1 against 1 and 0: a tie"


def test_the_state_itself_has_relevance_one_whatever_the_words() -> None:
    class ByLetter(Exact):
        def state_key(self, state: str) -> str:
            return state[-1]

    memory = GenerativeAgents(per="stream", k=1, embedding=OneLetter(), matching=ByLetter())
    live(memory, 0, "cx", "1", ICE)
    live(memory, 0, "bz", "1", ICE)
    assert look(memory, "ax") == [0], "0 by its words, 1 by the rule"
    assert look(memory, "ay") == [1]


histories = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("st"), st.sampled_from("sstu"), st.booleans(), st.integers(0, 40)),
    max_size=20,
)


@given(histories, st.sampled_from(["newest", "oldest"]), st.integers(1, 4))
def test_it_agrees_with_scoring_plainly(history: list[Any], ties: str, k: int) -> None:
    memory = GenerativeAgents(per="state", ties=ties, k=k)
    traces: dict[int, list[Any]] = {}
    episode = 0
    for time, (passed, state, written, ended, gone) in enumerate(history):
        episode += passed
        now = AgentClock(episode, time)
        answer = memory.retrieve(state, None, now)
        here = {i: t for i, t in traces.items() if t[0] == state}
        powers = {i: 0.995 ** (max(u[2] for u in here.values()) - t[2]) for i, t in here.items()}

        def scale(values: dict[int, float], i: int) -> float:
            low, high = min(values.values()), max(values.values())
            return (values[i] - low) / (high - low) if high > low else 0.0

        scores = {i: round(scale(powers, i) + scale({j: t[1] for j, t in here.items()}, i), 9) for i in here}
        best = sorted(here, key=lambda i: (-scores[i], -i if ties == "newest" else i))[:k]
        assert [record.id for record in answer.records] == best
        for i in best:
            traces[i][2] = episode
        new = memory.observe(Experience(written, "1", HOLE if ended else ICE, 0.0, now), now)
        traces[new] = [written, 10 if ended else 2, episode]
        for fell in memory.remove([gone]).records:
            del traces[fell]
        assert {i: memory.trace(i) for i in traces} == {i: Trace(t[1], t[2]) for i, t in traces.items()}


# -- recalling -------------------------------------------------------------------------------------


def test_the_first_question_at_a_moment_recalls_and_the_others_look_up() -> None:
    memory = GenerativeAgents()
    here, there = live(memory, 0, "s", "1", HOLE), live(memory, 0, "t", "1", HOLE)
    assert len(stand(memory, 7, "s")) == 1
    assert stand(memory, 7, "t") == [], "a question at the same moment brings no insights"
    assert memory.trace(here) == Trace(10, 7)
    assert memory.trace(there) == Trace(10, 0)
    memory.retrieve("t", None, AgentClock(7, 76))
    assert memory.trace(there) == Trace(10, 7), "the next moment"


def test_or_every_question_recalls() -> None:
    memory = GenerativeAgents(recalls="all")
    live(memory, 0, "s", "1", HOLE), live(memory, 0, "t", "1", HOLE)
    assert len(stand(memory, 7, "s")) == len(stand(memory, 7, "t")) == 1


def test_what_is_not_brought_up_is_not_refreshed() -> None:
    memory = GenerativeAgents(k=1, per="state")
    old, new = live(memory, 0, "s", "1", ICE), live(memory, 1, "s", "1", ICE)
    stand(memory, 5, "s")
    assert (memory.trace(old), memory.trace(new)) == (Trace(2, 0), Trace(2, 5))


def test_a_recall_changes_the_next_answer() -> None:
    memory = GenerativeAgents(per="state")
    live(memory, 0, "s", "1", HOLE), live(memory, 9, "s", "1", ICE)
    answers = [memory.retrieve("s", None, AgentClock(9, 95 + time)).records for time in range(2)]
    assert [[record.id for record in records] for records in answers] == [[1, 0], [0, 1]], "equally recent now"


def test_a_question_about_the_past_makes_nothing_older() -> None:
    memory = GenerativeAgents()
    live(memory, 5, "s", "1", ICE)
    stand(memory, 3, "s")
    assert memory.trace(0) == Trace(2, 5)


def test_a_recalled_insight_is_refreshed() -> None:
    memory = GenerativeAgents(insights=1)
    live(memory, 0, "s", "1", HOLE), live(memory, 0, "s", "2", HOLE)
    stand(memory, 1, "s")
    (chosen,) = memory.retrieve("s", None, AgentClock(8, 85)).notes
    assert {memory.trace(note.id).access for note in memory.notes() if note.id != chosen.id} == {1}
    assert memory.trace(chosen.id) == Trace(10, 8)


# -- reflecting ------------------------------------------------------------------------------------


def test_at_retrieval_it_reflects_when_enough_was_written_about_this_state() -> None:
    model = Scripted(importance=4, because=[(1, 2), (3,)])
    memory = GenerativeAgents(model=model)
    live(memory, 0, "s", "1", ICE), live(memory, 0, "s", "2", ICE), live(memory, 0, "t", "1", ICE)
    assert stand(memory, 1, "s") == [], "8 of importance here, 12 in all"
    live(memory, 1, "s", "1", ICE, 6)
    assert set(stand(memory, 2, "s")) == {"Insight 1.0", "Insight 1.1"}
    assert [note.evidence for note in memory.notes()] == [(0, 1), (3,)]
    assert model.count("reflection_questions") == 0
    ((_, asked),) = [entry for entry in model.asked if entry[0] == "insights"]
    assert asked.startswith("Question: What follows from each action in s?\nAt most: 5\nStatements:\n1. In s action")
    assert set(stand(memory, 3, "s", 6)) == {"Insight 1.0", "Insight 1.1"}
    assert model.count("insights") == 1, "nothing new to reflect upon"
    assert stand(memory, 3, "t", 7) == []


def test_at_the_threshold_it_asks_three_questions_about_the_latest_items() -> None:
    model = Scripted(importance=10, because=[(1, 2)] * 7)
    memory = GenerativeAgents(reflect="threshold", model=model, recent=6, focus=4)
    for time in range(14):
        live(memory, time, f"s{time}", "1", ICE)
    assert model.count("reflection_questions") == 0, "140 of importance"
    live(memory, 14, "s14", "1", ICE)
    assert (model.count("reflection_questions"), model.count("insights")) == (1, 3)
    questions = next(text for title, text in model.asked if title == "reflection_questions")
    assert questions.startswith("At most: 3\nStatements:\n1. In s9 action")
    assert questions.count("\n6. In s14 action") == 1
    insights = [text for title, text in model.asked if title == "insights"]
    assert all(len(text.split("Statements:\n")[1].splitlines()) == 4 for text in insights)
    assert len(memory.notes()) == 15, "five each, of the seven that were offered"
    assert model.count("importance") == 15 + 15, "insights are rated, too"
    live(memory, 15, "s15", "1", ICE)
    assert model.count("reflection_questions") == 1, "it begins to count anew"


def test_questions_are_answered_by_the_most_salient_items_and_these_are_refreshed() -> None:
    model = Scripted(importance=10, because=[(1,)], questions=1)
    memory = GenerativeAgents(reflect="threshold", threshold=30, focus=1, model=model, embedding=OneLetter())
    first = live(memory, 0, "s", "1", ICE)
    live(memory, 5, "s", "1", ICE), live(memory, 5, "s", "1", HOLE)
    assert [note.evidence for note in memory.notes()] == [(2,)]
    live(memory, 6, "b", "1", ICE), live(memory, 7, "c", "1", ICE), live(memory, 7, "c", "1", ICE)
    assert [note.evidence for note in memory.notes()] == [(2,), (6,)], "insights count as items, ids as well"
    assert memory.trace(first) == Trace(10, 0)


def test_what_answers_a_question_is_refreshed() -> None:
    model = Scripted(importance=10, because=[(1,)], questions=1)
    options = {"threshold": 20, "focus": 1, "weights": [0, 0, 1]}
    memory = GenerativeAgents(reflect="threshold", model=model, embedding=OneLetter(), **options)
    old, new = live(memory, 0, "c", "1", ICE), live(memory, 5, "a", "1", ICE)
    assert memory.notes()[0].evidence == (old,), "the question is closest to c"
    assert (memory.trace(old), memory.trace(new)) == (Trace(10, 5), Trace(10, 5))


def test_numbers_that_name_no_statement_are_dropped_and_an_insight_without_evidence_too() -> None:
    memory = GenerativeAgents(model=Scripted(because=[(0, 1, 2, -1), (9,), (), (1, 1)]))
    live(memory, 0, "s", "1", HOLE)
    assert set(stand(memory, 1, "s")) == {"Insight 1.0", "Insight 1.3"}
    assert [note.evidence for note in memory.notes()] == [(0,), (0,)]


def test_an_insight_found_again_is_not_written_twice() -> None:
    memory = GenerativeAgents()
    live(memory, 0, "s", "1", HOLE)
    stand(memory, 1, "s")
    (before,) = memory.notes()
    live(memory, 2, "s", "1", HOLE)
    stand(memory, 3, "s")
    assert memory.notes() == (before._replace(evidence=(0, 2)),)


def test_insights_contradict_what_was_believed_when_the_world_does() -> None:
    memory = GenerativeAgents()
    live(memory, 0, "s", "1", ICE), live(memory, 1, "s", "1", HOLE)
    assert stand(memory, 2, "s") == [
        'Action "1" in s is not certain: it led to ice (score 0), and last to hole (score 0; the episode ended).'
    ]


def test_a_wrong_answer_is_refused_and_nothing_is_written() -> None:
    memory = GenerativeAgents(model=Scripted(importance=11))
    before = memory.content_hash()
    with pytest.raises(ModelError, match=r"'importance'.*should be at most 10"):
        live(memory, 0, "s", "1", HOLE)
    assert memory.content_hash() == before


# -- evidence --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cascade", "falls"), [("any", [True]), ("majority", [False, True]), ("cut", [False, True])])
def test_an_insight_falls_with_its_evidence(cascade: str, falls: list[bool]) -> None:
    memory = GenerativeAgents(cascade=cascade)
    for time in range(3):
        live(memory, time, "s", "1", HOLE)
    stand(memory, 5, "s")
    (note,) = memory.notes()
    assert note.evidence == (0, 1, 2)
    for record_id, fell in enumerate(falls):
        restored = GenerativeAgents(cascade=cascade)
        restored.restore(json.loads(json.dumps(memory.snapshot())))
        memory = restored
        assert memory.remove([record_id]) == Removed((record_id,), (note.id,) if fell else ())
        assert (note.id in [n.id for n in memory.retrieve("s", None, AgentClock(9, 90 + record_id)).notes]) is not fell
    assert memory.trace(note.id) is None


def test_an_insight_about_an_insight_falls_with_it() -> None:
    model = Scripted(importance=10, because=[(1,)], questions=1)
    memory = GenerativeAgents(reflect="threshold", threshold=10, focus=1, model=model)
    for state in "stu":
        live(memory, 0, state, "1", HOLE)
    assert [(note.id, note.evidence) for note in memory.notes()] == [(1, (0,)), (3, (1,)), (5, (3,))]
    assert len(stand(memory, 1, "s")) == 3, "they rest on this state's observation, by way of one another"
    assert stand(memory, 2, "t") == []
    assert memory.remove([0]) == Removed((0,), (1, 3, 5))


def test_two_insights_cannot_hold_each_other_up() -> None:
    memory = GenerativeAgents()
    record = live(memory, 0, "s", "1", HOLE)
    stream = memory._stream
    stream.write_insight("one", [record], Trace(1, 0))
    one = memory.notes()[0].id
    stream.write_insight("two", [one], Trace(1, 0))
    two = memory.notes()[1].id
    stream.write_insight("one", [two], Trace(1, 0))
    assert memory.notes()[0].evidence == (record,)
    assert memory.remove([record]) == Removed((record,), (one, two))


def test_a_fallen_insight_can_be_found_anew_under_another_number() -> None:
    memory = GenerativeAgents()
    live(memory, 0, "s", "1", HOLE)
    stand(memory, 1, "s")
    (before,) = memory.notes()
    memory.remove([0])
    live(memory, 2, "s", "1", HOLE)
    stand(memory, 3, "s")
    (after,) = memory.notes()
    assert (after.text, after.evidence) == (before.text, (2,))
    assert after.id > before.id


def test_glove_attaches() -> None:
    """A surprise on the lake removes records and the insights that rested on them."""
    world = gym.make("DriftFrozenLake-v0", text=True)
    memory = make_memory("generative_agents")
    assert isinstance(memory, GenerativeAgents)
    agent = Agent(make_policy("planner"), memory, Glove(prober=ReplayProber(drift_envs.twin(world))))
    fallen: list[Removed] = []
    for round_ in range(30):
        episode = agent.run_episode(world, seed=0 if round_ == 0 else None)
        fallen += [step.verdict.removed for step in episode.trace if step.verdict.realigned]
    world.close()
    assert any(removed.records and removed.notes for removed in fallen)
    known = {record.id for record in memory.records()}
    assert memory.notes()
    for note in memory.notes():
        assert 2 * len(set(note.evidence) - known) <= len(note.evidence)
    assert not {note.id for note in memory.notes()} & {i for removed in fallen for i in removed.notes}


# -- state and options -----------------------------------------------------------------------------


def filled() -> GenerativeAgents:
    memory = GenerativeAgents()
    live(memory, 0, "s", "1", HOLE), live(memory, 0, "s", "2", ICE)
    stand(memory, 1, "s")
    return memory


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("moment"),
        lambda data: data.update(moment=3),
        lambda data: data.update(stream=[]),
        lambda data: data["stream"].update(traces=[]),
        lambda data: data["stream"]["traces"].append([9, 1, 1]),
        lambda data: data["stream"].update(fresh=[7]),
        lambda data: data["stream"].update(fresh="x"),
        lambda data: data["stream"]["insights"][0].__setitem__(2, []),
        lambda data: data["stream"]["insights"][0].__setitem__(2, ["x"]),
        lambda data: data["stream"]["insights"][0].__setitem__(0, 0),
        lambda data: data["stream"]["ledger"].update(next_id=2),
        lambda data: data["stream"].pop("insights"),
    ],
)
def test_a_broken_snapshot_is_refused_and_changes_nothing(change: Any) -> None:
    memory = filled()
    data = copy.deepcopy(memory.snapshot())
    change(data)
    before = memory.content_hash()
    with pytest.raises(MemoryStateError, match="not a snapshot of"):
        memory.restore(data)
    assert memory.content_hash() == before


def test_a_restored_memory_knows_what_it_reflected_upon() -> None:
    memory = filled()
    model = Scripted()
    restored = GenerativeAgents(model=model)
    restored.restore(memory.snapshot())
    assert stand(restored, 2, "s") == stand(memory, 2, "s")
    assert model.asked == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "`k` should be a whole number, at least 1. Received 0"),
        ({"insights": -1}, "`insights` should be a whole number, at least 0. Received -1"),
        ({"threshold": True}, "`threshold` should be a whole number, at least 1. Received True"),
        ({"recent": 0}, "`recent` should be"),
        ({"questions": 0}, "`questions` should be"),
        ({"focus": 1.5}, "`focus` should be"),
        ({"inferred": 0}, "`inferred` should be"),
        ({"per": "page"}, "`per` should be one of action, state, stream. Received 'page'"),
        ({"unit": "hour"}, "`unit` should be one of episode, step. Received 'hour'"),
        ({"recalls": "none"}, "`recalls` should be one of here, all. Received 'none'"),
        ({"reflect": "never"}, "`reflect` should be one of retrieval, threshold. Received 'never'"),
        ({"ties": "random"}, "`ties` should be one of newest, oldest. Received 'random'"),
        ({"cascade": "none"}, "`cascade` should be one of any, majority, cut. Received 'none'"),
        ({"decay": 0}, "`decay` should be a number in (0, 1]. Received 0"),
        ({"decay": float("nan")}, "`decay` should be a number in (0, 1]. Received nan"),
        ({"weights": [1, 1]}, "`weights` should be three finite numbers, not negative. Received [1, 1]"),
        ({"weights": [1, -1, 1]}, "`weights` should be three finite numbers"),
        ({"weights": "111"}, "`weights` should be three finite numbers"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        GenerativeAgents(**options)


def test_no_insights_can_be_asked_for() -> None:
    memory = GenerativeAgents(insights=0)
    live(memory, 0, "s", "1", HOLE)
    assert stand(memory, 1, "s") == []

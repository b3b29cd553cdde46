"""The insights of Generative Agents: when it reflects, and what falls with evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from drift_agents.errors import ModelError
from drift_agents.llm.base import Completion, Message
from drift_agents.memory.generative_agents import GenerativeAgents
from drift_agents.memory.memory_stream import AccessRecord
from drift_agents.types import AgentClock, Experience, Outcome, Removed

from tests.drift_agents.memory.contents import contents

ICE, HOLE = Outcome("ice", 0.0, False), Outcome("hole", 0.0, True)


class Scripted:
    """A model with scripted answers that records its prompts."""

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


def live(memory: GenerativeAgents, episode: int, state: str, action: str, outcome: Outcome, step: int = 0) -> int:
    now = AgentClock(episode, 10 * episode + step)
    return memory.observe(Experience(state, action, outcome, 0.0, now), now)


def recall_insights(memory: GenerativeAgents, episode: int, state: str, step: int = 5) -> list[str]:
    return [note.text for note in memory.retrieve(state, None, AgentClock(episode, 10 * episode + step)).notes]


# -- reflecting ------------------------------------------------------------------------------------


def test_reflection_at_retrieval_counts_importance_of_this_state() -> None:
    model = Scripted(importance=4, because=[(1, 2), (3,)])
    memory = GenerativeAgents(model=model)
    live(memory, 0, "s", "1", ICE), live(memory, 0, "s", "2", ICE), live(memory, 0, "t", "1", ICE)
    assert recall_insights(memory, 1, "s") == [], "8 of importance here, 12 in all"
    live(memory, 1, "s", "1", ICE, 6)
    assert set(recall_insights(memory, 2, "s")) == {"Insight 1.0", "Insight 1.1"}
    assert [note.evidence for note in memory.notes()] == [(0, 1), (3,)]
    assert model.count("reflection_questions") == 0
    ((_, asked),) = [entry for entry in model.asked if entry[0] == "insights"]
    assert asked.startswith("Question: What follows from each action in s?\nAt most: 5\nStatements:\n1. In s action")
    assert set(recall_insights(memory, 3, "s", 6)) == {"Insight 1.0", "Insight 1.1"}
    assert model.count("insights") == 1, "nothing new to reflect upon"
    assert recall_insights(memory, 3, "t", 7) == []


def test_reflection_at_the_threshold_makes_three_questions() -> None:
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


def test_questions_are_answered_by_the_most_salient_items_and_these_are_refreshed(OneLetter) -> None:
    model = Scripted(importance=10, because=[(1,)], questions=1)
    memory = GenerativeAgents(reflect="threshold", threshold=30, focus=1, model=model, embedding=OneLetter())
    first = live(memory, 0, "s", "1", ICE)
    live(memory, 5, "s", "1", ICE), live(memory, 5, "s", "1", HOLE)
    assert [note.evidence for note in memory.notes()] == [(2,)]
    live(memory, 6, "b", "1", ICE), live(memory, 7, "c", "1", ICE), live(memory, 7, "c", "1", ICE)
    assert [note.evidence for note in memory.notes()] == [(2,), (6,)], "insights count as items, ids as well"
    assert memory.access(first) == AccessRecord(10, 0)


def test_items_that_answer_a_question_are_refreshed(OneLetter) -> None:
    model = Scripted(importance=10, because=[(1,)], questions=1)
    options = {"threshold": 20, "focus": 1, "weights": [0, 0, 1]}
    memory = GenerativeAgents(reflect="threshold", model=model, embedding=OneLetter(), **options)
    old, new = live(memory, 0, "c", "1", ICE), live(memory, 5, "a", "1", ICE)
    assert memory.notes()[0].evidence == (old,), "the question is closest to c"
    assert (memory.access(old), memory.access(new)) == (AccessRecord(10, 5), AccessRecord(10, 5))


def test_numbers_that_name_no_statement_are_dropped_and_an_insight_without_evidence_too() -> None:
    memory = GenerativeAgents(model=Scripted(because=[(0, 1, 2, -1), (9,), (), (1, 1)]))
    live(memory, 0, "s", "1", HOLE)
    assert set(recall_insights(memory, 1, "s")) == {"Insight 1.0", "Insight 1.3"}
    assert [note.evidence for note in memory.notes()] == [(0,), (0,)]


def test_an_insight_found_again_is_not_written_twice() -> None:
    memory = GenerativeAgents()
    live(memory, 0, "s", "1", HOLE)
    recall_insights(memory, 1, "s")
    (before,) = memory.notes()
    live(memory, 2, "s", "1", HOLE)
    recall_insights(memory, 3, "s")
    assert memory.notes() == (before._replace(evidence=(0, 2)),)


def test_insights_report_contradictions() -> None:
    memory = GenerativeAgents()
    live(memory, 0, "s", "1", ICE), live(memory, 1, "s", "1", HOLE)
    assert recall_insights(memory, 2, "s") == [
        'Action "1" in s is not certain: it led to ice (score 0), and last to hole (score 0; the episode ended).'
    ]


def test_a_wrong_answer_is_refused_and_nothing_is_written() -> None:
    memory = GenerativeAgents(model=Scripted(importance=11))
    before = contents(memory)
    with pytest.raises(ModelError, match=r"'importance'.*should be at most 10"):
        live(memory, 0, "s", "1", HOLE)
    assert contents(memory) == before


def test_insights_can_be_switched_off() -> None:
    memory = GenerativeAgents(insights=0)
    live(memory, 0, "s", "1", HOLE)
    assert recall_insights(memory, 1, "s") == []


# -- evidence --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cascade", "falls"), [("any", [True]), ("majority", [False, True]), ("cut", [False, True])])
def test_an_insight_is_removed_with_its_evidence(cascade: str, falls: list[bool]) -> None:
    memory = GenerativeAgents(cascade=cascade)
    for time in range(3):
        live(memory, time, "s", "1", HOLE)
    recall_insights(memory, 5, "s")
    (note,) = memory.notes()
    assert note.evidence == (0, 1, 2)
    for record_id, fell in enumerate(falls):
        assert memory.remove([record_id]) == Removed((record_id,), (note.id,) if fell else ())
        assert (note.id in [n.id for n in memory.retrieve("s", None, AgentClock(9, 90 + record_id)).notes]) is not fell
    assert memory.access(note.id) is None


def test_an_insight_about_an_insight_is_removed_with_it() -> None:
    model = Scripted(importance=10, because=[(1,)], questions=1)
    memory = GenerativeAgents(reflect="threshold", threshold=10, focus=1, model=model)
    for state in "stu":
        live(memory, 0, state, "1", HOLE)
    assert [(note.id, note.evidence) for note in memory.notes()] == [(1, (0,)), (3, (1,)), (5, (3,))]
    assert len(recall_insights(memory, 1, "s")) == 3, "they rest on this state's observation, by way of one another"
    assert recall_insights(memory, 2, "t") == []
    assert memory.remove([0]) == Removed((0,), (1, 3, 5))


def test_two_insights_cannot_cite_each_other() -> None:
    memory = GenerativeAgents()
    record = live(memory, 0, "s", "1", HOLE)
    stream = memory._stream
    stream.write_insight("one", [record], AccessRecord(1, 0))
    one = memory.notes()[0].id
    stream.write_insight("two", [one], AccessRecord(1, 0))
    two = memory.notes()[1].id
    stream.write_insight("one", [two], AccessRecord(1, 0))
    assert memory.notes()[0].evidence == (record,)
    assert memory.remove([record]) == Removed((record,), (one, two))


def test_a_removed_insight_can_be_inferred_again_under_another_number() -> None:
    memory = GenerativeAgents()
    live(memory, 0, "s", "1", HOLE)
    recall_insights(memory, 1, "s")
    (before,) = memory.notes()
    memory.remove([0])
    live(memory, 2, "s", "1", HOLE)
    recall_insights(memory, 3, "s")
    (after,) = memory.notes()
    assert (after.text, after.evidence) == (before.text, (2,))
    assert after.id > before.id

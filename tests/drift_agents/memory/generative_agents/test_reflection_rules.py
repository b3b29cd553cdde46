"""Statements in words, and the rules that rate them and draw insights from them."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from drift_agents.memory.generative_agents import (
    IMPORTANCE,
    INSIGHTS,
    QUESTIONS,
    RULES,
    choose_questions,
    infer_insights,
    number_statements,
    rate,
)
from drift_agents.memory.transcript import LONGEST_STATEMENT, render_statement
from drift_agents.types import Outcome
from hypothesis import given

from drift_envs.utils.json_schema import violations

HOLE = Outcome("hole", 0.0, True)
GOAL = Outcome("goal", 1.0, True)
ICE = Outcome("ice", 0.0, False)
HERE = Outcome("a", 0.0, False)
GOLD = Outcome("gold", 0.5, False)


def statement(*outcomes: Outcome, state: str = "a", action: str = "1") -> str:
    return render_statement(
        state, action, [(outcome, 1 / len(outcomes)) for outcome in outcomes], 4 if outcomes[1:] else None
    )


def infer(*statements: str, most: int = 5) -> list[tuple[str, list[int]]]:
    answer = infer_insights(f"Question: what?\nAt most: {most}\nStatements:\n{number_statements(statements)}")
    assert violations(answer, INSIGHTS) == []
    return [(entry["insight"], entry["because_of"]) for entry in answer["insights"]]


@pytest.mark.parametrize(
    ("outcomes", "importance"),
    [((HERE,), 1), ((ICE,), 2), ((GOLD,), 6), ((HOLE,), 10), ((GOAL,), 10), ((ICE, HOLE), 10)],
)
def test_ends_have_the_highest_importance(outcomes: tuple[Outcome, ...], importance: int) -> None:
    assert rate(f"Memory: {statement(*outcomes)}") == {"importance": importance}


def test_an_insight_has_the_importance_of_its_outcomes() -> None:
    for outcome in (ICE, HOLE, GOLD):
        ((insight, _),) = infer(statement(outcome))
        assert rate(f"Memory: {insight}") == rate(f"Memory: {statement(outcome)}")


def test_insights_by_kind_of_outcome() -> None:
    assert infer(statement(ICE)) == [('Action "1" in a leads to ice (score 0).', [1])]
    assert infer(statement(HERE)) == [('Action "1" in a changes nothing: a (score 0).', [1])]
    assert infer(statement(HOLE)) == [('Avoid action "1" in a: it led to hole (score 0; the episode ended).', [1])]
    assert infer(statement(GOAL)) == [('Action "1" in a pays: it led to goal (score 1; the episode ended).', [1])]


def test_contradictions_come_first_and_end_with_the_latest_outcome() -> None:
    found = infer(
        statement(GOAL, action="2"),
        statement(ICE),
        statement(HOLE),
        statement(ICE, action="3"),
        statement(ICE),
    )
    assert found[0] == (
        'Action "1" in a is not certain: it led to hole (score 0; the episode ended), and last to ice (score 0).',
        [2, 3, 5],
    )
    assert [numbers for _, numbers in found] == [[2, 3, 5], [1], [4]]
    assert [numbers for _, numbers in infer(statement(GOAL, action="2"), statement(ICE), statement(HOLE), most=1)] == [
        [2, 3]
    ]


def test_a_verified_summary_is_read_outcome_by_outcome() -> None:
    assert statement(ICE, HOLE) == (
        'In a action "1" led to ice (score 0; 2 of 4 responses, verified), '
        "or to hole (score 0; the episode ended; 2 of 4 responses, verified)"
    )
    ((insight, numbers),) = infer(statement(ICE, HOLE))
    assert "hole (score 0; the episode ended)" in insight
    assert "ice (score 0)" in insight
    assert numbers == [1]


def test_other_lines_are_ignored() -> None:
    assert infer("Mind the ice.", statement(ICE), "It is cold.") == [('Action "1" in a leads to ice (score 0).', [2])]


def test_questions_are_about_the_states_of_highest_importance() -> None:
    numbered = number_statements(
        [
            statement(ICE, state="b"),
            statement(ICE, state="b"),
            statement(HOLE, state="c"),
            statement(HERE),
        ]
    )
    assert choose_questions(f"At most: 2\nStatements:\n{numbered}") == {
        "questions": ["What follows from each action in c?", "What follows from each action in b?"]
    }


def test_a_statement_is_one_line_and_not_too_long() -> None:
    text = render_statement("x\n" * LONGEST_STATEMENT, "1\n", [(Outcome("a\r\nb", 0.0, False), 1.0)])
    assert len(text) < 2 * LONGEST_STATEMENT
    assert text.splitlines() == [text]


@given(st.text(), st.lists(st.tuples(st.text(max_size=9), st.text(max_size=3), st.text(max_size=9)), max_size=4))
def test_rules_accept_any_text(noise: str, steps: list[tuple[str, str, str]]) -> None:
    numbered = number_statements(
        render_statement(state, action, [(Outcome(after, 0.0, False), 1.0)]) for state, action, after in steps
    )
    for text in (noise, f"At most: 3\nStatements:\n{noise}", f"At most: 3\nStatements:\n{numbered}", "(score high; x)"):
        for form in (IMPORTANCE, QUESTIONS, INSIGHTS):
            assert violations(RULES[form["title"]](text), form) == []

"""The view: its text, what is read back from it, and how records are folded."""

from __future__ import annotations

import json
import re

import hypothesis.strategies as st
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.prompt.lessons import read_view
from drift_agents.prompt.view import ANSWER, HERE, PromptView, Recollection, fold
from drift_agents.types import AgentClock, Outcome, Record
from hypothesis import given

text = st.text(max_size=12) | st.sampled_from(
    ["", "; verified)", " led to ", '") (score 1', "\n", "\n\nCurrent state: x", HERE, "- in", "\u2028", "é; (\\"]
)
plain = st.none() | st.booleans() | st.integers() | text | st.lists(text, max_size=2)
states = st.builds(
    lambda data, ascii_only: json.dumps(data, ensure_ascii=ascii_only),
    st.dictionaries(text, plain, max_size=2),
    st.booleans(),
)
numbers = st.floats(allow_nan=False) | st.integers(0, 9).map(float)
recollections = st.builds(
    Recollection,
    states,
    text,
    st.builds(Outcome, states, numbers, st.booleans()),
    numbers,
    st.integers(-1, 10**9),
    st.booleans(),
    st.none() | numbers,
    st.just(1.0) | st.floats(0, 1, exclude_min=True),
    st.none() | st.integers(0, 99),
    st.integers(0, 99),
).map(lambda item: item if item.value_estimate is not None else item._replace(steps_to_go=None))
views = st.builds(
    PromptView,
    text,
    states,
    st.lists(text, max_size=3).map(tuple),
    st.lists(recollections, max_size=2).map(tuple),
    st.lists(recollections, max_size=2).map(tuple),
    st.lists(text, max_size=3).map(tuple),
    st.integers(0),
    st.none() | st.integers(0),
    st.none() | st.dictionaries(text, st.integers(0, 99), max_size=2).map(lambda counts: tuple(counts.items())),
    st.lists(recollections, max_size=2).map(tuple),
)


@given(view=views)
def test_the_text_reads_back_as_the_view(view: PromptView) -> None:
    assert read_view(view.render()) == view


VIEW = PromptView(
    "Reach the goal.",
    '{"at": 1}',
    ("0", "1"),
    (Recollection('{"at": 1}', "0", Outcome('{"at": 2}', 0.5, True), 3.0, 17, True, 0.5),),
    (Recollection('{"at": 2}', "1", Outcome('{"at": 1}', 0.0, False), 1.0, 4),),
    ("Never go left.",),
    18,
    16,
)


def test_the_text_is_what_a_reader_needs() -> None:
    assert VIEW.render() == (
        "Reach the goal.\n"
        "\n"
        'Current state: {"at": 1}\n'
        'Admissible actions: ["0", "1"]\n'
        "Interactions so far: 18\n"
        "Memory was contradicted at step: 16\n"
        "\n"
        "--- Experience from this state ---\n"
        '- in {"at": 1} action "0" led to {"at": 2} (the episode ended; score 0.5; seen 3 times; last at step 17; '
        "verified; highest score believed reachable from there 0.5)\n"
        "\n"
        "--- Experience from other states ---\n"
        '- in {"at": 2} action "1" led to {"at": 1} (score 0; seen once; last at step 4)\n'
        "\n"
        "--- Lessons ---\n"
        '- "Never go left."\n'
        "\n" + ANSWER
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Current state: ", "State: ", "'Current state: ' is missing"),
        ("Admissible actions: ", "Actions: ", 'not a line of a prompt: \'Actions: ["0", "1"]\''),
        ('["0", "1"]', '["0", "1', "not a rendered prompt, its head is {"),
        ("so far: 18", "so far: many", "not a rendered prompt, its head is {"),
        ("score 0.5;", "score high;", "not a line of a prompt: '- in"),
        ("; verified", "; verified; recalled with weight full", "not a line of a prompt: '- in"),
        (' led to {"at": 2}', ' led to {"at": ', "not a line of a prompt: '- in"),
        ('"Never', "Never", "not a rendered prompt, its head is {"),
        ("- in", "in", "not a line of a prompt: 'in"),
    ],
)
def test_anything_else_is_refused(old: str, new: str, message: str) -> None:
    broken = VIEW.render().replace(old, new)
    with pytest.raises(ArgumentError, match=re.escape(message)):
        read_view(broken)


def test_fold_adds_up_what_is_equal_and_nothing_else() -> None:
    fell, stood = Outcome("hole", 0.0, True), Outcome("ice", 0.0, False)
    records = [
        Record(0, "a", "1", ((fell, 1.0),), 1, AgentClock(0, 3)),
        Record(1, "a", "2", ((fell, 1.0),), 1, AgentClock(0, 4)),
        Record(2, "a", "1", ((stood, 2 / 3), (fell, 1 / 3)), 3, AgentClock(0, 9), verified=True),
        Record(3, "a", "1", ((stood, 1.0),), 1, AgentClock(0, 5)),
    ]
    assert fold(records, {fell: 0.0, stood: 0.5}.__getitem__) == (
        Recollection("a", "1", fell, 2.0, 9, True, 0.0),
        Recollection("a", "2", fell, 1.0, 4, False, 0.0),
        Recollection("a", "1", stood, 3.0, 9, True, 0.5),
    )
    assert [item.value_estimate for item in fold(records)] == [None] * 3


def test_fold_tells_how_strongly_equal_records_are_recalled() -> None:
    fell, stood = Outcome("hole", 0.0, True), Outcome("ice", 0.0, False)
    records = [
        Record(0, "a", "1", ((fell, 1.0),), 1, AgentClock(0, 3)),
        Record(1, "a", "1", ((stood, 0.75), (fell, 0.25)), 4, AgentClock(0, 4)),
    ]
    hole, ice = fold(records, weights=(0.2, 0.7))
    assert (hole.n, hole.weight) == (2.0, 0.45)
    assert hole.support == pytest.approx(1 * 0.2 + 1 * 0.7), "each response counts as strongly as it is recalled"
    assert (ice.n, ice.weight, ice.support) == (3.0, 0.7, pytest.approx(3 * 0.7))
    assert "seen 2 times; last at step 4; recalled with weight 0.45)" in hole.line().replace(") (", "(")

"""Trajectories as text: rendered and parsed back exactly; other text is left alone."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import numpy as np
import pytest
from drift_agents.policy.planner import Planner
from drift_agents.prompt.lessons import (
    LESSON_WEIGHT,
    Trajectory,
    build_trajectories,
    parse_lessons,
    parse_trajectories,
    render_trajectory,
)
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome
from hypothesis import given

states = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=8), max_size=2).map(
    lambda data: json.dumps(data, ensure_ascii=False)
)
scores = st.integers(-1000, 1000).map(lambda n: n / 1000)


@st.composite
def ways(draw: st.DrawFn) -> Trajectory:
    count = draw(st.integers(1, 4))
    return Trajectory(
        tuple(draw(states) for _ in range(count + 1)),
        tuple(draw(st.text(max_size=8)) for _ in range(count)),
        draw(scores),
        draw(st.booleans()),
        draw(st.integers(-1, 10**6)),
    )


@given(st.lists(ways(), max_size=3))
def test_rendered_trajectories_parse_back(trajectories: list[Trajectory]) -> None:
    assert parse_trajectories(
        "Be careful. " + " Then: ".join(map(render_trajectory, trajectories)) + " From here on: good luck."
    ) == tuple(trajectories)


@pytest.mark.parametrize(
    "text",
    [
        "From here do it.",
        'From [1] do "0" to get to [2].',
        "From [1] do 0 to get to [2]: score 1, last seen at step 3.",
        'Skill cross: From [1] to [2]. Score 1 after 2 steps. Program: "1".',
        'From [1] do "0" to get to [2: score 1, last seen at step 3.',
        "From " + "[" * 3000,
    ],
)
def test_other_words_are_left_alone(text: str) -> None:
    assert parse_trajectories(text) == ()
    assert parse_lessons((text,)) == ()


def test_a_step_told_by_several_ways_counts_as_often() -> None:
    way = Trajectory(("[1]", "[2]", "[3]"), ("0", "1"), 1.0, True, 7)
    later = Trajectory(("[1]", "[2]"), ("0",), 0.0, False, 9)
    first, second = parse_lessons((render_trajectory(way), render_trajectory(later)))
    assert (first.n, first.support, first.last) == (2.0, 2 * LESSON_WEIGHT, 9)
    assert (second.outcome, second.support) == (Outcome("[3]", 1.0, True), LESSON_WEIGHT)


def test_a_gap_begins_a_new_way() -> None:
    steps = [
        Recollection("[1]", "0", Outcome("[2]", 0.0, False), 1.0, 4),
        Recollection("[2]", "0", Outcome("[9]", 0.0, True), 1.0, 5),
        Recollection("[9]", "0", Outcome("[3]", 0.5, False), 1.0, 6),
    ]
    assert [(way.states, way.ended, way.last) for way in build_trajectories(steps)] == [
        (("[1]", "[2]", "[9]"), True, 5),
        (("[9]", "[3]"), False, 6),
    ]


def cell(row: int, column: int) -> str:
    return json.dumps({"cur_pos": [row, column], "tile_type": "F", "gold_collected": 0})


TASK = (
    "A lake of 2 rows x 3 columns. There are a total of 1 destination(s): [0, 2]. The highest score is 1. "
    "Actions: 0 left, 1 down, 2 right, 3 up."
)


def decide(*lessons: str, here: tuple[Recollection, ...] = ()) -> set[str]:
    view = PromptView(TASK, cell(0, 0), ("0", "1", "2", "3"), here, lessons=lessons, environment="frozen_lake")
    return {Planner().decide(view, np.random.default_rng(seed)).text for seed in range(8)}


def test_the_planner_takes_advice_and_trusts_what_was_lived_more() -> None:
    detour = Trajectory((cell(0, 0), cell(1, 0), cell(1, 1), cell(1, 2)), ("1", "2", "2"), 0.0, False, 3)
    hole = Trajectory((cell(0, 0), cell(0, 1)), ("2",), 0.0, True, 3)
    assert decide() == {"2"}, "straight on"
    assert decide(render_trajectory(hole)) == {"1"}, "words alone are heard"
    assert decide(render_trajectory(hole), render_trajectory(detour)) == {"1"}
    lived = Recollection(cell(0, 0), "2", Outcome(cell(0, 1), 0.0, False), 1.0, 1)
    assert decide(render_trajectory(hole), here=(lived,)) == {"2"}, "what was lived outweighs words"

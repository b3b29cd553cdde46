"""The lake's planner on hand-made prompts with known right moves."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.envs.frozen_lake.planner import FrozenLakePlanner, read_grid
from drift_agents.errors import ArgumentError
from drift_agents.prompt.view import CONFLICTS, PromptView, Recollection
from drift_agents.types import Outcome

LEFT, DOWN, RIGHT, UP = "0", "1", "2", "3"
ACTIONS = (LEFT, DOWN, RIGHT, UP)


def state(row: int, column: int, tile: str = "F", gold: float = 0) -> str:
    return f'{{"cur_pos": [{row}, {column}], "tile_type": "{tile}", "gold_collected": {gold}}}'


def seen(
    cell: tuple[int, int],
    action: str,
    target: tuple[int, int],
    tile: str = "F",
    n: float = 1,
    last: int = 0,
    score: float | None = None,
) -> Recollection:
    """One line of experience; the score of a goal is 1 by default."""
    score = float(tile == "G") if score is None else score
    return Recollection(state(*cell), action, Outcome(state(*target, tile, score), score, tile in "GH"), float(n), last)


def prompt(
    cell: tuple[int, int],
    *recalled: Recollection,
    size: str = "3 rows x 3 columns",
    goals: str = "[2, 2]",
    highest: str = "1",
    doubt: int | None = None,
    step: int = 99,
) -> PromptView:
    task = (
        f"You walk over a frozen lake of {size}, from [0, 0]. Reach the destination with the highest score and "
        f"avoid holes. There are a total of {goals.count('[')} destination(s): {goals}. "
        f"The highest score is {highest}. Actions: 0 left, 1 down, 2 right, 3 up."
    )
    here = tuple(item for item in recalled if item.state == state(*cell))
    elsewhere = tuple(item for item in recalled if item.state != state(*cell))
    return PromptView(task, state(*cell), ACTIONS, here, elsewhere, (), step, doubt)


def answers(view: PromptView, **options: Any) -> set[str]:
    """Every answer that some generator brings."""
    planner = FrozenLakePlanner(**options)
    return {planner.decide(view, np.random.default_rng(seed)).text for seed in range(30)}


def test_without_memory_every_shortest_way_is_as_good() -> None:
    assert answers(prompt((0, 0))) == {DOWN, RIGHT}
    assert answers(prompt((2, 1))) == {RIGHT}


def test_a_known_hole_is_avoided() -> None:
    assert answers(prompt((0, 0), seen((0, 0), RIGHT, (0, 1), "H"))) == {DOWN}


def test_a_learned_way_is_followed() -> None:
    way = [seen((0, 0), RIGHT, (0, 1)), seen((0, 1), RIGHT, (0, 2)), seen((0, 2), DOWN, (1, 2))]
    way.append(seen((1, 2), DOWN, (2, 2), "G"))
    assert answers(prompt((0, 0), *way)) == {RIGHT}
    assert answers(prompt((0, 1), *way)) == {RIGHT}
    assert answers(prompt((0, 2), *way)) == {DOWN}


DETOUR = [
    seen((0, 0), DOWN, (1, 0)),
    seen((1, 0), DOWN, (2, 0)),
    seen((2, 0), RIGHT, (2, 1)),
    seen((2, 1), RIGHT, (2, 2)),
    seen((2, 2), RIGHT, (2, 3)),
    seen((2, 3), UP, (1, 3)),
    seen((1, 3), UP, (0, 3), "G"),
]


def test_risk_prefers_a_long_way_that_is_known() -> None:
    text = prompt((0, 0), *DETOUR, size="3 rows x 4 columns", goals="[0, 3]")
    assert answers(text) == {DOWN}
    assert answers(text, risk=1.0) == {RIGHT}


def test_a_remembered_tile_holds_from_every_neighbour() -> None:
    """The hole in the middle was met from above; an agent left of it does not enter it."""
    hole = seen((0, 1), DOWN, (1, 1), "H")
    assert answers(prompt((1, 0), hole)) == {DOWN}
    assert answers(prompt((1, 0), hole), generalise=False) == {DOWN, RIGHT}


def test_what_a_move_itself_did_comes_before_what_the_tile_seems_to_be() -> None:
    around = [seen((1, 0), RIGHT, (1, 1), "F", last=1), seen((0, 1), DOWN, (1, 1), "H", last=2)]
    assert RIGHT in answers(prompt((1, 0), *around))


@pytest.mark.parametrize(("first", "second", "expected"), [("F", "H", DOWN), ("H", "F", RIGHT)])
def test_of_two_beliefs_about_a_tile_the_newer_holds(first: str, second: str, expected: str) -> None:
    around = (seen((2, 1), UP, (1, 1), first, last=1), seen((1, 2), LEFT, (1, 1), second, last=2))
    assert answers(prompt((1, 0), *around)) == {expected}


CLASH = [
    seen((0, 0), RIGHT, (0, 1), "F", n=5, last=10),
    seen((0, 0), RIGHT, (0, 1), "H", n=1, last=20),
    seen((0, 1), RIGHT, (0, 2), "G", last=10),
]


@pytest.mark.parametrize(
    ("conflict", "expected"), [("majority", {RIGHT}), ("max", {RIGHT}), ("newest", {DOWN}), ("frequency", {RIGHT})]
)
def test_conflicts_are_settled_by_the_rule(conflict: str, expected: set[str]) -> None:
    """Two rows; the way along the upper one was safe five times and then was not."""
    text = prompt((0, 0), *CLASH, size="2 rows x 3 columns", goals="[0, 2]")
    assert answers(text, conflict=conflict, aspiration=False) == expected


def test_frequencies_weigh_the_risk() -> None:
    """Four falls in five, and no pseudo-counts: the detour over unknown ice is better."""
    often = [seen((0, 0), RIGHT, (0, 1), "H", n=4), seen((0, 0), RIGHT, (0, 1), "F", n=1, last=5), CLASH[2]]
    text = prompt((0, 0), *often, size="2 rows x 3 columns", goals="[0, 2]")
    assert answers(text, conflict="frequency", prior=0.0) == {DOWN}
    assert answers(text, conflict="frequency", prior=100.0) == {RIGHT}


@pytest.mark.parametrize("conflict", ["majority", "frequency"])
def test_what_is_recalled_faintly_counts_little(conflict: str) -> None:
    """The clash of above: five faded successes weigh less than one recent fall."""
    options = {"conflict": conflict, "aspiration": False, "prior": 0.0}
    faded = [item._replace(weight=0.1) if item.n == 5 else item for item in CLASH]
    for memories, expected in ((CLASH, {RIGHT}), (faded, {DOWN})):
        text = prompt((0, 0), *memories, size="2 rows x 3 columns", goals="[0, 2]")
        assert answers(text, **options) == expected


HOPELESS = [
    seen((0, 0), RIGHT, (0, 1), "H", last=3),
    seen((0, 0), DOWN, (1, 0), "H", last=7),
]


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_aspiration_reopens_what_disappointed_before_the_doubt(conflict: str) -> None:
    """Doubt reopens both holes; the last resort, where there is none, the older one alone."""
    assert answers(prompt((0, 0), *HOPELESS), conflict=conflict, prior=0.0) == {RIGHT}
    assert answers(prompt((0, 0), *HOPELESS, doubt=5), conflict=conflict, prior=0.0) == {RIGHT}
    assert answers(prompt((0, 0), *HOPELESS, doubt=8), conflict=conflict, prior=0.0) == {RIGHT, DOWN}


def test_where_no_way_is_left_the_oldest_obstacle_is_doubted_first() -> None:
    assert answers(prompt((0, 0), *HOPELESS)) == {RIGHT}
    assert answers(prompt((0, 0), HOPELESS[0]._replace(last=8), HOPELESS[1])) == {DOWN}


def test_and_before_that_what_was_seen_least_often() -> None:
    """Both ways are closed: by a hole seen twice, and by a move that once led back."""
    hole = seen((0, 0), RIGHT, (0, 1), "H", n=2, last=3)
    astray = [seen((0, 0), DOWN, (1, 0), last=6), seen((1, 0), DOWN, (0, 0), last=7)]
    astray.append(seen((1, 0), RIGHT, (0, 0), n=3, last=9))
    assert answers(prompt((1, 0), hole, *astray)) == {DOWN}
    assert answers(prompt((0, 0), hole, *astray)) == {DOWN}


def test_no_more_is_doubted_than_opens_a_way() -> None:
    """Three holes around, seen equally often; only the oldest is tried."""
    holes = [seen((1, 1), action, cell, "H", last=5) for action, cell in ((DOWN, (2, 1)), (LEFT, (1, 0)))]
    holes += [seen((1, 1), RIGHT, (1, 2), "H", last=4), seen((1, 1), UP, (0, 1), "H", last=3)]
    assert answers(prompt((1, 1), *holes, goals="[0, 2]")) == {UP}


def test_only_disappointments_are_reopened() -> None:
    """That a move was held back is no disappointment, however old it is."""
    held = seen((0, 0), RIGHT, (0, 0), last=1)
    assert answers(prompt((0, 0), HOPELESS[1], held, doubt=8)) == {DOWN}


def test_equal_answers_in_other_words_add_up() -> None:
    """The same cell under two texts: four times ice against three times a hole."""
    other = seen((0, 0), RIGHT, (0, 1), "F", n=2)
    other = other._replace(outcome=Outcome(other.outcome.state.replace('"F"', '"S"'), 0.0, False))
    safe, hole = seen((0, 0), RIGHT, (0, 1), "F", n=2), seen((0, 0), RIGHT, (0, 1), "H", n=3, last=9)
    text = prompt((0, 0), safe, other, hole, size="2 rows x 3 columns", goals="[0, 2]")
    assert answers(text) == {RIGHT}


SETTLED = [
    seen((0, 1), LEFT, (0, 0), "G", score=0.5, last=9),
    seen((0, 1), RIGHT, (0, 2), "G", score=0.5, last=2),
]


def test_after_a_reversal_the_goal_not_seen_since_is_tried() -> None:
    env = {"size": "1 row x 3 columns", "goals": "[0, 0], [0, 2]"}
    assert answers(prompt((0, 1), *SETTLED, doubt=9, **env)) == {RIGHT}
    assert answers(prompt((0, 1), *SETTLED, doubt=9, **env), aspiration=False) == {LEFT, RIGHT}


def test_aspiration_asks_for_a_tenth_more() -> None:
    """Reopening the old hole would make the way shorter, but hardly better: one cell is unknown on both."""
    known = [seen((0, 0), DOWN, (1, 0), last=9), seen((1, 0), RIGHT, (1, 1), last=9)]
    hole = seen((0, 0), RIGHT, (0, 1), "H", last=2)
    text = prompt((0, 0), *known, hole, size="2 rows x 3 columns", goals="[0, 2]", doubt=5)
    assert answers(text) == {DOWN}


FAR = {"size": "1 row x 9 columns", "goals": "[0, 0], [0, 8]"}
"""Six unknown cells lie before the right goal: .75 ** 6 of 1 is less than a sure .5."""


def test_little_gold_is_no_reason_to_stop_looking() -> None:
    little = seen((0, 1), LEFT, (0, 0), "G", score=0.5, last=9)
    assert answers(prompt((0, 1), little, **FAR)) == {RIGHT}
    assert answers(prompt((0, 1), little, **FAR), aspiration=False) == {LEFT}


def test_equal_ways_differ_by_the_generator_alone() -> None:
    view = prompt((0, 0))
    planner = FrozenLakePlanner()
    first = [planner.decide(view, np.random.default_rng(seed)).text for seed in range(20)]
    again = [FrozenLakePlanner().decide(view, np.random.default_rng(seed)).text for seed in range(20)]
    assert first == again
    assert set(first) == {DOWN, RIGHT}


def test_the_answer_is_a_function_of_the_view() -> None:
    """Neither what was asked before, nor the order of records, nor the number of steps changes it."""
    fresh, used = FrozenLakePlanner(), FrozenLakePlanner()
    for noise in ([], HOPELESS, DETOUR[:2]):
        used.decide(prompt((0, 0), *noise, size="3 rows x 4 columns", goals="[0, 3]"), np.random.default_rng(1))
    env = {"size": "3 rows x 4 columns", "goals": "[0, 3]"}
    views = [prompt((0, 1), *DETOUR, **env), prompt((0, 1), *reversed(DETOUR), step=7, **env)]
    for seed in range(10):
        choices = {p.decide(view, np.random.default_rng(seed)).text for p in (fresh, used) for view in views}
        assert len(choices) == 1


def test_the_words_of_the_text_environment_are_understood() -> None:
    import drift_envs  # noqa: F401

    env = gym.make("DriftFrozenLake-v0", text=True, schedule="frozen_lake/implicit")
    _, info = env.reset(seed=0)
    grid = read_grid(info["task"], tuple(info["actions"]))
    assert (grid.rows, grid.columns, grid.highest) == (6, 6, 1.0)
    assert grid.destinations == ((3, 5), (5, 5))
    assert dict(grid.moves) == {"0": (0, -1), "1": (1, 0), "2": (0, 1), "3": (-1, 0)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3 rows x 3 columns", "nine cells", "should name its map size"),
        ("destination(s): [2, 2]", "destination", "should name its destinations"),
        ("highest score is 1", "best is 1", "should name its highest score there is"),
        ('"cur_pos": [0, 0]', '"where": [0, 0]', "should have `cur_pos`: [row, column]"),
        ('"cur_pos": [0, 0]', '"cur_pos": [7, 0]', "the position (7, 0) lies outside a map of 3 x 3"),
    ],
)
def test_views_that_lack_something_are_refused(old: str, new: str, message: str) -> None:
    view = prompt((0, 0))
    view = replace(view, task=view.task.replace(old, new), state=view.state.replace(old, new))
    with pytest.raises(ArgumentError, match=re.escape(message)):
        FrozenLakePlanner().decide(view, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"risk": 0}, "`risk` should be in the interval (0, 1]. Received 0"),
        ({"risk": 1.5}, "`risk` should be in the interval (0, 1]. Received 1.5"),
        ({"risk": "high"}, "`risk` should be in the interval (0, 1]. Received 'high'"),
        ({"prior": -1}, "`prior` should be in the interval [0, inf). Received -1"),
        ({"prior": float("nan")}, "`prior` should be in the interval [0, inf). Received nan"),
        ({"generalise": 1}, "`generalise` should be true or false. Received 1"),
        ({"aspiration": "yes"}, "`aspiration` should be true or false. Received 'yes'"),
        ({"conflict": "mean"}, "`conflict` should be one of majority, newest, frequency, max. Received 'mean'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        FrozenLakePlanner(**options)

"""The lake as mathematics, against the running environment and against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.envs import FrozenLake
from drift_envs.envs.frozen_lake.dynamics import (
    Action,
    breaks_shortest_paths,
    discounted_values,
    distances,
    false_targets,
    greedy_actions,
    horizon_values,
    moves,
    shortest_path,
    tiles,
    transitions,
)

LAKE = ("SFFF", "FHFH", "FFFH", "HFFG")


@st.composite
def lakes(draw):
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(2, 5))
    letters = draw(st.lists(st.sampled_from("FFFH"), min_size=rows * columns, max_size=rows * columns))
    letters[0], letters[-1] = "S", "G"
    return tuple("".join(letters[first : first + columns]) for first in range(0, rows * columns, columns))


@settings(max_examples=2 * settings().max_examples)
@given(lakes(), st.floats(0, 1), st.floats(0, 1))
def test_rows_are_probabilities(lake, slip, transient):
    model = transitions(lake, slip=slip, transient=transient)
    assert model.probability.min() >= 0
    np.testing.assert_allclose(model.probability.sum(axis=2), 1)
    np.testing.assert_allclose(model.matrix().sum(axis=2), 1)


def test_set_knobs_show_in_gymnasiums_table():
    lake = FrozenLake(is_slippery=False)
    assert lake.P[0][Action.RIGHT] == [(1.0, 1, 0.0, False)]
    lake.set_knobs({"slip": 0.5})
    assert lake.P[0][Action.RIGHT] == [(0.25, 4, 0.0, False), (0.5, 1, 0.0, False), (0.25, 0, 0.0, False)]
    lake.set_knobs({"goal_rewards": lake.knobs["goal_rewards"].check({"3,3": 0.25}), "slip": 0.0})
    assert lake.P[14][Action.RIGHT] == [(1.0, 15, 0.25, True)]
    lake.set_knobs({"transient": 0.1})
    assert sorted(lake.P[0][Action.RIGHT]) == [(0.1, 4, 0.0, False), (0.9, 1, 0.0, False)]


@pytest.mark.parametrize(("slip", "transient"), [(0.0, 0.0), (0.4, 0.0), (0.3, 0.25), (0.0, 0.5)])
def test_the_environment_moves_as_the_arrays_say(slip, transient):
    lake = FrozenLake(desc=LAKE, is_slippery=False, show_prob=False)
    lake.set_knobs({"slip": slip, "transient": transient})
    lake.reset(seed=3)
    expected = transitions(LAKE, slip=slip, transient=transient).matrix()
    tries = 4_000
    for state, action in ((0, 1), (6, 2), (9, 0), (14, 2)):
        found = np.zeros(16)
        for _ in range(tries):
            lake.s = state
            found[lake.step(action)[0]] += 1
        np.testing.assert_allclose(found / tries, expected[state, action], atol=0.035)


def test_a_false_response_is_free_and_elsewhere():
    assert false_targets(LAKE, 0, Action.RIGHT) == (4,)
    assert false_targets(LAKE, 9, Action.LEFT) == (10, 13)  # up is a hole
    assert false_targets(LAKE, 14, Action.LEFT) == (10,)  # right is the goal
    assert false_targets(("SG",), 0, Action.RIGHT) == ()


@settings(max_examples=3 * settings().max_examples)
@given(lakes())
def test_distances_are_those_of_relaxation(lake):
    letters, around = tiles(lake), moves(len(lake), len(lake[0]))
    best = [0 if letter == "S" else 10**6 for letter in letters]
    for _ in letters:
        for state, letter in enumerate(letters):
            if letter not in "GH":
                for tile in around[state]:
                    if letters[tile] != "H":
                        best[tile] = min(best[tile], best[state] + 1)
    assert distances(lake) == [-1 if far == 10**6 else far for far in best]


@pytest.mark.integration
@settings(max_examples=5 * settings().max_examples)
@given(lakes(), st.randoms(use_true_random=False))
def test_broken_paths_are_those_that_enumeration_finds(old, random):
    letters = list(tiles(old))
    for state in range(1, len(letters) - 1):
        if random.random() < 0.25:
            letters[state] = "H" if letters[state] == "F" else "F"
    columns = len(old[0])
    new = tuple("".join(letters[first : first + columns]) for first in range(0, len(letters), columns))
    length = shortest_path(old)
    if length is None or length > 7:
        return
    around = moves(len(old), columns)
    whole = False
    for plan in itertools.product(range(4), repeat=length):
        state, path = 0, [0]
        for action in plan:
            state = around[state][action]
            path.append(state)
        on_old = all(tiles(old)[tile] != "H" for tile in path)
        if tiles(old)[state] == "G" and on_old and len(set(path)) == len(path):
            whole |= all(letters[tile] != "H" for tile in path)
    assert breaks_shortest_paths(old, new) == (not whole)


def test_horizon_values_are_those_of_all_policies():
    lake = ("SFG", "FHF")
    model = transitions(lake, slip=0.3)
    horizon = 3
    matrix = model.matrix()
    best = -1.0
    for plan in itertools.product(range(4), repeat=2 * horizon):  # what to do on states 0 and 1 at each step
        share, value = np.eye(6)[0], 0.0
        for step in range(horizon):
            following = np.zeros(6)
            for state in (0, 1):
                following += share[state] * matrix[state, plan[2 * step + state]]
            value += following[2]
            share = following
            share[2] = 0.0
        best = max(best, value)
    assert horizon_values(model, horizon)[horizon, 0] == pytest.approx(best)


def test_allowed_actions_bound_the_value():
    model = transitions(LAKE)
    only_left = np.zeros((16, 4), bool)
    only_left[:, Action.LEFT] = True
    assert horizon_values(model, 100, only_left)[100, 0] == 0.0


def test_discounted_values_prefer_the_shorter_way():
    model = transitions(LAKE)
    values, action_values = discounted_values(model, 0.9)
    assert values[0] == pytest.approx(0.9**5)
    assert greedy_actions(action_values)[0].tolist() == [False, True, True, False]

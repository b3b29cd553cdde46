"""Maps drawn from a seed meet their conditions, whatever the seed."""

import itertools
import re

import numpy as np
import pytest

from drift_envs.envs.frozen_lake.dynamics import breaks_shortest_paths, distances, horizon_values, tiles, transitions
from drift_envs.envs.frozen_lake.knobs import HORIZON, draw_map, ice_value
from drift_envs.errors import KnobError

OLD = ("SFF", "FHF", "FFG")


def draw(arguments, below=None, seed=0):
    return draw_map(arguments, below, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(25))
def test_a_family_of_firm_lakes(seed):
    generator = np.random.default_rng(seed)
    maps = [draw_map({"size": 6, "holes": 9}, None, generator)]
    for _ in range(2):
        maps.append(draw_map({"move": 4, "break_shortest_paths": True}, maps[-1], generator))
    for lake in maps:
        assert tiles(lake).count("H") == 9
        assert distances(lake)[35] > 0
    for old, new in itertools.pairwise(maps):
        assert breaks_shortest_paths(old, new)
        changed = [one + other for one, other in zip(tiles(old), tiles(new), strict=True) if one != other]
        assert sorted(changed) == ["FH"] * 4 + ["HF"] * 4


@pytest.mark.parametrize("seed", range(6))
def test_a_family_of_slippery_lakes(seed):
    generator = np.random.default_rng(seed)
    old = draw_map({"size": 6, "holes": 9, "slip": 0.2, "optimum": 0.7}, None, generator)
    new = draw_map({"move": 4, "slip": 0.2, "optimum": 0.7, "old_at_most": 0.5}, old, generator)
    best = ice_value(new, 0.2)
    assert ice_value(old, 0.2) >= 0.7
    assert best >= 0.7
    # One old policy, with its ties broken at random, must not reach more than half.
    paid = _discounted_policy(old, np.random.default_rng(seed))
    only = np.zeros((36, 4), bool)
    only[np.arange(36), paid] = True
    assert horizon_values(transitions(new, slip=0.2), HORIZON, only)[HORIZON, 0] <= 0.5 * best


def _discounted_policy(lake, generator):
    """An optimal policy of the old lake by plain policy iteration over the dense matrix."""
    model = transitions(lake, slip=0.2)
    matrix, paid = model.matrix(), (model.probability * model.reward).sum(axis=2)
    policy = np.zeros(36, int)
    while True:
        rows = np.arange(36)
        going = matrix[rows, policy] * np.array([letter not in "GH" for letter in tiles(lake)])[:, None]
        values = np.linalg.solve(np.eye(36) - 0.99 * going, paid[rows, policy])
        ends = np.array([letter in "GH" for letter in tiles(lake)])
        scores = paid + 0.99 * matrix @ np.where(ends, 0.0, values)
        best = scores >= scores.max(axis=1, keepdims=True) - 1e-9
        if best[rows, policy].all():
            return np.array([generator.choice(np.flatnonzero(row)) for row in best])
        policy = scores.argmax(axis=1)


def test_both_goals_can_be_reached_without_crossing_the_other():
    for seed in range(25):
        lake = draw({"size": 6, "holes": 6, "goals": ["3,5", "5,5"]}, seed=seed)
        assert lake[3][5] == lake[5][5] == "G"
        found = distances(lake)
        assert found[23] > 0
        assert found[35] > 0


def test_the_same_generator_draws_the_same_map_and_another_one_another():
    arguments = {"size": 6, "holes": 9}
    assert draw(arguments, seed=4) == draw(arguments, seed=4)
    assert len({draw(arguments, seed=seed) for seed in range(20)}) == 20


@pytest.mark.parametrize(
    ("arguments", "below", "message"),
    [
        ({"move": 1}, None, "needs a map beneath it"),
        ({"move": 2}, OLD, "`draw.move` should be a whole number in the interval [1, 1]. Received 2"),
        ({"move": 1, "far": 2}, OLD, "`draw` should have no other keys than move,"),
        ({"move": 1, "break_shortest_paths": 1}, OLD, "should be true or false. Received 1"),
        ({"size": 1}, None, "`draw.size` should be a whole number in the interval [2, 32]. Received 1"),
        ({"size": 3, "holes": 8}, None, "`draw.holes` should be a whole number in the interval [0, 7]. Received 8"),
        ({"size": 3, "holes": 7, "goals": ["0,1", "2,2"]}, None, "should leave start and goals free. Received 7"),
        ({"size": 3, "goals": ["3,0"], "holes": 1}, None, "on the 3 x 3 map as 'row,column'. Received '3,0'"),
        ({"size": 3, "goals": ["0,0"], "holes": 1}, None, "should not lie on the start"),
        ({"size": 3, "goals": "2,2", "holes": 1}, None, "should be a list of 'row,column'"),
        ({"size": 3, "goals": 5, "holes": 1}, None, "should be a list of 'row,column'. Received 5"),
        ({"optimum": 2}, None, "`draw.optimum` should be a number in the interval [0, 1]. Received 2"),
        ({"slip": True}, None, "`draw.slip` should be a number in the interval [0, 1]. Received True"),
        ({"size": 3, "holes": 7}, None, "no map meets {'size': 3, 'holes': 7} within 5000 attempts"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refusals(arguments, below, message):
    with pytest.raises(KnobError, match=re.escape(message)):
        draw(arguments, below)

"""The best plan on a grid, from hand-made beliefs with known values."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from drift_agents.envs.frozen_lake.planner import STEP_DISCOUNT, Beliefs, BelievedOutcome, Grid, action_values
from hypothesis import given

LEFT, DOWN, RIGHT, UP = range(4)
MOVES = (("0", (0, -1)), ("1", (1, 0)), ("2", (0, 1)), ("3", (-1, 0)))
CORRIDOR = Grid(1, 4, ((0, 3),), MOVES, 1.0)
G = STEP_DISCOUNT


def beliefs(moves=None, tiles=None, safe=()):
    return Beliefs(frozenset((moves or {}).items()), frozenset((tiles or {}).items()), frozenset(safe))


def values(grid, known=None, risk=1.0, prior=0.0, best=False):
    return action_values(grid, beliefs() if known is None else known, risk, prior, best)


def test_unknown_ice_is_crossed_at_a_risk() -> None:
    """Two unknown cells before the destination: the second power of the risk."""
    found = values(CORRIDOR, risk=0.5)
    assert found[0, 0, RIGHT] == pytest.approx(0.25 * G**2)
    assert found[0, 1, RIGHT] == pytest.approx(0.5 * G)
    assert found[0, 2, RIGHT] == 1.0


def test_a_believed_tile_holds_from_every_neighbour() -> None:
    grid = Grid(3, 3, ((2, 2),), MOVES, 1.0)
    hole = beliefs(tiles={(1, 1): BelievedOutcome((1, 1), 0.0, True)})
    found = values(grid, hole)
    assert found[0, 1, DOWN] == found[1, 0, RIGHT] == found[2, 1, UP] == found[1, 2, LEFT] == 0.0


def test_believed_gold_replaces_hope() -> None:
    poor = beliefs(tiles={(0, 3): BelievedOutcome((0, 3), 0.5, True)})
    assert values(CORRIDOR, poor)[0, 2, RIGHT] == 0.5
    assert values(CORRIDOR)[0, 2, RIGHT] == 1.0


def test_frequencies_are_probabilities_with_a_prior() -> None:
    """3 falls and 1 step on, 4 pseudo-counts on the step: 5/8 of what comes after."""
    counted = beliefs(
        {((0, 1), "2"): ((BelievedOutcome((0, 2), 0.0, True), 3.0), (BelievedOutcome((0, 2), 0.0, False), 1.0))}
    )
    found = values(CORRIDOR, counted, prior=4.0)
    assert found[0, 1, RIGHT] == pytest.approx(5 / 8 * G)


cells = st.tuples(st.integers(0, 3), st.integers(0, 3))
answers = st.builds(BelievedOutcome, cells, st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
believed = st.dictionaries(
    st.tuples(cells, st.sampled_from("0123")),
    st.lists(st.tuples(answers, st.integers(1, 9).map(float)), min_size=1, max_size=3).map(tuple),
    max_size=30,
)


@given(moves=believed, risk=st.sampled_from([0.5, 0.75, 1.0]), prior=st.sampled_from([0.0, 5.0]), best=st.booleans())
def test_values_are_those_of_plain_value_iteration(moves, risk, prior, best) -> None:
    """A slow and simple program says the same, whatever is believed."""
    grid = Grid(4, 4, ((3, 3), (0, 3)), MOVES, 1.0)
    found = values(grid, beliefs(moves), risk, prior, best)
    v = np.zeros((4, 4))
    q = np.zeros((4, 4, 4))

    def worth(answer):
        return answer.score if answer.ended else G * v[answer.cell]

    def meant(cell, move):
        target = grid.intended(cell, move)
        if target == cell:
            return G * v[cell]
        return 1.0 if target in grid.destinations else risk * G * v[target]

    for _ in range(3000):
        for cell in np.ndindex(4, 4):
            for action, (name, move) in enumerate(MOVES):
                known = moves.get((cell, name))
                if known is None:
                    q[(*cell, action)] = meant(cell, move)
                elif best:
                    q[(*cell, action)] = max(worth(answer) for answer, _ in known)
                else:
                    total = sum(n for _, n in known) + prior
                    mean = sum(n * worth(answer) for answer, n in known) + prior * meant(cell, move)
                    q[(*cell, action)] = mean / total
        new = q.max(axis=2)
        if np.abs(new - v).max() < 1e-12:
            break
        v = new
    np.testing.assert_allclose(found, q, atol=1e-7)

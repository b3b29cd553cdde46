"""The best plan on a frozen lake, from beliefs about moves and tiles.

* `Grid` - size, destinations and action meanings
* `BelievedOutcome` - one possible outcome of a move: the next cell, its score, whether the episode ends
* `Beliefs` - beliefs about moves and tiles; hashable, so that plans can be cached
* `action_values` - the values of all actions in all cells

A move with records leads where they led; one without records leads to the intended cell. Entering a
cell that is not known to be safe multiplies the value by `risk`, so that a value is the score at the end
times the probability of reaching it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Cell = tuple[int, int]

STEP_DISCOUNT = 0.999
"""The discount of a step: just enough to prefer the shorter of two paths with equal scores."""
WARM_UP = 12
"""Sweeps of value iteration before policy iteration, which then needs fewer rounds."""


class Grid(NamedTuple):
    """The grid as the task describes it.

    Args:
        rows: number of rows.
        columns: number of columns.
        destinations: cells at which an episode can end with a score.
        moves: action -> change of row and column, in the order of the admissible actions; `None`
            for an action without a meaning.
        highest: the highest possible score.
    """

    rows: int
    columns: int
    destinations: tuple[Cell, ...]
    moves: tuple[tuple[str, Cell | None], ...]
    highest: float

    def has(self, cell: Cell) -> bool:
        """Whether the cell lies on the grid."""
        return 0 <= cell[0] < self.rows and 0 <= cell[1] < self.columns

    def intended(self, cell: Cell, move: Cell) -> Cell:
        """The intended cell of a move; at the edge, the same cell."""
        target = (cell[0] + move[0], cell[1] + move[1])
        return target if self.has(target) else cell


class BelievedOutcome(NamedTuple):
    """One possible outcome of a move.

    Args:
        cell: the next cell.
        score: the score there.
        ended: whether the episode ends there.
    """

    cell: Cell
    score: float
    ended: bool


class Beliefs(NamedTuple):
    """Beliefs about moves and tiles.

    Args:
        moves: pairs of (cell, action) and its outcomes, each with its support.
        tiles: pairs of cell and the outcome of entering it, the same from all neighbours.
        safe: cells known to be safe to enter.
    """

    moves: frozenset[tuple[tuple[Cell, str], tuple[tuple[BelievedOutcome, float], ...]]]
    tiles: frozenset[tuple[Cell, BelievedOutcome]]
    safe: frozenset[Cell]


@lru_cache(maxsize=512)
def action_values(grid: Grid, beliefs: Beliefs, risk: float, prior: float, best: bool) -> NDArray[np.float64]:
    """The values of all actions in all cells under the best plan.

    Args:
        grid: the grid.
        beliefs: the beliefs about moves and tiles.
        risk: the probability that a cell not known to be safe is safe, in (0, 1].
        prior: pseudo-counts of the intended move, added to the support of the outcomes of a move;
            ignored with `best`.
        best: whether the best of several outcomes counts, instead of their mean.

    Returns:
        Array of shape (rows, columns, actions), read-only, scores in [0, highest].
    """
    place = {name: number for number, (name, _) in enumerate(grid.moves)}
    intended = _intended(grid, beliefs, risk)
    share = np.ones(len(intended.target))
    entries: list[tuple[int, int, int, float, float]] = []
    # The order of the set has no effect: each entry has its own place.
    for (cell, action), outcomes in beliefs.moves:
        row = (cell[0] * grid.columns + cell[1]) * len(place) + place[action]
        total = sum(n for _, n in outcomes) + prior
        share[row] = 0.0 if best else prior / total
        for branch, (outcome, n) in enumerate(outcomes, start=1):
            part, target = 1.0 if best else n / total, outcome.cell[0] * grid.columns + outcome.cell[1]
            entries.append((row, branch, target, *((0.0, part * outcome.score) if outcome.ended else (part, 0.0))))
    tree = _tree(intended, share, entries, best)
    shape = (grid.rows * grid.columns, len(grid.moves))
    sure = best or (not prior and all(len(outcomes) == 1 for _, outcomes in beliefs.moves))
    values = (_sweep if sure else _iterate)(tree, shape, best)
    values = values.reshape(grid.rows, grid.columns, len(grid.moves))
    values.flags.writeable = False
    return values


class Tree(NamedTuple):
    """The possible successors of moves: cell, weight of its value, reward.

    Args:
        target: cells by number, shape (moves) or (moves, branches).
        weight: the factor of the value there, same shape.
        reward: the reward of the move, same shape.
    """

    target: NDArray[np.intp]
    weight: NDArray[np.float64]
    reward: NDArray[np.float64]


@lru_cache(maxsize=64)
def _targets(grid: Grid) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The intended cell of all moves of all cells, and whether it is the same cell."""
    targets = []
    for cell in range(grid.rows * grid.columns):
        row, column = divmod(cell, grid.columns)
        for _, move in grid.moves:
            there = (row, column) if move is None else grid.intended((row, column), move)
            targets.append(there[0] * grid.columns + there[1])
    return np.array(targets), np.array(targets) == np.repeat(np.arange(grid.rows * grid.columns), len(grid.moves))


def _intended(grid: Grid, beliefs: Beliefs, risk: float) -> Tree:
    """The expected successor of all moves without records."""
    shape = (grid.rows, grid.columns)
    weight, reward = np.full(shape, risk), np.zeros(shape)
    for cell in beliefs.safe:
        weight[cell] = 1.0
    for cell in grid.destinations:
        weight[cell], reward[cell] = 0.0, grid.highest
    for cell, outcome in beliefs.tiles:
        weight[cell], reward[cell] = (0.0, outcome.score) if outcome.ended else (1.0, 0.0)
    target, stays = _targets(grid)
    # A move at the edge stays in the present cell, which is safe.
    return Tree(target, np.where(stays, 1.0, weight.ravel()[target]), np.where(stays, 0.0, reward.ravel()[target]))


def _tree(
    intended: Tree, share: NDArray[np.float64], entries: list[tuple[int, int, int, float, float]], best: bool
) -> Tree:
    """All branches of all moves: first the intended cell with its share, then the believed outcomes."""
    width = 1 + max((branch for _, branch, *_ in entries), default=0)
    target = np.zeros((len(share), width), dtype=np.intp)
    weight, reward = np.zeros(target.shape), np.full(target.shape, -np.inf if best else 0.0)
    target[:, 0], weight[:, 0] = intended.target, intended.weight * share
    reward[:, 0] = np.where(share > 0, intended.reward, -np.inf) if best else intended.reward * share
    if entries:
        rows, branches, targets, weights, rewards = map(list, zip(*entries, strict=True))
        target[rows, branches], weight[rows, branches], reward[rows, branches] = targets, weights, rewards
    return Tree(target, weight * STEP_DISCOUNT, reward)


def _look_ahead(tree: Tree, values: NDArray[np.float64], shape: tuple[int, int], best: bool) -> NDArray[np.float64]:
    # `reduce` and `take` do the same as `max`, `sum` and brackets, with less overhead on such small arrays.
    branches = tree.reward + tree.weight * values.take(tree.target)
    actions: NDArray[np.float64] = (np.maximum if best else np.add).reduce(branches, axis=1)
    return actions.reshape(shape)


def _sweep(tree: Tree, shape: tuple[int, int], best: bool, sweeps: int | None = None) -> NDArray[np.float64]:
    """Values of all actions by value iteration, which terminates where moves are deterministic."""
    values = np.zeros(shape[0])
    for _ in range(shape[0] + 1 if sweeps is None else sweeps):
        actions = _look_ahead(tree, values, shape, best)
        swept = np.maximum.reduce(actions, axis=1)
        if (swept == values).all():
            break
        values = swept
    return actions


def _iterate(tree: Tree, shape: tuple[int, int], best: bool) -> NDArray[np.float64]:
    """Values of all actions by policy iteration, for stochastic moves."""
    cells, earned = np.arange(shape[0]), tree.reward.sum(axis=1)
    choice = _sweep(tree, shape, best, WARM_UP).argmax(axis=1)
    while True:
        rows = cells * shape[1] + choice
        matrix = np.eye(shape[0])
        np.subtract.at(matrix, (cells[:, None], tree.target[rows]), tree.weight[rows])
        actions = _look_ahead(tree, np.linalg.solve(matrix, earned[rows]), shape, best)
        # The margin exceeds rounding errors, so that two equal actions cannot alternate for ever.
        better = actions.max(axis=1) > actions[cells, choice] + 1e-10
        if not better.any():
            return actions
        choice = np.where(better, actions.argmax(axis=1), choice)

"""The best plan on a grid of ice, from what is believed about moves and tiles: no prompt, no memory.

* `Grid` - size, destinations and action meanings
* `BelievedOutcome` - one believed answer to a move: where it leads, its score, whether it ends
* `Beliefs` - what is believed about moves and tiles; hashable, so that plans can be cached
* `action_values` - what every action is worth in every cell

The model behind it: a move that is believed in leads where it led. A move never seen leads where
it is meant to lead. Entering a cell that nobody knows to be safe counts `risk` times, so that a
value is the score at the end times the chance of getting there alive.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Cell = tuple[int, int]

STEP_DISCOUNT = 0.999
"""What one more step costs: just enough to prefer the shorter of two equally good ways."""
WARM_UP = 12
"""Sweeps before policy iteration: a first guess saves it most of its rounds."""


class Grid(NamedTuple):
    """What the task says about the grid.

    Args:
        rows: number of rows.
        columns: number of columns.
        destinations: cells at which the journey can end well.
        moves: action -> change of row and column, in the order of the admissible actions; `None`
            for an action without a meaning.
        highest: the highest score that there is.
    """

    rows: int
    columns: int
    destinations: tuple[Cell, ...]
    moves: tuple[tuple[str, Cell | None], ...]
    highest: float

    def has(self, cell: Cell) -> bool:
        """Whether the cell lies on the grid."""
        return 0 <= cell[0] < self.rows and 0 <= cell[1] < self.columns

    def meant(self, cell: Cell, move: Cell) -> Cell:
        """Where a move is meant to lead: the edge holds it back."""
        target = (cell[0] + move[0], cell[1] + move[1])
        return target if self.has(target) else cell


class BelievedOutcome(NamedTuple):
    """One believed answer to a move.

    Args:
        cell: where it leads.
        score: the score there.
        ended: whether the journey ends there.
    """

    cell: Cell
    score: float
    ended: bool


class Beliefs(NamedTuple):
    """What is believed about moves and tiles.

    Args:
        moves: pairs of (cell, action) and its answers, each with how much speaks for it.
        tiles: pairs of cell and the answer that entering it brings, from wherever it is entered.
        safe: cells known to be safe to enter.
    """

    moves: frozenset[tuple[tuple[Cell, str], tuple[tuple[BelievedOutcome, float], ...]]]
    tiles: frozenset[tuple[Cell, BelievedOutcome]]
    safe: frozenset[Cell]


@lru_cache(maxsize=512)
def action_values(grid: Grid, beliefs: Beliefs, risk: float, prior: float, best: bool) -> NDArray[np.float64]:
    """What every action is worth in every cell, under the best plan that the beliefs allow.

    Args:
        grid: what the task says.
        beliefs: what is believed.
        risk: the chance that a cell not known to be safe is safe, in (0, 1].
        prior: how much speaks for the intended move beside the answers of a believed move;
            of no account with `best`.
        best: whether the best of several answers counts, instead of their mean.

    Returns:
        Array of shape (rows, columns, actions), read-only, scores in [0, highest].
    """
    place = {name: number for number, (name, _) in enumerate(grid.moves)}
    meant = _meant(grid, beliefs, risk)
    share = np.ones(len(meant.target))
    entries: list[tuple[int, int, int, float, float]] = []
    # The order of a set is of no account here: every entry has a place of its own.
    for (cell, action), answers in beliefs.moves:
        row = (cell[0] * grid.columns + cell[1]) * len(place) + place[action]
        total = sum(n for _, n in answers) + prior
        share[row] = 0.0 if best else prior / total
        for branch, (answer, n) in enumerate(answers, start=1):
            part, target = 1.0 if best else n / total, answer.cell[0] * grid.columns + answer.cell[1]
            entries.append((row, branch, target, *((0.0, part * answer.score) if answer.ended else (part, 0.0))))
    tree = _tree(meant, share, entries, best)
    shape = (grid.rows * grid.columns, len(grid.moves))
    sure = best or (not prior and all(len(answers) == 1 for _, answers in beliefs.moves))
    values = (_sweep if sure else _iterate)(tree, shape, best)
    values = values.reshape(grid.rows, grid.columns, len(grid.moves))
    values.flags.writeable = False
    return values


class Tree(NamedTuple):
    """What may follow a move: where, how much the value there counts, what is earned on the way.

    Args:
        target: cells by number, shape (moves) or (moves, branches).
        weight: what the value there is multiplied by, same shape.
        reward: what is earned on the way, same shape.
    """

    target: NDArray[np.intp]
    weight: NDArray[np.float64]
    reward: NDArray[np.float64]


@lru_cache(maxsize=64)
def _targets(grid: Grid) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where every move of every cell is meant to lead, and whether it stays where it was."""
    targets = []
    for cell in range(grid.rows * grid.columns):
        row, column = divmod(cell, grid.columns)
        for _, move in grid.moves:
            there = (row, column) if move is None else grid.meant((row, column), move)
            targets.append(there[0] * grid.columns + there[1])
    return np.array(targets), np.array(targets) == np.repeat(np.arange(grid.rows * grid.columns), len(grid.moves))


def _meant(grid: Grid, beliefs: Beliefs, risk: float) -> Tree:
    """What to expect of every move as long as nothing is remembered of it."""
    shape = (grid.rows, grid.columns)
    weight, reward = np.full(shape, risk), np.zeros(shape)
    for cell in beliefs.safe:
        weight[cell] = 1.0
    for cell in grid.destinations:
        weight[cell], reward[cell] = 0.0, grid.highest
    for cell, answer in beliefs.tiles:
        weight[cell], reward[cell] = (0.0, answer.score) if answer.ended else (1.0, 0.0)
    target, stays = _targets(grid)
    # Held back by the edge, one stays where one stood, and that was safe.
    return Tree(target, np.where(stays, 1.0, weight.ravel()[target]), np.where(stays, 0.0, reward.ravel()[target]))


def _tree(
    meant: Tree, share: NDArray[np.float64], entries: list[tuple[int, int, int, float, float]], best: bool
) -> Tree:
    """All branches of all moves: first the meant one with its share, then the believed answers."""
    width = 1 + max((branch for _, branch, *_ in entries), default=0)
    target = np.zeros((len(share), width), dtype=np.intp)
    weight, reward = np.zeros(target.shape), np.full(target.shape, -np.inf if best else 0.0)
    target[:, 0], weight[:, 0] = meant.target, meant.weight * share
    reward[:, 0] = np.where(share > 0, meant.reward, -np.inf) if best else meant.reward * share
    if entries:
        rows, branches, targets, weights, rewards = map(list, zip(*entries, strict=True))
        target[rows, branches], weight[rows, branches], reward[rows, branches] = targets, weights, rewards
    return Tree(target, weight * STEP_DISCOUNT, reward)


def _look_ahead(tree: Tree, values: NDArray[np.float64], shape: tuple[int, int], best: bool) -> NDArray[np.float64]:
    branches = tree.reward + tree.weight * values[tree.target]
    return np.asarray(branches.max(axis=1) if best else branches.sum(axis=1)).reshape(shape)


def _sweep(tree: Tree, shape: tuple[int, int], best: bool, sweeps: int | None = None) -> NDArray[np.float64]:
    """Values of all actions by value iteration, which ends by itself where no move is left to chance."""
    values = np.zeros(shape[0])
    for _ in range(shape[0] + 1 if sweeps is None else sweeps):
        actions = _look_ahead(tree, values, shape, best)
        swept = actions.max(axis=1)
        if np.array_equal(swept, values):
            break
        values = swept
    return actions


def _iterate(tree: Tree, shape: tuple[int, int], best: bool) -> NDArray[np.float64]:
    """Values of all actions by policy iteration, which ends exactly where moves are left to chance."""
    everyone, earned = np.arange(shape[0]), tree.reward.sum(axis=1)
    choice = _sweep(tree, shape, best, WARM_UP).argmax(axis=1)
    while True:
        rows = everyone * shape[1] + choice
        matrix = np.eye(shape[0])
        np.subtract.at(matrix, (everyone[:, None], tree.target[rows]), tree.weight[rows])
        actions = _look_ahead(tree, np.linalg.solve(matrix, earned[rows]), shape, best)
        # A margin above rounding, so that two equal actions can't take turns for ever.
        better = actions.max(axis=1) > actions[everyone, choice] + 1e-10
        if not better.any():
            return actions
        choice = np.where(better, actions.argmax(axis=1), choice)

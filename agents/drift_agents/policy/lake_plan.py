"""The best plan on a grid of ice, from what is believed about moves and tiles: no prompt, no memory.

* `Grid` - size, destinations and action meanings
* `Answer` - one believed answer to a move: where it leads, its score, whether it ends
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


class Answer(NamedTuple):
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

    moves: frozenset[tuple[tuple[Cell, str], tuple[tuple[Answer, float], ...]]]
    tiles: frozenset[tuple[Cell, Answer]]
    safe: frozenset[Cell]


@lru_cache(maxsize=512)
def action_values(grid: Grid, beliefs: Beliefs, risk: float, prior: float, best: bool) -> NDArray[np.float64]:
    """What every action is worth in every cell, under the best plan that the beliefs allow.

    Args:
        grid: what the task says.
        beliefs: what is believed.
        risk: the chance that a cell not known to be safe is safe, in (0, 1].
        prior: how much speaks for the intended move beside the answers of a believed move.
        best: whether the best of several answers counts, instead of their mean.

    Returns:
        Array of shape (rows, columns, actions), read-only, scores in [0, highest].
    """
    meant = _meant(grid, beliefs, risk)
    branches = [list(row) for row in meant]
    for (cell, action), answers in beliefs.moves:
        row = _row(grid, cell, action)
        total = sum(n for _, n in answers) + prior
        found = [_branch(grid, answer, 1.0 if best else n / total) for answer, n in answers]
        if prior and not best:
            found += [(target, weight * prior / total, reward * prior / total) for target, weight, reward in meant[row]]
        branches[row] = found
    width = max(map(len, branches))
    filler = (0, 0.0, -np.inf if best else 0.0)
    table = np.array([row + [filler] * (width - len(row)) for row in branches])
    target, weight, reward = table[..., 0].astype(np.intp), table[..., 1], table[..., 2]
    shape = (grid.rows * grid.columns, len(grid.moves))
    values = _solve(target, weight * STEP_DISCOUNT, reward, shape, best)
    values = values.reshape(grid.rows, grid.columns, len(grid.moves))
    values.flags.writeable = False
    return values


Branch = tuple[int, float, float]
"""Where a branch leads, how much the value there counts, and what is earned on the way."""


def _row(grid: Grid, cell: Cell, action: str) -> int:
    names = [name for name, _ in grid.moves]
    return (cell[0] * grid.columns + cell[1]) * len(names) + names.index(action)


def _branch(grid: Grid, answer: Answer, share: float) -> Branch:
    place = answer.cell[0] * grid.columns + answer.cell[1]
    return (place, 0.0, share * answer.score) if answer.ended else (place, share, 0.0)


def _meant(grid: Grid, beliefs: Beliefs, risk: float) -> list[list[Branch]]:
    """What to expect of every move of which nothing is remembered."""
    tiles, goals = dict(beliefs.tiles), frozenset(grid.destinations)
    entered: dict[Cell, Branch] = {}
    for row in range(grid.rows):
        for column in range(grid.columns):
            cell = (row, column)
            place = row * grid.columns + column
            if cell in tiles:
                entered[cell] = _branch(grid, tiles[cell], 1.0)
            elif cell in goals:
                entered[cell] = (place, 0.0, grid.highest)
            else:
                entered[cell] = (place, 1.0 if cell in beliefs.safe else risk, 0.0)
    rows: list[list[Branch]] = []
    for cell in entered:
        for _, move in grid.moves:
            # Held back by the edge, one stays where one stood, and that was safe.
            stays = (cell[0] * grid.columns + cell[1], 1.0, 0.0)
            target = cell if move is None else grid.meant(cell, move)
            rows.append([stays if target == cell else entered[target]])
    return rows


def _solve(
    target: NDArray[np.intp],
    weight: NDArray[np.float64],
    reward: NDArray[np.float64],
    shape: tuple[int, int],
    best: bool,
) -> NDArray[np.float64]:
    """Values of all actions, shape `shape`, by sweeps and then, where chance is involved, policy iteration.

    Without chance the sweeps end by themselves after as many as the longest way has steps. With
    chance they would go on for ever, and policy iteration ends exactly after a few rounds.
    """
    cells = shape[0]

    def look_ahead(values: NDArray[np.float64]) -> NDArray[np.float64]:
        branches = reward + weight * values[target]
        return np.asarray(branches.max(axis=1) if best else branches.sum(axis=1)).reshape(shape)

    values = np.zeros(cells)
    for _ in range(cells + 1):
        actions = look_ahead(values)
        swept = actions.max(axis=1)
        if np.array_equal(swept, values):
            return actions
        values = swept
    earned, everyone = reward.sum(axis=1), np.arange(cells)
    choice = actions.argmax(axis=1)
    while True:
        rows = everyone * shape[1] + choice
        matrix = np.eye(cells)
        np.subtract.at(matrix, (everyone[:, None], target[rows]), weight[rows])
        actions = look_ahead(np.linalg.solve(matrix, earned[rows]))
        # A margin above rounding, so that two equal actions can't take turns for ever.
        better = actions.max(axis=1) > actions[everyone, choice] + 1e-10
        if not better.any():
            return actions
        choice = np.where(better, actions.argmax(axis=1), choice)

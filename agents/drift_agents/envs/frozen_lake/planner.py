"""The planner for the frozen lake: beliefs about moves and tiles, and the best plan by them.

Its only input is the view: the task in words and the retrieved records. `docs/planner.md` has the measured effect of
every option.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply
from drift_agents.prompt.view import PromptView, Recollection, Sightings, add_sighting, check_conflict, settle_all
from drift_envs.checks import check_flag, check_interval

Cell = tuple[int, int]

SATISFIED = 0.9
"""The share of the highest score at which the aspiration rule stops exploring."""
GAIN = 1.1
"""The factor by which the plan without old low scores must be better to be followed."""
TIE = 1e-9
"""The tolerance for ties of values."""


class FrozenLakePlanner:
    """Fits a model of the lake to the records of the prompt and follows the best plan.

    Its rules are the same for all agents of a table:

    * a move with records leads where they led; `conflict` is the rule for several outcomes;
    * a move without records leads to the intended cell;
    * `generalise`: a recorded tile is the same from all neighbours (the newest record counts);
    * `risk`: the value behind a cell that is not known to be safe is multiplied by it;
    * `aspiration`: when the best plan has less than .9 of the highest possible score, endings with a
      lower score count as 0 as long as a plan to a higher one exists. If memory was contradicted at some
      step, records of holes and low scores last seen before count as unknown, if the plan becomes more
      than 10 % better by it. If no plan reaches any score, records of obstacles are dropped, those with
      the fewest responses first, then the oldest, until one does;
    * ties are broken at random.

    Args:
        risk: the probability that an unknown cell is safe, in (0, 1].
        generalise: whether a recorded tile is the same from all neighbours.
        aspiration: whether low scores are discarded when no plan is good enough.
        conflict: `majority`, `newest`, `frequency` or `max` (`drift_agents.prompt.view`); for slippery
            ice take `frequency`, which plans with the frequencies as probabilities.
        prior: pseudo-counts of the intended move, added to the counted outcomes; used by `frequency`
            alone, in [0, inf).

    Raises:
        ArgumentError: if an option is out of its range.

    Example:
        >>> task = "A lake of 2 rows x 2 columns. There are a total of 1 destination(s): [1, 1]. "
        >>> task += "The highest score is 1. Actions: 0 left, 1 down, 2 right, 3 up."
        >>> from drift_agents.types import Outcome
        >>> start = '{"cur_pos": [0, 0], "tile_type": "S", "gold_collected": 0}'
        >>> hole = Outcome('{"cur_pos": [0, 1], "tile_type": "H", "gold_collected": 0}', 0.0, True)
        >>> view = PromptView(task, start, ("0", "1", "2", "3"), (Recollection(start, "2", hole, 1.0, 0),))
        >>> FrozenLakePlanner().decide(view, np.random.default_rng(0)).text
        '1'
    """

    name = "frozen_lake"

    def __init__(
        self,
        *,
        risk: float = 0.75,
        generalise: bool = True,
        aspiration: bool = True,
        conflict: str = "majority",
        prior: float = 5.0,
    ) -> None:
        self.risk = check_interval("risk", risk, "(0, 1]")
        self.prior = check_interval("prior", prior, "[0, inf)")
        self.generalise = check_flag("generalise", generalise)
        self.aspiration = check_flag("aspiration", aspiration)
        self.conflict = check_conflict(conflict)

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            view: what the policy decides by.
            rng: for ties; drawn from only when there is one.

        Raises:
            ArgumentError: if the prompt lacks something that the planner needs.
        """
        grid = read_grid(view.task, view.actions)
        cell = _read_cell(view.state)
        if not grid.has(cell):
            raise ArgumentError(f"the position {cell} lies outside a map of {grid.rows} x {grid.columns}")
        values = self._choose_plan(grid, cell, (*view.here, *view.elsewhere), view.doubt_since)
        ties = np.flatnonzero(values >= values.max() - TIE)
        return Reply(grid.moves[ties[rng.integers(len(ties))]][0])

    def _choose_plan(
        self, grid: Grid, cell: Cell, recalled: tuple[Recollection, ...], doubt_since: int | None
    ) -> NDArray[np.float64]:
        """The values of all actions in this cell by the aspiration rule; shape (actions,)."""
        beliefs, enough = self._fit_beliefs(grid, recalled), SATISFIED * grid.highest
        plain = self._values(grid, cell, beliefs)
        if not self.aspiration or plain.max() >= enough:
            return plain
        values = self._values(grid, cell, _discard_low_scores(beliefs, enough))
        if doubt_since is not None:
            kept = tuple(item for item in recalled if item.last >= doubt_since or not _is_unrewarded(item, enough))
            reopened = self._values(grid, cell, _discard_low_scores(self._fit_beliefs(grid, kept), enough))
            if reopened.max() > GAIN * values.max():
                values = reopened
        return values if values.max() > 0 else self._drop_obstacles(grid, cell, recalled, enough)

    def _drop_obstacles(
        self, grid: Grid, cell: Cell, recalled: tuple[Recollection, ...], enough: float
    ) -> NDArray[np.float64]:
        """The values without the fewest records of obstacles whose removal makes some plan reach a score.

        The task states that the destination is reachable: if memory excludes all paths, memory is wrong.
        """
        obstacles = [item for item in recalled if _is_unrewarded(item, enough) or _deviates(item, grid)]
        obstacles.sort(key=lambda item: (item.n, item.last, item.state, item.action, item.outcome))

        def without(number: int) -> NDArray[np.float64]:
            dropped = set(obstacles[:number])
            return self._values(grid, cell, self._fit_beliefs(grid, [one for one in recalled if one not in dropped]))

        fewest = bisect_left(range(len(obstacles)), True, key=lambda number: bool(without(number).max() > 0))
        return without(fewest)

    def _values(self, grid: Grid, cell: Cell, beliefs: Beliefs) -> NDArray[np.float64]:
        prior = self.prior if self.conflict == "frequency" else 0.0
        values: NDArray[np.float64] = action_values(grid, beliefs, self.risk, prior, self.conflict == "max")[cell]
        return values

    def _fit_beliefs(self, grid: Grid, recalled: Iterable[Recollection]) -> Beliefs:
        """Beliefs about moves and tiles from records, conflicts settled."""
        sightings: dict[tuple[Cell, str], Sightings[BelievedOutcome]] = {}
        read = _make_reader(grid)
        for item in recalled:
            reading = read(item)
            if reading is not None:
                key, outcome = reading
                add_sighting(sightings.setdefault(key, {}), outcome, item.support, item.last)
        moves: dict[tuple[Cell, str], tuple[tuple[BelievedOutcome, float], ...]] = {}
        tiles: dict[Cell, tuple[int, BelievedOutcome]] = {}
        safe = {cell for cell, _ in sightings}
        for key, seen in sightings.items():
            if self.conflict == "frequency":  # counts instead of shares
                outcomes = tuple((outcome, n) for outcome, (n, _) in seen.items())
            else:
                outcomes = tuple(settle_all(seen, self.conflict))
            moves[key] = outcomes
            for outcome, _ in outcomes:
                if not outcome.ended:
                    safe.add(outcome.cell)
                known = tiles.get(outcome.cell)
                belief = (seen[outcome][1], outcome)
                if known is None or belief > known:
                    tiles[outcome.cell] = belief
        return Beliefs(
            frozenset(moves.items()),
            frozenset((cell, outcome) for cell, (_, outcome) in tiles.items()) if self.generalise else frozenset(),
            frozenset(safe),
        )


def _is_unrewarded(item: Recollection, enough: float) -> bool:
    """Whether the episode ended with a score below `enough`."""
    return item.outcome.ended and item.outcome.score < enough


def _deviates(item: Recollection, grid: Grid) -> bool:
    """Whether the move led to another cell than the intended one."""
    reading = _make_reader(grid)(item)
    if reading is None:
        return False
    (cell, action), outcome = reading
    move = dict(grid.moves)[action]
    return move is not None and outcome.cell != grid.intended(cell, move)


def _discard_low_scores(beliefs: Beliefs, enough: float) -> Beliefs:
    """The same beliefs with scores below `enough` replaced by 0."""

    def discard(outcome: BelievedOutcome) -> BelievedOutcome:
        return outcome._replace(score=0.0) if outcome.score < enough else outcome

    return beliefs._replace(
        moves=frozenset(
            (key, tuple((discard(outcome), n) for outcome, n in outcomes)) for key, outcomes in beliefs.moves
        ),
        tiles=frozenset((cell, discard(outcome)) for cell, outcome in beliefs.tiles),
    )


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


Reading = tuple[tuple[Cell, str], BelievedOutcome]


@lru_cache(maxsize=16)
def _make_reader(grid: Grid) -> Callable[[Recollection], Reading | None]:
    """A cached function that parses a recollection as a move and its outcome.

    It returns `None` for one outside of the grid or with another action.
    """
    actions = {name for name, _ in grid.moves}

    @lru_cache(maxsize=65536)
    def read(item: Recollection) -> Reading | None:
        cell, target, outcome = _read_cell(item.state), _read_cell(item.outcome.state), item.outcome
        if not grid.has(cell) or not grid.has(target) or item.action not in actions:
            return None
        return (cell, item.action), BelievedOutcome(target, outcome.score if outcome.ended else 0.0, outcome.ended)

    return read


@lru_cache(maxsize=4096)
def _read_cell(state: str) -> Cell:
    try:
        row, column = json.loads(state)["cur_pos"]
        return int(row), int(column)
    except (ValueError, TypeError, KeyError) as error:
        raise ArgumentError(f"a state of the lake should have `cur_pos`: [row, column]. Received {state!r}") from error


DIRECTIONS: dict[str, Cell] = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
_SIZE = re.compile(r"(\d+) rows? x (\d+) columns?", re.IGNORECASE)
_CELL = r"[\[(](\d+), ?(\d+)[\])]"
_DESTINATIONS = re.compile(rf"destinations?(?:\(s\))?: ({_CELL}(?:, ?{_CELL})*)", re.IGNORECASE)
_PAIR = re.compile(_CELL)
_MEANING = re.compile(r"(\S+)(?: =)? (left|down|right|up)\b", re.IGNORECASE)
_HIGHEST = re.compile(r"highest score(?: there)?(?: is)?:? (\d+(?:\.\d+)?)", re.IGNORECASE)


@lru_cache(maxsize=256)
def read_grid(task: str, actions: tuple[str, ...]) -> Grid:
    """Parse the task.

    Args:
        task: the task, in the form of the example of `FrozenLakePlanner`.
        actions: the admissible actions.

    Raises:
        ArgumentError: if the size, the destinations or the highest score are missing.
    """
    size = _find(_SIZE, task, "map size")
    places = _find(_DESTINATIONS, task, "destinations")
    highest = _find(_HIGHEST, task, "highest score there is")
    meanings = {name: DIRECTIONS[word.lower()] for name, word in _MEANING.findall(task)}
    return Grid(
        int(size[1]),
        int(size[2]),
        tuple((int(row), int(column)) for row, column in _PAIR.findall(places[1])),
        tuple((action, meanings.get(action)) for action in actions),
        float(highest[1]),
    )


def _find(pattern: re.Pattern[str], task: str, what: str) -> re.Match[str]:
    found = pattern.search(task)
    if found is None:
        raise ArgumentError(f"the task of a lake should name its {what}. Received {task!r}")
    return found

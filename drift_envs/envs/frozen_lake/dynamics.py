"""The frozen lake as mathematics: pure functions of map and knob values, without an environment.

States are numbered row by row, as in Gymnasium. A map is a tuple of rows; `H` is a hole, `G` a goal, `S` a start, every
other letter plain ice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from drift_envs.knobs import FrozenMapping

Map = tuple[str, ...]

TIE = 1e-9
"""Two action values closer than this count as equal."""


class Action(IntEnum):
    """The moves, numbered as in Gymnasium."""

    LEFT = 0
    DOWN = 1
    RIGHT = 2
    UP = 3


@dataclass(frozen=True)
class Transitions:
    """What can follow on each state and action.

    Args:
        next_state: states, shape `(S, 4, K)`.
        probability: their probabilities, shape `(S, 4, K)`; each row sums to 1.
        reward: the reward of each, shape `(S, 4, K)`.
        terminated: whether the episode ends with it, shape `(S, 4, K)`.
    """

    next_state: np.ndarray
    probability: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray

    def matrix(self) -> np.ndarray:
        """The probabilities as a dense array of shape `(S, 4, S)`."""
        states, actions, _ = self.next_state.shape
        dense = np.zeros((states, actions, states))
        rows, columns, _ = np.indices(self.next_state.shape)
        np.add.at(dense, (rows, columns, self.next_state), self.probability)
        return dense


@lru_cache(maxsize=64)
def moves(rows: int, columns: int) -> tuple[tuple[int, int, int, int], ...]:
    """Where each move leads; a move over the edge leads nowhere.

    Args:
        rows: rows of the lake.
        columns: columns of the lake.

    Returns:
        For every state the four states that left, down, right and up lead to.

    Example:
        >>> moves(2, 2)[0]
        (0, 2, 1, 0)
    """
    return tuple(
        (
            row * columns + max(column - 1, 0),
            min(row + 1, rows - 1) * columns + column,
            row * columns + min(column + 1, columns - 1),
            max(row - 1, 0) * columns + column,
        )
        for row in range(rows)
        for column in range(columns)
    )


def tiles(lake: Sequence[str]) -> str:
    """All letters of the map in the order of the states."""
    return "".join(lake)


def tile_rewards(lake: Map, goal_rewards: Mapping[str, float], reward_schedule: Sequence[float]) -> list[float]:
    """The reward of an arrival at each tile.

    Args:
        lake: the map.
        goal_rewards: rewards of single goals by `"row,column"`.
        reward_schedule: rewards of other goals, of holes and of plain ice.

    Example:
        >>> tile_rewards(("SHG", "FFG"), {"1,2": 0.5}, (1, 0, 0))
        [0, 0, 1, 0, 0, 0.5]
    """
    goal, hole, ice = reward_schedule
    rewards = [goal if letter == "G" else hole if letter == "H" else ice for letter in tiles(lake)]
    for place, reward in goal_rewards.items():
        row, column = (int(part) for part in place.split(","))
        rewards[row * len(lake[0]) + column] = reward
    return rewards


def false_targets(lake: Map, state: int, action: int) -> tuple[int, ...]:
    """Where a false response carries the agent: the free neighbours that the move does not lead to.

    Holes and goals are left out, so that a false response neither ends an episode nor pays; when
    no tile is left, there is no false response.

    Args:
        lake: the map.
        state: where the agent stands.
        action: the move that it chose.
    """
    letters = tiles(lake)
    around = moves(len(lake), len(lake[0]))[state]
    return tuple(
        sorted({tile for tile in around if tile != state and tile != around[action] and letters[tile] not in "GH"})
    )


def transitions(
    lake: Map,
    *,
    slip: float = 0.0,
    goal_rewards: Mapping[str, float] | None = None,
    transient: float = 0.0,
    reward_schedule: Sequence[float] = (1, 0, 0),
) -> Transitions:
    """The exact transition arrays of a lake.

    Args:
        lake: the map.
        slip: probability of not moving as intended, shared equally by the two sideways moves.
        goal_rewards: rewards of single goals by `"row,column"`; the others pay `reward_schedule[0]`.
        transient: probability that a move carries the agent to one of `false_targets`.
        reward_schedule: rewards of goal, hole and plain ice, as in Gymnasium.

    Returns:
        Arrays with `K = 3` outcomes (the sideways move before, the move itself, the sideways move
        after), or `K = 6` with `transient`.

    Example:
        >>> lake = transitions(("SFG",), slip=0.2)
        >>> lake.next_state[1, Action.RIGHT].tolist(), lake.probability[1, Action.RIGHT].tolist()
        ([1, 2, 1], [0.1, 0.8, 0.1])
    """
    letters = tiles(lake)
    around = np.array(moves(len(lake), len(lake[0])))
    states = len(letters)
    own = np.array(tile_rewards(lake, goal_rewards or {}, reward_schedule), float)
    ends = np.array([letter in "GH" for letter in letters])

    width = 6 if transient else 3
    next_state = np.zeros((states, 4, width), dtype=np.int64)
    probability = np.zeros((states, 4, width))
    for action in range(4):
        for outcome, move in enumerate(((action - 1) % 4, action, (action + 1) % 4)):
            next_state[:, action, outcome] = around[:, move]
            probability[:, action, outcome] = 1.0 - slip if move == action else slip / 2
    if transient:
        for state in range(states):
            for action in range(4):
                targets = false_targets(lake, state, action)
                if targets:
                    probability[state, action, :3] *= 1.0 - transient
                    next_state[state, action, 3 : 3 + len(targets)] = targets
                    probability[state, action, 3 : 3 + len(targets)] = transient / len(targets)
    reward = own[next_state]
    terminated = ends[next_state]
    # An agent on a hole or a goal stays there: the next step ends the episode and pays nothing.
    stuck = np.flatnonzero(ends)
    next_state[stuck] = stuck[:, None, None]
    probability[stuck] = 0.0
    probability[stuck, :, 1] = 1.0
    reward[stuck] = 0.0
    terminated[stuck] = True
    return Transitions(next_state, probability, reward, terminated)


def distances(lake: Map, sources: Sequence[int] | None = None) -> list[int]:
    """How many moves it takes from the start to every tile when the ice does not slip.

    Args:
        lake: the map.
        sources: the states to start from; the map's start tiles by default.

    Returns:
        One number a state, -1 where no path leads. Holes are unreachable, and no path leads on
        from a goal.

    Example:
        >>> distances(("SFH", "FHF", "FFG"))
        [0, 1, -1, 1, -1, -1, 2, 3, 4]
    """
    letters = tiles(lake)
    around = moves(len(lake), len(lake[0]))
    front = [state for state, letter in enumerate(letters) if letter == "S"] if sources is None else list(sources)
    found = [-1] * len(letters)
    for state in front:
        found[state] = 0
    while front:
        beyond = []
        for state in front:
            if letters[state] in "GH":
                continue
            for tile in around[state]:
                if found[tile] < 0 and letters[tile] != "H":
                    found[tile] = found[state] + 1
                    beyond.append(tile)
        front = beyond
    return found


def shortest_path(lake: Map) -> int | None:
    """The length of the shortest way from the start to the nearest goal, or `None` when there is none.

    Args:
        lake: the map.
    """
    pairs = zip(tiles(lake), distances(lake), strict=True)
    return min((length for letter, length in pairs if letter == "G" and length >= 0), default=None)


def share_of_open_paths(old: Map, new: Map) -> float:
    """The share of the shortest paths of the old map to its nearest goal that are walkable on the new one.

    Args:
        old: a solvable map.
        new: a map of the same size.

    Returns:
        In [0, 1]; 0 if the old map has no path.

    Example:
        >>> share_of_open_paths(("SFF", "FHF", "FFG"), ("SFF", "HFF", "FFG"))
        0.5
    """
    length = shortest_path(old)
    if length is None:
        return 0.0
    old_letters, new_letters = tiles(old), tiles(new)
    around = moves(len(old), len(old[0]))

    def count(closed: set[int]) -> int:
        walks = {state: 1 for state, letter in enumerate(old_letters) if letter == "S" and state not in closed}
        for _ in range(length):  # every walk of that length which ends on a goal is a shortest path
            following: dict[int, int] = {}
            for state, ways in walks.items():
                for tile in set(around[state]) - closed:
                    following[tile] = following.get(tile, 0) + ways
            walks = following
        return sum(ways for state, ways in walks.items() if old_letters[state] == "G")

    holes = {state for state, letter in enumerate(old_letters) if letter == "H"}
    changed = {
        state
        for state, letter in enumerate(new_letters)
        if letter == "H" or (letter == "S") != (old_letters[state] == "S")
    }
    changed |= {state for state, letter in enumerate(old_letters) if letter == "G" and new_letters[state] != "G"}
    return count(holes | changed) / count(holes)


def breaks_shortest_paths(old: Map, new: Map) -> bool:
    """Whether no shortest path of the old map to its nearest goal is walkable on the new one.

    Args:
        old: a solvable map.
        new: a map of the same size.

    Example:
        >>> breaks_shortest_paths(("SFF", "FHF", "FFG"), ("SFF", "HFF", "FFG"))
        False
        >>> breaks_shortest_paths(("SFF", "FHF", "FFG"), ("SHF", "FFF", "FHG"))
        True
    """
    length = shortest_path(old)
    if length is None:
        return False
    old_letters, new_letters = tiles(old), tiles(new)
    around = moves(len(old), len(old[0]))
    whole = {state for state, letter in enumerate(old_letters) if letter == "S" and new_letters[state] == "S"}
    for _ in range(length):  # every walk of that length which ends on a goal is a shortest path
        whole = {
            tile for state in whole for tile in around[state] if old_letters[tile] != "H" and new_letters[tile] != "H"
        }
    return not any(old_letters[state] == "G" and new_letters[state] == "G" for state in whole)


def horizon_values(model: Transitions, horizon: int, allowed: np.ndarray | None = None) -> np.ndarray:
    """The best expected sum of rewards within a number of steps, by exact backward induction.

    Args:
        model: the lake.
        horizon: how many steps an episode may have.
        allowed: which actions a policy may take, booleans of shape `(S, 4)`; all by default. With
            the best actions of another lake this is the best that any of its optimal policies
            reaches here.

    Returns:
        Values of shape `(horizon + 1, S)`; row `n` with `n` steps left.

    Example:
        >>> horizon_values(transitions(("SFG",)), horizon=3)[:, 0].tolist()
        [0.0, 0.0, 1.0, 1.0]
    """
    values = np.zeros((horizon + 1, model.next_state.shape[0]))
    paid = (model.probability * model.reward).sum(axis=2)
    on = model.probability * ~model.terminated
    for left in range(1, horizon + 1):
        action_values = paid + (on * values[left - 1][model.next_state]).sum(axis=2)
        if allowed is not None:
            action_values = np.where(allowed, action_values, -np.inf)
        values[left] = action_values.max(axis=1)
    return values


def discounted_values(model: Transitions, discount: float = 0.99) -> tuple[np.ndarray, np.ndarray]:
    """Values and action values of the discounted lake by value iteration, until no value changes by more than 1e-12.

    Args:
        model: the lake.
        discount: below 1, so that of two ways to the same goal the shorter one is better.

    Returns:
        Values of shape `(S,)` and action values of shape `(S, 4)`.

    Example:
        >>> values, action_values = discounted_values(transitions(("SFG",)), discount=0.5)
        >>> values.tolist()
        [0.5, 1.0, 0.0]
    """
    paid = (model.probability * model.reward).sum(axis=2)
    on = discount * model.probability * ~model.terminated
    values = np.zeros(model.next_state.shape[0])
    while True:
        action_values = paid + (on * values[model.next_state]).sum(axis=2)
        better = action_values.max(axis=1)
        if np.abs(better - values).max() <= 1e-12:
            return better, action_values
        values = better


def greedy_actions(action_values: np.ndarray) -> np.ndarray:
    """Every action that is best, ties included: `TIE` is how far below the best an action may lie.

    Args:
        action_values: shape `(S, 4)`.

    Returns:
        Booleans of shape `(S, 4)`.
    """
    best: np.ndarray = action_values >= action_values.max(axis=1, keepdims=True) - TIE
    return best


Outcome = tuple[int, float, bool]
"""Next state, reward, whether the episode ends."""


class LakeTables(NamedTuple):
    """What follows on each state and action of one map.

    Args:
        outcomes: for every state, by action, the outcomes of the sideways move before, the move
            itself and the sideways move after.
        ends: the states from which no move leads on.
        starts: the start states, with the running sum of their probabilities.
    """

    outcomes: tuple[dict[int, tuple[Outcome, Outcome, Outcome]], ...]
    ends: frozenset[int]
    starts: tuple[tuple[int, float], ...]


@lru_cache(maxsize=256)
def lake_tables(lake: Map, goal_rewards: FrozenMapping, reward_schedule: tuple[float, float, float]) -> LakeTables:
    """The tables of a map, built once a value and shared by all environments.

    Args:
        lake: the map.
        goal_rewards: rewards of single goals.
        reward_schedule: rewards of goal, hole and plain ice.
    """
    letters = tiles(lake)
    around = moves(len(lake), len(lake[0]))
    rewards = tile_rewards(lake, goal_rewards, reward_schedule)
    arrivals: list[Outcome] = [(state, rewards[state], letter in "GH") for state, letter in enumerate(letters)]
    outcomes = []
    for state, letter in enumerate(letters):
        if letter in "GH":
            # Gymnasium's rule: the agent stays, the reward is 0, and the episode ends.
            stay: Outcome = (state, 0, True)
            outcomes.append(dict.fromkeys(range(4), (stay, stay, stay)))
        else:
            reached = [arrivals[tile] for tile in around[state]]
            outcomes.append({a: (reached[(a - 1) % 4], reached[a], reached[(a + 1) % 4]) for a in range(4)})
    starts = [state for state, letter in enumerate(letters) if letter == "S"]
    shares = np.zeros(len(letters))
    shares[starts] = 1.0
    shares /= shares.sum()
    sums = np.cumsum(shares)
    ends = frozenset(state for state, letter in enumerate(letters) if letter in "GH")
    return LakeTables(tuple(outcomes), ends, tuple((state, float(sums[state])) for state in starts))

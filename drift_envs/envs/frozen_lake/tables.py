"""What follows on each state and action of a map, as plain Python, for `step`.

* `Outcome` - next state, reward, whether the episode ends
* `LakeTables` - the outcomes, the ends and the starts of one map
* `lake_tables` - builds them, once a value
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from drift_envs.envs.frozen_lake.model import Map, moves, tiles
from drift_envs.knobs import FrozenMapping

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
    columns = len(lake[0])
    letters = tiles(lake)
    around = moves(len(lake), columns)
    paid = {"G": reward_schedule[0], "H": reward_schedule[1]}
    rewards = [paid.get(letter, reward_schedule[2]) for letter in letters]
    for place, reward in goal_rewards.items():
        row, column = (int(part) for part in place.split(","))
        rewards[row * columns + column] = reward
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

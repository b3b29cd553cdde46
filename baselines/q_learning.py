"""Tabular Q-learning, on environments whose observations are indices.

Watkins and Dayan 1992, doi:10.1007/BF00992698; Sutton and Barto 2018, section 6.5. One table for all lanes; where
several lanes are on the same tile and choose the same action, the mean of their targets counts. Departures: a constant
rate and constant exploration, since a lifetime has no known end, and values that start high, so that untried actions
are tried.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from baselines import common
from baselines.common import Lanes
from baselines.environments import LANES, BoardEnv

DISCOUNT = 0.95


class QSettings(NamedTuple):
    """What is tuned.

    Args:
        rate: how far a value moves to the target.
        explore: the probability of a random action.
        hope: the values at the start.
    """

    rate: Any = 0.3
    explore: Any = 0.05
    hope: Any = 1.0


class QState(NamedTuple):
    """The learner: the value of each action on each tile, `(tiles, actions)`."""

    values: Any


def init(env: BoardEnv, settings: QSettings, key: Any) -> QState:
    """See `common.Learner`."""
    return QState(jnp.full((env.size, env.actions), settings.hope))


def play_round(
    env: BoardEnv, settings: QSettings, state: QState, lanes: Lanes, params: Any, told: Any, facts: Any, key: Any
) -> tuple[QState, Lanes, Any]:
    """See `common.Learner`; it learns from each step."""

    def move(carry: tuple[Any, Lanes], key: Any) -> tuple[tuple[Any, Lanes], Any]:
        values, lanes = carry
        explore, choose, ties, step = jax.random.split(key, 4)
        guess = 1e-6 * jax.random.uniform(ties, (LANES, env.actions))
        best = (values[lanes.observation] + guess).argmax(-1)
        other = jax.random.randint(choose, (LANES,), 0, env.actions)
        action = jnp.where(jax.random.uniform(explore, (LANES,)) < settings.explore, other, best)
        lanes, seen = common.act(env, params, lanes, step, action)
        place = seen.observation, action
        goal = seen.reward + DISCOUNT * (1 - seen.terminated) * values[seen.following].max(-1)
        count = jnp.zeros_like(values).at[place].add(1.0)
        total = jnp.zeros_like(values).at[place].add(goal - values[place])
        return (values + settings.rate * total / jnp.maximum(count, 1.0), lanes), seen

    keys = jax.random.split(key, env.ticks)
    (values, lanes), seen = jax.lax.scan(move, (state.values, lanes), keys)
    return QState(values), lanes, common.round_score(env, seen)

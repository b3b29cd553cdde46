"""DQN with a long or a short replay.

Deep Q-learning (Mnih et al. 2015, doi:10.1038/nature14236) with double estimates (van Hasselt et al. 2016,
arXiv:1509.06461), after CleanRL's `dqn.py`: two hidden layers of rectified units, the Huber loss, uniform replay. How
many rounds the replay holds is data, so that long and short run in one compilation: old phases stay in a long replay
after the drift. Departures: exploration does not fall, since a lifetime has no known end; it learns after each
round, `STEPS` batches, instead of every few steps; the target network follows by a running mean.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from baselines import common
from baselines.common import Lanes, Weights
from baselines.environments import LANES, BoardEnv

WIDTH = 32
LONG, SHORT = 200, 10
"""Rounds of a long and of a short replay."""
STEPS, BATCH = 16, 64
DISCOUNT = 0.99


class DQNSettings(NamedTuple):
    """What is tuned, and the length of the replay.

    Args:
        rate: the step size of Adam.
        explore: the probability of a random action.
        follow: how far the target network moves with each gradient step.
        kept: the rounds that the replay holds, at most `LONG`.
    """

    rate: Any = 1e-3
    explore: Any = 0.05
    follow: Any = 0.01
    kept: Any = float(LONG)


class Replay(NamedTuple):
    """Transitions, each of shape `(LONG, ticks * lanes, ...)`, and the number of rounds so far."""

    observation: Any
    action: Any
    reward: Any
    terminated: Any
    following: Any
    rounds: Any


class DQNState(NamedTuple):
    """The learner between two rounds: weights, those of the target network, Adam's moments, the replay."""

    weights: Weights
    target: Weights
    moments: Any
    replay: Replay


def init(env: BoardEnv, settings: DQNSettings, key: Any) -> DQNState:
    """See `common.Learner`."""
    weights = common.make_mlp(key, (env.size, WIDTH, WIDTH, env.actions), 0.1)
    shape = (LONG, env.ticks * LANES)
    numbers = jnp.zeros(shape)
    seen = jnp.zeros(shape, jnp.int32) if env.tabular else jnp.zeros((*shape, env.size))
    replay = Replay(seen, jnp.zeros(shape, jnp.int32), numbers, numbers, seen, jnp.int32(0))
    return DQNState(weights, weights, common.ADAM.init(weights), replay)


def values(weights: Weights, inputs: Any) -> Any:
    """The value of each action."""
    return common.mlp(weights, inputs, jax.nn.relu)[0]


def loss_of(env: BoardEnv, weights: Weights, target: Weights, part: Replay) -> Any:
    """The Huber loss of double Q-learning."""
    following = env.inputs(part.following)
    best = values(weights, following).argmax(-1)
    later = jnp.take_along_axis(values(target, following), best[:, None], -1)[:, 0]
    goal = part.reward + DISCOUNT * (1 - part.terminated) * jax.lax.stop_gradient(later)
    found = jnp.take_along_axis(values(weights, env.inputs(part.observation)), part.action[:, None], -1)[:, 0]
    return optax.losses.huber_loss(found, goal).mean()


def learn(env: BoardEnv, settings: DQNSettings, state: DQNState, key: Any) -> DQNState:
    """Gradient steps on batches from the replay."""
    size = env.ticks * LANES
    held = jnp.minimum(state.replay.rounds, settings.kept.astype(jnp.int32)) * size
    flat = jax.tree.map(lambda each: each.reshape(-1, *each.shape[2:]), state.replay._replace(rounds=None))

    def improve(carry: Any, key: Any) -> tuple[Any, None]:
        weights, target, moments = carry
        chosen = jax.random.randint(key, (BATCH,), 0, held)
        part = jax.tree.map(lambda each: each[chosen], flat)
        gradient = jax.grad(loss_of, argnums=1)(env, weights, target, part)
        weights, moments = common.adam(weights, moments, gradient, settings.rate)
        target = jax.tree.map(lambda old, new: old + settings.follow * (new - old), target, weights)
        return (weights, target, moments), None

    start = (state.weights, state.target, state.moments)
    weights, target, moments = jax.lax.scan(improve, start, jax.random.split(key, STEPS))[0]
    return DQNState(weights, target, moments, state.replay)


def play_round(
    env: BoardEnv, settings: DQNSettings, state: DQNState, lanes: Lanes, params: Any, told: Any, facts: Any, key: Any
) -> tuple[DQNState, Lanes, Any]:
    """See `common.Learner`."""
    rolling, sampling = jax.random.split(key)

    def move(lanes: Lanes, key: Any) -> tuple[Lanes, Any]:
        explore, choose, step = jax.random.split(key, 3)
        best = values(state.weights, env.inputs(lanes.observation)).argmax(-1)
        other = jax.random.randint(choose, (LANES,), 0, env.actions)
        action = jnp.where(jax.random.uniform(explore, (LANES,)) < settings.explore, other, best)
        return common.act(env, params, lanes, step, action)

    lanes, seen = jax.lax.scan(move, lanes, jax.random.split(rolling, env.ticks))
    replay = state.replay
    place = replay.rounds % settings.kept.astype(jnp.int32)
    found = (seen.observation, seen.action, seen.reward * env.reward_scale, seen.terminated, seen.following)
    kept: list[Any] = [
        old.at[place].set(new.reshape(-1, *new.shape[2:]).astype(old.dtype))
        for old, new in zip(replay[:-1], found, strict=True)
    ]
    state = state._replace(replay=Replay._make([*kept, replay.rounds + 1]))
    return learn(env, settings, state, sampling), lanes, common.round_score(env, seen)

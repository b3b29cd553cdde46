"""Recurrent PPO trained within the lifetime: a memory of actions and rewards that never ends with an episode.

PPO (Schulman et al. 2017, arXiv:1707.06347) with a gated recurrent unit between a linear layer and the two heads, which
also gets the last action, the last reward and whether an episode has just begun. As in CleanRL's `ppo_atari_lstm.py`,
gradients go back through a round from the state at its start, and minibatches are of lanes. Departures from it: a gated
recurrent unit instead of an LSTM, no convolution, and the state is not reset where an episode ends, since what happened
before says in which phase the environment is.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from baselines import common
from baselines.common import Lanes, Weights
from baselines.environments import LANES, BoardEnv

WIDTH = 32
DISCOUNT, DECAY = 0.99, 0.95
EPOCHS, PARTS = 4, 4


class RecurrentSettings(NamedTuple):
    """What is tuned.

    Args:
        rate: the step size of Adam.
        bonus: the factor of the entropy.
    """

    rate: Any = 1e-3
    bonus: Any = 0.01


class RecurrentState(NamedTuple):
    """The learner between two rounds: weights, Adam's moments, the recurrent state of each lane."""

    weights: Weights
    moments: Any
    hidden: Any


class RecurrentRollout(NamedTuple):
    """A rollout, each of shape `(T, lanes, ...)`, but `start`, the recurrent states before it, `(lanes, width)`."""

    inputs: Any
    action: Any
    chance: Any
    value: Any
    reward: Any
    done: Any
    start: Any


def make_weights(env: BoardEnv, key: Any) -> Weights:
    """Fresh weights."""
    entry, unit, actor, critic = jax.random.split(key, 4)
    return {
        "in": common.make_layer(entry, env.size + env.actions + 2, WIDTH, 1.4),
        "gru": common.make_gru(unit, WIDTH, WIDTH),
        "actor": common.make_layer(actor, WIDTH, env.actions, 0.01),
        "critic": common.make_layer(critic, WIDTH, 1),
    }


def make_inputs(env: BoardEnv, lanes: Lanes) -> Any:
    """Observation, last action, last reward and whether an episode has just begun."""
    last = jax.nn.one_hot(lanes.action, env.actions)
    rest = jnp.stack([lanes.reward * env.reward_scale, lanes.done], -1)
    return jnp.concatenate([env.inputs(lanes.observation), last, rest], -1)


def predict(weights: Weights, hidden: Any, inputs: Any) -> tuple[Any, tuple[Any, Any]]:
    """The next recurrent state; logits and value."""
    entered = jnp.tanh(common.linear(weights["in"], inputs))
    hidden = common.gru(weights["gru"], hidden, entered)
    return hidden, (common.linear(weights["actor"], hidden), common.linear(weights["critic"], hidden)[..., 0])


def loss_of(weights: Weights, part: RecurrentRollout, advantage: Any, bonus: Any) -> Any:
    """The loss of PPO, with gradients back to the start of the rollout."""
    logits, value = jax.lax.scan(partial(predict, weights), part.start, part.inputs)[1]
    return common.clipped_loss(logits, value, (part.action, part.chance, part.value), advantage, bonus)


def learn(
    weights: Weights, moments: Any, batch: RecurrentRollout, advantage: Any, settings: RecurrentSettings, key: Any
) -> Any:
    """Some epochs of gradient steps on minibatches of lanes: weights and moments."""

    def improve(carry: Any, chosen: Any) -> tuple[Any, None]:
        weights, moments = carry
        part = jax.tree.map(lambda each: each[:, chosen], batch._replace(start=None))
        part = part._replace(start=batch.start[chosen])
        gradient = jax.grad(loss_of)(weights, part, advantage[:, chosen], settings.bonus)
        return common.adam(weights, moments, gradient, settings.rate), None

    lanes = batch.value.shape[1]
    orders = jax.vmap(partial(jax.random.permutation, x=lanes))(jax.random.split(key, EPOCHS))
    return jax.lax.scan(improve, (weights, moments), orders.reshape(EPOCHS * PARTS, -1))[0]


def init(env: BoardEnv, settings: RecurrentSettings, key: Any) -> RecurrentState:
    """See `common.Learner`."""
    weights = make_weights(env, key)
    return RecurrentState(weights, common.ADAM.init(weights), jnp.zeros((LANES, WIDTH)))


def play_round(
    env: BoardEnv,
    settings: RecurrentSettings,
    state: RecurrentState,
    lanes: Lanes,
    params: Any,
    told: Any,
    facts: Any,
    key: Any,
) -> tuple[RecurrentState, Lanes, Any]:
    """See `common.Learner`."""
    rolling, shuffling = jax.random.split(key)

    def move(carry: tuple[Lanes, Any], key: Any) -> tuple[tuple[Lanes, Any], Any]:
        lanes, hidden = carry
        choose, step = jax.random.split(key)
        inputs = make_inputs(env, lanes)
        hidden, (logits, value) = predict(state.weights, hidden, inputs)
        action = jax.random.categorical(choose, logits)
        lanes, seen = common.act(env, params, lanes, step, action)
        return (lanes, hidden), (seen, inputs, common.chances(logits, action), value)

    start = (lanes, state.hidden)
    (lanes, hidden), (seen, inputs, chance, value) = jax.lax.scan(move, start, jax.random.split(rolling, env.ticks))
    last = predict(state.weights, hidden, make_inputs(env, lanes))[1][1]
    reward = seen.reward * env.reward_scale
    advantage = common.advantages(reward, value, seen.done, last, DISCOUNT, DECAY)
    batch = RecurrentRollout(inputs, seen.action, chance, value, reward, seen.done, state.hidden)
    weights, moments = learn(state.weights, state.moments, batch, advantage, settings, shuffling)
    return RecurrentState(weights, moments, hidden), lanes, common.round_score(env, seen)

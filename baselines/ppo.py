"""PPO within a lifetime that drifts, and as data the treatments that are said to help.

Proximal Policy Optimization (Schulman et al. 2017, arXiv:1707.06347) with the details of CleanRL's `ppo.py` (Huang et
al. 2022): a policy and a critic of two hidden layers of tanh, generalized advantages, the gradient's norm cut at 0.5.
Departures from CleanRL: weights are drawn from a normal distribution instead of orthogonal matrices, the rate stays
constant, since a lifetime has no known end, and the value loss is not clipped. As there, a truncated episode counts as
terminated.

The variants are values of `PPOSettings`, so that all run in one compilation:

* restarted at each drift (privileged), or when a detector fires on its own scores (`detectors`)
* given phase and knob values as inputs (privileged)
* `shrink_and_perturb`, L2 towards the start (`regenerative`), `continual_backprop`
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from baselines import common
from baselines.common import Lanes, Weights
from baselines.continual_backprop import Units, make_units, replace_units
from baselines.detectors import Detector, make_detector, watch
from baselines.environments import LANES, BoardEnv
from baselines.regenerative import distance_to_start
from baselines.shrink_and_perturb import shrink_and_perturb

WIDTH, HIDDEN = 32, 2
DISCOUNT, DECAY = 0.99, 0.95
EPOCHS, PARTS = 4, 4


class PPOSettings(NamedTuple):
    """What is tuned, and which treatments apply; the defaults are plain PPO.

    Args:
        rate: the step size of Adam.
        bonus: the factor of the entropy.
        sees: 1 if the inputs have phase and knob values (privileged).
        told: 1 for a restart at each drift (privileged).
        page_hinkley: 1 for a restart when Page-Hinkley fires.
        adwin: 1 for a restart when ADWIN fires.
        tolerance: of Page-Hinkley.
        threshold: of Page-Hinkley.
        confidence: of ADWIN.
        shrink: of Shrink and Perturb.
        noise: of Shrink and Perturb.
        pull: the strength of L2 towards the start.
        replacement: the replacement rate of Continual Backprop, in units a unit and round.
    """

    rate: Any = 1e-3
    bonus: Any = 0.01
    sees: Any = 0.0
    told: Any = 0.0
    page_hinkley: Any = 0.0
    adwin: Any = 0.0
    tolerance: Any = 0.05
    threshold: Any = 1.0
    confidence: Any = 0.002
    shrink: Any = 1.0
    noise: Any = 0.0
    pull: Any = 0.0
    replacement: Any = 0.0


class PPOState(NamedTuple):
    """The learner between two rounds.

    Args:
        weights: of policy and critic.
        first: those at the start, or at the last restart.
        moments: of Adam.
        units: of the hidden layers of policy and critic.
        detector: both detectors.
    """

    weights: Weights
    first: Weights
    moments: Any
    units: dict[str, Units]
    detector: Detector


class Rollout(NamedTuple):
    """A rollout, or a part of one, flat: inputs, action, its log probability, value and advantage."""

    inputs: Any
    action: Any
    chance: Any
    value: Any
    advantage: Any


def make_weights(env: BoardEnv, key: Any) -> Weights:
    """Fresh weights for policy and critic."""
    actor, critic = jax.random.split(key)
    hidden = (env.size + env.facts_size, *(WIDTH,) * HIDDEN)
    return {
        "actor": common.make_mlp(actor, (*hidden, env.actions), 0.01),
        "critic": common.make_mlp(critic, (*hidden, 1), 1.0),
    }


def fresh_state(weights: Weights) -> PPOState:
    """The learner with these weights and nothing learned."""
    units = {name: make_units(HIDDEN, WIDTH) for name in weights}
    return PPOState(weights, weights, common.ADAM.init(weights), units, make_detector())


def init(env: BoardEnv, settings: PPOSettings, key: Any) -> PPOState:
    """See `common.Learner`."""
    return fresh_state(make_weights(env, key))


def predict(weights: Weights, inputs: Any) -> tuple[Any, Any]:
    """Logits and values."""
    return common.mlp(weights["actor"], inputs)[0], common.mlp(weights["critic"], inputs)[0][..., 0]


def roll_out(env: BoardEnv, weights: Weights, lanes: Lanes, params: Any, extra: Any, key: Any) -> tuple[Lanes, Any]:
    """Play a round: the lanes, and for each step what was seen and what the networks gave."""

    def see(observation: Any) -> Any:
        return jnp.concatenate([env.inputs(observation), jnp.broadcast_to(extra, (LANES, len(extra)))], -1)

    def move(lanes: Lanes, key: Any) -> tuple[Lanes, Any]:
        choose, step = jax.random.split(key)
        inputs = see(lanes.observation)
        logits, value = predict(weights, inputs)
        action = jax.random.categorical(choose, logits)
        lanes, seen = common.act(env, params, lanes, step, action)
        return lanes, (seen, inputs, common.chances(logits, action), value)

    lanes, found = jax.lax.scan(move, lanes, jax.random.split(key, env.ticks))
    return lanes, (*found, predict(weights, see(lanes.observation))[1])


def learn(settings: PPOSettings, state: PPOState, batch: Rollout, key: Any) -> tuple[Weights, Any]:
    """Some epochs of gradient steps: weights and moments."""

    def loss_of(weights: Weights, part: Rollout) -> Any:
        logits, value = predict(weights, part.inputs)
        own = common.clipped_loss(logits, value, (part.action, part.chance, part.value), part.advantage, settings.bonus)
        return own + settings.pull * distance_to_start(weights, state.first)

    def improve(carry: tuple[Weights, Any], chosen: Any) -> tuple[tuple[Weights, Any], None]:
        weights, moments = carry
        gradient = jax.grad(loss_of)(weights, jax.tree.map(lambda each: each[chosen], batch))
        return common.adam(weights, moments, gradient, settings.rate), None

    size = batch.value.shape[0]
    orders = jax.vmap(partial(jax.random.permutation, x=size))(jax.random.split(key, EPOCHS))
    return jax.lax.scan(improve, (state.weights, state.moments), orders.reshape(EPOCHS * PARTS, -1))[0]


def treat(settings: PPOSettings, state: PPOState, inputs: Any, fresh: Weights) -> PPOState:
    """Shrink and Perturb, and Continual Backprop; neither changes anything by default."""
    weights = shrink_and_perturb(state.weights, fresh, settings.shrink, settings.noise)
    moments, units = state.moments, {}
    trees = {"weights": dict(weights), "mu": dict(moments.mu), "nu": dict(moments.nu)}
    for name in weights:
        hidden = common.mlp(weights[name], inputs)[1]
        own = (weights[name], moments.mu[name], moments.nu[name])
        found, units[name] = replace_units(own, state.units[name], hidden, fresh[name], settings.replacement)
        for tree, value in zip(trees.values(), found, strict=True):
            tree[name] = value
    moments = moments._replace(mu=trees["mu"], nu=trees["nu"])
    return state._replace(weights=trees["weights"], moments=moments, units=units)


def play_round(
    env: BoardEnv, settings: PPOSettings, state: PPOState, lanes: Lanes, params: Any, told: Any, facts: Any, key: Any
) -> tuple[PPOState, Lanes, Any]:
    """See `common.Learner`."""
    rolling, shuffling, starting = jax.random.split(key, 3)
    fresh = make_weights(env, starting)
    state = common.select(told & (settings.told > 0), fresh_state(fresh), state)
    lanes, (seen, inputs, chance, value, last) = roll_out(
        env, state.weights, lanes, params, settings.sees * facts, rolling
    )
    advantage = common.advantages(seen.reward * env.reward_scale, value, seen.done, last, DISCOUNT, DECAY)
    batch = Rollout(inputs, seen.action, chance, value, advantage)
    flat = jax.tree.map(lambda each: each.reshape(-1, *each.shape[2:]), batch)
    weights, moments = learn(settings, state, flat, shuffling)
    state = treat(settings, state._replace(weights=weights, moments=moments), flat.inputs, fresh)
    score = common.round_score(env, seen)
    detector, falls, fallen = watch(state.detector, score, settings)
    fires = (falls & (settings.page_hinkley > 0)) | (fallen & (settings.adwin > 0))
    state = common.select(fires, fresh_state(fresh), state._replace(detector=detector))
    return state, lanes, score

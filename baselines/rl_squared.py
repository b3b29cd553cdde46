"""RL squared: recurrent PPO over many drifting lifetimes; in the lifetimes of the board its weights are fixed.

Duan et al. 2016, arXiv:1611.02779; Wang et al. 2016, arXiv:1611.05763. The network of `recurrent_ppo` is trained on
lifetimes that drift at random steps, with rewards of later episodes counted, so that noticing a drift and searching
can pay. (Where each step pays the same, returns end with the episode; otherwise all would be equal. A truncated one
goes on with the value of its last state: otherwise an episode's start would be as bad as its limit.) What it has
learned is a policy that adapts by its recurrent state alone. Training uses other seeds than the board. `both` tells the
two rows apart: trained with phases from both sides of the drift (of `BoardEnv.draw`), or of one side only, with phases
of the other side never seen. Departures from the papers: PPO instead of TRPO or A3C, a lifetime has no fixed number of
episodes, and the lifetimes of the board are much longer than those of the training.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from baselines import common, recurrent_ppo
from baselines.common import Lanes, Weights
from baselines.environments import LANES, BoardEnv, schedule_of
from baselines.recurrent_ppo import RecurrentRollout, make_inputs, predict

ROUNDS, PHASES = 8, 2
"""Length of a lifetime in training in rounds, and its phases."""
POOL, LIFETIMES = 1024, 256
"""Schedules that are drawn for a net, and lifetimes of an update."""
UPDATES, PIECE = 200, 10
DISCOUNT = 0.97
PARTS = 8


class MetaSettings(NamedTuple):
    """What is tuned.

    Args:
        rate: the step size of Adam at the start; it falls to a tenth.
        bonus: the factor of the entropy.
    """

    rate: Any = 2e-3
    bonus: Any = 0.02


class Net(NamedTuple):
    """The settings of a net that plays: its weights."""

    weights: Weights


class NetState(NamedTuple):
    """The recurrent state of each lane."""

    hidden: Any


def draw_schedules(env: BoardEnv, seed: int, both: bool, number: int = POOL) -> list[dict[str, Any]]:
    """Schedules to train on; the drift comes somewhere in the middle half of the lifetime."""
    rng = np.random.default_rng([seed, 0x212])
    ticks = ROUNDS * env.ticks
    drifts = rng.integers(ticks // 4, 3 * ticks // 4, number)
    return [schedule_of(env.draw(rng, PHASES, both), [0, int(tick)]) for tick in drifts]


def roll_out(env: BoardEnv, weights: Weights, params: Any, key: Any) -> tuple[RecurrentRollout, Any]:
    """Play a lifetime with each of the parameters, in one lane: the rollout, and the mean score of its episodes."""
    beginning, rolling = jax.random.split(key)
    lanes = common.begin(env, beginning, params, LIFETIMES)
    start = jnp.zeros((LIFETIMES, recurrent_ppo.WIDTH))

    def move(carry: tuple[Lanes, Any], key: Any) -> tuple[tuple[Lanes, Any], Any]:
        lanes, hidden = carry
        choose, step = jax.random.split(key)
        inputs = make_inputs(env, lanes)
        hidden, (logits, value) = predict(weights, hidden, inputs)
        action = jax.random.categorical(choose, logits)
        lanes, seen = common.act(env, params, lanes, step, action)
        return (lanes, hidden), (seen, inputs, common.chances(logits, action), value)

    found = jax.lax.scan(move, (lanes, start), jax.random.split(rolling, ROUNDS * env.ticks))[1]
    seen, inputs, chance, value = found
    reward = seen.reward * env.reward_scale
    if env.pays_each_step:  # a limit of steps is no end: what was expected stands for what would have come
        reward += DISCOUNT * (seen.done - seen.terminated) * value
    batch = RecurrentRollout(inputs, seen.action, chance, value, reward, seen.done, start)
    return batch, common.round_score(env, seen)


def update(env: BoardEnv, settings: MetaSettings, pool: Any, carry: Any, share: Any) -> tuple[Any, Any]:
    """Play some lifetimes and learn from them: weights, moments and key; the mean score of its episodes."""
    weights, moments, key = carry
    key, picking, rolling, shuffling = jax.random.split(key, 4)
    chosen = jax.random.choice(picking, POOL, (LIFETIMES,), replace=False)
    batch, score = roll_out(env, weights, jax.tree.map(lambda each: each[chosen], pool), rolling)
    ends = batch.done if env.pays_each_step else jnp.zeros_like(batch.done)
    last = jnp.zeros_like(batch.value[0])
    advantage = common.advantages(batch.reward, batch.value, ends, last, DISCOUNT, recurrent_ppo.DECAY)

    def improve(carry: Any, chosen: Any) -> tuple[Any, None]:
        weights, moments = carry
        part = jax.tree.map(lambda each: each[:, chosen], batch._replace(start=None))
        part = part._replace(start=batch.start[chosen])
        gradient = jax.grad(recurrent_ppo.loss_of)(weights, part, advantage[:, chosen], settings.bonus)
        return common.adam(weights, moments, gradient, settings.rate * (1 - 0.9 * share)), None

    parts = jax.random.permutation(shuffling, LIFETIMES).reshape(PARTS, -1)
    weights, moments = jax.lax.scan(improve, (weights, moments), parts)[0]
    return (weights, moments, key), score


@lru_cache
def _compiled(env: BoardEnv) -> Any:
    """The function that makes several updates; equal for all nets of an environment."""
    return jax.jit(
        lambda settings, pool, carry, shares: jax.lax.scan(partial(update, env, settings, pool), carry, shares)
    )


def train(
    env: BoardEnv,
    seed: int,
    both: bool,
    settings: MetaSettings | None = None,
    updates: int = UPDATES,
    report: Callable[[int, float], None] = lambda update, score: None,
) -> tuple[Weights, np.ndarray]:
    """Train a net.

    Args:
        env: the environment.
        seed: of weights, schedules and all that is random.
        both: whether lifetimes have phases of both sides of the drift.
        settings: see `MetaSettings`; by default its own.
        updates: how many.
        report: gets the number of updates and the mean score of episodes; return values are ignored.

    Returns:
        The weights, and the mean score of the episodes of each update.
    """
    settings = settings or MetaSettings()
    pool = env.compile(draw_schedules(env, seed, both))
    making, rest = jax.random.split(jax.random.fold_in(jax.random.key(seed), 0x212))
    weights = recurrent_ppo.make_weights(env, making)
    carry = (weights, common.ADAM.init(weights), rest)
    curve: list[float] = []
    for first in range(0, updates, PIECE):
        shares = jnp.arange(first, min(first + PIECE, updates)) / updates
        carry, scores = _compiled(env)(settings, pool, carry, shares)
        curve += np.asarray(scores).tolist()
        report(len(curve), curve[-1])
    return carry[0], np.array(curve)


def init(env: BoardEnv, settings: Net, key: Any) -> NetState:
    """See `common.Learner`."""
    return NetState(jnp.zeros((LANES, recurrent_ppo.WIDTH)))


def play_round(
    env: BoardEnv, settings: Net, state: NetState, lanes: Lanes, params: Any, told: Any, facts: Any, key: Any
) -> tuple[NetState, Lanes, Any]:
    """See `common.Learner`; nothing is learned."""

    def move(carry: tuple[Lanes, Any], key: Any) -> tuple[tuple[Lanes, Any], Any]:
        lanes, hidden = carry
        choose, step = jax.random.split(key)
        hidden, (logits, _) = predict(settings.weights, hidden, make_inputs(env, lanes))
        lanes, seen = common.act(env, params, lanes, step, jax.random.categorical(choose, logits))
        return (lanes, hidden), seen

    (lanes, hidden), seen = jax.lax.scan(move, (lanes, state.hidden), jax.random.split(key, env.ticks))
    return NetState(hidden), lanes, common.round_score(env, seen)

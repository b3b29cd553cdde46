"""What the learners share: stepping all lanes, small networks, estimates of advantages, Adam.

* `Lanes`, `begin`, `act` - the lanes of a lifetime between two steps
* `Seen` - what a step of all lanes gives to a learner
* `Learner`, `make_play` - a learner, and the compiled function that plays a piece of many lifetimes
* `make_mlp`, `mlp`, `make_gru`, `gru` - networks as plain arrays
* `advantages`, `chances`, `entropy`, `adam` - parts of policy gradient methods
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import optax

from baselines.environments import LANES, BoardEnv, Course

Weights = Any
"""A tree of arrays."""
PIECE = 50
"""Rounds that the compiled function plays in a call; the lengths of all regimes are multiples of it."""

# --- lanes


class Lanes(NamedTuple):
    """The lanes of a lifetime between two steps.

    Args:
        states: of the environment.
        observation: of each lane.
        returned: the rewards of the present episode so far.
        action: the last action.
        reward: the last reward.
        done: whether an episode has just begun.
    """

    states: Any
    observation: Any
    returned: Any
    action: Any
    reward: Any
    done: Any


class Seen(NamedTuple):
    """What a step of all lanes gives to a learner.

    Args:
        observation: before the step.
        action: chosen.
        reward: of the step.
        terminated: whether the episode terminated.
        done: whether it terminated or was truncated.
        following: the observation after the step; of the old episode where that has ended.
        ended: the return of the episode if it has ended, otherwise 0.
    """

    observation: Any
    action: Any
    reward: Any
    terminated: Any
    done: Any
    following: Any
    ended: Any


def begin(env: BoardEnv, key: Any, params: Any, number: int = LANES) -> Lanes:
    """The lanes at the start; with a batch of parameters, each lane has a lifetime of its own."""
    observation, states = env.functional.reset_batch(key, params, number)
    nothing = jnp.zeros(number)
    return Lanes(states, observation, nothing, jnp.zeros(number, jnp.int32), nothing, nothing + 1.0)


def act(env: BoardEnv, params: Any, lanes: Lanes, key: Any, action: Any) -> tuple[Lanes, Seen]:
    """Step in all lanes, see `begin`."""
    observation, states, reward, terminated, truncated, info = env.functional.step_batch(
        key, lanes.states, action, params
    )
    done = (terminated | truncated).astype(jnp.float32)
    reward = reward.astype(jnp.float32)
    returned = lanes.returned + reward
    seen = Seen(
        observation=lanes.observation,
        action=action,
        reward=reward,
        terminated=terminated.astype(jnp.float32),
        done=done,
        following=info["final_observation"],
        ended=done * returned,
    )
    return Lanes(states, observation, (1 - done) * returned, action, reward, done), seen


def round_score(env: BoardEnv, seen: Seen) -> Any:
    """The mean score of the episodes that ended in a round, NaN if none has."""
    count = seen.done.sum()
    scores = seen.done * env.score(seen.ended)
    return jnp.where(count > 0, scores.sum() / jnp.maximum(count, 1.0), jnp.nan)


class Learner(Protocol):
    """A learner: two pure functions. Everything that is tuned, or that tells variants apart, is in `settings`.

    It is given what any agent would see. `told` and `facts` are for privileged learners, which say so in `rows`.
    """

    def init(self, env: BoardEnv, settings: Any, key: Any) -> Any:
        """The learner's state at the start of a lifetime."""

    def play_round(
        self, env: BoardEnv, settings: Any, state: Any, lanes: Lanes, params: Any, told: Any, facts: Any, key: Any
    ) -> tuple[Any, Lanes, Any]:
        """Play a round and learn: state, lanes and the mean score of the episodes that ended."""


class Life(NamedTuple):
    """A lifetime between two rounds: the learner's state, the lanes, a key."""

    state: Any
    lanes: Lanes
    key: Any


def make_play(env: BoardEnv, learner: Learner) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The compiled functions that begin lifetimes and play pieces of them.

    Returns:
        `start(settings, course)` gives the lives; `play(settings, lives, params, told, facts)` gives the lives after
        as many rounds as `told` has, and the score of each round, shape `(N, rounds)`. `settings` have a leading
        dimension of N, too.
    """

    def start(settings: Any, params: Any, key: Any) -> Life:
        own, lanes, rest = jax.random.split(key, 3)
        return Life(learner.init(env, settings, own), begin(env, lanes, params), rest)

    def play(settings: Any, life: Life, params: Any, told: Any, facts: Any) -> tuple[Life, Any]:
        def move(life: Life, given: Any) -> tuple[Life, Any]:
            key, own = jax.random.split(life.key)
            begins, knobs = given
            state, lanes, score = learner.play_round(env, settings, life.state, life.lanes, params, begins, knobs, own)
            return Life(state, lanes, key), score

        return jax.lax.scan(move, life, (told, facts))

    starts, plays = jax.vmap(start), jax.vmap(play)
    return jax.jit(lambda settings, course: starts(settings, course.params, course.keys)), jax.jit(
        plays, donate_argnums=1
    )


def play_course(
    functions: tuple[Callable[..., Any], Callable[..., Any]],
    settings: Any,
    course: Course,
    report: Callable[[int], None] = lambda rounds: None,
) -> Any:
    """Play whole lifetimes.

    Args:
        functions: from `make_play`.
        settings: of the learner, with a leading dimension of N.
        course: N lifetimes.
        report: gets the number of rounds that were played; return values are ignored.

    Returns:
        The score of each round, shape `(N, R)`; NaN where no episode has ended.
    """
    start, play = functions
    lives, scores = start(settings, course), []
    rounds = course.told.shape[1]
    for first in range(0, rounds, PIECE):
        piece = slice(first, min(first + PIECE, rounds))
        lives, found = play(settings, lives, course.params, course.told[:, piece], course.facts[:, piece])
        scores.append(jax.device_get(found))
        report(piece.stop)
    return jnp.concatenate(scores, 1)


# --- networks


def make_layer(key: Any, rows: int, columns: int, scale: float = 1.0) -> Weights:
    """A linear layer with weights of the standard deviation `scale / sqrt(rows)`."""
    return {"w": scale / jnp.sqrt(rows) * jax.random.normal(key, (rows, columns)), "b": jnp.zeros(columns)}


def linear(layer: Weights, values: Any) -> Any:
    """A linear layer."""
    return values @ layer["w"] + layer["b"]


def make_mlp(key: Any, sizes: tuple[int, ...], last: float) -> list[Weights]:
    """A network of linear layers; `last` scales the weights of the last one."""
    keys = jax.random.split(key, len(sizes) - 1)
    scales = [1.4] * (len(sizes) - 2) + [last]
    return [
        make_layer(own, rows, columns, scale)
        for own, rows, columns, scale in zip(keys, sizes[:-1], sizes[1:], scales, strict=True)
    ]


def mlp(layers: list[Weights], values: Any, activation: Callable[[Any], Any] = jnp.tanh) -> tuple[Any, list[Any]]:
    """Outputs, and what the hidden layers give."""
    hidden = []
    for layer in layers[:-1]:
        values = activation(linear(layer, values))
        hidden.append(values)
    return linear(layers[-1], values), hidden


def make_gru(key: Any, inputs: int, width: int) -> Weights:
    """A gated recurrent unit (Cho et al. 2014, arXiv:1406.1078)."""
    gates, fresh = jax.random.split(key)
    return {"gates": make_layer(gates, inputs + width, 2 * width), "fresh": make_layer(fresh, inputs + width, width)}


def gru(weights: Weights, state: Any, inputs: Any) -> Any:
    """The next state of the unit."""
    gates = jax.nn.sigmoid(linear(weights["gates"], jnp.concatenate([inputs, state], -1)) + 1.0)
    keep, reset = jnp.split(gates, 2, -1)
    fresh = jnp.tanh(linear(weights["fresh"], jnp.concatenate([inputs, reset * state], -1)))
    return keep * state + (1 - keep) * fresh


def select(condition: Any, new: Any, old: Any) -> Any:
    """One of two trees."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


# --- policy gradients


def advantages(reward: Any, value: Any, done: Any, last: Any, discount: float, decay: Any) -> Any:
    """Generalized advantage estimates (Schulman et al. 2016, arXiv:1506.02438).

    Args:
        reward: of each step, `(T, lanes)`.
        value: of the observation before it, `(T, lanes)`.
        done: whether the episode ended with it, `(T, lanes)`; with zeros, later episodes count.
        last: the value after the last step, `(lanes,)`.
        discount: of what comes a step later.
        decay: the lambda.
    """

    def back(carry: Any, step: Any) -> tuple[Any, Any]:
        later, following = carry
        now = step[0] + discount * following * (1 - step[2]) - step[1]
        now = now + discount * decay * (1 - step[2]) * later
        return (now, step[1]), now

    return jax.lax.scan(back, (jnp.zeros_like(last), last), (reward, value, done), reverse=True)[1]


def chances(logits: Any, action: Any) -> Any:
    """The logarithm of the probability of an action."""
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], -1)[..., 0]


def entropy(logits: Any) -> Any:
    """The mean entropy of policies."""
    return -(jax.nn.softmax(logits) * jax.nn.log_softmax(logits)).sum(-1).mean()


def clipped_loss(
    logits: Any, value: Any, batch: tuple[Any, Any, Any], advantage: Any, bonus: Any, clip: float = 0.2
) -> Any:
    """The clipped objective of PPO (Schulman et al. 2017, arXiv:1707.06347), with value loss and an entropy bonus.

    Args:
        logits: of the policy.
        value: of the critic.
        batch: actions, logarithms of their probability and values at the time of the rollout.
        advantage: of the actions.
        bonus: the factor of the entropy.
        clip: how far the ratio of probabilities counts.
    """
    action, chance, old = batch
    ratio = jnp.exp(chances(logits, action) - chance)
    scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    gain = jnp.minimum(ratio * scaled, jnp.clip(ratio, 1 - clip, 1 + clip) * scaled).mean()
    return 0.5 * ((value - old - advantage) ** 2).mean() - gain - bonus * entropy(logits)


ADAM = optax.scale_by_adam(eps=1e-5)
CLIP = optax.clip_by_global_norm(0.5)


def adam(weights: Weights, moments: Any, gradient: Weights, rate: Any) -> tuple[Weights, Any]:
    """A step of Adam (Kingma and Ba 2015) with the norm of the gradient cut at 0.5.

    The rate is data, so that many rates run in one batch.
    """
    gradient, _ = CLIP.update(gradient, optax.EmptyState())
    steps, moments = ADAM.update(gradient, moments)
    return jax.tree.map(lambda old, step: old - rate * step, weights, steps), moments

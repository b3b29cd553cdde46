"""PPO on 2,048 drifting lakes in one compiled loop, with and without memory in the network.

A lake has a start in the middle and a goal in each corner, of which one pays. Each lifetime has its own schedule, drawn
from the seed: which goal pays first, when that drifts, and to which goal. No observation shows it. Both networks get
the tile, the last action, the last reward and whether an episode has just begun; one has a recurrent layer, whose state
lasts for the lifetime, the other a plain layer of the same width. So the recurrent one can learn to notice a drift and
to search (meta-learning, as RL^2: Duan et al. 2016, arXiv:1611.02779); weights do not change in a lifetime.

    python examples/ppo_jax.py --out ppo_jax.png

trains both, plays lifetimes of schedules that training has not had, prints their scores around the drift with 95 %
intervals over lifetimes, and draws both curves. It needs the extras `jax` and `plots`; on two cores it takes some
minutes a network. PPO: Schulman et al. 2017, arXiv:1707.06347; the whole loop is compiled, as in PureJaxRL.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from drift_envs.envs.frozen_lake.functional import FunctionalLake

MAP = ["GFFFG", "FFFFF", "FFSFF", "FFFFF", "GFFFG"]
GOALS = ("0,0", "0,4", "4,0", "4,4")
TILES, MOVES = 25, 4
LIFETIME, LIMIT = 128, 16
"""Steps of a lifetime and, at most, of an episode; the shortest way to a goal takes 4."""
EARLIEST, LATEST = 40, 72
"""The drift comes at one of these steps."""
AROUND = 40
"""Steps before and after the drift that the curves show."""

GAMMA, LAMBDA, CLIP, RATE = 0.97, 0.95, 0.2, 2e-3
EPOCHS, PARTS, BONUS = 1, 16, 0.02

Weights = dict[str, Any]


class Batch(NamedTuple):
    """What a rollout of all lifetimes gives, shape `(LIFETIME, num_envs, ...)`."""

    inputs: Any
    action: Any
    likelihood: Any
    value: Any
    reward: Any
    done: Any


def make_schedules(number: int, seed: int) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Schedules, and the step of the drift of each."""
    rng = np.random.default_rng(seed)
    schedules, ticks = [], rng.integers(EARLIEST, LATEST, number)
    for tick in ticks.tolist():
        first, second = rng.choice(len(GOALS), 2, replace=False).tolist()
        pays = [{goal: float(index == place) for index, goal in enumerate(GOALS)} for place in (first, second)]
        drift = {"name": "moves", "at": tick, "set": {"goal_rewards": pays[1]}}
        base = {"map": MAP, "goal_rewards": pays[0]}
        schedules.append({"version": 1, "name": "corners", "clock": "step", "base": base, "drifts": [drift]})
    return schedules, ticks


def make_weights(key: Any, width: int) -> Weights:
    """Random weights: an input layer, a recurrent or plain layer, policy and value."""
    sizes = {
        "in": (TILES + MOVES + 2, width),
        "gates": (2 * width, 2 * width),
        "fresh": (2 * width, width),
        "policy": (width, MOVES),
        "value": (width, 1),
    }
    scales = {"policy": 0.01, "value": 1.0}
    weights = {}
    for (name, (rows, columns)), own in zip(sizes.items(), jax.random.split(key, len(sizes)), strict=True):
        scale = scales.get(name, 1.4) / np.sqrt(rows)
        weights[name] = scale * jax.random.normal(own, (rows, columns))
        weights[f"{name} bias"] = jnp.zeros(columns)
    return weights


def layer(weights: Weights, name: str, values: Any) -> Any:
    """A linear layer."""
    return values @ weights[name] + weights[f"{name} bias"]


def apply(memory: bool, weights: Weights, state: Any, inputs: Any) -> tuple[Any, tuple[Any, Any]]:
    """The next state of the network, and for these inputs the logits and the value."""
    tile, action, reward, begins = inputs
    seen = [jax.nn.one_hot(tile, TILES), jax.nn.one_hot(action, MOVES), reward[..., None], begins[..., None]]
    hidden = jnp.tanh(layer(weights, "in", jnp.concatenate(seen, -1)))
    if memory:  # a gated recurrent unit
        both = jnp.concatenate([hidden, state], -1)
        keep, reset = jnp.split(jax.nn.sigmoid(layer(weights, "gates", both) + 1.0), 2, -1)
        fresh = jnp.tanh(layer(weights, "fresh", jnp.concatenate([hidden, reset * state], -1)))
        state = keep * state + (1 - keep) * fresh
        hidden = state
    else:
        hidden = jnp.tanh(layer(weights, "fresh", jnp.concatenate([hidden, hidden], -1)))
    return state, (layer(weights, "policy", hidden), layer(weights, "value", hidden)[..., 0])


def likelihood_of(logits: Any, action: Any) -> Any:
    """The logarithm of the probability of an action."""
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], -1)[..., 0]


def roll_out(env: FunctionalLake, memory: bool, weights: Weights, params: Any, key: Any) -> Batch:
    """Play one lifetime in each environment."""
    number = params.max_steps.shape[0]
    start, key = jax.random.split(key)
    tile, states = env.reset_batch(start, params, number)
    nothing = jnp.zeros(number)
    hidden = jnp.zeros((number, weights["policy"].shape[0]))

    def move(carry: Any, key: Any) -> tuple[Any, Batch]:
        states, hidden, inputs = carry
        choose, step = jax.random.split(key)
        hidden, (logits, value) = apply(memory, weights, hidden, inputs)
        action = jax.random.categorical(choose, logits)
        tile, states, reward, terminated, truncated, _ = env.step_batch(step, states, action, params)
        done = (terminated | truncated).astype(jnp.float32)
        found = Batch(inputs, action, likelihood_of(logits, action), value, reward, done)
        return (states, hidden, (tile, action, reward, done)), found

    first = (tile, jnp.zeros(number, jnp.int32), nothing, nothing + 1.0)
    found: Batch = jax.lax.scan(move, (states, hidden, first), jax.random.split(key, LIFETIME))[1]
    return found


def advantages(batch: Batch) -> Any:
    """Generalized advantage estimates: rewards of later episodes count, so that a search can pay."""

    def back(carry: Any, step: Any) -> tuple[Any, Any]:
        later, following = carry
        value, reward = step
        now = reward + GAMMA * following - value + GAMMA * LAMBDA * later
        return (now, value), now

    nothing = jnp.zeros_like(batch.value[0])
    return jax.lax.scan(back, (nothing, nothing), (batch.value, batch.reward), reverse=True)[1]


def loss_of(memory: bool, weights: Weights, batch: Batch, advantage: Any) -> Any:
    """The clipped objective of PPO, with value loss and an entropy bonus."""
    hidden = jnp.zeros((batch.value.shape[1], weights["policy"].shape[0]))
    play = partial(apply, memory, weights)
    logits, value = jax.lax.scan(play, hidden, batch.inputs)[1] if memory else play(hidden, batch.inputs)[1]
    ratio = jnp.exp(likelihood_of(logits, batch.action) - batch.likelihood)
    scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    gain = jnp.minimum(ratio * scaled, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * scaled).mean()
    entropy = -(jax.nn.softmax(logits) * jax.nn.log_softmax(logits)).sum(-1).mean()
    return 0.5 * ((value - batch.value - advantage) ** 2).mean() - gain - BONUS * entropy


def adam(weights: Weights, moments: Any, gradient: Weights, step: Any, rate: Any) -> tuple[Weights, Any]:
    """A step of Adam, with the norm of the gradient cut at 0.5."""
    norm = jnp.sqrt(sum(jnp.sum(each**2) for each in jax.tree.leaves(gradient)))
    gradient = jax.tree.map(lambda each: each * jnp.minimum(1.0, 0.5 / (norm + 1e-8)), gradient)
    first = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, moments[0], gradient)
    second = jax.tree.map(lambda old, new: 0.999 * old + 0.001 * new**2, moments[1], gradient)
    scale = rate * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    weights = jax.tree.map(lambda old, m, v: old - scale * m / (jnp.sqrt(v) + 1e-8), weights, first, second)
    return weights, (first, second)


def train(
    memory: bool, num_envs: int, updates: int, seed: int, width: int, report: Callable[[int, float], None]
) -> tuple[Weights, np.ndarray]:
    """Train a network.

    Returns:
        The weights, and the mean reward a step of each update.
    """
    env = FunctionalLake()
    params = env.params_of(make_schedules(num_envs, seed)[0], max_steps=LIMIT)

    def update(carry: Any, index: Any) -> tuple[Any, Any]:
        weights, moments, key = carry
        key, own, shuffle = jax.random.split(key, 3)
        batch = roll_out(env, memory, weights, params, own)
        advantage = advantages(batch)

        def learn(carry: Any, given: Any) -> tuple[Any, None]:
            weights, moments = carry
            chosen, step = given
            part, gain = jax.tree.map(lambda each: each[:, chosen], (batch, advantage))
            gradient = jax.grad(partial(loss_of, memory))(weights, part, gain)
            rate = RATE * (1 - 0.9 * index / updates)
            return adam(weights, moments, gradient, step, rate), None

        orders = [jax.random.permutation(each, num_envs) for each in jax.random.split(shuffle, EPOCHS)]
        parts = jnp.concatenate(orders).reshape(EPOCHS * PARTS, -1)
        steps = index * EPOCHS * PARTS + jnp.arange(EPOCHS * PARTS) + 1.0
        (weights, moments), _ = jax.lax.scan(learn, (weights, moments), (parts, steps))
        return (weights, moments, key), batch.reward.mean()

    weights = make_weights(jax.random.key(seed), width)
    zeros = jax.tree.map(jnp.zeros_like, weights)
    carry = (weights, (zeros, zeros), jax.random.key(seed + 1))
    several = jax.jit(lambda carry, indices: jax.lax.scan(update, carry, indices))
    curve: list[float] = []
    while len(curve) < updates:
        carry, rewards = several(carry, jnp.arange(len(curve), min(len(curve) + 10, updates), dtype=jnp.float32))
        curve += np.asarray(rewards).tolist()
        report(len(curve), curve[-1])
    return carry[0], np.array(curve)


def evaluate(memory: bool, weights: Weights, lifetimes: int, seed: int) -> np.ndarray:
    """Play lifetimes of new schedules.

    Returns:
        The reward of each step from `AROUND` steps before the drift to as many after it, shape
        `(lifetimes, 2 * AROUND)`.
    """
    schedules, ticks = make_schedules(lifetimes, seed)
    env = FunctionalLake()
    params = env.params_of(schedules, max_steps=LIMIT)
    batch = jax.jit(partial(roll_out, env, memory))(weights, params, jax.random.key(seed))
    rewards = np.asarray(batch.reward)
    steps = ticks[:, None] + np.arange(-AROUND, AROUND)
    return rewards.T[np.arange(lifetimes)[:, None], steps]


def interval(values: np.ndarray) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval over lifetimes."""
    return float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


WINDOWS = {
    "before the drift, steps -24 to -1": (-24, 0),
    "after it, steps 0 to 7": (0, 8),
    "steps 8 to 15": (8, 16),
    "steps 16 to 23": (16, 24),
    "steps 24 to 39": (24, 40),
}


def draw(found: dict[str, np.ndarray], curves: dict[str, np.ndarray], path: str) -> None:
    """Draw training curves, and the reward around the drift."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for name, color in zip(found, ("#1f6f8b", "#c8553d"), strict=True):
        left.plot(np.arange(1, len(curves[name]) + 1), 4 * curves[name], color=color, label=name)
        smooth = np.stack([found[name][:, max(0, at - 3) : at + 1].mean(1) for at in range(2 * AROUND)], 1)
        mean = 4 * smooth.mean(0)
        half = 4 * 1.96 * smooth.std(0, ddof=1) / np.sqrt(len(smooth))
        steps = np.arange(-AROUND, AROUND)
        right.plot(steps, mean, color=color, label=name)
        right.fill_between(steps, mean - half, mean + half, color=color, alpha=0.25, linewidth=0)
    left.set(xlabel="updates", ylabel="reward every 4 steps", title="Training: 2,048 lakes that drift", ylim=(0, 1.05))
    right.axvline(0, color="black", linewidth=1, linestyle="--")
    right.annotate("drift", (0.8, 0.94), fontsize=9)
    right.set(
        xlabel="steps since the drift (mean of the last 4)",
        ylabel="reward every 4 steps",
        title="Schedules that training has not had, weights fixed",
        ylim=(0, 1.05),
    )
    for axes in (left, right):
        axes.axhline(1.0, color="gray", linewidth=0.8, linestyle=":")
        axes.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False, loc="lower left")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Train both networks, evaluate, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--num-envs", type=int, default=2048, help="lakes (default: %(default)s)")
    parser.add_argument("--updates", type=int, default=70, help="updates (default: %(default)s)")
    parser.add_argument("--width", type=int, default=32, help="units of a layer (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all (default: %(default)s)")
    parser.add_argument("--lifetimes", type=int, default=1000, help="held-out lifetimes (default: %(default)s)")
    parser.add_argument("--out", help="a picture of the curves")
    arguments = parser.parse_args()
    if arguments.out:
        Path(arguments.out).parent.mkdir(parents=True, exist_ok=True)  # before the training, which takes long
    found, curves = {}, {}
    for name, memory in (("with memory", True), ("without memory", False)):
        start = time.process_time()

        def report(update: int, reward: float, name: str = name, start: float = start) -> None:
            took = time.process_time() - start
            print(f"{name}: update {update}, {4 * reward:.3f} every 4 steps, {took:.0f} CPU s", flush=True)

        weights, curves[name] = train(
            memory, arguments.num_envs, arguments.updates, arguments.seed, arguments.width, report
        )
        found[name] = evaluate(memory, weights, arguments.lifetimes, arguments.seed + 1_000_000)
    print(f"\nreward every 4 steps, {arguments.lifetimes} held-out lifetimes, 95 % intervals (at most 1)")
    print(f"{'':<36}" + "".join(f"{name:>20}" for name in found))
    for window, (first, last) in WINDOWS.items():
        cells = [interval(4 * values[:, AROUND + first : AROUND + last].mean(1)) for values in found.values()]
        print(f"{window:<36}" + "".join(f"{f'{mean:.3f} ± {half:.3f}':>20}" for mean, half in cells))
    if arguments.out:
        draw(found, curves, arguments.out)


if __name__ == "__main__":
    main()

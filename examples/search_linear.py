"""Linear policies for the runners of MuJoCo, by random search; needs the extra `mujoco`.

Augmented random search (Mania et al., 2018, arXiv:1803.07055, version V2-t: states normalized, the best directions
alone, the step divided by the deviation of their returns; returns are the environment's own, with the bonus for not
falling). The policy takes the action of the text form that is nearest to a linear function of the observation, so that
directions have to be large: small ones change no action. Of all policies on the way the one with the best mean return
in `CHECKS` episodes is kept; what is written as `return` is measured in others. The normalization is part of the
weights.

`python -m examples.search_linear` searches for all of them, one after the other; `python -m examples.search_linear
hopper/forward` for one. Weights, origin and return are written to the oracle's file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

import drift_envs  # noqa: F401 - registers the ids
from drift_envs.envs.mujoco import describe
from drift_envs.envs.mujoco.oracle import GAITS

EVERY = 10
"""The rounds between two checks."""
LIMIT = 1000
"""The steps of an episode."""
CHECKS, MEASURED = range(4), range(100, 120)
"""The seeds of the episodes that choose a policy, and of those that measure the one chosen."""

Policy = Callable[[np.ndarray], np.ndarray]


class Search(NamedTuple):
    """What is searched for, and how.

    Args:
        env_id: the environment.
        forward_reward: the knob: 1 rewards running forward, -1 backward.
        rounds: the steps of the search.
        directions: the directions of a round; each is played both ways.
        best: how many of them are used.
        step: the size of a step.
        noise: the size of a direction.
        limit: the steps of an episode while searching.
    """

    env_id: str
    forward_reward: float
    rounds: int
    directions: int
    best: int
    step: float
    noise: float
    limit: int


SEARCHES = {
    "half_cheetah/forward": Search("DriftHalfCheetah-v0", 1.0, 150, 16, 8, 0.1, 0.2, LIMIT),
    "half_cheetah/backward": Search("DriftHalfCheetah-v0", -1.0, 300, 16, 4, 0.05, 0.2, 500),
    "hopper/forward": Search("DriftHopper-v0", 1.0, 150, 8, 4, 0.05, 0.2, LIMIT),
    "hopper/backward": Search("DriftHopper-v0", -1.0, 150, 8, 4, 0.05, 0.2, LIMIT),
}
"""Chosen by hand among a few. Backward, HalfCheetah is not found with the numbers of forward: it stands still."""


def make_policy(actions: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> Policy:
    """The action nearest to a linear function of the observation.

    Args:
        actions: shape `(actions, actuators)`.
        weights: shape `(actuators, numbers of an observation)`.
        bias: shape `(actuators,)`.
    """
    lengths, given = np.square(actions).sum(axis=1) / 2, actions.astype(np.float32)
    return lambda seen: given[int(np.argmax(actions @ (weights @ seen + bias) - lengths))]


def play(env: Any, policy: Policy, seed: int, limit: int = LIMIT, seen: list | None = None) -> float:
    """The return of an episode; observations are added to `seen`."""
    observation, _ = env.reset(seed=seed)
    total, steps, over = 0.0, 0, False
    while not over and steps < limit:
        if seen is not None:
            seen.append(observation)
        observation, reward, over, *_ = env.step(policy(observation))
        total, steps = total + float(reward), steps + 1
    return total


def search(name: str, seed: int) -> dict[str, Any]:
    """The weights of a policy, with their origin and return."""
    setup = SEARCHES[name]
    env: Any = gym.make(setup.env_id, schedule=None).unwrapped  # type: ignore[arg-type]
    env.set_knobs({"forward_reward": setup.forward_reward})
    actions = np.array([json.loads(action) for action in describe(env).actions])  # type: ignore[union-attr]
    rng, size = np.random.default_rng(seed), env.observation_space.shape[0]
    weights = np.zeros((actions.shape[1], size))
    count, total, squares = 0, np.zeros(size), np.zeros(size)
    mean, scale = np.zeros(size), np.ones(size)

    def fold(given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights and bias for observations as they are, in six digits."""
        folded = np.concatenate([given / scale, -(given / scale) @ mean[:, None]], axis=1)
        rounded = np.array([[float(f"{number:.6g}") for number in row] for row in folded])
        return rounded[:, :-1], rounded[:, -1]

    best: tuple[float, Any] = (-np.inf, fold(weights))
    for number in range(setup.rounds):
        seen: list = []
        tries = []
        for _ in range(setup.directions):
            noise, start = rng.standard_normal(weights.shape), int(rng.integers(1 << 31))
            pair = []
            for sign in (1, -1):
                policy = make_policy(actions, *fold(weights + sign * setup.noise * noise))
                pair.append(play(env, policy, start, setup.limit, seen))
            tries.append((*pair, noise))
        chosen = sorted(tries, key=lambda one: -max(one[:2]))[: setup.best]
        deviation = float(np.std([one[:2] for one in chosen])) + 1e-8
        weights = weights + setup.step / (setup.best * deviation) * sum((up - down) * way for up, down, way in chosen)
        found = np.asarray(seen)
        count, total, squares = count + len(found), total + found.sum(0), squares + (found**2).sum(0)
        mean = total / count
        scale = np.sqrt(np.maximum(squares / count - mean**2, 1e-8))
        if (number + 1) % EVERY == 0:
            policy = make_policy(actions, *fold(weights))
            value = float(np.mean([play(env, policy, one) for one in CHECKS]))
            print(f"{name} round {number + 1}: {value:.1f}", flush=True)
            best = max(best, (value, fold(weights)), key=lambda one: one[0])
    policy = make_policy(actions, *best[1])
    return {
        "env": setup.env_id,
        "forward_reward": setup.forward_reward,
        "return": round(float(np.mean([play(env, policy, one) for one in MEASURED])), 1),
        "script": "examples/search_linear.py",
        "seed": seed,
        "rounds": setup.rounds,
        "versions": {package: version(package) for package in ("gymnasium", "mujoco", "numpy")},
        "weights": best[1][0].tolist(),
        "bias": best[1][1].tolist(),
    }


def main() -> None:
    """Search, and write the weights."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=list(SEARCHES), choices=list(SEARCHES))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in options.names:
        found = search(name, options.seed)
        print(f"{name}: {found['return']}")
        gaits = json.loads(GAITS.read_text(encoding="utf-8"))
        gaits[name] = found
        rows = [f"{json.dumps(one)}: {json.dumps(gaits[one])}" for one in sorted(gaits)]
        GAITS.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Linear policies for the runners of MuJoCo, by random search; needs the extra `mujoco`.

Augmented random search (Mania et al., 2018, version 2: states normalized, the best directions, the step divided by the
deviation of returns). `python -m examples.search_linear DriftHopper-v0` prints the mean return now and then, and
writes the weights to `examples/linear_policies.json`, beside those of other environments.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import drift_envs  # noqa: F401 - registers the ids

OUT = Path(__file__).with_name("linear_policies.json")
STEP, NOISE, DIRECTIONS, BEST = 0.02, 0.03, 8, 4


def play(env: Any, weights: np.ndarray, mean: np.ndarray, scale: np.ndarray, seen: list, limit: int) -> float:
    """The return of an episode of at most `limit` steps."""
    observation, _ = env.reset()
    total = 0.0
    for _ in range(limit):
        seen.append(observation)
        action = np.clip(weights @ ((observation - mean) / scale), env.action_space.low, env.action_space.high)
        observation, reward, terminated, truncated, _ = env.step(action.astype(np.float32))
        total += float(reward)
        if terminated or truncated:
            break
    return total


def search(env_id: str, rounds: int, limit: int, seed: int) -> dict:
    """Weights, mean and deviation of observations, and the mean return of 5 episodes."""
    env: Any = gym.make(env_id, schedule=None)
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    size = env.observation_space.shape[0]
    weights, mean, scale = np.zeros((env.action_space.shape[0], size)), np.zeros(size), np.ones(size)
    count, total, squares = 0, np.zeros(size), np.zeros(size)
    best: tuple[float, dict] = (-np.inf, {})
    for number in range(rounds):
        seen: list = []
        tries = []
        for _ in range(DIRECTIONS):
            noise = rng.standard_normal(weights.shape)
            up, down = (play(env, weights + sign * NOISE * noise, mean, scale, seen, limit) for sign in (1, -1))
            tries.append((up, down, noise))
        tries.sort(key=lambda one: -max(one[:2]))
        chosen = tries[:BEST]
        deviation = float(np.std([value for up, down, _ in chosen for value in (up, down)])) + 1e-8
        weights = weights + STEP / (BEST * deviation) * sum((up - down) * noise for up, down, noise in chosen)
        found = np.asarray(seen)
        count, total, squares = count + len(found), total + found.sum(0), squares + (found**2).sum(0)
        mean = total / count
        scale = np.sqrt(np.maximum(squares / count - mean**2, 1e-8))
        if number % 20 == 19:
            value = float(np.mean([play(env, weights, mean, scale, [], 1000) for _ in range(5)]))
            print(f"{env_id} round {number + 1}: {value:.1f}", flush=True)
            if value > best[0]:
                rounded = {"weights": weights, "mean": mean, "scale": scale}
                best = (value, {name: np.round(array, 5).tolist() for name, array in rounded.items()})
    return best[1]


def main() -> None:
    """Search, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("env_id")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--limit", type=int, default=1000, help="steps of an episode while searching")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    policies = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    policies[options.env_id] = search(options.env_id, options.rounds, options.limit, options.seed)
    OUT.write_text(json.dumps(policies, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

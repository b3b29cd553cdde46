"""Stable-Baselines3's PPO on the drifting mountain car, through its own vector wrapper and without any change.

    pip install "drift-envs[rl]"
    python examples/ppo_mountain_car.py --steps 200000

The engine's controls are reversed in the middle of the training; the learner gets no signal of it. The environment is
seeded once, by Stable-Baselines3, so that its clock of episodes goes on from reset to reset.
"""

from __future__ import annotations

import argparse
from typing import Any

import drift_envs

MISSING = '`stable_baselines3` is not installed, run `pip install "drift-envs[rl]"`'


def reversed_at(episode: int) -> dict[str, Any]:
    """A strong engine whose controls are reversed from some episode on.

    Args:
        episode: that episode, of each of the parallel environments.
    """
    drift = {"name": "reversed", "at": episode, "set": {"force": -0.003}}
    return {"version": 1, "name": "reversed", "base": {"force": 0.003}, "drifts": [drift]}


def main(arguments: list[str] | None = None) -> tuple[list[float], list[Any]]:
    """Train and print the mean return of every tenth of the episodes.

    Args:
        arguments: those of the command line.

    Returns:
        The return of every episode, and the place in time of each environment at the end.

    Raises:
        SystemExit: if Stable-Baselines3 is not installed.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=200_000, help="of all environments together")
    parser.add_argument("--number", type=int, default=8, help="parallel environments (default: %(default)s)")
    parser.add_argument("--drift", type=int, default=60, help="episode of the drift (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    try:
        import torch
        from stable_baselines3 import PPO
        from stable_baselines3.common.env_util import make_vec_env
    except ImportError as error:
        raise SystemExit(MISSING) from error
    torch.set_num_threads(1)  # a network this small only waits for more
    cars = make_vec_env(
        "DriftMountainCar-v0", n_envs=given.number, seed=given.seed, env_kwargs={"schedule": reversed_at(given.drift)}
    )
    model = PPO("MlpPolicy", cars, n_steps=128, batch_size=256, gamma=0.99, ent_coef=0.01, seed=given.seed)
    model.learn(given.steps)
    returns = [value for monitor in cars.envs for value in monitor.get_episode_rewards()]
    states = cars.env_method("get_wrapper_attr", "drift_state")
    print(f"drift-envs {drift_envs.__version__}: {len(returns)} episodes, now in phase {states[0].phase!r}")
    for monitor in cars.envs[:1]:
        rewards = monitor.get_episode_rewards()
        tenth = max(len(rewards) // 10, 1)
        for first in range(0, len(rewards), tenth):
            part = rewards[first : first + tenth]
            print(f"episodes {first:>4} to {first + len(part) - 1:>4}: mean return {sum(part) / len(part):.1f}")
    return returns, states


if __name__ == "__main__":
    main()

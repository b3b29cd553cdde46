"""Stable-Baselines3's PPO on the drifting mountain car, through the native vector environment.

    pip install ".[rl,plots]"
    python examples/ppo_mountain_car.py --steps 200000 --out ppo.png

The engine's controls are reversed in the middle of the training, which the learner does not observe. Evaluation
takes place in the phase in which training is: with a clock of its own it would still see the old controls.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

import drift_envs


def reversed_at(episode: int) -> dict[str, Any]:
    """A strong engine whose controls are reversed from some episode on.

    Args:
        episode: that episode, of each of the parallel environments.
    """
    drift = {"name": "reversed", "at": episode, "set": {"force": -0.003}}
    return {"version": 1, "name": "reversed", "base": {"force": 0.003}, "drifts": [drift]}


def plot(episodes: Sequence[Any], drift: int, out: str) -> None:
    """Draw the mean return of all cars over their episodes, with the drift.

    Args:
        episodes: those of `drift_envs.integrations.sb3.VecEnv`.
        drift: the episode of the drift.
        out: the file.
    """
    import matplotlib.pyplot as plt

    scores: dict[int, list[float]] = {}
    for episode in episodes:
        scores.setdefault(episode.tick, []).append(episode.score)
    figure, axes = plt.subplots(figsize=(8, 3))
    ticks = sorted(scores)
    axes.plot(ticks, [sum(scores[tick]) / len(scores[tick]) for tick in ticks], label="mean of all cars")
    axes.axvline(drift, linestyle="--", color="gray", label="controls are reversed")
    axes.set(xlabel="episode of each car", ylabel="return", title="PPO of Stable-Baselines3 on drifting mountain cars")
    axes.legend(loc="lower right", frameon=False)
    figure.tight_layout()
    figure.savefig(out)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> tuple[list[float], list[str]]:
    """Train; print the mean return of each phase and the evaluations, after Ctrl-C those so far.

    Args:
        arguments: those of the command line.

    Returns:
        The return of every episode, and the phase of each evaluation.

    Raises:
        SystemExit: if Stable-Baselines3 is not installed; with status 130 at the end of what was interrupted.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=200_000, help="of all environments together")
    parser.add_argument("--number", type=int, default=8, help="parallel environments (default: %(default)s)")
    parser.add_argument("--drift", type=int, default=60, help="episode of the drift (default: %(default)s)")
    parser.add_argument("--evaluations", type=int, default=10, help="number of evaluations (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="file for the picture")
    given = parser.parse_args(arguments)
    if given.out:
        Path(given.out).parent.mkdir(parents=True, exist_ok=True)  # before the training, which takes long
    try:
        from drift_envs.integrations.sb3 import EvalCallback, make_vec_env
    except drift_envs.DriftEnvsError as error:
        raise SystemExit(str(error)) from error
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)  # with more, a network this small is slower
    schedule = reversed_at(given.drift)
    cars = make_vec_env("DriftMountainCar-v0", n_envs=given.number, seed=given.seed, schedule=schedule)
    callback = EvalCallback(
        gym.make("DriftMountainCar-v0", schedule=schedule),
        eval_freq=max(given.steps // given.number // given.evaluations, 1),
        n_eval_episodes=3,
        verbose=0,
        log_path=None,
    )
    model = PPO("MlpPolicy", cars, n_steps=128, batch_size=256, gamma=0.99, ent_coef=0.01, seed=given.seed)
    is_interrupted = False
    try:
        model.learn(given.steps, callback)
    except KeyboardInterrupt:
        is_interrupted = True
        print(f"interrupted after {model.num_timesteps} of {given.steps} steps")
    print(f"drift-envs {drift_envs.__version__}: {len(cars.episodes)} episodes")
    for phase, returns in cars.by_phase().items():
        print(f"{phase}: mean return {sum(returns) / len(returns):.1f} over {len(returns)} episodes")
    for phase, tick in zip(callback.evaluations_phases, callback.evaluations_ticks, strict=True):
        print(f"evaluated at tick {tick:>4}, phase {phase}")
    if given.out:
        plot(cars.episodes, given.drift, given.out)
    if is_interrupted:
        raise SystemExit(130)
    return [episode.score for episode in cars.episodes], callback.evaluations_phases


if __name__ == "__main__":
    main()

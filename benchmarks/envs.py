"""The speed of the drifting environments relative to Gymnasium's.

`python -m benchmarks.envs` prints, for each case, the time of a step (resets included) and the ratio to
plain `gymnasium.make` measured directly before and after; above 1 is faster. The cases are interleaved, and
medians of processor time are printed, so that other work on the machine has little effect on the ratios.
Environments of our own have nothing to be compared with: their steps a second are printed, with admissible actions.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import gymnasium as gym
import numpy as np

import drift_envs  # registers the ids

RAMP_TICKS = 10_000_000


def ramp(base: dict[str, float], target: dict[str, float]) -> dict[str, Any]:
    """A schedule that drifts at each step."""
    drift = {"name": "ramp", "at": 0, "kind": "incremental", "over": RAMP_TICKS, "set": target}
    return {"version": 1, "name": "ramp", "clock": "step", "base": base, "drifts": [drift]}


SLIP = ramp({"slip": 0.1}, {"slip": 0.6})
FORCE = ramp({"force": 0.001}, {"force": 0.0006})
POWER = ramp({"power": 0.0015}, {"power": 0.001})
LAKE, CAR, CONTINUOUS = "FrozenLake-v1", "MountainCar-v0", "MountainCarContinuous-v0"


def drifting(plain: str) -> str:
    """The id of the drifting environment for a plain id."""
    return f"Drift{plain.rsplit('-', 1)[0]}-v0"


CASES: list[tuple[str, str, dict[str, Any], float | None]] = [
    ("lake, default schedule", LAKE, {}, 3.0),
    ("lake, no schedule", LAKE, {"schedule": None}, None),
    ("lake, slip drifts at each step", LAKE, {"schedule": SLIP}, 2.5),
    ("lake, default schedule as text", LAKE, {"text": True}, None),
    ("car, default schedule", CAR, {}, 5.0),
    ("car, no schedule", CAR, {"schedule": None}, None),
    ("car, force drifts at each step", CAR, {"schedule": FORCE}, 2.5),
    ("car, default schedule as text", CAR, {"text": True}, None),
    ("continuous car, default schedule", CONTINUOUS, {}, None),
    ("continuous car, power drifts at each step", CONTINUOUS, {"schedule": POWER}, None),
]
"""Name, plain id, arguments, and the target ratio."""

ENVIRONMENTS: list[tuple[str, str, dict[str, Any], int | None]] = [
    ("house, default schedule", "DriftHouse-v0", {}, 20_000),
    ("house, default schedule as JSON", "DriftHouse-v0", {"text": True}, 20_000),
    ("tools, default schedule", "DriftTools-v0", {}, 5_000),
    ("tools, default schedule as JSON", "DriftTools-v0", {"text": True}, 5_000),
    ("facts, default schedule", "DriftFacts-v0", {}, 20_000),
    ("facts, default schedule as JSON", "DriftFacts-v0", {"text": True}, 20_000),
]
"""Name, id, arguments, and the target in steps a second."""


def steps_per_second(env_id: str, keywords: dict[str, Any], steps: int) -> float:
    """The steps a second of processor time, with admissible actions drawn uniformly, resets included.

    Each call makes an environment: a second seed would rewind the schedule of the first.
    """
    env = gym.make(env_id, **keywords)
    rng = np.random.default_rng(0)
    draws: list[float] = rng.random(steps).tolist()
    _, info = env.reset(seed=0)
    start = time.process_time()
    for draw in draws:
        actions = info["actions"]
        _, _, terminated, truncated, info = env.step(actions[int(draw * len(actions))])
        if terminated or truncated:
            _, info = env.reset()
    return steps / (time.process_time() - start)


def seconds_per_step(env: gym.Env[Any, Any], actions: list[Any]) -> float:
    """The mean time of a step, resets included."""
    env.reset()
    start = time.process_time()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return (time.process_time() - start) / len(actions)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog="python -m benchmarks.envs --repeats 7"
    )
    parser.add_argument("--steps", type=int, default=10_000, help="steps a repeat (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=9, help="repeats of each case (default: %(default)s)")
    arguments = parser.parse_args()
    moves = np.random.default_rng(0).integers(3, size=arguments.steps)
    discrete: list[Any] = moves.tolist()
    forces: list[Any] = list((moves - 1.0).astype(np.float32).reshape(-1, 1))
    pairs: list[tuple[gym.Env[Any, Any], gym.Env[Any, Any]]] = []
    times: list[tuple[list[float], list[float]]] = []
    for _, plain, keywords, _ in CASES:
        pairs.append((gym.make(plain), gym.make(drifting(plain), **keywords)))
        for env in pairs[-1]:
            env.reset(seed=0)
        times.append(([], []))
    for _ in range(arguments.repeats):
        for (_, plain, _, _), pair, (base, ours) in zip(CASES, pairs, times, strict=True):
            actions = forces if plain == CONTINUOUS else discrete
            before = seconds_per_step(pair[0], actions)
            ours.append(seconds_per_step(pair[1], actions))
            base.append((before + seconds_per_step(pair[0], actions)) / 2)
    print(f"drift-envs {drift_envs.__version__}, gymnasium {gym.__version__}, numpy {np.__version__}")
    print(f"{'case':<44}{'us a step':>10}{'plain':>8}{'ratio':>8}{'target':>8}")
    for (name, _, _, target), (base, ours) in zip(CASES, times, strict=True):
        ratio = statistics.median(b / o for b, o in zip(base, ours, strict=True))
        goal = "" if target is None else f"{target:.1f}"
        middle, plain_middle = statistics.median(ours) * 1e6, statistics.median(base) * 1e6
        print(f"{name:<44}{middle:>10.2f}{plain_middle:>8.2f}{ratio:>8.2f}{goal:>8}")
    print()
    print(f"{'environment':<44}{'steps a second':>16}{'target':>10}")
    for name, env_id, keywords, target_rate in ENVIRONMENTS:
        rates = [steps_per_second(env_id, keywords, arguments.steps) for _ in range(arguments.repeats)]
        print(f"{name:<44}{statistics.median(rates):>16,.0f}{'' if target_rate is None else f'{target_rate:,}':>10}")


if __name__ == "__main__":
    main()

"""What the drifts of classic control and MuJoCo cost reference controllers.

`python -m benchmarks.physics` prints a table for the schedules of classic control, `python -m benchmarks.physics
mujoco` (extra `mujoco`) and `python -m benchmarks.physics box2d` (extra `box2d`) those of the extras: mean returns of
the controller for the phase before in both phases, and of the controller for the new phase. No controller is optimal.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

import drift_envs
from drift_envs.envs.classic_control.oracle import balance_cart, land, pump, spin, swing
from drift_envs.envs.mujoco.oracle import balance_pole, reach, run

Policy = Callable[[np.ndarray], Any]


class Reference(NamedTuple):
    """The controllers of a schedule's two phases.

    Args:
        old: for the phase before the drift.
        new: for the phase after it; `None` if none is known.
    """

    old: Policy
    new: Policy | None


def run_as(name: str) -> Policy:
    """A linear policy of the runners."""
    return lambda seen: run(seen, name)


def reversed_(policy: Policy) -> Policy:
    """The policy with the opposite of each action."""
    return lambda seen: -policy(seen)


def classic() -> dict[str, Reference]:
    """The references of classic control."""
    cart, links = (
        Reference(balance_cart, lambda seen: 1 - balance_cart(seen)),
        Reference(pump, lambda seen: 2 - pump(seen)),
    )
    return {
        "cart_pole/explicit": cart,
        "cart_pole/implicit": cart,
        "acrobot/explicit": links,
        "acrobot/implicit": links,
        "pendulum/explicit": Reference(swing, reversed_(swing)),
        "pendulum/implicit": Reference(swing, spin),
    }


def box2d() -> dict[str, Reference]:
    """The references of LunarLander."""
    return {
        "lunar_lander/explicit": Reference(land, None),
        "lunar_lander/implicit": Reference(land, lambda seen: (0, 3, 2, 1)[land(seen)]),
    }


def mujoco() -> dict[str, Reference]:
    """The references of MuJoCo's environments."""
    cheetah, hopper = run_as("half_cheetah/forward"), run_as("hopper/forward")
    return {
        "half_cheetah/explicit": Reference(cheetah, reversed_(cheetah)),
        "half_cheetah/implicit": Reference(cheetah, run_as("half_cheetah/backward")),
        "hopper/explicit": Reference(hopper, reversed_(hopper)),
        "hopper/implicit": Reference(hopper, run_as("hopper/backward")),
        "inverted_pendulum/explicit": Reference(balance_pole, reversed_(balance_pole)),
        "inverted_pendulum/implicit": Reference(balance_pole, reversed_(balance_pole)),
        "reacher/explicit": Reference(reach, reversed_(reach)),
        "reacher/implicit": Reference(reach, lambda seen: reach(seen, math.pi)),
    }


def mean_return(schedule: str, tick: int, policy: Policy, seeds: Iterable[int]) -> float:
    """The mean return of a policy in episodes at a tick of a schedule.

    Args:
        schedule: a shipped name.
        tick: the tick.
        policy: the policy.
        seeds: one episode for each.
    """
    env_id = drift_envs.load_schedule(schedule).env  # type: ignore[union-attr]
    returns = []
    for seed in seeds:
        env = gym.make(env_id, schedule=schedule)  # type: ignore[arg-type]
        observation, _ = env.reset(seed=seed, options={"drift_tick": tick})
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
        env.close()
    return float(np.mean(returns))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", nargs="?", default="classic", choices=("classic", "box2d", "mujoco"))
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    references = {"classic": classic, "box2d": box2d, "mujoco": mujoco}[options.part]()
    print("| schedule | before | after, old controller | after, new controller |\n|---|---|---|---|")
    for name, reference in references.items():
        seeds = range(options.seeds)
        new = "none known" if reference.new is None else f"{mean_return(name, 20, reference.new, seeds):.1f}"
        old = [f"{mean_return(name, tick, reference.old, seeds):.1f}" for tick in (0, 20)]
        print(f"| `{name}` | {old[0]} | {old[1]} | {new} |", flush=True)


if __name__ == "__main__":
    main()

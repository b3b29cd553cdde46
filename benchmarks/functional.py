"""The speed of the functional form in a compiled loop, relative to gymnax and the NumPy form.

`python -m benchmarks.functional` steps environments with random actions and prints, for each kind and number of
environments, the time of a step of one environment (resets and the drawing of actions included) and the ratios to
gymnax without drift and to the NumPy form. The cases are interleaved, and medians are printed; on a CPU of processor
time over all threads, on a GPU of elapsed time. gymnax is left out where it is not installed. Aim: at most 15 %
slower than gymnax without drift; on a GPU 100 million lake steps a second.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import jax
import numpy as np

import drift_envs
from benchmarks.envs import CAR, LAKE, drifting
from drift_envs.registration import IDS

NUMBERS = (1024, 16_384, 262_144)
ACTIONS = {LAKE: 4, CAR: 3}
GYMNAX = {LAKE: "FrozenLake-misc", CAR: CAR}
SHARE = 0.85
"""The least speed, as a share of gymnax's without drift."""

SLOWLY = {"kind": "incremental", "at": 0, "over": 1_000_000}
SCHEDULES: dict[str, dict[str, Any]] = {
    LAKE: {
        "no drift": None,
        "default schedule": "frozen_lake/explicit",
        "slip drifts at each step": {
            "version": 1,
            "clock": "step",
            "base": {"slip": 0.1},
            "drifts": [{**SLOWLY, "set": {"slip": 0.6}}],
        },
        "slip drifts at random times": {
            "version": 1,
            "clock": "step",
            "base": {"slip": 0.1},
            "drifts": [{"rate": 0.0005, "for": 500, "set": {"slip": 0.2}}],
        },
        **{
            f"{count} listed drifts of the slip": {
                "version": 1,
                "clock": "step",
                "drifts": [{"name": f"d{at}", "at": 50 * at, "set": {"slip": at / 100}} for at in range(1, count + 1)],
            }
            for count in (5, 99)
        },
    },
    CAR: {
        "no drift": None,
        "default schedule": "mountain_car/explicit",
        "force drifts at each step": {
            "version": 1,
            "clock": "step",
            "drifts": [{**SLOWLY, "set": {"force": 0.0006}}],
        },
    },
}


def compiled(reset: Any, step: Any, number: int, actions: int, steps: int) -> Callable[[int], None]:
    """A function that runs `steps` steps of `number` environments in one compiled loop.

    Args:
        reset: from a key to states.
        step: from a key, states and actions to states and rewards.
        number: the number of environments.
        actions: the number of actions.
        steps: the steps of a run.
    """

    def run(states: Any, key: Any) -> tuple[Any, Any]:
        def move(states: Any, key: Any) -> tuple[Any, Any]:
            own, rest = jax.random.split(key)
            states, rewards = step(rest, states, jax.random.randint(own, (number,), 0, actions))
            return states, rewards.sum()

        return jax.lax.scan(move, states, jax.random.split(key, steps))

    loop = jax.jit(run)
    held = [jax.jit(reset)(jax.random.key(0))]

    def turn(index: int) -> None:
        held[0], rewards = loop(held[0], jax.random.key(index))
        jax.block_until_ready(rewards)

    turn(0)  # compiles
    return turn


def cases_of(plain: str, number: int, steps: int) -> dict[str, Callable[[int], None]]:
    """The cases of one kind: each runs `steps` steps of `number` environments."""
    cases: dict[str, Callable[[int], None]] = {}
    actions = ACTIONS[plain]
    rows = np.random.default_rng(0).integers(actions, size=(64, number))

    def stepping(step: Callable[[Any], Any]) -> Callable[[int], None]:
        def turn(index: int) -> None:
            for row in range(steps):
                step(rows[row % 64])

        return turn

    try:
        gymnax = importlib.import_module("gymnax")
    except ImportError as error:
        print(f"gymnax can't be imported: {error}")
    else:
        env, params = gymnax.make(GYMNAX[plain])

        def reset(key: Any) -> Any:
            return jax.vmap(env.reset, in_axes=(0, None))(jax.random.split(key, number), params)[1]

        def step(key: Any, states: Any, actions: Any) -> tuple[Any, Any]:
            keys = jax.random.split(key, number)
            found = jax.vmap(env.step, in_axes=(0, 0, 0, None))(keys, states, actions, params)
            return found[1], found[2]

        cases["gymnax, no drift"] = compiled(reset, step, number, actions, steps)
    lakes = gym.make_vec(drifting(plain), num_envs=number, vectorization_mode="vector_entry_point")
    lakes.reset(seed=0)
    cases["NumPy form, default schedule"] = stepping(lakes.step)
    ours = IDS[drifting(plain)].load("functional")()
    for name, schedule in SCHEDULES[plain].items():
        cases[f"functional, {name}"] = functional_case(ours, schedule, number, actions, steps)
    name, schedule = list(SCHEDULES[plain].items())[1]
    cases[f"functional, {name}, vmap(step)"] = functional_case(ours, schedule, number, actions, steps, by_key=True)
    return cases


def functional_case(
    env: Any, schedule: Any, number: int, actions: int, steps: int, by_key: bool = False
) -> Callable[[int], None]:
    """A case of the functional form: `step_batch`, or `vmap` of `step` with a key for each environment."""
    params = env.params(schedule)

    def step(key: Any, states: Any, chosen: Any) -> tuple[Any, Any]:
        if by_key:
            keys = jax.random.split(key, number)
            found = jax.vmap(env.step, in_axes=(0, 0, 0, None))(keys, states, chosen, params)
        else:
            found = env.step_batch(key, states, chosen, params)
        return found[1], found[2]

    return compiled(lambda key: env.reset_batch(key, params, number)[1], step, number, actions, steps)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog="python -m benchmarks.functional --repeats 5 --numbers 1024"
    )
    parser.add_argument("--steps", type=int, default=1_600_000, help="steps a repeat (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=7, help="repeats of each case (default: %(default)s)")
    parser.add_argument("--numbers", type=int, nargs="+", default=list(NUMBERS), help="numbers of environments")
    arguments = parser.parse_args()
    device = jax.devices()[0]
    clock = time.process_time if device.platform == "cpu" else time.perf_counter
    print(f"drift-envs {drift_envs.__version__}, jax {jax.__version__}, {device.platform}: {device.device_kind}")
    for number in arguments.numbers:
        steps = max(8, arguments.steps // number)
        for plain in (LAKE, CAR):
            cases = cases_of(plain, number, steps)
            times: dict[str, list[float]] = {name: [] for name in cases}
            for index in range(arguments.repeats):
                for name, turn in cases.items():
                    start = clock()
                    turn(index)
                    times[name].append((clock() - start) / steps / number)
            print(f"\n{plain}, {number:,} environments")
            print(f"{'case':<48}{'ns a step':>11}{'million/s':>11}{'to gymnax':>11}{'to NumPy':>11}")
            middle = {name: statistics.median(found) for name, found in times.items()}
            for name, found in middle.items():
                ratios = [middle[other] / found if other in middle else float("nan") for other in _BASES]
                print(f"{name:<48}{found * 1e9:>11.1f}{1e-6 / found:>11.1f}{ratios[0]:>11.2f}{ratios[1]:>11.2f}")
            if _BASES[0] in middle:
                ours = middle["functional, default schedule"]
                verdict = "held" if middle[_BASES[0]] / ours >= SHARE else "missed"
                print(f"aim, at least {SHARE} of gymnax without drift: {verdict}")


_BASES = ("gymnax, no drift", "NumPy form, default schedule")


if __name__ == "__main__":
    main()

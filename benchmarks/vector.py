"""The speed of the native vector environments relative to single steps of plain Gymnasium.

`python -m benchmarks.vector` prints, for each case and number of sub-environments, the time of a step of one
sub-environment (resets included) and the ratio to plain `gymnasium.make` measured directly before and after, one
thread. The cases are interleaved, and medians of processor time are printed, so that other work on the machine has
little effect on the ratios. Then it prints the overhead of drifts compared to the same lakes without drift, the time by
the number of sub-environments and by the size of the map.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import drift_envs
from benchmarks.envs import CAR, CONTINUOUS, LAKE, drifting, ramp, seconds_per_step

TARGETS = {1024: 250, 16_384: 450}
ACTIONS = {LAKE: 4, CAR: 3}


def make_schedule(clock: str, base: dict[str, Any], *drifts: dict[str, Any]) -> dict[str, Any]:
    """A schedule as a dictionary."""
    return {"version": 1, "name": "benchmark", "clock": clock, "base": base, "drifts": list(drifts)}


SLIP = {"slip": 0.1}


def once_in(steps: int) -> dict[str, Any]:
    """A slip that changes in each lake at its own times, on average once in the given number of steps."""
    drift = {"name": "once", "rate": 0.5 / steps, "set": {"slip": 0.2}, "for": steps // 2}
    return make_schedule("step", SLIP, drift)


CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("lake, default schedule (maps drift)", LAKE, {}),
    ("lake, implicit (rewards drift)", LAKE, {"schedule": "frozen_lake/implicit"}),
    ("lake, slips, no drift", LAKE, {"schedule": make_schedule("step", SLIP)}),
    ("lake, slip drifts in each at its own time", LAKE, {"schedule": once_in(1000)}),
    ("lake, slip drifts at each step", LAKE, {"schedule": ramp(SLIP, {"slip": 0.6})}),
    ("car, no drift", CAR, {"schedule": None}),
    ("car, default schedule (force drifts)", CAR, {}),
    ("car, force drifts at each step", CAR, {"schedule": ramp({"force": 0.001}, {"force": 0.0006})}),
    ("continuous car, default schedule", CONTINUOUS, {}),
]
"""Name, plain id and arguments."""


def actions_of(plain: str, number: int, rows: int = 64) -> list[Any]:
    """Rows of random actions."""
    rng = np.random.default_rng(0)
    if plain == CONTINUOUS:
        return list(rng.uniform(-1, 1, (rows, number, 1)).astype(np.float32))
    return list(rng.integers(ACTIONS[plain], size=(rows, number)))


def seconds(step: Callable[[Any], Any], actions: list[Any], number: int, steps: int) -> float:
    """The mean time of a step of one sub-environment."""
    start = time.process_time()
    for index in range(steps):
        step(actions[index % len(actions)])
    return (time.process_time() - start) / steps / number


def native(plain: str, number: int, **arguments: Any) -> Callable[[Any], Any]:
    """The step of a native vector environment, after 32 steps."""
    env = gym.make_vec(drifting(plain), num_envs=number, vectorization_mode="vector_entry_point", **arguments)
    env.reset(seed=0)
    for actions in actions_of(plain, number, 32):
        env.step(actions)
    return env.step


class RatioMeasurement:
    """Measures interleaved cases, each between two measurements of the plain environment.

    Args:
        steps: steps of the plain environment and, in total over the sub-environments, of each case.
        repeats: measurements of each case.
    """

    def __init__(self, steps: int, repeats: int) -> None:
        self.steps, self.repeats = steps, repeats
        self.plain: dict[str, tuple[gym.Env[Any, Any], list[Any]]] = {}
        for name in (LAKE, CAR, CONTINUOUS):
            env = gym.make(name)
            env.reset(seed=0)
            single = [row[0] for row in actions_of(name, 1, 4096)]
            self.plain[name] = env, [action if name == CONTINUOUS else int(action) for action in single]

    def measure(self, cases: dict[str, tuple[str, int, Callable[[Any], Any]]]) -> dict[str, tuple[float, float]]:
        """Seconds a step and the ratio to plain, by case.

        Args:
            cases: plain id, number of sub-environments and step, by name.
        """
        ratios: dict[str, list[float]] = {name: [] for name in cases}
        times: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(self.repeats):
            for name, (plain, number, step) in cases.items():
                env, single = self.plain[plain]
                before = seconds_per_step(env, single)
                steps = min(max(8, self.steps // number), 4096)
                ours = seconds(step, actions_of(plain, number), number, steps)
                base = (before + seconds_per_step(env, single)) / 2
                ratios[name].append(base / ours)
                times[name].append(ours)
        return {name: (statistics.median(times[name]), statistics.median(ratios[name])) for name in cases}


def print_overhead(number: int, steps: int, repeats: int) -> None:
    """Print the overhead of drifts: each case between two measurements of the same lakes without drift.

    Args:
        number: the number of lakes.
        steps: steps of a measurement, in total over the lakes.
        repeats: measurements of each case.
    """
    plans = {f"each changes once in {span:,} steps": once_in(span) for span in (1000, 4000, 16_000)}
    plans = {"no drift again": make_schedule("step", SLIP), **plans, "at each step": ramp(SLIP, {"slip": 0.6})}
    without_drift = native(LAKE, number, schedule=make_schedule("step", SLIP))
    drifting_lakes = {name: native(LAKE, number, schedule=plan) for name, plan in plans.items()}
    found: dict[str, list[float]] = {name: [] for name in plans}
    actions, turn = actions_of(LAKE, number), max(8, steps // number)
    for _ in range(repeats):
        before = seconds(without_drift, actions, number, turn)
        for name, step in drifting_lakes.items():
            ours = seconds(step, actions, number, turn)
            after = seconds(without_drift, actions, number, turn)
            found[name].append(2 * ours / (before + after) - 1)
            before = after
    print(f"\noverhead of drifts of the slip, {number:,} lakes")
    for name, shares in found.items():
        print(f"{name:<44}{statistics.median(shares):>12.1%}")


def lake_of(size: int) -> list[str]:
    """A map with a hole in every fourth tile of every second row."""
    rows = [["H" if row % 2 and column % 4 == 1 else "F" for column in range(size)] for row in range(size)]
    rows[0][0], rows[-1][-1] = "S", "G"
    return ["".join(row) for row in rows]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog="python -m benchmarks.vector --repeats 5 --numbers 1024"
    )
    parser.add_argument("--steps", type=int, default=400_000, help="steps a repeat (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=9, help="repeats of each case (default: %(default)s)")
    parser.add_argument("--numbers", type=int, nargs="+", default=list(TARGETS), help="sub-environments")
    arguments = parser.parse_args()
    measurement = RatioMeasurement(arguments.steps, arguments.repeats)
    print(f"drift-envs {drift_envs.__version__}, gymnasium {gym.__version__}, numpy {np.__version__}")
    for number in arguments.numbers:
        cases = {name: (plain, number, native(plain, number, **keywords)) for name, plain, keywords in CASES}
        target = TARGETS.get(number, "none")
        print(f"\n{number:,} sub-environments, target {target}\n{'case':<44}{'ns a step':>12}{'ratio':>8}")
        for name, (time_, ratio) in measurement.measure(cases).items():
            print(
                f"{name:<44}{time_ * 1e9:>12.1f}{ratio:>8.2f}"
                if ratio < 2
                else f"{name:<44}{time_ * 1e9:>12.1f}{ratio:>8.0f}"
            )
        print_overhead(number, arguments.steps, arguments.repeats)
    print(f"\ntime by the number of sub-environments (default schedules)\n{'number':>10}{'lake ns':>12}{'car ns':>12}")
    grown = {
        f"{plain} {number}": (plain, number, native(plain, number))
        for number in (1, 16, 64, 256, 1024, 4096, 16_384, 65_536)
        for plain in (LAKE, CAR)
    }
    found = measurement.measure(grown)
    for number in (1, 16, 64, 256, 1024, 4096, 16_384, 65_536):
        lake, car = (found[f"{plain} {number}"][0] * 1e9 for plain in (LAKE, CAR))
        print(f"{number:>10,}{lake:>12.1f}{car:>12.1f}")
    print(f"\ntime by the size of the map (4,096 lakes)\n{'map':>10}{'ns':>12}")
    maps = {}
    for size in (4, 8, 16, 32, 64):
        other = [row.replace("H", "F") for row in lake_of(size)]
        drift = {"name": "thaw", "every": 40, "for": 20, "set": {"map": other}}
        schedule = make_schedule("episode", {"map": lake_of(size)}, drift)
        maps[f"{size}x{size}"] = LAKE, 4096, native(LAKE, 4096, schedule=schedule)
    for name, (time_, _) in measurement.measure(maps).items():
        print(f"{name:>10}{time_ * 1e9:>12.1f}")


if __name__ == "__main__":
    main()

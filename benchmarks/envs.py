"""The speed of the drifting environments relative to Gymnasium's.

`python -m benchmarks.envs` prints, for each case, the time of a step (resets included) and the ratio to
plain `gymnasium.make` measured directly before and after; above 1 is faster. The cases are interleaved, and
medians of processor time are printed, so that other work on the machine has little effect on the ratios.
Environments of our own have nothing to be compared with: their steps a second are printed, with admissible actions.

`python -m benchmarks.envs --against COMMIT` plays the same on the tree of another commit and on this one, in processes
that alternate, and prints how the ratios changed: above 1 this tree is faster.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import drift_envs  # registers the ids

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"drift_envs": "drift_envs", "drift_schedules": "schedules", "webshop_server": "webshop_server"}
"""The folder of each package that is played."""

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

RESETS: list[tuple[str, str, dict[str, Any], float | None]] = [
    ("lake, reset", LAKE, {}, None),
    ("car, reset", CAR, {}, None),
]
"""The same for resets without a step."""

ALTERNATE_REPEATS = 3
"""Repeats in each of the alternating processes of `--against`."""

Figures = dict[str, tuple[float, float]]
"""For each case the median microseconds and the median ratio; of environments of our own the steps a second alone."""

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


def seconds_per_reset(env: gym.Env[Any, Any], actions: list[Any]) -> float:
    """The mean time of a reset, as many as there are actions."""
    start = time.process_time()
    for _ in actions:
        env.reset()
    return (time.process_time() - start) / len(actions)


def measure(steps: int, repeats: int, only: str = "") -> Figures:
    """The time of a step or reset of each case, relative to plain Gymnasium; cases are interleaved."""
    moves = np.random.default_rng(0).integers(3, size=steps)
    discrete: list[Any] = moves.tolist()
    forces: list[Any] = list((moves - 1.0).astype(np.float32).reshape(-1, 1))
    pairs: dict[str, tuple[Callable[..., float], list[Any], gym.Env[Any, Any], gym.Env[Any, Any]]] = {}
    for cases, timed in ((CASES, seconds_per_step), (RESETS, seconds_per_reset)):
        for name, plain, keywords, _ in cases:
            if only not in name:
                continue
            actions = forces if plain == CONTINUOUS else discrete
            pairs[name] = (timed, actions, gym.make(plain), gym.make(drifting(plain), **keywords))
            for env in pairs[name][2:]:
                env.reset(seed=0)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in pairs}
    for _ in range(repeats):
        for name, (timed, actions, base, ours) in pairs.items():
            before = timed(base, actions)
            taken = timed(ours, actions)
            times[name].append((taken, (before + timed(base, actions)) / 2))
    return {
        name: (statistics.median(own for own, _ in found) * 1e6, statistics.median(base / own for own, base in found))
        for name, found in times.items()
    }


def measure_rates(steps: int, repeats: int, only: str = "") -> Figures:
    """The steps a second of each environment of our own; those that this tree does not have are left out."""
    return {
        name: (statistics.median(steps_per_second(env_id, keywords, steps) for _ in range(repeats)), 1.0)
        for name, env_id, keywords, _ in ENVIRONMENTS
        if env_id in gym.registry and only in name
    }


def print_figures(figures: Figures, rates: Figures) -> None:
    """Print both tables."""
    print(f"drift-envs {drift_envs.__version__}, gymnasium {gym.__version__}, numpy {np.__version__}")
    print(f"{'case':<44}{'us':>10}{'ratio':>8}{'target':>8}")
    targets = {name: target for name, _, _, target in CASES}
    for name, (taken, ratio) in figures.items():
        target = targets.get(name)
        print(f"{name:<44}{taken:>10.2f}{ratio:>8.2f}{'' if target is None else f'{target:.1f}':>8}")
    print()
    print(f"{'environment':<44}{'steps a second':>16}{'target':>10}")
    for name, _, _, goal in ENVIRONMENTS:
        if name in rates:
            print(f"{name:<44}{rates[name][0]:>16,.0f}{'' if goal is None else f'{goal:,}':>10}")


def place_tree(commit: str | None, folder: Path) -> Path:
    """Put the packages of a commit, or links to those of this tree, where `PYTHONPATH` can name them."""
    folder.mkdir()
    source = ROOT
    if commit is not None:
        source = folder / "source"
        packed = subprocess.run(
            ["git", "archive", commit, *PACKAGES.values()], cwd=ROOT, check=True, capture_output=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(source, filter="data")
    for package, inside in PACKAGES.items():
        (folder / package).symlink_to(source / inside)
    return folder


def measure_elsewhere(folder: Path, options: list[str]) -> tuple[Figures, Figures]:
    """Measure once in a process of its own, with the packages of a folder."""
    found = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--json", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    place, figures, rates = json.loads(found.stdout)
    if Path(place).resolve() != (folder / "drift_envs").resolve():
        raise RuntimeError(f"the packages of {folder} should be played. Received {place}")
    return figures, rates


def compare(commit: str, steps: int, repeats: int, only: str) -> None:
    """Measure this tree and that of a commit alternately, and print the median quotients of the pairs."""
    options = ["--steps", str(steps), "--repeats", str(ALTERNATE_REPEATS), "--only", only]
    with tempfile.TemporaryDirectory() as scratch:
        trees = [place_tree(each, Path(scratch) / name) for each, name in ((None, "here"), (commit, "there"))]
        runs = [[measure_elsewhere(tree, options) for tree in trees] for _ in range(repeats)]
    for kind, place, title, digits in ((0, 1, "ratio to Gymnasium", 2), (1, 0, "steps a second", 0)):
        print(f"{title:<44}{'here':>10}{commit[:12]:>14}{'here / there':>14}")
        for name in runs[0][0][kind]:
            if name in runs[0][1][kind]:
                pairs = [[run[kind][name][place] for run in pair] for pair in runs]
                here, there = (statistics.median(column) for column in zip(*pairs, strict=True))
                quotient = statistics.median(own / other for own, other in pairs)
                print(f"{name:<44}{here:>10,.{digits}f}{there:>14,.{digits}f}{quotient:>14.3f}")
        print()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0],
        epilog="python -m benchmarks.envs --repeats 7; python -m benchmarks.envs --against v1.0 --only car",
    )
    parser.add_argument("--steps", type=int, default=10_000, help="steps a repeat (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=9, help="repeats, or pairs of processes (default: %(default)s)")
    parser.add_argument("--only", metavar="TEXT", default="", help="the cases whose name contains this text")
    parser.add_argument("--against", metavar="COMMIT", help="compare with the tree of this commit")
    parser.add_argument("--json", action="store_true", help="print where the package is, and the figures as JSON")
    arguments = parser.parse_args()
    steps, repeats, only = arguments.steps, arguments.repeats, arguments.only
    if arguments.against is not None:
        compare(arguments.against, steps, repeats, only)
        return
    figures = measure(steps, repeats, only)
    rates = measure_rates(steps, repeats, only)
    if arguments.json:
        print(json.dumps([str(Path(drift_envs.__file__).parent), figures, rates]))
    else:
        print_figures(figures, rates)


if __name__ == "__main__":
    main()

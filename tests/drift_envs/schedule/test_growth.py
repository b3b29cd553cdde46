"""Nothing costs the square of its input: CPU time of ten times as much, within one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

import drift_envs  # noqa: F401
from drift_envs.envs.make import knob_table_of
from drift_envs.schedule import load_schedule

LAKE = "DriftFrozenLake-v0"
TABLE = knob_table_of(LAKE)
MOST = 60.0
"""Ten times as much costs ten times as much; the square would be a hundred."""


def load_drifts(count: int) -> None:
    drifts = [{"at": tick, "set": {"slip": (tick % 7) / 10}} for tick in range(count)]
    load_schedule({"version": 1, "name": "many", "env": LAKE, "drifts": drifts}, table=TABLE)


def load_recurring(count: int) -> None:
    """Drifts that recur and begin one after the other: each beginning is met by each of them."""
    drifts = [{"at": 100 * index, "every": 7, "for": 2, "set": {"slip": 0.5}} for index in range(1, count + 1)]
    load_schedule({"version": 1, "name": "late", "env": LAKE, "drifts": drifts}, table=TABLE)


def load_choice(count: int) -> None:
    values = [index / (2 * count) for index in range(count)]
    drift = {"every": 5, "choice": {"slip": values}}
    load_schedule({"version": 1, "name": "choice", "env": LAKE, "drifts": [drift]}, table=TABLE)


def load_choices(count: int) -> None:
    """As many pairs of values as the square."""
    values = [index / (2 * count) for index in range(count)]
    drift = {"every": 5, "choice": {"slip": values, "transient": values}}
    load_schedule({"version": 1, "name": "choices", "env": LAKE, "drifts": [drift]}, table=TABLE)


def read_log(count: int) -> None:
    drifts = [{"every": 3 + index, "walk": {name: 0.01}} for index, name in enumerate(("slip", "transient"))]
    env = gym.make(LAKE, schedule={"version": 1, "name": "walks", "drifts": drifts})
    env.reset(seed=0)
    for _ in range(count):
        env.reset()
    assert len(env.get_wrapper_attr("drift_log")) > count / 3


def spend(work: Callable[[int], Any], count: int) -> float:
    """The least CPU time of two tries."""
    times = []
    for _ in range(2):
        begun = time.process_time()
        work(count)
        times.append(time.process_time() - begun)
    return min(times)


@pytest.mark.parametrize(
    ("work", "count"),
    [(load_drifts, 100), (load_recurring, 50), (load_choice, 1000), (load_choices, 100), (read_log, 1000)],
    ids=["drifts", "recurring", "choice", "choices", "log"],
)
def test_ten_times_as_much_costs_about_ten_times_as_much(work: Callable[[int], Any], count: int) -> None:
    work(count)
    assert spend(work, 10 * count) < MOST * max(spend(work, count), 0.002)

"""Warnings of time that passes otherwise than it is meant to: a seed in a lifetime, an end before the first drift."""

from __future__ import annotations

import contextlib
import copy
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import SyncVectorEnv

import drift_envs  # noqa: F401
from drift_envs import DriftWrapper
from drift_envs.cli import main
from drift_envs.errors import DriftWarning
from drift_envs.integrations.lifetime import TextLifetime
from drift_envs.wrappers.twin import twin

pytestmark = [pytest.mark.filterwarnings("error::UserWarning"), pytest.mark.filterwarnings("ignore:.*is different")]

POLE = {"version": 1, "name": "pole", "drifts": [{"at": 7, "set": {"masspole": 1.0}}]}
SLOW = {**POLE, "clock": "step", "drifts": [{"at": 40, "set": {"masspole": 1.0}}]}
LAKE = {"version": 1, "name": "lake", "clock": "step", "drifts": [{"at": 30, "set": {"slip": 0.5}}]}


def pole(schedule: Any = POLE) -> DriftWrapper:
    return DriftWrapper(gym.make("CartPole-v1"), schedule)


def live(env: gym.Env[Any, Any], episodes: int, steps: int = 3, seed: int | None = 0) -> None:
    for episode in range(episodes):
        env.reset(seed=seed if episode == 0 else None)
        for step in range(steps):
            env.step(step % 2)


def test_an_end_before_the_first_drift() -> None:
    env = pole()
    live(env, 6)
    with pytest.warns(DriftWarning, match="closed at tick 5 .* first drift comes at tick 7: nothing has drifted$"):
        env.close()
    env.close()  # a second call says no more
    env = pole(SLOW)
    live(env, 6)
    with pytest.warns(DriftWarning, match="closed at tick 17 .* at tick 40.*a tick is a step of one copy"):
        env.close()


@pytest.mark.parametrize(
    "close",
    [
        lambda envs: envs.close(),
        lambda envs: [env.close() for env in envs.envs],
        lambda envs: [env.close() for env in reversed(envs.envs)],
    ],
    ids=["all", "each", "last first"],
)
def test_copies_are_warned_of_once(close: Callable[[SyncVectorEnv], Any]) -> None:
    """Even at different ticks; environments of another schedule, and those that are made later, have their own."""
    with contextlib.closing(pole({**POLE, "name": "other"})) as other:
        envs = SyncVectorEnv([pole] * 3)
        for ahead in range(3):
            live(envs.envs[ahead], 3 + ahead)
        live(other, 6)
        with pytest.warns(DriftWarning, match="the schedule `pole`") as caught:
            close(envs)
        assert len(caught) == 1
        with pytest.warns(DriftWarning, match="the schedule `other`"):
            other.close()
    later = pole()
    live(later, 6)
    with pytest.warns(DriftWarning, match="the schedule `pole`"):
        later.close()


@pytest.mark.parametrize(
    ("schedule", "run"),
    [
        (POLE, lambda env: live(env, 8)),
        (POLE, lambda env: live(env, 9, steps=0)),
        (POLE, lambda env: live(env, 1)),
        (POLE, lambda env: None),
        (POLE, lambda env: (env.reset(seed=1, options={"drift_tick": 7}), [env.step(0) for _ in range(6)])),
        (None, lambda env: live(env, 5)),
        ({"version": 1, "name": "still", "base": {"masspole": 0.3}}, lambda env: live(env, 5)),
        ({**POLE, "drifts": [{"at": 0, "set": {"masspole": 1.0}}]}, lambda env: live(env, 5)),
        ({**POLE, "drifts": [{"at": 2, "set": {"masspole": 0.1}}]}, lambda env: live(env, 5)),
    ],
    ids=["reached", "no steps", "trial", "no reset", "jump", "no schedule", "no drift", "at once", "no change"],
)
def test_no_warning_of_an_end(schedule: Any, run: Callable[[Any], None]) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        env = pole(schedule)
        run(env)
        env.close()
    assert seen == []


def test_twins_end_without_a_word() -> None:
    env = pole()
    env.reset(seed=0)
    second = twin(env)
    for _ in range(4):
        second.reset()
        for _ in range(5):
            second.step(0)
    second.close()
    assert env.drift_state.tick == 0


def test_a_seed_in_the_middle_of_a_lifetime() -> None:
    env = pole()
    live(env, 3)
    copied = copy.deepcopy(env)
    with pytest.warns(DriftWarning, match=re.escape("has rewound the schedule `pole` after tick 2")) as caught:
        env.reset(seed=1)
    assert caught[0].filename == __file__
    live(env, 9, seed=None)
    env.reset(seed=2)  # once is enough
    env.close()  # the lifetime before it has drifted
    copied.reset(seed=3, options={"drift_clock": "continue"})
    copied.reset(seed=3, options={"drift_phase": "drift-1"})  # who jumps knows about time


@pytest.mark.parametrize("way", ["native", "sync"])
def test_vector_environments(way: str) -> None:
    mode = {"vectorization_mode": "vector_entry_point" if way == "native" else "sync"}

    def make() -> Any:
        return gym.make_vec("DriftFrozenLake-v0", num_envs=3, schedule=LAKE, **mode)

    def walk(envs: Any, steps: int) -> None:
        for _ in range(steps):
            envs.step([0, 1, 0])

    short = make()
    short.reset(seed=0)
    walk(short, 20)
    with pytest.warns(DriftWarning, match="has rewound the schedule `lake` after tick"):
        short.reset(seed=5)
    walk(short, 9)
    with pytest.warns(DriftWarning, match="first drift comes at tick 30"):
        short.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        again = make()
        again.reset(seed=0)
        walk(again, 9)
        again.close()
    full = make()
    full.reset(seed=0)
    walk(full, 60)
    full.close()
    tried = make()
    tried.reset(seed=0)
    tried.close()


def test_commands_and_lifetimes_end_when_they_are_told_to(tmp_path: Path) -> None:
    life = TextLifetime("DriftFrozenLake-v0", episodes=2)
    life.reset()
    while not life.is_over:
        if life.act("0")["ended"] and not life.is_over:
            life.reset()
    life.close()
    out = str(tmp_path / "a.png")
    assert main(["record", "DriftMountainCar-v0", "--phases", "1", "--out", out]) == 0
    assert main(["check", "frozen_lake/thaw", "--episodes", "2", "--phases", "2", "--steps", "8"]) == 0

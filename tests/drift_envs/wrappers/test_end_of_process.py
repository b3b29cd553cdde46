"""A program that ends before the first drift, and closes nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import gymnasium as gym
from drift_envs.wrappers import DriftWrapper, HeldClock

schedule = {{"version": 1, "name": "late", "clock": "step", "drifts": [{{"at": {at}, "set": {{"{knob}": {value}}}}}]}}
{make}
def play(env, steps):
    env.reset(seed=0)
    for _ in range(steps):
        if any(env.step(env.action_space.sample())[2:4]):
            env.reset()
{end}
"""
SINGLE = 'env = DriftWrapper(gym.make("CartPole-v1"), schedule)'
NATIVE = 'env = gym.make_vec("DriftMountainCar-v0", num_envs=4, schedule=schedule)'
ROUNDS = "env.reset(seed=0)\nfor _ in range({}):\n    env.step(env.action_space.sample())"


def errors(make: str, end: str, at: int = 40_000) -> str:
    """What a program writes to the terminal when it ends."""
    knob, value = ("masspole", 0.5) if "CartPole" in make else ("force", 0.0008)
    program = PROGRAM.format(make=make, end=end, at=at, knob=knob, value=value)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    return done.stderr


@pytest.mark.integration
@pytest.mark.parametrize(("make", "end"), [(SINGLE, "play(env, 11_000)"), (NATIVE, ROUNDS.format(11_000))])
def test_a_training_before_the_first_drift_is_warned_of_once(make: str, end: str) -> None:
    found = errors(make, f"{end}\nother = env")
    assert found.count("was left at tick 1") == found.count("nothing has drifted") == 1
    assert "first drift comes at tick 40000" in found
    assert "a tick is a step of one copy" in found


@pytest.mark.integration
@pytest.mark.parametrize(
    ("make", "end", "at"),
    [
        (SINGLE, "play(env, 11_000)", 5_000),  # it came
        (SINGLE, "play(env, 900)", 40_000),  # no training
        (NATIVE, ROUNDS.format(11_000), 5_000),
        (f"{SINGLE}\nenv = HeldClock(env)", "play(env, 11_000)", 40_000),  # an evaluation at one tick
        (SINGLE, "env.warns_of_end = False\nplay(env, 11_000)", 40_000),
        (SINGLE, "play(env, 11_000)\ndel env", 40_000),
    ],
)
def test_other_ends_are_quiet(make: str, end: str, at: int) -> None:
    assert errors(make, end, at) == ""


@pytest.mark.integration
def test_a_closed_environment_is_warned_of_once() -> None:
    assert errors(SINGLE, "play(env, 11_000)\nenv.close()").count("nothing has drifted") == 1


@pytest.mark.integration
def test_of_several_environments_one_is_closed_and_warned_of() -> None:
    twins = f"{SINGLE}\nother = DriftWrapper(gym.make('CartPole-v1'), schedule)"
    assert errors(twins, "play(env, 11_000)\nplay(other, 12_000)\nenv.close()").count("nothing has drifted") == 1

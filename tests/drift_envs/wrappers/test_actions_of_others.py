"""Actions that an environment of another package does not take are refused by name and rule, and time stands still."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from drift_envs import DriftWrapper
from drift_envs.errors import ArgumentError

NAN = float("nan")


def make(env_id: str, **knobs: Any) -> DriftWrapper:
    drifts = [{"at": 3, "set": knobs}]
    return DriftWrapper(gym.make(env_id), {"version": 1, "name": "p", "clock": "step", "drifts": drifts})


@pytest.mark.parametrize("action", ["left", None, 2, -1, 0.5, NAN, [0, 1], np.array([1.0]), np.int64(9)], ids=str)
@pytest.mark.parametrize(("env_id", "knob"), [("CartPole-v1", "masspole"), ("CliffWalking-v1", "reward_scale")])
def test_numbers(env_id: str, knob: str, action: Any) -> None:
    if env_id == "CliffWalking-v1":
        action = 4 if isinstance(action, int) and action == 2 else action
    env = make(env_id, **{knob: 2.0})
    env.reset(seed=0)
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"`action` should be an element of Discrete\("):
            env.step(action)
    assert env.drift_state.step == 0
    env.step(np.int64(1))
    assert env.drift_state.step == 1


@pytest.mark.parametrize("action", ["push", None, 1.0, [NAN], np.array([np.inf], np.float32), {"force": 1}], ids=str)
@pytest.mark.parametrize(("env_id", "knob"), [("Pendulum-v1", "l"), ("MountainCarContinuous-v0", "reward_scale")])
def test_forces(env_id: str, knob: str, action: Any) -> None:
    env = make(env_id, **{knob: 2.0})
    env.reset(seed=0)
    with pytest.raises(ArgumentError, match=r"`action` should be (finite numbers|an element) of .*Box"):
        env.step(action)
    assert env.drift_state.step == 0
    assert np.isfinite(env.step(np.array([0.5], np.float32))[0]).all()


def test_errors_that_no_action_causes_stay_what_they_are() -> None:
    class Broken(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            raise ValueError("the pump")

    env = DriftWrapper(Broken(gym.make("CartPole-v1")), {"version": 1, "name": "p", "drifts": []})
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"^the pump$"):
        env.step(1)

"""A driven knob has one owner, the schedule: every way in from outside raises, in every form."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from drift_envs.errors import DrivenKnobError
from drift_envs.wrappers import HeldClock, PhaseReturns

CASES = {
    "DriftMountainCar-v0": ("gravity", 0.002, "force", 0.0008),
    "DriftFrozenLake-v0": ("slip", 0.7, "transient", 0.1),
    "DriftMountainCarContinuous-v0": ("power", 0.001, "gravity", 0.002),
}
"""A knob that is driven with another value, and one that is not."""


def schedule_of(name, value):
    return {"version": 1, "name": "s", "clock": "step", "drifts": [{"at": 1000, "set": {name: value}}]}


def single(env_id, schedule):
    held = HeldClock(gym.make(env_id, schedule=schedule))
    env = PhaseReturns(held)
    env.reset(seed=0)
    inner = held.env.env  # below `TimeLimit`
    return env, {
        "wrapper": lambda name, value: setattr(inner, name, value),
        "outermost wrapper": lambda name, value: setattr(env, name, value),
        "held clock": lambda name, value: setattr(held, name, value),
        "unwrapped": lambda name, value: setattr(env.unwrapped, name, value),
        "unwrapped.set_knobs": lambda name, value: env.unwrapped.set_knobs({name: value}),
        "set_wrapper_attr": env.set_wrapper_attr,
        "set_knob": env.get_wrapper_attr("set_knob"),
        "set_knobs": lambda name, value: env.get_wrapper_attr("set_knobs")({name: value}),
    }


def native(env_id, schedule):
    envs = gym.make_vec(env_id, num_envs=2, schedule=schedule)
    envs.reset(seed=0)
    return envs, {
        "set_attr": envs.set_attr,
        "attribute of all": lambda name, value: setattr(envs, name, value),
        "set_attr of each": lambda name, value: envs.set_attr(name, [value, value]),
        "attribute": lambda name, value: [setattr(env, name, value) for env in envs.envs],
        "last copy": lambda name, value: setattr(envs.envs[1], name, value),
        "call set_wrapper_attr": lambda name, value: envs.call("set_wrapper_attr", name, value),
        "call set_knob": lambda name, value: envs.call("set_knob", name, value),
        "call set_knobs": lambda name, value: envs.call("set_knobs", {name: value}),
        "call __setattr__": lambda name, value: envs.call("__setattr__", name, value),
        "single_env": lambda name, value: setattr(envs.single_env, name, value),
    }


def synchronous(env_id, schedule):
    envs = SyncVectorEnv([lambda: gym.make(env_id, schedule=schedule)] * 2)
    envs.reset(seed=0)
    return envs, {
        "set_attr": envs.set_attr,
        "call set_wrapper_attr": lambda name, value: envs.call("set_wrapper_attr", name, value),
        "call set_knobs": lambda name, value: envs.call("set_knobs", {name: value}),
        "sub-environment": lambda name, value: setattr(envs.envs[1].unwrapped, name, value),
        "set_knobs of a sub-environment": lambda name, value: envs.envs[1].unwrapped.set_knobs({name: value}),
    }


def read(envs, name):
    return envs.get_attr(name)[-1] if hasattr(envs, "get_attr") else envs.get_wrapper_attr(name)


@pytest.mark.parametrize("env_id", CASES)
@pytest.mark.parametrize("form", [single, native, synchronous], ids=lambda form: form.__name__)
def test_a_driven_knob_cannot_be_moved_from_outside(form, env_id):
    driven, value, free, other = CASES[env_id]
    envs, ways = form(env_id, schedule_of(driven, value))
    before = read(envs, driven)
    for way, act in ways.items():
        with pytest.raises(DrivenKnobError, match=f"`{driven}` is driven by the schedule"):
            act(driven, value)
        assert read(envs, driven) == before, way
    for way in ("set_wrapper_attr", "set_attr", "last copy", "call set_wrapper_attr", "call set_knobs"):
        if way in ways:
            start = read(envs, free)
            ways[way](free, other)
            assert read(envs, free) == other, way
            ways[way](free, start)


@pytest.mark.parametrize(
    "copy", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copied", "pickled"]
)
@pytest.mark.parametrize("env_id", [*CASES, "DriftCartPole-v0"])
def test_a_copy_refuses_too_and_drifts(copy, env_id):
    driven, value = CASES[env_id][:2] if env_id in CASES else ("gravity", 12.0)
    schedule = {"version": 1, "name": "s", "clock": "step", "drifts": [{"at": 2, "set": {driven: value}}]}
    env = gym.make(env_id, schedule=schedule)
    env.reset(seed=0)
    made = copy(env)
    with pytest.raises(DrivenKnobError, match=f"`{driven}`"):
        made.unwrapped.set_knobs({driven: value})
    for _ in range(3):
        made.step(made.action_space.sample())
    assert made.get_wrapper_attr("drift_state").knobs[driven] == value


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore::UserWarning")  # Gymnasium reports the error of each process by warnings
@pytest.mark.parametrize(
    "act",
    [
        lambda envs: envs.set_attr("gravity", 0.002),
        lambda envs: envs.call("set_wrapper_attr", "gravity", 0.002),
        lambda envs: envs.call("set_knobs", {"gravity": 0.002}),
    ],
    ids=["set_attr", "call set_wrapper_attr", "call set_knobs"],
)
def test_processes_refuse_too(act):
    envs = AsyncVectorEnv([lambda: gym.make("DriftMountainCar-v0", schedule=schedule_of("gravity", 0.002))] * 2)
    envs.reset(seed=0)
    with pytest.raises(DrivenKnobError, match="`gravity` is driven by the schedule"):
        act(envs)
    envs.close(terminate=True)


def test_several_knobs_are_set_together_or_not_at_all():
    cars = gym.make_vec("DriftMountainCar-v0", num_envs=2, schedule=schedule_of("gravity", 0.002))
    cars.reset(seed=0)
    with pytest.raises(DrivenKnobError, match="`gravity`"):
        cars.call("set_knobs", {"force": 0.0008, "gravity": 0.002})
    assert cars.get_attr("force") == (0.001, 0.001)
    np.testing.assert_array_equal(cars.get_attr("gravity"), [0.0025, 0.0025])

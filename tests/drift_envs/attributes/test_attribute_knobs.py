"""Knobs of environments that declare none."""

import re

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.errors import DriftEnvsError, DrivenKnobError, ScheduleError
from drift_envs.wrappers import DriftWrapper

BUILT_IN = {"CartPole-v1": "masspole", "Acrobot-v1": "link_mass_1", "Pendulum-v1": "m"}


def plan(base=None, drifts=(), **keys):
    return {"version": 1, "name": "test", "base": base or {}, "drifts": list(drifts), **keys}


def trajectory(env, seed=0, steps=40):
    env.action_space.seed(seed)
    found = [env.reset(seed=seed)[0]]
    for _ in range(steps):
        observation, _, terminated, *_ = env.step(env.action_space.sample())
        found.append(observation)
        if terminated:
            break
    return np.array(found)


@pytest.mark.parametrize(("env_id", "knob"), BUILT_IN.items())
def test_a_schedule_at_the_defaults_changes_nothing(env_id, knob):
    env = DriftWrapper(gym.make(env_id).unwrapped, None)
    default = env.knob_table[knob].default
    same = DriftWrapper(gym.make(env_id).unwrapped, plan({name: k.default for name, k in env.knob_table.items()}))
    assert same.drift_state.knobs[knob] == default
    assert np.array_equal(trajectory(same), trajectory(gym.make(env_id).unwrapped))


@pytest.mark.parametrize("env_id", BUILT_IN)
def test_every_built_in_knob_matters(env_id):
    plain = trajectory(gym.make(env_id).unwrapped)
    env = DriftWrapper(gym.make(env_id).unwrapped, None)
    own = [name for name in env.drift_state.knobs if name != "max_torque"]
    for name in own:
        knob = env.knob_table[name]
        changed = DriftWrapper(gym.make(env_id).unwrapped, plan({name: (knob.default or 0.5) * 1.5}))
        assert not np.array_equal(trajectory(changed), plain), name


def test_what_is_derived_follows():
    env = DriftWrapper(gym.make("CartPole-v1"), plan(drifts=[{"at": 1, "set": {"masspole": 0.4, "length": 2}}]))
    base = env.unwrapped
    env.reset(seed=0)
    assert (base.total_mass, base.polemass_length) == (1.1, 0.05)
    env.reset()
    assert (base.total_mass, base.polemass_length) == (1.4, 0.8)
    acrobot = DriftWrapper(gym.make("Acrobot-v1"), plan({"link_length_1": 2}))
    acrobot.reset(seed=0)
    assert (acrobot.unwrapped.LINK_LENGTH_1, acrobot.unwrapped.LINK_COM_POS_1) == (2.0, 1.0)
    assert type(acrobot.unwrapped).LINK_LENGTH_1 == 1.0


def test_declared_knobs_and_what_follows_them():
    knobs = {
        "pole": {"attribute": "masspole", "bounds": [0.01, 1]},
        "limit": {"attribute": "x_threshold", "bounds": [1, 3]},
        "derived": {
            "total_mass": {"sum": ["masspole", "masscart"]},
            "polemass_length": {"product": ["masspole", "length"]},
        },
    }
    env = DriftWrapper(gym.make("CartPole-v1"), plan({"pole": 0.3}, knobs=knobs))
    env.reset(seed=0)
    assert env.unwrapped.masspole == 0.3
    assert env.unwrapped.total_mass == pytest.approx(1.3)
    assert env.drift_state.knobs["pole"] == 0.3
    assert env.drift_state.knobs["limit"] == 2.4


class Machine(gym.Env):
    """Adds the gear to a counter; the mode is behind a method."""

    observation_space = gym.spaces.Box(-1000, 1000, (2,))
    action_space = gym.spaces.Discrete(2)
    gear = 2
    label = "slow"

    def __init__(self):
        self._mode = 0

    def choose(self, mode):
        if mode not in (0, 1, 2):
            raise ValueError("no such mode")
        self._mode = mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._see(), {}

    def step(self, action):
        self.count += self.gear
        return self._see(), 0.0, False, False, {}

    def _see(self):
        return np.array([self.count, self._mode], np.float32)


def test_a_knob_has_the_type_of_its_attribute():
    knobs = {"gear": {"bounds": [1, 9]}, "label": {}}
    env = DriftWrapper(Machine(), plan(drifts=[{"at": 1, "set": {"gear": 3, "label": "fast"}}], knobs=knobs))
    env.reset(seed=0)
    assert type(env.unwrapped.gear) is int
    env.reset()
    assert (env.unwrapped.gear, type(env.unwrapped.gear), env.unwrapped.label) == (3, int, "fast")
    with pytest.raises(ScheduleError, match=re.escape("`gear` should be a whole number. Received 2.5")):
        DriftWrapper(Machine(), plan(drifts=[{"at": 1, "set": {"gear": 2.5}}], knobs=knobs))
    half = {"gear": {"kind": "float", "bounds": [1, 9]}}
    env = DriftWrapper(Machine(), plan({"gear": 2.5}, knobs=half))
    env.reset(seed=0)
    assert env.unwrapped.gear == 2.5


def test_a_method_sets_what_no_attribute_shows():
    knobs = {"mode": {"setter": "choose", "default": 0, "bounds": [0, 5]}}
    env = DriftWrapper(Machine(), plan(drifts=[{"every": 2, "for": 1, "set": {"mode": 2}}], knobs=knobs))
    seen = [env.reset(seed=0 if episode == 0 else None)[0][1] for episode in range(5)]
    assert seen == [0, 0, 2, 0, 2]
    assert env.drift_state.knobs["mode"] == 2
    change = next(iter(env.drift_log))
    assert (change.tick, change.old, change.new) == (2, 0, 2)
    refused = DriftWrapper(Machine(), plan(drifts=[{"at": 1, "set": {"mode": 4}}], knobs=knobs))
    refused.reset(seed=0)
    with pytest.raises(DriftEnvsError, match="can't be set to 4: no such mode"):
        refused.reset()


@pytest.mark.parametrize(
    ("knob", "message"),
    [
        ({"setter": "choose"}, "state its value in a new environment as `default`"),
        ({"setter": "chose", "default": 0}, "`setter` should be a method of Machine. Received 'chose'"),
        ({"setter": "gear", "default": 0}, "`setter` should be a method of Machine. Received 'gear'"),
    ],
    ids=str,
)
def test_setters_that_cannot_be_used(knob, message):
    with pytest.raises(ScheduleError, match=re.escape(message)):
        DriftWrapper(Machine(), plan(knobs={"mode": knob}))


def test_setting_from_outside_is_noticed():
    drifts = [{"at": 1, "set": {"masspole": 0.4}}]
    env = DriftWrapper(gym.make("CartPole-v1"), plan(drifts=drifts))
    env.reset(seed=0)
    with pytest.raises(DrivenKnobError, match="`masspole` is driven"):
        env.set_wrapper_attr("masspole", 0.2)
    env.unwrapped.masspole = 0.2
    with pytest.raises(DrivenKnobError, match=re.escape("It was set to 0.1 and is 0.2 now")):
        env.reset()
    declared = plan({"pole": 0.3}, knobs={"pole": {"attribute": "masspole", "bounds": [0, 1]}})
    env = DriftWrapper(gym.make("CartPole-v1"), declared)
    with pytest.raises(DrivenKnobError, match="`masspole` is driven"):
        env.set_wrapper_attr("masspole", 0.2)


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"friction": {"bounds": [0, 1]}}, "CartPoleEnv has no attribute `friction`"),
        ({"pole": {"attribute": "spec.idea", "bounds": [0, 1]}}, "CartPoleEnv has no attribute `spec.idea`"),
        ({"masspole": {"bounds": [1, 2]}}, "`masspole` should be in the interval [1.0, 2.0]. Received 0.1"),
        ({"derived": {"mass": {"sum": ["masspole"]}}}, "CartPoleEnv has no attribute `mass`"),
        ({"kinematics_integrator": {"bounds": [0, 1]}}, "numbers alone. `kinematics_integrator` is 'euler'"),
    ],
    ids=str,
)
def test_knobs_that_are_not_there(knobs, message):
    with pytest.raises(ScheduleError, match=re.escape(message)):
        DriftWrapper(gym.make("CartPole-v1"), plan(knobs=knobs))

"""Knobs that need no attribute."""

import copy
import re

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.errors import ArgumentError, DrivenKnobError, ScheduleError
from drift_envs.registration import IDS
from drift_envs.wrappers import DriftWrapper, snapshot
from drift_envs.wrappers.effects import Effects
from drift_envs.wrappers.internal import layers


class Echo(gym.Env):
    """Shows the last action, pays it, and remembers all."""

    def __init__(self, actions=4):
        self.observation_space = gym.spaces.Box(-10, 10, (3,), np.float32)
        self.action_space = gym.spaces.Discrete(actions)
        self.done = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.done = []
        return np.array([1, 2, 3], np.float32), {}

    def step(self, action):
        self.done.append(action)
        return np.array([1, 2, action], np.float32), float(action), False, False, {}


def echo(**values):
    return DriftWrapper(Echo(), {"version": 1, "name": "test", "base": values})


def test_rewards():
    env = echo(reward_scale=2.5, reward_sign="-")
    env.reset(seed=0)
    assert env.step(2)[1] == -5.0


def test_permutations_move_whole_and_in_part():
    env = echo(action_permutation={"0": 1, "1": 0})
    env.reset(seed=0)
    for action in (0, 1, 2, np.int64(1)):
        env.step(action)
    assert env.unwrapped.done == [1, 0, 2, 0]


def test_late_actions():
    env = echo(action_delay=2)
    env.reset(seed=0)
    for action in (3, 1, 2, 0, 1):
        env.step(action)
    assert env.unwrapped.done == [3, 3, 3, 1, 2]
    env.reset()
    env.step(0)
    assert env.unwrapped.done == [0]


def test_late_arrays_are_those_that_were_meant():
    env = DriftWrapper(gym.make("Pendulum-v1"), {"version": 1, "name": "late", "base": {"action_delay": 1}})
    env.reset(seed=0)
    action = np.array([2.0], np.float32)
    env.step(action)
    action[0] = -2.0
    first = env.step(action)[0]
    plain = gym.make("Pendulum-v1")
    plain.reset(seed=0)
    plain.step(np.array([2.0], np.float32))
    assert (first == plain.step(np.array([2.0], np.float32))[0]).all()


@pytest.mark.parametrize(
    ("env_id", "wrong", "right"),
    [
        ("DriftFrozenLake-v0", ["x", None, 9, 1.5], 2),
        ("DriftMountainCarContinuous-v0", ["x", None, np.array([np.nan]), np.zeros(3)], np.array([0.5], np.float32)),
        ("DriftHouse-v0", [3, None], "look"),
        ("CartPole-v1", ["x", None, 9, 1.5], 1),
    ],
)
def test_a_wrong_action_is_refused_when_it_is_given_and_not_done_later(env_id, wrong, right):
    late = {"version": 1, "name": "late", "base": {"action_delay": 1}}
    env = gym.make(env_id, schedule=late) if env_id in IDS else DriftWrapper(gym.make(env_id), late)
    other = copy.deepcopy(env)
    for each in (env, other):
        each.reset(seed=0)
        each.step(right)
    for action in wrong:
        with pytest.raises(ArgumentError, match="`action` should be an element of"):
            env.step(action)
        assert repr(env.step(right)) == repr(other.step(right))


def test_an_action_that_waits_still_comes_after_a_refused_reset():
    env = DriftWrapper(gym.make("CartPole-v1"), {"version": 1, "name": "late", "base": {"action_delay": 1}})
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(ArgumentError):
        env.reset(options={"low": "x"})
    env.step(1)
    effects = next(layer for layer in layers(env) if isinstance(layer, Effects))
    assert effects.carried_out == 0


def test_a_snapshot_brings_the_noise_back():
    env = echo(observation_noise=0.5)
    env.reset(seed=0)
    saved = snapshot(env)
    first = [env.step(1)[0].tolist() for _ in range(3)]
    saved.restore()
    assert [env.step(1)[0].tolist() for _ in range(3)] == first


def test_masks_and_noise():
    env = echo(observation_mask="101")
    observation, _ = env.reset(seed=0)
    assert observation.tolist() == [1, 0, 3]
    noisy = echo(observation_noise=0.5, observation_mask="110")
    seen = np.array([noisy.reset(seed=0)[0], *(noisy.step(2)[0] for _ in range(600))])
    assert (seen[:, 2] == 0).all()
    assert seen[:, 0].std() == pytest.approx(0.5, rel=0.15)
    assert seen[:, 0].mean() == pytest.approx(1, abs=0.1)
    assert seen.dtype == np.float32
    again = [noisy.reset(seed=0)[0], *(noisy.step(2)[0] for _ in range(600))]
    assert np.array_equal(seen, again)
    assert not np.array_equal(seen[1], noisy.reset(seed=1)[0])


def test_masked_components_stay_in_the_space():
    env = gym.wrappers.RescaleObservation(Echo(), np.float32(2), np.float32(5))
    masked = DriftWrapper(env, {"version": 1, "name": "test", "base": {"observation_mask": "101"}})
    observation, _ = masked.reset(seed=0)
    assert observation[1] == 2.0
    assert masked.observation_space.contains(observation)


def test_a_mask_has_the_order_of_the_components_however_they_lie_in_memory():
    env = gym.wrappers.TransformObservation(
        Echo(), lambda seen: np.stack([seen, -seen]).T, gym.spaces.Box(-10, 10, (3, 2), np.float32)
    )
    masked = DriftWrapper(env, {"version": 1, "name": "test", "base": {"observation_mask": "110111"}})
    assert masked.reset(seed=0)[0].tolist() == [[1, -1], [0, -2], [3, -3]]


class Picture(gym.Env):
    """Shows 20,000 bytes of one brightness."""

    action_space = gym.spaces.Discrete(1)

    def __init__(self, dtype=np.uint8):
        self.observation_space = gym.spaces.Box(0, 255, (100, 200), dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.full((100, 200), 100, self.observation_space.dtype), {}


def test_noise_of_a_picture_is_rounded_and_cut():
    noisy = {"version": 1, "name": "n", "base": {"observation_noise": 10}}
    seen, _ = DriftWrapper(Picture(), noisy).reset(seed=0)
    assert seen.dtype == np.uint8
    assert seen.mean() == pytest.approx(100, abs=0.5)
    assert seen.std() == pytest.approx(10, rel=0.05)
    strong, _ = DriftWrapper(Picture(), {**noisy, "base": {"observation_noise": 1e6}}).reset(seed=0)
    assert (strong == 0).mean() == pytest.approx((strong == 255).mean(), abs=0.05)
    assert np.isin(strong, (0, 255)).mean() > 0.99
    with pytest.raises(ScheduleError, match="observation_noise: is no knob"):
        DriftWrapper(Picture(np.int64), noisy)


def test_effects_and_attributes_drift_together():
    drift = {"at": 1, "set": {"masspole": 0.5, "reward_scale": 3}}
    env = DriftWrapper(gym.make("CartPole-v1"), {"version": 1, "name": "both", "drifts": [drift]})
    env.reset(seed=0)
    assert env.step(0)[1] == 1.0
    env.reset()
    assert env.step(0)[1] == 3.0
    assert env.unwrapped.total_mass == 1.5
    assert env.drift_state.knobs["reward_scale"] == 3.0
    assert {change.knob for change in env.drift_log} == {"masspole", "reward_scale"}
    with pytest.raises(DrivenKnobError):
        env.reward_scale = 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"observation_mask": "10"}, "`observation_mask` should be 3 letters 0 or 1. Received '10'"),
        ({"observation_mask": "1x1"}, "`observation_mask` should be 3 letters"),
        ({"action_permutation": {"0": 1}}, "`action_permutation` should use every action once"),
        ({"action_permutation": {"7": 1}}, "`action_permutation` should map actions from 0 to 3"),
        ({"action_permutation": {"0": True}}, "`action_permutation` should map actions from 0 to 3"),
        ({"action_delay": 17}, "`action_delay` should be in the interval [0, 16]. Received 17"),
        ({"reward_sign": "minus"}, "`reward_sign` should be one of '+', '-'"),
    ],
    ids=str,
)
def test_refusals(values, message):
    with pytest.raises(ScheduleError, match=re.escape(message)):
        echo(**values)


def test_knobs_are_offered_where_they_fit():
    with pytest.raises(ScheduleError, match="observation_noise"):
        DriftWrapper(gym.make("FrozenLake-v1"), {"version": 1, "name": "n", "base": {"observation_noise": 1}})
    with pytest.raises(ScheduleError, match="action_permutation"):
        DriftWrapper(gym.make("Pendulum-v1"), {"version": 1, "name": "n", "base": {"action_permutation": {"0": 1}}})


class Masked(gym.Env):
    """Only the actions of the present turn are allowed, shown in every way that packages do."""

    action_space = gym.spaces.Discrete(5, start=1)
    observation_space = gym.spaces.Dict(
        {"observation": gym.spaces.Discrete(9), "action_mask": gym.spaces.MultiBinary(5)}
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.turn, self.carried_out = 0, []
        return self._see()

    def step(self, action):
        self.carried_out.append(int(action))
        allowed = action in self._allowed()
        self.turn += 1
        observation, info = self._see()
        return observation, float(allowed), False, False, info

    def action_masks(self):
        return np.array([action in self._allowed() for action in range(1, 6)])

    @property
    def valid_action_mask(self):
        return self.action_masks().astype(np.int8)

    def _allowed(self):
        return [[1, 2], [5], [2, 3, 4], [4, 1]][self.turn % 4]

    def _see(self):
        mask = self.valid_action_mask
        info = {"action_mask": mask, "legal_actions": self._allowed(), "agent": {"action_mask": mask.tolist()}}
        return {"observation": self.turn, "action_mask": mask.copy()}, {**info, "mask": 3}


ORDERS = st.permutations([1, 2, 3, 4, 5])


@settings(max_examples=20, deadline=None)
@given(st.lists(ORDERS, min_size=1, max_size=4), st.sampled_from(["episode", "step"]))
def test_masks_are_those_of_the_next_action(orders, clock):
    drifts = [{"name": f"d{at}", "at": at, "set": {"action_permutation": order}} for at, order in enumerate(orders)]
    env = DriftWrapper(Masked(), {"version": 1, "name": "m", "clock": clock, "drifts": drifts})
    for episode in range(4):
        observation, info = env.reset(seed=0 if episode == 0 else None)
        for _ in range(3):
            masks = [
                observation["action_mask"],
                info["action_mask"],
                info["agent"]["action_mask"],
                env.get_wrapper_attr("action_masks")(),
                env.get_wrapper_attr("valid_action_mask"),
            ]
            allowed = sorted(info["legal_actions"])
            assert [[place + 1 for place, flag in enumerate(mask) if flag] for mask in masks] == [allowed] * 5
            assert info["action_mask"].dtype == np.int8
            assert info["mask"] == 3
            action = allowed[0]
            observation, reward, _, _, info = env.step(action)
            assert reward == 1.0


def test_masks_of_taxi_are_true():
    drift = {"at": 3, "set": {"action_permutation": [5, 3, 0, 1, 2, 4]}}
    env = DriftWrapper(gym.make("Taxi-v4"), {"version": 1, "name": "t", "clock": "step", "drifts": [drift]})
    observation, info = env.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(300):
        action = int(rng.integers(6))
        previous, mask = observation, info["action_mask"]
        observation, _, terminated, truncated, info = env.step(action)
        if not terminated and not truncated and action not in (0, 5) and env.drift_state.tick >= 3:
            moves = observation != previous
            assert not moves or mask[action] == 1
        if terminated or truncated:
            observation, info = env.reset()


def test_an_environment_without_masks_gets_none():
    env = echo(action_permutation=[1, 0, 2, 3])
    assert env.reset(seed=0)[1] == {}
    assert not env.has_wrapper_attr("action_masks")
    with pytest.raises(AttributeError):
        env.get_wrapper_attr("action_masks")


def test_noise_on_integers_is_rounded() -> None:
    class Counter(gym.Env):
        observation_space = gym.spaces.Box(0, 255, (400,), np.uint8)
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.full(400, 100, np.uint8), {}

    drift = {"at": 0, "set": {"observation_noise": 0.2}}
    env = DriftWrapper(Counter(), {"version": 1, "name": "n", "drifts": [drift]})
    seen, _ = env.reset(seed=0)
    assert seen.dtype == np.uint8
    assert (seen == 100).mean() > 0.9, "a noise of 2.5 deviations is needed for another number"

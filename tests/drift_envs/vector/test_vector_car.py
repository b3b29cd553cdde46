"""Native cars are single cars, bit for bit; only where they start is drawn otherwise."""

from __future__ import annotations

import re

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.errors import ArgumentError

CAR, CONTINUOUS = "DriftMountainCar-v0", "DriftMountainCarContinuous-v0"
ENGINE = {CAR: "force", CONTINUOUS: "power"}
FOLDER = {CAR: "mountain_car", CONTINUOUS: "mountain_car_continuous"}


def schedules(env_id, written):
    engine = ENGINE[env_id]
    ramp = {"name": "r", "at": 3, "every": 300, "kind": "incremental", "over": 100, "for": 280, "set": {engine: 0.002}}
    walk = {"name": "s", "rate": 0.05, "walk": {engine: 0.0002}}
    coins = {"name": "g", "rate": 0.02, "for": 7, "kind": "gradual", "over": 3, "set": {"gravity": 0.002}}
    yield f"{FOLDER[env_id]}/goal"
    for clock in ("episode", "step", "episode_step"):
        yield written(clock, ramp, {"name": "w", "at": 40, "set": {"gravity": 0.002}})
        yield written(clock, walk, coins)


def driven(env_id, states, rng):
    """Actions that swing up, with some noise, so that episodes end in both ways."""
    actions = np.where(rng.random(len(states)) < 0.2, rng.integers(0, 3, len(states)), 2 * (states[:, 1] >= 0))
    if env_id == CAR:
        return actions
    return ((actions - 1) * 1.3 * rng.random(len(states))).astype(np.float32).reshape(-1, 1)  # some are cut


def align(one, states, which, precision):
    for index in np.flatnonzero(which):
        one.envs[index].unwrapped.state = np.array(states[index], precision)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("env_id", [CAR, CONTINUOUS])
def test_bit_for_bit(pair, written, env_id, mode):
    number, precision = 4, np.float64 if env_id == CAR else np.float32
    for schedule in schedules(env_id, written):
        one, other = pair(env_id, number, mode, schedule=schedule)
        one.reset(seed=3)
        other.reset(seed=3)
        align(one, other.get_attr("state"), np.ones(number), precision)
        rng = np.random.default_rng(0)
        dead = np.zeros(number, bool)
        for step in range(650):
            actions = driven(env_id, np.array(other.get_attr("state")), rng)
            expected, found = one.step(actions), other.step(actions)
            ended = expected[2] | expected[3]
            begun = dead if mode == "NextStep" else ended
            np.testing.assert_array_equal(expected[0][~begun], found[0][~begun])
            for old, new in zip(expected[1:4], found[1:4], strict=True):
                np.testing.assert_array_equal(old, new)
                assert old.dtype == new.dtype
            align(one, other.get_attr("state"), begun, precision)
            if step % 47 == 0:
                assert one.get_attr("drift_state") == other.get_attr("drift_state")
            dead = ended
        assert one.get_attr("drift_log") == other.get_attr("drift_log")


@pytest.mark.parametrize("env_id", [CAR, CONTINUOUS])
def test_starts(env_id):
    cars = gym.make_vec(env_id, num_envs=2000)
    starts = cars.reset(seed=0)[0]
    assert starts[:, 0].min() < -0.599
    assert starts[:, 0].max() > -0.401
    assert abs(starts[:, 0].mean() + 0.5) < 0.005
    assert not starts[:, 1].any()
    again = cars.reset(options={"low": -0.3, "high": -0.3})[0]
    np.testing.assert_array_equal(again, np.tile(np.array([-0.3, 0.0], np.float32), (2000, 1)))
    with pytest.raises(ValueError, match="Lower bound"):
        cars.reset(options={"low": 0.0, "high": -1.0})


def test_false_answers_are_those_of_the_other_actions():
    schedule = {"version": 1, "name": "n", "base": {"transient": 0.4}, "drifts": []}
    cars = gym.make_vec(CAR, num_envs=30_000, schedule=schedule)
    for action in range(3):
        cars.reset(seed=action, options={"low": -0.5, "high": -0.5})
        observations = cars.step(np.full(30_000, action))[0]
        velocities = np.array([push * 0.001 - 0.0025 * np.cos(-1.5) for push in (-1, 0, 1)])
        shares = np.array([np.isclose(observations[:, 1], velocity, atol=1e-6).mean() for velocity in velocities])
        wanted = np.full(3, 0.2)
        wanted[action] = 0.6
        np.testing.assert_allclose(shares, wanted, atol=0.012)  # four standard deviations


def test_false_forces_are_uniform_and_cost_as_asked():
    schedule = {"version": 1, "name": "n", "base": {"transient": 1.0}, "drifts": []}
    cars = gym.make_vec(CONTINUOUS, num_envs=30_000, schedule=schedule)
    cars.reset(seed=0, options={"low": -0.5, "high": -0.5})
    observations, rewards, *_ = cars.step(np.full((30_000, 1), 0.5, np.float32))
    forces = (observations[:, 1] + 0.0025 * np.cos(-1.5)) / 0.0015
    np.testing.assert_allclose(np.histogram(forces, 10, (-1, 1))[0] / 30_000, 0.1, atol=0.007)
    assert set(rewards.tolist()) == {-0.025}


def test_refusals():
    cars = gym.make_vec(CAR, num_envs=2)
    cars.reset(seed=0)
    with pytest.raises(ArgumentError, match=re.escape("`actions[1]` should be one of 0, 1, 2. Received 3")):
        cars.step(np.array([0, 3]))
    forces = gym.make_vec(CONTINUOUS, num_envs=2)
    forces.reset(seed=0)
    with pytest.raises(ArgumentError, match=re.escape("shape (2, 1)")):
        forces.step(np.zeros(2))
    with pytest.raises(ArgumentError, match="finite number"):
        forces.step(np.array([[0.0], [np.nan]]))
    with pytest.raises(ArgumentError, match="`state`"):
        cars.set_attr("state", [(5.0, 0.0), (0.0, 0.0)])


def test_pictures():
    cars = gym.make_vec(CAR, num_envs=2, render_mode="rgb_array")
    cars.reset(seed=0, options={"low": -0.5, "high": -0.5})
    single = gym.make(CAR, render_mode="rgb_array")
    single.reset(seed=0, options={"low": -0.5, "high": -0.5})
    np.testing.assert_array_equal(cars.render()[1], single.render())

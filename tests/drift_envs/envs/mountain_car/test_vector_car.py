"""Native cars equal single cars bit by bit, except for the random initial positions."""

from __future__ import annotations

import re

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.envs.mountain_car import vector as car
from drift_envs.envs.mountain_car.vector import SlopeTable
from drift_envs.errors import ArgumentError

pytestmark = pytest.mark.integration

CAR, CONTINUOUS = "DriftMountainCar-v0", "DriftMountainCarContinuous-v0"
ENGINE = {CAR: "force", CONTINUOUS: "power"}
FOLDER = {CAR: "mountain_car", CONTINUOUS: "mountain_car_continuous"}


def drifting_schedules(env_id, make_schedule):
    engine = ENGINE[env_id]
    ramp = {"name": "r", "at": 3, "every": 300, "kind": "incremental", "over": 100, "for": 280, "set": {engine: 0.002}}
    walk = {"name": "s", "rate": 0.05, "walk": {engine: 0.0002}}
    gravity_noise = {"name": "g", "rate": 0.02, "for": 7, "kind": "gradual", "over": 3, "set": {"gravity": 0.002}}
    yield f"{FOLDER[env_id]}/goal"
    for clock in ("episode", "step", "episode_step"):
        yield make_schedule(clock, ramp, {"name": "w", "at": 40, "set": {"gravity": 0.002}})
        yield make_schedule(clock, walk, gravity_noise)


def swing_up_actions(env_id, states, rng):
    """Noisy swing-up actions, so that episodes end by termination and by truncation."""
    actions = np.where(rng.random(len(states)) < 0.2, rng.integers(0, 3, len(states)), 2 * (states[:, 1] >= 0))
    if env_id == CAR:
        return actions
    return ((actions - 1) * 1.3 * rng.random(len(states))).astype(np.float32).reshape(-1, 1)  # some are clipped


def copy_states(sync, states, mask, precision):
    for index in np.flatnonzero(mask):
        sync.envs[index].unwrapped.state = np.array(states[index], precision)


@pytest.mark.parametrize(
    ("env_id", "mode"),
    [
        (CAR, "SameStep"),
        (CONTINUOUS, "NextStep"),
        pytest.param(CAR, "NextStep", marks=pytest.mark.slow),
        pytest.param(CONTINUOUS, "SameStep", marks=pytest.mark.slow),
    ],
)
def test_cars_equal_single_cars_bit_by_bit(make_pair, make_schedule, env_id, mode):
    number, precision = 4, np.float64 if env_id == CAR else np.float32
    for schedule in drifting_schedules(env_id, make_schedule):
        sync, native = make_pair(env_id, number, mode, schedule=schedule)
        sync.reset(seed=3)
        native.reset(seed=3)
        copy_states(sync, native.get_attr("state"), np.ones(number), precision)
        rng = np.random.default_rng(0)
        ended_before = np.zeros(number, bool)
        for step in range(650):
            actions = swing_up_actions(env_id, np.array(native.get_attr("state")), rng)
            expected, found = sync.step(actions), native.step(actions)
            ended = expected[2] | expected[3]
            started = ended_before if mode == "NextStep" else ended
            np.testing.assert_array_equal(expected[0][~started], found[0][~started])
            for old, new in zip(expected[1:4], found[1:4], strict=True):
                np.testing.assert_array_equal(old, new)
                assert old.dtype == new.dtype
            copy_states(sync, native.get_attr("state"), started, precision)
            if step % 47 == 0:
                assert sync.get_attr("drift_state") == native.get_attr("drift_state")
            ended_before = ended
        assert sync.get_attr("drift_log") == native.get_attr("drift_log")


def exact_pull(position, gravity):
    return (gravity * np.cos((position * np.float32(3.0)).astype(np.float64))).astype(np.float32)


@pytest.mark.parametrize("gravity", [0.01, 0.0025, 1e-6])
def test_certain_velocities_of_the_slope_table_have_the_bits_of_the_exact_expression(gravity):
    rng, number = np.random.default_rng(0), 200_000
    table = SlopeTable(number, gravity)
    for low, high, speed in ((-1.3, 1.3, 0.07), (-0.6, -0.4, 0.01), (-0.6, -0.4, 0.0), (-1e-3, 1e-3, 0.07)):
        position = rng.uniform(low, high, number).astype(np.float32)
        velocity = rng.uniform(-speed, speed, number).astype(np.float32)
        push = (0.0015 * rng.uniform(-1, 1, number) * rng.choice([0.0, 0.01, 1.0], number)).astype(np.float32)
        found, unsure = table.accelerate(position, velocity, push)
        certain = np.ones(number, bool)
        certain[[] if unsure is None else unsure] = False
        expected = velocity + (push - exact_pull(position, gravity))
        np.testing.assert_array_equal(found[certain], expected[certain])
        assert certain.mean() > 0.9


@pytest.mark.parametrize("transient", [0.0, 0.3])
def test_cars_with_the_slope_table_equal_those_with_cosines(monkeypatch, transient):
    number = 300
    cars = [gym.make_vec(CONTINUOUS, num_envs=number, schedule=None) for _ in range(2)]
    monkeypatch.setattr(car, "_LEAST_CARS", 1)  # read at the first step
    rng = np.random.default_rng(1)
    for each in cars:
        each.reset(seed=0)
        each.set_attr("transient", transient)
        if each is cars[1]:
            each.unwrapped._finds_slope = False
    for step in range(1100):
        if step == 300:  # outside of the table at first
            observations = [each.reset(options={"low": 1.0, "high": 9.0})[0] for each in cars]
            assert observations[0].max() > 4.0
        if step == 600:
            for each in cars:
                each.set_attr("gravity", 0.003)
            cars[1].unwrapped._finds_slope = False
        if step == 700:
            for each in cars:
                each.set_attr("gravity", np.linspace(0.002, 0.003, number).tolist())
        states = cars[0].reset(options={"reset_mask": np.arange(number) < 5})[0] if step % 40 == 0 else observations[0]
        if step % 40 == 0:
            cars[1].reset(options={"reset_mask": np.arange(number) < 5})
        actions = swing_up_actions(CONTINUOUS, states, rng)
        found = [each.step(actions) for each in cars]
        for one, other in zip(found[0][:4], found[1][:4], strict=True):
            np.testing.assert_array_equal(one, other)
        observations = [each[0] for each in found]
        assert (cars[0].unwrapped._slope is None) == (step >= 700 or car._IS_DOUBLE)
        assert cars[1].unwrapped._slope is None


@pytest.mark.parametrize("env_id", [CAR, CONTINUOUS])
def test_initial_positions_are_uniform(env_id):
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


def test_false_responses_are_those_of_the_other_actions():
    schedule = {"version": 1, "name": "n", "base": {"transient": 0.4}, "drifts": []}
    cars = gym.make_vec(CAR, num_envs=30_000, schedule=schedule)
    for action in range(3):
        cars.reset(seed=action, options={"low": -0.5, "high": -0.5})
        observations = cars.step(np.full(30_000, action))[0]
        velocities = np.array([push * 0.001 - 0.0025 * np.cos(-1.5) for push in (-1, 0, 1)])
        shares = np.array([np.isclose(observations[:, 1], velocity, atol=1e-6).mean() for velocity in velocities])
        expected = np.full(3, 0.2)
        expected[action] = 0.6
        np.testing.assert_allclose(shares, expected, atol=0.012)  # four standard deviations


def test_false_forces_are_uniform_and_the_reward_uses_the_given_force():
    schedule = {"version": 1, "name": "n", "base": {"transient": 1.0}, "drifts": []}
    cars = gym.make_vec(CONTINUOUS, num_envs=30_000, schedule=schedule)
    cars.reset(seed=0, options={"low": -0.5, "high": -0.5})
    observations, rewards, *_ = cars.step(np.full((30_000, 1), 0.5, np.float32))
    forces = (observations[:, 1] + 0.0025 * np.cos(-1.5)) / 0.0015
    np.testing.assert_allclose(np.histogram(forces, 10, (-1, 1))[0] / 30_000, 0.1, atol=0.007)
    assert set(rewards.tolist()) == {-0.025}


def test_invalid_arguments_of_cars():
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


def test_frames_of_cars():
    cars = gym.make_vec(CAR, num_envs=2, render_mode="rgb_array")
    cars.reset(seed=0, options={"low": -0.5, "high": -0.5})
    single = gym.make(CAR, render_mode="rgb_array")
    single.reset(seed=0, options={"low": -0.5, "high": -0.5})
    np.testing.assert_array_equal(cars.render()[1], single.render())

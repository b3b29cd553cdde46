"""Every action that the action space contains is accepted, and every other one is refused with our error."""

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.errors import ArgumentError

DISCRETE = ("DriftFrozenLake-v0", "DriftMountainCar-v0")
CONTINUOUS = "DriftMountainCarContinuous-v0"
WRONG = [None, 1.0, "1", "left", {1: 2}, [1], (1,), {1}, -1, 7, 10**30, np.array([1]), np.float64(1), object, b"1"]


@pytest.mark.parametrize("env_id", DISCRETE)
@pytest.mark.parametrize("action", [1, np.array(1), np.int8(1), np.int64(1), np.uint8(1), True, np.array(1, np.int32)])
def test_every_form_of_a_discrete_action(env_id, action):
    env, plain = gym.make(env_id), gym.make(env_id)
    assert env.action_space.contains(action)
    for each in (env, plain):
        each.reset(seed=3)
    got, expected = env.step(action), plain.step(1)
    assert np.array_equal(got[0], expected[0])
    assert got[1:] == expected[1:]


@pytest.mark.parametrize("env_id", DISCRETE)
@pytest.mark.parametrize("action", WRONG, ids=repr)
def test_a_wrong_action_is_refused_and_changes_nothing(env_id, action):
    schedule = {"version": 1, "name": "s", "clock": "step", "drifts": [{"at": 5, "set": {"transient": 0.1}}]}
    env = gym.make(env_id, schedule=schedule)
    env.reset(seed=0)
    with pytest.raises(ArgumentError, match=r"^`action` should be one of 0, 1, 2"):
        env.step(action)
    assert env.get_wrapper_attr("drift_state").step == 0
    env.step(0)
    assert env.get_wrapper_attr("drift_state").step == 1


FORCES = [np.array([0.5], kind) for kind in ("float16", "float32", "float64")] + [[0.5], (0.5,), [np.array(0.5)]]


@pytest.mark.parametrize("action", [*FORCES, np.array([1], np.int8), np.array([True]), [True]], ids=repr)
def test_every_form_of_a_force(action):
    env = gym.make(CONTINUOUS, schedule=None)
    env.reset(seed=0)
    observation, reward, *_ = env.step(action)
    assert env.observation_space.contains(observation)
    assert reward == pytest.approx(-0.1 * float(np.asarray(action)[0]) ** 2)


@pytest.mark.parametrize(
    "action",
    [None, 0.5, "1", ["1"], {0: 1}, {1: 2}, [], [0.1, 0.2], [[0.1]], np.array(0.5), [1j], [np.nan], [1e300], [10**400]],
    ids=lambda action: repr(action)[:20],
)
def test_a_wrong_force_is_refused(action):
    env = gym.make(CONTINUOUS)
    env.reset(seed=0)
    with pytest.raises(ArgumentError, match=r"^`action` should be a sequence of one finite number"):
        env.step(action)


@pytest.mark.parametrize(
    "action", [1.5, "1", [], [1, 2, 3], [[0.5]], [1, [2]], np.zeros(2), [np.nan], [np.inf]], ids=repr
)
def test_a_wrong_torque_is_refused(action):
    env = gym.make("DriftPendulum-v0")
    env.reset(seed=0)
    with pytest.raises(ArgumentError, match=r"^`action` should be"):
        env.step(action)
    for torque in ([0.5], (1,), np.array([0.5], np.float16)):
        env.step(torque)


@pytest.mark.parametrize("env_id", DISCRETE)
def test_forms_of_actions_of_a_vector_environment(env_id):
    envs = gym.make_vec(env_id, num_envs=2, vectorization_mode="vector_entry_point")
    for actions in ([1, 0], (1, 0), np.array([1, 0], np.uint8), np.array([True, False]), [np.array(1), np.int8(0)]):
        assert envs.action_space.contains(actions)
        envs.reset(seed=0)
        envs.step(actions)
    for wrong in (None, 1, [1.0, 0.0], ["1", "0"], {0: 1, 1: 0}, [[1], [0, 2]], [1, 9], [1, None], [1, 0, 1]):
        with pytest.raises(ArgumentError, match=r"^`actions"):
            envs.step(wrong)


def test_forms_of_forces_of_a_vector_environment():
    cars = gym.make_vec(CONTINUOUS, num_envs=2, vectorization_mode="vector_entry_point")
    for actions in ([[1], [0.5]], np.array([[1], [0]], np.int8), np.zeros((2, 1)), [np.zeros(1), np.zeros(1)]):
        cars.reset(seed=0)
        cars.step(actions)
    for wrong in (None, 0.5, [0.5, 0.5], [["1"], ["0"]], {0: 1}, [[1], [0, 2]], [[None], [0]], [[np.nan], [0]]):
        with pytest.raises(ArgumentError, match=r"^`actions"):
            cars.step(wrong)


def test_a_permutation_applies_to_every_form_of_an_action():
    schedule = {"version": 1, "name": "s", "base": {"action_permutation": {"0": 1, "1": 0}}}
    ends = set()
    for action in (1, np.array(1), np.int64(1), True):
        env = gym.make("DriftFrozenLake-v0", schedule=schedule)
        env.reset(seed=0)
        ends.add(env.step(action)[0])
    assert ends == {0}  # carried out as `left`


@pytest.mark.parametrize("action", [None, 1, ["click[x]"], {1: 2}, np.array(1), b"click[x]"], ids=repr)
def test_the_shop_refuses_what_is_no_text(action):
    shop = gym.make("DriftWebShop-v0")
    shop.reset(seed=0)
    with pytest.raises(ArgumentError, match=r"^`action` should be a text"):
        shop.step(action)
    assert shop.action_space.contains(np.str_("search[mug]"))
    shop.step(np.str_("search[mug]"))

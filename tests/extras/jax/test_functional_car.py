"""The functional cars against the NumPy ones."""

import json

import gymnasium as gym
import numpy as np
import pytest

import drift_envs  # noqa: F401  registers the ids
from tests.core_ids import CORE_IDS

jax = pytest.importorskip("jax", reason="needs the extra `jax`")
pytest.importorskip("drift_envs.functional")
car = pytest.importorskip("drift_envs.envs.mountain_car.functional")

STEPS = 200
DRIFTS = [
    {"name": "lighter", "at": 20, "kind": "incremental", "over": 50, "add": {"gravity": -0.0015}},
    {"name": "reversed", "every": 120, "for": 10, "scale": {"ENGINE": -1.2}},
    {"name": "false", "at": 60, "set": {"transient": 0.2}},
    {"name": "near", "at": 40, "set": {"goal_position": -0.3, "ENGINE": 0.005}},
]


@pytest.mark.parametrize(("name", "engine"), [("MountainCar", "force"), ("MountainCarContinuous", "power")])
def test_trajectories_equal_the_single_car_for_equal_draws(name, engine, numbers):
    drifts = json.dumps(DRIFTS).replace("ENGINE", engine)
    schedule = {"version": 1, "clock": "step", "drifts": json.loads(drifts)}
    rng = np.random.default_rng(0)
    draws = rng.random((STEPS + 1, 2))
    is_discrete = engine == "force"
    swings = np.where(np.arange(STEPS) % 72 < 36, -1, 1)  # about the period of the valley
    noisy = rng.uniform(0.5, 1.3, (STEPS, 1)).astype(np.float32)
    actions = swings + 1 if is_discrete else (swings[:, None] * noisy).astype(np.float32)
    env = car.FunctionalCar() if is_discrete else car.FunctionalCarContinuous()
    params = env.params(schedule, max_steps=80)

    def move(state, given):
        observation, state, *rest = env.step_with(given[0], state, given[1], params)
        return state, (observation, *rest[:3], rest[3]["final_observation"])

    _, state = env.reset(jax.random.key(0), params)
    state = state._replace(env_state=env._start(params, state.drift, jax.numpy.asarray(draws[0])))
    scanned = jax.jit(lambda state: jax.lax.scan(move, state, (draws[1:], actions))[1])(state)
    observations, rewards, terminations, truncations, last = map(np.asarray, scanned)

    single = gym.make(f"Drift{name}-v0", schedule=schedule, max_episode_steps=80)
    single.reset(seed=0)
    single.unwrapped._np_random = numbers
    numbers.queue = [draws[0][1]]
    single.reset(options={"drift_tick": 0})
    for index in range(STEPS):
        numbers.queue = [draws[index + 1][0]]
        observation, reward, terminated, truncated, _ = single.step(actions[index])
        assert last[index] == pytest.approx(observation, abs=1e-6), index
        assert (terminations[index], truncations[index]) == (terminated, truncated), index
        assert rewards[index] == pytest.approx(reward, abs=1e-6), index
        if terminated or truncated:
            numbers.queue = [draws[index + 1][1]]
            observation = single.reset()[0]
        assert observations[index] == pytest.approx(observation, abs=1e-6), index
    assert (terminations | truncations).any()


@pytest.mark.parametrize("env_id", [name for name, entry in CORE_IDS.items() if entry.functional])
def test_the_step_limit_is_that_of_the_id(env_id):
    assert CORE_IDS[env_id].load("functional").limit == CORE_IDS[env_id].limit

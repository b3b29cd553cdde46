"""Oracles obtained from `gymnasium.make` agree with the environments."""

from __future__ import annotations

import copy
import math
import pickle

import gymnasium as gym
import pytest

import drift_envs
from drift_envs.errors import NoOracleError
from drift_envs.oracle import make_oracle

LAKES = ["frozen_lake/explicit", "frozen_lake/implicit", "frozen_lake/slippery", "frozen_lake/explicit:transient"]
CARS = [
    ("DriftMountainCar-v0", "mountain_car/reversed"),
    ("DriftMountainCar-v0", "mountain_car/reversed:transient"),
    ("DriftMountainCarContinuous-v0", "mountain_car_continuous/gravity"),
]
assert drift_envs.shipped_schedules()


def play_random_transitions(env: gym.Env, episodes: int, steps: int = 60):
    """Transitions of a random policy over episodes that jump from drift to drift, with the tick of each."""
    env.action_space.seed(0)
    for episode in range(episodes):
        options = {"drift_tick": 10 * episode}
        state, _ = env.reset(seed=0 if episode == 0 else None, options=options)
        for _ in range(steps):
            action = env.action_space.sample()
            tick = env.get_wrapper_attr("drift_state").tick
            after, _, terminated, truncated, info = env.step(action)
            yield state, action, after, terminated, info["score"], tick
            state = after
            if terminated or truncated:
                break


@pytest.mark.parametrize("schedule", LAKES)
def test_responses_of_the_lake_are_listed(schedule: str) -> None:
    env = gym.make("DriftFrozenLake-v0", schedule=schedule, text=True)
    oracle = env.get_wrapper_attr("oracle")
    seen = 0
    for state, action, after, ended, score, tick in play_random_transitions(env, 60):
        responses = oracle.response(state, action, tick)
        assert sum(response.probability for response in responses) == pytest.approx(1.0)
        assert (after, score, ended) in [response[:3] for response in responses]
        seen += 1
    assert seen > 200


def test_false_responses_do_not_hold_in_the_environment() -> None:
    env = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/explicit:transient", text=True)
    oracle = env.get_wrapper_attr("oracle")
    held = [oracle.holds(s, a, after, ended, tick) for s, a, after, ended, _, tick in play_random_transitions(env, 200)]
    # One response in ten is false, if there is another tile.
    assert 0.02 < held.count(False) / len(held) < 0.15


@pytest.mark.parametrize(("env_id", "schedule"), CARS)
def test_responses_of_the_car_hold(env_id: str, schedule: str) -> None:
    env = gym.make(env_id, schedule=schedule, text=True)
    oracle = env.get_wrapper_attr("oracle")
    false = total = 0
    for state, action, after, ended, _, tick in play_random_transitions(env, 6):
        false += not oracle.holds(state, action, after, ended, tick)
        total += 1
    if schedule.endswith("transient"):
        assert 0.01 < false / total < 0.12
    else:
        assert false == 0


@pytest.mark.parametrize(
    ("env_id", "limit"),
    [("DriftFrozenLake-v0", 100), ("DriftMountainCar-v0", 300), ("DriftMountainCarContinuous-v0", 999)],
)
def test_the_oracles_actions_reach_the_value(env_id: str, limit: int) -> None:
    env = gym.make(env_id)
    oracle = env.get_wrapper_attr("oracle")
    for episode in range(3):
        state, _ = env.reset(seed=0 if episode == 0 else None, options={"drift_tick": 20 * episode})
        for _ in range(limit):
            state, _, terminated, truncated, _ = env.step(oracle.action(state, 20 * episode))
            if terminated or truncated:
                break
        assert oracle.value(20 * episode) == 1.0
        assert terminated


def test_a_rewind_to_another_seed_updates_the_oracle() -> None:
    env = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/explicit:family")
    oracle = env.get_wrapper_attr("oracle")
    env.reset(seed=1)
    first = oracle.setting(0).map
    env.reset(seed=2)
    assert oracle.setting(0).map != first


def test_the_oracle_is_built_again_in_a_copy() -> None:
    env = gym.make("DriftMountainCar-v0", schedule="mountain_car/reversed")
    env.reset(seed=0)
    value = env.get_wrapper_attr("oracle").value(0)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert other.get_wrapper_attr("oracle").value(0) == value
        assert other.get_wrapper_attr("oracle") is not env.get_wrapper_attr("oracle")


def test_values_of_a_slippery_lake() -> None:
    env = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/slippery")
    values = [env.get_wrapper_attr("oracle").value(tick) for tick in (0, 20, 40)]
    assert all(math.isfinite(value) for value in values)
    assert values == pytest.approx([0.775, 0.987, 0.932], abs=1e-3)


def test_no_oracle_is_made_for_another_environment() -> None:
    with pytest.raises(NoOracleError, match="no oracle is known for"):
        make_oracle(gym.make("CartPole-v1"))


def test_no_oracle_is_made_where_it_would_be_wrong() -> None:
    schedule = {"version": 1, "name": "late", "drifts": [{"at": 1, "set": {"action_delay": 2}}]}
    env = gym.make("DriftFrozenLake-v0", schedule=schedule)
    with pytest.raises(NoOracleError, match="while its schedule sets `action_delay`"):
        _ = env.env.oracle

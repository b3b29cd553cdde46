"""The oracle of the house against the house itself."""

import re

import gymnasium as gym
import pytest

from drift_envs.envs.house.oracle import HouseOracle
from drift_envs.errors import ArgumentError
from drift_envs.oracle import make_oracle
from drift_envs.schedule import load_schedule, shipped_schedules
from tests.core_ids import by_file

NAMES = [name for name in shipped_schedules() if load_schedule(name).env == "DriftHouse-v0"]


def make(name):
    env = gym.make("DriftHouse-v0", schedule=name, text=True)
    return env, *env.reset(seed=1), env.get_wrapper_attr("oracle")


@pytest.mark.integration
@pytest.mark.parametrize("name", by_file(NAMES))
def test_following_it_completes_every_task_in_every_phase(name):
    env, _, _, oracle = make(name)
    for tick in (5, 20):
        state, _ = env.reset(options={"drift_tick": tick})
        for left in range(50, 0, -1):
            action = oracle.action(state, tick, left)
            expected = oracle.response(state, action, tick)
            state, reward, done, _, info = env.step(action)
            found = next(one for one in expected if one.state == state)
            assert (found.score, found.ended) == (info["score"], done)
            assert oracle.holds(expected[0].state, action, state, done, tick) in (True, False)
            if done:
                break
        assert reward == 1.0, (tick, info["task"])


@pytest.mark.integration
@pytest.mark.parametrize("name", ["house/explicit", "house/renamed", "house/implicit", "house/keys", "house/tidy"])
def test_what_has_changed_is_what_answers_otherwise(name):
    """Random commands in an environment and in one of another tick, from the same history."""
    env, state, info, oracle = make(name)
    differing = 0
    for episode in range(4):
        state, info = env.reset(options={"drift_tick": episode})
        history = []
        for step in range(12):
            assert not oracle.changed(state, info["actions"][0], episode, episode + 1)
            action = info["actions"][(7 * step + 3 * episode) % len(info["actions"])]
            says_changed = oracle.changed(state, action, episode, 20)
            known = gym.make("DriftHouse-v0", schedule=name, text=True)
            known.reset(seed=1)
            known.reset(options={"drift_tick": 20, "goal_index": env.unwrapped.goal_index})
            answers = [known.step(one) for one in [*history, action]]
            after, reward, done, _, info = env.step(action)
            if not history and name != "house/renamed":
                assert says_changed == ((after, reward) != answers[-1][:2]), action
            differing += says_changed
            history.append(action)
            state = after
            if done:
                break
    assert differing or name in ("house/keys", "house/implicit", "house/tidy")


@pytest.mark.integration
def test_a_lost_command_is_a_response_that_does_not_hold():
    _, state, _, oracle = make("house/explicit:transient")
    answers = oracle.response(state, "go to fridge 1", 0)
    assert [round(one.probability, 3) for one in answers] == [0.9, 0.1]
    assert oracle.holds(state, "go to fridge 1", answers[0].state, False, 0)
    assert not oracle.holds(state, "go to fridge 1", answers[1].state, False, 0)
    values = []
    for lost in (0.0, 0.8, 1.0):
        schedule = {"version": 1, "name": "lost", "base": {"transient": lost}, "tasks": {"pool": 3}}
        env = gym.make("DriftHouse-v0", schedule=schedule)
        env.reset(seed=0)
        values.append(env.get_wrapper_attr("oracle").value(0))
    assert values[0] == 1.0 > values[1] > values[2] == 0.0


def test_what_it_refuses():
    env, _, _, oracle = make("house/explicit")
    for wrong in ("{}", "nothing", '{"house": 7, "task": "dance"}'):
        with pytest.raises(ArgumentError, match=re.escape("`state` should")):
            oracle.action(wrong, 0)
    with pytest.raises(ArgumentError, match="`limit` should be a whole number, at least 1"):
        HouseOracle(env.get_wrapper_attr("timeline"), lambda house: None, lambda: 1, 0)
    assert make_oracle(env.env).value(0) == 1.0

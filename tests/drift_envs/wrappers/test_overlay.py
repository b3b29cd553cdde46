"""Pictures with and without the truth."""

import hashlib

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.envs import FrozenLake
from drift_envs.errors import ArgumentError
from drift_envs.registration import IDS
from drift_envs.wrappers import DriftOverlay, DriftWrapper
from drift_envs.wrappers.overlay import STRIP


def pictures(env, episodes, seed=0):
    found = []
    for episode in range(episodes):
        env.reset(seed=seed if episode == 0 else None)
        found.append(hashlib.sha256(np.ascontiguousarray(env.render())).hexdigest())
    return found


TWO = {
    "version": 1,
    "name": "two",
    "base": {"map": ["SFF", "FHF", "FFG"]},
    "drifts": [{"at": 1, "set": {"map": ["SFF", "FFF", "FHG"]}}],
}
REWARD = {
    "version": 1,
    "name": "reward",
    "base": {"map": ["SFG", "FFG"], "goal_rewards": {"0,2": 1.0, "1,2": 0.5}},
    "drifts": [{"at": 1, "swap": {"goal_rewards": ["0,2", "1,2"]}}],
}


def test_phases_differ_and_runs_agree():
    runs = [pictures(gym.make("DriftFrozenLake-v0", schedule=TWO, render_mode="rgb_array"), 3) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[0][1] == runs[0][2]


def test_an_implicit_drift_shows_with_the_overlay_alone():
    plain = pictures(gym.make("DriftFrozenLake-v0", schedule=REWARD, render_mode="rgb_array"), 2)
    assert plain[0] == plain[1]
    told = pictures(gym.make("DriftFrozenLake-v0", schedule=REWARD, render_mode="rgb_array", overlay=True), 2)
    assert told[0] != told[1]


def test_hidden_dynamics_do_not_show():
    for env_id, schedule in (
        ("DriftMountainCar-v0", "mountain_car/explicit"),
        ("DriftMountainCar-v0", "mountain_car/gravity"),
        ("DriftFrozenLake-v0", "frozen_lake/thaw"),
    ):
        env = gym.make(env_id, schedule=schedule, render_mode="rgb_array")
        env.reset(seed=0)
        first = env.render()
        env.reset(seed=0, options={"drift_tick": 60})
        assert np.array_equal(first, env.render())
        env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_the_strip_stands_under_the_picture(env_id):
    plain, told = (gym.make(env_id, render_mode="rgb_array", overlay=overlay) for overlay in (None, True))
    for env in (plain, told):
        env.reset(seed=0)
    below = told.render()
    assert below.dtype == np.uint8
    assert np.array_equal(below[:-STRIP], plain.render())
    plain.close()
    told.close()


def test_the_lines():
    world = DriftWrapper(FrozenLake("ansi", desc=["SFG", "FFG"], is_slippery=False), REWARD)
    env = DriftOverlay(world)
    env.reset(seed=0)
    assert env.lines() == ("phase source, tick 0, episode 0", "nothing has changed yet")
    env.reset()
    changed = "changed: goal_rewards 0,2: 1 -> 0.5, goal_rewards 1,2: 0.5 -> 1"
    assert env.lines() == ("phase drift-1, tick 1, episode 1", changed)
    assert env.render().startswith("phase drift-1, tick 1, episode 1\nchanged: ")


def test_a_window_shows_the_overlay_and_a_plain_one_does_not():
    env = gym.make("DriftFrozenLake-v0", render_mode="human", schedule=TWO)
    assert env.render_mode == "human"
    assert env.unwrapped.render_mode == "rgb_array"
    assert "DriftOverlay" in str(env)
    env.reset(seed=0)
    env.step(1)
    assert env.render() is None
    env.close()
    for arguments in ({"overlay": False}, {"schedule": None}):
        env = gym.make("DriftFrozenLake-v0", render_mode="human", **arguments)
        assert env.unwrapped.render_mode == "human"
        assert "DriftOverlay" not in str(env)
        env.close()


def test_pictures_go_on_after_another_environment_has_closed():
    env = gym.make("DriftFrozenLake-v0", render_mode="rgb_array", overlay=True)
    other = gym.make("DriftFrozenLake-v0", render_mode="rgb_array")
    for world in (env, other):
        world.reset(seed=0)
        world.render()
    first = env.render()
    other.close()
    assert np.array_equal(env.render(), first)
    env.close()


def test_overlays_of_what():
    with pytest.raises(ArgumentError, match="`env` should have a `DriftWrapper` in it"):
        DriftOverlay(gym.make("CartPole-v1"))


def test_by_hand_it_is_in_the_spec():
    env = DriftOverlay(gym.make("DriftFrozenLake-v0", render_mode="rgb_array"))
    other = gym.make(env.spec)
    assert pictures(env, 1) == pictures(other, 1)

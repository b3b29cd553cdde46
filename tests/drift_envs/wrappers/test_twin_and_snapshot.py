"""Probing: a second instance without the truth, and going back with privilege."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest

import drift_envs
from drift_envs.envs import FrozenLake
from drift_envs.errors import ArgumentError, HiddenError, StateError
from drift_envs.wrappers import DriftWrapper, Twin, snapshot, twin
from drift_envs.wrappers.twin import HIDDEN
from tests.core_ids import CORE_IDS

SLIP = {
    "version": 1,
    "name": "slip",
    "clock": "step",
    "base": {"slip": 0.5},
    "drifts": [{"at": 5, "set": {"map": ["SFFFFF", "FFFFFG"]}}],
}


def lake(**arguments):
    return gym.make("DriftFrozenLake-v0", schedule=SLIP, **arguments)


def walk(env, count=20):
    states = []
    for number in range(count):
        state, _, terminated, truncated, _ = env.step(number % 4)
        states.append(state)
        if terminated or truncated:
            states.append(env.reset()[0])
    return states


def test_a_twin_has_the_present_knobs_and_moves_no_time():
    world = lake()
    world.reset(seed=0)
    second = twin(world)
    second.reset()
    inner = second._Twin__inner.unwrapped
    assert inner.map == world.unwrapped.map
    for _ in range(6):
        walk(second, 10)
        assert world.get_wrapper_attr("drift_state").step == 0
    for _ in range(8):
        world.step(0)
    assert world.unwrapped.map == ("SFFFFF", "FFFFFG") != inner.map
    second.step(0)  # it follows in the middle of its episode
    assert inner.map == world.unwrapped.map
    world.reset(seed=0)
    second.reset()
    assert inner.map == world.unwrapped.map != ("SFFFFF", "FFFFFG")


def test_a_world_does_not_notice_its_twin():
    alone, followed = lake(), lake()
    alone.reset(seed=3)
    followed.reset(seed=3)
    second = twin(followed)
    second.reset()
    walk(second)
    assert walk(alone) == walk(followed)
    walk(second)
    assert walk(alone) == walk(followed)
    assert alone.get_wrapper_attr("drift_state") == followed.get_wrapper_attr("drift_state")


def test_a_twins_random_numbers_are_its_own_and_repeat_with_the_worlds_seed():
    world = lake()
    runs = []
    for _ in range(2):
        world.reset(seed=3)
        second = twin(world)
        second.reset()
        runs.append(walk(second))
    first = twin(world)
    world.reset(seed=3)
    first.reset()
    runs.append(walk(first))
    world.reset(seed=3)  # the same twin is seeded again with its world
    first.reset()
    runs.append(walk(first))
    assert runs[0] == runs[1] == runs[2] == runs[3]
    other = twin(world, stream=1)
    other.reset()
    assert walk(other) != runs[0]
    assert walk(world) != runs[0]
    world.reset(seed=4)
    first.reset()
    assert walk(first) != runs[0]


@pytest.mark.parametrize("env_id", CORE_IDS)
@pytest.mark.parametrize("text", [False, True])
def test_a_twin_looks_like_its_world(env_id, text):
    world = gym.make(env_id, text=text, render_mode="rgb_array", notify="full")
    _, info = world.reset(seed=0)
    world.render()
    second = twin(world)
    assert second.action_space == world.action_space
    assert second.observation_space == world.observation_space
    seen, twin_info = second.reset()
    assert second.observation_space.contains(seen)
    assert set(twin_info) == set(info)
    if text:
        assert twin_info["task"] == info["task"]
    assert twin_info["drift"] == info["drift"]
    world.close()
    second.close()


def test_a_twin_has_no_step_limit():
    world = lake(max_episode_steps=2)
    world.reset(seed=0)
    second = twin(world)
    second.reset()
    assert not any(second.step(0)[3] for _ in range(5))


def test_what_is_hidden_from_a_twin():
    world = lake()
    second = twin(world)
    with pytest.raises(StateError, match="reset the world first"):
        second.reset()
    with pytest.raises(StateError, match="`step` was called before `reset`"):
        second.step(0)
    world.reset(seed=0)
    for name in sorted(HIDDEN):
        with pytest.raises(HiddenError, match=f"`{name}` is hidden"):
            getattr(second, name)
        with pytest.raises(HiddenError):
            second.get_wrapper_attr(name)
        assert not hasattr(second, name)
    assert second.unwrapped is second
    assert second.spec is None
    for arguments in ({"seed": 1}, {"options": {"drift_tick": 3}}):
        with pytest.raises(ArgumentError, match="a twin should be reset without seed and options"):
            second.reset(**arguments)
    with pytest.raises(StateError, match="a twin has no picture"):
        second.render()


def test_twins_of_what():
    with pytest.raises(ArgumentError, match="`world` should have a `DriftWrapper` in it"):
        twin(gym.make("CartPole-v1"))
    for stream in (-1, 1.5, True):
        with pytest.raises(ArgumentError, match="`stream` should be a whole number, at least 0"):
            twin(lake(), stream=stream)
    assert isinstance(drift_envs.twin(lake()), Twin)


def test_world_and_twin_are_cloned_together():
    world = lake()
    world.reset(seed=1)
    second = twin(world)
    second.reset()
    walk(second, 5)
    for clone in (copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))):
        other, follower = clone((world, second))
        for _ in range(7):
            other.step(1)
        assert follower._Twin__leader is other.env
        follower.step(0)
        assert follower._Twin__inner.unwrapped.map == other.unwrapped.map == ("SFFFFF", "FFFFFG")


def test_a_twin_of_a_generic_world():
    schedule = {"version": 1, "name": "m", "drifts": [{"at": 1, "set": {"masspole": 0.5, "action_delay": 1}}]}
    world = DriftWrapper(gym.make("CartPole-v1"), schedule)
    world.reset(seed=0)
    world.reset()
    second = twin(world)
    second.reset()
    assert second._Twin__inner.unwrapped.masspole == 0.5
    assert second._Twin__inner.unwrapped is not world.unwrapped


@pytest.mark.parametrize("env_id", CORE_IDS)
def test_a_snapshot_brings_the_episode_back(env_id):
    world = gym.make(env_id, text=True, schedule={"version": 1, "name": "t", "base": {"transient": 0.5}})
    world.reset(seed=0)
    actions = [0, 2, 1] * 3 if "Continuous" not in env_id else [[0.2], [-1.0], [1.0]] * 3
    if isinstance(world.action_space, gym.spaces.Text):
        actions = ["search[mug]", "click[next >]", "click[< prev]"] * 3
    for action in actions[:2]:
        world.step(action)
    saved = snapshot(world)
    first = [world.step(action)[:4] for action in actions]
    saved.restore()
    assert [world.step(action)[:4] for action in actions] == first
    saved.restore()
    saved.restore()
    assert [world.step(action)[:4] for action in actions] == first


def test_a_snapshot_in_a_twin():
    world = gym.make("DriftFrozenLake-v0", schedule={"version": 1, "name": "s", "base": {"slip": 0.6}}, text=True)
    world.reset(seed=0)
    second = twin(world)
    saved = snapshot(world)
    with pytest.raises(StateError, match="restored into a twin before its first `reset`"):
        saved.restore(second)
    second.reset()
    found = set()
    for _ in range(60):
        saved.restore(second)
        found.add(second.step(2)[0])
    assert len(found) == 3  # its random numbers are its own, and go on
    assert world.unwrapped.s == 0


def test_a_snapshot_after_the_map_has_shrunk():
    env = FrozenLake(desc=["SFF", "FFF", "FFG"])
    env.reset(seed=0)
    env.s = 5
    saved = snapshot(env)
    env.turn({"map": ("SF", "FG")})
    saved.restore()
    assert divmod(env.s, 2) == (1, 1)


def test_snapshots_of_other_environments():
    world = DriftWrapper(
        gym.make("CartPole-v1", render_mode="rgb_array"), {"version": 1, "name": "l", "base": {"action_delay": 2}}
    )
    world.reset(seed=0)
    world.render()
    for action in (1, 0):
        world.step(action)
    saved = snapshot(world)
    first = [world.step(0)[0] for _ in range(4)]
    saved.restore()
    assert np.array_equal(first, [world.step(0)[0] for _ in range(4)])
    with pytest.raises(ArgumentError, match=r"`into` should be a CartPoleEnv\. Received FrozenLake"):
        saved.restore(FrozenLake())
    world.close()

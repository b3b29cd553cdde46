"""Probing: a second instance without the truth, and going back with privilege."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest

import drift_envs
from drift_envs.envs import FrozenLake
from drift_envs.envs.make import knob_table_of
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
    env = lake()
    env.reset(seed=0)
    second = twin(env)
    second.reset()
    inner = second._Twin__inner.unwrapped
    assert inner.map == env.unwrapped.map
    for _ in range(6):
        walk(second, 10)
        assert env.get_wrapper_attr("drift_state").step == 0
    for _ in range(8):
        env.step(0)
    assert env.unwrapped.map == ("SFFFFF", "FFFFFG") != inner.map
    second.step(0)  # it follows in the middle of its episode
    assert inner.map == env.unwrapped.map
    env.reset(seed=0)
    second.reset()
    assert inner.map == env.unwrapped.map != ("SFFFFF", "FFFFFG")


def test_a_snapshot_before_the_first_reset_is_refused():
    with pytest.raises(StateError, match="`snapshot` was called before `reset`"):
        snapshot(lake())
    with pytest.raises(StateError, match="`snapshot` was called before `reset`"):
        snapshot(twin(lake()))


def test_an_environment_does_not_notice_its_twin():
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


def test_a_twins_random_numbers_are_its_own_and_repeat_with_the_environments_seed():
    env = lake()
    runs = []
    for _ in range(2):
        env.reset(seed=3)
        second = twin(env)
        second.reset()
        runs.append(walk(second))
    first = twin(env)
    env.reset(seed=3)
    first.reset()
    runs.append(walk(first))
    env.reset(seed=3)  # the same twin is seeded again with its environment
    first.reset()
    runs.append(walk(first))
    assert runs[0] == runs[1] == runs[2] == runs[3]
    other = twin(env, stream=1)
    other.reset()
    assert walk(other) != runs[0]
    assert walk(env) != runs[0]
    env.reset(seed=4)
    first.reset()
    assert walk(first) != runs[0]


@pytest.mark.parametrize("env_id", CORE_IDS)
@pytest.mark.parametrize("text", [False, True])
def test_a_twin_looks_like_its_environment(env_id, text):
    env = gym.make(env_id, text=text, render_mode="rgb_array", notify="full")
    _, info = env.reset(seed=0)
    env.render()
    second = twin(env)
    assert second.action_space == env.action_space
    assert second.observation_space == env.observation_space
    seen, twin_info = second.reset()
    assert second.observation_space.contains(seen)
    assert set(twin_info) == set(info)
    if text:
        assert twin_info["task"] == info["task"]
    assert twin_info["drift"] == info["drift"]
    env.close()
    second.close()


def test_a_task_is_said_to_a_twin_in_the_same_words():
    env = gym.make("DriftHouse-v0", text=True)
    _, info = env.reset(seed=1, options={"wording": 2})
    assert twin(env).reset()[1]["task"] == info["task"]


def test_what_is_hidden_from_a_twin():
    env = lake()
    second = twin(env)
    with pytest.raises(StateError, match="reset the environment first"):
        second.reset()
    with pytest.raises(StateError, match="`step` was called before `reset`"):
        second.step(0)
    env.reset(seed=0)
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
    with pytest.raises(ArgumentError, match="`env` should have a `DriftWrapper` in it"):
        twin(gym.make("CartPole-v1"))
    for stream in (-1, 1.5, True):
        with pytest.raises(ArgumentError, match="`stream` should be a whole number, at least 0"):
            twin(lake(), stream=stream)
    assert isinstance(drift_envs.twin(lake()), Twin)


def test_environment_and_twin_are_cloned_together():
    env = lake()
    env.reset(seed=1)
    second = twin(env)
    second.reset()
    walk(second, 5)
    for clone in (copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))):
        other, follower = clone((env, second))
        for _ in range(7):
            other.step(1)
        assert follower._Twin__leader is other.env
        follower.step(0)
        assert follower._Twin__inner.unwrapped.map == other.unwrapped.map == ("SFFFFF", "FFFFFG")


def test_a_twin_of_a_generic_environment():
    schedule = {"version": 1, "name": "m", "drifts": [{"at": 1, "set": {"masspole": 0.5, "action_delay": 1}}]}
    env = DriftWrapper(gym.make("CartPole-v1"), schedule)
    env.reset(seed=0)
    env.reset()
    second = twin(env)
    second.reset()
    assert second._Twin__inner.unwrapped.masspole == 0.5
    assert second._Twin__inner.unwrapped is not env.unwrapped


@pytest.mark.parametrize("env_id", CORE_IDS)
def test_a_snapshot_brings_the_episode_back(env_id):
    table = knob_table_of(env_id)
    base = {name: 0.5 for name in ("flaky", "transient") if name in table}
    env = gym.make(env_id, text=True, schedule={"version": 1, "name": "t", "base": base})
    env.reset(seed=0)
    actions = [0, 2, 1] * 3 if "Continuous" not in env_id else [[0.2], [-1.0], [1.0]] * 3
    if isinstance(env.action_space, gym.spaces.Text):
        actions = ["search[mug]", "click[next >]", "click[< prev]"] * 3
    for action in actions[:2]:
        env.step(action)
    saved = snapshot(env)
    first = [env.step(action)[:4] for action in actions]
    saved.restore()
    assert [env.step(action)[:4] for action in actions] == first
    saved.restore()
    saved.restore()
    assert [env.step(action)[:4] for action in actions] == first


def test_a_snapshot_in_a_twin():
    env = gym.make("DriftFrozenLake-v0", schedule={"version": 1, "name": "s", "base": {"slip": 0.6}}, text=True)
    env.reset(seed=0)
    second = twin(env)
    saved = snapshot(env)
    with pytest.raises(StateError, match="restored into a twin before its first `reset`"):
        saved.restore(second)
    second.reset()
    found = set()
    for _ in range(60):
        saved.restore(second)
        found.add(second.step(2)[0])
    assert len(found) == 3  # its random numbers are its own, and go on
    assert env.unwrapped.s == 0


def test_a_snapshot_after_the_map_has_shrunk():
    env = FrozenLake(desc=["SFF", "FFF", "FFG"])
    env.reset(seed=0)
    env.s = 5
    saved = snapshot(env)
    env.set_knobs({"map": ("SF", "FG")})
    saved.restore()
    assert divmod(env.s, 2) == (1, 1)


def test_snapshots_of_other_environments():
    env = DriftWrapper(
        gym.make("CartPole-v1", render_mode="rgb_array"), {"version": 1, "name": "l", "base": {"action_delay": 2}}
    )
    env.reset(seed=0)
    env.render()
    for action in (1, 0):
        env.step(action)
    saved = snapshot(env)
    first = [env.step(0)[0] for _ in range(4)]
    saved.restore()
    assert np.array_equal(first, [env.step(0)[0] for _ in range(4)])
    with pytest.raises(ArgumentError, match=r"`into` should be a CartPoleEnv\. Received FrozenLake"):
        saved.restore(FrozenLake())
    env.close()


@pytest.mark.parametrize("make", [twin, snapshot])
def test_an_environment_that_cannot_be_copied_is_named(make):
    env = DriftWrapper(gym.make("CartPole-v1"), {"version": 1, "name": "l", "base": {"action_delay": 2}})
    env.reset(seed=0)
    env.unwrapped.frames = (number for number in range(9))
    with pytest.raises(
        ArgumentError, match=r"`env` should be one that can be copied\. CartPoleEnv: TypeError: .*generator"
    ):
        make(env)

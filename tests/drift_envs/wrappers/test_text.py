"""Text environments."""

import json
import re
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.errors import ArgumentError
from drift_envs.wrappers import DriftWrapper, TextObservation
from drift_envs.wrappers.text import read_action
from tests.core_ids import CORE_IDS

GOALS = {"map": ["SFFFFF", "FHFFFF", "FFFFFF", "FFFFFG", "FFFFHF", "FFFFFG"], "goal_rewards": {"3,5": 1.0, "5,5": 0.5}}
SWAP = {"version": 1, "name": "swap", "base": GOALS, "drifts": [{"at": 1, "swap": {"goal_rewards": ["3,5", "5,5"]}}]}


def test_the_papers_states():
    env = gym.make("DriftFrozenLake-v0", schedule=SWAP, text=True)
    observation, info = env.reset(seed=0)
    assert observation == '{"cur_pos": [0, 0], "tile_type": "S", "gold_collected": 0}'
    assert info["score"] == 0.0
    for action in (1, 1, 2, 2, 2, 2, 2):
        observation, *_ = env.step(action)
        assert json.loads(observation)["tile_type"] == "F"
    observation, reward, terminated, _, info = env.step(1)
    assert observation == '{"cur_pos": [3, 5], "tile_type": "G", "gold_collected": 1}'
    assert (reward, terminated, info["score"]) == (1.0, True, 1.0)
    env.reset()
    for action in (1, 1, 2, 2, 2, 2, 2, 1):
        observation, *_, info = env.step(action)
    assert observation == '{"cur_pos": [3, 5], "tile_type": "G", "gold_collected": 0.5}'
    assert info["score"] == 0.5


def test_the_lakes_task_holds_no_map_and_no_single_reward():
    env = gym.make("DriftFrozenLake-v0", schedule=SWAP, text=True)
    tasks = {env.reset(seed=0)[1]["task"]}
    tasks.add(env.reset()[1]["task"])
    assert len(tasks) == 1
    task = tasks.pop()
    assert "6 rows x 6 columns" in task
    assert "2 destination(s): [3, 5], [5, 5]. The highest score is 1." in task
    assert "0 left, 1 down, 2 right, 3 up" in task
    assert "0.5" not in task
    assert "H" not in task


def test_the_highest_score_never_follows_a_drift():
    schedule = {**SWAP, "drifts": [{"at": 1, "set": {"goal_rewards": {"3,5": 0.25, "5,5": 0.5}}}]}
    env = gym.make("DriftFrozenLake-v0", schedule=schedule, text=True)
    first = env.reset(seed=0)[1]["task"]
    assert "The highest score is 1." in first
    assert env.reset()[1]["task"] == first
    other = gym.make("DriftFrozenLake-v0", schedule=schedule, text=True)
    assert other.reset(seed=0, options={"drift_tick": 1})[1]["task"] == first


def test_the_cars_state_shows_small_changes_of_the_force():
    states = []
    for force in (0.001, 0.0008):
        env = gym.make("DriftMountainCar-v0", schedule={"version": 1, "name": "f", "base": {"force": force}}, text=True)
        env.reset(seed=0)
        states.append(json.loads(env.step(2)[0]))
    assert states[0]["velocity"] - states[1]["velocity"] == pytest.approx(0.0002, abs=2e-6)


def test_the_cars_state_has_one_text_for_zero():
    env = gym.make("DriftMountainCar-v0", schedule=None, text=True)
    env.reset(seed=0)
    env.unwrapped.state = (-2e-7, -2e-7)
    env.unwrapped.gravity = 0.0
    assert env.step(1)[0] == '{"position": 0.000000, "velocity": 0.000000}'
    oracle = gym.make("DriftMountainCar-v0", schedule={"version": 1, "name": "f", "base": {"gravity": 0.0}})
    oracle.reset(seed=0)
    (response,) = oracle.get_wrapper_attr("oracle").response((-2e-7, -2e-7), 1, 0)
    assert "-0.000000" not in response.state


def test_the_cars_score_and_task():
    env = gym.make("DriftMountainCar-v0", schedule=None, text=True)
    _, info = env.reset(seed=0, options={"low": 0.45, "high": 0.46})
    assert "Reach the flag" in info["task"]
    assert "0.5" not in info["task"], "where the flag stands may drift and is not told"
    assert "0 push left, 1 do nothing, 2 push right" in info["task"]
    assert info["score"] == 0.0
    env.unwrapped.state = (0.49, 0.05)
    *_, info = env.step(2)
    assert info["score"] == 1.0
    assert env.reset()[1]["score"] == 0.0


@pytest.mark.parametrize("env_id", CORE_IDS)
def test_the_contract_of_text_environments(env_id):
    env = gym.make(env_id, text=True)
    plain = gym.make(env_id)
    assert env.action_space == plain.action_space
    assert isinstance(env.observation_space, gym.spaces.Text)
    observation, info = env.reset(seed=1)
    plain.reset(seed=1)
    keys = set(info)
    assert keys >= {"task", "actions", "score"}
    for number in range(60):
        action = info["actions"][number % len(info["actions"])]
        if isinstance(env.action_space, gym.spaces.Text):
            raw = action
        else:
            raw = np.array([float(action)], np.float32) if "Continuous" in env_id else int(action)
        assert env.action_space.contains(raw)
        observation, reward, terminated, truncated, info = env.step(action if number % 2 else raw)
        assert env.observation_space.contains(observation)
        json.loads(observation)
        assert (reward, terminated, truncated) == plain.step(raw)[1:4]
        assert set(info) == keys
        if terminated:
            observation, info = env.reset()
            plain.reset()
            assert set(info) == keys


def test_info_is_nobody_elses():
    env = gym.make("DriftFrozenLake-v0", text=True)
    _, info = env.reset(seed=0)
    info["actions"].clear()
    assert env.step(0)[4]["actions"] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Blackjack-v1", "Pendulum-v1", "CliffWalking-v1"])
def test_environments_of_others_are_shown_by_their_spaces(env_id):
    env, plain = TextObservation(gym.make(env_id)), gym.make(env_id)
    observation, info = env.reset(seed=3)
    plain.reset(seed=3)
    total = 0.0
    for number in range(40):
        assert env.observation_space.contains(observation)
        action = info["actions"][number % len(info["actions"])]
        observation, reward, terminated, truncated, info = env.step(action)
        assert (reward, terminated, truncated) == plain.step(read_action(plain.action_space, action))[1:4]
        total += float(reward)
        assert info["score"] == pytest.approx(total)
        if terminated or truncated:
            break


def test_spaces_that_are_too_large_are_refused():
    class Pictures(gym.Env):
        observation_space = gym.spaces.Box(0, 255, (8, 9), np.uint8)
        action_space = gym.spaces.Discrete(2)

    class Body(gym.Env):
        observation_space = gym.spaces.Box(-1, 1, (3,))
        action_space = gym.spaces.Box(-1, 1, (6,))

    with pytest.raises(ArgumentError, match="observations of at most 64 numbers"):
        TextObservation(Pictures())
    with pytest.raises(ArgumentError, match="at most 64 actions"):
        TextObservation(Body())


def test_whole_numbers_are_offered_and_read_where_a_space_has_no_others():
    class Levels(gym.Env):
        observation_space = gym.spaces.Discrete(2)
        action_space = gym.spaces.Box(np.array([0, 0]), np.array([5, 1]), dtype=np.uint8)

        def reset(self, *, seed=None, options=None):
            return 0, {}

    actions = TextObservation(Levels()).reset()[1]["actions"]
    assert actions == ["[0, 0]", "[0, 1]", "[2, 0]", "[2, 1]", "[5, 0]", "[5, 1]"]
    for text in actions:
        assert read_action(Levels.action_space, text).tolist() == json.loads(text)
    for text in ("[2.5, 0]", "[300, 0]", "[-1, 0]", "[" * 5000, f"[{10**400}, 0]"):
        with pytest.raises(ArgumentError, match="`action` should be an element of"):
            read_action(Levels.action_space, text)
    with pytest.raises(ArgumentError, match="`action` should be an element of"):
        read_action(gym.spaces.Box(-1, 1, (1,)), f"[{10**400}]")


@pytest.mark.parametrize("action", ["7", "-1", "left", "[0]", "1e400", "true", ""])
def test_a_text_that_is_no_action_is_refused(action):
    env = gym.make("DriftFrozenLake-v0", text=True)
    env.reset(seed=0)
    with pytest.raises(ArgumentError, match="`action` should be an element of"):
        env.step(action)


def test_by_hand_it_is_in_the_spec():
    env = TextObservation(gym.make("DriftFrozenLake-v0"))
    assert gym.make(env.spec).reset(seed=0) == env.reset(seed=0)
    inside = DriftWrapper(TextObservation(gym.make("DriftFrozenLake-v0", schedule=None).unwrapped), None)
    assert inside.reset(seed=0)[0].startswith('{"cur_pos"')


@pytest.mark.parametrize(
    ("space", "actions", "wrong"),
    [
        (gym.spaces.Discrete(2), ("left", "right"), "left"),
        (gym.spaces.Discrete(2, start=3), ("3", "5"), "5"),
        (gym.spaces.Box(-1.0, 1.0, (1,)), ("[-1.0]", "push"), "push"),
        (gym.spaces.MultiDiscrete([2, 2]), ("[0, 0]", "[0, 2]"), "[0, 2]"),
    ],
)
def test_actions_of_a_text_form_are_elements_of_the_space(space, actions, wrong):
    env = gym.make("CartPole-v1")
    env.unwrapped.action_space = space
    with pytest.MonkeyPatch.context() as patched:
        describer = SimpleNamespace(actions=actions, max_length=9, characters="a")
        patched.setattr("drift_envs.wrappers.text.find_describer", lambda _: describer)
        with pytest.raises(ArgumentError, match=re.escape(f"say in `task` what they mean. Received {wrong!r}")):
            TextObservation(env)


def test_actions_that_depend_on_the_state_are_checked_after_the_first_reset():
    class Describer(SimpleNamespace):
        @property
        def actions(self):
            return ("0",) if env.unwrapped.state is None else ("0", "push")

    env = gym.make("CartPole-v1")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("drift_envs.wrappers.text.find_describer", lambda _: Describer(max_length=9, characters="a"))
        text = TextObservation(env)
        with pytest.raises(ArgumentError, match=re.escape("say in `task` what they mean. Received 'push'")):
            text.reset(seed=0)

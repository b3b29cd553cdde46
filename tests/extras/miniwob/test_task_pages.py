"""The task pages: the solver, the package's own behaviour, determinism, and what a knob does."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from miniwob.environment import MiniWoBEnvironment
from miniwob.reward import get_raw_reward

from drift_envs.envs.miniwob.env import MiniWoB
from drift_envs.envs.miniwob.oracle import PageSolver
from drift_envs.envs.miniwob.page import TASKS
from drift_envs.errors import ArgumentError, DrivenKnobError, KnobError, MissingDependencyError, StateError
from webshop_server.settings import THEMES

PAGES = {name: name.title().replace("-", "") for name in TASKS}
pages = pytest.mark.parametrize("page", TASKS)
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"copies": 3, "acting_copy": 2},
    {"copies": 2, "layout": "mirrored"},
    {"layout": "upside_down", "interstitial": True, "interstitial_right": "Next"},
    {
        "layout": "shifted",
        "labels": {"Submit": "Send", "Login": "Go", "Search": "Find", "Close": "Bye", "Tab #1": "One"},
    },
    {"words": {"cheapest": "shortest", "shortest": "cheapest", "username": "password", "password": "username"}},
    {"words": {"4th": "7th", "7th": "4th", "Tab #2": "Tab #3", "Tab #3": "Tab #2", "ok": "no", "no": "ok"}},
)


def solve(env: Any) -> tuple[float, list[str]]:
    """The reward of the solver, and its actions; the episode has begun."""
    solver, actions = PageSolver(env), []
    for _ in range(30):
        actions.append(solver.action())
        _, reward, ended, _, info = env.step(actions[-1])
        assert info["last_action_error"] is None, (actions[-1], info["last_action_error"])
        if ended:
            return reward, actions
    return 0.0, actions


def turn(env: Any, knobs: dict[str, Any]) -> None:
    base = env.unwrapped
    checked = {name: base.knobs[name].check(value) for name, value in knobs.items()}
    base.knob_setter({**base.knobs.defaults(), **checked})


def state_of(observation: str) -> list[dict[str, Any]]:
    return json.loads(observation)["elements"]


@pages
def test_the_solver_solves_every_page_under_all_knobs(make: Any, page: str) -> None:
    env = make(PAGES[page], schedule=None, text=True)
    for knobs in SETTINGS:
        turn(env, knobs)
        for seed in (0, 3):
            observation, info = env.reset(seed=seed)
            assert env.observation_space.contains(observation)
            assert all(env.action_space.contains(action) for action in info["actions"])
            reward, actions = solve(env)
            assert reward == 1.0, (knobs, seed, actions)


@pages
def test_without_a_schedule_a_page_is_that_of_the_package(make: Any, page: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("MINIWOB_CHROME_BINARY", shutil.which("chromium"))
    monkeypatch.setenv("MINIWOB_CHROMEDRIVER", shutil.which("chromedriver"))
    monkeypatch.setenv("TZ", "UTC")
    # a page keeps the focus of the last episode unless it is loaded anew, as ours always is
    theirs = MiniWoBEnvironment(page, reward_processor=get_raw_reward, refresh_freq=1)
    ours = make(PAGES[page], schedule=None)
    try:
        assert ours.observation_space == theirs.observation_space
        assert ours.action_space == theirs.action_space
        for seed in (0, 5):
            one, info = ours.reset(seed=seed)
            other, _ = theirs.reset(seed=seed)
            assert_same_page(one, other)
            assert not info["done"]
            # a click on each element in turn, until one ends the episode
            for part in one["dom_elements"]:
                if part["ref"] > 0 and part["tag"] in ("button", "a", "span", "input_text"):
                    action = theirs.create_action("CLICK_ELEMENT", ref=part["ref"])
                    _, reward, ended, _, _ = ours.step(action)
                    _, expected, expected_end, _, _ = theirs.step(action)
                    assert (reward, ended) == (expected, expected_end)
                    if ended:
                        break
    finally:
        theirs.close()


def assert_same_page(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one["utterance"] == other["utterance"]
    assert one["fields"] == other["fields"]
    assert len(one["dom_elements"]) == len(other["dom_elements"])
    for mine, its in zip(one["dom_elements"], other["dom_elements"], strict=True):
        for key in mine:
            assert np.array_equal(mine[key], its[key]), (key, mine, its)
    # the package may photograph a frame of a transition
    assert np.mean(np.any(one["screenshot"] != other["screenshot"], axis=2)) < 0.03


def test_equal_seeds_give_equal_pages_and_time_stands_still(make: Any) -> None:
    runs = []
    for _ in range(2):
        env = make("BookFlight", schedule="miniwob/implicit", text=True)
        run = []
        for episode in range(3):
            observation, info = env.reset(seed=11 if episode == 0 else None)
            run.append((observation, info["task"], solve(env), env.unwrapped.goal_index))
        runs.append(run)
    assert runs[0] == runs[1]
    assert [entry[2][0] for entry in runs[0]] == [1.0] * 3, (
        "thirty seconds may have passed; the page does not count them"
    )


def test_tasks_of_a_pool_recur(make: Any) -> None:
    env = make("EnterText", schedule="miniwob/null", text=True)
    env.reset(seed=3)
    numbers = [env.unwrapped.goal_index]
    for _ in range(7):
        env.reset()
        numbers.append(env.unwrapped.goal_index)
    assert len(set(numbers)) == 4
    assert sorted(numbers[:4]) == sorted(numbers[4:]) == sorted(env.unwrapped.task_pool)
    env.reset(options={"goal_index": 77})
    assert env.unwrapped.goal_index == 77
    with pytest.raises(
        ArgumentError, match=re.escape("`goal_index` should be a whole number in the interval [0, 2147483647]")
    ):
        env.reset(options={"goal_index": 2**31})


def test_every_other_copy_fails_and_nothing_shows_which(make: Any) -> None:
    env = make("LoginUser", schedule=None, text=True)
    pages = []
    for acting in (1, 2):
        turn(env, {"copies": 2, "acting_copy": acting})
        observation, info = env.reset(seed=4)
        pages.append((observation, info))
        user, password = json.loads(observation)["values"]
        env.step(f"type[Username = {user}]")
        env.step(f"type[Password = {password}]")
        _, reward, ended, _, info = env.step("click[Login (2)]")
        assert (reward, ended) == ((1.0, True) if acting == 2 else (-1.0, True))
        assert info["score"] == max(0.0, reward)
        assert env.step("click[Login]")[1:3] == (0.0, True), "the end pays once"
    assert pages[0] == pages[1]


@pytest.mark.parametrize("name", ["implicit", "interstitial"])
def test_an_implicit_drift_is_not_seen(make: Any, name: str) -> None:
    """Document, picture and text of a page are the same before and after."""
    env = make("LoginUser", schedule=f"miniwob/{name}")
    words = make("LoginUser", schedule=f"miniwob/{name}", text=True)
    seen = []
    for tick in (0, 20):
        options = {"goal_index": 9, "drift_tick": tick}
        seed = 0 if tick == 0 else None
        observation, info = env.reset(seed=seed, options=options)
        seen.append((observation, info, words.reset(seed=seed, options=options)))
    (one, info, text), (other, other_info, other_text) = seen
    assert_same_page(one, other)
    assert np.array_equal(one["screenshot"], other["screenshot"])
    assert (info, text) == (other_info, other_text)


@pages
@pytest.mark.parametrize("name", ["explicit", "implicit", "interstitial"])
def test_what_solved_a_page_fails_after_a_drift(make: Any, page: str, name: str) -> None:
    # names of files are no labels
    drifts = (20,) if (page, name) == ("navigate-tree", "explicit") else (20, 40)
    env = make(PAGES[page], schedule=f"miniwob/{name}", text=True)
    env.reset(seed=1, options={"goal_index": 5})
    reward, actions = solve(env)
    assert reward == 1.0
    for tick in drifts:
        env.reset(options={"goal_index": 5, "drift_tick": tick})
        rewards = [env.step(action)[1] for action in actions]
        assert max(rewards) <= 0.0, (tick, actions)
        env.reset(options={"goal_index": 5, "drift_tick": tick})
        reward, actions = solve(env)
        assert reward == 1.0


def test_words_come_to_mean_each_other(make: Any) -> None:
    env = make("LoginUser", schedule="miniwob/words", text=True)
    _, before = env.reset(seed=1, options={"goal_index": 5})
    _, after = env.reset(options={"goal_index": 5, "drift_tick": 20})
    swapped = {"username": "password", "password": "username"}
    assert after["task"] == re.sub("username|password", lambda match: swapped[match[0]], before["task"])
    assert solve(env)[0] == 1.0


def test_a_change_within_an_episode_reaches_the_page(make: Any) -> None:
    schedule = {
        "version": 1,
        "name": "s",
        "clock": "step",
        "drifts": [{"at": 1, "set": {"labels": {"Submit": "Send"}}}],
    }
    env = make("EnterText", schedule=schedule, text=True)
    observation, _ = env.reset(seed=0)
    assert {"button": "Submit"} in state_of(observation)
    env.step("click[text field]")
    observation = env.step("click[text field]")[0]
    assert {"button": "Send"} in state_of(observation)


def test_lost_and_invalid_actions(make: Any) -> None:
    env = make("EnterText", schedule={"version": 1, "name": "t", "base": {"transient": 1.0}}, text=True)
    before, info = env.reset(seed=0)
    assert env.step(info["actions"][0])[0] == before
    env = make("EnterText", schedule=None, text=True)
    before, _ = env.reset(seed=0)
    for action, reason in (
        ("click[Logout]", "there is no 'Logout' to click on this page"),
        ("type[Submit = x]", "there is no field 'Submit' on this page"),
        ("type[text field]", "an action should have the form type[field = text]"),
        ("press enter", "an action should have the form click[name] or type[field = text]"),
    ):
        after, reward, ended, _, info = env.step(action)
        assert (after, reward, ended, info["last_action_error"]) == (before, 0.0, False, reason)
    with pytest.raises(ArgumentError, match=r"`action` should be a text\. Received int"):
        env.step(3)


def test_what_an_interstitial_covers_receives_nothing(make: Any) -> None:
    env = make("ClickDialog", schedule="miniwob/interstitial")
    observation, _ = env.reset(seed=0)
    close = next(part for part in observation["dom_elements"] if "close" in part["classes"] and part["tag"] == "button")
    preset = env.unwrapped.form._config
    action = {
        **env.action_space.sample(),
        "action_type": preset.action_types.index("CLICK_ELEMENT"),
        "ref": close["ref"],
    }
    assert env.step(action)[1:3] == (0.0, False)


def test_knobs_are_checked() -> None:
    env = MiniWoB(observation_mode="state")
    for name, value, rule in (
        ("theme", "baroque", f"`theme` should be one of {', '.join(map(repr, THEMES))}. Received 'baroque'"),
        ("words", {"a": "b"}, "`words` should give every word the meaning of another one of them"),
        ("labels", {"Submit": "a]"}, "`labels` should consist of texts of 1 to 40 characters"),
        ("interstitial_buttons", ["Go"], "`interstitial_buttons` should be 2 to 6 different texts"),
        ("interstitial_right", "Go", "`interstitial_right`: should be one of Continue, Proceed, Next. Received 'Go'"),
        ("acting_copy", 2, "`acting_copy`: should not exceed `copies`, which is 1. Received 2"),
    ):
        with pytest.raises(KnobError, match=re.escape(rule)):
            env.set_knob(name, value)
    with pytest.raises(StateError, match="call `reset` first"):
        env.step("click[x]")
    with pytest.raises(ArgumentError, match="`task` should be one of click-button"):
        MiniWoB(task="chess")


def test_arguments_and_driven_knobs(make: Any) -> None:
    with pytest.raises(
        ArgumentError, match="`pool` should not be given, since the schedule `miniwob/null` sets `tasks`"
    ):
        make("LoginUser", schedule="miniwob/null", pool=2)
    with pytest.raises(ArgumentError, match="got an unexpected keyword argument 'task'"):
        make("LoginUser", task="click-tab")
    env = make("LoginUser", schedule="miniwob/implicit")
    with pytest.raises(DrivenKnobError):
        env.unwrapped.copies = 3


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_missing(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr("drift_envs.envs.miniwob.page.resources.files", is_missing)
    with pytest.raises(MissingDependencyError, match=re.escape('pip install ".[miniwob]"')):
        gym.make("DriftMiniWoBLoginUser-v0")

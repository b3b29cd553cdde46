"""The task pages as Gymnasium environments: checks, copies, twins, snapshots, crashes, pictures."""

from __future__ import annotations

import copy
import os
import pickle
import signal
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AsyncVectorEnv

from drift_envs import snapshot, twin
from drift_envs.envs.miniwob.oracle import PageSolver
from drift_envs.errors import HiddenError
from tests.processes import children_of, is_alive, wait_until


@pytest.mark.parametrize("text", [False, True], ids=["package", "text"])
@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version.*")
@pytest.mark.filterwarnings("ignore:.*not within the observation space.*")
@pytest.mark.filterwarnings("ignore:.*Box observation space.*")
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized space.*")
def test_gymnasium_accepts_it(make: Any, text: bool) -> None:
    env = make("ClickButton", text=text, render_mode="rgb_array")
    check_env(env, skip_close_check=True)
    rebuilt = gym.make(env.spec)
    try:
        one, other = env.reset(seed=2)[0], rebuilt.reset(seed=2)[0]
        assert data_equivalence(one, other)
    finally:
        rebuilt.close()


def test_copies_and_pickles_repeat_the_episode_in_a_browser_of_their_own(make: Any) -> None:
    env = make("LoginUser", text=True)
    env.reset(seed=1)
    action = PageSolver(env).action()
    state = env.step(action)[0]
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        try:
            next_action = PageSolver(env).action()
            assert PageSolver(other).action() == next_action
            after = other.step(next_action)[0]
            assert after != state
            assert other.unwrapped.page is not env.unwrapped.page
        finally:
            other.close()
    assert env.step(PageSolver(env).action())[0] == after


def test_a_twin_has_an_equal_page_with_the_present_knobs(make: Any) -> None:
    env = make("LoginUser", schedule="miniwob/implicit", text=True)
    second = twin(env)
    try:
        for episode in (0, 1):
            observation, _ = env.reset(seed=0, options={"drift_tick": 20 * episode})
            assert second.reset()[0] == observation
            assert env.get_wrapper_attr("drift_state").knobs["acting_copy"] == episode + 1
            for _ in range(3):
                action = PageSolver(env).action()
                assert second.step(action)[:4] == env.step(action)[:4]
        with pytest.raises(HiddenError):
            second.drift_state  # noqa: B018  reading it is the test
    finally:
        second.close()


def test_a_snapshot_restores_the_page(make: Any) -> None:
    env = make("LoginUser", text=True)
    env.reset(seed=0)
    env.step(PageSolver(env).action())
    saved = snapshot(env)
    states = []
    for _ in range(2):
        run = []
        while not (run and run[-1][2]):
            run.append(env.step(PageSolver(env).action())[:3])
        states.append(run)
        saved.restore()
    assert states[0] == states[1]
    assert states[0][-1][1] == 1.0


def test_after_a_crash_the_episode_goes_on_and_no_process_is_left(make: Any) -> None:
    env = make("LoginUser", text=True)
    env.reset(seed=0)
    env.step(PageSolver(env).action())
    driver = env.unwrapped.page.driver.service.process.pid
    started = [driver, *children_of(driver)]
    assert len(started) > 2
    os.kill(started[1], signal.SIGKILL)  # the browser
    reward = 0.0
    while not reward:
        reward = (
            env.step(PageSolver(env).action())[1] if env.unwrapped.page.is_alive() else env.step("click[Username]")[1]
        )
    assert reward == 1.0
    again = env.unwrapped.page.driver.service.process.pid
    started += [again, *children_of(again)]
    os.kill(again, signal.SIGKILL)  # the driver, whose browser it leaves behind
    env.close()
    assert wait_until(lambda: not any(map(is_alive, started))), [pid for pid in started if is_alive(pid)]


def test_close_ends_the_browser(make: Any) -> None:
    env = make("ClickTab", text=True)
    env.reset(seed=0)
    driver = env.unwrapped.page.driver.service.process.pid
    started = [driver, *children_of(driver)]
    env.close()
    env.close()
    assert wait_until(lambda: not any(map(is_alive, started)))


def test_vector_environments() -> None:
    envs = AsyncVectorEnv(
        [lambda: gym.make("drift_envs:DriftMiniWoBClickTab-v0", text=True)] * 2, shared_memory=False, context="spawn"
    )
    try:
        _, infos = envs.reset(seed=[0, 1])
        _, rewards, ended, _, _ = envs.step([actions[0] for actions in infos["actions"]])
        assert set(np.abs(rewards)) == {1.0}
        assert ended.all()
    finally:
        envs.close()


def test_pictures(make: Any) -> None:
    env = make("LoginUser", text=True, render_mode="rgb_array")
    env.reset(seed=0)
    plain = env.render()
    assert plain.shape == (630, 480, 3)
    assert plain.dtype == np.uint8
    env = make("LoginUser", text=True, render_mode="rgb_array", overlay=True)
    env.reset(seed=0)
    assert env.render().shape[0] > 630
    env = make("LoginUser", text=True, render_mode="ansi")
    _, info = env.reset(seed=0)
    assert env.render().splitlines()[0] == info["task"]
    assert "[Login (2)]" in env.render()

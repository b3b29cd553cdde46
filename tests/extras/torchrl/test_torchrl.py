"""TorchRL's GymWrapper on drifting environments, single and vectorized, and the example that trains through it."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import drift_envs  # noqa: F401

pytest.importorskip("torchrl", reason="needs tests/extras/torchrl/requirements.txt")

import torch
from torchrl.envs import GymEnv, GymWrapper

from tests.documents import read_code
from tests.extras.offline import offline  # noqa: F401

# TorchRL's own: it defines classes that it has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:Creating .* which inherits from WeightUpdaterBase:DeprecationWarning")
ROOT = Path(__file__).resolve().parents[3]
TURN = {"version": 1, "name": "turn", "base": {"map": ["SFG"]}, "drifts": [{"at": 4, "set": {"map": ["SFFFG"]}}]}
RIGHT = 2


def walk(env, steps):
    """Rewards and ends of lakes whose walkers all go right; shape (steps, lakes)."""
    found, state = [], env.reset()
    for _ in range(steps):
        state["action"] = torch.full(env.batch_size or (), RIGHT)
        done, state = env.step_and_maybe_reset(state)
        found.append((done["next", "reward"].flatten().tolist(), done["next", "done"].flatten().tolist()))
    return found


def test_a_single_environment_drifts_inside_the_wrapper():
    inner = gym.make("DriftFrozenLake-v0", schedule=TURN)
    env = GymWrapper(inner, categorical_action_encoding=True)
    env.set_seed(0)
    rewards = [reward for (reward,), _ in walk(env, 14)]
    # `set_seed` resets, and the first reset begins tick 1: three episodes of two steps, then some of four
    assert rewards == [0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]
    assert inner.get_wrapper_attr("drift_state").phase == "drift-1"


@pytest.mark.parametrize("name", ["DriftFrozenLake-v0", "DriftMountainCarContinuous-v0", "DriftCartPole-v0"])
def test_gym_env_makes_an_id(name):
    env = GymEnv(name, frame_skip=2)  # which it offers the environment first
    assert env.rollout(3, break_when_any_done=False)["next", "reward"].shape == (3, 1)
    assert env._env.get_wrapper_attr("drift_state").phase == "source"


def test_the_native_vector_form_drifts_inside_the_wrapper():
    lakes = gym.make_vec("DriftFrozenLake-v0", num_envs=3, schedule=TURN, autoreset_mode="Disabled")
    env = GymWrapper(lakes, categorical_action_encoding=True)
    env.set_seed(0)
    found = walk(env, 14)
    assert [rewards for rewards, _ in found] == [[r] * 3 for r in [0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]]
    assert all(done == [reward == 1] * 3 for rewards, done in found for reward in rewards[:1])
    assert {state.phase for state in lakes.get_attr("drift_state")} == {"drift-1"}


def test_lakes_that_end_at_different_times_keep_their_own_clocks():
    lakes = gym.make_vec("DriftFrozenLake-v0", num_envs=2, schedule=TURN, autoreset_mode="Disabled")
    env = GymWrapper(lakes, categorical_action_encoding=True)
    env.set_seed(0)
    state = env.reset()
    for step in range(4):
        state["action"] = torch.tensor([RIGHT, RIGHT if step > 1 else 0])
        _, state = env.step_and_maybe_reset(state)
    assert [state.tick for state in lakes.get_attr("drift_state")] == [3, 2]


def test_frames_are_those_of_the_environment_without_torchrl():
    def cars():
        return gym.make_vec("DriftMountainCar-v0", num_envs=4, autoreset_mode="Disabled", max_episode_steps=50)

    env = GymWrapper(cars(), categorical_action_encoding=True)
    env.set_seed(3)
    steps = env.rollout(30, auto_reset=True, break_when_any_done=False)
    plain = cars()
    plain.reset(seed=3)
    plain.reset()
    for step in range(30):
        observations, *_ = plain.step(steps["action"][:, step].numpy())
        assert np.array_equal(observations, steps["next", "observation"][:, step].numpy())


def test_the_example_trains_and_draws(tmp_path, capsys):
    example = runpy.run_path(str(ROOT / "examples" / "torchrl_mountain_car.py"))
    out = tmp_path / "curve.png"
    rates = example["main"](["--frames", "12288", "--seeds", "1", "--out", str(out)])
    assert rates.shape == (1, 6)
    shown = capsys.readouterr().out
    assert "source: return -" in shown
    assert "reversed: return -" in shown
    assert out.stat().st_size > 1000


def test_the_code_of_the_page_runs(tmp_path):
    _, code = read_code("docs/stable_baselines3.md")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    shape, phase = done.stdout.splitlines()[-2:]
    assert shape == "torch.Size([64, 200, 1])"
    assert phase in ("source", "drift-1", "drift-2")  # random actions, which TorchRL does not seed

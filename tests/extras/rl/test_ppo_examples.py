"""The examples of PPO learn, in short form, and draw their curves."""

from __future__ import annotations

import runpy
import signal
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from tests.extras.offline import offline  # noqa: F401

torch = pytest.importorskip("torch", reason="needs the extra `rl`")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(EXAMPLES / "ppo_vector.py"))


def test_advantages_are_those_of_the_recursion(example):
    settings = example["Settings"](discount=0.5, trace=0.5)
    rewards, values = torch.tensor([[0.0], [1.0], [0.0]]), torch.tensor([[0.2], [0.4], [0.6]])
    following, ends = torch.tensor([[0.4], [0.0], [0.8]]), torch.tensor([[0.0], [1.0], [0.0]])
    found = example["advantages"](rewards, values, following, ends, settings)
    # from the last step: 0 + .5 * .8 - .6; an end cuts the trace: 1 - .4; 0 + .5 * .4 - .2 + .25 * .6
    assert torch.allclose(found.flatten(), torch.tensor([0.15, 0.6, -0.2]))


def test_ppo_learns_a_short_lake_and_falls_at_the_drift(example):
    schedule = {
        "version": 1, "name": "s", "clock": "step", "base": {"map": ["SFF", "FFG"]},
        "drifts": [{"at": 30 * 32, "set": {"map": ["SFF", "HFG"]}}],
    }  # fmt: skip
    torch.set_num_threads(1)
    lakes = gym.make_vec("DriftFrozenLake-v0", num_envs=32, schedule=schedule, autoreset_mode="SameStep")
    returns = example["train"](lakes, 30, 0, example["Settings"]())
    assert np.nanmean(returns[:2]) > 0.9  # without holes every episode ends at the goal
    lakes = gym.make_vec(
        "DriftFrozenLake-v0", num_envs=32, schedule={**schedule, "base": {"map": ["SFF", "HFG"]}, "drifts": []},
        autoreset_mode="SameStep",
    )  # fmt: skip
    learned = example["train"](lakes, 30, 0, example["Settings"]())
    assert learned[0] < 0.7 < 0.9 < learned[-1]


def test_the_last_state_of_a_truncated_episode_is_valued(example):
    """A lake without a goal that is cut after 4 steps: a value of 0 at its end would be an error of the update."""
    seen = []

    class Spy(example["ActorCritic"]):
        def forward(self, states):
            seen.append(states.tolist())
            return super().forward(states)

    schedule = {"version": 1, "name": "s", "base": {"map": ["SFFFG"]}}
    lakes = gym.make_vec(
        "DriftFrozenLake-v0", num_envs=1, schedule=schedule, autoreset_mode="SameStep", max_episode_steps=1
    )
    train = example["train"]
    train.__globals__["ActorCritic"] = Spy
    try:
        train(lakes, 1, 0, example["Settings"](rollout=8))
    finally:
        train.__globals__["ActorCritic"] = Spy.__mro__[1]
    acted, valued = seen[0:16:2], seen[1:16:2]
    assert all(states == [0] for states in acted)
    assert [1] in valued  # the walker stood there when its episode was cut


def test_the_example_draws_both_schedules(example, tmp_path, capsys):
    out = tmp_path / "new" / "curve.png"
    curves = example["main"](["--lakes", "8", "--updates", "2", "--seeds", "2", "--out", str(out)])
    assert {name: rows.shape for name, rows in curves.items()} == {
        "frozen_lake/implicit": (2, 4),
        "frozen_lake/explicit": (2, 6),
    }
    assert "frozen_lake/explicit, drift-2: return" in capsys.readouterr().out
    assert out.stat().st_size > 1000


def test_the_example_of_stable_baselines_draws_its_curve(tmp_path, capsys):
    pytest.importorskip("stable_baselines3", reason="needs the extra `rl`")
    out = tmp_path / "new" / "curve.png"
    main = runpy.run_path(str(EXAMPLES / "ppo_mountain_car.py"))["main"]
    returns, phases = main(["--steps", "4000", "--number", "4", "--drift", "2", "--out", str(out)])
    assert (phases[0], phases[-1]) == ("source", "reversed")
    assert len(returns) > 8
    assert "mean return" in capsys.readouterr().out
    assert out.stat().st_size > 1000


def test_an_interrupted_example_shows_what_it_has_played(tmp_path, capsys, monkeypatch):
    baselines = pytest.importorskip("stable_baselines3", reason="needs the extra `rl`")
    monkeypatch.setattr(baselines.PPO, "train", lambda model: signal.raise_signal(signal.SIGINT))
    out = tmp_path / "new" / "curve.png"
    main = runpy.run_path(str(EXAMPLES / "ppo_mountain_car.py"))["main"]
    with pytest.raises(SystemExit) as ended:
        main(["--steps", "8000", "--number", "8", "--out", str(out)])
    assert ended.value.code == 130
    assert "interrupted after 1024 of 8000 steps" in capsys.readouterr().out
    assert out.stat().st_size > 1000

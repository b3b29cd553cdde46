"""The example that trains on drifting lakes in one compiled loop."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs the extra `jax`")

HOME = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _double():
    """Single precision, as users have it."""


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("drift_envs.functional")
    spec = importlib.util.spec_from_file_location("ppo_jax", HOME / "examples" / "ppo_jax.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_goal_that_pays_moves_at_the_drift(example):
    schedules, ticks = example.make_schedules(300, seed=0)
    assert ticks.min() >= example.EARLIEST
    assert ticks.max() < example.LATEST
    for schedule, tick in zip(schedules, ticks, strict=True):
        before, after = schedule["base"]["goal_rewards"], schedule["drifts"][0]["set"]["goal_rewards"]
        assert sorted(before.values()) == sorted(after.values()) == [0.0, 0.0, 0.0, 1.0]
        assert before != after
        assert schedule["drifts"][0]["at"] == tick
    assert example.make_schedules(300, seed=0)[0] == schedules
    assert example.make_schedules(300, seed=1)[0] != schedules


def test_only_the_recurrent_layer_remembers(example):
    weights = example.make_weights(jax.random.key(0), 8)
    inputs = (np.array([3, 3]), np.array([1, 1]), np.zeros(2), np.zeros(2))
    states = np.array([[0.0] * 8, [0.9] * 8])
    for memory in (True, False):
        logits = np.asarray(example.apply(memory, weights, states, inputs)[1][0])
        assert np.allclose(logits[0], logits[1]) is not memory


def test_advantages_are_discounted_sums_of_errors(example):
    rng = np.random.default_rng(0)
    value, reward = rng.random((6, 2)), rng.random((6, 2))
    batch = example.Batch(None, None, None, value, reward, None)
    following = np.concatenate([value[1:], np.zeros((1, 2))])
    error = reward + example.GAMMA * following - value
    factor = example.GAMMA * example.LAMBDA
    expected = [sum(factor**k * error[t + k] for k in range(6 - t)) for t in range(6)]
    np.testing.assert_allclose(np.asarray(example.advantages(batch)), expected, rtol=1e-5)


def test_the_whole_program_prints_and_draws(example, capsys, tmp_path, monkeypatch):
    picture = tmp_path / "curves.png"
    options = ["--num-envs", "64", "--updates", "10", "--lifetimes", "50", "--width", "8", "--out", str(picture)]
    monkeypatch.setattr("sys.argv", ["ppo_jax.py", *options])
    example.main()
    printed = capsys.readouterr().out
    assert printed.count("update 10") == 2
    assert all(window in printed for window in example.WINDOWS)
    assert picture.read_bytes()[:4] == b"\x89PNG"

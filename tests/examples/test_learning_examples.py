"""The examples run, in short form, and show what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name):
    return runpy.run_path(str(EXAMPLES / name))


@pytest.mark.slow
def test_ppo_trains_through_a_drift(capsys):
    pytest.importorskip("stable_baselines3", reason="needs the extra `rl`")
    returns, phases = load("ppo_mountain_car.py")["main"](["--steps", "12000", "--number", "4", "--drift", "3"])
    assert len(returns) >= 20
    assert phases[0] == "source"
    assert phases[-1] == "reversed"
    assert "mean return" in capsys.readouterr().out


def test_ppo_says_what_is_missing():
    pytest.importorskip("gymnasium")
    try:
        import stable_baselines3  # noqa: F401
    except ImportError:
        with pytest.raises(SystemExit, match=r"\.\[rl\]"):
            load("ppo_mountain_car.py")["main"]([])
    else:
        pytest.skip("the extra `rl` is installed")


@pytest.mark.integration
@pytest.mark.parametrize(
    ("schedule", "after", "knob"), [("tides", "flood", "map"), ("implicit", "reversal", "goal_rewards")]
)
def test_the_explorer_states_what_changed(schedule, after, knob, capsys):
    score = load("what_changed.py")["main"](["--schedule", f"frozen_lake/{schedule}", "--after", after])
    assert (score.precision, score.recall) == (1.0, 1.0)
    assert score.agreement[knob] > 0.9
    assert "agreement" in capsys.readouterr().out


def test_nothing_is_stated_where_nothing_changed(capsys):
    arguments = ["--schedule", "frozen_lake/tides", "--after", "source", "--episodes", "20"]
    assert load("what_changed.py")["main"](arguments).precision is None

"""The second table: lifetimes of Stable-Baselines3's PPO, restarts, parts that resume."""

import numpy as np
import pandas as pd
import pytest

for package in ("stable_baselines3", "river", "minigrid", "mujoco"):
    pytest.importorskip(package, reason="needs the extra `baselines`")

from baselines import __main__ as command
from baselines import sb3_table
from baselines.environments import REGIMES, Regime
from drift_envs.errors import ArgumentError

pytestmark = pytest.mark.integration


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setitem(REGIMES, "late", Regime("late", (0, 1), (4, 2), 2))


def test_a_restart_changes_nothing_before_the_drift_and_the_policy_after_it(short):
    plain, none = sb3_table.play_lifetime("pole", sb3_table.PLAIN, 0)
    told, restarts = sb3_table.play_lifetime("pole", sb3_table.TOLD, 0)
    assert (none, restarts) == ([], [4])
    assert np.array_equal(plain[:4], told[:4])
    assert not np.array_equal(plain[4:], told[4:])
    assert plain.shape == (6,)
    assert np.array_equal(plain, sb3_table.play_lifetime("pole", sb3_table.PLAIN, 0)[0])


def test_page_hinkley_restarts_the_learner_when_its_scores_have_fallen(monkeypatch, short):
    monkeypatch.setattr(sb3_table, "THRESHOLD", -1.0)  # fires as soon as it has five scores
    assert sb3_table.play_lifetime("pole", sb3_table.DETECTS, 0)[1] == [5]


@pytest.mark.parametrize("name", sb3_table.ENVIRONMENTS)
def test_what_one_phase_pays_for_the_other_does_not(name):
    env = sb3_table.ENVIRONMENTS[name]
    # to the green goal, right and down; for the pole pushes against its fall
    returns = []
    for knobs in env.phases:
        copy = env.make({"version": 1, "name": "one", "clock": "step", "base": knobs, "drifts": []})
        seen, _ = copy.reset(seed=0)
        way, total, done = iter([2] * 5 + [1] + [2] * 5), 0.0, False
        while not done:
            action = next(way) if name == "room" else np.clip([3 * seen[1] + seen[3]], -3, 3).astype(np.float32)
            seen, reward, terminated, truncated, _ = copy.step(action)
            total, done = total + reward, terminated or truncated
        returns.append(total / env.unit)
        copy.close()
    assert max(returns) > 0.9
    assert min(returns) < 0.2


def test_the_command_plays_what_is_missing_and_prints_the_table(short, tmp_path, capsys):
    words = ["sb3", "--out", str(tmp_path / "parts"), "--results", str(tmp_path / "shipped"), "--seeds", "1"]
    assert command.main(words) == 0
    printed = capsys.readouterr().out
    assert "| late, n = 1 | room | pole |" in printed
    assert "6 of 6" in printed
    assert command.main(words) == 0
    again = capsys.readouterr().out
    assert "of 6" not in again
    assert again.strip() in printed
    assert set(pd.read_parquet(tmp_path / "shipped" / "sb3.parquet")["environment"]) == {"room", "pole"}


def test_a_folder_of_the_board_is_refused(tmp_path):
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(ArgumentError, match="same plan"):
        sb3_table.play_table(tmp_path, 1)

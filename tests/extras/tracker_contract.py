"""What holds of every tracker: one suite, whose subclasses read back what the tool has written.

* `TrackerContract` - the suite
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium as gym
from drift_agents.cli.app import main

from drift_envs.integrations.trackers import TrackEpisodes

ROOT = Path(__file__).resolve().parents[2]
TURN = {
    "version": 1, "name": "turn",
    "base": {"map": ["SFF", "HHG"]},
    "drifts": [{"name": "moved", "every": 3, "for": 2, "set": {"map": ["SHF", "FFG"]}}],
}  # fmt: skip
SMALL = (
    "name: small\nschedules: [frozen_lake/implicit]\nseeds: 1\nrounds: 8\n"
    "agents: {memory: vanilla, verifier: [none, glove], policy: planner}\n"
)
Series = dict[str, list[tuple[int, float]]]


class TrackerContract:
    """Subclasses name the tool and read its files."""

    name: str

    def read(self, folder: Path) -> dict[str, tuple[dict[str, Any], Series]]:
        """Settings and series of each run in a folder."""
        raise NotImplementedError

    def test_episodes_of_an_environment_are_read_back(self, tmp_path):
        env = TrackEpisodes(gym.make("DriftFrozenLake-v0", schedule=TURN), [self.name], tmp_path, "walk")
        for episode in range(7):
            env.reset(seed=0 if episode == 0 else None)
            for action in (2, 2, 1):
                if any(env.step(action)[2:4]):
                    break
        env.close()
        ((name, (_, series)),) = self.read(tmp_path / self.name).items()
        assert name == "walk"
        assert series["score"] == [(0, 1.0), (1, 1.0), (2, 1.0), (3, 0.0), (4, 0.0), (5, 1.0), (6, 0.0)]
        drifts = [step for step, value in series["drift"] if value == 1]
        assert drifts == [3, 5, 6]  # begins, ends, and begins again: a phase each
        assert [step for step, _ in series["phase_score/source"]] == [0, 1, 2]
        assert [value for _, value in series["mean_score/source"]] == [1.0]
        assert [value for _, value in series["mean_score/moved"]] == [0.0]

    def test_a_run_is_logged_by_the_command(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        Path("small.yaml").write_text(SMALL, encoding="utf-8")
        assert main(["run", "small.yaml", "--log-to", self.name, "--out", "runs/small", "--jobs", "1"]) == 0
        assert "tracking" in capsys.readouterr().err
        runs = self.read(tmp_path / "runs" / "small" / "tracking" / self.name)
        assert len(runs) == 2
        for about, series in runs.values():
            assert about["schedule"] == "frozen_lake/implicit"
            assert len(series["score"]) == 16
            assert [step for step, value in series["drift"] if value == 1] == [8]
            assert series["truth_rate"]
            assert "mean_score/reversal" in series
        probes = {about["verifier"]: sum(value for _, value in series["probes"]) for about, series in runs.values()}
        assert probes["none"] == 0 < probes["glove"]

    def test_two_runs_of_one_name_are_two_runs(self, tmp_path):
        for _ in range(2):
            env = TrackEpisodes(gym.make("DriftFrozenLake-v0", schedule=None), [self.name], tmp_path, "same")
            env.reset(seed=0)
            while not any(env.step(0)[2:4]):
                pass
            env.close()
        assert self.count(tmp_path / self.name) == 2

    def count(self, folder: Path) -> int:
        """The number of runs in a folder."""
        return len(self.read(folder))

    def test_the_page_names_the_tool(self):
        page = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
        assert re.search(rf"^\| `{self.name}` \|", page, re.MULTILINE)

"""Local runs of Trackio, each test in a process of its own, since Trackio reads its folder once."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trackio", reason="needs the extra `trackio`")

from tests.extras.tracker_contract import SMALL, TURN

WALK = """
import json, sys
import gymnasium as gym
import socket
def refuse(self, address, *_):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
        raise SystemExit(f"a connection to {address!r}")
    return connect(self, address)
connect = socket.socket.connect
socket.socket.connect = refuse
"""
EPISODES = (
    WALK
    + """
from drift_envs.integrations.trackers import TrackEpisodes
for name in ("walk", "walk"):
    env = TrackEpisodes(gym.make("DriftFrozenLake-v0", schedule=json.loads(sys.argv[1])), ["trackio"], "runs", name)
    for episode in range(7):
        env.reset(seed=0 if episode == 0 else None)
        for action in (2, 2, 1):
            if any(env.step(action)[2:4]):
                break
    env.close()
"""
)
COMMAND = (
    WALK
    + """
from drift_agents.cli.app import main
sys.exit(main(["run", "small.yaml", "--log-to", "trackio", "--out", "runs/small", "--jobs", "1"]))
"""
)


def run(code, folder, *arguments, **variables):
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300, check=False, cwd=folder,
        env={**os.environ, **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_episodes_and_the_command_are_tracked(tmp_path):
    run(EPISODES, tmp_path, json.dumps(TURN))
    files = sorted((tmp_path / "runs" / "trackio").rglob("*.db"))
    assert files, list((tmp_path / "runs").rglob("*"))
    with sqlite3.connect(files[0]) as base:
        rows = [
            (name, step, json.loads(text))
            for name, step, text in base.execute("select run_name, step, metrics from metrics order by id")
        ]
    base.close()
    scores = [(step, row["score"]) for _, step, row in rows if "score" in row]
    assert scores[:7] == [(0, 1.0), (1, 1.0), (2, 1.0), (3, 0.0), (4, 0.0), (5, 1.0), (6, 0.0)]
    assert [step for _, step, row in rows if row.get("drift") == 1][:3] == [3, 5, 6]
    assert [row["mean_score/source"] for _, _, row in rows if "mean_score/source" in row] == [1.0, 1.0]
    assert [row["phase"] for _, _, row in rows if "phase" in row][:2] == ["source", "moved"]


def test_a_run_is_tracked_by_the_command(tmp_path):
    Path(tmp_path / "small.yaml").write_text(SMALL, encoding="utf-8")
    run(COMMAND, tmp_path)
    assert list((tmp_path / "runs" / "tracking" / "trackio").rglob("*.db"))

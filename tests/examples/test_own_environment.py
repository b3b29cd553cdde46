"""The template of an environment of one's own works from a copy: schedule, words, planner and experiment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TEMPLATE = Path(__file__).resolve().parents[2] / "examples" / "own_environment"


def install(folder: Path) -> None:
    """What pip writes about a package: its entry points."""
    about = folder / "drift_corridor-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: drift-corridor\nVersion: 0.1.0\n", encoding="utf-8")
    points = "[drift_envs.environments]\ncorridor = corridor:AGENT_SIDE\n"
    assert 'corridor = "corridor:AGENT_SIDE"' in (folder / "pyproject.toml").read_text(encoding="utf-8")
    (about / "entry_points.txt").write_text(points, encoding="utf-8")


@pytest.mark.integration
def test_a_copy_is_checked_and_played(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(TEMPLATE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    install(folder)

    def run(module: str, *words: str) -> str:
        path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-m", module, *words]
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "corridor.yaml: ok, 2 phases" in run("drift_envs", "validate", "corridor.yaml", "--import", "corridor")
    assert "warning" not in run("drift_envs", "check", "corridor.yaml")
    run("drift_agents", "run", "experiment.yaml", "--out", "run", "--jobs", "1", "--trace", "none")
    lines = [json.loads(line) for line in (folder / "run" / "episodes.jsonl").read_text("utf-8").splitlines()]
    last = {
        (line["memory"], line["verifier"]): line["score"] for line in lines if line["round"] == 9 and line["seed"] == 0
    }
    assert last["vanilla", "none"] == 0.2, "what it remembers is no longer true"
    assert last["vanilla", "overwrite"] == last["vanilla", "glove"] == 1.0

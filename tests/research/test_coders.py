"""The study of reference coding agents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from drift_agents.cli.check_coder import REFERENCES
from drift_agents.experiment.coder.place import make_reference
from drift_agents.experiment.coder.runner import CoderProgress, CoderRun, log_of, run_coders

from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.model import Schedule
from research.coders import play

pytest.importorskip("pyarrow")

SHORT = {"version": 1, "name": "repository/short", "env": "DriftRepository-v0", "clock": "episode",
         "tasks": {"pool": 12}, "base": {"flaky": 0.4, "rerun_price": 0.08, "docs_lag": 1},
         "drifts": [{"name": "drift-1", "at": 2, "set": {"helper": 1, "rounding": 1}}]}  # fmt: skip


@pytest.mark.integration
def test_lines_are_those_of_check_coder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The study calls the agents' programs in one process; the command starts each one in a clone."""
    file = tmp_path / "short.yaml"
    file.write_text(yaml.safe_dump(SHORT))

    class Short(play.Condition):
        def load(self) -> Schedule:
            return load_schedule(str(file))

    monkeypatch.setattr(play, "CONDITIONS", {"short": Short("short")})
    lines = play.play_instance("short", 3, 6)
    run = CoderRun(tuple(map(make_reference, REFERENCES)), str(file), (3,), 6)
    run_coders(run, tmp_path / "run", progress=CoderProgress())
    for name in REFERENCES:
        played = [json.loads(line) for line in log_of(tmp_path / "run", name).read_text("utf-8").splitlines()]
        found = [line for line in lines if line["agent"] == name]
        assert [{key: line[key] for key in (*play.COUNTS, "still_believed")} for line in played] == [
            {key: line[key] for key in (*play.COUNTS, "still_believed")} for line in found
        ], name
    assert any(line["reruns"] for line in lines)
    assert any(line["corrections"] for line in lines)

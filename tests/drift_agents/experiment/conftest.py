"""A lake of nine tiles that drifts after four episodes, and an experiment on it that takes a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SCHEDULE = """\
version: 1
name: puddle
env: DriftFrozenLake-v0
clock: episode
visibility: explicit
base: {map: [SFF, HFF, HFG]}
drifts:
  - {name: turn, at: 4, set: {map: [SHH, FFF, FFG]}}
"""


@pytest.fixture
def schedule_file(tmp_path: Path) -> Path:
    path = tmp_path / "puddle.yaml"
    path.write_text(SCHEDULE, encoding="utf-8")
    return path


@pytest.fixture
def data(schedule_file: Path) -> dict[str, Any]:
    """An experiment as plain data."""
    return {
        "name": "tiny",
        "schedules": [str(schedule_file)],
        "agents": {"memory": ["none", "vanilla"], "verifier": ["none", "glove"], "policy": "planner"},
        "references": ["oracle_realign", "oracle_reset", "clairvoyant"],
        "seeds": 2,
        "rounds": 4,
    }

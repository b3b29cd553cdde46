"""An experiment of 12 short cells, for runs on clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SCHEDULE = """\
version: 1
name: turn
env: DriftFrozenLake-v0
base: {map: [SFF, FHF, FFG]}
drifts: [{name: turn, at: 8, set: {map: [SHF, FFF, FFG]}}]
"""


def make_data(folder: Path, **changes: Any) -> dict[str, Any]:
    """An experiment of 12 short cells, as plain data."""
    file = folder / "turn.yaml"
    file.write_text(SCHEDULE)
    agents = {"memory": ["none", "vanilla"], "verifier": ["none", "glove"], "policy": "planner"}
    data = {"name": "tiny", "schedules": [str(file)], "agents": agents, "seeds": 4, "rounds": 4}
    return {**data, **changes}

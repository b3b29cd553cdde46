"""The schedule of tests in which a lake is played as a dialogue: after four episodes another path leads to the goal."""

from __future__ import annotations

TURN = {
    "version": 1, "name": "turn", "env": "DriftFrozenLake-v0",
    "base": {"map": ["SFF", "HHG"]},
    "drifts": [{"name": "moved", "at": 4, "set": {"map": ["SHF", "FFG"]}}],
}  # fmt: skip

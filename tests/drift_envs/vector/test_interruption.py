"""Ctrl-C within a step: the step is done, or undone, or the environment is closed with one error."""

from __future__ import annotations

import copy
import signal
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import drift_envs  # noqa: F401 - registers the ids
from drift_envs.errors import StateError
from drift_envs.vector.base import DriftVectorEnv

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer of the system"),
]

NUMBER, BEFORE = 4, 5
STRIDE = 11  # every line would take a minute
IDS = ("DriftFrozenLake-v0", "DriftMountainCar-v0")


def make(env_id: str) -> DriftVectorEnv:
    """An environment in which time moves, episodes end, and responses are random."""
    drift = {"name": "r", "rate": 0.3, "walk": {"transient": 0.01}}
    schedule = {"version": 1, "name": "x", "env": env_id, "clock": "step", "drifts": [drift]}
    made: Any = gym.make_vec(env_id, num_envs=NUMBER, schedule=schedule, max_episode_steps=BEFORE + 1)
    assert isinstance(made.unwrapped, DriftVectorEnv)
    return made.unwrapped


def prepare(env_id: str) -> DriftVectorEnv:
    lakes = make(env_id)
    lakes.reset(seed=0)
    for _ in range(BEFORE):
        lakes.step(np.zeros(NUMBER, np.int64))
    return lakes


def continuation(lakes: DriftVectorEnv) -> list[np.ndarray]:
    """What the next steps return."""
    results = [lakes.step(np.full(NUMBER, step % 3))[:4] for step in range(1, 4)]
    return [array for result in results for array in result]


def interrupt(lakes: DriftVectorEnv, line: int) -> bool:
    """Step, and raise `KeyboardInterrupt` before the line of that number; whether there were so many."""
    left = line

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace if "drift_envs" in frame.f_code.co_filename else None

    sys.settrace(trace)
    try:
        lakes.step(np.zeros(NUMBER, np.int64))
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def outcome(lakes: DriftVectorEnv, undone: list[np.ndarray], done: list[np.ndarray]) -> str:
    """What an interrupted step has left behind."""
    try:
        found = continuation(lakes)
    except StateError:
        with pytest.raises(StateError, match="was interrupted"):
            lakes.reset(seed=0)
        return "closed" if lakes.closed else "torn"
    for name, expected in (("undone", undone), ("done", done)):
        if all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True)):
            return name
    return "torn"


def expectations(env_id: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What the steps after an undone and after a done one return."""
    undone, done = prepare(env_id), prepare(env_id)
    done.step(np.zeros(NUMBER, np.int64))
    return continuation(undone), continuation(done)


@pytest.mark.parametrize("env_id", IDS)
def test_an_interruption_between_two_lines_of_a_step(env_id: str) -> None:
    expected = expectations(env_id)
    start = prepare(env_id)
    found = set()
    line = 0
    while interrupt(lakes := copy.deepcopy(start), line):
        found.add(outcome(lakes, *expected))
        line += STRIDE
    assert line > 30
    assert found >= {"undone", "closed"}
    assert "torn" not in found


def test_an_interrupted_reset_closes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    lakes = prepare(IDS[0])

    def stop(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(lakes, "_start_episodes", stop)
    with pytest.raises(KeyboardInterrupt):
        lakes.reset(seed=1)
    monkeypatch.undo()
    with pytest.raises(StateError, match="was interrupted"):
        lakes.reset(seed=1)
    assert lakes.closed

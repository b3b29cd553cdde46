"""A killed process of a vector environment ends in one error, and leaves no other process behind."""

from __future__ import annotations

import copy
import os
import pickle
import re
import signal
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import drift_envs  # noqa: F401 - registers the ids
from drift_envs.errors import StateError
from drift_envs.vector import WatchedAsyncVectorEnv

pytestmark = pytest.mark.integration

ACTIONS = np.zeros(3, int)
MESSAGE = re.escape("the process of sub-environment 1 ended with exit code -9; the vector environment is closed")


@pytest.fixture
def lakes() -> WatchedAsyncVectorEnv:
    made = WatchedAsyncVectorEnv([lambda: gym.make("DriftFrozenLake-v0")] * 3)
    made.reset(seed=0)
    return made


def kill(lakes: WatchedAsyncVectorEnv) -> None:
    os.kill(lakes.processes[1].pid, signal.SIGKILL)
    lakes.processes[1].join()


@pytest.mark.parametrize("make_other", [pickle.dumps, copy.deepcopy, copy.copy])
def test_copies_and_pickles_are_refused(lakes: WatchedAsyncVectorEnv, make_other: Callable[[Any], Any]) -> None:
    with pytest.raises(StateError, match="a vector environment of processes cannot be copied or pickled"):
        make_other(lakes)
    lakes.close()


@pytest.mark.parametrize(
    "use",
    [
        lambda lakes: lakes.step(ACTIONS),
        lambda lakes: lakes.reset(),
        lambda lakes: lakes.call("render"),
        lambda lakes: lakes.get_attr("drift_state"),
        lambda lakes: lakes.set_attr("x", [1, 2, 3]),
    ],
    ids=["step", "reset", "call", "get_attr", "set_attr"],
)
def test_a_process_that_was_killed_before_a_call(lakes: WatchedAsyncVectorEnv, use: Callable[..., Any]) -> None:
    lakes.step(ACTIONS)
    kill(lakes)
    with pytest.raises(StateError, match=MESSAGE):
        use(lakes)
    assert not any(process.is_alive() for process in lakes.processes)
    lakes.close()


def test_a_process_that_is_killed_within_a_step(lakes: WatchedAsyncVectorEnv) -> None:
    os.kill(lakes.processes[1].pid, signal.SIGSTOP)  # so that it does not answer before it is killed
    lakes.step_async(ACTIONS)
    kill(lakes)
    with pytest.raises(StateError, match=MESSAGE):
        lakes.step_wait()
    assert not any(process.is_alive() for process in lakes.processes)


def test_it_is_gymnasiums_own_otherwise(lakes: WatchedAsyncVectorEnv) -> None:
    plain = gym.vector.AsyncVectorEnv([lambda: gym.make("DriftFrozenLake-v0")] * 3)
    plain.reset(seed=0)
    for _ in range(5):
        assert all(np.array_equal(a, b) for a, b in zip(lakes.step(ACTIONS)[:4], plain.step(ACTIONS)[:4], strict=True))
    lakes.close()
    plain.close()

"""Fixtures: pairs of a `SyncVectorEnv` and a native vector environment, and schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

import drift_envs  # noqa: F401


@pytest.fixture
def make_pair() -> Callable[..., tuple[Any, Any]]:
    """Builds the same environments as `SyncVectorEnv` and as native vector environment."""

    def make(env_id: str, number: int, mode: str, **arguments: Any) -> tuple[Any, Any]:
        sync = gym.make_vec(
            env_id,
            num_envs=number,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": mode},
            **arguments,
        )
        native = gym.make_vec(
            env_id, num_envs=number, vectorization_mode="vector_entry_point", autoreset_mode=mode, **arguments
        )
        return sync, native

    return make


@pytest.fixture
def make_schedule() -> Callable[..., dict[str, Any]]:
    """Builds a schedule as a dictionary."""

    def write(clock: str, *drifts: dict[str, Any], **base: Any) -> dict[str, Any]:
        return {"version": 1, "name": "written", "clock": clock, "base": base, "drifts": list(drifts)}

    return write

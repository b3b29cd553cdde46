"""Pairs of native and side-by-side vector environments that must tell the same story."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

import drift_envs  # noqa: F401


@pytest.fixture
def pair() -> Callable[..., tuple[Any, Any]]:
    """The same environment as `SyncVectorEnv` and native."""

    def make(env_id: str, number: int, mode: str, **arguments: Any) -> tuple[Any, Any]:
        side_by_side = gym.make_vec(
            env_id,
            num_envs=number,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": mode},
            **arguments,
        )
        native = gym.make_vec(
            env_id, num_envs=number, vectorization_mode="vector_entry_point", autoreset_mode=mode, **arguments
        )
        return side_by_side, native

    return make


@pytest.fixture
def written() -> Callable[..., dict[str, Any]]:
    """A schedule as a dictionary."""

    def write(clock: str, *drifts: dict[str, Any], **base: Any) -> dict[str, Any]:
        return {"version": 1, "name": "written", "clock": clock, "base": base, "drifts": list(drifts)}

    return write

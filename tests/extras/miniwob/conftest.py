"""Task pages that are closed when a test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import pytest

import drift_envs  # noqa: F401  registers the ids


@pytest.fixture
def make() -> Iterator[Callable[..., Any]]:
    opened = []

    def make_env(name: str, **arguments: Any) -> Any:
        opened.append(gym.make(f"DriftMiniWoB{name}-v0", **arguments))
        return opened[-1]

    yield make_env
    for env in opened:
        env.close()

"""Running episodes of Minigrid go on in another instance, step by step."""

from __future__ import annotations

import gymnasium as gym
import pytest

pytest.importorskip("minigrid", reason="needs the extra `minigrid`")

from drift_envs.registration import IDS
from tests.drift_envs.progress import check_goes_on


@pytest.mark.parametrize("before", [0, 9, 70])
@pytest.mark.parametrize("env_id", [name for name in IDS if "MiniGrid" in name])
def test_grids_go_on(env_id: str, before: int) -> None:
    check_goes_on(lambda: gym.make(env_id), before)

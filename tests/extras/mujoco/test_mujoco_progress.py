"""Running episodes of MuJoCo's environments go on in another instance, step by step."""

from __future__ import annotations

import gymnasium as gym
import pytest

pytest.importorskip("mujoco", reason="needs the extra `mujoco`")

from tests.drift_envs.progress import check_goes_on

IDS = ("DriftHalfCheetah-v0", "DriftHopper-v0", "DriftInvertedPendulum-v0", "DriftReacher-v0")


@pytest.mark.parametrize("before", [0, 9, 60])
@pytest.mark.parametrize("env_id", IDS)
def test_robots_go_on(env_id: str, before: int) -> None:
    check_goes_on(lambda: gym.make(env_id), before)

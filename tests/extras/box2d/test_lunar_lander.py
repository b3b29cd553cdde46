"""LunarLander with knobs."""

import re
from itertools import pairwise
from typing import ClassVar

import gymnasium as gym
import pytest

from benchmarks.physics import box2d, mean_return
from drift_envs.errors import NoOracleError, StateError
from drift_envs.wrappers.snapshot import snapshot
from tests.drift_envs.envs.physics_contract import PhysicsContract

pytest.importorskip("Box2D", reason="needs the extra `box2d`")


class TestLunarLander(PhysicsContract):
    env_id, plain_id = "DriftLunarLander-v0", "LunarLander-v3"
    values: ClassVar = {"gravity": -3.0, "enable_wind": True, "wind_power": 5.0, "turbulence_power": 0.5}
    copies_episode = False

    def test_each_knob_acts_and_comes_back(self):
        returns = {}
        for name, value in self.values.items():
            wind = {"enable_wind": True} if "power" in name else {}
            for at in (None, value):
                base = {**wind, **({} if at is None else {name: at})}
                env = gym.make(self.env_id, schedule={"version": 1, "name": "n", "base": base})
                env.reset(seed=0)
                returns[name, at] = [env.step(0)[1] for _ in range(40)]
            assert returns[name, None] != returns[name, value], name

    def test_gravity_acts_within_an_episode(self):
        drift = {"name": "light", "at": 10, "set": {"gravity": -1.0}}
        env = gym.make(self.env_id, schedule={"version": 1, "name": "n", "clock": "step", "drifts": [drift]})
        env.reset(seed=0)
        speeds = [env.step(0)[0][3] for _ in range(14)]
        falls = [one - other for one, other in pairwise(speeds)]
        assert falls[11] < 0.2 * falls[5]

    def test_a_snapshot_brings_the_episode_back(self):
        env = gym.make(self.env_id)
        env.reset(seed=0)
        with pytest.raises(StateError, match=re.escape("the state of LunarLander cannot be saved")):
            snapshot(env)

    def test_changed_is_exact(self):
        env = gym.make(self.env_id)
        with pytest.raises((NoOracleError, StateError)):
            env.get_wrapper_attr("oracle").changed(env.reset(seed=0)[0], 0, 0, 20)


def test_the_drifts_cost_gymnasiums_own_pilot_dear():
    (pilot, _), (_, mirrored) = box2d().values()
    before = mean_return("lunar_lander/explicit", 0, pilot, range(6))
    assert before == mean_return("lunar_lander/implicit", 20, mirrored, range(6)) >= 200
    assert mean_return("lunar_lander/explicit", 20, pilot, range(6)) < 0.95 * before
    assert mean_return("lunar_lander/implicit", 20, pilot, range(6)) < 0

"""LunarLander with knobs."""

import copy
import json
import pickle
import re
from itertools import pairwise
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest

from benchmarks.physics import box2d, mean_return
from drift_envs.errors import NoOracleError, StateError
from drift_envs.wrappers import DriftWrapper
from drift_envs.wrappers.twin import inside, snapshot, twin
from tests.drift_envs.envs.physics_contract import PhysicsContract, actions_of

pytest.importorskip("Box2D", reason="needs the extra `box2d`")


class TestLunarLander(PhysicsContract):
    env_id, plain_id = "DriftLunarLander-v0", "LunarLander-v3"
    values: ClassVar = {"gravity": -3.0, "enable_wind": True, "wind_power": 5.0, "turbulence_power": 0.5}

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

    def test_driven_knobs_and_text(self):
        env = gym.make(self.env_id, text=True)
        state, info = env.reset(seed=0)
        assert len(json.loads(state)["observation"]) == 8
        assert info["actions"] == ["0", "1", "2", "3"]
        assert env.observation_space.contains(env.step("2")[0])

    test_text = None

    @pytest.mark.parametrize("seed", range(6))
    def test_a_replay_is_exact_over_200_steps_from_random_states(self, seed):
        wind = {"name": "wind", "every": 7, "for": 3, "set": {"enable_wind": True, "gravity": -4.0}}
        schedule = {"version": 1, "name": "n", "clock": "step", "drifts": [wind]}
        env, other = gym.make(self.env_id, schedule=schedule), gym.make(self.env_id, schedule=None)
        rng = np.random.default_rng(seed)
        env.reset(seed=seed)
        other.reset(seed=seed + 1)
        # 60 to 140 steps of a pilot that fires at random: in the air, on one leg, or at rest
        for _ in range(int(rng.integers(60, 140))):
            if env.step(int(rng.integers(4)))[2]:
                env.reset()
        saved, knobs = snapshot(env), env.unwrapped.read_knobs()
        saved.restore(other)
        other.unwrapped.knob_setter(knobs)
        other.unwrapped.np_random.bit_generator.state = env.unwrapped.np_random.bit_generator.state
        plain = env.unwrapped  # without the schedule, whose clock goes on
        for _ in range(200):
            action = int(rng.integers(4))
            one, two = plain.step(action), other.unwrapped.step(action)
            assert np.array_equal(one[0], two[0])
            assert one[1:3] == two[1:3]

    def test_changed_is_exact(self):
        env = gym.make(self.env_id, schedule="lunar_lander/implicit")
        state, _ = env.reset(seed=0)
        oracle = env.get_wrapper_attr("oracle")
        for action in actions_of(env, 30):
            saved = env.unwrapped.save_state()
            assert not oracle.changed(saved, action, 0, 19)
            assert oracle.changed(saved, action, 0, 20) == (action in (1, 3))
            state, *_ = env.step(action)
        with pytest.raises(StateError, match="observations of LunarLander do not show its state"):
            oracle.changed(state, 0, 0, 20)
        with pytest.raises(NoOracleError, match="no optimum is known for LunarLander"):
            oracle.value(0)
        with pytest.raises(StateError, match=re.escape("saved before its first `reset`")):
            gym.make(self.env_id).unwrapped.save_state()


def test_the_harmless_one_costs_gymnasiums_own_pilot_nothing():
    (pilot, _), _ = box2d().values()
    assert mean_return("lunar_lander/harmless", 0, pilot, range(3)) == mean_return(
        "lunar_lander/harmless", 20, pilot, range(3)
    )


def test_the_drifts_cost_gymnasiums_own_pilot_dear():
    (pilot, _), (_, mirrored) = box2d().values()
    before = mean_return("lunar_lander/explicit", 0, pilot, range(6))
    assert before == mean_return("lunar_lander/implicit", 20, mirrored, range(6)) >= 200
    assert mean_return("lunar_lander/explicit", 20, pilot, range(6)) < 0.95 * before
    assert mean_return("lunar_lander/implicit", 20, pilot, range(6)) < 0


def test_copies_draw_the_same_samples_and_keep_free_knobs():
    env = gym.make("DriftLunarLander-v0", schedule=None)
    env.reset(seed=0)
    env.set_wrapper_attr("gravity", -4.0)
    assert env.unwrapped.world.gravity.y == -4.0
    env.action_space.seed(7)
    env.observation_space.seed(8)
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    actions = [env.action_space.sample() for _ in range(20)]
    seen = env.observation_space.sample()
    for one in copies:
        assert one.unwrapped.read_knobs()["gravity"] == -4.0
        assert [one.action_space.sample() for _ in range(20)] == actions
        assert np.array_equal(one.observation_space.sample(), seen)


@pytest.mark.parametrize("knob", ["gravity", "wind_power"])
def test_copies_of_gymnasiums_own_keep_the_drift(knob):
    first, second = (-5.0, -9.0) if knob == "gravity" else (3.0, 9.0)
    schedule = {
        "version": 1,
        "name": "p",
        "knobs": {knob: {"bounds": [-11.9, 19.9]}},
        "base": {knob: first},
        "drifts": [{"at": 2, "set": {knob: second}}],
    }
    env = DriftWrapper(gym.make("LunarLander-v3", enable_wind=True), schedule)
    env.reset(seed=0)
    follower = twin(env)
    follower.reset()
    for one in (env, copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert getattr(one.unwrapped, knob) == first
        if one is not env:
            one.reset()
            one.reset()
            assert getattr(one.unwrapped, knob) == second
    assert getattr(inside(follower).unwrapped, knob) == first
    env.reset()
    env.reset()
    follower.reset()
    assert getattr(inside(follower).unwrapped, knob) == second

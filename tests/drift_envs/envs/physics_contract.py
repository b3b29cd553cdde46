"""What every environment with attribute knobs should do; collected where it is subclassed.

* `PhysicsContract` - `RegisteredContract`, and knobs, schedules, text, snapshots, twins, the oracle's `changed`
"""

import copy
import json
import re
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from drift_envs import twin
from drift_envs.attributes.knobs import AttributeKnobs
from drift_envs.envs.make import knob_table_of
from drift_envs.errors import ArgumentError, DrivenKnobError, NoOracleError
from drift_envs.registration import IDS
from drift_envs.schedule import load_schedule
from drift_envs.wrappers.twin import snapshot
from tests.drift_envs.envs.registered_contract import RegisteredContract, actions_of, play, shipped

SHIPPED = {"explicit", "implicit", "harmless", "null"}
"""The schedules that every environment has."""


class PhysicsContract(RegisteredContract):
    """The contract of one environment.

    A subclass names, for each knob, a value that acts on the response to the first steps.
    """

    families: ClassVar[set[str]] = SHIPPED
    values: ClassVar[dict[str, object]]
    silent: ClassVar[tuple[str, ...]] = ()
    """Knobs that change the reward alone."""
    pictured: ClassVar[tuple[str, ...]] = ()
    """Knobs that change pictures alone."""

    def test_its_table_is_that_of_its_attributes(self):
        env = gym.make(self.env_id, schedule=None).unwrapped
        assert AttributeKnobs(env, env.attributes, env.followers).knobs.accepts_like(env.knobs)
        assert IDS[self.env_id].knob_table is env.knobs
        assert set(self.values) == set(env.knobs)
        assert "reward_sign" in knob_table_of(self.env_id)

    def test_each_knob_acts_and_comes_back(self):
        for name, value in self.values.items():
            knob = IDS[self.env_id].knob_table[name]
            runs = []
            for drift in ({}, {name: value}, {name: knob.default}):
                env = gym.make(self.env_id, schedule={"version": 1, "name": "one", "base": drift})
                actions = actions_of(env, 40)
                runs.append(play(env, actions, seed=3))
            assert data_equivalence(runs[0], runs[2], exact=True), name
            assert data_equivalence(runs[0], runs[1], exact=True) == (name in self.pictured), name
            seen = [[step[0] for step in run if len(step) == 5] for run in runs[:2]]
            count = min(map(len, seen))
            same = all(np.array_equal(one, other) for one, other in zip(*(run[:count] for run in seen), strict=True))
            assert same == (name in (*self.silent, *self.pictured)), name

    def test_control_is_what_changes_nothing(self):
        for name in shipped(self.env_id):
            schedule = load_schedule(name)
            assert schedule.control == name.endswith(("/null", "/harmless"))
            assert schedule.name == name
            assert schedule.seed is None

    def test_schedules_change_what_they_say(self):
        family = IDS[self.env_id].schedule.split("/")[0]

        def values(name, ticks, seed=0):
            env = gym.make(self.env_id, schedule=f"{family}/{name}")
            env.reset(seed=seed)
            at, driven = env.get_wrapper_attr("knobs_at"), env.get_wrapper_attr("timeline").names
            return [{knob: at(tick)[knob] for knob in driven} for tick in ticks]

        for name in ("explicit", "implicit", "harmless"):
            before, last, after, later = values(name, (0, 19, 20, 300))
            assert before == last != after == later, name
        assert len({str(one) for one in values("null", range(60))}) == 1
        variants = [name.partition("/")[2] for name in shipped(self.env_id) if ":" in name]
        assert {"implicit:gradual", "implicit:incremental"} & set(variants)
        for name in variants:
            runs = [values(name, range(90), seed) for seed in range(6)]
            assert all(run[:14] == run[:1] * 14 for run in runs), name
            assert (runs.count(runs[0]) == len(runs)) == name.endswith(":incremental"), name
            if name.endswith(":family"):
                continue
            (new,) = values(name.partition(":")[0], (20,))
            for run in runs:
                assert run[0] == run[14] != new, name
                assert run[35:] == [new] * 55, name
                seen = {str(one) for one in run[15:35]}
                assert seen == {str(run[0]), str(new)} if name.endswith(":gradual") else len(seen) > 15, name

    def test_text(self):
        name = f"{IDS[self.env_id].schedule.split('/')[0]}/explicit"
        env = gym.make(self.env_id, schedule=name, text=True)
        state, info = env.reset(seed=0)
        oracle, task, total = env.get_wrapper_attr("oracle"), info["task"], 0.0
        text = IDS[self.env_id].load("text")(env.unwrapped).text
        assert list(json.loads(state)) == [*text.fields, "score"]
        assert info["actions"] == list(text.actions)
        assert info["score"] == 0.0
        for number in range(60):
            action = info["actions"][number % len(info["actions"])]
            after, reward, terminated, _, info = env.step(action)
            assert env.observation_space.contains(after)
            assert oracle.holds(state, action, after, terminated, 0)
            total += text.pay(float(reward), terminated)
            assert json.loads(after)["score"] == pytest.approx(info["score"], abs=1e-6)
            assert info["score"] == pytest.approx(total, abs=1e-4)
            state = after
            if terminated:
                break
        assert env.reset(options={"drift_tick": 20})[1]["task"] == task
        with pytest.raises(ArgumentError, match=re.escape("`state` should be a JSON object with the numbers")):
            oracle.changed('{"score": 0}', info["actions"][0], 0, 20)
        with pytest.raises(ArgumentError, match=re.escape("`action` should be an element of")):
            oracle.changed(state, "left", 0, 20)

    def test_a_snapshot_brings_the_episode_back(self):
        env = gym.make(self.env_id)
        actions = actions_of(env, 8)
        env.reset(seed=0)
        env.step(actions[0])
        saved = snapshot(env)
        first = [env.step(action) for action in actions]
        saved.restore()
        assert data_equivalence([env.step(action) for action in actions], first, exact=True)

    def test_a_twin_has_the_knobs_of_its_environment(self):
        (name, value), *_ = self.values.items()
        drift = {"name": "d", "at": 1, "set": {name: value}}
        env = gym.make(self.env_id, schedule={"version": 1, "name": "one", "drifts": [drift]})
        env.reset(seed=0)
        env.reset()
        second = twin(env)
        second.reset()
        inner = second._Twin__inner.unwrapped
        assert inner.read_knobs()[name] == env.unwrapped.read_knobs()[name] == value
        assert inner is not env.unwrapped
        before = env.unwrapped.read_knobs()
        second.step(env.action_space.sample())
        assert env.unwrapped.read_knobs() == before

    def test_changed_is_exact(self):
        name = f"{IDS[self.env_id].schedule.split('/')[0]}/explicit"
        env = gym.make(self.env_id, schedule=name)
        state, _ = env.reset(seed=0)
        oracle = env.get_wrapper_attr("oracle")
        actions = actions_of(env, 30)
        found = set()
        for action in actions:
            saved = env.unwrapped.save_state()
            assert not oracle.changed(saved, action, 0, 19)
            found.add(oracle.changed(saved, action, 0, 20))
            expected = oracle.response(saved, action, 0)[0]
            oracle.changed(state, action, 0, 20)  # an observation will do, too
            state, reward, terminated, *_ = env.step(action)
            assert oracle.holds(saved, action, expected.state, terminated, 0)
            assert (np.asarray(state).tolist(), reward) == (
                np.asarray(json.loads(expected.state)).tolist(),
                pytest.approx(expected.score),
            )
            if terminated:
                state, _ = env.reset()
        assert True in found
        with pytest.raises(NoOracleError, match="no optimum is known for"):
            oracle.effect(0, 20)

    def test_driven_knobs_and_wrong_arguments(self):
        with pytest.raises(ArgumentError, match=re.escape("got an unexpected keyword argument 'speed'")):
            gym.make(self.env_id, speed=1)
        (name, value), *_ = self.values.items()
        env = gym.make(self.env_id, schedule={"version": 1, "name": "n", "base": {name: value}})
        env.reset(seed=0)
        with pytest.raises(DrivenKnobError):
            env.set_wrapper_attr(name, value)

    def test_pictures(self):
        env = gym.make(self.env_id, render_mode="rgb_array", overlay=True)
        env.reset(seed=0)
        picture = env.render()
        assert picture.dtype == np.uint8
        assert picture.std() > 0
        copy.deepcopy(env).close()
        env.close()

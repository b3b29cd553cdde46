"""What holds of every environment whose tasks are another benchmark's: one suite, collected where it is subclassed.

* `TaskContract` - `RegisteredContract`, and the oracle, copies and twins within a task, the page, other processes
* `starts` - the first ticks of a schedule's phases, without those drawn at random
* `check_refusals` - knobs that refuse a value and keep what they had
"""

import copy
import os
import pickle
import re
import subprocess
import sys
from typing import ClassVar

import gymnasium as gym
import pytest

from drift_envs import twin
from drift_envs.errors import ArgumentError, KnobError, ScheduleError
from drift_envs.schedule import load_schedule
from tests.documents import read_code, run_code
from tests.drift_envs.envs.registered_contract import RegisteredContract


def starts(name):
    return [0, *(drift.at for drift in load_schedule(name).drifts if drift.rate is None)]


def check_refusals(env_id, rows):
    """Each row is a knob, a value, and what its error says; the first one is refused in a schedule too."""
    env = gym.make(env_id, schedule=None)
    for knob, value, words in rows:
        with pytest.raises(KnobError, match=re.escape(words)):
            setattr(env.unwrapped, knob, value)
        assert env.unwrapped.read_knobs() == env.unwrapped.knobs.defaults()
    knob, value, words = rows[0]
    drifts = [{"name": "a", "at": 3, "set": {knob: value}}]
    with pytest.raises(ScheduleError, match=re.escape(words[words.index("Received") :])):
        gym.make(env_id, schedule={"version": 1, "name": "s", "drifts": drifts})


WALK = """
import hashlib
import gymnasium as gym
import numpy as np
import drift_envs
seen = hashlib.sha256()
for name in {names!r}:
    env = gym.make({env_id!r}, schedule=name, text=True)
    state, info = env.reset(seed=3)
    rng = np.random.default_rng(0)
    for step in range(100):
        seen.update(repr((state, sorted(info.items()))).encode())
        state, _, done, cut, info = env.step(info["actions"][int(rng.integers(len(info["actions"])))])
        if done or cut:
            state, info = env.reset()
print(seen.hexdigest())
"""


class TaskContract(RegisteredContract):
    """The contract of one id.

    A subclass names the document, a schedule and a tick at which copies are made, the schedules that are played by
    the oracle, what an answer says to an action that was lost, and the schedules of a random walk that every process
    finds again, or a program that prints what other processes print.
    """

    forms = (False, True)
    plain_id = ""
    page: str
    copied: tuple[str, int]
    foreseen: ClassVar[tuple[str, ...]]
    lost: str
    walked: ClassVar[tuple[str, ...]] = ()
    program = WALK

    def test_the_oracle_meets_every_task_and_foresees_every_answer(self):
        for name in self.foreseen:
            env = gym.make(self.env_id, schedule=name, text=True)
            env.reset(seed=5)
            oracle = env.get_wrapper_attr("oracle")
            for tick in starts(name):
                state, _ = env.reset(options={"drift_tick": tick, "drift_clock": "hold"})
                done = False
                while not done:
                    action = oracle.action(state, tick)
                    foreseen = oracle.response(state, action, tick)
                    before, (state, reward, done, _, info) = state, env.step(action)
                    assert (state, reward, done) in [one[:3] for one in foreseen]
                    assert sum(one.probability for one in foreseen) == 1.0
                    holds = oracle.holds(before, action, state, done, tick, info["score"])
                    assert holds or (len(foreseen) > 1 and self.lost in state)
                assert reward == 1.0
        with pytest.raises(ArgumentError, match="`state` should be"):
            oracle.response("[]", "{}", 0)

    def test_copies_and_twins_play_the_same_task_under_the_same_knobs(self):
        name, tick = self.copied
        env = gym.make(self.env_id, schedule=name, text=True)
        state, _ = env.reset(seed=1, options={"drift_tick": tick})
        oracle = env.get_wrapper_attr("oracle")
        state, *_ = env.step(oracle.action(state, tick))
        restored = gym.make(self.env_id, schedule=None, text=True)
        restored.unwrapped.knob_setter(env.unwrapped.read_knobs())
        restored.reset(seed=0)
        restored.unwrapped.load_state(env.unwrapped.save_state())
        others = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), restored]
        done = False
        while not done:
            action = oracle.action(state, tick)
            (state, reward, done, _, _), *found = (one.step(action) for one in (env, *others))
            assert all(one[:3] == (state, reward, done) for one in found)
        assert reward == 1.0
        first, info = env.reset(options={"goal_index": env.unwrapped.goal_index, "drift_tick": tick})
        same, its = twin(env).reset()
        assert (same, its["actions"], its.get("tools")) == (first, info["actions"], info.get("tools"))

    def test_the_example_of_the_page_meets_the_task(self):
        assert run_code(read_code(self.page)[0])["reward"] == 1.0

    @pytest.mark.integration
    def test_answers_are_equal_in_every_process(self):
        program = self.program if self.program is not WALK else WALK.format(names=self.walked, env_id=self.env_id)
        command = [sys.executable, "-c", program]
        found = [
            subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
            for seed in ("0", "1")
        ]
        assert found[0] == found[1] != b""

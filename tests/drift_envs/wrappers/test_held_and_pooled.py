"""Held time refuses options that move it; copies with different schedules are told; infos share nothing."""

from __future__ import annotations

import json

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from drift_envs.errors import ArgumentError, DriftWarning
from drift_envs.registration import IDS
from drift_envs.schedule.loader import load_schedule
from drift_envs.wrappers import DriftWrapper, HeldClock, VectorPhaseReturns

PLANS = [
    {"version": 1, "name": name, "drifts": [{"at": 3, "set": {"slip": slip}}]}
    for name, slip in (("a", 0.2), ("b", 0.4))
]


def lakes(*plans):
    return SyncVectorEnv([lambda plan=plan: gym.make("DriftFrozenLake-v0", schedule=plan) for plan in plans])


def test_different_schedules_of_copies_are_warned_of():
    with pytest.warns(DriftWarning, match="2 different schedules .`a`, `b`."):
        VectorPhaseReturns(lakes(*PLANS))
    VectorPhaseReturns(lakes(PLANS[0], PLANS[0]))


@pytest.mark.parametrize("options", [{"drift_tick": 3}, {"drift_phase": "drift-1"}, {"drift_clock": "continue"}])
def test_held_time_refuses_options_that_move_it(options):
    env = HeldClock(gym.make("DriftFrozenLake-v0", schedule=PLANS[0]))
    env.hold_at(1)
    with pytest.raises(ArgumentError, match="`HeldClock` holds time at tick 1; call `hold_at`"):
        env.reset(options=options)
    env.reset(options={"drift_clock": "hold"})
    assert env.get_wrapper_attr("drift_state").tick == 1


@pytest.mark.filterwarnings("ignore::UserWarning")  # of the checker: the environment is wrapped, its space is open
@pytest.mark.parametrize("env_id", [env_id for env_id, parts in IDS.items() if parts.extra is None])
def test_full_notices_of_resets_and_steps_share_no_object(env_id):
    env = gym.make(env_id, notify="full")
    check_env(env, skip_render_check=True)
    knobs = env.reset(seed=0)[1]["drift"]["knobs"]
    again = env.reset(seed=0)[1]["drift"]["knobs"]
    mappings = [name for name, value in knobs.items() if isinstance(value, dict)]
    assert all(knobs[name] == again[name] and knobs[name] is not again[name] for name in mappings)
    env.close()


@pytest.mark.parametrize("mode", AutoresetMode)
def test_specs_of_native_vectors_are_written_as_json(mode, tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(PLANS[0]), encoding="utf-8")
    for schedule in (load_schedule(PLANS[0]), path, None):
        lakes = gym.make_vec("DriftFrozenLake-v0", num_envs=3, schedule=schedule, autoreset_mode=mode)
        again = gym.make_vec(gym.envs.registration.EnvSpec.from_json(lakes.spec.to_json()))
        assert (again.schedule, again.autoreset_mode, again.num_envs) == (lakes.schedule, mode, 3)
        assert again.spec == lakes.spec


def test_specs_with_a_schedule_are_written_as_json():
    schedule = load_schedule({"version": 1, "name": "heavy", "drifts": [{"at": 3, "set": {"masspole": 0.2}}]})
    for env in (
        gym.make("DriftFrozenLake-v0", schedule=load_schedule("frozen_lake/implicit")),
        DriftWrapper(gym.make("CartPole-v1"), schedule),
    ):
        again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
        assert again.get_wrapper_attr("schedule") == env.get_wrapper_attr("schedule")

"""Stable-Baselines3 on drifting environments: its vector environment, and evaluation in the phase of training."""

from __future__ import annotations

import doctest
import re
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest

from drift_envs.errors import ArgumentError, DriftWarning, DrivenKnobError, MissingDependencyError
from drift_envs.wrappers import HeldClock, PhaseReturns

pytest.importorskip("stable_baselines3", reason="needs the extra `rl`")

from stable_baselines3 import A2C, PPO
from stable_baselines3.common import env_util
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.utils import configure_logger
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

from drift_envs.integrations import sb3, sb3_checkpoints
from drift_envs.integrations.sb3 import EvalCallback, VecEnv, make_vec_env
from tests.documents import read_code, run_code

TURN = {"version": 1, "name": "turn", "base": {"map": ["SFG"]}, "drifts": [{"at": 3, "set": {"map": ["SFFFG"]}}]}


def test_the_examples_of_the_module():
    assert doctest.testmod(sb3).failed == 0
    assert doctest.testmod(sb3_checkpoints).failed == 0


def test_the_code_of_the_document():
    code, _ = read_code("docs/stable_baselines3.md")
    names = run_code(code.replace("100_000", "200").replace("5_000", "50"))
    assert names["callback"].evaluations_phases


def test_the_loop_of_stable_baselines_runs_unchanged():
    for env_id in ("DriftFrozenLake-v0", "DriftMountainCar-v0"):
        env = gym.make(env_id)
        model = A2C("MlpPolicy", env, n_steps=4, seed=0).learn(8)
        assert model.num_timesteps == 8
        observation, _ = env.reset(seed=0)
        for _ in range(3):
            action, _ = model.predict(observation)
            observation, *_ = env.step(action)
            assert env.observation_space.contains(observation)


def test_episodes_end_as_stable_baselines_expects():
    lakes = make_vec_env("DriftFrozenLake-v0", n_envs=2, seed=0, schedule=TURN)
    lakes.reset()
    lakes.step(np.array([2, 0]))
    observations, rewards, dones, infos = lakes.step(np.array([2, 0]))
    assert observations.tolist() == [0, 0]
    assert rewards.tolist() == [1.0, 0.0]
    assert dones.tolist() == [True, False]
    assert infos[0]["terminal_observation"] == 2
    assert infos[0]["TimeLimit.truncated"] is False
    assert infos[0]["episode"] == {"r": 1.0, "l": 2, "t": 0.0}
    assert infos[1] == {}


def test_truncation_and_returns_by_phase():
    lakes = make_vec_env("DriftFrozenLake-v0", n_envs=1, schedule=TURN, max_episode_steps=2)
    lakes.reset()
    ends = []
    for _ in range(10):
        *_, dones, infos = lakes.step(np.array([2]))
        if dones[0]:
            ends.append(infos[0]["TimeLimit.truncated"])
    assert ends == [False, False, False, True, True]
    assert lakes.by_phase() == {"source": [1.0, 1.0, 1.0], "drift-1": [0.0, 0.0]}
    assert [episode.tick for episode in lakes.episodes] == [0, 1, 2, 3, 4]


def test_a_seed_rewinds_once_and_equals_that_of_the_native_form():
    lakes = make_vec_env("DriftMountainCar-v0", n_envs=3, seed=5)
    native = gym.make_vec("DriftMountainCar-v0", num_envs=3, vectorization_mode="vector_entry_point")
    assert np.array_equal(lakes.reset(), native.reset(seed=5)[0])
    lakes.reset()
    assert [state.episode for state in lakes.get_attr("drift_state")] == [1, 1, 1]
    assert lakes.env_method("get_wrapper_attr", "drift_state", indices=2)[0].tick == 1
    lakes.set_attr("transient", 0.5, indices=[1])
    assert lakes.get_attr("transient") == [0.0, 0.5, 0.0]


def test_infos_of_notify_reach_each_environment():
    lakes = make_vec_env("DriftFrozenLake-v0", n_envs=2, seed=0, schedule=TURN, notify="full")
    lakes.reset()
    assert [info["drift"]["phase"] for info in lakes.reset_infos] == ["source", "source"]
    *_, infos = lakes.step(np.array([2, 2]))
    assert [info["drift"]["tick"] for info in infos] == [0, 0]


def test_other_environments_are_refused():
    with pytest.raises(
        ArgumentError, match=re.escape("`env_id` should have a native vector environment: one of DriftFrozenLake-v0")
    ):
        make_vec_env("DriftWebShop-v0")
    with pytest.raises(ArgumentError, match="`env_id` should have a native"):
        make_vec_env(gym.spec("DriftFrozenLake-v0"))
    with pytest.raises(ArgumentError, match=r"^`envs` should be a native vector environment"):
        VecEnv(gym.make_vec("CartPole-v1", num_envs=2))
    with pytest.raises(ArgumentError, match=r"^`autoreset_mode` should be 'SameStep'. Received 'NextStep'"):
        VecEnv(gym.make_vec("DriftMountainCar-v0", num_envs=2, vectorization_mode="vector_entry_point"))


def test_ppo_trains_and_is_evaluated_in_its_own_phase():
    arguments = {"schedule": TURN, "max_episode_steps": 5}
    lakes = make_vec_env("DriftFrozenLake-v0", n_envs=2, seed=0, **arguments)
    evaluated = gym.make("DriftFrozenLake-v0", **arguments)
    callback = EvalCallback(evaluated, eval_freq=10, n_eval_episodes=3, verbose=0)
    model = PPO("MlpPolicy", lakes, n_steps=20, batch_size=20, n_epochs=1, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)  # both lakes reach the drift at different steps
        model.learn(120, callback)
    ticks = callback.evaluations_ticks
    assert ticks == sorted(ticks)
    assert callback.evaluations_phases == ["drift-1" if tick >= 3 else "source" for tick in ticks]
    assert set(callback.evaluations_phases) == {"source", "drift-1"} == set(lakes.by_phase())
    assert evaluated.get_wrapper_attr("drift_state").tick == ticks[-1]
    mean, _ = evaluate_policy(model, lakes, n_eval_episodes=2)  # no warning about a missing monitor
    assert 0 <= mean <= 1


def test_training_environments_in_different_phases_are_reported_once():
    lakes = make_vec_env("DriftFrozenLake-v0", n_envs=2, seed=0, schedule=TURN)
    lakes.reset()
    for _ in range(8):  # the first ends an episode every second step, the second none
        lakes.step(np.array([2, 0]))
    callback = EvalCallback(gym.make("DriftFrozenLake-v0", schedule=TURN), eval_freq=1, n_eval_episodes=1, verbose=0)
    model = PPO("MlpPolicy", lakes, n_steps=2, batch_size=4, n_epochs=1)
    callback.init_callback(model)
    model.set_logger(configure_logger())
    with pytest.warns(DriftWarning, match="in the phases drift-1, source; evaluation follows environment 0"):
        callback.on_step()


def test_another_schedule_of_the_evaluation_is_reported_and_its_phases_are_its_own():
    lakes = make_vec_env("DriftFrozenLake-v0", n_envs=1, seed=0, schedule=TURN)
    still = {**TURN, "name": "still", "drifts": []}  # on the same map, as the policy's observations need
    callback = EvalCallback(gym.make("DriftFrozenLake-v0", schedule=still), eval_freq=8, n_eval_episodes=1, verbose=0)
    with pytest.warns(DriftWarning, match="the evaluation environment has the schedule `still`, that of training"):
        PPO("MlpPolicy", lakes, n_steps=16, batch_size=16, n_epochs=1, seed=0).learn(32, callback)
    assert set(callback.evaluations_phases) == {"source"}
    assert callback.evaluations_ticks[-1] > 0


def test_evaluation_has_the_drifts_of_training_and_normalization():
    random = {"version": 1, "name": "r", "drifts": [{"rate": 0.3, "choice": {"force": [0.001, 0.002, 0.003]}}]}
    cars = VecNormalize(make_vec_env("DriftMountainCar-v0", n_envs=1, seed=9, schedule=random, max_episode_steps=10))
    held = HeldClock(gym.make("DriftMountainCar-v0", schedule=random, max_episode_steps=10))
    callback = EvalCallback(
        VecNormalize(DummyVecEnv([lambda: held]), training=False), eval_freq=35, verbose=0, warn=False
    )
    PPO("MlpPolicy", cars, n_steps=35, batch_size=35, n_epochs=1, seed=9).learn(70, callback)
    assert callback.evaluations_ticks == [3, 7]
    assert held.get_wrapper_attr("timeline").seed == cars.venv.get_attr("timeline")[0].seed == 9
    assert held.get_wrapper_attr("drift_state").knobs["force"] == cars.venv.get_attr("timeline")[0].values(7)["force"]


def test_an_evaluation_environment_has_to_be_held():
    for several in (
        DummyVecEnv([lambda: gym.make("DriftMountainCar-v0")]),
        make_vec_env("DriftMountainCar-v0", n_envs=1),
    ):
        with pytest.raises(ArgumentError, match=r"should have a `HeldClock` in each environment\..*pass a single"):
            EvalCallback(several)
    with pytest.raises(ArgumentError, match="should have a `DriftWrapper` inside"):
        EvalCallback(gym.make("CartPole-v1"))
    with pytest.raises(ArgumentError, match=r"`eval_env` should be a single .*gym\.make\('DriftCartPole-v0'\)"):
        EvalCallback("DriftCartPole-v0")
    with pytest.raises(ArgumentError, match="`follow` should be a whole number, at least 0"):
        EvalCallback(gym.make("DriftCartPole-v0"), follow=-1)


def refusal(trained, callback):
    """What is raised when training begins."""
    model = PPO("MlpPolicy", trained, n_steps=32, batch_size=32, n_epochs=1)
    with pytest.raises(ArgumentError) as found:
        model.learn(32, callback)
    return str(found.value)


def test_the_training_environments_have_to_fit_the_evaluation():
    env = PhaseReturns(gym.make("DriftCartPole-v0"))
    for evaluated in (env, env.env, DummyVecEnv([lambda: HeldClock(env)])):
        assert "`eval_env` should be another environment than that of training" in refusal(env, EvalCallback(evaluated))
    assert not env.episodes
    other = gym.make("DriftCartPole-v0")
    beyond = "`follow` should be the index of a training environment, at most 0. Received 1"
    assert refusal(env, EvalCallback(other, follow=1)) == beyond
    assert "training environments should each have a `DriftWrapper`" in refusal(
        gym.make("CartPole-v1"), EvalCallback(other)
    )


@pytest.mark.parametrize("arguments", [{"env_kwargs": {"schedule": None}}, {"wrapper_class": PhaseReturns}])
def test_arguments_of_the_namesake_are_refused_with_the_way(arguments):
    with pytest.raises(
        ArgumentError, match=f"`{next(iter(arguments))}` is an argument of Stable-Baselines3's .*schedule="
    ):
        make_vec_env("DriftMountainCar-v0", n_envs=2, **arguments)


@pytest.mark.parametrize("arguments", [{"vectorization_mode": "sync"}, {"num_envs": 3}, {"seed": "a"}])
def test_arguments_that_the_native_form_does_not_have_are_refused(arguments):
    with pytest.raises(ArgumentError, match=f"`{next(iter(arguments))}` should "):
        make_vec_env("DriftMountainCar-v0", n_envs=2, **arguments)


def test_the_copies_of_the_namesake_store_their_returns():
    poles = env_util.make_vec_env("DriftCartPole-v0", n_envs=2, wrapper_class=PhaseReturns, seed=0)
    PPO("MlpPolicy", poles, n_steps=64, batch_size=64, n_epochs=1).learn(128)
    assert [list(returns) for returns in poles.env_method("by_phase")] == [["source"]] * 2


def test_the_error_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("stable_baselines3")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.delitem(sys.modules, "drift_envs.integrations.sb3")
    with pytest.raises(MissingDependencyError, match=re.escape('pip install ".[rl]"')):
        __import__("drift_envs.integrations.sb3")


def test_driven_knobs_are_not_set_through_vector_environments_of_stable_baselines():
    drifts = [{"at": 1000, "set": {"gravity": 0.002}}]
    schedule = {"version": 1, "name": "s", "clock": "step", "drifts": drifts}
    native = make_vec_env("drift_envs:DriftMountainCar-v0", 2, seed=0, schedule=schedule)
    single = DummyVecEnv([lambda: gym.make("DriftMountainCar-v0", schedule=schedule)] * 2)
    for cars in (native, single):
        cars.reset()
        ways = [
            lambda cars=cars: cars.env_method("set_wrapper_attr", "gravity", 0.002),
            lambda cars=cars: cars.env_method("set_knobs", {"gravity": 0.002}, indices=[1]),
            lambda cars=cars: cars.env_method("set_knob", "gravity", 0.002, indices=1),
        ]
        if cars is native:
            ways.append(lambda: native.set_attr("gravity", 0.002, indices=1))
        for way in ways:
            with pytest.raises(DrivenKnobError, match="`gravity` is driven by the schedule"):
                way()
        cars.env_method("set_wrapper_attr", "force", 0.0008)
        states = cars.env_method("get_wrapper_attr", "drift_state")
        assert [(state.knobs["force"], state.knobs["gravity"]) for state in states] == [(0.0008, 0.0025)] * 2
    single.set_attr("gravity", 0.002)  # an attribute of the outermost wrapper, which moves nothing
    assert single.env_method("get_wrapper_attr", "drift_state")[0].knobs["gravity"] == 0.0025


@pytest.mark.parametrize("wrapper", [PhaseReturns, HeldClock])
def test_the_attribute_of_an_outermost_wrapper_of_this_package_is_refused(wrapper):
    schedule = {"version": 1, "name": "s", "drifts": [{"at": 1000, "set": {"gravity": 0.002}}]}
    cars = env_util.make_vec_env("DriftMountainCar-v0", 2, env_kwargs={"schedule": schedule}, wrapper_class=wrapper)
    cars.reset()
    with pytest.raises(DrivenKnobError, match="`gravity` is driven by the schedule"):
        cars.set_attr("gravity", 0.002)
    cars.set_attr("other", 3)
    assert cars.get_attr("other") == [3, 3]


@pytest.mark.parametrize(
    ("wrapper", "act", "ends"),
    [
        (PhaseReturns, lambda cars: cars.set_attr("gravity", 0.002), True),
        (None, lambda cars: cars.env_method("set_wrapper_attr", "gravity", 0.002), True),
        (None, lambda cars: cars.env_method("set_knobs", {"gravity": 0.002}), True),
        (None, lambda cars: cars.set_attr("gravity", 0.002), False),  # an attribute of `Monitor`
    ],
    ids=["our wrapper", "set_wrapper_attr", "set_knobs", "another wrapper"],
)
def test_processes_refuse_and_end_or_do_not_move(wrapper, act, ends, capfd):
    schedule = {"version": 1, "name": "s", "drifts": [{"at": 1000, "set": {"gravity": 0.002}}]}
    cars = env_util.make_vec_env(
        "DriftMountainCar-v0",
        1,
        env_kwargs={"schedule": schedule},
        wrapper_class=wrapper,
        vec_env_cls=SubprocVecEnv,
        vec_env_kwargs={"start_method": "fork"},
    )
    try:
        cars.reset()
        if ends:
            with pytest.raises((EOFError, ConnectionResetError)):
                act(cars)
            cars.processes[0].join(60)
            assert "`gravity` is driven by the schedule and should not be set from outside" in capfd.readouterr().err
        else:
            act(cars)
            assert cars.env_method("get_wrapper_attr", "drift_state")[0].knobs["gravity"] == 0.0025
            cars.close()
    finally:
        for process in cars.processes:
            process.kill()
            process.join(60)


def test_the_file_of_an_evaluation_has_ticks_and_phases(tmp_path):
    drifts = [{"name": "soon", "at": 20, "set": {"gravity": 0.002}}]
    schedule = {"version": 1, "name": "s", "clock": "step", "drifts": drifts}
    cars = make_vec_env("DriftMountainCar-v0", 2, seed=0, schedule=schedule)
    held = gym.make("DriftMountainCar-v0", schedule=schedule)
    callback = EvalCallback(held, eval_freq=16, n_eval_episodes=1, log_path=str(tmp_path), verbose=0)
    PPO("MlpPolicy", cars, n_steps=32, batch_size=32, n_epochs=1, seed=0).learn(64, callback)
    with np.load(tmp_path / "evaluations.npz") as stored:
        assert stored["ticks"].tolist() == callback.evaluations_ticks
        assert stored["phases"].tolist() == ["source", "soon"]
        assert len(stored["timesteps"]) == 2


@pytest.mark.parametrize("start", [900, 200], ids=["never", "reached"])
def test_a_training_that_ends_before_the_first_drift_is_told_without_close(start):
    schedule = {"version": 1, "name": "late", "clock": "step", "drifts": [{"at": start, "set": {"slip": 0.5}}]}
    lakes = make_vec_env("DriftFrozenLake-v0", 4, seed=0, schedule=schedule)
    held = gym.make("DriftFrozenLake-v0", schedule=schedule)
    callback = EvalCallback(held, eval_freq=10_000, n_eval_episodes=1, verbose=0)
    model = PPO("MlpPolicy", lakes, n_steps=75, batch_size=100, n_epochs=1, seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.learn(1200, callback)
    found = [str(one.message) for one in caught if issubclass(one.category, DriftWarning)]
    assert bool(found) == (start == 900)
    assert all("first drift comes at tick 900: nothing has drifted; with `clock: step`" in one for one in found)


@pytest.mark.parametrize("form", ["native", "dummy", "processes"])
def test_it_is_told_once_however_often_it_learns_and_closes(form, capfd):
    schedule = {"version": 1, "name": "late", "clock": "step", "drifts": [{"at": 9000, "set": {"slip": 0.5}}]}
    if form == "native":
        lakes = make_vec_env("DriftFrozenLake-v0", 2, seed=0, schedule=schedule)
    else:
        make = {"dummy": DummyVecEnv, "processes": SubprocVecEnv}[form]
        lakes = make([lambda: gym.make("drift_envs:DriftFrozenLake-v0", schedule=schedule)] * 2)
    callback = EvalCallback(
        gym.make("DriftFrozenLake-v0", schedule=schedule), eval_freq=10_000, n_eval_episodes=1, verbose=0
    )
    model = PPO("MlpPolicy", lakes, n_steps=600, batch_size=600, n_epochs=1, seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.learn(1200, callback)
        model.learn(1200, callback, reset_num_timesteps=False)
        lakes.close()
        callback.eval_env.close()
    found = [str(one.message) for one in caught if issubclass(one.category, DriftWarning)]
    assert len(found) == 1
    assert "the training has ended at tick" in found[0]
    assert "nothing has drifted" not in capfd.readouterr().err  # of the processes

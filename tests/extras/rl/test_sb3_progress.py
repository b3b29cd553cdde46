"""A training that stops goes on where it was: equal to the one that was not interrupted, step by step."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env as make_single_copies
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
)

import drift_envs
from drift_envs.errors import ArgumentError, DriftWarning
from drift_envs.integrations.sb3 import CheckpointCallback, EvalCallback, make_vec_env
from drift_envs.wrappers import DriftWrapper, PhaseReturns

torch.set_num_threads(1)

CAR = {
    "version": 1,
    "name": "weak",
    "clock": "step",
    "drifts": [
        {"at": 40, "set": {"gravity": 0.002}},
        {"at": 100, "kind": "incremental", "over": 200, "set": {"force": 0.002}},
        {"rate": 0.02, "walk": {"transient": 0.05}},
    ],
}


class Steps(BaseCallback):  # type: ignore[misc, unused-ignore]
    """Stores what each step returned, and interrupts a training as Ctrl-C does."""

    def __init__(self, stop: int | None = None) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self._stop = stop

    def _on_step(self) -> bool:
        local = self.locals
        self.seen.append(
            [
                self.num_timesteps,
                local["new_obs"].tolist(),
                np.asarray(local["rewards"]).tolist(),
                local["dones"].tolist(),
            ]
        )
        if self._stop is not None and self.num_timesteps >= self._stop:
            raise KeyboardInterrupt
        return True


def native() -> VecEnv:
    return make_vec_env("DriftMountainCar-v0", n_envs=2, seed=0, schedule=CAR, max_episode_steps=30)


def single_copies(kind: type[VecEnv]) -> VecEnv:
    arguments = {"schedule": CAR, "max_episode_steps": 30}
    return make_single_copies(
        "DriftMountainCar-v0", 2, seed=0, env_kwargs=arguments, vec_env_cls=kind, wrapper_class=PhaseReturns
    )


def of_another_package() -> VecEnv:
    plan = {"version": 1, "name": "p", "clock": "step", "drifts": [{"at": 40, "set": {"masspole": 0.5}}]}
    return DummyVecEnv([lambda: DriftWrapper(gym.make("CartPole-v1"), plan)] * 2)


FORMS: dict[str, Callable[[], VecEnv]] = {
    "native": native,
    "dummy": lambda: single_copies(DummyVecEnv),
    "subproc": lambda: single_copies(SubprocVecEnv),
    "normalized": lambda: VecNormalize(native()),
    "stacked": lambda: VecFrameStack(VecNormalize(VecMonitor(of_another_package())), 2),
    "another package": of_another_package,
}


def check_training(
    make_model: Callable[[VecEnv], Any], make: Callable[[], VecEnv], folder: Path, stop: int, total: int, freq: int = 32
) -> None:
    """Train through, and with an interruption after which everything is made anew; compare steps and weights."""
    kwargs = {"save_replay_buffer": True}

    def train(name: str, end: int | None) -> tuple[Any, list[Any]]:
        env, steps = make(), Steps(end)
        checkpoints = CheckpointCallback(freq, folder / name, **kwargs)
        last = checkpoints.last()
        model = make_model(env) if last is None else type(make_model(make())).load(last, env=env)
        began = model.num_timesteps
        try:
            model.learn(total - began, [checkpoints, steps], reset_num_timesteps=False)
        except KeyboardInterrupt:
            assert end is not None
        env.close()
        return model, steps.seen

    whole, seen = train("whole", None)
    train("parts", stop)
    torch.manual_seed(99)  # as in a new process
    parts, rest = train("parts", None)
    assert 0 < len(rest) < len(seen)
    assert rest == seen[-len(rest) :]
    for name, weights in whole.policy.state_dict().items():
        assert torch.equal(weights, parts.policy.state_dict()[name]), name
    assert whole.num_timesteps == parts.num_timesteps
    assert [one["r"] for one in whole.ep_info_buffer] == [one["r"] for one in parts.ep_info_buffer]
    if hasattr(whole.env, "by_phase"):
        assert whole.env.by_phase() == parts.env.by_phase()


@pytest.mark.parametrize("form", FORMS)
def test_ppo_goes_on(form: str, tmp_path: Path) -> None:
    def make(env: VecEnv) -> PPO:
        return PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=2, seed=3)

    check_training(make, FORMS[form], tmp_path, stop=200, total=384)


def test_noise_that_depends_on_states_goes_on(tmp_path: Path) -> None:
    def make_cars() -> VecEnv:
        return make_vec_env("DriftMountainCarContinuous-v0", n_envs=2, seed=0, max_episode_steps=20)

    def make(env: VecEnv) -> A2C:
        return A2C("MlpPolicy", env, n_steps=16, use_sde=True, seed=3)

    check_training(make, make_cars, tmp_path, stop=100, total=192, freq=16)


@pytest.mark.parametrize("algorithm", [DQN, SAC])
def test_algorithms_with_a_replay_buffer_go_on(algorithm: Any, tmp_path: Path) -> None:
    def make_cars() -> VecEnv:
        name = "DriftMountainCar-v0" if algorithm is DQN else "DriftMountainCarContinuous-v0"
        return make_vec_env(name, n_envs=2, seed=0, max_episode_steps=20)

    def make(env: VecEnv) -> Any:
        return algorithm("MlpPolicy", env, learning_starts=40, batch_size=8, buffer_size=500, train_freq=8, seed=3)

    check_training(make, make_cars, tmp_path, stop=100, total=160, freq=16)


def test_an_interruption_within_a_step_of_native_copies_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = native()
    checkpoints = CheckpointCallback(32, tmp_path)
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=3)
    calls = iter(range(10**6))
    inner = env.envs._transition  # type: ignore[attr-defined]

    def interrupted(*arguments: Any) -> Any:
        if next(calls) == 70:
            raise KeyboardInterrupt
        return inner(*arguments)

    monkeypatch.setattr(env.envs, "_transition", interrupted)  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        model.learn(256, checkpoints)
    last = checkpoints.last()
    assert last is not None
    fresh = native()
    again = PPO.load(last, env=fresh)
    assert again.num_timesteps == 128
    again.learn(64, CheckpointCallback(32, tmp_path), reset_num_timesteps=False)
    assert [state.tick for state in fresh.get_attr("drift_state")] == [95, 95]


def test_a_new_environment_without_progress_is_warned_of(tmp_path: Path) -> None:
    model = PPO("MlpPolicy", native(), n_steps=32, batch_size=32, n_epochs=1)
    model.learn(64)
    model.save(tmp_path / "model.zip")
    rule = "the model has trained for 64 steps, and its environment is at tick 0"
    evaluation = EvalCallback(gym.make("DriftMountainCar-v0", schedule=CAR), eval_freq=1000, verbose=0)
    for callback in (
        CheckpointCallback(32, tmp_path / "other"),
        evaluation,
        [evaluation, CheckpointCallback(32, tmp_path / "another")],
    ):
        again = PPO.load(tmp_path / "model.zip", env=native())
        with pytest.warns(DriftWarning, match=rule) as caught:
            again.learn(64, callback, reset_num_timesteps=False)
        assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn(64, CheckpointCallback(32, tmp_path / "other"), reset_num_timesteps=False)  # its time goes on
        PPO("MlpPolicy", native(), n_steps=32, batch_size=32, n_epochs=1).learn(64, CheckpointCallback(32, tmp_path))


def test_wrong_checkpoints_are_refused(tmp_path: Path) -> None:
    checkpoints = CheckpointCallback(32, tmp_path)
    assert checkpoints.last() is None
    PPO("MlpPolicy", native(), n_steps=32, batch_size=32, n_epochs=1).learn(128, checkpoints)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "rl_model_128_steps.zip",
        "rl_model_64_steps.zip",
        "rl_model_progress_128_steps.json",
        "rl_model_progress_64_steps.json",
    ]
    last = checkpoints.last()
    assert last is not None
    three = make_vec_env("DriftMountainCar-v0", n_envs=3, seed=0, schedule=CAR, max_episode_steps=30)
    with pytest.raises(ArgumentError, match=re.escape("of the same number of copies: `env` has 3. Received 2")):
        PPO.load(last, env=three).learn(64, CheckpointCallback(32, tmp_path), reset_num_timesteps=False)
    path = tmp_path / "rl_model_progress_128_steps.json"
    for text in ("{}", "no JSON", json.dumps({**json.loads(path.read_text()), "format": 7})):
        path.write_text(text)
        with pytest.raises(ArgumentError, match=re.escape("should be")):
            PPO.load(last, env=native()).learn(64, CheckpointCallback(32, tmp_path), reset_num_timesteps=False)
    path.unlink()
    assert checkpoints.last() == str(tmp_path / "rl_model_64_steps.zip")


@pytest.mark.parametrize("form", ["native", "dummy"])
def test_a_checkpoint_is_restored_where_nothing_was_stepped_since_the_rewind(form: str, tmp_path: Path) -> None:
    """Also a second time, and not over an environment that was stepped, which is told."""

    def load(cars: VecEnv) -> Any:
        return PPO.load(tmp_path / "rl_model_64_steps.zip", cars)

    def learn(model: Any) -> Any:
        model.learn(32, CheckpointCallback(100, tmp_path), reset_num_timesteps=False)
        return [state.tick for state in model.env.env_method("get_wrapper_attr", "drift_state")], model._last_obs

    model = PPO("MlpPolicy", FORMS[form](), n_steps=16, batch_size=16, n_epochs=1, seed=0)
    model.learn(64, CheckpointCallback(16, tmp_path))
    cars = FORMS[form]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = learn(load(cars))
    with pytest.warns(DriftWarning, match="has rewound the schedule"):  # the seed of `load`
        second = learn(load(cars))
    assert first[0] == second[0]
    np.testing.assert_array_equal(first[1], second[1])
    model = load(FORMS[form]())
    model.env.reset()
    model.env.step(np.zeros(2, int))
    with pytest.warns(DriftWarning, match=r"has been stepped since `.*progress_64_steps.json` was stored"):
        learn(model)


@pytest.mark.parametrize("freq", [0, -1, 1.5, True, "8", None])
def test_another_frequency_is_refused(freq: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="`save_freq` should be a whole number, at least 1"):
        CheckpointCallback(freq, tmp_path)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for path in (file, str(file), "", None, 3, b"folder"):
        with pytest.raises(ArgumentError, match="`save_path` should be "):
            CheckpointCallback(8, path)  # type: ignore[arg-type]


def test_environments_that_do_not_drift_are_refused_when_training_begins(tmp_path: Path) -> None:
    model = PPO("MlpPolicy", DummyVecEnv([lambda: gym.make("CartPole-v1")]), n_steps=8, batch_size=8)
    with pytest.raises(ArgumentError, match="should each have a `DriftWrapper` inside"):
        model.learn(8, CheckpointCallback(8, tmp_path))
    assert not model.num_timesteps


def test_damaged_progress_is_refused_in_one_line_with_its_file(tmp_path: Path) -> None:
    """Cut, changed in any part, of another step, and what is no text or no file."""
    PPO("MlpPolicy", native(), n_steps=16, batch_size=16, n_epochs=1).learn(64, CheckpointCallback(16, tmp_path))
    path, other = (tmp_path / f"rl_model_progress_{steps}_steps.json" for steps in (64, 32))
    text = path.read_text("utf-8")
    saved = json.loads(text)
    wrong = [text[: len(text) // 2], "", "[]", "null", "[" * 100_000, other.read_text("utf-8")]
    wrong += [json.dumps({name: value for name, value in saved.items() if name != part}) for part in saved]
    wrong += [json.dumps({**saved, part: None if saved[part] is not None else 1}) for part in saved]
    for content in [b"\xff\xfe", *map(str.encode, wrong)]:
        path.write_bytes(content)
        with pytest.raises(ArgumentError) as refused:
            PPO.load(tmp_path / "rl_model_64_steps.zip", native()).learn(
                64, CheckpointCallback(16, tmp_path), reset_num_timesteps=False
            )
        assert str(refused.value).startswith(f"`{path}`")
        assert "\n" not in str(refused.value)


def test_options_of_each_copy() -> None:
    env = native()
    env.reset()
    env.set_options([{"drift_tick": 7}, {"drift_tick": 60}])
    env.reset()
    assert [state.tick for state in env.get_attr("drift_state")] == [7, 60]
    env.set_options({"drift_tick": 9})
    env.reset()
    assert [state.tick for state in env.get_attr("drift_state")] == [9, 9]


@pytest.mark.parametrize("form", ["native", "dummy", "subproc", "normalized"])
def test_time_is_moved_in_all_forms(form: str) -> None:
    env = FORMS[form]()
    env.reset()
    drift_envs.move_time(env, tick=77, hold=True, copies=1)
    for _ in range(40):
        env.step(np.zeros(2, int))
    assert [state.tick for state in env.get_attr("drift_state")] == [39, 77]
    env.env_method("move_time", phase="drift-1", hold=True, indices=[0])
    for _ in range(40):
        env.step(np.zeros(2, int))
    assert [state.tick for state in env.get_attr("drift_state")] == [40, 77]
    env.close()

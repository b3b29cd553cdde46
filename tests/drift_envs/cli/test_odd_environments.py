"""The commands on environments that keep the interface of Gymnasium in part."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from drift_envs.cli.app import main

pytestmark = pytest.mark.filterwarnings("ignore")

MODULE = """
import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Plain(gym.Env):
    observation_space = spaces.Box(-10, 10, (2,), np.float32)
    action_space = spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}
    picture = np.zeros((20, 20, 3), np.uint8)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.gain, self.time = 1.0, 0

    def see(self):
        return np.array([self.time, self.gain], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.see(), {}

    def step(self, action):
        self.time += 1
        return self.see(), self.gain, False, self.time >= 4, {}

    def render(self):
        return self.picture


class OneReward(Plain):
    def step(self, action):
        observation, reward, *ends = super().step(action)
        return observation, np.array([reward]), *ends


class NoReward(Plain):
    def step(self, action):
        observation, _, *ends = super().step(action)
        return observation, None, *ends


class ObservationAlone(Plain):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class ThreeValues(Plain):
    def reset(self, *, seed=None, options=None):
        return *super().reset(seed=seed), 3


class Words(Plain):
    action_space = spaces.Text(5)


class Grey(Plain):
    picture = np.zeros((20, 20), np.uint8)


class GreyChannel(Plain):
    picture = np.zeros((20, 20, 1), np.uint8)


class Opacity(Plain):
    picture = np.zeros((20, 20, 4), np.uint8)


class Flat(Plain):
    picture = np.zeros(20, np.uint8)


class Grows(Plain):
    def see(self):
        return np.zeros(self.time + 1, np.float32)


class Long(Plain):
    def see(self):
        return np.zeros(3, np.float32)


class Lacks(Plain):
    observation_space = spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Text(5)})

    def see(self):
        return {"a": 1, "b": "x"} if self.time < 2 else {"a": 1}


class NoText(Plain):
    observation_space = spaces.Text(5)

    def see(self):
        return 5


class InArray(Plain):
    observation_space = spaces.Discrete(9)

    def see(self):
        return np.array([self.time])
"""
CHECK, RECORD, DATASET = "check", "record", "dataset"
VALUES = "`observation` should have values of its space"
RESET = "should return an observation and a dictionary. Received"
FAILS: dict[str, dict[str, str]] = {
    "Plain": {},
    "OneReward": {},
    "NoReward": dict.fromkeys((RECORD, DATASET), "the reward should be one number"),
    "ObservationAlone": dict.fromkeys((CHECK, RECORD, DATASET), f"`reset` of ObservationAlone {RESET} ndarray"),
    "ThreeValues": dict.fromkeys((CHECK, RECORD, DATASET), f"`reset` of ThreeValues {RESET} tuple"),
    "Words": {},
    "Grey": {},
    "GreyChannel": {},
    "Opacity": {},
    "Flat": {RECORD: "a picture should have the shape (height, width, 3). Received one of (20,)"},
    "Grows": {DATASET: VALUES},
    "Long": {DATASET: f"{VALUES}, Box(-10.0, 10.0, (2,), float32). Received ones of (3,)"},
    "Lacks": {DATASET: "`observation` should be dictionaries with the key 'b'"},
    "NoText": {DATASET: VALUES},
    "InArray": {},
}
"""What each command says of an environment; it succeeds where nothing stands."""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"odd_{tmp_path.name}".replace("-", "_")
    content = MODULE + "".join(f'\ngym.register("{one}-v0", {one})\n' for one in FAILS).replace("v0", f"{name}-v0")
    (tmp_path / f"{name}.py").write_text(content, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield name
    sys.modules.pop(name, None)


@pytest.mark.parametrize("env", FAILS)
def test_what_an_environment_does_not_keep_is_one_line(
    env: str, module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env_id = f"{module}:{env}-{module}-v0"
    text = f"version: 1\nenv: {env_id}\nknobs: {{gain: {{bounds: [0, 9]}}}}\ndrifts: [{{at: 1, set: {{gain: 2.0}}}}]\n"
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    film = ["--policy", "random", "--steps", "3", "--phases", "2", "--out", "film.png"]
    commands = {
        CHECK: ["s.yaml", "--episodes", "1", "--steps", "5"],
        RECORD: [env_id, "--schedule", "s.yaml", *film],
        DATASET: [env_id, "--schedule", "s.yaml", "--episodes", "2", "-q", "--out", "data"],
    }
    for command, words in commands.items():
        expected = FAILS[env].get(command)
        status = main([command, *words])
        if command == CHECK and expected is None:
            assert status in (0, 1)  # it may warn that nothing shows the gain
            continue
        last = capsys.readouterr().err.strip().rpartition("\n")[2]
        assert (command, status) == (command, int(expected is not None)), last
        if expected is not None:
            assert expected in last
            assert last.startswith("drift-envs: ")

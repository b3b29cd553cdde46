"""The command `play`, with a keyboard that plays by itself."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pygame
import pytest

from drift_envs.cli import main
from drift_envs.cli.play import number_keys, play
from drift_envs.registration import IDS
from tests.core_ids import CORE_IDS

LAKE = {"version": 1, "name": "small", "base": {"map": ["SFF", "FHF", "FFG"]}}


class Keyboard:
    """Presses one key a picture, then closes the window."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = iter(keys)
        self.held: set[int] = set()

    def get(self) -> list[pygame.event.Event]:
        key = next(self.keys, None)
        if key is None:
            return [pygame.event.Event(pygame.QUIT)]
        return [] if key == "" else [pygame.event.Event(pygame.KEYDOWN, key=pygame.key.key_code(key))]

    def get_pressed(self) -> Keyboard:
        return self

    def __getitem__(self, code: int) -> bool:
        return code in self.held


class Recorder(gym.Wrapper):
    """Notes what the person did."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.actions: list = []
        self.ticks: list[int] = []

    def reset(self, **arguments):
        result = self.env.reset(**arguments)
        self.ticks.append(self.get_wrapper_attr("drift_state").tick)
        return result

    def step(self, action):
        self.actions.append(action)
        return self.env.step(action)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A virtual display, and a clock that does not wait."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.init()

    class Clock:
        def tick(self, *_: float) -> int:
            return 0

    monkeypatch.setattr(pygame.time, "Clock", Clock)
    yield monkeypatch
    pygame.display.quit()


def sit_down(
    desk: pytest.MonkeyPatch, env_id: str, keys: list[str], schedule: object = None
) -> tuple[Recorder, Keyboard]:
    keyboard = Keyboard(keys)
    desk.setattr(pygame.event, "get", keyboard.get)
    desk.setattr(pygame.key, "get_pressed", keyboard.get_pressed)
    return Recorder(gym.make(env_id, schedule=schedule or CORE_IDS[env_id].schedule)), keyboard


def test_the_lake_waits_for_a_key(desk: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    env, _ = sit_down(desk, "DriftFrozenLake-v0", ["right", "", "", "d", "x", "down", "s", "right", "down"], LAKE)
    assert play(env, IDS["DriftFrozenLake-v0"].controls) == [True, False]
    assert env.actions == [2, 2, 1, 1, 2, 1]
    assert capsys.readouterr().out.splitlines() == [
        "episode 0: reached the goal after 4 steps",
        "episode 1: missed after 2 steps",
    ]


def test_episodes_and_ticks_between_them(desk: pytest.MonkeyPatch) -> None:
    env, _ = sit_down(desk, "DriftFrozenLake-v0", ["right", "down"] * 5, LAKE)
    assert play(env, IDS["DriftFrozenLake-v0"].controls, episodes=3, every=10) == [False] * 3
    assert env.ticks == [0, 10, 20, 30]


def test_the_car_does_not_wait(desk: pytest.MonkeyPatch) -> None:
    env, keyboard = sit_down(desk, "DriftMountainCar-v0", ["", "left", "", "q", "right"])
    assert play(env, IDS["DriftMountainCar-v0"].controls) == []
    assert env.actions == [1, 0, 1]
    env, keyboard = sit_down(desk, "DriftMountainCar-v0", ["", ""])
    keyboard.held = {pygame.K_RIGHT}
    play(env, IDS["DriftMountainCar-v0"].controls)
    assert env.actions == [2, 2]


def test_the_whole_command(desk: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    sit_down(desk, "DriftFrozenLake-v0", ["right"])
    # The first move of this map leads into a hole.
    assert main(["play", "DriftFrozenLake-v0", "--episodes", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "arrows or w a s d: move; r: give up the episode; q: quit",
        "episode 0: missed after 1 steps",
        "1 episodes, 0 reached the goal",
    ]


def test_without_a_display_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)

    def fail() -> None:
        raise pygame.error("No available video device")

    monkeypatch.setattr(pygame.display, "init", fail)
    assert main(["play", "DriftFrozenLake-v0"]) == 1
    assert "`play` needs a display, and none was found." in capsys.readouterr().err


def test_every_needs_a_clock_of_episodes(tmp_path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "steps.yaml"
    file.write_text("version: 1\nname: steps\nenv: DriftFrozenLake-v0\nclock: step\n", encoding="utf-8")
    assert main(["play", "DriftFrozenLake-v0", "--schedule", str(file), "--every", "3"]) == 1
    assert "`--every` needs a schedule whose ticks are episodes" in capsys.readouterr().err


def test_environments_of_text_are_played_in_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = iter(["go to fridge 1", "?", "r", "look"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines, "q"))
    assert main(["play", "DriftHouse-v0", "--every", "20"]) == 0
    shown = capsys.readouterr().out
    assert "You arrive at fridge 1. The fridge 1 is closed." in shown
    assert " open fridge 1\n" in shown
    assert "phase drift-1, episode 20, step 0" in shown
    assert shown.endswith("0 episodes, 0 with a score\n")


def test_an_action_is_chosen_by_its_number(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    lines = iter(["?", "3", "4", "q"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    assert main(["play", "DriftTools-v0"]) == 0
    shown = capsys.readouterr().out
    assert '  1 {"tool": "find_customer"' in shown
    assert '  3 {"tool": "finish", "arguments": {}}\n' in shown
    assert "episode 0: score 0, I am" in shown
    assert "invalid_call" in shown  # three are listed


class Lamp(gym.Env[Any, Any]):
    """An environment of another package: three switches; what they do is said as Atari says it."""

    observation_space = gym.spaces.Box(0, 1, (1,))

    def __init__(self, render_mode: str | None = None, space: Any = None, **members: Any) -> None:
        self.render_mode, self.bright = render_mode, 1.0
        self.action_space = gym.spaces.Discrete(3, start=1) if space is None else space
        vars(self).update(members)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.ones(1, np.float32), self.bright * int(np.sum(action)), False, False, {}

    def render(self) -> Any:
        return np.zeros((8, 8, 3), np.uint8)


class Drawn(Lamp):
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}


@pytest.fixture
def lamps(tmp_path: Path) -> Iterator[Path]:
    gym.register("Lamp-v0", Lamp, max_episode_steps=2)
    gym.register("Drawn-v0", Drawn, max_episode_steps=2)
    for name in ("Lamp", "Drawn"):
        knobs, drifts = "{bright: {bounds: [0, 9]}}", "[{at: 1, set: {bright: 5}}]"
        text = f"version: 1\nenv: {name}-v0\nknobs: {knobs}\ndrifts: {drifts}\n"
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    yield tmp_path
    for name in ("Lamp-v0", "Drawn-v0"):
        gym.registry.pop(name)


@pytest.mark.filterwarnings("ignore:.*No render fps was declared")
def test_environments_of_other_packages_are_played_by_numbers(
    desk: pytest.MonkeyPatch, lamps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keyboard = Keyboard(["0", "3", "up", "2", "1", "3"])
    desk.setattr(pygame.event, "get", keyboard.get)
    assert main(["play", str(lamps / "Drawn.yaml")]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0] == "1: action 1, 2: action 2, 3: action 3; r: give up the episode; q: quit"
    assert "episode 0: return 5.0 after 2 steps\nepisode 1: return 20.0 after 2 steps" in shown, (
        "the second one drifted"
    )


def test_without_pictures_other_packages_are_played_in_the_terminal(
    monkeypatch: pytest.MonkeyPatch, lamps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = iter(["7", "3", "2", "q"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    assert main(["play", "Lamp-v0", "--schedule", str(lamps / "Lamp.yaml"), "--every", "4"]) == 0
    shown = capsys.readouterr().out
    assert "`action` should be an element of Discrete(3, start=1)" in shown
    assert "episode 0: score 5, You act in Lamp-v0." in shown
    assert shown.count('{"observation": [1.0]}') == 2


def test_keys_of_many_actions_and_their_meanings() -> None:
    class Signal(IntEnum):
        RED = 0
        GREEN = 1

    many = number_keys(Lamp(space=gym.spaces.MultiDiscrete([4, 3])))
    assert many is not None
    assert list(many.keys)[9:] == ["9", "a", "b"]
    assert np.array_equal(many.keys["b"], [3, 2])
    named = number_keys(Lamp(space=gym.spaces.Discrete(2), actions=Signal))
    assert named is not None
    assert named.help == "0: RED, 1: GREEN"
    said = number_keys(Lamp(get_action_meanings=lambda: ["NOOP", "FIRE", "UP"]))
    assert said is not None
    assert said.help == "1: NOOP, 2: FIRE, 3: UP"
    listed = number_keys(Lamp(action_type=SimpleNamespace(actions={0: "SLOWER", 1: "IDLE", 2: "FASTER"})))
    assert listed is not None
    assert listed.help == "1: SLOWER, 2: IDLE, 3: FASTER"
    both = number_keys(Lamp(space=gym.spaces.MultiBinary(2)))
    assert both is not None
    most = number_keys(Lamp(space=gym.spaces.Discrete(34)))
    assert most is not None
    assert not {"q", "r"} & set(most.keys)
    assert number_keys(Lamp(space=gym.spaces.Discrete(35))) is None
    assert number_keys(Lamp(space=gym.spaces.Box(-1, 1, (1,)))) is None


def test_an_id_without_keys_is_refused_with_what_to_do(capsys: pytest.CaptureFixture) -> None:
    assert main(["play", "DriftHopper-v0"]) == 2
    assert "record it instead, `drift-envs record ID --out film.gif`" in capsys.readouterr().err

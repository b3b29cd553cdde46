"""The command `play`: control an environment by the keyboard.

* `play_in_window`, `play_in_terminal` - the command, in a window or, for worlds of text, in the terminal
* `KEYS` - the keys of each environment
* `play` - the loop between keyboard and environment
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from drift_envs.cli.worlds import open_schedule
from drift_envs.errors import ArgumentError
from drift_envs.registration import ALL_IDS

FRAMES = 30
"""Frames per second."""

PAUSE = 20
"""Frames for which the end of an episode stays visible."""

VIRTUAL_DRIVERS = ("dummy", "offscreen")
"""SDL's drivers that open no window."""


class Controls(NamedTuple):
    """The keys of an environment.

    Args:
        keys: the action of each key, by pygame's name of the key.
        idle: the action while no key is held; `None` if the environment waits for a key.
        help: the keys in words.
        ends_at_goal: whether episodes terminate at the goal only; if not, a positive reward marks success.
        has_goal: whether there is a goal; if not, the return is printed.
    """

    keys: Mapping[str, Any]
    idle: Any
    help: str
    ends_at_goal: bool = True
    has_goal: bool = True


def _push(*forces: float) -> np.ndarray:
    return np.array(forces, dtype=np.float32)


def _two_ways(force: float) -> dict[str, np.ndarray]:
    """A force to the left and to the right."""
    return {"left": _push(-force), "right": _push(force), "a": _push(-force), "d": _push(force)}


_GRID = Controls(
    {"left": 0, "right": 1, "up": 2, "a": 0, "d": 1, "w": 2, "p": 3, "o": 4, "space": 5},
    None,
    "left and right: turn; up: go; p: pick up; o: drop; space: open or close",
    ends_at_goal=False,
)

KEYS = {
    "DriftFrozenLake-v0": Controls(
        {"left": 0, "down": 1, "right": 2, "up": 3, "a": 0, "s": 1, "d": 2, "w": 3},
        None,
        "arrows or w a s d: move",
        False,
    ),
    "DriftMountainCar-v0": Controls({"left": 0, "right": 2, "a": 0, "d": 2}, 1, "left and right or a d: push"),
    "DriftMountainCarContinuous-v0": Controls(_two_ways(1.0), _push(0.0), "left and right or a d: push"),
    "DriftCartPole-v0": Controls(
        {"left": 0, "right": 1, "a": 0, "d": 1}, None, "left and right or a d: push, one step each", has_goal=False
    ),
    "DriftAcrobot-v0": Controls({"left": 0, "right": 2, "a": 0, "d": 2}, 1, "left and right or a d: turn the joint"),
    "DriftPendulum-v0": Controls(_two_ways(2.0), _push(0.0), "left and right or a d: torque", has_goal=False),
    "DriftLunarLander-v0": Controls(
        {"left": 1, "up": 2, "right": 3, "a": 1, "w": 2, "d": 3}, 0, "left, up, right or a w d: fire an engine", False
    ),
    "DriftInvertedPendulum-v0": Controls(_two_ways(3.0), _push(0.0), "left and right or a d: push", has_goal=False),
    "DriftReacher-v0": Controls(
        {"left": _push(0.3, 0), "right": _push(-0.3, 0), "up": _push(0, 0.3), "down": _push(0, -0.3)},
        _push(0.0, 0.0),
        "left and right: turn the upper joint; up and down: the lower one",
        has_goal=False,
    ),
    **{name: _GRID for name in ALL_IDS if name.startswith("DriftMiniGrid")},
}
TEXT_WORLDS = ("DriftHouse-v0", "DriftWebShop-v0", *(name for name in ALL_IDS if name.startswith("DriftMiniWoB")))
"""Environments that are played in the terminal."""

NO_KEYS = ("DriftHalfCheetah-v0", "DriftHopper-v0")
"""Environments with more actuators than a player has hands for."""

QUIT = ("q", "escape")
GIVE_UP = "r"


def play_in_window(env_id: str, schedule: str | None, episodes: int | None, every: int, seed: int) -> None:
    """Play an environment and print the number of episodes that reached the goal.

    Args:
        env_id: one of `KEYS`.
        schedule: a shipped schedule or a file; `None` for that of the id.
        episodes: after how many to end; `None` plays until the player quits.
        every: ticks from one episode to the next.
        seed: of the first reset.

    Raises:
        ArgumentError: if there is no display, or `every` does not fit the schedule's clock.
    """
    world = open_schedule(schedule or ALL_IDS[env_id].schedule, seed, env_id)
    _check_every(every, world.schedule.clock)
    require_display()
    env = gym.make(env_id, schedule=world.schedule, render_mode="human")
    print(f"{KEYS[env_id].help}; {GIVE_UP}: give up the episode; q: quit")
    try:
        successes = play(env, KEYS[env_id], episodes, every, seed)
    finally:
        env.close()
    reached = f", {sum(successes)} reached the goal" if KEYS[env_id].has_goal else ""
    print(f"{len(successes)} episodes{reached}")


def play_in_terminal(env_id: str, schedule: str | None, episodes: int | None, every: int, seed: int) -> None:
    """Play an environment of text line by line, and print the number of episodes with a score.

    Args:
        env_id: an environment whose actions are texts.
        schedule: a shipped schedule or a file; `None` for that of the id.
        episodes: after how many to end; `None` plays until the player quits.
        every: ticks from one episode to the next.
        seed: of the first reset.

    Raises:
        ArgumentError: if `every` does not fit the schedule's clock.
    """
    world = open_schedule(schedule or ALL_IDS[env_id].schedule, seed, env_id)
    _check_every(every, world.schedule.clock)
    env = gym.make(env_id, schedule=world.schedule, render_mode="ansi", overlay=True, text=True)
    print("type an action; ?: the admissible ones; r: give up the episode; q: quit")
    begun = 0
    scores: list[float] = []
    _, info = env.reset(seed=seed)
    print(env.render())
    while episodes is None or len(scores) < episodes:
        line = _read_line()
        if line is None or line == "q":
            break
        if line == "?":
            print(", ".join(info["actions"]))
            continue
        over = line == GIVE_UP
        if not over:
            _, _, terminated, truncated, info = env.step(line)
            print(env.render())
            over = terminated or truncated
            if over:
                scores.append(info["score"])
                print(f"episode {begun}: score {info['score']:g}, {info['task']}")
        if over and (episodes is None or len(scores) < episodes):
            begun += 1
            _, info = env.reset(options={"drift_tick": begun * every} if every > 1 else None)
            print(env.render())
    env.close()
    print(f"{len(scores)} episodes, {sum(score > 0 for score in scores)} with a score")


def _read_line() -> str | None:
    """A line that was typed, `None` at the end of the input."""
    try:
        return input("> ").strip()
    except EOFError:
        return None


def _check_every(every: int, clock: str) -> None:
    if every > 1 and clock != "episode":
        raise ArgumentError(f"`--every` needs a schedule whose ticks are episodes. Received clock {clock}")


def require_display() -> None:
    """Check that a window can be opened.

    Raises:
        ArgumentError: if no window can be opened.
    """
    import pygame

    chosen = os.environ.get("SDL_VIDEODRIVER")
    try:
        pygame.display.init()
        driver = pygame.display.get_driver()
    except pygame.error as error:
        driver = f"none ({error})"
    if chosen is None and (driver in VIRTUAL_DRIVERS or driver.startswith("none")):
        raise ArgumentError(
            "`play` needs a display, and none was found. Run it on a desktop, or record instead: "
            "`drift-envs record ID --out film.gif`"
        )


def play(env: gym.Env, controls: Controls, episodes: int | None = None, every: int = 1, seed: int = 0) -> list[bool]:
    """The loop between keyboard and environment.

    Args:
        env: an environment with render mode `human`.
        controls: its keys.
        episodes: after how many to end; `None` plays until the player quits.
        every: ticks from one episode to the next.
        seed: of the first reset.

    Returns:
        For each finished episode whether it ended at the goal.
    """
    import pygame

    clock = pygame.time.Clock()
    finished: list[bool] = []
    begun = steps = 0
    total = 0.0
    env.reset(seed=seed)
    while episodes is None or len(finished) < episodes:
        pressed = []
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return finished
            if event.type == pygame.KEYDOWN:
                pressed.append(pygame.key.name(event.key))
        if any(key in QUIT for key in pressed):
            return finished
        over = GIVE_UP in pressed
        action = None if over else _action(controls, pressed)
        if action is not None:
            _, reward, terminated, truncated, _ = env.step(action)
            steps, total = steps + 1, total + float(reward)
            over = terminated or truncated
            if over:
                won = controls.has_goal and terminated and (controls.ends_at_goal or float(reward) > 0)
                finished.append(won)
                result = ("reached the goal" if won else "missed") if controls.has_goal else f"return {total:.1f}"
                print(f"episode {begun}: {result} after {steps} steps")
                for _ in range(PAUSE):
                    clock.tick(FRAMES)
        if over:
            begun, steps, total = begun + 1, 0, 0.0
            env.reset(options={"drift_tick": begun * every} if every > 1 else None)
        clock.tick(FRAMES)
    return finished


def _action(controls: Controls, pressed: list[str]) -> Any:
    """The action of a key just pressed, or of one that is held if the environment does not wait."""
    import pygame

    for key in pressed:
        if key in controls.keys:
            return controls.keys[key]
    if controls.idle is None:
        return None
    held = pygame.key.get_pressed()
    for key, action in controls.keys.items():
        if held[pygame.key.key_code(key)]:
            return action
    return controls.idle

"""The command `play`: control an environment by the keyboard.

* `play_in_window`, `play_in_terminal` - the command, in a window or, for text environments, in the terminal
* `play` - the loop between keyboard and environment
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.cli.scheduled import open_schedule
from drift_envs.errors import ArgumentError
from drift_envs.parts import Controls
from drift_envs.registration import IDS

FRAMES = 30
"""Frames per second."""

PAUSE = 20
"""Frames for which the end of an episode stays visible."""

VIRTUAL_DRIVERS = ("dummy", "offscreen")
"""SDL's drivers that open no window."""


QUIT = ("q", "escape")
GIVE_UP = "r"


def play_in_window(
    env_id: str, schedule: str | None, controls: Controls, episodes: int | None, every: int, seed: int
) -> None:
    """Play an environment and print the number of episodes that reached the goal.

    Args:
        env_id: the id.
        schedule: a shipped schedule or a file; `None` for that of the id.
        controls: its keys.
        episodes: after how many to end; `None` plays until the player quits.
        every: ticks from one episode to the next.
        seed: of the first reset.

    Raises:
        ArgumentError: if there is no display, or `every` does not fit the schedule's clock.
    """
    scheduled = open_schedule(schedule or IDS[env_id].schedule, seed, env_id)
    _check_every(every, scheduled.schedule.clock)
    require_display()
    env = gym.make(env_id, schedule=scheduled.schedule, render_mode="human")
    print(f"{controls.help}; {GIVE_UP}: give up the episode; q: quit")
    try:
        successes = play(env, controls, episodes, every, seed)
    finally:
        env.close()
    reached = f", {sum(successes)} reached the goal" if controls.has_goal else ""
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
    scheduled = open_schedule(schedule or IDS[env_id].schedule, seed, env_id)
    _check_every(every, scheduled.schedule.clock)
    env = gym.make(env_id, schedule=scheduled.schedule, render_mode="ansi", overlay=True, text=True)
    print("type an action, or its number in the list of ?; r: give up the episode; q: quit")
    begun = 0
    scores: list[float] = []
    _, info = env.reset(seed=seed)
    print(env.render())
    while episodes is None or len(scores) < episodes:
        line = _read_line()
        if line is None or line == "q":
            break
        if line == "?":
            print("\n".join(f"{number:3} {action}" for number, action in enumerate(info["actions"], 1)))
            continue
        over = line == GIVE_UP
        if not over:
            _, _, terminated, truncated, info = env.step(_choose(line, info["actions"]))
            print(env.render())
            over = terminated or truncated
            if over:
                scores.append(info["score"])
                print(f"episode {begun}: score {info['score']:g}, {info['task'].partition(chr(10))[0]}")
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


def _choose(line: str, actions: Sequence[str]) -> str:
    """The action with the number that was typed; the line itself if it is none of the list."""
    is_number = line.isascii() and line.isdigit() and len(line) <= len(str(len(actions)))
    return actions[int(line) - 1] if is_number and 1 <= int(line) <= len(actions) and line not in actions else line


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
            return _to_array(controls.keys[key])
    if controls.idle is None:
        return None
    held = pygame.key.get_pressed()
    for key, action in controls.keys.items():
        if held[pygame.key.key_code(key)]:
            return _to_array(action)
    return _to_array(controls.idle)


def _to_array(action: Any) -> Any:
    """An action; a tuple of forces as an array."""
    return np.array(action, np.float32) if isinstance(action, tuple) else action

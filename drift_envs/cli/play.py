"""The command `play`: control an environment by the keyboard."""

from __future__ import annotations

import os
import string
from collections.abc import Sequence
from enum import EnumMeta
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.checks import check_reward
from drift_envs.cli.scheduled import default_schedule, open_schedule
from drift_envs.envs.make import make_plain
from drift_envs.errors import ArgumentError
from drift_envs.registration import IDS, Controls
from drift_envs.utils.command_line import refuse
from drift_envs.wrappers.text import list_actions, read_action

FRAMES = 30
"""Frames per second."""

PAUSE = 20
"""Frames for which the end of an episode stays visible."""

VIRTUAL_DRIVERS = ("dummy", "offscreen")
"""SDL's drivers that open no window."""

QUIT = ("q", "escape")
GIVE_UP = "r"

NUMBER_KEYS = [key for key in string.digits + string.ascii_lowercase if key not in (*QUIT, GIVE_UP)]
"""Keys of actions that have no others, in the order of the actions."""


def play_environment(env_id: str, schedule: str | None, episodes: int | None, every: int, seed: int) -> None:
    """Play an environment and print the number of episodes, and of those that reached a goal or have a score.

    Args:
        env_id: the id; with a schedule of any environment of Gymnasium.
        schedule: a shipped schedule or a file; `None` for that of the id.
        episodes: after how many to end; `None` plays until the player quits.
        every: ticks from one episode to the next.
        seed: of the first reset.

    Raises:
        ArgumentError: if there is no display, or `every` does not fit the schedule's clock.
        typer.BadParameter: if the environment has no keys, and no actions to give some to.
    """
    parts = IDS.get(env_id)
    if parts is not None:
        controls, modes = parts.controls, ["human"] if parts.text_mode is None else ["ansi"]
    else:
        plain = make_plain(env_id)
        controls, modes = number_keys(plain), list(plain.metadata.get("render_modes") or ())
        plain.close()
    in_window = "human" in modes or "rgb_array" in modes
    if controls is None and in_window:
        rule = "should have discrete actions or keys to control it; record it instead"
        raise refuse("ID", f"{rule}, `drift-envs record ID --out film.gif`", env_id)
    scheduled = open_schedule(schedule or default_schedule(env_id), seed, env_id, may_import=True)
    if every > 1 and scheduled.schedule.clock != "episode":
        raise ArgumentError(
            f"`--every` needs a schedule whose ticks are episodes. Received clock {scheduled.schedule.clock}"
        )
    if controls is not None and in_window:
        require_display()
        # the overlay needs pictures as arrays; a window that an environment opens itself stays as it is
        env = scheduled.make_env("human", overlay=parts is not None or "rgb_array" in modes)
        _play_in_window(env, controls, parts is None, episodes, every, seed)
    else:
        _play_in_terminal(scheduled.make_env("ansi" if "ansi" in modes else None, text=True), episodes, every, seed)


def number_keys(env: gym.Env[Any, Any]) -> Controls | None:
    """The keys of an environment of another package: its actions by their number, with their meanings if it has any.

    Returns:
        The keys; `None` if its actions are not discrete, or more than there are keys.

    Example:
        >>> number_keys(gym.make("CliffWalking-v1")).keys
        {'0': 0, '1': 1, '2': 2, '3': 3}
    """
    space = env.action_space
    if not isinstance(space, (gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)):
        return None
    try:
        actions = list_actions(space)
    except ArgumentError:
        return None
    if len(actions) > len(NUMBER_KEYS):
        return None
    # a single digit is its own key, so that the key 1 is the action 1 also where the first action is 1
    own = [action for action in actions if action in string.digits]
    keys = dict(zip(own if len(own) == len(actions) else NUMBER_KEYS, actions, strict=False))
    words = [
        f"{key}: {_meaning(env.unwrapped, position, action)}" for position, (key, action) in enumerate(keys.items())
    ]
    return Controls(
        {key: read_action(space, action) for key, action in keys.items()}, None, ", ".join(words), has_goal=False
    )


def _meaning(env: Any, position: int, action: str) -> str:
    """What an action does, if the environment says so as those of Atari or Minigrid do; else the action itself."""
    named = getattr(env, "actions", None) or getattr(getattr(env, "action_type", None), "actions", None)
    if callable(getattr(env, "get_action_meanings", None)):
        meanings = list(env.get_action_meanings())
    elif isinstance(named, EnumMeta):
        meanings = [member.name for member in named]  # type: ignore[var-annotated]
    elif isinstance(named, dict) and list(named) == list(range(len(named))):  # as in highway-env
        meanings = list(named.values())
    else:
        return f"action {action}"
    return str(meanings[position]) if position < len(meanings) else f"action {action}"


def _play_in_window(
    env: gym.Env[Any, Any], controls: Controls, repeats: bool, episodes: int | None, every: int, seed: int
) -> None:
    """Play in a window; with `repeats`, a key that is held acts again and again."""
    import pygame

    print(f"{controls.help}; {GIVE_UP}: give up the episode; q: quit")
    try:
        if repeats:
            pygame.key.set_repeat(10 * 1000 // FRAMES, 1000 // FRAMES)
        successes = play(env, controls, episodes, every, seed)
    finally:
        env.close()
    reached = f", {sum(successes)} reached the goal" if controls.has_goal else ""
    print(f"{len(successes)} episodes{reached}")


def _play_in_terminal(env: gym.Env[Any, Any], episodes: int | None, every: int, seed: int) -> None:
    """Play line by line an environment whose observations are texts."""

    def show(observation: str) -> None:
        print(observation if env.render_mode is None else env.render())

    print("type an action, or its number in the list of ?; r: give up the episode; q: quit")
    begun = 0
    scores: list[float] = []
    observation, info = env.reset(seed=seed)
    show(observation)
    while episodes is None or len(scores) < episodes:
        try:
            line = input("> ").strip()
        except EOFError:
            break
        if line == "q":
            break
        if line == "?":
            print("\n".join(f"{number:3} {action}" for number, action in enumerate(info["actions"], 1)))
            continue
        over = line == GIVE_UP
        if not over:
            try:
                action = read_action(env.action_space, _choose(line, info["actions"]))
            except ArgumentError as error:
                print(error)
                continue
            observation, _, terminated, truncated, info = env.step(action)
            show(observation)
            over = terminated or truncated
            if over:
                scores.append(info["score"])
                print(f"episode {begun}: score {info['score']:g}, {info['task'].partition(chr(10))[0]}")
        if over and (episodes is None or len(scores) < episodes):
            begun += 1
            observation, info = env.reset(options={"drift_tick": begun * every} if every > 1 else None)
            show(observation)
    env.close()
    print(f"{len(scores)} episodes, {sum(score > 0 for score in scores)} with a score")


def _choose(line: str, actions: Sequence[str]) -> str:
    """The action with the number that was typed; the line itself if it is none of the list."""
    is_number = line.isascii() and line.isdigit() and len(line) <= len(str(len(actions)))
    return actions[int(line) - 1] if is_number and 1 <= int(line) <= len(actions) and line not in actions else line


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
            steps, total = steps + 1, total + check_reward(reward)
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

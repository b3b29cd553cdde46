"""The command `play`: a person plays in a window.

* `add_play` - adds the command
* `KEYS` - which keys do what in which environment
* `play` - the loop between keyboard and environment
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from rich.console import Console

from drift_envs.cli.worlds import Commands, open_plan, positive_int, seed_number
from drift_envs.errors import ArgumentError
from drift_envs.registration import IDS

FRAMES = 30
"""Pictures a second while a person plays."""

PAUSE = 20
"""Pictures for which the end of an episode stays on the screen."""

VIRTUAL_DRIVERS = ("dummy", "offscreen")
"""SDL's drivers that draw where nobody sees it."""


class Controls(NamedTuple):
    """Which keys do what.

    Args:
        keys: the action of each key, by pygame's name of the key.
        idle: the action while no key is held; `None` where the world waits for one.
        told: the same in words.
        ends_at_goal: whether an episode terminates at the goal alone; elsewhere the reward tells.
    """

    keys: Mapping[str, Any]
    idle: Any
    told: str
    ends_at_goal: bool = True


KEYS = {
    "DriftFrozenLake-v0": Controls(
        {"left": 0, "down": 1, "right": 2, "up": 3, "a": 0, "s": 1, "d": 2, "w": 3},
        None,
        "arrows or w a s d: move",
        False,
    ),
    "DriftMountainCar-v0": Controls({"left": 0, "right": 2, "a": 0, "d": 2}, 1, "left and right or a d: push"),
    "DriftMountainCarContinuous-v0": Controls(
        {key: np.array([force], dtype=np.float32) for key, force in (("left", -1), ("right", 1), ("a", -1), ("d", 1))},
        np.array([0.0], dtype=np.float32),
        "left and right or a d: push",
    ),
}
QUIT = ("q", "escape")
GIVE_UP = "r"


def add_play(commands: Commands) -> argparse.ArgumentParser:
    """Add the command `play`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "play",
        help="play an environment in a window",
        description="Play an environment in a window, through its drifts. q, escape or closing the window ends it.",
        epilog="example: drift-envs play DriftMountainCar-v0 --schedule mountain_car/reversed --every 2",
    )
    parser.add_argument("id", choices=KEYS, metavar="ID", help=f"one of {', '.join(KEYS)}")
    parser.add_argument("--schedule", metavar="NAME", help="a shipped schedule or a file (default: that of the id)")
    parser.add_argument("--episodes", type=positive_int, help="end after so many episodes")
    parser.add_argument(
        "--every",
        type=positive_int,
        default=1,
        metavar="N",
        help="each episode is N ticks later than the last (default 1)",
    )
    parser.add_argument("--seed", type=seed_number, default=0, help="the instance (default 0)")
    parser.set_defaults(run=_play)
    return parser


def _play(options: argparse.Namespace, console: Console) -> int:
    plan = open_plan(options.schedule or IDS[options.id].schedule, options.seed, options.id)
    if options.every > 1 and plan.schedule.clock != "episode":
        raise ArgumentError(
            f"`--every` needs a schedule whose ticks are episodes. Received clock {plan.schedule.clock}"
        )
    need_display()
    env = gym.make(options.id, schedule=plan.schedule, render_mode="human")
    print(f"{KEYS[options.id].told}; {GIVE_UP}: give up the episode; q: quit")
    try:
        scores = play(env, KEYS[options.id], options.episodes, options.every, options.seed)
    finally:
        env.close()
    print(f"{len(scores)} episodes, {sum(scores)} reached the goal")
    return 0


def need_display() -> None:
    """Refuse to play where nobody would see it.

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
            "`play` needs a display, and there is none here. Run it on a desktop, or record instead: "
            "`drift-envs record ID --out film.gif`"
        )


def play(env: gym.Env, controls: Controls, episodes: int | None = None, every: int = 1, seed: int = 0) -> list[bool]:
    """The loop between keyboard and environment.

    Args:
        env: an environment that renders for people.
        controls: which keys do what.
        episodes: end after so many; by default when the person quits.
        every: ticks from one episode to the next, where ticks are episodes.
        seed: of the first reset.

    Returns:
        For each finished episode whether it ended at the goal.
    """
    import pygame

    clock = pygame.time.Clock()
    finished: list[bool] = []
    begun = steps = 0
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
            steps += 1
            over = terminated or truncated
            if over:
                won = terminated and (controls.ends_at_goal or float(reward) > 0)
                finished.append(won)
                print(f"episode {begun}: {'reached the goal' if won else 'missed'} after {steps} steps")
                for _ in range(PAUSE):
                    clock.tick(FRAMES)
        if over:
            begun, steps = begun + 1, 0
            env.reset(options={"drift_tick": begun * every} if every > 1 else None)
        clock.tick(FRAMES)
    return finished


def _action(controls: Controls, pressed: list[str]) -> Any:
    """What the keyboard asks for: a key just pressed, or one that is held where time does not wait."""
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

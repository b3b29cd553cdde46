"""The command `record`: an environment as a film or a picture, without a display.

* `add_record` - adds the command
* `film` - the pictures of some episodes
* `without_display` - draws in memory alone
* `write_film`, `write_sheet` - pictures into a file
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from rich.console import Console

from drift_envs.cli.worlds import Commands, Plan, open_plan, positive_int, seed_number
from drift_envs.errors import ArgumentError, MissingDependencyError
from drift_envs.registration import IDS

FORMATS = (".gif", ".mp4", ".png")
POLICIES = ("oracle", "random")
HOLD = 6
"""Times that the last picture of an episode is shown, so that its end can be seen."""

GAP = 12
"""Pixels between the pictures of a sheet."""

Clip = tuple[str, list[np.ndarray]]
"""A phase's id and its pictures."""


def add_record(commands: Commands) -> argparse.ArgumentParser:
    """Add the command `record`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "record",
        help="an environment as a film or a picture, without a display",
        description="Record an episode of each phase: as a film (.gif, .mp4), or the beginnings of all phases side by "
        "side (.png).",
        epilog="example: drift-envs record DriftFrozenLake-v0 --out lake.gif",
    )
    parser.add_argument("id", choices=IDS, metavar="ID", help=f"one of {', '.join(IDS)}")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="a .gif, .mp4 or .png file")
    parser.add_argument("--schedule", metavar="NAME", help="a shipped schedule or a file (default: that of the id)")
    parser.add_argument(
        "--policy", choices=POLICIES, default="oracle", help="who acts (default oracle: the best known)"
    )
    parser.add_argument("--phases", type=positive_int, default=3, help="record the first so many phases (default 3)")
    parser.add_argument("--episodes", type=positive_int, default=1, help="episodes of each phase (default 1)")
    parser.add_argument("--steps", type=positive_int, help="cut each episode after so many steps")
    parser.add_argument("--fps", type=positive_int, help="pictures a second (default: that of the environment)")
    parser.add_argument("--seed", type=seed_number, default=0, help="the instance (default 0)")
    parser.set_defaults(run=_record)
    return parser


def _record(options: argparse.Namespace, console: Console) -> int:
    suffix = options.out.suffix.lower()
    if suffix not in FORMATS:
        raise ArgumentError(f"`--out` should end in one of {', '.join(FORMATS)}. Received {str(options.out)!r}")
    if suffix != ".png":
        load_imageio(suffix)  # before the work, not after it
    if not options.out.parent.is_dir():
        raise ArgumentError(f"`--out` should lie in a folder that exists. Received {str(options.out)!r}")
    plan = open_plan(options.schedule or IDS[options.id].schedule, options.seed, options.id)
    if options.policy == "oracle" and plan.oracle is None:
        raise ArgumentError(f"no oracle is known for {options.id} with {plan.schedule.name}; use `--policy random`")
    with without_display():
        text = options.id == "DriftWebShop-v0"  # what its oracle reads; the others read arrays as well
        env = gym.make(options.id, schedule=plan.schedule, render_mode="rgb_array", overlay=True, text=text)
        try:
            clips = list(film(env, plan, options.policy, options.phases, options.episodes, options.steps, options.seed))
            fps = options.fps or int(env.metadata["render_fps"])
        finally:
            env.close()
    if suffix == ".png":
        write_sheet(clips, options.out)
    else:
        pictures = [picture for _, clip in clips for picture in [*clip, *[clip[-1]] * HOLD]]
        write_film(pictures, options.out, fps)
    print(f"wrote {options.out}: {', '.join(f'{phase} {len(clip)} pictures' for phase, clip in clips)}")
    return 0


def film(
    env: gym.Env, plan: Plan, policy: str, phases: int, episodes: int = 1, steps: int | None = None, seed: int = 0
) -> Iterator[Clip]:
    """The pictures of some episodes, phase by phase.

    A phase is shown at full weight. Where ticks are not episodes, episodes follow each other instead,
    and drift comes when it comes.

    Args:
        env: the environment, rendering to arrays.
        plan: its schedule.
        policy: `oracle` or `random`.
        phases: how many phases.
        episodes: how many episodes of each.
        steps: cut each episode after so many.
        seed: of the environment and its actions.

    Yields:
        Each phase's id and its pictures, shape `(height, width, 3)`.
    """
    act = _policy(env, policy, seed)
    jumps = plan.schedule.clock == "episode"
    for number, phase in enumerate(plan.phases(phases)):
        pictures: list[np.ndarray] = []
        for episode in range(episodes):
            options = {"drift_tick": min(plan.full_tick(phase) + episode, phase.stop - 1)} if jumps else None
            observation, info = env.reset(seed=seed if number == episode == 0 else None, options=options)
            pictures.append(_picture(env))
            done, taken = False, 0
            while not done and taken != steps:
                observation, _, terminated, truncated, info = env.step(act(observation, info))
                done, taken = terminated or truncated, taken + 1
                pictures.append(_picture(env))
        yield phase.id, pictures


@contextmanager
def without_display() -> Iterator[None]:
    """Draw in memory alone: SDL would look for a screen, and complain where there is none."""
    before = os.environ.get("SDL_VIDEODRIVER")
    os.environ["SDL_VIDEODRIVER"] = "dummy"
    try:
        yield
    finally:
        if before is None:
            del os.environ["SDL_VIDEODRIVER"]
        else:
            os.environ["SDL_VIDEODRIVER"] = before


def write_film(pictures: Sequence[np.ndarray], path: Path, fps: int) -> None:
    """Pictures one after the other.

    Args:
        pictures: each of shape `(height, width, 3)`.
        path: a .gif or .mp4 file.
        fps: pictures a second.

    Raises:
        MissingDependencyError: without imageio.
    """
    imageio = load_imageio(path.suffix.lower())
    if path.suffix.lower() == ".gif":
        imageio.mimsave(path, list(pictures), duration=1000 / fps, loop=0)
        return
    # Blocks of 16 pixels are what players expect; the edge is repeated rather than scaled.
    height, width = pictures[0].shape[:2]
    frame = ((0, -height % 16), (0, -width % 16), (0, 0))
    with imageio.get_writer(path, fps=fps, macro_block_size=16) as writer:
        for picture in pictures:
            writer.append_data(np.pad(picture, frame, mode="edge"))


def write_sheet(clips: Sequence[Clip], path: Path) -> None:
    """The first picture of each phase, side by side.

    Args:
        clips: phases with their pictures.
        path: a .png file.
    """
    import pygame

    first = [clip[0] for _, clip in clips]
    height = max(picture.shape[0] for picture in first)
    width = sum(picture.shape[1] for picture in first) + GAP * (len(first) - 1)
    sheet = np.full((height, width, 3), 255, dtype=np.uint8)
    left = 0
    for picture in first:
        sheet[: picture.shape[0], left : left + picture.shape[1]] = picture
        left += picture.shape[1] + GAP
    pygame.image.save(pygame.surfarray.make_surface(sheet.swapaxes(0, 1)), path)


def load_imageio(suffix: str) -> Any:
    """The library that writes films, or our error.

    Args:
        suffix: the format: .gif or .mp4.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    try:
        import imageio.v2 as imageio

        if suffix == ".mp4":
            import imageio_ffmpeg  # noqa: F401 - the codec that imageio looks for
    except ImportError as error:
        raise MissingDependencyError(
            f'`{error.name}` is not installed, run `pip install "drift-envs[video]"`; a .png needs nothing'
        ) from error
    return imageio


def _policy(env: gym.Env, name: str, seed: int) -> Callable[[Any, dict[str, Any]], Any]:
    """Who acts."""
    if name == "random":
        if isinstance(env.action_space, gym.spaces.Text):
            draw = random.Random(seed)
            return lambda observation, info: draw.choice(info["actions"])
        env.action_space.seed(seed)
        return lambda observation, info: env.action_space.sample()
    oracle = env.get_wrapper_attr("oracle")
    return lambda observation, info: oracle.action(observation, env.get_wrapper_attr("drift_state").tick)


def _picture(env: gym.Env) -> np.ndarray:
    picture = env.render()
    if not isinstance(picture, np.ndarray):
        raise ArgumentError(f"{env} should render to an array. Received {type(picture).__name__}")
    return picture

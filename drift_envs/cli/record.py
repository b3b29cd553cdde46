"""The command `record`: an environment as a film or a picture, without a display.

* `add_record` - adds the command
* `film` - the pictures of some episodes of each phase
* `film_range` - the pictures of a range of episodes
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

from drift_envs.cli.replay import Recording, as_schedule, read_recording, replay
from drift_envs.cli.worlds import Commands, ScheduledWorld, open_plan, positive_int, seed_number
from drift_envs.errors import ArgumentError, MissingDependencyError
from drift_envs.registration import IDS

FORMATS = (".gif", ".mp4", ".png")
POLICIES = ("oracle", "random")
RECORDED = ".jsonl.gz"
"""How the files with the steps of a finished run end."""

HOLD = 6
"""Times that the last picture of an episode is shown, so that its end can be seen."""

GAP = 12
"""Pixels between the pictures of a sheet."""

Clip = tuple[str, list[np.ndarray]]
"""A phase's id and its pictures."""

_Act = Callable[[Any, dict[str, Any]], Any]


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
        "--policy",
        default="oracle",
        metavar="oracle|random|FILE",
        help="who acts (default oracle: the best known); a file of a run's folder `traces` plays its actions again",
    )
    parser.add_argument("--phases", type=positive_int, default=3, help="record the first so many phases (default 3)")
    parser.add_argument(
        "--episodes",
        type=_episodes,
        metavar="N|A-B",
        help="so many episodes of each phase (default 1; of a file: all), or the episodes A to B in one go, from 0",
    )
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
    recording = _recording(options)
    clips, fps = _filmed(options) if recording is None else _replayed(recording, options)
    if suffix == ".png":
        write_sheet(clips, options.out)
    else:
        pictures = [picture for _, clip in clips for picture in [*clip, *[clip[-1]] * HOLD]]
        write_film(pictures, options.out, options.fps or fps)
    print(f"wrote {options.out}: {', '.join(f'{phase} {len(clip)} pictures' for phase, clip in clips)}")
    return 0


def _filmed(options: argparse.Namespace) -> tuple[list[Clip], int]:
    """What a policy does, and how many pictures a second it is shown in."""
    plan = open_plan(options.schedule or IDS[options.id].schedule, options.seed, options.id)
    if options.policy == "oracle" and plan.oracle is None:
        raise ArgumentError(f"no oracle is known for {options.id} with {plan.schedule.name}; use `--policy random`")
    with without_display():
        text = options.id == "DriftWebShop-v0"  # what its oracle reads; the others read arrays as well
        env = gym.make(options.id, schedule=plan.schedule, render_mode="rgb_array", overlay=True, text=text)
        try:
            if isinstance(options.episodes, range):
                found = film_range(env, options.policy, options.episodes, options.steps, options.seed)
            else:
                each = options.episodes or 1
                found = film(env, plan, options.policy, options.phases, each, options.steps, options.seed)
            return list(found), int(env.metadata["render_fps"])
        finally:
            env.close()


def _replayed(recording: Recording, options: argparse.Namespace) -> tuple[list[Clip], int]:
    """What was done in a run, and how many pictures a second it is shown in."""
    wanted = range(options.episodes) if isinstance(options.episodes, int) else options.episodes
    with without_display():
        env = gym.make(options.id, schedule=as_schedule(recording), render_mode="rgb_array", overlay=True)
        try:
            return list(replay(env, recording, wanted, options.steps)), int(env.metadata["render_fps"])
        finally:
            env.close()


def _recording(options: argparse.Namespace) -> Recording | None:
    """The actions of a finished run, if the policy is a file.

    Raises:
        ArgumentError: if the policy is neither a name nor such a file, or is one of another environment.
    """
    if options.policy in POLICIES:
        return None
    if not options.policy.endswith(RECORDED):
        raise ArgumentError(
            f"`--policy` should be one of {', '.join(POLICIES)}, or a file of a run's folder `traces` that ends in "
            f"{RECORDED}. Received {options.policy!r}"
        )
    recording = read_recording(Path(options.policy))
    if recording.env_id != options.id:
        raise ArgumentError(f"`--policy` should hold actions for {options.id}. {options.policy} has {recording.env_id}")
    if options.schedule is not None:
        raise ArgumentError(f"`--schedule` should not stand with a recording, which has its own. {options.schedule!r}")
    return recording


def _episodes(text: str) -> int | range:
    """A number of episodes, or a range of them; or argparse's error."""
    first, dash, last = text.partition("-")
    if not dash:
        return positive_int(text)
    if not (first.isdecimal() and last.isdecimal()) or int(first) > int(last):
        raise argparse.ArgumentTypeError(f"should be a number, or a range such as 18-22. Received {text!r}")
    return range(int(first), int(last) + 1)


def film(
    env: gym.Env,
    plan: ScheduledWorld,
    policy: str,
    phases: int,
    episodes: int = 1,
    steps: int | None = None,
    seed: int = 0,
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
            pictures += _episode(env, act, observation, info, steps)
        yield phase.id, pictures


def film_range(env: gym.Env, policy: str, episodes: range, steps: int | None = None, seed: int = 0) -> Iterator[Clip]:
    """The pictures of a range of episodes, time going on as it does.

    Where ticks are episodes the first one is jumped to; else those before it are played unseen.

    Args:
        env: the environment, rendering to arrays.
        policy: `oracle` or `random`.
        episodes: their numbers, from 0.
        steps: cut each episode after so many.
        seed: of the environment and its actions.

    Yields:
        Each episode's phase and number, and its pictures.
    """
    act = _policy(env, policy, seed)
    jumps = env.get_wrapper_attr("schedule").clock == "episode"
    begin = episodes.start if jumps else 0
    for number in range(begin, episodes.stop):
        seeded = number == begin
        options = {"drift_tick": number} if seeded and jumps else None
        observation, info = env.reset(seed=seed if seeded else None, options=options)
        phase, is_wanted = env.get_wrapper_attr("drift_state").phase, number in episodes
        pictures = _episode(env, act, observation, info, steps if is_wanted else None, look=is_wanted)
        if is_wanted:
            yield f"{phase} episode {number}", pictures


def _episode(
    env: gym.Env, act: _Act, observation: Any, info: dict[str, Any], steps: int | None, look: bool = True
) -> list[np.ndarray]:
    """The pictures of an episode that has just begun; none if nobody looks."""
    pictures = [_picture(env)] if look else []
    done, taken = False, 0
    while not done and taken != steps:
        observation, _, terminated, truncated, info = env.step(act(observation, info))
        done, taken = terminated or truncated, taken + 1
        if look:
            pictures.append(_picture(env))
    return pictures


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


def _policy(env: gym.Env, name: str, seed: int) -> _Act:
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

"""The command `record`: a film or a picture without a display, also from the steps of a finished run."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.cli.recording import RECORDING_SUFFIX, Recording, read_recording, replay
from drift_envs.cli.scheduled import ScheduledEnv, default_schedule, open_schedule
from drift_envs.datasets.recorder import Act, make_policy
from drift_envs.errors import (
    ArgumentError,
    NoOracleError,
    UnknownChoiceError,
    load_all,
    needs_extra,
)
from drift_envs.registration import IDS
from drift_envs.utils.command_line import make_console
from drift_envs.utils.files import prepare_file, write_whole

FORMATS = (".gif", ".mp4", ".png")
SHOP = "DriftWebShop-v0"
POLICIES = ("oracle", "initial", "random")

FPS = 10
"""Frames per second of an environment that does not state its own."""

HOLD = 6
"""Repetitions of the last frame of an episode, so that its end is visible."""

GAP = 12
"""Pixels between the frames of a sheet."""

ACROSS = 3
"""Frames of a phase in a sheet, at the most."""

MOST_PARTS = 12
"""Phases or episodes whose frames are counted one by one in what is printed."""

Clip = tuple[str, list[np.ndarray]]
"""A phase's id and its frames."""


@dataclass(frozen=True)
class RecordOptions:
    """What is recorded.

    Args:
        env_id: an id of this package; with a schedule of any environment.
        out: the file; its ending is one of `FORMATS`.
        schedule: a shipped schedule or a file; `None` for that of the id.
        policy: `oracle` (the optimum, or the reference controller where no optimum is known), `initial` (that of the
            first tick for ever), `random`, or a file of a run's folder `traces`; `None` for `oracle`, or `random` where
            there is none, which is printed.
        phases: how many, from the first.
        episodes: so many of each phase, or a range of episodes; `None` for one, of a file for all.
        steps: after which an episode is cut; `None` for none.
        fps: frames per second; `None` for those of the environment.
        seed: of the instance.
    """

    env_id: str
    out: Path
    schedule: str | None
    policy: str | None
    phases: int
    episodes: int | range | None
    steps: int | None
    fps: int | None
    seed: int


def record(options: RecordOptions) -> None:
    """Record and write the file.

    Raises:
        ArgumentError: if an option breaks a rule.
        MissingDependencyError: if the library for the format is not installed.
    """
    prepare_file(options.out, FORMATS)
    suffix = options.out.suffix.lower()
    loaders: list[Callable[[], object]] = [] if suffix == ".png" else [partial(load_imageio, suffix)]
    if options.env_id in IDS:
        loaders.append(partial(getattr, IDS[options.env_id], "env_class"))
    load_all(loaders)  # fails before the episodes are played
    recording = _read_policy(options)
    film_of = _film_policy(options) if recording is None else _film_recording(recording, options)
    counts: dict[str, int] = {}
    with film_of as (clips, fps), write_whole(options.out) as part:
        if suffix == ".png":
            write_sheet(list(_counted(clips, counts)), part, pick_before_last if options.env_id == SHOP else None)
        else:
            frames = (frame for _, clip in _counted(clips, counts) for frame in [*clip, *[clip[-1]] * HOLD])
            write_film(frames, part, options.fps or fps)
    parts = ", ".join(f"{name} {count} frames" for name, count in counts.items())
    print(f"wrote {options.out}: {parts if len(counts) <= MOST_PARTS else f'{sum(counts.values()):,} frames'}")


def _counted(clips: Iterable[Clip], counts: dict[str, int]) -> Iterator[Clip]:
    """The clips as they come, so that a film of any length needs the memory of one, with a line on a terminal."""
    console = make_console(stderr=True)
    with console.status("recording") if console.is_terminal else nullcontext() as status:
        for name, frames in clips:
            counts[name] = len(frames)
            if status is not None:
                status.update(f"recorded {name}")
            yield name, frames


@contextmanager
def _film_policy(options: RecordOptions) -> Iterator[tuple[Iterator[Clip], int]]:
    """Frames of the policy's episodes, and frames per second."""
    source = options.schedule or default_schedule(options.env_id)
    scheduled = open_schedule(source, options.seed, options.env_id, may_import=True)
    with without_display():
        parts = IDS.get(options.env_id)
        plans = options.policy != "random" and scheduled.oracle is not None
        text = parts is not None and (parts.text_mode is not None or (plans and parts.text is not None))
        env = scheduled.make_env("rgb_array", text=text)
        try:
            policy = _choose_policy(env, scheduled, options)
            if isinstance(options.episodes, range):
                found = film_range(env, policy, options.episodes, options.steps, options.seed)
            else:
                each = options.episodes or 1
                found = film(env, scheduled, policy, options.phases, each, options.steps, options.seed)
            yield found, int(env.metadata.get("render_fps", FPS))
        finally:
            env.close()


def _choose_policy(env: gym.Env, scheduled: ScheduledEnv, options: RecordOptions) -> str:
    """The policy: by default the oracle's, or random actions where it has none, which is printed.

    Raises:
        NoOracleError: if a policy is wanted that the oracle does not have.
    """
    if options.policy == "random" or scheduled.oracle is not None:
        return options.policy or "oracle"
    ticks = [0, *(scheduled.full_tick(phase) for phase in scheduled.phases(options.phases))]
    try:
        oracle = env.get_wrapper_attr("oracle")
        observation, _ = env.reset(seed=options.seed)
        for tick in ticks[:1] if options.policy == "initial" else ticks:
            oracle.action(observation, tick)
    except NoOracleError as error:
        foreign = f"there is no oracle for {options.env_id}, which is an environment of another package"
        reason = str(error) if options.env_id in IDS else foreign
        if options.policy is not None:
            raise NoOracleError(f"{reason}; use `--policy random`") from error
        print(f"{reason}: actions are random", file=sys.stderr)
        return "random"
    return options.policy or "oracle"


@contextmanager
def _film_recording(recording: Recording, options: RecordOptions) -> Iterator[tuple[Iterator[Clip], int]]:
    """Frames of the replayed episodes, and frames per second."""
    wanted = range(options.episodes) if isinstance(options.episodes, int) else options.episodes
    with without_display():
        env = gym.make(options.env_id, schedule=dict(recording.schedule), render_mode="rgb_array", overlay=True)
        env.set_wrapper_attr("warns_of_end", False)
        try:
            yield replay(env, recording, wanted, options.steps), int(env.metadata["render_fps"])
        finally:
            env.close()


def _read_policy(options: RecordOptions) -> Recording | None:
    """The recording, if the policy is a file.

    Raises:
        UnknownChoiceError: if the policy is neither a name nor a file of a run's folder.
        ArgumentError: if the file is no recording of this environment.
    """
    if options.policy is None or options.policy in POLICIES:
        return None
    if not options.policy.endswith(RECORDING_SUFFIX):
        raise UnknownChoiceError(
            f"`--policy` should be one of {', '.join(POLICIES)}, or a file of a run's folder `traces` that ends in "
            f"{RECORDING_SUFFIX}. Received {options.policy!r}"
        )
    recording = read_recording(Path(options.policy))
    if recording.env_id != options.env_id:
        raise ArgumentError(
            f"`--policy` should hold actions for {options.env_id}. {options.policy} has {recording.env_id}"
        )
    if options.schedule is not None:
        raise ArgumentError(
            f"`--schedule` should not be given with a recording, which has its own. Received {options.schedule!r}"
        )
    return recording


def film(
    env: gym.Env,
    scheduled: ScheduledEnv,
    policy: str,
    phases: int,
    episodes: int = 1,
    steps: int | None = None,
    seed: int = 0,
) -> Iterator[Clip]:
    """The frames of some episodes of each phase.

    With the clock `episode` a phase is shown at full weight; with other clocks episodes simply follow each other.

    Args:
        env: the environment, rendering to arrays.
        scheduled: its schedule.
        policy: one of `POLICIES`.
        phases: how many phases.
        episodes: how many episodes of each.
        steps: cut each episode after so many.
        seed: of the environment and its actions.

    Yields:
        Each phase's id and its frames, shape `(height, width, 3)`.
    """
    act = _act_by(policy, env, seed)
    jumps = scheduled.schedule.clock == "episode"
    for number, phase in enumerate(scheduled.phases(phases)):
        frames: list[np.ndarray] = []
        for episode in range(episodes):
            options = {"drift_tick": min(scheduled.full_tick(phase) + episode, phase.stop - 1)} if jumps else None
            observation, info = env.reset(seed=seed if number == episode == 0 else None, options=options)
            frames += _episode(env, act, observation, info, steps)
        yield phase.id, frames


def film_range(env: gym.Env, policy: str, episodes: range, steps: int | None = None, seed: int = 0) -> Iterator[Clip]:
    """The frames of a range of consecutive episodes.

    With the clock `episode` the schedule jumps over episodes that are not wanted; with other clocks these are played
    without rendering.

    Args:
        env: the environment, rendering to arrays.
        policy: one of `POLICIES`.
        episodes: their numbers, from 0.
        steps: cut each episode after so many.
        seed: of the environment and its actions.

    Yields:
        Each episode's phase and number, and its frames.
    """
    act = _act_by(policy, env, seed)
    jumps = env.get_wrapper_attr("schedule").clock == "episode"
    numbers = episodes if jumps else range(episodes.stop)
    for number in numbers:
        seeded = number == numbers.start
        options = {"drift_tick": number} if jumps else None
        observation, info = env.reset(seed=seed if seeded else None, options=options)
        phase, is_wanted = env.get_wrapper_attr("drift_state").phase, number in episodes
        frames = _episode(env, act, observation, info, steps if is_wanted else None, is_rendered=is_wanted)
        if is_wanted:
            yield f"{phase} episode {number}", frames


def _episode(
    env: gym.Env, act: Act, observation: Any, info: dict[str, Any], steps: int | None, is_rendered: bool = True
) -> list[np.ndarray]:
    """The frames of an episode after its reset; empty if it is not rendered."""
    frames = [_frame(env)] if is_rendered else []
    done, taken = False, 0
    while not done and taken != steps:
        tick = env.get_wrapper_attr("drift_state").tick
        observation, _, terminated, truncated, info = env.step(act(observation, info, tick))
        done, taken = terminated or truncated, taken + 1
        if is_rendered:
            frames.append(_frame(env))
    return frames


@contextmanager
def without_display() -> Iterator[None]:
    """Select SDL's dummy drivers: without a display that of pictures fails, and that of sound prints what it misses."""
    before = {name: os.environ.get(name) for name in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER")}
    os.environ.update(dict.fromkeys(before, "dummy"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def write_film(frames: Iterable[np.ndarray], path: Path, fps: int) -> None:
    """Write frames as a film, one after the other.

    Args:
        frames: each of shape `(height, width, 3)`.
        path: a .gif or .mp4 file.
        fps: frames per second.

    Raises:
        MissingDependencyError: without imageio.
    """
    imageio = load_imageio(path.suffix.lower())
    if path.suffix.lower() == ".gif":
        from PIL import Image  # which imageio needs; its own writer would keep all frames until the end

        pictures = map(Image.fromarray, frames)
        with path.open("wb") as file:
            next(pictures).save(file, "GIF", save_all=True, append_images=pictures, duration=1000 / fps, loop=0)
        return
    with imageio.get_writer(path, fps=fps, macro_block_size=16) as writer:
        for frame in frames:  # players expect multiples of 16 pixels; the edge is repeated instead of scaling
            height, width = frame.shape[:2]
            writer.append_data(np.pad(frame, ((0, -height % 16), (0, -width % 16), (0, 0)), mode="edge"))


def write_sheet(clips: Sequence[Clip], path: Path, pick: Callable[[int], Sequence[int]] | None = None) -> None:
    """Write a row for each phase: frames from its course, up to the last one.

    Args:
        clips: phases with their frames.
        path: a .png file.
        pick: from the number of frames to the indices of those that are shown; `pick_thirds` by default.
    """
    import pygame

    rows = [[frames[index] for index in (pick or pick_thirds)(len(frames))] for _, frames in clips]
    width = max(sum(frame.shape[1] for frame in row) + GAP * (len(row) - 1) for row in rows)
    heights = [max(frame.shape[0] for frame in row) for row in rows]
    sheet = np.full((sum(heights) + GAP * (len(rows) - 1), width, 3), 255, dtype=np.uint8)
    top = 0
    for row, height in zip(rows, heights, strict=True):
        left = 0
        for frame in row:
            sheet[top : top + frame.shape[0], left : left + frame.shape[1]] = frame
            left += frame.shape[1] + GAP
        top += height + GAP
    picture = io.BytesIO()  # SDL's own file has no reason for a failure
    pygame.image.save(pygame.surfarray.make_surface(sheet.swapaxes(0, 1)), picture, ".png")
    path.write_bytes(picture.getvalue())


def pick_thirds(count: int) -> list[int]:
    """The frames at the end of each third.

    Example:
        >>> pick_thirds(30), pick_thirds(2), pick_thirds(1)
        ([9, 19, 29], [0, 1], [0])
    """
    return sorted({max(0, -(-count * part // ACROSS) - 1) for part in range(1, ACROSS + 1)})


def pick_before_last(count: int) -> list[int]:
    """The frames before the last one: of a shop's episode the pages on which its drifts show.

    Example:
        >>> pick_before_last(8), pick_before_last(2), pick_before_last(1)
        ([4, 5, 6], [0], [0])
    """
    return list(range(max(0, count - 1 - ACROSS), max(1, count - 1)))


def load_imageio(suffix: str) -> Any:
    """Import the library that writes films.

    Args:
        suffix: the format: .gif or .mp4.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    packages = ["imageio", *(["imageio-ffmpeg"] if suffix == ".mp4" else [])]  # the codec that imageio loads
    return load_all(partial(_load, package) for package in packages)[0]


def _load(package: str) -> Any:
    with needs_extra(package, "video"):
        return import_module({"imageio": "imageio.v2"}.get(package, "imageio_ffmpeg"))


def _act_by(policy: str, env: gym.Env, seed: int) -> Act:
    return make_policy("optimal" if policy == "oracle" else policy, env)(seed)


def _frame(env: gym.Env) -> np.ndarray:
    frame = env.render()
    if not isinstance(frame, np.ndarray):
        raise ArgumentError(f"{env} should render to an array. Received {type(frame).__name__}")
    return frame

"""Replay of the actions of a finished run.

* `Recording` - content of a file: the environment, and the actions of each episode
* `read_recording` - reads one from the folder `traces` of a run
* `replay` - the frames of its episodes
* `to_action` - an action of a space from its text

The file is written by `drift-agents run --trace`: compressed lines of JSON, first a header, then one line for each
episode. Only environment, seeds and actions are read here. It is apart from `record` because it holds the file format.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.errors import ArgumentError, StateError
from drift_envs.schedule import Schedule, load_schedule

FORMAT = 2


@dataclass(frozen=True)
class RecordedEpisode:
    """One episode.

    Args:
        number: its number in the run.
        seed: of its random stream.
        tick: the tick at its reset.
        actions: of its steps, as text.
        rewards: of its steps; `None` where the run has none.
    """

    number: int
    seed: int
    tick: int
    actions: tuple[str, ...]
    rewards: tuple[float | None, ...]


@dataclass(frozen=True)
class Recording:
    """Content of a file.

    Args:
        path: the file.
        env_id: the environment.
        schedule: the schedule, as plain data.
        seed: the seed of the drift.
        episodes: those whose steps were kept.
    """

    path: Path
    env_id: str
    schedule: Mapping[str, Any]
    seed: int
    episodes: tuple[RecordedEpisode, ...]


def read_recording(path: Path) -> Recording:
    """The actions of one agent of a finished run.

    Args:
        path: a file of the run's folder `traces`.

    Raises:
        ArgumentError: if the file cannot be read, or is not a recording.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            header, *lines = [json.loads(line) for line in file]
        if header["format"] != FORMAT:
            raise ArgumentError(f"{path}: `format` should be {FORMAT}. Received {header['format']!r}")
        episodes = tuple(
            RecordedEpisode(
                line["episode"],
                line["seed"],
                line["start"],
                tuple(step["action"] for step in line["steps"]),
                tuple(step["reward"] for step in line["steps"]),
            )
            for line in lines
            if line.get("stage", "test") == "test"  # episodes of other stages have another environment
        )
        return Recording(path, header["env"], header["content"], header["seed"], episodes)
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"{path}: does not hold the steps of a run") from error


def as_schedule(recording: Recording) -> Schedule | None:
    """The schedule of a recording as an object."""
    schedule: Schedule | None = load_schedule(dict(recording.schedule))
    return schedule


def replay(
    env: gym.Env, recording: Recording, wanted: Container[int] | None = None, steps: int | None = None
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The frames of a recording's episodes.

    Args:
        env: the environment with the recording's schedule, rendering to arrays.
        recording: the recording.
        wanted: numbers of the episodes; `None` for all.
        steps: cut each episode after so many.

    Yields:
        Each episode's phase and number, and its frames.

    Raises:
        ArgumentError: if there is no such episode.
        StateError: if a reward differs from that in the run.
    """
    kept = [episode for episode in recording.episodes if episode.actions]
    chosen = [episode for episode in kept if wanted is None or episode.number in wanted]
    if not chosen:
        numbers = ", ".join(str(episode.number) for episode in kept)
        raise ArgumentError(f"{recording.path}: has steps of the episodes {numbers or 'none'}. Received other ones")
    env.reset(seed=recording.seed)  # fixes the drift
    for episode in chosen:
        env.reset(seed=episode.seed, options={"drift_clock": "continue", "drift_tick": episode.tick})
        name = f"{env.get_wrapper_attr('drift_state').phase} episode {episode.number}"
        frames: list[Any] = [env.render()]
        for number, (action, reward) in enumerate(zip(episode.actions[:steps], episode.rewards, strict=False)):
            _, paid, *_ = env.step(to_action(env.action_space, action))
            if reward is not None and abs(float(paid) - reward) > 1e-9:
                raise StateError(
                    f"{recording.path}: episode {episode.number}, step {number}: the reward was {reward}, here it is "
                    f"{float(paid)}: the environment is not that of the run (another version?)"
                )
            frames.append(env.render())
        yield name, frames


def to_action(space: gym.Space[Any], action: str) -> Any:
    """An action of a space from its text.

    Args:
        space: the action space.
        action: the text, as a recording has it.
    """
    if isinstance(space, gym.spaces.Discrete):
        return int(action)
    if isinstance(space, gym.spaces.Box):
        return np.array(json.loads(action), dtype=space.dtype).reshape(space.shape)
    return action

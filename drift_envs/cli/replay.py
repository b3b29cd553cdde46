"""The actions of a finished run, played again.

* `Recording` - what a file holds: the world, and the actions of each episode
* `read_recording` - reads one from the folder `traces` of a run
* `replay` - the pictures of its episodes

The file is what `drift-agents run --trace` writes: gzip around lines of JSON, first who played and
where, then a line an episode. Of that only the world, the seeds and the actions are read here.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from drift_envs.errors import ArgumentError, StateError
from drift_envs.schedule import Schedule, load_schedule

FORMAT = 1


@dataclass(frozen=True)
class Recorded:
    """One episode.

    Args:
        number: its number in the run.
        seed: of its own stream.
        tick: the tick at which it began.
        actions: one by one, as text.
        rewards: what they brought.
    """

    number: int
    seed: int
    tick: int
    actions: tuple[str, ...]
    rewards: tuple[float | None, ...]


@dataclass(frozen=True)
class Recording:
    """What a file holds.

    Args:
        path: the file.
        env_id: the environment.
        schedule: the schedule, as plain data.
        seed: the seed of the drift.
        episodes: the episodes that were kept.
    """

    path: Path
    env_id: str
    schedule: Mapping[str, Any]
    seed: int
    episodes: tuple[Recorded, ...]


def read_recording(path: Path) -> Recording:
    """The actions of one agent of a finished run.

    Args:
        path: a file of the run's folder `traces`.

    Raises:
        ArgumentError: if the file cannot be read, or holds something else.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            header, *lines = [json.loads(line) for line in file]
        if header["format"] != FORMAT:
            raise ArgumentError(f"{path}: `format` should be {FORMAT}. Received {header['format']!r}")
        episodes = tuple(
            Recorded(
                line["episode"],
                line["seed"],
                line["start"],
                tuple(step["action"] for step in line["steps"]),
                tuple(step["reward"] for step in line["steps"]),
            )
            for line in lines
            if line.get("stage", "test") == "test"  # what was played before it stands in a world of its own
        )
        return Recording(path, header["env"], header["content"], header["seed"], episodes)
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (EOFError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"{path}: does not hold the steps of a run") from error


def as_schedule(recording: Recording) -> Schedule | None:
    """The schedule of a recording."""
    return load_schedule(dict(recording.schedule))


def replay(
    env: gym.Env, recording: Recording, wanted: Container[int] | None = None, steps: int | None = None
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The pictures of a recording's episodes.

    Args:
        env: the environment with the recording's schedule, rendering to arrays.
        recording: what is played.
        wanted: the numbers of the episodes; all if not given.
        steps: cut each episode after so many.

    Yields:
        Each episode's phase and number, and its pictures.

    Raises:
        ArgumentError: if there is no such episode.
        StateError: if the world answers otherwise than it did in the run.
    """
    chosen = [one for one in recording.episodes if one.actions and (wanted is None or one.number in wanted)]
    if not chosen:
        kept = ", ".join(str(one.number) for one in recording.episodes if one.actions)
        raise ArgumentError(f"{recording.path}: has steps of the episodes {kept or 'none'}. Received other ones")
    env.reset(seed=recording.seed)  # fixes the drift
    for one in chosen:
        env.reset(seed=one.seed, options={"drift_clock": "continue", "drift_tick": one.tick})
        name = f"{env.get_wrapper_attr('drift_state').phase} episode {one.number}"
        pictures: list[Any] = [env.render()]
        for number, (action, reward) in enumerate(zip(one.actions[:steps], one.rewards, strict=False)):
            _, paid, *_ = env.step(_to_env(env.action_space, action))
            if reward is not None and abs(float(paid) - reward) > 1e-9:
                raise StateError(
                    f"{recording.path}: episode {one.number}, step {number}: the reward was {reward}, here it is "
                    f"{float(paid)}: the world is not the one of the run (another version?)"
                )
            pictures.append(env.render())
        yield name, pictures


def _to_env(space: gym.Space, action: str) -> Any:
    """An action as text, in the form that the world takes."""
    if isinstance(space, gym.spaces.Discrete):
        return int(action)
    if isinstance(space, gym.spaces.Box):
        return np.array(json.loads(action), dtype=space.dtype).reshape(space.shape)
    return action

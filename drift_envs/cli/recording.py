"""The recording of a finished run: the steps of one agent, read from its file and replayed."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from pydantic import BaseModel, Field, ValidationError

from drift_envs.errors import ArgumentError, StateError
from drift_envs.utils.error_messages import describe_invalid

RECORDING_SUFFIX = ".jsonl.gz"
"""The ending of files with the steps of a finished run."""


class _Step(BaseModel):
    action: str
    reward: float | None


class RecordedEpisode(BaseModel):
    """One episode.

    Args:
        number: its number in the run.
        seed: of its random stream.
        tick: the tick at its reset.
        steps: its actions and rewards.
        stage: what it was played for; episodes of other stages than `test` have another environment.
    """

    number: int = Field(alias="episode")
    seed: int
    tick: int = Field(alias="start")
    steps: tuple[_Step, ...]
    stage: str = "test"

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions of its steps, as text."""
        return tuple(step.action for step in self.steps)

    @property
    def rewards(self) -> tuple[float | None, ...]:
        """The rewards of its steps; `None` where the run has none."""
        return tuple(step.reward for step in self.steps)


class Recording(BaseModel):
    """Content of a file.

    Args:
        path: the file.
        env_id: the environment.
        schedule: the schedule, as plain data.
        seed: the seed of the drift.
        episodes: those whose steps were kept.
        format: the number of the format.
    """

    path: Path = Path()
    env_id: str = Field(alias="env")
    schedule: dict[str, Any] = Field(alias="content")
    seed: int
    episodes: tuple[RecordedEpisode, ...] = ()
    format: Literal[2]


def read_recording(path: Path) -> Recording:
    """The actions of one agent of a finished run.

    Args:
        path: a file of the run's folder `traces`.

    Raises:
        ArgumentError: if the file cannot be read, or is not a recording.
    """
    number, episodes = 1, list[RecordedEpisode]()
    try:
        with gzip.open(path) as file:
            recording = Recording.model_validate_json(file.readline())
            for line in file:
                number += 1
                episodes.append(RecordedEpisode.model_validate_json(line))
    except ValidationError as error:
        rule = describe_invalid(error)
        raise ArgumentError(f"{path}:{number}: does not hold the steps of a run: {rule}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise ArgumentError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    tested = tuple(episode for episode in episodes if episode.stage == "test")
    return recording.model_copy(update={"path": path, "episodes": tested})


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

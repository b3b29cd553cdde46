"""Text environments behind Gymnasium's interface: strings in, strings out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.types import Outcome


def check_text_env(observation: Any, info: Mapping[str, Any]) -> None:
    """Check the result of `reset`.

    Raises:
        ArgumentError: if the observation is no string, or `task`, `actions` or `score` is missing in the info.
    """
    missing = [key for key in ("task", "actions", "score") if key not in info]
    if not isinstance(observation, str) or missing:
        raise ArgumentError(
            "the environment should show text: make it with `text=True`. "
            f"Received an observation of type {type(observation).__name__} and an info without {missing}"
        )


def reset_text_env(
    env: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any]]:
    """Reset an environment, and check that it shows text.

    Args:
        env: the environment.
        seed: passed to `reset`.
        options: passed to `reset`, as a dictionary.

    Returns:
        Observation and info; the info holds `task`, `actions` and `score`.

    Raises:
        ArgumentError: if the observation is no string, or a key is missing.
    """
    observation, info = env.reset(seed=seed, options=None if options is None else dict(options))
    check_text_env(observation, info)
    return observation, info


def to_env(space: gym.Space[Any], action: str) -> Any:
    """Convert an action as text into an element of an action space.

    Args:
        space: the environment's action space.
        action: one of its admissible actions.

    Returns:
        An integer for a `Discrete` space, an array for a `Box`, else the text itself.

    Example:
        >>> to_env(gym.spaces.Discrete(4), "2")
        2
    """
    if isinstance(space, gym.spaces.Discrete):
        return int(action)
    if isinstance(space, gym.spaces.Box):
        return np.array(json.loads(action), dtype=space.dtype).reshape(space.shape)
    return action


def read_outcome(observation: Any, terminated: bool, info: Mapping[str, Any]) -> Outcome:
    """Convert the result of a step into an outcome.

    Args:
        observation: the next state.
        terminated: whether the episode has terminated; truncation does not count.
        info: holds `score`, the score so far.

    Example:
        >>> read_outcome("{}", False, {"score": 0})
        Outcome(state='{}', score=0.0, ended=False)
    """
    return Outcome(str(observation), float(info["score"]), bool(terminated))

"""What the agents' side takes a text world to be: strings in, strings out, over Gymnasium's interface.

* `check_text_world` - refuses a world that does not show text
* `to_env` - an action as text, in the form that the world takes
* `read_outcome` - what a step brought, in the agents' terms
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.types import Outcome


def check_text_world(observation: Any, info: Mapping[str, Any]) -> None:
    """Refuse a world that does not show text.

    Args:
        observation: what `reset` showed.
        info: what `reset` told; it should hold `task`, `actions` and `score`.

    Raises:
        ArgumentError: if the observation is no string, or a key is missing.
    """
    missing = [key for key in ("task", "actions", "score") if key not in info]
    if not isinstance(observation, str) or missing:
        raise ArgumentError(
            "the world should show text: make it with `text=True`. "
            f"Received an observation of type {type(observation).__name__} and an info without {missing}"
        )


def to_env(space: gym.Space[Any], action: str) -> Any:
    """An action as text, in the form that the world takes.

    Args:
        space: the world's action space.
        action: one of the admissible actions that it named.

    Returns:
        A whole number for a `Discrete` space, an array for a `Box`, else the text itself.

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
    """What a step brought, in the agents' terms.

    Args:
        observation: the next state as the world shows it.
        terminated: whether the episode ended by itself.
        info: it holds `score`, the score so far.

    Example:
        >>> read_outcome("{}", False, {"score": 0})
        Outcome(state='{}', score=0.0, ended=False)
    """
    return Outcome(str(observation), float(info["score"]), bool(terminated))

"""What `TextObservation` needs to know of an environment: states, tasks and actions as text.

* `Describer` - the protocol; the describer of an environment stands in its folder
* `find_describer` - the one for an environment: what its declaration names, or `SpaceDescriber`
* `read_action` - an action as text, as an element of the action space
* `write_number` - a number as describers write it
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.parts import parts_of
from drift_envs.wrappers.space_text import SpaceDescriber

TEXT_CHARACTERS = string.ascii_letters + string.digits + ' {}[]",:._+-'
"""Every character that an observation of lake or car can hold."""

MAX_LENGTH = 128
"""No observation of lake or car is longer."""


class Describer(Protocol):
    """The protocol that `TextObservation` uses.

    Attributes:
        env: the innermost environment.
        max_length: no state is longer.
        characters: every character that a state can hold.
    """

    env: Any
    max_length: int
    characters: str

    @property
    def actions(self) -> tuple[str, ...]:
        """The admissible actions, as text."""
        ...

    def state(self, observation: Any, score: float) -> str:
        """The state as JSON."""
        ...

    def task(self, best: float | None) -> str:
        """The task in words; `best` is the highest score there is."""
        ...

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The score after a transition."""
        ...

    def best_score(self, knobs: Mapping[str, Value]) -> float | None:
        """The highest score that is possible with these knobs; `None` if it is not known."""
        ...


def find_describer(env: gym.Env[Any, Any]) -> Describer:
    """The words for an environment: the describer that its declaration names, else one made from its spaces.

    Args:
        env: the environment.

    Raises:
        ArgumentError: if there is none and its spaces are too large, or of another kind.
    """
    parts = parts_of(env)
    if parts is not None and parts.text is not None:
        found: Describer = parts.load("text")(env.unwrapped)
        return found
    return SpaceDescriber(env)


def read_action(space: spaces.Space[Any], action: str) -> Any:
    """An action as text, as an element of the action space.

    Args:
        space: the action space.
        action: the text, as in `info["actions"]`.

    Returns:
        An integer for a `Discrete` space, an array for other spaces of numbers, else the text itself.

    Raises:
        ArgumentError: if the text is no element of the space.

    Example:
        >>> read_action(spaces.Discrete(4), "2")
        2
    """
    if isinstance(space, spaces.Text):
        return action
    try:
        given = json.loads(action)
        found = given if isinstance(space, spaces.Discrete) else np.array(given, space.dtype).reshape(space.shape or ())
    except (ValueError, TypeError):
        found = None
    if found is None or isinstance(found, bool) or not space.contains(found):
        raise ArgumentError(f"`action` should be an element of {space} or its text. Received {action[:200]!r}")
    return found


def write_number(value: float) -> str:
    """A number as JSON, whole ones without a point.

    Args:
        value: the number.

    Example:
        >>> write_number(2.0), write_number(0.5)
        ('2', '0.5')
    """
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"

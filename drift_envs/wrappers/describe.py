"""What `TextObservation` needs to know of an environment: states, tasks and actions as text.

* `Describer` - the protocol; the describer of an environment stands in its folder
* `find_describer` - the one for an environment: what its declaration names, or `SpaceDescriber`
* `list_actions` - all actions of a space as text
* `read_action` - an action as text, as an element of the action space
* `write_number` - a number as describers write it
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from itertools import product
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.registration import parts_of

MOST_NUMBERS = 64
"""Observations with more numbers, such as pictures, have no text form."""

MOST_ACTIONS = 64
"""Spaces with more combinations of actions have no text form."""

DIGITS = 2
"""Decimals of numbers in observations, so that nearby states are written alike."""


class SpaceDescriber:
    """The words for an environment that has none of its own.

    States are `{"observation": ...}`, with two decimals. The score is the sum of rewards. The actions of a `Box` are
    the corners and the middle of each dimension. An `action_mask` in `info` is not read.

    Args:
        env: the environment, with all wrappers that change its spaces.

    Raises:
        ArgumentError: if an observation has more than `MOST_NUMBERS` numbers, there are more than `MOST_ACTIONS`
            actions, or a space is of another kind.

    Example:
        >>> describer = SpaceDescriber(gym.make("CliffWalking-v1"))
        >>> describer.actions, describer.state(7, 0.0)
        (('0', '1', '2', '3'), '{"observation": 7}')
    """

    max_length = 8192
    characters = "".join(character for character in string.printable if character.isprintable())

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env = env.unwrapped
        self.actions = list_actions(env.action_space)
        count = _count_numbers(env.observation_space)
        if count > MOST_NUMBERS:
            raise ArgumentError(
                f"`env` should have observations of at most {MOST_NUMBERS} numbers to be shown as text, or a text form "
                f"of its own. Received {env} with {env.observation_space}"
            )
        name = env.spec.id if env.spec is not None else type(self.env).__name__
        self._task = f"You act in {name}. Collect as much reward as possible. Actions: {', '.join(self.actions)}."

    def state(self, observation: Any, score: float) -> str:
        """The observation as JSON.

        Args:
            observation: of the environment.
            score: not used: equal observations are equal states.
        """
        return json.dumps({"observation": _plain(observation)})

    def task(self, best: float | None) -> str:
        """The name of the environment, and its actions.

        Args:
            best: not used; it is not known.
        """
        return self._task

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The sum of rewards.

        Args:
            before: the score before the transition.
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return before + reward

    def best_score(self, knobs: Mapping[str, Value]) -> float | None:
        """It is not known.

        Args:
            knobs: the environment's knobs.
        """
        return None


def list_actions(space: spaces.Space[Any]) -> tuple[str, ...]:
    """All actions as text, of a `Box` those of a grid.

    Args:
        space: the action space.

    Raises:
        ArgumentError: if they are more than `MOST_ACTIONS`, or the space is of another kind.
    """
    if isinstance(space, spaces.Discrete):
        if space.n <= MOST_ACTIONS:
            return tuple(str(number) for number in range(int(space.start), int(space.start + space.n)))
    elif isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box)):
        choices = _choices(space)
        if np.prod([len(one) for one in choices]) <= MOST_ACTIONS:
            shape = space.shape or ()
            return tuple(json.dumps(np.reshape(one, shape).tolist()) for one in product(*choices))
    raise ArgumentError(
        f"`env` should have at most {MOST_ACTIONS} actions to be shown as text, or a text form of its own. "
        f"Received {space}"
    )


def _choices(space: spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box) -> list[list[Any]]:
    """The numbers that each place of an action can have."""
    if isinstance(space, spaces.MultiBinary):
        return [[0, 1]] * int(np.prod(space.shape))
    if isinstance(space, spaces.MultiDiscrete):
        starts = np.broadcast_to(space.start, space.nvec.shape).ravel().tolist()
        return [
            list(range(start, start + count)) for start, count in zip(starts, space.nvec.ravel().tolist(), strict=True)
        ]
    if not space.is_bounded():
        return [[0] * (MOST_ACTIONS + 1)]  # refused
    bounds = zip(space.low.ravel().tolist(), space.high.ravel().tolist(), strict=True)
    return [[low, (low + high) / 2, high] for low, high in bounds]


def _count_numbers(space: spaces.Space[Any]) -> int:
    """The numbers of an observation; more than `MOST_NUMBERS` for a space of another kind."""
    if isinstance(space, spaces.Dict):
        return sum(map(_count_numbers, space.spaces.values()))
    if isinstance(space, spaces.Tuple):
        return sum(map(_count_numbers, space.spaces))
    if isinstance(space, (spaces.Discrete, spaces.Text)):
        return 1
    if isinstance(space, (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete)):
        return int(np.prod(space.shape))
    return MOST_NUMBERS + 1


def _plain(value: Any) -> Any:
    """An observation as data for JSON; adding 0.0 turns -0.0 into 0.0."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return round(value, DIGITS) + 0.0 if isinstance(value, float) else value


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

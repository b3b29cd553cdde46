"""Text descriptions of states, tasks and actions.

* `Describer` - the protocol that `TextObservation` uses
* `LakeDescriber`, `CarDescriber`, `GridDescriber` - descriptions of the lake, the cars and Minigrid's worlds
* `find_describer` - the one for an environment
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from drift_envs.envs import FrozenLake, MountainCar, MountainCarContinuous
from drift_envs.envs.minigrid.knobs import MINIGRID_KNOBS
from drift_envs.knobs import Value
from drift_envs.wrappers.field_text import FieldDescriber, find_field_text

TEXT_CHARACTERS = string.ascii_letters + string.digits + ' {}[]",:._+-'
"""Every character that an observation of lake or car can hold."""

MAX_LENGTH = 128
"""No observation of lake or car is longer."""

FORCES = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""The forces that the continuous car's text world offers."""


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


class LakeDescriber:
    """The words for the lake.

    Args:
        env: the lake.
    """

    actions: tuple[str, ...] = ("0", "1", "2", "3")
    max_length = MAX_LENGTH
    characters = TEXT_CHARACTERS

    def __init__(self, env: FrozenLake) -> None:
        self.env = env
        self._cached_task: tuple[Any, Any, str] = (None, None, "")

    def state(self, observation: int, score: float) -> str:
        """Position, tile and gold.

        Args:
            observation: the state's number.
            score: the gold collected in this episode.
        """
        row, column = divmod(observation, self.env.ncol)
        tile = self.env.map[row][column]
        return f'{{"cur_pos": [{row}, {column}], "tile_type": "{tile}", "gold_collected": {_number(score)}}}'

    def task(self, best: float | None) -> str:
        """What to do on this lake; the sentence is put together once for each map.

        Args:
            best: the highest score there is.
        """
        lake = self.env.map
        if self._cached_task[0] is not lake or self._cached_task[1] != best:
            starts, goals = _places(lake, "S"), _places(lake, "G")
            text = (
                f"You walk over a frozen lake of {len(lake)} rows x {len(lake[0])} columns, "
                f"from {', or '.join(starts)}. Reach the destination with the highest score and avoid holes. "
                f"There are a total of {len(goals)} destination(s): {', '.join(goals)}. "
                f"The highest score is {_number(best or 0.0)}. Actions: 0 left, 1 down, 2 right, 3 up."
            )
            self._cached_task = (lake, best, text)
        return self._cached_task[2]

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The gold collected so far.

        Args:
            before: the gold before the transition.
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return before + reward

    def best_score(self, knobs: Mapping[str, Value]) -> float:
        """The reward of the best goal.

        Args:
            knobs: the lake's knobs.
        """
        rewards = knobs["goal_rewards"]
        goals = [place.strip("[]").replace(" ", "") for place in _places(knobs["map"], "G")]
        return max((float(rewards.get(goal, self.env.goal_reward)) for goal in goals), default=0.0)


class CarDescriber:
    """The words for the cars.

    Args:
        env: the car.
        actions: its admissible actions.
        meaning: what they do.
    """

    max_length = MAX_LENGTH
    characters = TEXT_CHARACTERS

    def __init__(self, env: MountainCar | MountainCarContinuous, actions: tuple[str, ...], meaning: str) -> None:
        self.env = env
        self.actions = actions
        self._meaning = meaning
        self._cached_task = ""

    def state(self, observation: np.ndarray, score: float) -> str:
        """Position and velocity with six decimals, so that a change of 0.0002 in the force stays visible.

        Args:
            observation: position and velocity, shape `(2,)`.
            score: not used.
        """
        position, velocity = observation.tolist()
        return f'{{"position": {position:.6f}, "velocity": {velocity:.6f}}}'

    def task(self, best: float | None) -> str:
        """What to do in this valley; the position of the flag is left out, since it may move.

        Args:
            best: the highest score there is.
        """
        if not self._cached_task:
            self._cached_task = (
                "You drive a car in a valley. Its engine may be too weak to climb straight up. Reach the flag, "
                f"somewhere to the right; the valley goes from {self.env.min_position:g} to "
                f"{self.env.max_position:g}. The highest score is {_number(best or 0.0)}, for reaching the flag. "
                f"Actions: {self._meaning}."
            )
        return self._cached_task

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """One at the flag.

        Args:
            before: the score before the transition.
            reward: its reward.
            terminated: whether it ended the episode, which only the flag does.
        """
        return 1.0 if terminated else before

    def best_score(self, knobs: Mapping[str, Value]) -> float:
        """One, for reaching the flag.

        Args:
            knobs: the car's knobs.
        """
        return 1.0


class GridDescriber:
    """The words for Minigrid's worlds.

    The task is Minigrid's mission with a sentence on the actions. The score is 1 once the mission is accomplished:
    Minigrid's bonus for few steps would make each response depend on the number of steps before.

    Args:
        env: the world.
    """

    max_length = 2048
    characters = TEXT_CHARACTERS + "#?~"

    def __init__(self, env: Any) -> None:
        self.env = env

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions that may have an effect, as text."""
        return tuple(map(str, self.env.admissible_actions()))

    def state(self, observation: Any, score: float) -> str:
        """What is seen, as JSON.

        Args:
            observation: not used: its cells have no place.
            score: not used.
        """
        text: str = self.env.describe_state()
        return text

    def task(self, best: float | None) -> str:
        """The mission, and what the actions do.

        Args:
            best: the highest score there is.
        """
        mission = self.env.mission
        return (
            f"You are in a building of rooms, and see what is ahead of you. Your mission: {mission}. "
            f"The highest score is {_number(best or 0.0)}. Actions: 0 turn left, 1 turn right, 2 go forward, "
            "3 pick up what is ahead, 4 drop, 5 open, close or unlock what is ahead, 6 wait."
        )

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """One when the mission is accomplished.

        Args:
            before: the score before the transition.
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return 1.0 if terminated and reward > 0 else before

    def best_score(self, knobs: Mapping[str, Value]) -> float:
        """One, for the mission.

        Args:
            knobs: the world's knobs.
        """
        return 1.0


def find_describer(env: gym.Env[Any, Any]) -> Describer | None:
    """The words for an environment, or `None` if there are none.

    Args:
        env: the environment.
    """
    base = env.unwrapped
    if isinstance(base, FrozenLake):
        return LakeDescriber(base)
    if isinstance(base, MountainCar):
        return CarDescriber(base, ("0", "1", "2"), "0 push left, 1 do nothing, 2 push right")
    if isinstance(base, MountainCarContinuous):
        forces = tuple(f"{force:.1f}" for force in FORCES)
        return CarDescriber(base, forces, "the force of a push, from -1.0 (full left) to 1.0 (full right)")
    if getattr(base, "knobs", None) is MINIGRID_KNOBS:
        return GridDescriber(base)
    text = find_field_text(base)
    return None if text is None else FieldDescriber(base, text)


def _places(lake: tuple[str, ...], letter: str) -> list[str]:
    """Where a letter stands on a map, as `[row, column]`."""
    return [
        f"[{row}, {column}]" for row, tiles in enumerate(lake) for column, tile in enumerate(tiles) if tile == letter
    ]


def _number(value: float) -> str:
    """A number as JSON, whole ones without a point."""
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"

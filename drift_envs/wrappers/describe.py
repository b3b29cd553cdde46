"""Text descriptions of states, tasks and actions of the lake and the cars.

* `Describer` - the protocol that `TextObservation` uses
* `LakeDescriber`, `CarDescriber` - descriptions of the lake and the cars
* `find_describer` - the one for an environment
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from drift_envs.envs import FrozenLake, MountainCar, MountainCarContinuous
from drift_envs.knobs import Value

FORCES = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""The forces that the continuous car's text world offers."""


class Describer(Protocol):
    """The protocol that `TextObservation` uses.

    Attributes:
        env: the innermost environment.
        actions: the admissible actions, as text.
    """

    env: Any
    actions: tuple[str, ...]

    def state(self, observation: Any, score: float) -> str:
        """The state as JSON."""
        ...

    def task(self, best: float | None) -> str:
        """The task in words; `best` is the highest score there is."""
        ...

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The score after a transition."""
        ...

    def best_score(self, knobs: Mapping[str, Value]) -> float:
        """The highest score that is possible with these knobs."""
        ...


class LakeDescriber:
    """The words for the lake.

    Args:
        env: the lake.
    """

    actions: tuple[str, ...] = ("0", "1", "2", "3")

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
    return None


def _places(lake: tuple[str, ...], letter: str) -> list[str]:
    """Where a letter stands on a map, as `[row, column]`."""
    return [
        f"[{row}, {column}]" for row, tiles in enumerate(lake) for column, tile in enumerate(tiles) if tile == letter
    ]


def _number(value: float) -> str:
    """A number as JSON, whole ones without a point."""
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"

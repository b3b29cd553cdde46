"""The cars in words.

* `CarDescriber` - their states, tasks and actions
* `describe_car`, `describe_continuous_car` - the one for each car
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from drift_envs.envs.mountain_car.env import MountainCar, MountainCarContinuous
from drift_envs.knobs import Value
from drift_envs.wrappers.describe import MAX_LENGTH, TEXT_CHARACTERS, write_number

FORCES = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""The forces that the continuous car's text form offers."""


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
                f"{self.env.max_position:g}. The highest score is {write_number(best or 0.0)}, for reaching the flag. "
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


def describe_car(env: MountainCar) -> CarDescriber:
    """The words for the car with three actions."""
    return CarDescriber(env, ("0", "1", "2"), "0 push left, 1 do nothing, 2 push right")


def describe_continuous_car(env: MountainCarContinuous) -> CarDescriber:
    """The words for the car with a force between -1 and 1."""
    forces = tuple(f"{force:.1f}" for force in FORCES)
    return CarDescriber(env, forces, "the force of a push, from -1.0 (full left) to 1.0 (full right)")

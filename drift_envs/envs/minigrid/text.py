"""Minigrid's environments in words.

* `GridDescriber` - their states, tasks and actions
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drift_envs.knobs import Value
from drift_envs.wrappers.describe import TEXT_CHARACTERS, write_number


class GridDescriber:
    """The words for Minigrid's environments.

    The task is Minigrid's mission with a sentence on the actions. The score is 1 once the mission is accomplished:
    Minigrid's bonus for few steps would make each response depend on the number of steps before.

    Args:
        env: the environment.
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
            f"The highest score is {write_number(best or 0.0)}. Actions: 0 turn left, 1 turn right, 2 go forward, "
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
            knobs: the environment's knobs.
        """
        return 1.0

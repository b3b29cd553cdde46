"""Text form of environments whose state is a list of numbers, such as classic control and MuJoCo.

* `FieldText` - fields, actions, aim and score of one environment
* `FieldDescriber` - the words for such an environment
"""

from __future__ import annotations

import json
import math
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value

SCORE = "score"
"""The last field of a state: the score so far, so that what a single step pays can be read."""

Numbers = Sequence[float]


def _same(numbers: Numbers) -> list[float]:
    return list(numbers)


class FieldText(NamedTuple):
    """Fields, actions, aim and score of one environment.

    The score of a step is (reward + offset) / scale, or 1 for a step that ends the episode at a goal.

    Args:
        fields: the names of the numbers, angles in radians from -pi to pi.
        actions: the admissible actions, as text.
        aim: what to do, and when an episode ends.
        meaning: what the actions do.
        scale: divides rewards.
        offset: added to the reward of each step.
        best: the highest score; `None` if it is not known.
        ends_at_goal: whether the score is 1 at a goal, and 0 before.
        to_fields: the numbers of an observation.
        to_observation: the observation that shows these numbers.
    """

    fields: tuple[str, ...]
    actions: tuple[str, ...]
    aim: str
    meaning: str
    scale: float
    offset: float = 0.0
    best: float | None = None
    ends_at_goal: bool = False
    to_fields: Callable[[Numbers], list[float]] = _same
    to_observation: Callable[[Numbers], list[float]] = _same

    def read(self, state: str) -> tuple[list[float], float]:
        """The observation and the score that a text shows.

        Args:
            state: a state as text.

        Raises:
            ArgumentError: if the text is no state of this environment.
        """
        try:
            data = json.loads(state)
            numbers, score = [float(data[field]) for field in self.fields], float(data[SCORE])
        except (ValueError, TypeError, KeyError):
            numbers, score = [], math.nan
        if not all(map(math.isfinite, (*numbers, score))):
            raise ArgumentError(
                f"`state` should be a JSON object with the numbers {', '.join((*self.fields, SCORE))}. "
                f"Received {state[:200]!r}"
            )
        return self.to_observation(numbers), score

    def pay(self, reward: float, terminated: bool) -> float:
        """What a step adds to the score.

        Args:
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return float(terminated) if self.ends_at_goal else (reward + self.offset) / self.scale


class FieldDescriber:
    """The words for an environment whose state is a list of numbers.

    Args:
        env: the environment.
        text: its fields, actions, aim and score.
    """

    max_length = 1024
    characters = string.ascii_letters + string.digits + ' {}[]",:._+-'

    def __init__(self, env: Any, text: FieldText) -> None:
        self.env, self.actions = env, text.actions
        self.text = text

    def state(self, observation: Any, score: float) -> str:
        """The numbers and the score so far, with six decimals.

        Args:
            observation: of the environment.
            score: the score so far.
        """
        numbers = self.text.to_fields(np.asarray(observation, float).tolist())
        pairs = zip((*self.text.fields, SCORE), (*numbers, score), strict=True)
        # adding 0.0 turns -0.0 into 0.0
        return "{" + ", ".join(f'"{name}": {round(number, 6) + 0.0:.6f}' for name, number in pairs) + "}"

    def task(self, best: float | None) -> str:
        """What to do, and what the actions do.

        Args:
            best: the highest score, if it is known.
        """
        highest = "" if best is None else f" The highest score is {best:g}."
        return f"{self.text.aim}{highest} Actions: {self.text.meaning}."

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The score after a transition, with six decimals, as states show it.

        Args:
            before: the score before the transition.
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return round(before + self.text.pay(reward, terminated), 6)

    def best_score(self, knobs: Mapping[str, Value]) -> float | None:
        """The highest score of an undisturbed episode; no knob is read.

        Args:
            knobs: the environment's knobs.
        """
        return self.text.best

"""Marks on the picture itself: the trajectory, what changed, the force on the car.

* `Marks` - the protocol that `DriftOverlay` uses
* `NoMarks` - the one for environments that have no marks
* `DrawnMarks` - the base of those that are drawn
* `find_marks` - the one for an environment
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from drift_envs.drawing import load_pygame
from drift_envs.knobs import Value
from drift_envs.registration import parts_of

TRAIL = (200, 90, 0)
CHANGED = (200, 30, 90)
GHOST = (90, 100, 110)
MOST = 200
"""The largest number of points of a trail."""


class Marks(Protocol):
    """The protocol that `DriftOverlay` uses."""

    def begin(self) -> None:
        """An episode has begun."""

    def note(self, action: Any) -> None:
        """A step was made."""

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The score after a transition, for the strip under the picture.

        Args:
            before: the score before it.
            reward: its reward.
            terminated: whether it ended the episode.
        """
        ...

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The picture with marks.

        Args:
            picture: of shape `(height, width, 3)`.
            old: the knobs of the phase before; `None` in the first one.
        """
        ...


class NoMarks:
    """Nothing is drawn, and the score is the sum of rewards."""

    def begin(self) -> None:
        """Nothing."""

    def note(self, action: Any) -> None:
        """Nothing."""

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The sum of rewards."""
        return before + reward

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The picture as it is."""
        return picture


class DrawnMarks(NoMarks, ABC):
    """Marks that a subclass draws on the picture with pygame."""

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The picture with marks.

        Args:
            picture: of shape `(height, width, 3)`.
            old: the knobs of the phase before; `None` in the first one.
        """
        pygame = load_pygame()
        surface = pygame.surfarray.make_surface(np.transpose(picture, (1, 0, 2)))
        self._draw_on(surface, old)
        return np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))

    @abstractmethod
    def _draw_on(self, surface: Any, old: Mapping[str, Value] | None) -> None:
        """Draw the marks on a surface of pygame."""


def find_marks(env: gym.Env[Any, Any]) -> Marks:
    """What is drawn for an environment: what its declaration names, or nothing.

    Args:
        env: any environment.
    """
    parts = parts_of(env)
    marks: Marks = NoMarks() if parts is None or parts.marks is None else parts.load("marks")(env.unwrapped)
    return marks

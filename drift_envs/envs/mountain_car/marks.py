"""Marks on pictures of the cars.

* `CarMarks`, `ContinuousCarMarks` - an arrow for what the engine does, where the flag was, and the trajectory
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drift_envs.drawing import load_pygame
from drift_envs.knobs import Value
from drift_envs.wrappers.overlay.marks import GHOST, MOST, TRAIL, DrawnMarks

FORCE = (11, 60, 111)
REACH = 70
"""Pixels of the arrow at Gymnasium's own force."""


class CarMarks(DrawnMarks):
    """An arrow for what the engine does, a ghost of a flag that has moved, and the car's trajectory.

    Args:
        env: the car.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self._places: list[float] = []
        self._push = 0.0

    def begin(self) -> None:
        """Start a new trail; no force acts."""
        self._places, self._push = [float(self.env.state[0])], 0.0

    def note(self, action: Any) -> None:
        """Extend the trail, and store the force."""
        self._places = [*self._places[1 - MOST :], float(self.env.state[0])]
        self._push = self._force(action)

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """One at the flag, as in the text form."""
        return float(terminated)

    def _force(self, action: Any) -> float:
        """The force of an action, relative to the engine of Gymnasium's car."""
        return (int(action) - 1) * float(self.env.force) / 0.001

    def _draw_on(self, surface: Any, old: Mapping[str, Value] | None) -> None:
        pygame = load_pygame()
        width, height = surface.get_size()
        flag = float(self.env.goal_position)
        before = flag if old is None else float(old.get("goal_position", flag))
        if before != flag:
            x, y = self._pixel(before, width, height)
            for part in range(0, 50, 10):
                pygame.draw.line(surface, GHOST, (x, y - part), (x, y - part - 5), 3)
        if len(self._places) > 1:
            # Above the car, where the way back does not hide the way there behind the hill's line.
            points = [(x, y - 30) for x, y in (self._pixel(place, width, height) for place in self._places)]
            pygame.draw.lines(surface, TRAIL, False, points, 3)
        if self._push:
            x, y = self._pixel(self._places[-1], width, height)
            tip, side = x + REACH * self._push, 1 if self._push > 0 else -1
            pygame.draw.line(surface, FORCE, (x, y - 50), (tip - 8 * side, y - 50), 5)
            pygame.draw.polygon(surface, FORCE, [(tip, y - 50), (tip - 12 * side, y - 58), (tip - 12 * side, y - 42)])

    def _pixel(self, position: float, width: int, height: int) -> tuple[float, float]:
        """Where Gymnasium draws the ground at a position."""
        scale = width / (self.env.max_position - self.env.min_position)
        ground = np.sin(3 * position) * 0.45 + 0.55
        return (position - self.env.min_position) * scale, height - ground * scale - 10


class ContinuousCarMarks(CarMarks):
    """The same for the continuous car.

    Args:
        env: the car.
    """

    def _force(self, action: Any) -> float:
        """The force of an action, relative to the engine of Gymnasium's car."""
        return float(np.clip(np.ravel(action)[0], -1, 1)) * float(self.env.power) / 0.0015

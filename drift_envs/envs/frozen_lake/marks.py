"""Marks on pictures of the lake.

* `LakeMarks` - frames around tiles that changed, old holes, and the agent's trajectory
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drift_envs.drawing import load_pygame
from drift_envs.envs.frozen_lake.env import FrozenLake
from drift_envs.knobs import Value
from drift_envs.wrappers.overlay.marks import CHANGED, GHOST, TRAIL, DrawnMarks


class LakeMarks(DrawnMarks):
    """Frames around tiles that changed, old holes as ghosts, and the agent's trajectory.

    Args:
        env: the lake.
    """

    def __init__(self, env: FrozenLake) -> None:
        self.env = env
        self._places: list[tuple[int, int]] = []

    def begin(self) -> None:
        """Start a new trail."""
        self._places = [divmod(int(self.env.s), self.env.ncol)]

    def note(self, action: Any) -> None:
        """Extend the trail."""
        self._places.append(divmod(int(self.env.s), self.env.ncol))

    def _draw_on(self, surface: Any, old: Mapping[str, Value] | None) -> None:
        pygame = load_pygame()
        width, height = self.env.cell_size
        for row, column, tile in self._changes(old):
            box = pygame.Rect(column * width, row * height, width, height)
            pygame.draw.rect(surface, CHANGED, box.inflate(-4, -4), 3)
            if tile == "H":
                for part in range(0, 360, 30):  # a dashed ring: no hole any more
                    pygame.draw.arc(surface, GHOST, box.inflate(-20, -20), np.radians(part), np.radians(part + 16), 3)
        if len(self._places) > 1:
            points = [((c + 0.5) * width, (r + 0.75) * height) for r, c in self._places]
            pygame.draw.lines(surface, TRAIL, False, points, 3)
            pygame.draw.circle(surface, TRAIL, points[0], 5)

    def _changes(self, old: Mapping[str, Value] | None) -> list[tuple[int, int, str]]:
        """Tiles that are others now, and what each was; goals count too when their reward is another one."""
        if old is None:
            return []
        now, before = self.env.map, old.get("map", self.env.map)
        if not isinstance(before, tuple) or [len(row) for row in before] != [len(row) for row in now]:
            return []
        rewards = old.get("goal_rewards", self.env.goal_rewards)
        found = []
        for row, tiles in enumerate(now):
            for column, tile in enumerate(tiles):
                place = f"{row},{column}"
                other_reward = tile == "G" and rewards.get(place) != self.env.goal_rewards.get(place)
                if before[row][column] != tile or other_reward:
                    found.append((row, column, before[row][column]))
        return found

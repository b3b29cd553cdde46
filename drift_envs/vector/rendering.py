"""Pictures of sub-environments, drawn by the single environment that they are copies of.

* `VectorRenderer` - one picture of each, or all of them in a grid
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class VectorRenderer:
    """Draws sub-environments with the single environment, turned and placed like each of them.

    Args:
        vector: the `DriftVectorEnv`.
    """

    def __init__(self, vector: Any) -> None:
        self._vector = vector

    def frame(self, index: int) -> np.ndarray:
        """The picture of a sub-environment.

        Args:
            index: which one.

        Returns:
            Pixels of shape `(height, width, 3)`, `uint8`.
        """
        env: Any = self._vector.world.unwrapped
        env.turn(self._vector.envs[index].read_knobs())
        self._vector.pose(env, index)
        frame: np.ndarray = env.render()
        return frame

    def frames(self) -> tuple[np.ndarray, ...]:
        """The pictures of all."""
        return tuple(self.frame(index) for index in range(self._vector.num_envs))

    def grid(self, columns: int | None, most: int) -> np.ndarray:
        """One picture with the sub-environments side by side, empty places black.

        Args:
            columns: how many stand in a row; about as many as there are rows by default.
            most: only the first so many are drawn.
        """
        frames = [self.frame(index) for index in range(min(self._vector.num_envs, most))]
        across = columns or math.ceil(math.sqrt(len(frames)))
        down = math.ceil(len(frames) / across)
        height, width, colors = frames[0].shape
        whole = np.zeros((down * height, across * width, colors), np.uint8)
        for place, frame in enumerate(frames):
            row, column = divmod(place, across)
            whole[row * height : (row + 1) * height, column * width : (column + 1) * width] = frame
        return whole

"""Marks on pictures of the shop's pages.

* `ShopMarks` - frames around an advertisement's right button, and options of a class of colours
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drift_envs.drawing import load_pygame
from drift_envs.envs.webshop.env import WebShop
from drift_envs.envs.webshop.picture import lay_out
from drift_envs.knobs import Value
from drift_envs.wrappers.overlay.marks import CHANGED, DrawnMarks
from webshop_server.urls import parse_path


class ShopMarks(DrawnMarks):
    """Frames around what a drift is about: an advertisement's right button, and options of a class of colours.

    Args:
        env: the shop; pages of a browser stay as they are.
    """

    def __init__(self, env: WebShop) -> None:
        self.env = env

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The picture with marks, but that of a browser as it is."""
        return picture if self.env.backend_name == "browser" else super().draw(picture, old)

    def _draw_on(self, surface: Any, old: Mapping[str, Value] | None) -> None:
        pygame = load_pygame()
        labels = self._labels()
        kind = parse_path(self.env.page.path).kind
        for placed in lay_out(kind, self.env.page.elements):
            if placed.element.label in labels:
                pygame.draw.rect(surface, CHANGED, pygame.Rect(placed.box).inflate(8, 8), 3, border_radius=8)

    def _labels(self) -> set[str]:
        """The labels that get a frame: the right button, or the colours that the task's class means now."""
        if self.env.page.path.startswith("/ad/"):
            return {str(self.env.ad_right_button).lower()}
        goal = None if self.env.goal_index is None else self.env.shop.goals[self.env.goal_index]
        if goal is None or not goal.color_class:
            return set()
        colors = set(self.env.color_classes.get(goal.color_class, ()))
        return {element.label for element in self.env.page.elements if element.kind == "option"} & colors

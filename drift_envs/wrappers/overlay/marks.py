"""Marks on the picture itself: the trajectory, what changed, the force on the car.

* `Marks` - the protocol that `DriftOverlay` uses
* `LakeMarks`, `CarMarks`, `HouseMarks`, `ShopMarks` - for the lake, the cars, the house and the shop
* `find_marks` - the one for an environment
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import gymnasium as gym
import numpy as np

from drift_envs.envs import FrozenLake, House, MountainCar, MountainCarContinuous
from drift_envs.envs.drawing import load_pygame
from drift_envs.envs.house.model import make_model
from drift_envs.envs.house.picture import boxes, room_boxes
from drift_envs.envs.house.vocabulary import EFFECTS
from drift_envs.knobs import Value

if TYPE_CHECKING:
    from drift_envs.envs import WebShop

TRAIL = (200, 90, 0)
CHANGED = (200, 30, 90)
GHOST = (90, 100, 110)
FORCE = (11, 60, 111)
REACH = 70
"""Pixels of the arrow at Gymnasium's own force."""

MOST = 200
"""The largest number of points of a trail."""


class Marks(Protocol):
    """The protocol that `DriftOverlay` uses."""

    def begin(self) -> None:
        """An episode has begun."""

    def note(self, action: Any) -> None:
        """A step was made."""

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The picture with marks.

        Args:
            picture: of shape `(height, width, 3)`.
            old: the knobs of the phase before; `None` in the first one.
        """
        ...


class NoMarks:
    """Nothing is drawn."""

    def begin(self) -> None:
        """Nothing."""

    def note(self, action: Any) -> None:
        """Nothing."""

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The picture as it is."""
        return picture


class LakeMarks:
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

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The lake with marks.

        Args:
            picture: of shape `(height, width, 3)`.
            old: the knobs of the phase before; `None` in the first one.
        """
        pygame = load_pygame()
        surface = pygame.surfarray.make_surface(np.transpose(picture, (1, 0, 2)))
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
        return np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))

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


class CarMarks:
    """An arrow for what the engine does, a ghost of a flag that has moved, and the car's trajectory.

    Args:
        env: the car.
    """

    def __init__(self, env: MountainCar | MountainCarContinuous) -> None:
        self.env = env
        self._places: list[float] = []
        self._push = 0.0

    def begin(self) -> None:
        """Start a new trail; no force acts."""
        self._places, self._push = [float(self.env.state[0])], 0.0

    def note(self, action: Any) -> None:
        """Extend the trail, and store the force."""
        self._places = [*self._places[1 - MOST :], float(self.env.state[0])]
        if isinstance(self.env, MountainCar):
            self._push = (int(action) - 1) * float(self.env.force) / 0.001
        else:
            self._push = float(np.clip(np.ravel(action)[0], -1, 1)) * float(self.env.power) / 0.0015

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The hill with marks.

        Args:
            picture: of shape `(height, width, 3)`.
            old: the knobs of the phase before; `None` in the first one.
        """
        pygame = load_pygame()
        surface = pygame.surfarray.make_surface(np.transpose(picture, (1, 0, 2)))
        height, width = picture.shape[:2]
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
        return np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))

    def _pixel(self, position: float, width: int, height: int) -> tuple[float, float]:
        """Where Gymnasium draws the ground at a position."""
        scale = width / (self.env.max_position - self.env.min_position)
        ground = np.sin(3 * position) * 0.45 + 0.55
        return (position - self.env.min_position) * scale, height - ground * scale - 10


class HouseMarks:
    """Frames around furniture that changed, with what it does and what locks it now, and the agent's way.

    Args:
        env: the house.
    """

    def __init__(self, env: House) -> None:
        self.env = env
        self._places: list[int] = []

    def begin(self) -> None:
        """Start a new way."""
        self._places = []

    def note(self, action: Any) -> None:
        """Extend the way."""
        at = self.env.episode.state.at
        if at >= 0 and self._places[-1:] != [at]:
            self._places = [*self._places[1 - MOST :], at]

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The floor plan with marks.

        Args:
            picture: of shape `(height, width, 3)`.
            old: the knobs of the phase before; `None` in the first one.
        """
        pygame = load_pygame()
        surface = pygame.surfarray.make_surface(np.transpose(picture, (1, 0, 2)))
        model, spots = self.env.episode.model, boxes(self.env.episode.model.number)
        before = model if old is None else make_model(model.number, {**self.env.read_knobs(), **old})
        font = pygame.font.Font(None, 16)
        for place, (x, y, width, height) in spots.items():
            if old is not None and model.facts(place) != before.facts(place):
                pygame.draw.rect(surface, CHANGED, (x - 3, y - 3, width + 6, height + 6), 2, border_radius=6)
            for row, word in enumerate(self._words(place)):
                surface.blit(font.render(word, True, CHANGED), (x + 4, y + height - 14 - 12 * row))
        for room, (x, y, _, _) in room_boxes().items():
            if room in model.shut_rooms:
                surface.blit(font.render("locked", True, CHANGED), (x + 120, y + 8))
        if len(self._places) > 1:
            ways = [spots[place] for place in self._places]
            points = [(x + width / 2, y + height * 0.7) for x, y, width, height in ways]
            pygame.draw.lines(surface, TRAIL, False, points, 2)
        return np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))

    def _words(self, place: int) -> list[str]:
        """What locks furniture, and what an appliance does that its name does not say."""
        model = self.env.episode.model
        if place not in model.shown:
            return ["gone"]
        words = ["locked"] if place in model.locked else []
        if (key := model.keys.get(place)) is not None:
            words.append(f"key {model.things[key].name}" if key >= 0 else "no key here")
        kind = model.furniture[place].kind
        if kind in EFFECTS and model.effects[place] != EFFECTS[kind]:
            words.append({"nothing": "does nothing"}.get(model.effects[place], f"{model.effects[place]}s"))
        return words


class ShopMarks:
    """Frames around what a drift is about: an advertisement's right button, and options of a class of colours.

    Args:
        env: the shop; pages of a browser stay as they are.
    """

    def __init__(self, env: WebShop) -> None:
        self.env = env

    def begin(self) -> None:
        """Nothing."""

    def note(self, action: Any) -> None:
        """Nothing."""

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The page with marks.

        Args:
            picture: of shape `(height, width, 3)`.
            old: the knobs of the phase before; `None` in the first one.
        """
        if self.env.backend_name == "browser":
            return picture
        from drift_envs.envs.webshop.picture import lay_out, page_width  # other environments do without the shop

        pygame = load_pygame()
        surface = pygame.surfarray.make_surface(np.transpose(picture, (1, 0, 2)))
        labels = self._labels()
        for element, _, box in lay_out(self.env.page.elements, page_width(self.env.draw_listing())):
            if element.label in labels:
                pygame.draw.rect(surface, CHANGED, pygame.Rect(box).inflate(8, 8), 3)
        return np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))

    def _labels(self) -> set[str]:
        """The labels that get a frame: the right button, or the colours that the task's class means now."""
        if self.env.page.path.startswith("/ad/"):
            return {str(self.env.ad_right_button).lower()}
        goal = None if self.env.goal_index is None else self.env.shop.goals[self.env.goal_index]
        if goal is None or not goal.color_class:
            return set()
        colors = set(self.env.color_classes.get(goal.color_class, ()))
        return {element.label for element in self.env.page.elements if element.kind == "option"} & colors


def find_marks(env: gym.Env[Any, Any]) -> Marks:
    """What can be drawn for an environment.

    Args:
        env: any environment.
    """
    base = env.unwrapped
    if isinstance(base, FrozenLake):
        return LakeMarks(base)
    if isinstance(base, (MountainCar, MountainCarContinuous)):
        return CarMarks(base)
    if isinstance(base, House):
        return HouseMarks(base)
    shop: Any = base
    if hasattr(shop, "draw_listing"):
        return ShopMarks(shop)
    return NoMarks()

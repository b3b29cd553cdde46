"""Marks on pictures of the house.

* `HouseMarks` - frames around furniture that changed, what it does now, and the agent's way
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drift_envs.drawing import load_pygame, open_font
from drift_envs.envs.house.env import House
from drift_envs.envs.house.model import make_model
from drift_envs.envs.house.picture import boxes, room_boxes
from drift_envs.envs.house.vocabulary import EFFECTS
from drift_envs.knobs import Value
from drift_envs.wrappers.overlay.marks import CHANGED, MOST, TRAIL, DrawnMarks


class HouseMarks(DrawnMarks):
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

    def _draw_on(self, surface: Any, old: Mapping[str, Value] | None) -> None:
        pygame = load_pygame()
        model, spots = self.env.episode.model, boxes(self.env.episode.model.number)
        before = model if old is None else make_model(model.number, {**self.env.read_knobs(), **old})
        font = open_font(11)
        for place, (x, y, width, height) in spots.items():
            if old is not None and model.facts(place) != before.facts(place):
                pygame.draw.rect(surface, CHANGED, (x - 3, y - 3, width + 6, height + 6), 2, border_radius=6)
            for row, word in enumerate(self._words(place)):
                surface.blit(font.render(word, True, CHANGED), (x + 5, y + height - 16 - 13 * row))
        for room, (x, y, _, _) in room_boxes().items():
            if room in model.shut_rooms:
                surface.blit(font.render("locked", True, CHANGED), (x + 120, y + 7))
        if len(self._places) > 1:
            ways = [spots[place] for place in self._places]
            points = [(x + width / 2, y + height * 0.7) for x, y, width, height in ways]
            pygame.draw.lines(surface, TRAIL, False, points, 2)

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

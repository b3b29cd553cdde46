"""The floor plan of a house as a picture, with pygame, which only `render` needs.

* `draw_house_picture` - an episode as an RGB array
* `boxes`, `room_boxes` - where each receptacle and each room stands on it
* `WIDTH`, `HEIGHT` - its size in pixels
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drift_envs.drawing import load_pygame
from drift_envs.envs.house.blueprint import draw_house
from drift_envs.envs.house.episode import HouseEpisode
from drift_envs.envs.house.state import NOWHERE
from drift_envs.envs.house.vocabulary import ROOMS

WIDTH, HEIGHT = 960, 720

_TOP, _FOOT, _GAP, _TITLE = 34, 44, 8, 22
_PAPER, _INK, _FAINT = (250, 248, 244), (40, 40, 46), (120, 120, 128)
_ROOMS = {
    "kitchen": (255, 244, 222),
    "living room": (230, 241, 232),
    "bedroom": (232, 234, 250),
    "bathroom": (226, 243, 250),
}
_BOX, _OPEN, _CLOSED, _HERE = (255, 255, 255), (255, 250, 205), (214, 208, 198), (214, 84, 31)
_COLUMNS = 4

Box = tuple[int, int, int, int]


@lru_cache(maxsize=64)
def boxes(number: int) -> dict[int, Box]:
    """Left edge, top edge, width and height of each receptacle's box, by position.

    Args:
        number: the number of the house.
    """
    furniture = draw_house(number).furniture
    found: dict[int, Box] = {}
    for room, (left, top, width, height) in room_boxes().items():
        places = [place for place, one in enumerate(furniture) if one.room == room]
        rows = -(-len(places) // _COLUMNS)
        across = (width - (_COLUMNS + 1) * _GAP) // _COLUMNS
        down = (height - _TITLE - (rows + 1) * _GAP) // max(rows, 1)
        for index, place in enumerate(places):
            row, column = divmod(index, _COLUMNS)
            found[place] = (
                left + _GAP + column * (across + _GAP),
                top + _TITLE + _GAP + row * (down + _GAP),
                across,
                down,
            )
    return found


def room_boxes() -> dict[str, Box]:
    """Left edge, top edge, width and height of each room."""
    width, height = WIDTH // 2, (HEIGHT - _TOP - _FOOT)
    upper = height * 3 // 5  # kitchens have the most furniture
    return {
        ROOMS[0]: (0, _TOP, width, upper),
        ROOMS[1]: (width, _TOP, width, upper),
        ROOMS[2]: (0, _TOP + upper, width, height - upper),
        ROOMS[3]: (width, _TOP + upper, width, height - upper),
    }


def draw_house_picture(episode: HouseEpisode) -> NDArray[np.uint8]:
    """Draw the floor plan, with what the agent has seen in this episode.

    The picture shows no more than the agent knows: furniture is as it was when the agent last looked, and grey if it
    never did.

    Args:
        episode: the episode.

    Returns:
        uint8, shape `(HEIGHT, WIDTH, 3)`.

    Raises:
        MissingDependencyError: if pygame is not installed.
    """
    pygame = load_pygame()
    model, state = episode.model, episode.state
    surface = pygame.Surface((WIDTH, HEIGHT))
    surface.fill(_PAPER)
    _write(pygame, surface, f"Task: {episode.task_text}", (_GAP, 9), 24, _INK, WIDTH - 2 * _GAP)
    for room, (left, top, width, height) in room_boxes().items():
        pygame.draw.rect(surface, _ROOMS[room], (left + 2, top + 2, width - 4, height - 4), border_radius=6)
        _write(pygame, surface, room, (left + _GAP, top + 6), 20, _FAINT, width)
    for place, (x, y, width, height) in boxes(model.number).items():
        if place not in model.shown:
            continue
        is_seen = place in episode.seen
        paper = _BOX if is_seen and place not in model.opens else _OPEN if is_seen else _CLOSED
        pygame.draw.rect(surface, paper, (x, y, width, height), border_radius=4)
        here = place == state.at
        pygame.draw.rect(surface, _HERE if here else _FAINT, (x, y, width, height), 3 if here else 1, border_radius=4)
        _write(pygame, surface, model.names[place], (x + 4, y + 3), 16, _INK, width - 8)
        if is_seen:
            things = ", ".join(model.things[thing].name for thing in episode.seen[place])
            lines = _wrap(pygame, things, 14, width - 8)
            room_for = max((height - 18) // 11, 1)
            for number, line in enumerate(lines[:room_for]):
                cut = number == room_for - 1 and len(lines) > room_for
                _write(
                    pygame,
                    surface,
                    f"{line} ..." if cut else line,
                    (x + 4, y + 17 + 11 * number),
                    14,
                    _FAINT,
                    width - 6,
                )
    held = "nothing" if state.held == NOWHERE else model.things[state.held].name
    where = "nowhere" if state.at == NOWHERE else model.names[state.at]
    foot = HEIGHT - _FOOT + 4
    _write(pygame, surface, f"At {where}, holding {held}.", (_GAP, foot), 20, _HERE, WIDTH - 2 * _GAP)
    last = episode.answer.rpartition("\n\n")[0].rpartition("\n\n")[2] or episode.answer
    _write(pygame, surface, last.replace("\n", " "), (_GAP, foot + 20), 18, _INK, WIDTH - 2 * _GAP)
    picture: NDArray[np.uint8] = np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))
    return picture


def _write(pygame: Any, surface: Any, text: str, place: tuple[int, int], size: int, ink: Any, width: int) -> None:
    font = pygame.font.Font(None, size)
    surface.blit(font.render(text, True, ink), place, (0, 0, width, font.get_linesize()))


def _wrap(pygame: Any, text: str, size: int, width: int) -> list[str]:
    font = pygame.font.Font(None, size)
    lines, line = [], ""
    for word in text.split(", "):
        longer = f"{line}, {word}" if line else word
        if line and font.size(longer)[0] > width:
            lines.append(line)
            longer = word
        line = longer
    return [*lines, line] if line else lines

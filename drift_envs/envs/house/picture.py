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

from drift_envs.drawing import draw_text, load_pygame, open_font, wrap_text
from drift_envs.envs.house.blueprint import draw_house
from drift_envs.envs.house.episode import HouseEpisode
from drift_envs.envs.house.state import NOWHERE
from drift_envs.envs.house.vocabulary import ROOMS

WIDTH, HEIGHT = 960, 720

_TOP, _FOOT, _GAP, _TITLE = 34, 60, 8, 24
_NAME, _THING, _LEADING = 12, 11, 13
"""Letters of furniture and of things, and the distance of lines of things, in pixels."""
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
    draw_text(surface, f"Task: {episode.task_text}", (_GAP, 8), 16, _INK, WIDTH - 2 * _GAP, is_bold=True)
    for room, (left, top, width, height) in room_boxes().items():
        pygame.draw.rect(surface, _ROOMS[room], (left + 2, top + 2, width - 4, height - 4), border_radius=6)
        draw_text(surface, room, (left + _GAP, top + 6), 13, _FAINT, width, is_bold=True)
    font = open_font(_THING)
    for place, (x, y, width, height) in boxes(model.number).items():
        if place not in model.shown:
            continue
        is_seen = place in episode.seen
        paper = _BOX if is_seen and place not in model.opens else _OPEN if is_seen else _CLOSED
        pygame.draw.rect(surface, paper, (x, y, width, height), border_radius=4)
        here = place == state.at
        pygame.draw.rect(surface, _HERE if here else _FAINT, (x, y, width, height), 3 if here else 1, border_radius=4)
        draw_text(surface, model.names[place], (x + 5, y + 3), _NAME, _INK, width - 8)
        if is_seen:
            names = [model.things[thing].name for thing in episode.seen[place]]
            room_for = max((height - 20) // _LEADING, 1)
            for number, line in enumerate(_list_things(font, names, width - 8, room_for)):
                draw_text(surface, line, (x + 5, y + 19 + _LEADING * number), _THING, _FAINT, width - 8)
    held = "nothing" if state.held == NOWHERE else model.things[state.held].name
    where = "nowhere" if state.at == NOWHERE else model.names[state.at]
    foot = HEIGHT - _FOOT + 4
    draw_text(surface, f"At {where}, holding {held}.", (_GAP, foot), 13, _HERE, WIDTH - 2 * _GAP, is_bold=True)
    last = episode.answer.rpartition("\n\n")[0].rpartition("\n\n")[2] or episode.answer
    lines = wrap_text(open_font(_NAME), last, WIDTH - 2 * _GAP)
    for number, line in enumerate([*lines[:1], " ".join(lines[1:])]):
        draw_text(surface, line, (_GAP, foot + 19 + 16 * number), _NAME, _INK, WIDTH - 2 * _GAP)
    picture: NDArray[np.uint8] = np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))
    return picture


def _list_things(font: Any, names: list[str], width: int, count: int) -> list[str]:
    """Names in lines of whole names, in so many lines; the last one says how many are left out."""
    lines: list[str] = []
    for number, name in enumerate(names):
        text = f"{name}," if number < len(names) - 1 else name
        if lines and font.size(f"{lines[-1]} {text}")[0] <= width:
            lines[-1] += f" {text}"
        elif len(lines) < count:
            lines.append(text)
        else:
            lines[-1] = f"and {len(names) - number + lines[-1].count(',')} more"
            break
    return lines

"""A text house with knobs, and its floor plan as a picture."""

from __future__ import annotations

import string
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from drift_envs.envs.house.commands import MODEL_KNOBS, make_model
from drift_envs.envs.house.knobs import EFFECTS, HOUSE_KNOBS, HOUSES, MOST_NUMBER, ROOMS, draw_house
from drift_envs.envs.house.rules import NOWHERE
from drift_envs.envs.house.tasks import TASKS, WORDINGS, HouseEpisode, replay_plans, solve_task
from drift_envs.knobs import KnobTable, Value
from drift_envs.registration import IDS, EnvParts
from drift_envs.show.drawing import draw_text, load_pygame, open_font, wrap_text
from drift_envs.tasks.households import TASK_TYPES, HouseholdEnv, HouseholdTask
from drift_envs.tasks.recurring_tasks import MOST_TASKS
from drift_envs.wrappers.overlay import CHANGED, MOST, TRAIL, DrawnMarks

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


class House(HouseholdEnv[HouseEpisode]):
    """A house of several rooms: a task in words, and the commands of ALFWorld's text interface.

    House, task types and commands are of ALFWorld's kind (Shridhar et al., 2021); the code and the houses are
    this project's own. One house serves many tasks: only the seed draws another one.

    | action | meaning |
    |---|---|
    | `go to shelf 1`, `open drawer 2`, `close drawer 2` | from anywhere; at the receptacle |
    | `take mug 1 from shelf 1`, `move mug 1 to shelf 1` | one thing at a time; `put mug 1 in/on shelf 1` is the same |
    | `heat`, `cool`, `clean` `mug 1 with microwave 1` | a thing in the hand, at an appliance |
    | `use desklamp 1` | turns a lamp on or off |
    | `examine mug 1`, `look`, `inventory`, `help` | change nothing |

    The observation is the answer in words, as in ALFWorld, and `Nothing happens.` where a command has no effect;
    with `observation_mode="state"` it is a JSON object: `house`, `task`, `at`, `door`, `sees`, `holds`, `done`
    (the commands that had an effect), `opened`, `visited`, `says`. The reward is the score, which ends the episode:
    1.0, or 0.6 if a thing is not put where the household wants it.

    Knobs, with defaults and bounds: `drift-envs list --env DriftHouse-v0`.

    | info | meaning |
    |---|---|
    | `task` | the task in words |
    | `actions` | the admissible commands |
    | `score` | the score, 0.0 before the task is done |

    `house` takes effect at a reset; the other knobs act at once on all that the agent has not moved.
    `reset(options={"goal_index": i})` selects the task and its house: `i` is 10,000 times the number of the house (0 to
    5,000,000, each drawn from its number) plus the position of the task in it. Other numbers are refused.

    Args:
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        observation_mode: `text` or `state`.
        pool: the number of recurring tasks; `None` draws from all tasks of the house.
        order: `shuffled` (each task once in every round of the pool) or `fixed`.
        conditions: knob values under each of which every task of the pool can be done at 1.0.
        affected: whether tasks come first that every change between two conditions affects, or that none does.

    Raises:
        ArgumentError: an argument breaks a rule.

    Example:
        >>> house = House(pool=3)
        >>> house.house = 7
        >>> text, info = house.reset(seed=0)
        >>> info["task"], len(info["actions"])
        ('put two pencil in fridge', 45)
        >>> house.step("open fridge 1")[0]
        'Nothing happens.'
    """

    knobs: ClassVar[KnobTable] = HOUSE_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftHouse-v0"]
    window_title = "House"
    place_knob = "house"
    most_places = HOUSES
    last_place = MOST_NUMBER
    model_knobs = MODEL_KNOBS
    tasks = TASKS
    make_setting = staticmethod(make_model)
    solve_task = staticmethod(solve_task)
    replay_plans = staticmethod(replay_plans)
    wordings = len(WORDINGS[TASK_TYPES[0]])
    characters = string.ascii_letters + string.digits + " \n" + "-=!:,.'\"()[]{}_/"
    elsewhere = 0x07E3

    def _begin(self, place: int, task: HouseholdTask) -> HouseEpisode:
        episode = HouseEpisode(self._make_setting(place), task, self._wording)
        episode.answer = episode.introduce()
        return episode

    def _update(self, episode: HouseEpisode) -> None:
        episode.model = self._make_setting(episode.model.number)

    def _draw_elsewhere(self, rng: np.random.Generator, count: int) -> list[int]:
        """Other houses."""
        numbers: list[int] = []
        while len(numbers) < count:
            number = int(rng.integers(1, MOST_TASKS))
            if number != self.place and number not in numbers:
                numbers.append(number)
        return numbers

    def _list_actions(self, episode: HouseEpisode) -> list[str]:
        return episode.model.admissible(episode.state)

    def _draw_page(self) -> np.ndarray:
        return draw_house_picture(self.episode)


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

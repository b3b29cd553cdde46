"""Minigrid's environments with knobs; needs the extra `minigrid`, but for the knobs, which stand here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, draw_number, mapping_knob

ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle", "done")
"""Minigrid's actions, in the order of their numbers."""

COLORS = ("blue", "green", "grey", "purple", "red", "yellow")
MOST_LAYOUTS = 1_000_000
WIDEST_VIEW = 7
MOST_WANDER = 200
_CELL = re.compile(r"(0|[1-9][0-9]?),(0|[1-9][0-9]?)")
_COLORED = re.compile(rf"({'|'.join(COLORS)}) (goal|key|ball|box)|(open|closed|locked) ({'|'.join(COLORS)}) door")


def is_thing(text: object) -> bool:
    """Whether a text names what may stand in a cell.

    Args:
        text: for instance `wall`, `lava`, `blue key` or `locked red door`.

    Example:
        >>> is_thing("locked red door"), is_thing("red door")
        (True, False)
    """
    return isinstance(text, str) and (text in ("wall", "lava", "nothing") or _COLORED.fullmatch(text) is not None)


def read_cell(text: str) -> tuple[int, int]:
    """A cell `x,y` as two numbers.

    Args:
        text: column and row.
    """
    column, row = text.split(",")
    return int(column), int(row)


def _parse_objects(value: Mapping[str, Any]) -> FrozenMapping:
    for cell, thing in value.items():
        if not _CELL.fullmatch(str(cell)):
            raise KnobError(f"`objects` should name cells such as '3,4'. Received {cell!r}")
        if not is_thing(thing):
            raise KnobError(
                "`objects` should give a cell 'wall', 'lava', 'nothing', a goal, key, ball or box such as 'blue key', "
                f"or a door such as 'locked red door'. Received {thing!r}"
            )
    return FrozenMapping(value)


def _parse_colors(knob: str, value: Mapping[str, Any]) -> FrozenMapping:
    for color in (*value, *value.values()):
        if color not in COLORS:
            raise KnobError(f"`{knob}` should map colours: {', '.join(COLORS)}. Received {color!r}")
    return FrozenMapping(value)


def _parse_meanings(value: Mapping[str, Any]) -> FrozenMapping:
    whole = {name: name for name in ACTIONS}
    for action, instead in value.items():
        if action not in whole or instead not in ACTIONS:
            raise KnobError(f"`meanings` should map {', '.join(ACTIONS)} to such. Received {action!r}: {instead!r}")
        whole[action] = str(instead)
    if len(set(whole.values())) != len(whole):
        raise KnobError(f"`meanings` should use every action once. Received {dict(value)!r}")
    return FrozenMapping({action: instead for action, instead in whole.items() if action != instead})


def _parse_view(value: int) -> int:
    if value % 2 == 0:
        raise KnobError(f"`view_size` should be odd. Received {value}")
    return value


_DRAW_LAYOUT = partial(draw_number, "layout", MOST_LAYOUTS)
_LAYOUT = "number of the map with its start and task; 0 draws one for each episode, `{draw: {}}` one from the seed"
_OBJECT = "cell `x,y`: what stands there instead: `wall`, `lava`, `nothing`, `blue goal`, `locked red door`, ..."
_WORD = "colour in the task: the colour that it refers to, so that another object pays"
_MEANING = "action (`left`, `forward`, `pickup`, ...): the action that is carried out in its place"
_VIEW = "cells across and ahead that are seen, odd; the space stays, the others look unseen"
_WANDER = "steps by which goals, keys, balls and boxes have moved from their places on the map, each within its room"

MINIGRID_KNOBS = KnobTable(
    (
        Knob("layout", 0, (0, MOST_LAYOUTS), _LAYOUT, "integer", draw=_DRAW_LAYOUT),
        mapping_knob("objects", _OBJECT, _parse_objects),
        mapping_knob("words", _WORD, partial(_parse_colors, "words")),
        mapping_knob("opens", "colour of a door: the colour of the key that opens it", partial(_parse_colors, "opens")),
        mapping_knob("meanings", _MEANING, _parse_meanings),
        Knob("view_size", WIDEST_VIEW, (3, WIDEST_VIEW), _VIEW, "integer", parse=_parse_view),
        Knob("wander", 0, (0, MOST_WANDER), _WANDER, "integer"),
        Knob("transient", 0.0, (0.0, 1.0), "probability that an action has no effect, in this step only"),
    )
)
"""The knobs, in the order in which they are documented."""

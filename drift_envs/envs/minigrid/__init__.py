"""Minigrid's environments with knobs; needs the extra `minigrid`, but for the knobs, which stand here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value

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


def _parse_words(value: Mapping[str, Any]) -> FrozenMapping:
    return _parse_colors("words", value)


def _parse_opens(value: Mapping[str, Any]) -> FrozenMapping:
    return _parse_colors("opens", value)


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


def _draw_layout(arguments: Mapping[str, Any], below: Value | None, rng: np.random.Generator) -> Value:
    if arguments:
        raise KnobError(f"`layout`: `draw` takes no arguments here. Received {dict(arguments)!r}")
    found = int(rng.integers(1, MOST_LAYOUTS))
    return found + (below is not None and found == below)


MINIGRID_KNOBS = KnobTable(
    (
        Knob(
            "layout",
            0,
            (0, MOST_LAYOUTS),
            "number of the map with its start and task; 0 draws one for each episode, `{draw: {}}` one from the seed",
            kind="integer",
            draw=_draw_layout,
        ),
        Knob(
            "objects",
            FrozenMapping(),
            None,
            "cell `x,y`: what stands there instead: `wall`, `lava`, `nothing`, `blue goal`, `locked red door`, ...",
            kind="mapping",
            parse=_parse_objects,
        ),
        Knob(
            "words",
            FrozenMapping(),
            None,
            "colour in the task: the colour that it refers to, so that another object pays",
            kind="mapping",
            parse=_parse_words,
        ),
        Knob(
            "opens",
            FrozenMapping(),
            None,
            "colour of a door: the colour of the key that opens it",
            kind="mapping",
            parse=_parse_opens,
        ),
        Knob(
            "meanings",
            FrozenMapping(),
            None,
            "action (`left`, `forward`, `pickup`, ...): the action that is carried out in its place",
            kind="mapping",
            parse=_parse_meanings,
        ),
        Knob(
            "view_size",
            WIDEST_VIEW,
            (3, WIDEST_VIEW),
            "cells across and ahead that are seen, odd; the space stays, the others look unseen",
            kind="integer",
            parse=_parse_view,
        ),
        Knob(
            "wander",
            0,
            (0, MOST_WANDER),
            "steps by which goals, keys, balls and boxes have moved from their places on the map, each within its room",
            kind="integer",
        ),
        Knob("transient", 0.0, (0.0, 1.0), "probability that an action has no effect, in this step only"),
    )
)
"""The knobs, in the order in which they are documented."""

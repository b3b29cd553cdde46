"""What Minigrid's environments are without Minigrid: their actions and knobs, and their rules over the full state.

The rules are for search and for oracles. A cell is a pair of column and row; what stands in it is a text such as
`wall`, `locked red door` or `blue key`, and `nothing` where it is empty. Source:
`minigrid.minigrid_env.MiniGridEnv.step` and `minigrid.core.world_object`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

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


Cell = tuple[int, int]


def read_cell(text: str) -> Cell:
    """A cell `x,y` as two numbers."""
    column, row = text.split(",")
    return int(column), int(row)


def write_cell(cell: Cell) -> str:
    """A cell as `x,y`."""
    return f"{cell[0]},{cell[1]}"


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

STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Column and row of a step, by direction: east, south, west, north."""

FACINGS = ("east", "south", "west", "north")
"""The directions, in the order of their numbers."""

NOTHING = "nothing"


class GridState(NamedTuple):
    """A full state of an episode.

    Args:
        cell: where the agent stands.
        facing: 0 east, 1 south, 2 west, 3 north.
        carries: the thing that it carries, or `nothing`.
        changed: the cells whose content differs from the start, with what is there now, in order.
    """

    cell: Cell
    facing: int
    carries: str = NOTHING
    changed: tuple[tuple[Cell, str], ...] = ()


class GridTask(NamedTuple):
    """What ends an episode with a reward.

    Args:
        kind: `reach` a goal of a colour, `take` a thing, `open` the door of a cell, or `face` one of some cells.
        color: of the goal that pays.
        thing: what has to be taken.
        cells: the cell of the door; the cells that have to be faced.
    """

    kind: str
    color: str = ""
    thing: str = ""
    cells: frozenset[Cell] = frozenset()


class GridResult(NamedTuple):
    """What an action leads to."""

    state: GridState
    paid: bool
    ended: bool


@dataclass(frozen=True, eq=False)
class GridModel:
    """A map with its rules; two of them are equal if they are one object.

    Args:
        cells: what stands where at the start; empty cells are left out.
        start: the first state.
        task: what pays.
        opens: colour of a door: the colour of its key, if it is another.
        meanings: action: the one carried out in its place.

    Example:
        >>> model = GridModel({(2, 0): "green goal"}, GridState((0, 0), 0), GridTask("reach", "green"))
        >>> step = model.step(model.start, "forward")
        >>> step.state.cell, model.step(step.state, "forward").paid
        ((1, 0), True)
    """

    cells: Mapping[Cell, str]
    start: GridState
    task: GridTask
    opens: Mapping[str, str] = FrozenMapping()
    meanings: Mapping[str, str] = FrozenMapping()

    def content(self, state: GridState, cell: Cell) -> str:
        """What stands in a cell now.

        Args:
            state: the state.
            cell: the cell.
        """
        for changed, thing in state.changed:
            if changed == cell:
                return thing
        return self.cells.get(cell, NOTHING)

    def front(self, state: GridState) -> Cell:
        """The cell before the agent.

        Args:
            state: the state.
        """
        across, down = STEPS[state.facing]
        return state.cell[0] + across, state.cell[1] + down

    def step(self, state: GridState, action: str) -> GridResult:
        """What an action leads to.

        Args:
            state: a state that has not ended.
            action: one of `ACTIONS`.
        """
        meant = self.meanings.get(action, action)
        after = self._act(state, meant)
        thing, task = self.content(after, after.cell), self.task
        is_goal = meant == "forward" and thing.endswith(" goal")
        # as in Minigrid, a goal pays whatever the task is
        paid = is_goal and (task.kind != "reach" or thing == f"{task.color} goal")
        if task.kind == "take":
            paid |= meant == "pickup" and after.carries == task.thing
        elif task.kind == "open":
            paid |= meant == "toggle" and any(self.content(after, cell).startswith("open ") for cell in task.cells)
        elif task.kind == "face":
            paid |= self.front(after) in task.cells
        return GridResult(after, paid, paid or is_goal or (meant == "forward" and thing == "lava"))

    def moves(self, state: GridState) -> dict[str, GridResult]:
        """The actions that change something or pay, with what they lead to.

        Args:
            state: a state that has not ended.
        """
        found = {action: self.step(state, action) for action in ACTIONS}
        return {action: result for action, result in found.items() if result.state != state or result.paid}

    def _act(self, state: GridState, meant: str) -> GridState:
        if meant == "left":
            return state._replace(facing=(state.facing - 1) % 4)
        if meant == "right":
            return state._replace(facing=(state.facing + 1) % 4)
        if meant == "done":
            return state
        front = self.front(state)
        thing = self.content(state, front)
        if meant == "forward":
            is_free = thing in (NOTHING, "lava") or thing.endswith(" goal") or thing.startswith("open ")
            return state._replace(cell=front) if is_free else state
        if meant == "pickup":
            if state.carries == NOTHING and thing.endswith((" key", " ball", " box")):
                return self._change(state, front, NOTHING)._replace(carries=thing)
            return state
        if meant == "drop":
            if state.carries != NOTHING and thing == NOTHING:
                return self._change(state, front, state.carries)._replace(carries=NOTHING)
            return state
        if thing.endswith(" box"):
            return self._change(state, front, NOTHING)
        if thing.endswith(" door"):
            how, color, _ = thing.split()
            if how == "locked" and state.carries != f"{self.opens.get(color, color)} key":
                return state
            return self._change(state, front, f"{'closed' if how == 'open' else 'open'} {color} door")
        return state

    def _change(self, state: GridState, cell: Cell, thing: str) -> GridState:
        changed = {**dict(state.changed), cell: thing}
        if self.cells.get(cell, NOTHING) == thing:
            del changed[cell]
        return state._replace(changed=tuple(sorted(changed.items())))

"""What stands in a cell: Minigrid's objects and their names.

* `make_thing` - an object from its name
* `name_thing` - the name of an object
* `scatter_things` - takes things away from where they stand, step by step
"""

from __future__ import annotations

from typing import Any

import numpy as np
from minigrid.core.world_object import Ball, Box, Door, Goal, Key, Lava, Wall, WorldObj

from drift_envs.envs.minigrid.model import NOTHING, STEPS, Cell

_KINDS = {"goal": Goal, "key": Key, "ball": Ball, "box": Box}


def make_thing(text: str) -> WorldObj | None:
    """What stands in a cell, from its name.

    Args:
        text: as the knob `objects` writes it.

    Example:
        >>> make_thing("locked red door").is_locked
        True
    """
    if text == NOTHING:
        return None
    if text == "wall":
        return Wall()
    if text == "lava":
        return Lava()
    if text.endswith(" door"):
        how, color, _ = text.split()
        return Door(color, is_open=how == "open", is_locked=how == "locked")
    color, kind = text.split()
    return _KINDS[kind](color)


def name_thing(thing: WorldObj | None) -> str:
    """The name of what stands in a cell, as the knob `objects` writes it.

    Args:
        thing: Minigrid's object; `None` where there is none.
    """
    if thing is None:
        return NOTHING
    if thing.type in ("wall", "lava"):
        return str(thing.type)
    if isinstance(thing, Door):
        how = "open" if thing.is_open else "locked" if thing.is_locked else "closed"
        return f"{how} {thing.color} door"
    return f"{thing.color} {thing.type}"


def scatter_things(grid: Any, agent: Cell, steps: int, rng: np.random.Generator) -> None:
    """Move every goal, key, ball and box to a free neighbouring cell, several times.

    Doors, walls, lava, other things and the agent are in the way, so that a thing never leaves its room. With equal
    generators, a smaller number of steps gives a place on the same way.

    Args:
        grid: Minigrid's grid, which is changed.
        agent: where the agent stands.
        steps: how often each thing moves.
        rng: draws the ways.
    """
    places = {
        (number % grid.width, number // grid.width): thing
        for number, thing in enumerate(grid.grid)
        if thing is not None and thing.type in _KINDS
    }
    for _ in range(steps):
        for (column, row), thing in list(places.items()):
            around = [(column + across, row + down) for across, down in STEPS]
            free = [cell for cell in around if cell != agent and grid.get(*cell) is None]
            if free:
                cell = free[int(rng.integers(len(free)))]
                grid.set(column, row, None)
                grid.set(*cell, thing)
                thing.init_pos = thing.cur_pos = cell
                del places[column, row]
                places[cell] = thing

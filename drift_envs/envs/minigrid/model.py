"""The rules of Minigrid's environments over the full state, for search and for oracles, without Minigrid.

A cell is a pair of column and row; what stands in it is a text such as `wall`, `locked red door` or `blue key`, and
`nothing` where it is empty. Source: `minigrid.minigrid_env.MiniGridEnv.step` and `minigrid.core.world_object`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from drift_envs.envs.minigrid import ACTIONS

Cell = tuple[int, int]
STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Column and row of a step, by direction: east, south, west, north."""

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


@dataclass(frozen=True)
class GridModel:
    """A map with its rules.

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
    opens: Mapping[str, str] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)

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
        thing = self.content(after, after.cell)
        task = self.task
        ended = paid = False
        if meant == "forward":
            is_goal = thing.endswith(" goal")
            ended = is_goal or thing == "lava"
            paid = is_goal and task.kind == "reach" and thing == f"{task.color} goal"
        if task.kind == "take":
            paid = meant == "pickup" and after.carries == task.thing
        elif task.kind == "open":
            paid = meant == "toggle" and any(self.content(after, cell).startswith("open ") for cell in task.cells)
        elif task.kind == "face":
            paid = self.front(after) in task.cells
        return GridResult(after, paid, ended or paid)

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

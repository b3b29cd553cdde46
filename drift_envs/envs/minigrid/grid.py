"""What Minigrid's environments have in common here: what stands in cells, knobs, the full state and how it is seen."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from minigrid.core.grid import Grid
from minigrid.core.world_object import Ball, Box, Door, Floor, Goal, Key, Lava, Wall, WorldObj

from drift_envs.checks import check_action
from drift_envs.envs.minigrid.dynamics import (
    ACTIONS,
    FACINGS,
    MINIGRID_KNOBS,
    NOTHING,
    STEPS,
    WIDEST_VIEW,
    Cell,
    GridModel,
    GridState,
    GridTask,
    read_cell,
    write_cell,
)
from drift_envs.errors import ArgumentError, StateError
from drift_envs.knobs import KnobTable
from drift_envs.tunable import TunableEnv

_KINDS = {"goal": Goal, "key": Key, "ball": Ball, "box": Box}
_ALL_KINDS = {kind.__name__: kind for kind in (Ball, Box, Door, Floor, Goal, Key, Lava, Wall)}
_HELD = ("carrying", "door", "obj")
"""Parts of the state that are things, which may stand in the grid too."""


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
    places = {cell: thing for cell, thing in _list_things(grid) if thing.type in _KINDS}
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


def _list_things(grid: Any) -> Iterator[tuple[Cell, WorldObj]]:
    """What stands on a map, row by row."""
    for number, thing in enumerate(grid.grid):
        if thing is not None:
            yield (number % grid.width, number // grid.width), thing


GOAL = "green"
"""The colour of Minigrid's goals."""

_LETTERS = {None: "?", NOTHING: ".", "wall": "#", "lava": "~"}
"""How cells are shown, those that are not seen first; all else is a thing."""

_LAYOUT_TAG, _WANDER_TAG = 0x6B1D, 0x6B1E
"""Set the streams that draw maps, and ways of things, apart from all other streams of the same number."""

_STATE = ("agent_pos", "agent_dir", "grid", "carrying", "step_count", "mission", "max_steps", "door", "obj", "_origin")


class GridKnobs(TunableEnv):
    """Knobs of Minigrid's environments, and what the text form and the oracle need of them.

    A subclass stands before Minigrid's class in the order of bases. With all knobs at their defaults it is
    bit-identical to that class. `layout`, `objects` and `wander` act from the next `reset` on, the other knobs at once.

    | knob | default | bounds | meaning |
    |---|---|---|---|
    | `layout` | 0 | 0 to 1000000 | number of the map with its start and task; 0 draws one for each episode |
    | `objects` | {} | | cell `x,y`: what stands there instead, for instance `wall`, `lava`, `blue key` |
    | `words` | {} | colours | colour in the task: the colour that it refers to, so that another object pays |
    | `opens` | {} | colours | colour of a door: the colour of the key that opens it |
    | `meanings` | {} | actions | action: the action that is carried out in its place |
    | `view_size` | 7 | 3 to 7, odd | cells across and ahead that are seen; the others look unseen |
    | `wander` | 0 | 0 to 200 | steps that goals, keys, balls and boxes have gone from where the map has them |
    | `transient` | 0.0 | 0 to 1 | probability that an action is lost, once |
    """

    knobs: ClassVar[KnobTable] = MINIGRID_KNOBS
    surfaces: ClassVar[tuple[str, ...]] = ("window", "clock")
    _layout: int = 0
    _objects: Mapping[str, str] = MINIGRID_KNOBS["objects"].default
    _words: Mapping[str, str] = MINIGRID_KNOBS["words"].default
    _opens: Mapping[str, str] = MINIGRID_KNOBS["opens"].default
    _meanings: Mapping[str, str] = MINIGRID_KNOBS["meanings"].default
    _view_size: int = WIDEST_VIEW
    _wander: int = 0
    _transient: float = 0.0
    _origin: GridModel | None = None
    """The map at the start of the episode; made when it is needed first, before anything has changed."""
    # Minigrid's
    grid: Any
    agent_pos: Any
    agent_dir: int
    carrying: Any
    door: Any
    mission: str
    render_mode: str | None
    _np_random: Any
    np_random: Any

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode.

        Args:
            seed: seeds the generator, which draws the map unless `layout` gives its number.
            options: not used.

        Raises:
            ArgumentError: if `objects` names a cell outside the map, or the agent's.
        """
        self._origin = None
        return super().reset(seed=seed, options=options)  # type: ignore[misc]

    def step(self, action: Any) -> Any:
        """Carry out an action, or the one that it means now.

        Args:
            action: 0 left, 1 right, 2 forward, 3 pick up, 4 drop, 5 toggle, 6 done.

        Raises:
            ArgumentError: if the action is none of these.
            StateError: before the first `reset`.
        """
        if self.agent_pos is None:
            raise StateError("`step` was called before `reset`; call `reset` first")
        number = check_action(action, len(ACTIONS))
        if self._origin is None:
            self._origin = self._read_model()
        if self._transient and self.np_random.random() < self._transient:
            number = ACTIONS.index("done")
        elif self._meanings:
            number = ACTIONS.index(self._meanings.get(ACTIONS[number], ACTIONS[number]))
        if self._opens and number == ACTIONS.index("toggle"):
            number = self._try_key(number)
        observation, reward, terminated, truncated, info = super().step(number)  # type: ignore[misc]
        reward, terminated = self._judge(ACTIONS[number], reward, terminated)
        return observation, reward, terminated, truncated, info

    def _judge(self, done: str, reward: float, terminated: bool) -> tuple[float, bool]:
        """Reward and end under the knobs, after an action that was carried out with those of Minigrid."""
        if reward and (task := self._task()).kind == "reach":
            reward *= name_thing(self.grid.get(*self.agent_pos)) == f"{task.color} goal"
        return reward, terminated

    def _try_key(self, toggle: int) -> int:
        """Unlock the door before the agent if the knob `opens` says so; what is carried out then."""
        door, key = self.grid.get(*self._front), self.carrying
        if not isinstance(door, Door) or not door.is_locked:
            return toggle
        if isinstance(key, Key) and key.color == self._opens.get(door.color, door.color):
            door.is_locked = False  # Minigrid's `toggle` opens it
            return toggle
        return ACTIONS.index("done")

    @property
    def _front(self) -> tuple[int, int]:
        column, row = self.front_pos  # type: ignore[attr-defined]
        return int(column), int(row)

    def _gen_grid(self, width: int, height: int) -> None:
        """Draw the map, by its number if there is one, put `objects` where they stand, and let things wander."""
        if self._layout:
            own, self._np_random = self._np_random, np.random.default_rng([self._layout, _LAYOUT_TAG])
            try:
                super()._gen_grid(width, height)  # type: ignore[misc]
            finally:
                self._np_random = own
        else:
            super()._gen_grid(width, height)  # type: ignore[misc]
        if self._objects:
            self.grid.wall_rect(0, 0, width, height)  # Minigrid fails where the agent faces what is off the map
        for cell, thing in self._objects.items():
            column, row = read_cell(cell)
            is_inside = 0 < column < width - 1 and 0 < row < height - 1
            if not is_inside or (column, row) == self._cell:
                raise ArgumentError(
                    f"`objects` should name cells inside the outer walls of a map of {width} x {height}, other than "
                    f"the agent's {self._cell}. Received {cell!r}"
                )
            made = make_thing(thing)
            self.grid.set(column, row, made)
            if made is not None:
                made.init_pos = made.cur_pos = (column, row)
        if self._wander:
            ways = np.random.default_rng([self._layout, _WANDER_TAG])
            scatter_things(self.grid, self._cell, self._wander, ways)

    def gen_obs_grid(self, agent_view_size: int | None = None) -> tuple[Any, Any]:
        """The cells in view, and which of them are seen.

        Args:
            agent_view_size: as Minigrid's.
        """
        grid, mask = super().gen_obs_grid(agent_view_size)  # type: ignore[misc]
        if self._view_size < WIDEST_VIEW:
            hidden = (mask.shape[0] - self._view_size) // 2
            seen = np.zeros_like(mask)
            seen[hidden : mask.shape[0] - hidden, mask.shape[1] - self._view_size :] = True
            mask = mask & seen
        return grid, mask

    # The full state, for the text form and the oracle.

    @property
    def grid_model(self) -> GridModel:
        """The map at the start of this episode with the rules of the present knobs. For evaluators.

        Raises:
            StateError: before the first `reset`.
        """
        if self.agent_pos is None:
            raise StateError("there is no episode before `reset`; call `reset` first")
        if self._origin is None:
            self._origin = self._read_model()
        return GridModel(self._origin.cells, self._origin.start, self._task(), self._opens, self._meanings)

    @property
    def grid_state(self) -> GridState:
        """The full state. For evaluators."""
        return self._state_in(self.grid_model)

    def _state_in(self, origin: GridModel) -> GridState:
        now = self._read_cells()
        cells = sorted({*now, *origin.cells})
        changed = tuple(
            (cell, now.get(cell, NOTHING))
            for cell in cells
            if now.get(cell, NOTHING) != origin.cells.get(cell, NOTHING)
        )
        return GridState(self._cell, int(self.agent_dir), name_thing(self.carrying), changed)

    @property
    def _cell(self) -> Cell:
        return int(self.agent_pos[0]), int(self.agent_pos[1])

    def _read_cells(self) -> dict[Cell, str]:
        return {cell: name_thing(thing) for cell, thing in _list_things(self.grid)}

    def _read_model(self) -> GridModel:
        start = GridState(self._cell, int(self.agent_dir), name_thing(self.carrying))
        return GridModel(self._read_cells(), start, self._task())

    def _task(self) -> GridTask:
        return GridTask("reach", self._words.get(GOAL, GOAL))

    def describe_state(self) -> str:
        """What the agent sees, as a JSON text with absolute cells.

        `rows` are the cells in view, north up, from the cell `corner`: `?` unseen, `.` free, `#` wall, `~` lava,
        `o` a thing, which `things` names. `changed` are the cells that the agent itself has changed.
        """
        seen = self._look()
        columns, rows = ([cell[axis] for cell in seen] for axis in (0, 1))
        lines = [
            "".join(_LETTERS.get(seen.get((column, row)), "o") for column in range(min(columns), max(columns) + 1))
            for row in range(min(rows), max(rows) + 1)
        ]
        changed = () if self._origin is None else self._state_in(self._origin).changed
        return json.dumps(
            {
                "pos": list(self._cell),
                "facing": FACINGS[int(self.agent_dir)],
                "carries": name_thing(self.carrying),
                "changed": {write_cell(cell): thing for cell, thing in changed},
                "corner": [min(columns), min(rows)],
                "rows": lines,
                "things": {
                    write_cell(cell): thing
                    for cell, thing in sorted(seen.items(), key=lambda one: one[0][::-1])
                    if thing not in _LETTERS
                },
            }
        )

    def _look(self) -> dict[Cell, str]:
        """The cells that the agent sees, and its own."""
        _, mask = self.gen_obs_grid()
        size = mask.shape[0]
        forward, right = np.array(self.dir_vec), np.array(self.right_vec)  # type: ignore[attr-defined]
        corner = np.array(self.agent_pos) + forward * (size - 1) - right * (size // 2)
        cells = [self._cell]
        for across, ahead in np.argwhere(mask):
            column, row = map(int, corner - forward * ahead + right * across)
            if 0 <= column < self.grid.width and 0 <= row < self.grid.height:
                cells.append((column, row))
        return {cell: name_thing(self.grid.get(*cell)) for cell in cells}

    def admissible_actions(self) -> tuple[int, ...]:
        """The actions that may have an effect, whatever they mean: 3 to 5 at a thing or with one in the hand."""
        thing = name_thing(self.grid.get(*self._front))
        is_thing = thing.endswith((" key", " ball", " box", " door"))
        return (0, 1, 2, 3, 4, 5) if is_thing or self.carrying is not None else (0, 1, 2)

    def save_state(self) -> dict[str, Any]:
        """The state of the episode, without knobs and random generator."""
        return {name: getattr(self, name) for name in _STATE if hasattr(self, name)}

    def save_running(self) -> dict[str, Any]:
        """The state of the episode for another process, with each thing once and its number in the other places."""
        state = self.save_state()
        things: list[WorldObj] = []

        def number(thing: WorldObj | None) -> int | None:
            if thing is None:
                return None
            found = next((index for index, other in enumerate(things) if other is thing), len(things))
            if found == len(things):
                things.append(thing)
            return found

        grid = state.pop("grid")
        cells = [number(thing) for thing in grid.grid]
        held = {name: number(state.pop(name)) for name in _HELD if name in state}
        rows = []
        for thing in things:  # grows by what is in boxes
            parts = {name: copy.deepcopy(value) for name, value in vars(thing).items() if name != "contains"}
            rows.append([type(thing).__name__, parts, number(thing.contains)])
        return {
            "state": copy.deepcopy(state),
            "grid": [grid.width, grid.height, cells],
            "held": held,
            "things": rows,
        }

    def load_running(self, saved: Any) -> None:
        """Restore the state of an episode of another process.

        Args:
            saved: from `save_running`.
        """
        things: list[Any] = []
        for kind, parts, _ in saved["things"]:
            thing = object.__new__(_ALL_KINDS[kind])
            vars(thing).update(parts)
            things.append(thing)
        for thing, (_, _, inside) in zip(things, saved["things"], strict=True):
            thing.contains = None if inside is None else things[inside]
        width, height, cells = saved["grid"]
        grid = Grid(width, height)
        grid.grid = [None if number is None else things[number] for number in cells]
        held = {name: None if number is None else things[number] for name, number in saved["held"].items()}
        self.load_state({**saved["state"], "grid": grid, **held})

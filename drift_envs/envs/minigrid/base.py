"""What Minigrid's environments share; needs the extra `minigrid`.

* `GridKnobs` - knobs, state, model, and what is seen as text
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from minigrid.core.world_object import Door, Key, WorldObj

from drift_envs.checks import check_action
from drift_envs.envs.minigrid.knobs import ACTIONS, MINIGRID_KNOBS, WIDEST_VIEW, read_cell
from drift_envs.envs.minigrid.model import NOTHING, Cell, GridModel, GridState, GridTask
from drift_envs.envs.minigrid.things import make_thing, name_thing, scatter_things
from drift_envs.errors import ArgumentError, StateError
from drift_envs.knobs import KnobTable, Value
from drift_envs.tunable import KnobAttribute, TunableEnv

FACINGS = ("east", "south", "west", "north")
"""The directions, in the order of their numbers."""

_LAYOUT_TAG, _WANDER_TAG = 0x6B1D, 0x6B1E
"""Set the streams that draw maps, and ways of things, apart from all other streams of the same number."""

_STATE = ("agent_pos", "agent_dir", "grid", "carrying", "step_count", "mission", "max_steps", "door", "_origin")


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
    goal_kind: ClassVar[str] = "reach"
    goal_color: ClassVar[str] = "green"
    layout = KnobAttribute()
    objects = KnobAttribute()
    words = KnobAttribute()
    opens = KnobAttribute()
    meanings = KnobAttribute()
    view_size = KnobAttribute()
    wander = KnobAttribute()
    transient = KnobAttribute()
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

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        for name, value in values.items():
            setattr(self, f"_{name}", value)

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
        if terminated and self.goal_kind == "reach" and reward:
            goal = self.grid.get(*self.agent_pos)
            if goal is not None and goal.color != self._words.get(self.goal_color, self.goal_color):
                reward = 0
        return observation, reward, terminated, truncated, info

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
        for cell, thing in self._objects.items():
            column, row = read_cell(cell)
            if column >= width or row >= height or (column, row) == tuple(self.agent_pos):
                raise ArgumentError(
                    f"`objects` should name cells of a map of {width} x {height}, other than the agent's "
                    f"{tuple(map(int, self.agent_pos))}. Received {cell!r}"
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
        wide = self.grid.width
        return {
            (number % wide, number // wide): name_thing(thing)
            for number, thing in enumerate(self.grid.grid)
            if thing is not None
        }

    def _read_model(self) -> GridModel:
        start = GridState(self._cell, int(self.agent_dir), name_thing(self.carrying))
        return GridModel(self._read_cells(), start, self._task())

    def _task(self) -> GridTask:
        return GridTask("reach", self._words.get(self.goal_color, self.goal_color))

    def describe_state(self) -> str:
        """What the agent sees, as a JSON text with absolute cells.

        `rows` are the cells in view, north up, from the cell `corner`: `?` unseen, `.` free, `#` wall, `~` lava,
        `o` a thing, which `things` names. `changed` are the cells that the agent itself has changed.
        """
        state = self._state_in(self._origin) if self._origin is not None else None
        grid, mask = self.gen_obs_grid()
        seen = grid.encode(mask)
        size = seen.shape[0]
        forward, right = np.array(self.dir_vec), np.array(self.right_vec)  # type: ignore[attr-defined]
        corner = np.array(self.agent_pos) + forward * (size - 1) - right * (size // 2)
        found: dict[Cell, WorldObj | None] = {}
        for across in range(size):
            for ahead in range(size):
                column, row = corner - forward * ahead + right * across
                if seen[across, ahead, 0] and 0 <= column < self.grid.width and 0 <= row < self.grid.height:
                    found[int(column), int(row)] = self.grid.get(int(column), int(row))
        here = self._cell
        found[here] = self.grid.get(*here)
        left, top = min(cell[0] for cell in found), min(cell[1] for cell in found)
        letters, things = {}, {}
        for cell, thing in sorted(found.items(), key=lambda one: (one[0][1], one[0][0])):
            name = name_thing(thing)
            letters[cell] = {NOTHING: ".", "wall": "#", "lava": "~"}.get(name, "o")
            if letters[cell] == "o":
                things[f"{cell[0]},{cell[1]}"] = name
        rows = [
            "".join(letters.get((column, row), "?") for column in range(left, max(cell[0] for cell in found) + 1))
            for row in range(top, max(cell[1] for cell in found) + 1)
        ]
        shown = {
            "pos": list(here),
            "facing": FACINGS[int(self.agent_dir)],
            "carries": name_thing(self.carrying),
            "changed": {} if state is None else {f"{cell[0]},{cell[1]}": thing for cell, thing in state.changed},
            "corner": [left, top],
            "rows": rows,
            "things": things,
        }
        return json.dumps(shown)

    def admissible_actions(self) -> tuple[int, ...]:
        """The actions that may have an effect, whatever they mean: 3 to 5 at a thing or with one in the hand."""
        thing = name_thing(self.grid.get(*self._front))
        is_thing = thing.endswith((" key", " ball", " box", " door"))
        return (0, 1, 2, 3, 4, 5) if is_thing or self.carrying is not None else (0, 1, 2)

    def save_state(self) -> dict[str, Any]:
        """The state of the episode, without knobs and random generator."""
        return {name: getattr(self, name) for name in _STATE if hasattr(self, name)}

"""The tables of many lakes in one stack, for steps of all sub-environments at once.

* `LakeWorlds` - what follows on each state and move, of every map that is in use
* `CELLS` - entries a state
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drift_envs.envs.frozen_lake.model import Map, moves, tiles
from drift_envs.knobs import FrozenMapping

CELLS = 6
"""A state's entries, by move: up, left, down, right, up, left. So the move before an action, the action itself
and the move after it are neighbours."""

LEFT = 1
"""The entry of action 0. A state is the place of this entry in the stack, so that state + action is that of the
intended move."""

_MOVES = np.array([3, 0, 1, 2, 3, 0])


class LakeWorlds:
    """What follows on each state and move, of every map that is in use.

    A *world* is a map with its goal rewards. Worlds stand in slots of equal size. The second half of a slot
    is the shore, a place for every tile: whoever comes to a goal or a hole ends up in the place ashore of it.
    From there any action leads to the start tile and pays nothing, which is what a dead step does.

    Args:
        room: the states of the largest map.
        reward_schedule: rewards of goal, hole and plain ice.
        in_use: tells which worlds are still needed.

    Attributes:
        size: the entries of a slot.
        shore: from a state to its place ashore.
        following: the state that follows, by entry.
        seen: the observation that follows, by entry.
        reward: its reward, by entry.
        ended: whether the episode ends, by entry.
        columns, rows: the size of each world's map.
        first: the first start tile of each world.
    """

    def __init__(
        self, room: int, reward_schedule: tuple[float, float, float], in_use: Callable[[], np.ndarray]
    ) -> None:
        self.room = room
        self.size = 2 * room * CELLS
        self.shore = room * CELLS
        self._reward_schedule = reward_schedule
        self._in_use = in_use
        self._slots: dict[tuple[Map, FrozenMapping], int] = {}
        self._free: list[int] = []
        self.maps: list[tuple[Map, FrozenMapping]] = []
        self.has_several_starts = False
        self._stack(0)

    def _stack(self, slots: int) -> None:
        """Make room for so many worlds."""
        before = len(self.maps)
        parts = {"following": np.int64, "seen": np.int64, "reward": np.float64, "ended": np.bool_}
        for name, kind in parts.items():
            grown: np.ndarray = np.zeros(slots * self.size, kind)
            if before:
                grown[: before * self.size] = getattr(self, name)
            setattr(self, name, grown)
        for name in ("columns", "rows", "first", "starts"):
            old = getattr(self, name, np.ones(0, np.int64))
            setattr(self, name, np.concatenate((old, np.ones(slots - before, np.int64))))
        self._free += range(before, slots)
        self.maps += [((), FrozenMapping())] * (slots - before)

    following: np.ndarray
    seen: np.ndarray
    reward: np.ndarray
    ended: np.ndarray
    columns: np.ndarray
    rows: np.ndarray
    first: np.ndarray
    starts: np.ndarray

    def code(self, lake: Map, goal_rewards: FrozenMapping) -> int:
        """The number of a world, whose tables are built if there are none.

        Args:
            lake: the map.
            goal_rewards: rewards of single goals.
        """
        key = (lake, goal_rewards)
        if key not in self._slots:
            if not self._free:
                self._forget()
            slot = self._free.pop(0)
            self._build(slot, lake, goal_rewards)
            self._slots[key] = slot
            self.maps[slot] = key
        return self._slots[key]

    def start_states(self, code: int) -> np.ndarray:
        """All start tiles of a world, as states of its map.

        Args:
            code: the world.
        """
        letters = tiles(self.maps[code][0])
        return np.array([state for state, letter in enumerate(letters) if letter == "S"])

    def _forget(self) -> None:
        """Free the slots of worlds that nobody needs; more slots if there are few."""
        needed = set(self._in_use().tolist())
        for key, slot in list(self._slots.items()):
            if slot not in needed:
                del self._slots[key]
                self._free.append(slot)
        if len(self._free) <= len(self.maps) // 4:
            self._stack(max(4, 2 * len(self.maps)))

    def _build(self, slot: int, lake: Map, goal_rewards: FrozenMapping) -> None:
        rows, columns = len(lake), len(lake[0])
        count = rows * columns
        letters = np.array(list(tiles(lake)))
        goal, hole, ice = self._reward_schedule
        paid = np.where(letters == "G", goal, np.where(letters == "H", hole, ice)).astype(float)
        for key, reward in goal_rewards.items():
            row, column = (int(part) for part in key.split(","))
            paid[row * columns + column] = reward
        ends = (letters == "G") | (letters == "H")
        reached = np.array(moves(rows, columns))[:, _MOVES]
        # Gymnasium's rule: whoever stands on a hole or a goal stays, is paid nothing, and the episode ends.
        reached[ends] = np.flatnonzero(ends)[:, None]
        base = slot * self.size
        place = slice(base, base + count * CELLS)
        self.following[place] = base + CELLS * reached.reshape(-1) + LEFT + self.shore * ends[reached].reshape(-1)
        self.seen[place] = reached.reshape(-1)
        self.reward[place] = np.where(ends[:, None], 0.0, paid[reached]).reshape(-1)
        self.ended[place] = ends[reached].reshape(-1)
        starts = np.flatnonzero(letters == "S")
        shore = slice(base + self.shore, base + self.size)
        self.following[shore] = base + CELLS * starts[0] + LEFT
        self.seen[shore] = starts[0]
        self.reward[shore], self.ended[shore] = 0.0, False
        self.rows[slot], self.columns[slot] = rows, columns
        self.first[slot], self.starts[slot] = starts[0], len(starts)
        self.has_several_starts = self.has_several_starts or len(starts) > 1

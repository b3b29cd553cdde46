"""Transition tables of many maps in one stack, for steps of all sub-environments at once.

* `LakeTableStack` - next state, observation, reward and termination by state and move, of all maps in use
* `CELLS` - entries for each state
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drift_envs.envs.frozen_lake.model import Map, moves, tiles
from drift_envs.knobs import FrozenMapping

CELLS = 6
"""Entries for each state, by move: up, left, down, right, up, left. The two moves to which an agent may slip are
adjacent to the entry of its action."""

LEFT = 1
"""The entry of action 0. A state is the index of this entry in the stack, so that `state + action` is the index
of the entry of the intended move."""

_MOVES = np.array([3, 0, 1, 2, 3, 0])


class LakeTableStack:
    """Next state, observation, reward and termination by state and move, of all maps in use.

    The tables of a map with its goal rewards fill one slot; all slots have equal size. Each tile has two
    states: the first half of a slot is for running episodes, the second half for ended ones. A transition
    to a goal or a hole leads into the second half; from there each action leads to the start tile with
    reward 0, which is the reset step of the autoreset mode `NextStep`::

        slot 0                                      slot 1
        [ running: tile 0, 1, ... | ended: tile 0, 1, ... ][ running: ...
          ^ 6 entries (`CELLS`)     ^ + `ended_offset`       ^ + `size`

    Args:
        states: the number of tiles of the largest map.
        reward_schedule: rewards of goal, hole and frozen tile.
        used_slots: returns the slots that are in use.

    Attributes:
        size: entries of a slot.
        ended_offset: entries from a running state to the ended state of the same tile.
        next_state: by entry.
        observation: by entry.
        reward: by entry.
        ended: whether the episode terminates, by entry.
        columns: columns of the map, by slot.
        rows: rows of the map, by slot.
        first_start: the first start tile, by slot.
        starts: the number of start tiles, by slot.
        maps: map and goal rewards, by slot.
        has_several_starts: whether any map has had more than one start tile.
    """

    def __init__(
        self, states: int, reward_schedule: tuple[float, float, float], used_slots: Callable[[], np.ndarray]
    ) -> None:
        self.states = states
        self.size = 2 * states * CELLS
        self.ended_offset = states * CELLS
        self._reward_schedule = reward_schedule
        self._used_slots = used_slots
        self._slots: dict[tuple[Map, FrozenMapping], int] = {}
        self._free: list[int] = []
        self.maps: list[tuple[Map, FrozenMapping]] = []
        self.has_several_starts = False
        self._resize(0)

    def _resize(self, slots: int) -> None:
        """Enlarge the tables to a number of slots."""
        before = len(self.maps)
        parts = {"next_state": np.int64, "observation": np.int64, "reward": np.float64, "ended": np.bool_}
        for name, kind in parts.items():
            grown: np.ndarray = np.zeros(slots * self.size, kind)
            if before:
                grown[: before * self.size] = getattr(self, name)
            setattr(self, name, grown)
        for name in ("columns", "rows", "first_start", "starts"):
            old = getattr(self, name, np.ones(0, np.int64))
            setattr(self, name, np.concatenate((old, np.ones(slots - before, np.int64))))
        self._free += range(before, slots)
        self.maps += [((), FrozenMapping())] * (slots - before)

    next_state: np.ndarray
    observation: np.ndarray
    reward: np.ndarray
    ended: np.ndarray
    columns: np.ndarray
    rows: np.ndarray
    first_start: np.ndarray
    starts: np.ndarray

    def slot(self, lake: Map, goal_rewards: FrozenMapping) -> int:
        """The slot of a map with its goal rewards; its tables are built if there are none."""
        key = (lake, goal_rewards)
        if key not in self._slots:
            if not self._free:
                self._free_slots()
            slot = self._free.pop(0)
            self._build(slot, lake, goal_rewards)
            self._slots[key] = slot
            self.maps[slot] = key
        return self._slots[key]

    def start_states(self, slot: int) -> np.ndarray:
        """All start tiles of the map in a slot."""
        letters = tiles(self.maps[slot][0])
        return np.array([state for state, letter in enumerate(letters) if letter == "S"])

    def _free_slots(self) -> None:
        """Free the slots that are not in use, and add slots if there are few."""
        needed = set(self._used_slots().tolist())
        for key, slot in list(self._slots.items()):
            if slot not in needed:
                del self._slots[key]
                self._free.append(slot)
        if len(self._free) <= len(self.maps) // 4:
            self._resize(max(4, 2 * len(self.maps)))

    def _build(self, slot: int, lake: Map, goal_rewards: FrozenMapping) -> None:
        rows, columns = len(lake), len(lake[0])
        count = rows * columns
        letters = np.array(list(tiles(lake)))
        goal, hole, frozen = self._reward_schedule
        rewards = np.where(letters == "G", goal, np.where(letters == "H", hole, frozen)).astype(float)
        for key, reward in goal_rewards.items():
            row, column = (int(part) for part in key.split(","))
            rewards[row * columns + column] = reward
        ends = (letters == "G") | (letters == "H")
        reached = np.array(moves(rows, columns))[:, _MOVES]
        # Gymnasium's rule: a step on a hole or a goal stays there with reward 0, and the episode ends.
        reached[ends] = np.flatnonzero(ends)[:, None]
        base = slot * self.size
        running = slice(base, base + count * CELLS)
        self.next_state[running] = (
            base + CELLS * reached.reshape(-1) + LEFT + self.ended_offset * ends[reached].reshape(-1)
        )
        self.observation[running] = reached.reshape(-1)
        self.reward[running] = np.where(ends[:, None], 0.0, rewards[reached]).reshape(-1)
        self.ended[running] = ends[reached].reshape(-1)
        starts = np.flatnonzero(letters == "S")
        ended = slice(base + self.ended_offset, base + self.size)
        self.next_state[ended] = base + CELLS * starts[0] + LEFT
        self.observation[ended] = starts[0]
        self.reward[ended], self.ended[ended] = 0.0, False
        self.rows[slot], self.columns[slot] = rows, columns
        self.first_start[slot], self.starts[slot] = starts[0], len(starts)
        self.has_several_starts = self.has_several_starts or len(starts) > 1

"""The native vector environment of the frozen lake, with the transition tables of many maps in one stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from drift_envs.envs import FrozenLake
from drift_envs.envs.frozen_lake.dynamics import Map, moves, tile_rewards, tiles
from drift_envs.errors import ArgumentError
from drift_envs.knobs import FrozenMapping, Value
from drift_envs.vector.base import DriftVectorEnv
from drift_envs.vector.dynamics import IntegerActions, SideDraws, half_threshold, refuse_poison
from drift_envs.vector.knob_pool import Columns

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
        rewards = np.array(tile_rewards(lake, goal_rewards, self._reward_schedule), float)
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


_TABLE_KNOBS = ("map", "goal_rewards")


class VectorFrozenLake(DriftVectorEnv):
    """N frozen lakes, each with its own drift.

    A step looks up the transitions of all lakes in the tables of `LakeTableStack`. One random number a step
    and lake decides whether the agent slips, and to which side.

    `get_attr` and `set_attr` take the names of the knobs and `s`, the state. See `DriftVectorEnv` for the
    arguments.

    Example:
        >>> from drift_envs.wrappers.drift import DriftWrapper
        >>> lakes = VectorFrozenLake(DriftWrapper(FrozenLake(is_slippery=False, show_prob=False)), num_envs=3)
        >>> lakes.reset(seed=0)
        (array([0, 0, 0]), {})
        >>> lakes.step(np.array([0, 1, 2]))[0]
        array([0, 4, 1])
    """

    kind = FrozenLake
    state_names: ClassVar[tuple[str, ...]] = ("s", "lastaction")

    def _make_arrays(self) -> None:
        number = self.num_envs
        self._half, self._transient = self.pool.columns["half"], self.pool.columns["transient"]
        self._slot = self.pool.columns["slot"]
        self._state_slot = self._slot.copy()  # the slot of the tables to which `_state` belongs
        self._base = self._state_slot * self._tables.size
        self._state = self._base + LEFT
        self._lastaction = np.full(number, -1, np.int64)
        self._cells = np.zeros(number, np.int64)
        self._slipped = np.zeros((2, number), bool)
        self._side = np.zeros(number, np.int8)
        self._previous = self._state.copy()
        # Columns of random numbers are drawn if they may ever be needed, so that the streams stay aligned.
        self._can_slip = "slip" in self.driven or bool(self._half.any())
        self._side_draws = SideDraws(number)
        self._actions = IntegerActions(number, int(self._lake.action_space.n))
        self._make_views()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the views, which a pickle stores as arrays of their own."""
        self.__dict__.update(state)
        self._make_views()

    def _make_views(self) -> None:
        """Keep a view of the booleans as integers, since creating one takes as long as using it."""
        self._slipped_numbers = self._slipped.view(np.int8)

    def _make_columns(self) -> dict[str, np.ndarray]:
        lake: Any = self.single_env.unwrapped
        self._lake = lake
        self._tables = LakeTableStack(int(lake.observation_space.n), lake.reward_schedule, self._used_slots)
        self._pending: list[int] = []
        now = self._lake.read_knobs()
        self._slip = np.full(self.num_envs, now["slip"])  # valid if the schedule does not drive it
        return {
            "half": half_threshold(self._slip),
            "transient": np.full(self.num_envs, now["transient"]),
            "slot": np.full(self.num_envs, self._tables.slot(now["map"], now["goal_rewards"]), np.int64),
        }

    def _encode(self, values: Mapping[str, Any]) -> Columns:
        columns: dict[str, np.ndarray] = {name: values[name] for name in ("slip", "transient") if name in values}
        if "slip" in values:
            columns["half"] = half_threshold(values["slip"])
        if "map" in values or "goal_rewards" in values:
            count = len(next(iter(values.values())))
            maps = values.get("map", [self._lake.map] * count)
            rewards = values.get("goal_rewards", [self._lake.goal_rewards] * count)
            for lake, goal_rewards in zip(maps, rewards, strict=True):
                self._pending.append(self._tables.slot(lake, goal_rewards))
            columns["slot"] = np.array(self._pending)
            self._pending.clear()
        return columns

    def _used_slots(self) -> np.ndarray:
        """The slots that lakes use now, may use according to the pool, or are about to get."""
        if not hasattr(self, "pool"):
            return np.zeros(0, np.int64)
        used = [np.array(self._pending, np.int64), self.pool.columns["slot"], self._state_slot]
        if "slot" in self.pool.pool:
            used.append(self.pool.pool["slot"].reshape(-1))
        return np.unique(np.concatenate(used))

    def _restart_draws(self) -> None:
        super()._restart_draws()
        self._side_draws.restart()

    def save_dynamics(self) -> dict[str, Any]:
        """The tiles, the last actions and the numbers that are drawn ahead."""
        has_ended, tile = np.divmod((self._state - self._base) // CELLS, self._tables.states)
        return {
            "tile": tile,
            "has_ended": has_ended,
            "lastaction": self._lastaction.copy(),
            "sides": self._side_draws.save(),
        }

    def load_dynamics(self, saved: Mapping[str, Any]) -> None:
        """Restore the tiles, which need not lie on the map: the next maps cut them.

        Args:
            saved: from `save_dynamics`.

        Raises:
            ArgumentError: if a tile is not on its map.
        """
        tables, tile = self._tables, saved["tile"]
        size = tables.rows[self._state_slot] * tables.columns[self._state_slot]
        if tile.shape != size.shape or (tile < 0).any() or (tile >= size).any():
            raise ArgumentError(f"`tile` should be a tile of each map. Received {tile!r}")
        self._state[:] = self._base + CELLS * tile + LEFT + (saved["has_ended"] > 0) * tables.ended_offset
        self._lastaction[:] = saved["lastaction"]
        self._side_draws.load(saved["sides"])

    def _has_derived_arrays(self) -> bool:
        return bool(self.driven.intersection(_TABLE_KNOBS))

    def _update_derived(self, indices: np.ndarray) -> None:
        self._change_maps(indices[self._slot[indices] != self._state_slot[indices]])

    def _mark_truncated(self, truncations: np.ndarray) -> None:
        indices = truncations.nonzero()[0]
        running = indices[self._state[indices] - self._base[indices] < self._tables.ended_offset]
        self._state[running] += self._tables.ended_offset

    def _change_maps(self, indices: np.ndarray) -> None:
        """Change the maps of lakes; the agent keeps its row and column, clipped to the new map."""
        if not len(indices):
            return
        tables = self._tables
        old, new = self._state_slot[indices], self._slot[indices]
        has_ended, tile = np.divmod((self._state[indices] - self._base[indices]) // CELLS, tables.states)
        row, column = np.divmod(tile, tables.columns[old])
        row, column = np.minimum(row, tables.rows[new] - 1), np.minimum(column, tables.columns[new] - 1)
        self._state_slot[indices] = new
        self._base[indices] = base = new * tables.size
        tile = row * tables.columns[new] + column
        self._state[indices] = base + CELLS * tile + LEFT + has_ended * tables.ended_offset

    def _start_episodes(self, mask: np.ndarray, options: Mapping[str, Any]) -> None:
        indices = mask.nonzero()[0]
        self._state[indices] = self._base[indices] + CELLS * self._start_states(indices) + LEFT
        self._lastaction[indices] = -1

    def _start_states(self, indices: np.ndarray) -> np.ndarray:
        """The initial states, drawn uniformly if a map has several start tiles."""
        tables, slots = self._tables, self._state_slot[indices]
        states: np.ndarray = tables.first_start[slots]
        several = np.flatnonzero(tables.starts[slots] > 1)
        if len(several):
            chosen = indices[several]
            chances = self._start_draws.at(chosen, self.clocks.episodes(chosen))
            for position, slot, chance in zip(several.tolist(), slots[several].tolist(), chances.tolist(), strict=True):
                starts = tables.start_states(slot)
                states[position] = starts[int(chance * len(starts))]
        return states

    def _observe(self) -> np.ndarray:
        observations: np.ndarray = (self._state - self._base) // CELLS
        np.remainder(observations, self._tables.states, out=observations)
        return observations

    def _reset_infos(self, mask: np.ndarray) -> dict[str, Any]:
        return {"prob": np.where(mask, 1.0, 0.0), "_prob": mask.copy()} if self._lake.shows_prob else {}

    def _transition(
        self, actions: np.ndarray, resetting: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        tables, state, cells = self._tables, self._state, self._cells
        np.add(state, actions, out=cells)
        if self._can_slip:
            one, other = self._side_draws.step(self.np_random)
            before, after = self._slipped
            np.less(one, self._half, out=before)
            np.less(other, self._half, out=after)
            np.subtract(self._slipped_numbers[1], self._slipped_numbers[0], out=self._side)
            np.add(cells, self._side, out=cells)
        infos = self._probabilities(resetting) if self._lake.shows_prob else {}
        if self._has_false_responses:
            np.copyto(self._previous, state)
        observations, rewards = tables.observation.take(cells), tables.reward.take(cells)
        ended = tables.ended.take(cells)
        tables.next_state.take(cells, out=state, mode="wrap")  # all cells are valid, and other modes are slower
        if self._has_false_responses:
            self._replace_responses(actions, observations, rewards, ended)
        if resetting is not None and tables.has_several_starts:
            indices = resetting.nonzero()[0]
            observations[indices] = starts = self._start_states(indices)
            state[indices] = self._base[indices] + CELLS * starts + LEFT
        if self.render_mode is not None:
            self._lastaction[:] = actions
            if resetting is not None:
                self._lastaction[resetting] = -1
        return observations, rewards, ended, infos

    def _check_actions(self, actions: Any) -> np.ndarray:
        return self._actions.check(actions)

    def _probabilities(self, resetting: np.ndarray | None) -> dict[str, Any]:
        """The probability of the transition, as Gymnasium's `info` shows it."""
        slip = self._slip  # shown only without a schedule
        prob = np.where(self._side != 0, 0.5 * slip, 1.0 - slip)
        # On a hole or a goal, the transition to the same tile has probability 1.
        stays = self._tables.next_state[self._state] == self._state + self._tables.ended_offset
        prob[stays] = 1.0
        if resetting is not None:
            prob[resetting] = 1.0
        return {"prob": prob, "_prob": np.ones(self.num_envs, bool)}

    def _replace_responses(
        self, actions: np.ndarray, observations: np.ndarray, rewards: np.ndarray, ended: np.ndarray
    ) -> None:
        """Replace transitions by those to another neighbouring tile, with probability `transient`."""
        tables, numbers = self._tables, self._response_draws.step(self.np_random)
        false = np.flatnonzero(numbers < self._transient)
        false = false[self._previous[false] - self._base[false] < tables.ended_offset]
        state = self._previous[false]
        cells = state[:, None] + np.arange(4)
        next_states = tables.next_state[cells]
        true = tables.next_state[state + actions[false]]
        is_target = (next_states != state[:, None]) & (next_states != true[:, None]) & ~tables.ended[cells]
        counts = is_target.sum(axis=1)
        # Below the threshold the number is again uniform and selects one of the targets.
        chance = numbers[false] / self._transient[false]
        chosen = np.minimum((chance * counts).astype(np.int64), np.maximum(counts - 1, 0))
        direction = (np.cumsum(is_target, axis=1) > chosen[:, None]).argmax(axis=1)
        target = next_states[np.arange(len(false)), direction]
        false, target = false[counts > 0], target[counts > 0]
        self._state[false] = target
        observations[false] = (target - self._base[false]) // CELLS
        rewards[false] = self._lake.reward_schedule[2]
        ended[false] = False

    def pose(self, env: Any, index: int) -> None:
        """Copy state and last action to the single lake."""
        env.s = self.read_state(index, "s")
        env.lastaction = self.read_state(index, "lastaction")

    def read_state(self, index: int, name: str) -> Any:
        """The state `s` of a lake, or its `lastaction`."""
        if name == "s":
            return int(self._state[index] - self._base[index]) // CELLS % self._tables.states
        last = int(self._lastaction[index])
        return None if last < 0 else last

    def write_state(self, index: int, name: str, value: Any) -> None:
        """Set the state `s` of a lake.

        Raises:
            ArgumentError: if the map has no such state, or the name is another one.
        """
        slot = int(self._state_slot[index])
        states = int(self._tables.rows[slot] * self._tables.columns[slot])
        if name != "s" or not 0 <= int(value) < states:
            raise ArgumentError(f"`s` should be a state from 0 to {states - 1}. Received {name}={value!r}")
        offset = self._tables.ended_offset if self._ended[index] else 0
        self._state[index] = self._base[index] + CELLS * int(value) + LEFT + offset

    def read_knob(self, index: int, name: str) -> Value:
        """Read the current value of a knob back from the arrays of the dynamics."""
        if name == "slip":
            self.clocks.settle()
            return self.pool.value(name, index) if name in self.pool.pool else float(self._slip[index])
        if name == "transient":
            return float(self._transient[index])
        if name == "poison_after":
            return 0
        lake, goal_rewards = self._tables.maps[int(self._state_slot[index])]
        return lake if name == "map" else goal_rewards

    def write_knob(self, index: int, name: str, value: Value) -> None:
        """Set a knob that the schedule does not drive to a canonical value.

        Raises:
            ArgumentError: if the schedule drives the other one of `map` and `goal_rewards`, or the knob is
                `poison_after`.
        """
        if name == "poison_after":
            refuse_poison(value)
        elif name == "slip":
            self._slip[index] = value
            self._half[index] = half_threshold(np.array(value))
            self._can_slip = self._can_slip or value > 0
        elif name == "transient":
            self._transient[index] = value
            self._has_false_responses = self._has_false_responses or value > 0
        elif self.driven.intersection(_TABLE_KNOBS):
            raise ArgumentError(f"`{name}` should stay as it is, since the schedule drives {sorted(self.driven)}")
        else:
            values = {each: self.read_knob(index, each) for each in _TABLE_KNOBS}
            values[name] = value
            if len(values["map"]) * len(values["map"][0]) > self._tables.states:
                raise ArgumentError(f"`map` should have at most {self._tables.states} tiles. Received {value!r}")
            self._slot[index] = self._tables.slot(values["map"], values["goal_rewards"])
        self._change_maps(np.array([index])[self._slot[index : index + 1] != self._state_slot[index : index + 1]])

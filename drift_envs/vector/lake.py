"""Thousands of frozen lakes at once.

* `VectorFrozenLake` - the native vector environment of `DriftFrozenLake-v0`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from drift_envs.envs import FrozenLake
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.vector.actions import WholeActions
from drift_envs.vector.base import DriftVectorEnv
from drift_envs.vector.draws import SideDraws, StepDraws, half_threshold
from drift_envs.vector.knob_pool import Columns
from drift_envs.vector.lake_worlds import CELLS, LEFT, LakeWorlds

_WORLD = ("map", "goal_rewards")


class VectorFrozenLake(DriftVectorEnv):
    """Thousands of frozen lakes at once, each with its own drift.

    A step looks up, for all lakes together, what follows on state and action in the tables of
    `LakeWorlds`. One random number a step and lake decides whether it slips and to which side.

    `get_attr` and `set_attr` know the knobs and `s`, the state.

    Args:
        world: a single drifting lake.
        num_envs: how many lakes, N.
        max_episode_steps: the steps of an episode, `None` for no limit.
        autoreset_mode: `NextStep`, `SameStep` or `Disabled`.
        share_timeline: whether all lakes follow the timeline of the first.
        notify: what `info["drift"]` tells: `none`, `change` or `full`.

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

    def _build(self) -> None:
        number = self.num_envs
        self._half, self._transient = self.flow.columns["half"], self.flow.columns["transient"]
        self._code = self.flow.columns["world"]
        self._laid = self._code.copy()  # the world that `_state` belongs to
        self._base = self._laid * self._worlds.size
        self._state = self._base + LEFT
        self._lastaction = np.full(number, -1, np.int64)
        self._cells = np.zeros(number, np.int64)
        self._slipped = np.zeros((2, number), bool)
        self._side = np.zeros(number, np.int8)
        self._here = self._state.copy()
        self._actions = WholeActions(number, count=4)
        self._choose_draws()
        self._see_as_numbers()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Come back from a pickle, where views have become arrays of their own."""
        self.__dict__.update(state)
        self._see_as_numbers()

    def _see_as_numbers(self) -> None:
        """Keep views of the booleans as numbers: making one takes as long as using it."""
        self._slipped_numbers = self._slipped.view(np.int8)

    def _columns(self) -> dict[str, np.ndarray]:
        lake: Any = self.world.unwrapped
        self._lake = lake
        self._worlds = LakeWorlds(int(lake.observation_space.n), lake.reward_schedule, self._worlds_in_use)
        self._pending: list[int] = []
        now = self._lake.read_knobs()
        self._slip = np.full(self.num_envs, now["slip"])  # where no schedule drives it
        return {
            "half": half_threshold(self._slip),
            "transient": np.full(self.num_envs, now["transient"]),
            "world": np.full(self.num_envs, self._worlds.code(now["map"], now["goal_rewards"]), np.int64),
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
                self._pending.append(self._worlds.code(lake, goal_rewards))
            columns["world"] = np.array(self._pending)
            self._pending.clear()
        return columns

    def _worlds_in_use(self) -> np.ndarray:
        """The worlds that some lake has, may come to have, or is being given."""
        if not hasattr(self, "flow"):
            return np.zeros(0, np.int64)
        kept = [np.array(self._pending, np.int64), self.flow.columns["world"], self._laid]
        if "world" in self.flow.pool:
            kept.append(self.flow.pool["world"].reshape(-1))
        return np.unique(np.concatenate(kept))

    def _choose_draws(self) -> None:
        """How many random numbers a step needs: whatever may ever happen counts, so that columns stay in step."""
        self._slips = "slip" in self._driven or bool(self._half.any())
        self._lies = "transient" in self._driven or bool(self._transient.any())
        self._sides = SideDraws(self.num_envs)
        self._lots = StepDraws(self.num_envs)

    def _restart_draws(self) -> None:
        super()._restart_draws()
        self._sides.restart()
        self._lots.restart()

    def _follows_knobs(self) -> bool:
        return bool(self._driven.intersection(_WORLD))

    def _turned(self, indices: np.ndarray) -> None:
        self._lay(indices[self._code[indices] != self._laid[indices]])

    def _strand(self, truncations: np.ndarray) -> None:
        indices = truncations.nonzero()[0]
        afloat = indices[self._state[indices] - self._base[indices] < self._worlds.shore]
        self._state[afloat] += self._worlds.shore

    def _lay(self, indices: np.ndarray) -> None:
        """Put other maps under lakes; the agent keeps its row and column, cut at the new edge."""
        if not len(indices):
            return
        worlds = self._worlds
        old, new = self._laid[indices], self._code[indices]
        half, tile = np.divmod((self._state[indices] - self._base[indices]) // CELLS, worlds.room)
        row, column = np.divmod(tile, worlds.columns[old])
        row, column = np.minimum(row, worlds.rows[new] - 1), np.minimum(column, worlds.columns[new] - 1)
        self._laid[indices] = new
        self._base[indices] = base = new * worlds.size
        self._state[indices] = base + CELLS * (row * worlds.columns[new] + column) + LEFT + half * worlds.shore

    def _place(self, mask: np.ndarray, options: Mapping[str, Any]) -> None:
        indices = mask.nonzero()[0]
        self._state[indices] = self._base[indices] + CELLS * self._start_states(indices) + LEFT
        self._lastaction[indices] = -1

    def _start_states(self, indices: np.ndarray) -> np.ndarray:
        """Where these lakes' episodes begin, drawn where there are several start tiles."""
        worlds, codes = self._worlds, self._laid[indices]
        states = worlds.first[codes]
        several = np.flatnonzero(worlds.starts[codes] > 1)
        if len(several):
            chosen = indices[several]
            chances = self._starts.at(chosen, self.clocks.episodes(chosen))
            for place, code, chance in zip(several.tolist(), codes[several].tolist(), chances.tolist(), strict=True):
                starts = worlds.start_states(code)
                states[place] = starts[int(chance * len(starts))]
        return states

    def _observe(self) -> np.ndarray:
        seen: np.ndarray = (self._state - self._base) // CELLS
        return np.remainder(seen, self._worlds.room, out=seen)

    def _reset_infos(self, mask: np.ndarray) -> dict[str, Any]:
        return {"prob": np.where(mask, 1.0, 0.0), "_prob": mask.copy()} if self._lake.shows_prob else {}

    def _check_actions(self, actions: Any) -> np.ndarray:
        return self._actions.check(actions)

    def _transition(
        self, actions: np.ndarray, dead: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        worlds, state, cells = self._worlds, self._state, self._cells
        np.add(state, actions, out=cells)
        if self._slips:
            one, other = self._sides.step(self.np_random)
            before, after = self._slipped
            np.less(one, self._half, out=before)
            np.less(other, self._half, out=after)
            np.subtract(self._slipped_numbers[1], self._slipped_numbers[0], out=self._side)
            np.add(cells, self._side, out=cells)
        infos = self._probabilities(dead) if self._lake.shows_prob else {}
        if self._lies:
            np.copyto(self._here, state)
        seen, rewards, ended = worlds.seen.take(cells), worlds.reward.take(cells), worlds.ended.take(cells)
        worlds.following.take(cells, out=state, mode="wrap")  # nothing lies outside, and the other modes are slower
        if self._lies:
            self._lie(self._lots.step(self.np_random), actions, seen, rewards, ended)
        if dead is not None and worlds.has_several_starts:
            indices = dead.nonzero()[0]
            seen[indices] = starts = self._start_states(indices)
            state[indices] = self._base[indices] + CELLS * starts + LEFT
        if self.render_mode is not None:
            self._lastaction[:] = actions
            if dead is not None:
                self._lastaction[dead] = -1
        return seen, rewards, ended, infos

    def _probabilities(self, dead: np.ndarray | None) -> dict[str, Any]:
        """The probability of the transition, as Gymnasium's `info` shows it."""
        slip = self._slip  # shown without a schedule only
        prob = np.where(self._side != 0, 0.5 * slip, 1.0 - slip)
        # Whoever stands on a hole or a goal stays there for sure.
        stays = self._worlds.following[self._state] == self._state + self._worlds.shore
        prob[stays] = 1.0
        if dead is not None:
            prob[dead] = 1.0
        return {"prob": prob, "_prob": np.ones(self.num_envs, bool)}

    def _lie(
        self,
        numbers: np.ndarray,
        actions: np.ndarray,
        seen: np.ndarray,
        rewards: np.ndarray,
        ended: np.ndarray,
    ) -> None:
        """Put false answers in the place of true ones, with the probability `transient`."""
        worlds = self._worlds
        lying = np.flatnonzero(numbers < self._transient)
        lying = lying[self._here[lying] - self._base[lying] < worlds.shore]
        state = self._here[lying]
        around = state[:, None] + np.arange(4)
        to = worlds.following[around]
        true = worlds.following[state + actions[lying]]
        free = (to != state[:, None]) & (to != true[:, None]) & ~worlds.ended[around]
        counts = free.sum(axis=1)
        # Below the threshold, the same number is uniform again and chooses among the targets.
        chance = numbers[lying] / self._transient[lying]
        chosen = np.minimum((chance * counts).astype(np.int64), np.maximum(counts - 1, 0))
        direction = (np.cumsum(free, axis=1) > chosen[:, None]).argmax(axis=1)
        target = to[np.arange(len(lying)), direction]
        lying, target = lying[counts > 0], target[counts > 0]
        self._state[lying] = target
        seen[lying] = (target - self._base[lying]) // CELLS
        rewards[lying] = self._lake.reward_schedule[2]
        ended[lying] = False

    def pose(self, env: Any, index: int) -> None:
        """Put the single lake where a lake stands, for a picture.

        Args:
            env: the single lake, turned already.
            index: the lake.
        """
        env.s = self.read_state(index, "s")
        env.lastaction = self.read_state(index, "lastaction")

    def read_state(self, index: int, name: str) -> Any:
        """Where an agent stands, or what it did last.

        Args:
            index: the lake.
            name: `s` or `lastaction`.
        """
        if name == "s":
            return int(self._state[index] - self._base[index]) // CELLS % self._worlds.room
        last = int(self._lastaction[index])
        return None if last < 0 else last

    def write_state(self, index: int, name: str, value: Any) -> None:
        """Put an agent somewhere else.

        Args:
            index: the lake.
            name: `s`.
            value: a state of the map.

        Raises:
            ArgumentError: if the map has no such state.
        """
        code = int(self._laid[index])
        states = int(self._worlds.rows[code] * self._worlds.columns[code])
        if name != "s" or not 0 <= int(value) < states:
            raise ArgumentError(f"`s` should be a state from 0 to {states - 1}. Received {name}={value!r}")
        ashore = self._worlds.shore if self._ended[index] else 0
        self._state[index] = self._base[index] + CELLS * int(value) + LEFT + ashore

    def read_knob(self, index: int, name: str) -> Value:
        """The present value of a knob, read back from what the dynamics use.

        Args:
            index: the lake.
            name: the knob.
        """
        if name == "slip":
            return self.flow.value(name, index) if name in self.flow.pool else float(self._slip[index])
        if name == "transient":
            return float(self._transient[index])
        lake, goal_rewards = self._worlds.maps[int(self._laid[index])]
        return lake if name == "map" else goal_rewards

    def write_knob(self, index: int, name: str, value: Value) -> None:
        """Turn a knob that no schedule drives.

        Args:
            index: the lake.
            name: the knob.
            value: a canonical value.

        Raises:
            ArgumentError: if the schedule drives the other one of `map` and `goal_rewards`.
        """
        if name == "slip":
            self._slip[index] = value
            self._half[index] = half_threshold(np.array(value))
            self._slips = self._slips or value > 0
        elif name == "transient":
            self._transient[index] = value
            self._lies = self._lies or value > 0
        elif self._driven.intersection(_WORLD):
            raise ArgumentError(f"`{name}` should stay as it is, since the schedule drives {sorted(self._driven)}")
        else:
            now = {kind: self.read_knob(index, kind) for kind in _WORLD}
            now[name] = value
            if len(now["map"]) * len(now["map"][0]) > self._worlds.room:
                raise ArgumentError(f"`map` should have at most {self._worlds.room} tiles. Received {value!r}")
            self._code[index] = self._worlds.code(now["map"], now["goal_rewards"])
        self._lay(np.array([index])[self._code[index : index + 1] != self._laid[index : index + 1]])

"""The frozen lake as pure functions.

* `FunctionalLake` - of `DriftFrozenLake-v0`
* `LakeParams` - a schedule, and the transition tables of all maps that it leads to
* `LakeWorld` - where the agent stands
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from drift_envs.envs.frozen_lake.knobs import FROZEN_LAKE_KNOBS
from drift_envs.envs.frozen_lake.model import Map, moves, tiles
from drift_envs.functional.base import FunctionalEnv
from drift_envs.functional.drift_state import DriftCarry
from drift_envs.functional.knob_arrays import DriftParams
from drift_envs.knobs import KnobTable, Value

_MAP, _GOAL_REWARDS = 0, 1  # the places of the knobs that are no numbers
_SLIP, _TRANSIENT = 0, 1  # and of those that are
_ASCENDING = np.array([3, 0, 2, 1])  # the moves in the order of the tiles that they lead to


@dataclass(frozen=True)
class LakeParams:
    """A schedule, and T transition tables: one for each map with each goal rewards. S is the size of the largest map.

    Args:
        drift: the schedule.
        max_steps: the steps of an episode.
        width: how many goal rewards there are.
        next_state: tile by table, tile and move, shape `(T, S, 4)`.
        reward: on arrival, by table and tile, `(T, S)`.
        ended: whether a tile is a hole or a goal, `(T, S)`.
        starts: running sums of the probabilities of start tiles, `(T, S)`.
        first_start: the first start tile, `(T,)`.
        rows: rows of the map, `(T,)`.
        columns: columns of the map, `(T,)`.
        has_false_responses: whether `transient` is ever driven.
        has_several_starts: whether a map has several start tiles.
        resizes: whether maps differ in size.
    """

    drift: DriftParams
    max_steps: Any
    width: Any
    next_state: Any
    reward: Any
    ended: Any
    starts: Any
    first_start: Any
    rows: Any
    columns: Any
    has_false_responses: bool
    has_several_starts: bool
    resizes: bool


_META = ("has_false_responses", "has_several_starts", "resizes")
jax.tree_util.register_dataclass(
    LakeParams, [name for name in LakeParams.__dataclass_fields__ if name not in _META], list(_META)
)


class LakeWorld(NamedTuple):
    """Where the agent stands.

    Args:
        tile: the state, as in Gymnasium.
        table: the table of the map that the tile belongs to.
    """

    tile: Any
    table: Any


class FunctionalLake(FunctionalEnv):
    """The frozen lake of `DriftFrozenLake-v0` with a schedule, as pure functions.

    Rewards are 1 at a goal that `goal_rewards` does not name, and otherwise 0. Observations are integers.

    Example:
        >>> env = FunctionalLake()
        >>> params = env.params("frozen_lake/slippery")
        >>> observation, state = env.reset(jax.random.key(0), params)
        >>> step = jax.jit(env.step)
        >>> int(step(jax.random.key(1), state, 2, params)[0])
        1
    """

    knobs: ClassVar[KnobTable] = FROZEN_LAKE_KNOBS
    limit: ClassVar[int] = 100
    draws: ClassVar[int] = 3

    def _make_params(self, drift: DriftParams, objects: list[dict[str, tuple[Value, ...]]], max_steps: Any) -> Any:
        pairs = [[(lake, paid) for lake in found["map"] for paid in found["goal_rewards"]] for found in objects]
        size = max(len(tiles(lake)) for each in pairs for lake, _ in each)
        most = max(map(len, pairs))
        tables = [[_table(lake, paid, size) for lake, paid in each] for each in pairs]
        filled = [[*each, *[each[0]] * (most - len(each))] for each in tables]
        stacked = {
            name: jnp.asarray(np.array([[table[name] for table in each] for each in filled])) for name in filled[0][0]
        }
        transient = list(drift.names).index("transient")
        driven = bool(drift.operation[..., transient].any()) if drift.operation.size else False
        return LakeParams(
            drift=drift,
            max_steps=max_steps,
            width=jnp.array([len(found["goal_rewards"]) for found in objects], jnp.int32),
            **stacked,
            has_false_responses=driven or bool(drift.base[:, transient].any()),
            has_several_starts=any("".join(lake).count("S") > 1 for each in pairs for lake, _ in each),
            resizes=len({(len(lake), len(lake[0])) for each in pairs for lake, _ in each}) > 1,
        )

    def _table(self, params: LakeParams, drift: DriftCarry) -> Any:
        return drift.objects[_MAP] * params.width + drift.objects[_GOAL_REWARDS]

    def _start(self, params: LakeParams, drift: DriftCarry, draws: Any) -> LakeWorld:
        table = self._table(params, drift)
        if not params.has_several_starts:
            return LakeWorld(params.first_start[table], table)
        is_below = draws[2] < params.starts[table]
        return LakeWorld(jnp.where(is_below.any(), is_below.argmax(), params.first_start[table]), table)

    def _move(
        self, params: LakeParams, drift: DriftCarry, world: LakeWorld, action: Any, draws: Any
    ) -> tuple[LakeWorld, Any, Any]:
        table, tile = self._table(params, drift), world.tile
        if params.resizes:  # the agent keeps its row and column, cut at the new edge
            row, column = jnp.divmod(tile, params.columns[world.table])
            row, column = jnp.minimum(row, params.rows[table] - 1), jnp.minimum(column, params.columns[table] - 1)
            tile = row * params.columns[table] + column
        success = 1.0 - drift.numbers[_SLIP]
        before = (1.0 - success) / 2.0
        until = before + success
        side = jnp.where(
            draws[0] < before, -1, jnp.where(draws[0] < until, 0, jnp.where(draws[0] < until + before, 1, -1))
        )
        move = (action + side) % 4
        there = params.next_state[table, tile, move]
        stays = params.ended[table, tile]
        reward = jnp.where(stays, 0.0, params.reward[table, there])
        terminated = params.ended[table, there]
        if params.has_false_responses:
            there, reward, terminated = self._false_response(
                params, drift.numbers[_TRANSIENT], (table, tile, action), draws[1], (there, reward, terminated)
            )
        return LakeWorld(there, table), reward, terminated

    def _false_response(
        self, params: LakeParams, transient: Any, place: tuple[Any, Any, Any], draw: Any, true: tuple[Any, Any, Any]
    ) -> tuple[Any, Any, Any]:
        """The true outcome or, with the probability `transient`, a free neighbour that the move does not lead to."""
        table, tile, action = place
        around = params.next_state[table, tile]
        others = around[_ASCENDING]
        is_target = (others != tile) & (others != around[action]) & ~params.ended[table, others]
        chance = draw / jnp.where(transient > 0, transient, 1.0)
        count = is_target.sum()
        chosen = jnp.minimum((chance * count).astype(jnp.int32), count - 1)
        target = others[(jnp.cumsum(is_target) > chosen).argmax()]
        false = (draw < transient) & (count > 0) & ~params.ended[table, tile]
        there, reward, terminated = true
        return jnp.where(false, target, there), jnp.where(false, 0.0, reward), ~false & terminated

    def _observe(self, params: LakeParams, world: LakeWorld) -> Any:
        return world.tile


def _table(lake: Map, goal_rewards: Value, size: int) -> dict[str, np.ndarray]:
    """The arrays of one map, padded to a number of tiles."""
    rows, columns = len(lake), len(lake[0])
    letters = np.array(list(tiles(lake)))
    count = len(letters)
    next_state = np.zeros((size, 4), np.int32)
    next_state[:count] = moves(rows, columns)
    ended, reward, starts = np.zeros(size, bool), np.zeros(size), np.zeros(size)
    ended[:count] = (letters == "G") | (letters == "H")
    # a step on a hole or a goal stays there, and the episode ends
    next_state[ended] = np.flatnonzero(ended)[:, None]
    reward[:count] = letters == "G"
    for place, paid in goal_rewards.items():
        row, column = (int(part) for part in place.split(","))
        if row < rows and column < columns:  # no combination that the schedule reaches, otherwise
            reward[row * columns + column] = paid
    shares = (letters == "S").astype(float)
    starts[:count] = np.cumsum(shares / shares.sum())
    return {
        "next_state": next_state,
        "reward": reward,
        "ended": ended,
        "starts": starts,
        "first_start": np.array(int((letters == "S").argmax()), np.int32),
        "rows": np.array(rows, np.int32),
        "columns": np.array(columns, np.int32),
    }

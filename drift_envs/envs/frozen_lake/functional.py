"""The frozen lake as pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from drift_envs.envs.frozen_lake.dynamics import Map, moves, tiles
from drift_envs.envs.frozen_lake.knobs import FROZEN_LAKE_KNOBS
from drift_envs.functional.base import FunctionalEnv
from drift_envs.functional.compiler import DriftParams, is_ever_set
from drift_envs.functional.drift_state import DriftCarry, number_of, object_of
from drift_envs.knobs import KnobTable, Value

_ASCENDING = np.array([3, 0, 2, 1])  # the moves in the order of the tiles that they lead to


@dataclass(frozen=True)
class LakeParams:
    """A schedule, and T transition tables: one for each map with each goal rewards. S is the size of the largest map.

    Tables of tiles and moves are flat, so that one index finds an element: `(table * S + tile) * 4 + move`.

    Args:
        drift: the schedule.
        max_steps: the steps of an episode.
        width: how many goal rewards there are.
        outcome: by table, tile and move: twice the next tile, plus 1 if it is a hole or a goal; shape `(T * S * 4,)`.
        reward: of the move; 0 on holes and goals, `(T * S * 4,)`.
        starts: running sums of the probabilities of start tiles, `(T, S)`.
        first_start: the first start tile, `(T,)`.
        rows: rows of the map, `(T,)`.
        columns: columns of the map, `(T,)`.
        row: the row of each tile, `(T * S,)`.
        column: its column, `(T * S,)`.
        has_slips: whether `slip` is ever above 0.
        has_false_responses: whether `transient` is ever above 0.
        has_several_starts: whether a map has several start tiles.
        resizes: whether maps differ in size.
    """

    drift: DriftParams
    max_steps: Any
    width: Any
    outcome: Any
    reward: Any
    starts: Any
    first_start: Any
    rows: Any
    columns: Any
    row: Any
    column: Any
    has_slips: bool
    has_false_responses: bool
    has_several_starts: bool
    resizes: bool


_META = ("has_slips", "has_false_responses", "has_several_starts", "resizes")
jax.tree_util.register_dataclass(
    LakeParams, [name for name in LakeParams.__dataclass_fields__ if name not in _META], list(_META)
)


class LakeState(NamedTuple):
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

    knobs: KnobTable = FROZEN_LAKE_KNOBS
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
        stacked |= {name: stacked[name].reshape(len(filled), -1) for name in ("outcome", "reward", "row", "column")}
        return LakeParams(
            drift=drift,
            max_steps=max_steps,
            width=jnp.array([len(found["goal_rewards"]) for found in objects], jnp.int32),
            **stacked,
            has_slips=is_ever_set(drift, "slip"),
            has_false_responses=is_ever_set(drift, "transient"),
            has_several_starts=any("".join(lake).count("S") > 1 for each in pairs for lake, _ in each),
            resizes=len({(len(lake), len(lake[0])) for each in pairs for lake, _ in each}) > 1,
        )

    def _table(self, params: LakeParams, drift: DriftCarry) -> Any:
        lake, paid = (object_of(params.drift, drift, name) for name in ("map", "goal_rewards"))
        return lake * params.width + paid

    def _start(self, params: LakeParams, drift: DriftCarry, draws: Any) -> LakeState:
        table = self._table(params, drift)
        first = _at(params.first_start, table)
        if not params.has_several_starts:
            return LakeState(first, table)
        is_below = draws[2] < _at(params.starts, table)
        return LakeState(jnp.where(is_below.any(), is_below.argmax().astype(first.dtype), first), table)

    def _move(
        self, params: LakeParams, drift: DriftCarry, env_state: LakeState, action: Any, draws: Any
    ) -> tuple[LakeState, Any, Any]:
        table, tile = self._table(params, drift), env_state.tile
        size = params.row.shape[-1] // params.rows.shape[-1]
        if params.resizes:  # the agent keeps its row and column, cut at the new edge
            before, columns = env_state.table * size + tile, _at(params.columns, table)
            row = jnp.minimum(_at(params.row, before), _at(params.rows, table) - 1)
            tile = row * columns + jnp.minimum(_at(params.column, before), columns - 1)
        move = action
        if params.has_slips:
            move = (action + side_of(draws[0], number_of(params.drift, drift, "slip"))) & 3
        place = (table * size + tile) * 4
        outcome, reward = _at(params.outcome, place + move), _at(params.reward, place + move)
        there, terminated = outcome >> 1, (outcome & 1).astype(bool)
        if params.has_false_responses:
            transient = number_of(params.drift, drift, "transient")
            true = there, reward, terminated
            there, reward, terminated = self._false_response(params, transient, (place, tile, action), draws[1], true)
        return LakeState(there, table), reward, terminated

    def _false_response(
        self, params: LakeParams, transient: Any, place: tuple[Any, Any, Any], draw: Any, true: tuple[Any, Any, Any]
    ) -> tuple[Any, Any, Any]:
        """The true outcome or, with the probability `transient`, a free neighbour that the move does not lead to."""
        start, tile, action = place
        around = _at(params.outcome, start + jnp.arange(4))
        others, is_end = around[_ASCENDING] >> 1, (around[_ASCENDING] & 1).astype(bool)
        is_target = (others != tile) & (others != around[action] >> 1) & ~is_end
        chance = draw / jnp.where(transient > 0, transient, 1.0)
        count = is_target.sum()
        chosen = jnp.minimum((chance * count).astype(jnp.int32), count - 1)
        target = others[(jnp.cumsum(is_target) > chosen).argmax()]
        # on a hole or a goal all moves stay there, so that there is no target
        false = (draw < transient) & (count > 0)
        there, reward, terminated = true
        return jnp.where(false, target, there), jnp.where(false, 0.0, reward), ~false & terminated

    def _observe(self, params: LakeParams, env_state: LakeState) -> Any:
        return env_state.tile


def side_of(draw: Any, slip: Any) -> Any:
    """Where the agent slips to: -1, 0 or 1 is added to the action.

    Args:
        draw: a uniform number in [0, 1).
        slip: the probability of a slip.
    """
    success = 1.0 - slip
    before = (1.0 - success) / 2.0
    until = before + success
    return jnp.where(draw < before, -1, jnp.where(draw < until, 0, jnp.where(draw < until + before, 1, -1)))


def _at(array: Any, index: Any) -> Any:
    """Elements at indices that are known to be inside."""
    return array.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


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
    outcome = 2 * next_state + ended[next_state]
    tile_row, tile_column = np.divmod(np.arange(size), columns)
    return {
        "outcome": outcome.astype(np.int32),
        "reward": np.where(ended[:, None], 0.0, reward[next_state]),
        "starts": starts,
        "first_start": np.array(int((letters == "S").argmax()), np.int32),
        "rows": np.array(rows, np.int32),
        "columns": np.array(columns, np.int32),
        "row": tile_row.astype(np.int32),
        "column": tile_column.astype(np.int32),
    }

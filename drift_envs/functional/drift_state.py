"""Knob values tick by tick, as pure functions of arrays.

* `start_drift` - the state at tick 0
* `advance_drift` - the state at the next tick
* `follow_clock` - the state after a step, by the clock of the schedule
* `replay` - the knob values of all ticks of a stretch
* `name_values`, `number_of`, `object_of` - the knob values of a tick, or one of them, by name

A step costs the same at every tick. Of a table, the next row is read when its tick has come. Of layers, regular
occurrences are computed in closed form, random ones are drawn one after the other, each from a generator of its own
(the key, folded with drift and occurrence), so that a lifetime is a pure function of key and schedule.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from drift_envs.functional.drift_carry import DriftCarry
from drift_envs.functional.drift_params import FAR, DriftLayers, DriftParams, DriftTable
from drift_envs.functional.drift_times import draw_gap, draw_times, find_occurrences
from drift_envs.functional.drift_values import choice_steps, extend_sums, fold_numbers, fold_objects, walk_steps


def start_drift(params: DriftParams, key: Any) -> DriftCarry:
    """The state at tick 0.

    Args:
        params: the schedule.
        key: of the random parts; a seed of the schedule goes first.
    """
    return advance_drift(params, _before_drift(params, _raw_key(key)))


def _raw_key(key: Any) -> Any:
    return jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key


def _before_drift(params: DriftParams, key: Any) -> DriftCarry:
    """The state before tick 0."""
    if isinstance(params, DriftTable):
        tick = jnp.full_like(params.clock, -1)
        return DriftCarry(None, tick, params.numbers[0], params.objects[0], row=tick)
    features = params.features
    if features.random or features.gradual or features.walk or features.choice:
        pinned = jax.random.PRNGKey(jnp.maximum(params.seed, 0))
        key = jnp.where(params.seed >= 0, pinned, key)
    zeros = jnp.zeros_like(params.first)
    state = DriftCarry(key, jnp.full_like(params.clock, -1), params.base, params.object_base)
    if features.random:
        state = state._replace(
            count=zeros,
            done=zeros,
            following=jnp.minimum(params.first - 1 + draw_gap(params, key, zeros), FAR),
            run=zeros,
            run_start=zeros,
            last=zeros - 1,
            ring=jnp.zeros((*params.first.shape, max(features.slots, 1)), jnp.int32),
        )
    if features.walk or features.choice:
        state = state._replace(lead=zeros)
    if features.walk:
        state = state._replace(walked=jnp.zeros_like(params.argument))
    if features.choice:
        state = state._replace(
            chosen=jnp.zeros_like(params.operation),
            before=jnp.full_like(params.operation, -1),
            object_chosen=jnp.zeros_like(params.object_operation),
            object_before=jnp.full_like(params.object_operation, -1),
        )
    return state


def follow_clock(params: DriftParams, state: DriftCarry, done: Any) -> DriftCarry:
    """The state after a step.

    Args:
        params: the schedule.
        state: the state at the tick of the step.
        done: whether the episode has ended with it.
    """
    clocks = params.clocks
    if 2 in clocks:
        rewound = (params.clock == 2) & done
        first = _before_drift(params, state.key)
        state = jax.tree.map(lambda new, old: jnp.where(rewound, new, old), first, state)
    following = advance_drift(params, state)
    if 0 not in clocks:
        return following
    moves = (params.clock != 0) | done
    chosen: DriftCarry = jax.tree.map(lambda new, old: jnp.where(moves, new, old), following, state)
    return chosen


def advance_drift(params: DriftParams, state: DriftCarry) -> DriftCarry:
    """The state at the next tick.

    Args:
        params: the schedule.
        state: the state at a tick.
    """
    state = state._replace(tick=state.tick + 1)
    return _read_row(params, state) if isinstance(params, DriftTable) else _fold_layers(params, state)


def _read_row(params: DriftTable, state: DriftCarry) -> DriftCarry:
    row = state.row + (state.tick >= params.starts[state.row + 1])
    return state._replace(row=row, numbers=params.numbers[row], objects=params.objects[row])


def _fold_layers(params: DriftLayers, state: DriftCarry) -> DriftCarry:
    features = params.features
    if not params.first.shape[0]:
        return state
    if features.random:
        state = draw_times(params, state)
    occurrences = find_occurrences(params, state)
    if features.walk or features.choice:
        state = extend_sums(params, state, occurrences.lead)
    walked, chosen = None, (None, None)
    if features.slots:
        events = occurrences.lead + jnp.arange(features.slots)[:, None]
        walked = walk_steps(params, state.key, events) if features.walk else None
        chosen = choice_steps(params, state.key, events) if features.choice else chosen
    state = fold_numbers(params, state, occurrences, walked, chosen[0])
    return fold_objects(params, state, occurrences, chosen[1])


def replay(params: DriftParams, key: Any, ticks: int) -> tuple[Any, Any]:
    """The knob values of ticks 0 to `ticks` - 1.

    Args:
        params: the schedule.
        key: of the random parts.
        ticks: how many ticks.

    Returns:
        Numbers of shape `(ticks, K)` and indices of other values of shape `(ticks, J)`.
    """

    def move(state: DriftCarry, _: None) -> tuple[DriftCarry, tuple[Any, Any]]:
        numbers = [number_of(params, state, name) for name in params.all_names]
        others = [object_of(params, state, name) for name in params.all_object_names]
        return advance_drift(params, state), (jnp.array(numbers), jnp.array(others, jnp.int32))

    values: tuple[Any, Any] = jax.lax.scan(move, start_drift(params, key), None, ticks)[1]
    return values


def name_values(params: DriftParams, state: DriftCarry) -> dict[str, Any]:
    """The knob values of a tick by name: numbers, and indices of other values.

    Args:
        params: the schedule.
        state: the state at a tick, possibly a batch.
    """
    numbers = {name: number_of(params, state, name) for name in params.all_names}
    return {**numbers, **{name: object_of(params, state, name) for name in params.all_object_names}}


def number_of(params: DriftParams, state: DriftCarry, name: str) -> Any:
    """The value of a numeric knob at a tick.

    Args:
        params: the schedule.
        state: the state at the tick, possibly a batch.
        name: the knob.
    """
    if name in params.names:
        return state.numbers[..., params.names.index(name)]
    return _of_batch(state, params.fixed[..., params.all_names.index(name)])


def object_of(params: DriftParams, state: DriftCarry, name: str) -> Any:
    """The index of the value of another knob at a tick, see `number_of`."""
    if name in params.object_names:
        return state.objects[..., params.object_names.index(name)]
    return _of_batch(state, params.object_fixed[..., params.all_object_names.index(name)])


def _of_batch(state: DriftCarry, value: Any) -> Any:
    return jnp.broadcast_to(value, jnp.shape(state.tick))

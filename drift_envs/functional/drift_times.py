"""When drifts occur, and how much each occurrence counts at a tick.

* `find_occurrences` - the occurrences that count at a tick, with their shares (`OccurrenceShares`)
* `draw_times`, `draw_gap` - random occurrences, one after the other
* `pick` - one entry of each row
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from drift_envs.functional.drift_carry import COIN, TIMES, DriftCarry, fold_keys
from drift_envs.functional.drift_params import FAR, STEPS, DriftLayers

_SIGMOID_SLOPE, _EXPONENT = 12.0, 5.0


class OccurrenceShares(NamedTuple):
    """Which occurrences count: `done` in full, and from `lead` on one for each slot with its share."""

    some: Any  # whether there was any occurrence, (D,)
    done: Any  # (D,)
    lead: Any  # (D,)
    shares: Any  # (slots, D)


def draw_gap(params: DriftLayers, key: Any, event: Any) -> Any:
    """The ticks from the event before to this one: geometric."""
    chance = 1 - jax.vmap(lambda own: jax.random.uniform(own, dtype=params.rate.dtype))(fold_keys(key, TIMES, event))
    rate = jnp.where(params.rate > 0, params.rate, 0.5)
    gap = jnp.floor(jnp.log(chance) / jnp.log1p(-rate)) + 1
    return jnp.where(params.rate > 0, jnp.clip(gap, 1, FAR).astype(jnp.int32), FAR)


def draw_times(params: DriftLayers, state: DriftCarry) -> DriftCarry:
    """Count the random occurrences up to the tick, and draw the tick of the next where one has come."""
    due = state.following == state.tick
    gap = state.tick - state.last
    begins = due & ((state.count == 0) | (gap >= jnp.maximum(params.duration, 1)))
    slot = jnp.arange(state.ring.shape[-1]) == (state.count % state.ring.shape[-1])[:, None]
    ring = jnp.where(slot & due[:, None], state.tick, state.ring)
    count = state.count + due
    following = jnp.minimum(state.tick + draw_gap(params, state.key, count), FAR)
    oldest = _ring_at(ring, state.done)
    is_up = (state.done < count) & ((oldest + params.over <= state.tick) | (count - state.done > ring.shape[-1]))
    return state._replace(
        count=count,
        done=state.done + is_up,
        following=jnp.where(due, following, state.following),
        run=state.run + begins,
        run_start=jnp.where(begins, state.tick, state.run_start),
        last=jnp.where(due, state.tick, state.last),
        ring=ring,
    )


def _ring_at(ring: Any, event: Any) -> Any:
    return pick(ring, event % ring.shape[-1])


def _count(params: DriftLayers, tick: Any) -> Any:
    """The regular occurrences up to each tick."""
    if not params.features.periodic:
        return (tick >= params.first).astype(jnp.int32)
    return jnp.maximum((tick - params.first) // params.period + 1, 0)


def find_occurrences(params: DriftLayers, state: DriftCarry) -> OccurrenceShares:
    """The occurrences that count at the tick of a state."""
    features, tick = params.features, state.tick
    stays = params.duration == 0
    count = _count(params, tick)
    lead = _count(params, tick - params.over) if features.slots else count
    run = jnp.maximum(count - 1, 0)
    run_start = params.first + run * params.period
    end = run_start + params.duration
    held = (count > 0) & (tick < end)
    if features.random:
        is_random = params.rate > 0
        count, lead = jnp.where(is_random, state.count, count), jnp.where(is_random, state.done, lead)
        run = jnp.where(is_random, jnp.maximum(state.run - 1, 0), run)
        run_start = jnp.where(is_random, state.run_start, run_start)
        own_end = state.last + params.duration
        held = jnp.where(is_random, (count > 0) & (tick < own_end), held)
        # an occurrence that the next one joins has no end
        end = jnp.where(is_random, jnp.where(state.following < own_end, 2 * FAR, own_end), end)
    done = jnp.where(stays, lead, 0)
    lead = jnp.where(stays, lead, run)
    shares = []
    for slot in range(features.slots):
        index = lead + slot
        start = params.first + index * params.period
        if features.random:
            start = jnp.where(params.rate > 0, _ring_at(state.ring, index), start)
        nearer = jnp.minimum(tick - run_start, end - tick)
        elapsed = jnp.where(stays, tick - start, nearer)
        counts = jnp.where(stays, index < count, held & (slot == 0))
        shares.append(jnp.where(counts, _share(params, elapsed), 0.0))
    stacked = jnp.stack(shares) if shares else jnp.zeros((0, *done.shape), params.base.dtype)
    if features.gradual and shares:
        coin = jax.vmap(lambda key: jax.random.uniform(key, dtype=params.rate.dtype))(
            fold_keys(state.key, COIN, jnp.broadcast_to(tick, done.shape))
        )
        mixed = params.gradual & (stacked > 0) & (stacked < 1)
        stacked = jnp.where(mixed, (coin < stacked).astype(stacked.dtype), stacked)
    return OccurrenceShares(count > 0, done, lead, stacked)


def _share(params: DriftLayers, elapsed: Any) -> Any:
    """The weight of an occurrence, as `drift_envs.schedule.occurrences.weight`; 1 without a ramp."""
    features, number = params.features, params.base.dtype
    size = params.weights.shape[-1]
    listed = pick(params.weights, jnp.clip(elapsed, 0, size - 1)) if features.tabulated else jnp.ones_like(params.rate)
    share = jnp.where(params.over > 0, listed, 1.0)
    if not features.curves:
        return share
    u = jnp.clip(elapsed.astype(number) / jnp.maximum(params.over, 1).astype(number), 0.0, 1.0)
    for code in features.curves:
        if code == 0:
            risen = u
        elif code == STEPS:
            risen = jnp.floor(u * params.steps.astype(number)) / params.steps.astype(number)
        elif code == 1:
            low = 1 / (1 + math.exp(_SIGMOID_SLOPE / 2))
            risen = (1 / (1 + jnp.exp(-_SIGMOID_SLOPE * (u - 0.5))) - low) / (1 - 2 * low)
        else:
            risen = jnp.expm1(-_EXPONENT * u) / math.expm1(-_EXPONENT)
        risen = jnp.where(u >= 1.0, 1.0, jnp.where(u <= 0.0, 0.0, jnp.clip(risen, 0.0, 1.0)))
        share = jnp.where((params.curve == code) & (params.over >= jnp.maximum(size, 1)), risen, share)
    return share


def pick(options: Any, place: Any) -> Any:
    """The entry of each row at its own place."""
    return jnp.take_along_axis(options, place[:, None], axis=1)[:, 0]

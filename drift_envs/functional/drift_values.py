"""What drifts do: the knob values of a tick, folded from the base through all drifts.

* `fold_numbers`, `fold_objects` - the values of numeric knobs, and of the others
* `walk_steps`, `choice_steps` - the random steps of occurrences
* `extend_sums` - adds the steps of occurrences that are over
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from drift_envs.functional.drift_carry import CHOICES, OBJECT_CHOICES, PURPOSES, WALKS, DriftCarry, fold_keys
from drift_envs.functional.drift_params import ADD, CHOICE, FAR, SCALE, SET, SWAP, WALK, DriftLayers
from drift_envs.functional.drift_times import OccurrenceShares, pick


def extend_sums(params: DriftLayers, state: DriftCarry, lead: Any) -> DriftCarry:
    """Add the steps of the occurrences that are done by now to the sums; one a tick at most."""
    more = (lead > state.lead)[:, None]
    if params.features.walk:
        state = state._replace(walked=state.walked + jnp.where(more, walk_steps(params, state.key, lead - 1), 0.0))
    if params.features.choice:
        steps, object_steps = choice_steps(params, state.key, lead - 1)
        state = state._replace(
            chosen=state.chosen + jnp.where(more, steps, 0),
            object_chosen=state.object_chosen + jnp.where(more, object_steps, 0),
        )
    return state._replace(lead=lead)


def walk_steps(params: DriftLayers, key: Any, event: Any) -> Any:
    """The step of each occurrence of each walk, shape `(..., D, K)` for occurrences of shape `(..., D)`."""
    knobs, number = params.argument.shape[1], params.argument.dtype
    normal = jax.vmap(lambda own: jax.random.normal(own, (knobs,), number))(fold_keys(key, WALKS, event))
    return jnp.where(params.operation == WALK, normal.reshape(*event.shape, knobs) * params.argument, 0.0)


def choice_steps(params: DriftLayers, key: Any, event: Any) -> tuple[Any, Any]:
    """The step of each occurrence of each choice, `(..., D, K)` and `(..., D, J)`: 1 to m - 1 around the options."""

    def steps(purpose: int, counts: Any) -> Any:
        uniform = jax.vmap(lambda own: jax.random.uniform(own, counts.shape[1:]))(fold_keys(key, purpose, event))
        uniform = uniform.reshape(*event.shape, counts.shape[1])
        return 1 + jnp.minimum((uniform * (counts - 1)).astype(jnp.int32), jnp.maximum(counts - 2, 0))

    return steps(CHOICES, params.option_count), steps(OBJECT_CHOICES, params.object_option_count)


def _option_before(key: Any, purpose: int, counts: Any, options: Any, below: Any, drift: int) -> Any:
    """The option that equals the value below a choice, otherwise a random one."""
    same = (options == below[:, None]) & (jnp.arange(options.shape[-1]) < counts[:, None])
    own = jax.random.fold_in(jax.random.fold_in(key, drift * len(PURPOSES) + purpose), FAR)
    drawn = jnp.minimum((jax.random.uniform(own, counts.shape) * counts).astype(jnp.int32), counts - 1)
    return jnp.where(same.any(-1), same.argmax(-1).astype(jnp.int32), drawn)


def fold_numbers(
    params: DriftLayers, state: DriftCarry, occurrences: OccurrenceShares, walked: Any, chosen: Any
) -> DriftCarry:
    """Fold the layers of all numeric knobs, in the order of the file."""
    if not params.names:
        return state
    features, slots = params.features, params.features.slots
    number = params.base.dtype
    huge = 1e300 if number == jnp.float64 else 1e30
    values = jnp.broadcast_to(params.base, params.base.shape)
    before = []
    for drift in range(params.first.shape[0]):
        operation, argument = params.operation[drift], params.argument[drift]
        done, shares = occurrences.done[drift], occurrences.shares[:, drift]
        is_set, target, targets = operation == SET, argument, [argument] * slots
        if features.choice:
            is_choice = operation == CHOICE
            is_set = is_set | is_choice
            counts, options = params.option_count[drift], params.options[drift]
            first = _option_before(state.key, CHOICES, counts, options, _bounded(params, values), drift)
            unset = (state.before[drift] < 0) & occurrences.some[drift]
            before.append(jnp.where(unset, first, state.before[drift]))
            place = before[-1] + state.chosen[drift]
            found = [pick(options, place % counts)]
            for slot in range(slots):
                place = place + chosen[slot, drift]
                found.append(pick(options, place % counts))
            target, *targets = [jnp.where(is_choice, each, argument) for each in found]
        values = jnp.where(is_set & (done > 0), target, values)
        # `where` around each product: fused with the sum, it would round differently from NumPy
        values = values + jnp.where((operation == ADD) & (done > 0), done.astype(number) * argument, 0.0)
        if features.scale:
            size = params.powers.shape[-1]
            factor = jnp.clip(jnp.power(argument, done.astype(number)), -huge, huge)
            factor = jnp.where(done < size, params.powers[drift, :, jnp.minimum(done, size - 1)], factor)
            values = values * jnp.where((operation == SCALE) & (done > 0), factor, 1.0)
        if features.walk:
            values = values + jnp.where((operation == WALK) & (done > 0), state.walked[drift], 0.0)
        for slot in range(slots):
            share = shares[slot]
            some = share > 0
            old = jnp.where(is_set & some, values * (1 - share), values)
            values = old + jnp.where(is_set & some, share * targets[slot], 0.0)
            step = argument if not features.walk else jnp.where(operation == WALK, walked[slot, drift], argument)
            adds = (operation == ADD) | (operation == WALK)
            values = values + jnp.where(adds & some, share * step, 0.0)
            if features.scale:
                part = (1 - share) + jnp.where(some, share * argument, 0.0)
                values = values * jnp.where((operation == SCALE) & some, part, 1.0)
        values = jnp.clip(values, -huge, huge)
    state = state._replace(numbers=_bounded(params, values))
    return state._replace(before=jnp.stack(before)) if before else state


def _bounded(params: DriftLayers, values: Any) -> Any:
    """Reflect numbers at their bounds and round whole ones, as `drift_envs.schedule.values.reflect`."""
    if params.features.bounded:
        low, high = params.low, params.high
        one_sided = jnp.isinf(low) | jnp.isinf(high)
        mirrored = jnp.where(values < low, 2 * low - values, 2 * high - values)
        span = jnp.where(one_sided | (low == high), 1.0, high - low)
        along = jnp.mod(values - jnp.where(one_sided, 0.0, low), 2 * span)
        back = jnp.where(low == high, low, low + jnp.minimum(along, 2 * span - along))
        inside = (values >= low) & (values <= high)
        values = jnp.where(inside, values, jnp.clip(jnp.where(one_sided, mirrored, back), low, high))
    return jnp.where(params.whole, jnp.rint(values), values)


def fold_objects(params: DriftLayers, state: DriftCarry, occurrences: OccurrenceShares, chosen: Any) -> DriftCarry:
    """Fold the layers of all other knobs: a value holds or does not."""
    if not params.object_names:
        return state
    features, slots = params.features, params.features.slots
    values = params.object_base
    before = []
    for drift in range(params.first.shape[0]):
        operation = params.object_operation[drift]
        done, has_share = occurrences.done[drift], occurrences.shares[:, drift] > 0
        holds = (done > 0) | has_share.any()
        swapped = pick(params.swaps[drift], values)
        is_odd = (done + has_share.sum()) % 2 == 1
        found = values
        if features.choice:
            counts, options = params.object_option_count[drift], params.object_options[drift]
            first = _option_before(state.key, OBJECT_CHOICES, counts, options, values, drift)
            unset = (state.object_before[drift] < 0) & occurrences.some[drift]
            before.append(jnp.where(unset, first, state.object_before[drift]))
            place = before[-1] + state.object_chosen[drift]
            found = pick(options, place % counts)
            for slot in range(slots):
                place = place + chosen[slot, drift]
                found = jnp.where(has_share[slot], pick(options, place % counts), found)
        new = jnp.where((operation == SET) & holds, params.object_argument[drift], values)
        new = jnp.where((operation == SWAP) & is_odd, swapped, new)
        values = jnp.where((operation == CHOICE) & holds, found, new)
    state = state._replace(objects=values)
    return state._replace(object_before=jnp.stack(before)) if before else state

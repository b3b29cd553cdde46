"""Knob values tick by tick, as pure functions of arrays.

A step costs the same at every tick. Of a table, the next row is read when its tick has come. Of layers, regular
occurrences are computed in closed form, random ones are drawn one after the other, each from a generator of its own
(the key, folded with drift and occurrence), so that a lifetime is a pure function of key and schedule.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from drift_envs.functional.compiler import (
    ADD,
    CHOICE,
    FAR,
    SCALE,
    SET,
    STEPS,
    SWAP,
    WALK,
    DriftLayers,
    DriftParams,
    DriftTable,
)

PURPOSES = TIMES, WALKS, CHOICES, COIN, OBJECT_CHOICES = tuple(range(5))
"""What random numbers are for; each has generators of its own."""

_SIGMOID_SLOPE, _EXPONENT = 12.0, 5.0


class DriftCarry(NamedTuple):
    """What is carried from tick to tick, and the knob values of the tick.

    Parts that no schedule of the batch needs are `None`.

    Args:
        key: of the random parts.
        tick: the tick.
        numbers: values of the numeric knobs, shape `(K,)`.
        objects: indices of the values of the other knobs, `(J,)`.
        row: the row of a table.
        count: occurrences of random drifts so far, `(D,)`.
        done: those of them whose ramp is up, `(D,)`.
        following: the next tick of each random drift, `(D,)`.
        run: the runs of random drifts so far, `(D,)`: occurrences that overlap join to one.
        run_start: the tick at which the last one started, `(D,)`.
        last: the tick of the last random occurrence, `(D,)`.
        ring: the ticks of the last random occurrences, `(D, slots)`.
        lead: the occurrences that are in `walked`, `chosen` and `object_chosen`, `(D,)`.
        walked: sums of the steps of walks, `(D, K)`.
        chosen: sums of the steps of choices, `(D, K)`.
        before: the option before the first choice, `(D, K)`; -1 before there was one.
        object_chosen: as `chosen`, `(D, J)`.
        object_before: as `before`, `(D, J)`.
    """

    key: Any
    tick: Any
    numbers: Any
    objects: Any
    row: Any = None
    count: Any = None
    done: Any = None
    following: Any = None
    run: Any = None
    run_start: Any = None
    last: Any = None
    ring: Any = None
    lead: Any = None
    walked: Any = None
    chosen: Any = None
    before: Any = None
    object_chosen: Any = None
    object_before: Any = None


def fold_keys(key: Any, purpose: int, places: Any) -> Any:
    """One generator for each place (tick or occurrence) of each drift, of the same shape `(..., D)`."""
    numbers = jnp.broadcast_to(jnp.arange(places.shape[-1]) * len(PURPOSES) + purpose, places.shape)
    fold: Any = jax.vmap(lambda number, place: jax.random.fold_in(jax.random.fold_in(key, number), place))
    return fold(numbers.reshape(-1), places.reshape(-1))


def start_drift(params: DriftParams, key: Any) -> DriftCarry:
    """The state at tick 0.

    Args:
        params: the schedule.
        key: of the random parts; a seed of the schedule goes first.
    """
    raw = jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key
    return advance_drift(params, _before_drift(params, raw))


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
    if not isinstance(params, DriftTable):
        return _fold_layers(params, state)
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
    """The weight of an occurrence, as `drift_envs.schedule.values.weight`; 1 without a ramp."""
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
    """Reflect numbers at their bounds and round whole ones, as `drift_envs.knobs.reflect`."""
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

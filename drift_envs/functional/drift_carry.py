"""What is carried from tick to tick.

* `DriftCarry` - the state, and the knob values of the tick
* `fold_keys` - a generator for each tick or occurrence of each drift, by its purpose
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

PURPOSES = TIMES, WALKS, CHOICES, COIN, OBJECT_CHOICES = tuple(range(5))
"""What random numbers are for; each has generators of its own."""


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

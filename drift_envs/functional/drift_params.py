"""A schedule as arrays: what `jit`, `vmap` and `scan` need of it. Thousands of schedules stack into one batch.

* `DriftTable` - one row for each stretch of equal knob values: a tick costs the same, however many drifts there are
* `DriftLayers` - the drifts themselves, for schedules that never end or whose random parts come from a key
* `DriftParams` - one of the two
* `Features` - what the layers of a batch use; the compiled code leaves out the rest
* `is_ever_set` - whether a knob is ever other than 0
* `SET`, `ADD`, `SCALE`, `WALK`, `CHOICE`, `SWAP`, `CURVES`, `STEPS`, `CLOCKS` - the codes in the arrays
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

FAR = 2**30 - 1
"""The tick that does not come: ticks are 32-bit integers here, and sums of two of them have to fit."""

SET, ADD, SCALE, WALK, CHOICE, SWAP = range(1, 7)
"""Codes of the operations; 0 is none."""

CODES = {"set": SET, "add": ADD, "scale": SCALE, "walk": WALK, "choice": CHOICE, "swap": SWAP}
CURVES = {"linear": 0, "sigmoid": 1, "exponential": 2}
STEPS = 3
"""The code of a curve that rises in steps; the others are in `CURVES`."""

CLOCKS = {"episode": 0, "step": 1, "episode_step": 2}


@dataclass(frozen=True)
class Features:
    """What the schedules of a batch use; the compiled code leaves out the rest.

    Args:
        slots: the most occurrences of a drift that count in part at a tick.
        curves: the codes of the curves of ramps that are computed.
        tabulated: whether there is a ramp whose weights are tabulated.
        random: whether a drift has a `rate`.
        gradual: whether a drift is gradual.
        walk: whether a drift walks.
        choice: whether a drift chooses.
        scale: whether a drift scales.
        bounded: whether numbers can leave their bounds.
        periodic: whether a drift has a period.
    """

    slots: int
    curves: tuple[int, ...]
    tabulated: bool
    random: bool
    gradual: bool
    walk: bool
    choice: bool
    scale: bool
    bounded: bool
    periodic: bool


@dataclass(frozen=True)
class DriftTable:
    """A schedule as R rows of knob values.

    K numeric knobs and J others drift in some schedule of the batch; only these are in the rows.

    Args:
        clock: what a tick counts, see `CLOCKS`.
        starts: the tick from which on each row holds, ascending and ended by `FAR`, shape `(R + 1,)`.
        numbers: `(R, K)`.
        objects: indices of values, `(R, J)`.
        fixed: the numbers at tick 0, of all numeric knobs.
        object_fixed: the indices of the values at tick 0, of all other knobs.
        clocks: the codes of the clocks of the batch.
        names: the K numeric knobs that drift.
        object_names: the J others that drift.
        all_names: all numeric knobs.
        all_object_names: all other knobs.
    """

    clock: Any
    starts: Any
    numbers: Any
    objects: Any
    fixed: Any
    object_fixed: Any
    clocks: tuple[int, ...]
    names: tuple[str, ...]
    object_names: tuple[str, ...]
    all_names: tuple[str, ...]
    all_object_names: tuple[str, ...]


@dataclass(frozen=True)
class DriftLayers:
    """A schedule of D drifts; M options of a choice, V values of a knob.

    K numeric knobs and J others drift in some schedule of the batch; only these are computed tick by tick.

    Args:
        clock: what a tick counts, see `CLOCKS`.
        seed: the seed that pins the random parts, or -1.
        first: the first (possible) occurrence, shape `(D,)`.
        period: ticks between two occurrences, `(D,)`; `FAR` for a single one.
        rate: the probability of an occurrence at a tick, `(D,)`; 0 for regular ones.
        duration: ticks after which an occurrence is undone, `(D,)`; 0 if it stays.
        over: ticks of the ramp, `(D,)`; 0 without one.
        curve: its curve, `(D,)`.
        steps: its steps, `(D,)`.
        gradual: whether the ramp is a probability, `(D,)`.
        base: the numbers without any drift, `(K,)`.
        low: lower bounds, `(K,)`.
        high: upper bounds, `(K,)`.
        whole: whether a number is rounded, `(K,)`.
        weights: the weight at each elapsed tick, `(D, W)`; beyond them it is computed.
        operation: codes, `(D, K)`.
        argument: numbers, `(D, K)`.
        powers: factors by how often they apply, `(D, K, C)`; beyond them they are computed.
        options: of choices, `(D, K, M)`.
        option_count: `(D, K)`.
        object_base: the index of the value without any drift, `(J,)`.
        object_operation: codes, `(D, J)`.
        object_argument: indices of values, `(D, J)`.
        object_options: `(D, J, M)`.
        object_option_count: `(D, J)`.
        swaps: the index of the value after the swap, by index before, `(D, J, V)`.
        fixed: the numbers without any drift, of all numeric knobs.
        object_fixed: the indices of the values without any drift, of all other knobs.
        features: what the batch uses; equal for all schedules of a batch.
        clocks: the codes of the clocks of the batch.
        names: the K numeric knobs that drift.
        object_names: the J others that drift.
        all_names: all numeric knobs.
        all_object_names: all other knobs.
    """

    clock: Any
    seed: Any
    first: Any
    period: Any
    rate: Any
    duration: Any
    over: Any
    curve: Any
    steps: Any
    gradual: Any
    base: Any
    low: Any
    high: Any
    whole: Any
    weights: Any
    operation: Any
    argument: Any
    powers: Any
    options: Any
    option_count: Any
    object_base: Any
    object_operation: Any
    object_argument: Any
    object_options: Any
    object_option_count: Any
    swaps: Any
    fixed: Any
    object_fixed: Any
    features: Features
    clocks: tuple[int, ...]
    names: tuple[str, ...]
    object_names: tuple[str, ...]
    all_names: tuple[str, ...]
    all_object_names: tuple[str, ...]


_META = ("features", "clocks", "names", "object_names", "all_names", "all_object_names")
for _kind in (DriftTable, DriftLayers):
    _fields = _kind.__dataclass_fields__
    jax.tree_util.register_dataclass(
        _kind, [name for name in _fields if name not in _META], [name for name in _fields if name in _META]
    )

DriftParams = DriftTable | DriftLayers
"""A schedule as arrays."""


def is_ever_set(params: DriftParams, name: str) -> bool:
    """Whether a number is ever other than 0, in any schedule of a batch.

    Args:
        params: the schedules.
        name: the knob.
    """
    return name in params.names or bool(np.asarray(params.fixed[..., params.all_names.index(name)]).any())

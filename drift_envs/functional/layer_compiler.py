"""From schedules to layers: for schedules that never end, and for random parts that come from a key.

* `compile_layers` - the layers of several schedules, as one batch
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from drift_envs.errors import ArgumentError
from drift_envs.functional.batch import Batch, ValueIndex
from drift_envs.functional.drift_params import CLOCKS, CODES, CURVES, FAR, STEPS, DriftLayers, Features
from drift_envs.knobs import Knob, Value, freeze
from drift_envs.schedule import Timeline
from drift_envs.schedule.model import OPERATIONS, Drift, Steps
from drift_envs.schedule.occurrences import RandomStream, occurrences_of, weight
from drift_envs.schedule.values import draws_once, is_draw, powers, swapped

_KNOB_AXES = {
    **dict.fromkeys(("base", "low", "high", "whole"), 1),
    **dict.fromkeys(("operation", "argument", "powers", "options", "option_count"), 2),
}
_OBJECT_KNOB_AXES = {
    "object_base": 1,
    **dict.fromkeys(("object_operation", "object_argument", "object_options", "object_option_count", "swaps"), 2),
}
# the dimension of the knobs in the arrays of a batch

_LONGEST_TABLE = 4096  # ticks of a ramp whose weights are tabulated, with NumPy's own rounding
_MOST_POWERS = 64  # repetitions of a factor that are tabulated
_MOST_DEVIATIONS = 6.0  # random ramps that overlap: so many standard deviations above their mean have room


def compile_layers(batch: Batch) -> tuple[DriftLayers, list[dict[str, tuple[Value, ...]]]]:
    """Compile schedules to one batch of layers, each array with a leading dimension for `vmap`.

    Args:
        batch: the schedules; its seeds draw the values that they leave to the seed.

    Returns:
        The layers, and for each schedule the values of the knobs that are no numbers.

    Raises:
        ArgumentError: if a schedule draws anew for each of several occurrences.
    """
    drifts = batch.drifts
    ramp = max((over for over in (drift.over or 0 for drift in drifts) if 0 < over <= _LONGEST_TABLE), default=-1)
    repeats = any(drift.scale and (drift.every or drift.rate) and drift.duration is None for drift in drifts)
    sizes = _Sizes(
        max(len(schedule.drifts) for schedule in batch.schedules),
        max((len(found) for drift in drifts for found in drift.choice.values()), default=1),
        ramp + 1,
        _MOST_POWERS if repeats else 2,
    )
    raw = [_Compiler(batch, index, sizes) for index in range(len(batch.schedules))]
    most = max((len(found.values) for each in raw for found in each.objects.values()), default=1)
    arrays = [each.finish(most) for each in raw]
    stacked = {name: np.stack([part[name] for part in arrays]) for name in arrays[0]}
    fixed = {"fixed": stacked["base"], "object_fixed": stacked["object_base"]}
    for places, axes in ((batch.kept, _KNOB_AXES), (batch.kept_others, _OBJECT_KNOB_AXES)):
        stacked.update({name: stacked[name].take(places, axis) for name, axis in axes.items()})
    params = DriftLayers(
        **{name: jnp.asarray(array) for name, array in {**stacked, **fixed}.items()},
        features=_features(drifts),
        **batch.meta(),
    )
    return params, [{name: found.values for name, found in each.objects.items()} for each in raw]


def _features(drifts: Sequence[Drift]) -> Features:
    curves = {_curve_code(drift) for drift in drifts if (drift.over or 0) > _LONGEST_TABLE}
    return Features(
        slots=max(map(_slots, drifts), default=0),
        curves=tuple(sorted(curves)),
        tabulated=any(0 < (drift.over or 0) <= _LONGEST_TABLE for drift in drifts),
        random=any(drift.rate is not None for drift in drifts),
        gradual=any(drift.kind == "gradual" for drift in drifts),
        walk=any(drift.walk for drift in drifts),
        choice=any(drift.choice for drift in drifts),
        scale=any(drift.scale for drift in drifts),
        bounded=any(drift.add or drift.scale or drift.walk for drift in drifts),
        periodic=any(drift.every is not None for drift in drifts),
    )


def _slots(drift: Drift) -> int:
    """The most occurrences of a drift that count in part at a tick."""
    if drift.duration is not None:
        return 1
    if not drift.over:
        return 0
    if drift.rate is not None:
        mean = drift.over * drift.rate
        return min(drift.over, math.ceil(mean + _MOST_DEVIATIONS * math.sqrt(mean) + 2))
    return 1 if drift.every is None else -(-drift.over // drift.every)


def _curve_code(drift: Drift) -> int:
    return STEPS if isinstance(drift.curve, Steps) else CURVES[drift.curve]


def _start(drift: Drift) -> int:
    """The tick of the first occurrence, without jitter."""
    return drift.at if drift.at is not None else (drift.every or 0)


class _Sizes(NamedTuple):
    """The sizes that all schedules of a batch share."""

    drifts: int
    options: int
    weights: int
    powers: int


class _Compiler:
    """Fills the arrays of one schedule."""

    def __init__(self, batch: Batch, index: int, sizes: _Sizes) -> None:
        schedule, numeric, others = batch.schedules[index], batch.numeric, batch.others
        self.schedule, self.numeric, self.others = schedule, numeric, others
        self._table, self._seed = batch.table, batch.seeds[index]
        Timeline(schedule, self._table, self._seed)  # refuses a schedule with other knobs
        self.objects = {knob.name: ValueIndex(knob.name) for knob in others}
        drifts, options = sizes.drifts, sizes.options
        numbers, kinds = (drifts, len(numeric)), (drifts, len(others))
        self.arrays: dict[str, np.ndarray] = {
            "first": np.full(drifts, FAR, np.int32),
            "period": np.full(drifts, FAR, np.int32),
            "rate": np.zeros(drifts),
            "duration": np.zeros(drifts, np.int32),
            "over": np.zeros(drifts, np.int32),
            "curve": np.zeros(drifts, np.int32),
            "steps": np.ones(drifts, np.int32),
            "gradual": np.zeros(drifts, bool),
            "weights": np.ones((drifts, sizes.weights)),
            "powers": np.ones((*numbers, sizes.powers)),
            "operation": np.zeros(numbers, np.int32),
            "argument": np.zeros(numbers),
            "options": np.zeros((*numbers, options)),
            "option_count": np.ones(numbers, np.int32),
            "object_operation": np.zeros(kinds, np.int32),
            "object_argument": np.zeros(kinds, np.int32),
            "object_options": np.zeros((*kinds, options), np.int32),
            "object_option_count": np.ones(kinds, np.int32),
            "object_base": np.array([self._object(knob, self._base(knob)) for knob in others], np.int32),
            "base": np.array([self._base(knob) for knob in numeric], float),
            "low": np.array([-np.inf if knob.bounds is None else knob.bounds[0] for knob in numeric], float),
            "high": np.array([np.inf if knob.bounds is None else knob.bounds[1] for knob in numeric], float),
            "whole": np.array([knob.kind == "integer" for knob in numeric], bool),
        }
        for index, drift in enumerate(schedule.drifts):
            self._add_times(index, drift)
            for operation in OPERATIONS:
                for place, knob in enumerate(numeric):
                    if knob.name in getattr(drift, operation):
                        self._add_number(index, place, knob, operation, getattr(drift, operation)[knob.name])
                for place, knob in enumerate(others):
                    if knob.name in getattr(drift, operation):
                        self._add_object(index, place, knob, operation, drift)
        self._permutations = {knob.name: self._close(place, knob) for place, knob in enumerate(others)}

    def _base(self, knob: Knob) -> Value:
        written = self.schedule.base.get(knob.name, knob.default)
        if is_draw(knob, written):
            return self._value(0, 0, knob)
        return freeze(knob.check(written) if knob.name in self.schedule.base else written)

    def _value(self, drifts: int, tick: int, knob: Knob) -> Value:
        """The value that the first so many drifts give, drawn as the timeline draws it."""
        cut = self.schedule.model_copy(update={"drifts": self.schedule.drifts[:drifts]})
        return Timeline(cut, self._table, self._seed).values(tick)[knob.name]

    def _object(self, knob: Knob, value: Value) -> int:
        return self.objects[knob.name].index(value)

    def _add_times(self, index: int, drift: Drift) -> None:
        arrays = self.arrays
        start = _start(drift)
        if drift.jitter and drift.every is not None:
            raise self._need_ticks(drift, "`jitter` for each occurrence")
        if drift.jitter:
            entropy = self._seed if self.schedule.seed is None else self.schedule.seed
            start = occurrences_of(drift, RandomStream(entropy, index)).first
        arrays["first"][index] = min(start, FAR)
        if drift.every is not None:
            arrays["period"][index] = min(drift.every, FAR)
        arrays["rate"][index] = drift.rate or 0.0
        arrays["duration"][index] = min(drift.duration or 0, FAR)
        arrays["over"][index] = min(drift.over or 0, FAR)
        arrays["gradual"][index] = drift.kind == "gradual"
        arrays["curve"][index] = _curve_code(drift)
        if isinstance(drift.curve, Steps):
            arrays["steps"][index] = min(drift.curve.steps, FAR)
        if drift.over and drift.over < arrays["weights"].shape[1]:
            elapsed = np.arange(arrays["weights"].shape[1])
            arrays["weights"][index] = weight(elapsed / drift.over, drift.curve)

    def _add_number(self, index: int, place: int, knob: Knob, operation: str, argument: Any) -> None:
        self.arrays["operation"][index, place] = CODES[operation]
        if operation == "choice":
            self.arrays["options"][index, place, : len(argument)] = [knob.check(option) for option in argument]
            self.arrays["option_count"][index, place] = len(argument)
        else:
            self.arrays["argument"][index, place] = argument
            if operation == "scale":
                counts = np.arange(self.arrays["powers"].shape[2])
                self.arrays["powers"][index, place] = powers(argument, counts)

    def _add_object(self, index: int, place: int, knob: Knob, operation: str, drift: Drift) -> None:
        argument = getattr(drift, operation)[knob.name]
        self.arrays["object_operation"][index, place] = CODES[operation]
        if operation == "choice":
            options = [self._object(knob, freeze(knob.check(option))) for option in argument]
            self.arrays["object_options"][index, place, : len(options)] = options
            self.arrays["object_option_count"][index, place] = len(options)
        elif operation == "set":
            if is_draw(knob, argument):
                if drift.rate is not None or (drift.every is not None and not draws_once(argument)):
                    raise self._need_ticks(drift, f"a draw of `{knob.name}` for each occurrence")
                value = self._value(index + 1, _start(drift) + (drift.over or 0), knob)
            else:
                value = freeze(knob.check(argument))
            self.arrays["object_argument"][index, place] = self._object(knob, value)

    def _need_ticks(self, drift: Drift, what: str) -> ArgumentError:
        return ArgumentError(
            f"`ticks` should be given for {self.schedule.name!r}, whose drift {drift.name!r} has {what}. Received none"
        )

    def _close(self, place: int, knob: Knob) -> list[list[int]]:
        """Find all values that swaps lead to; returns for each drift the index after its swap, by index before."""
        found = self.objects[knob.name]
        after: list[list[int]] = [[] for _ in range(len(self.arrays["first"]))]
        position = 0
        while position < len(found.values):
            for index, drift in enumerate(self.schedule.drifts):
                value, keys = found.values[position], drift.swap.get(knob.name)
                # a value without the two keys can't be there when the swap comes: the timeline refuses it
                swaps = keys is not None and all(key in value for key in keys)
                after[index].append(found.index(swapped(value, keys, knob.name)) if swaps and keys else position)
            position += 1
        return after

    def finish(self, most: int) -> dict[str, np.ndarray]:
        """The arrays, with room for so many values of each knob."""
        swaps = np.zeros((len(self.arrays["first"]), len(self.others), most), np.int32)
        for place, knob in enumerate(self.others):
            for index, after in enumerate(self._permutations[knob.name]):
                swaps[index, place, : len(after)] = after
        seed = self.schedule.seed
        pinned = -1 if seed is None else zlib.crc32(str(seed).encode()) % 2**31
        clock = CLOCKS[self.schedule.clock]
        return {**self.arrays, "swaps": swaps, "clock": np.array(clock, np.int32), "seed": np.array(pinned, np.int32)}

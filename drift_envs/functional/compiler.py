"""A schedule as arrays: what `jit`, `vmap` and `scan` need of it. Thousands of schedules stack into one batch.

A table has one row for each stretch of equal knob values: a tick costs the same, however many drifts there are. Layers
are the drifts themselves, for schedules that never end or whose random parts come from a key.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Knob, KnobTable, Value, draws_once, freeze, powers, swapped
from drift_envs.schedule import Schedule, Timeline
from drift_envs.schedule.model import OPERATIONS, Drift, Steps
from drift_envs.schedule.occurrences import RandomStream, occurrences_of
from drift_envs.schedule.values import weight

_MOST_ROWS = 4096  # a longer ramp is computed
_CHUNK = 4096  # changes that are looked for at once
_MOST_TICKS = 10_000_000  # of a table

# the dimension of the knobs in the arrays of a batch
_KNOB_AXES = {
    **dict.fromkeys(("base", "low", "high", "whole"), 1),
    **dict.fromkeys(("operation", "argument", "powers", "options", "option_count"), 2),
}
_OBJECT_KNOB_AXES = {
    "object_base": 1,
    **dict.fromkeys(("object_operation", "object_argument", "object_options", "object_option_count", "swaps"), 2),
}

_LONGEST_TABLE = 4096  # ticks of a ramp whose weights are tabulated, with NumPy's own rounding
_MOST_POWERS = 64  # repetitions of a factor that are tabulated
_MOST_DEVIATIONS = 6.0  # random ramps that overlap: so many standard deviations above their mean have room
_MOST_VALUES = 4096

FAR = 2**30 - 1
"""The tick that does not come: ticks are 32-bit integers here, and sums of two of them have to fit."""

SET, ADD, SCALE, WALK, CHOICE, SWAP = range(1, 7)
"""Codes of the operations; 0 is none."""

CODES = {"set": SET, "add": ADD, "scale": SCALE, "walk": WALK, "choice": CHOICE, "swap": SWAP}
CURVES = {"linear": 0, "sigmoid": 1, "exponential": 2}

STEPS = 3
"""The code of a curve that rises in steps; the others are in `CURVES`."""

CLOCKS = {"episode": 0, "step": 1, "episode_step": 2}
_META = ("features", "clocks", "names", "object_names", "all_names", "all_object_names")


@dataclass(frozen=True)
class _Compiled:
    """What both forms of a schedule have; K numeric knobs and J others drift in some schedule of the batch.

    Args:
        clock: what a tick counts, see `CLOCKS`.
        fixed: the first numbers of all numeric knobs, which those that do not drift keep.
        object_fixed: the indices of the first values of all other knobs.
        clocks: the codes of the clocks of the batch.
        names: the K numeric knobs that drift.
        object_names: the J others that drift.
        all_names: all numeric knobs.
        all_object_names: all other knobs.
    """

    clock: Any
    fixed: Any
    object_fixed: Any
    clocks: tuple[int, ...]
    names: tuple[str, ...]
    object_names: tuple[str, ...]
    all_names: tuple[str, ...]
    all_object_names: tuple[str, ...]


@dataclass(frozen=True)
class DriftTable(_Compiled):
    """A schedule as R rows of the values of the knobs that drift.

    Args:
        starts: the tick from which on each row holds, ascending and ended by `FAR`, shape `(R + 1,)`.
        numbers: `(R, K)`.
        objects: indices of values, `(R, J)`.
    """

    starts: Any
    numbers: Any
    objects: Any


@dataclass(frozen=True)
class DriftLayers(_Compiled):
    """A schedule of D drifts; M options of a choice, V values of a knob. Values are computed tick by tick.

    Args:
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
        features: what the batch uses; equal for all schedules of a batch.
    """

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
    features: Features


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


def is_ever_set(params: DriftParams, name: str) -> bool:
    """Whether a number is ever other than 0, in any schedule of a batch."""
    return name in params.names or bool(np.asarray(params.fixed[..., params.all_names.index(name)]).any())


class CompiledSchedule(NamedTuple):
    """A schedule as arrays.

    Args:
        params: the arrays.
        objects: for each knob that is no number, the values that it can have, in the order of their indices.
    """

    params: DriftParams
    objects: dict[str, tuple[Value, ...]]


def compile_schedule(schedule: Schedule, table: KnobTable, seed: int = 0, ticks: int | None = None) -> CompiledSchedule:
    """Compile one schedule to arrays, see `compile_schedules`.

    Args:
        schedule: the schedule, loaded for the table.
        table: the knobs of the environment.
        seed: draws the values that the schedule leaves to the seed.
        ticks: how many ticks are computed ahead.

    Example:
        >>> from drift_envs.knobs import Knob
        >>> table = KnobTable((Knob("slip", 0.0, (0.0, 1.0), "probability of not moving as intended"),))
        >>> thaw = Schedule(version=1, name="thaw", drifts=({"name": "thaw", "at": 20, "set": {"slip": 0.5}},))
        >>> compile_schedule(thaw, table).params.starts[:2].tolist()
        [0, 20]
    """
    params, objects = compile_schedules([schedule], table, seed, ticks)
    return CompiledSchedule(jax.tree.map(lambda part: part[0], params), objects[0])


def compile_schedules(
    schedules: Sequence[Schedule], table: KnobTable, seed: int | Sequence[int] = 0, ticks: int | None = None
) -> tuple[DriftParams, list[dict[str, tuple[Value, ...]]]]:
    """Compile schedules to one batch of arrays, each with a leading dimension for `vmap`.

    With `ticks`, and where all schedules end, the values are computed ahead by `Timeline`, as a table. Without, drifts
    that recur are computed tick by tick for ever, and random parts come from the key of `start_drift`.

    Args:
        schedules: the schedules, at least one, loaded for the table.
        table: the knobs of the environment.
        seed: draws what schedule `i` leaves to the seed, as `seed + i` or number `i` of a sequence: drawn values and
            jittered times, with `ticks` all that is random.
        ticks: how many ticks are computed ahead; the last values stay after them.

    Returns:
        The arrays, and for each schedule the values of the knobs that are no numbers, see `CompiledSchedule`.

    Raises:
        ArgumentError: if there is no schedule, or one draws anew for each of several occurrences and `ticks` is absent.
    """
    if not schedules:
        raise ArgumentError("`schedules` should have at least one schedule. Received none")
    if ticks is not None:
        check_integer("ticks", ticks, 1, _MOST_TICKS)
    seeds = [seed + index for index in range(len(schedules))] if isinstance(seed, (int, np.integer)) else list(seed)
    if len(seeds) != len(schedules):
        raise ArgumentError(f"`seed` should have one number for each of {len(schedules)} schedules. Received {seed!r}")
    batch = Batch(schedules, table, seeds)
    if ticks is not None or all(map(fits_table, schedules)):
        return compile_table(batch, ticks)
    return compile_layers(batch)


class Batch:
    """Schedules with the knobs of an environment.

    Args:
        schedules: the schedules.
        table: the knobs.
        seeds: one for each schedule.

    Attributes:
        numeric: the knobs that are numbers.
        others: the other knobs.
        kept: the places in `numeric` of those that drift in any schedule.
        kept_others: the same for `others`.
    """

    def __init__(self, schedules: Sequence[Schedule], table: KnobTable, seeds: Sequence[int]) -> None:
        self.schedules, self.table, self.seeds = schedules, table, seeds
        self.drifts = [drift for schedule in schedules for drift in schedule.drifts]
        self.numeric = tuple(knob for knob in table.knobs if knob.is_numeric)
        self.others = tuple(knob for knob in table.knobs if not knob.is_numeric)
        drifting = {name for drift in self.drifts for name in drift.driven}
        self.kept = [place for place, knob in enumerate(self.numeric) if knob.name in drifting]
        self.kept_others = [place for place, knob in enumerate(self.others) if knob.name in drifting]

    def meta(self) -> dict[str, Any]:
        """The fields of `DriftParams` that are equal for all schedules of the batch."""
        return {
            "clocks": tuple(sorted({CLOCKS[schedule.clock] for schedule in self.schedules})),
            "names": tuple(self.numeric[place].name for place in self.kept),
            "object_names": tuple(self.others[place].name for place in self.kept_others),
            "all_names": tuple(knob.name for knob in self.numeric),
            "all_object_names": tuple(knob.name for knob in self.others),
        }


class ValueIndex:
    """The values of one knob that is no number, numbered as they are found.

    Args:
        name: the knob, for the error.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers: dict[Value, int] = {}

    def index(self, value: Value) -> int:
        """The number of a value.

        Raises:
            ArgumentError: if there are too many values.
        """
        if value not in self._numbers and len(self._numbers) == _MOST_VALUES:
            raise ArgumentError(f"`{self._name}` should have at most {_MOST_VALUES} values. Received more")
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> tuple[Value, ...]:
        """The values in the order of their numbers."""
        return tuple(self._numbers)


def fits_table(schedule: Schedule) -> bool:
    """Whether nothing changes any more after some tick, in few rows, and no part is left to the key.

    Example:
        >>> drifts = [{"at": 20, "set": {"slip": 0.5}}, {"every": 20, "set": {"slip": 0.5}}]
        >>> [fits_table(Schedule(version=1, name="tide", drifts=({"name": "tide", **drift},))) for drift in drifts]
        [True, False]
    """
    rows = sum((1 + (drift.over or 0)) * (1 if drift.duration is None else 2) for drift in schedule.drifts)
    return rows < _MOST_ROWS and all(map(_ends, schedule.drifts))


def _ends(drift: Drift) -> bool:
    is_single = drift.every is None and drift.rate is None
    return is_single and drift.kind != "gradual" and not drift.walk and not drift.choice


def compile_table(batch: Batch, ticks: int | None) -> tuple[DriftTable, list[dict[str, tuple[Value, ...]]]]:
    """Compile schedules to one batch of tables, each array with a leading dimension for `vmap`.

    Values are those of `Timeline` at every tick, random ones included.

    Args:
        batch: the schedules, with the seeds of their timelines.
        ticks: how many ticks the table holds, after which the last values stay; `None` if all schedules end.

    Returns:
        The tables, and for each schedule the values of the knobs that are no numbers.
    """
    found = [
        _Rows(Timeline(schedule, batch.table, seed), batch.numeric, batch.others, FAR if ticks is None else ticks)
        for schedule, seed in zip(batch.schedules, batch.seeds, strict=True)
    ]
    # a power of two, so that schedules with about as many rows need no compiling again
    most = 1 << (max(len(each.starts) for each in found) - 1).bit_length()
    starts, numbers, objects = (np.stack(parts) for parts in zip(*(each.padded(most) for each in found), strict=True))
    params = DriftTable(
        clock=jnp.array([CLOCKS[schedule.clock] for schedule in batch.schedules], jnp.int32),
        starts=jnp.asarray(starts, jnp.int32),
        numbers=jnp.asarray(numbers[:, :, batch.kept]),
        objects=jnp.asarray(objects[:, :, batch.kept_others]),
        fixed=jnp.asarray(numbers[:, 0]),
        object_fixed=jnp.asarray(objects[:, 0]),
        **batch.meta(),
    )
    return params, [each.values for each in found]


class _Rows:
    """The rows of one schedule."""

    def __init__(self, timeline: Timeline, numeric: Sequence[Knob], others: Sequence[Knob], stop: int) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in timeline.names}
        starts: list[int] = []
        tick = 0
        while tick < stop:
            points = timeline.change_points(tick, _CHUNK, stop)
            starts += points.ticks.tolist()
            for name, values in zip(timeline.names, points.columns, strict=True):
                self._columns[name] += list(values)
            tick = points.stop
        self.starts = starts
        self._numbers = np.array([self._column(knob) for knob in numeric], float).reshape(-1, len(starts)).T
        indices = {knob.name: ValueIndex(knob.name) for knob in others}
        codes = [[indices[knob.name].index(value) for value in self._column(knob)] for knob in others]
        self._objects = np.array(codes, np.int32).reshape(-1, len(starts)).T
        self.values = {name: index.values for name, index in indices.items()}

    def _column(self, knob: Knob) -> list[Any]:
        return self._columns.get(knob.name, [knob.default] * len(self.starts))

    def padded(self, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Starts, numbers and indices of values, with room for so many rows."""
        more = most - len(self.starts)
        starts = np.array([*self.starts, *[FAR] * (more + 1)])
        numbers, objects = (np.pad(part, ((0, more), (0, 0)), "edge") for part in (self._numbers, self._objects))
        return starts, numbers, objects


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
        self._permutations = {knob.name: self._close(knob) for knob in others}

    def _base(self, knob: Knob) -> Value:
        written = self.schedule.base.get(knob.name, knob.default)
        if knob.is_drawn(written):
            return self._value(0, 0, knob)
        return knob.canonical(written) if knob.name in self.schedule.base else freeze(written)

    def _value(self, drifts: int, tick: int, knob: Knob) -> Value:
        """The value that the first so many drifts give, drawn as the timeline draws it."""
        cut = self.schedule.model_copy(update={"drifts": self.schedule.drifts[:drifts]})
        return Timeline(cut, self._table, self._seed).values(tick)[knob.name]

    def _object(self, knob: Knob, value: Value) -> int:
        return self.objects[knob.name].index(value)

    def _add_times(self, index: int, drift: Drift) -> None:
        arrays = self.arrays
        start = drift.first
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
            options = [self._object(knob, knob.canonical(option)) for option in argument]
            self.arrays["object_options"][index, place, : len(options)] = options
            self.arrays["object_option_count"][index, place] = len(options)
        elif operation == "set":
            if knob.is_drawn(argument):
                if drift.rate is not None or (drift.every is not None and not draws_once(argument)):
                    raise self._need_ticks(drift, f"a draw of `{knob.name}` for each occurrence")
                value = self._value(index + 1, drift.first + (drift.over or 0), knob)
            else:
                value = knob.canonical(argument)
            self.arrays["object_argument"][index, place] = self._object(knob, value)

    def _need_ticks(self, drift: Drift, what: str) -> ArgumentError:
        return ArgumentError(
            f"`ticks` should be given for {self.schedule.name!r}, whose drift {drift.name!r} has {what}. Received none"
        )

    def _close(self, knob: Knob) -> list[list[int]]:
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


for _kind in (DriftTable, DriftLayers):
    _fields = _kind.__dataclass_fields__
    jax.tree_util.register_dataclass(
        _kind, [name for name in _fields if name not in _META], [name for name in _fields if name in _META]
    )


DriftParams = DriftTable | DriftLayers
"""A schedule as arrays."""

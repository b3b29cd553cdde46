"""What a schedule means: the value of every driven knob at every tick, a pure function of (schedule, seed, tick)."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import ne
from typing import Any, NamedTuple

import numpy as np

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value, freeze
from drift_envs.schedule.model import MAX_TICK, OPERATIONS, Schedule
from drift_envs.schedule.occurrences import BASE_KEY, Purpose, RandomStream
from drift_envs.schedule.phases import LONGEST_LIST, NEVER, Phase, PhaseTable
from drift_envs.schedule.values import Column, DriftEffect, DriftLayer, DriftRamp, NumberColumn, ObjectColumn

__all__ = ["NEVER", "KnobChange", "Phase", "Segment", "Timeline"]
_BLOCK = 512  # ticks that are computed at once where values change often
_BATCH = 4096  # about how many changes are computed at once
_KEPT = 4

Row = tuple[Value, ...]
"""Values in the order of the driven knobs."""

_LONGEST = 1 << 20  # ticks of a stretch in which anything happens more often than that
_FAR = MAX_TICK + 1


class Segment(NamedTuple):
    """Ticks `start` to `stop` (excluded) through which the driven knobs keep these values.

    Equal values may go on after `stop` and may have begun before `start`.
    """

    start: int
    stop: int
    values: Mapping[str, Value]


class KnobChange(NamedTuple):
    """One knob's change from the tick before `tick` to `tick`; `drift` is what caused it, as in `a+b`."""

    tick: int
    knob: str
    old: Value
    new: Value
    drift: str


class ChangePoints(NamedTuple):
    """The changes in a stretch of ticks.

    Args:
        ticks: the ticks from which on each row of values holds, the first being that of the stretch; shape `(K,)`.
        columns: for each driven knob its `K` values: an array for numbers, a list for others.
        stop: the tick at which the stretch ends, `NEVER` if nothing changes any more.
    """

    ticks: np.ndarray
    columns: tuple[Sequence[object] | np.ndarray, ...]
    stop: int


class _Changed(NamedTuple):
    """Ticks at which values change.

    Args:
        ticks: these ticks.
        rows: for each driven knob its values; the one before a change at `places[n]`, the one from then on behind it.
        places: the place of each tick in `rows`.
        turned: for each driven knob whether it changes at each tick.
    """

    ticks: np.ndarray
    rows: list[list[Value]]
    places: np.ndarray
    turned: list[np.ndarray]


class Timeline:
    """The value of every driven knob at every tick: a pure function of (schedule, seed, tick).

    Ticks can be read in any order. Caches change the cost of a read, never its result; copies and pickles
    drop most of them. A timeline is not thread-safe.

    Args:
        schedule: the schedule; load it with the same table first, which finds what is wrong with it.
        table: the knobs of the environment.
        seed: the seed of the environment; the schedule's own seed goes first.

    Raises:
        ArgumentError: if the seed is negative or the schedule has a knob that the table lacks.
        KnobError: if the schedule holds a value that the knob does not allow.

    Example:
        >>> from drift_envs.schedule.loader import load_schedule
        >>> table = KnobTable((Knob("slip", 0.0, (0.0, 1.0), "probability of not moving as intended"),))
        >>> thaw = {"name": "thaw", "at": 10, "kind": "incremental", "over": 4, "set": {"slip": 0.5}}
        >>> timeline = Timeline(load_schedule({"version": 1, "drifts": [thaw]}, table=table), table, seed=0)
        >>> [timeline.values(tick)["slip"] for tick in (9, 10, 11, 12, 13, 14)]
        [0.0, 0.0, 0.125, 0.25, 0.375, 0.5]
        >>> timeline.phase(12)
        Phase(id='thaw', index=1, start=10, drift='thaw', stop=9223372036854775807)
    """

    def __init__(self, schedule: Schedule, table: KnobTable, seed: int) -> None:
        self.schedule, self.table, self.seed = schedule, table, check_integer("seed", seed)
        self._entropy = self.seed if schedule.seed is None else schedule.seed
        self._streams = [RandomStream(self._entropy, index) for index in range(len(schedule.drifts))]
        self._ramps = [DriftRamp(drift, stream) for drift, stream in zip(schedule.drifts, self._streams, strict=True)]
        self._base_draws: dict[str, Value] = {}
        driven = schedule.driven
        unknown = [name for name in driven if name not in table]
        if unknown:
            raise ArgumentError(f"`schedule` sets knobs that the environment does not have: {', '.join(unknown)}")
        self.names = tuple(name for name in table if name in driven)
        self._columns = [self._column(table[name]) for name in self.names]
        self._phases = PhaseTable(schedule.drifts, [ramp.occurrences for ramp in self._ramps])
        self._segments: Sequence[Segment | Row] = ()
        self._last = Segment(-1, -1, FrozenMapping())
        self._only_name = self.names[0] if len(self.names) == 1 else None
        self._start = 0
        self._still: Segment | None = None
        self._blocks: OrderedDict[int, Sequence[Segment | Row]] = OrderedDict()
        self._recent: list[FrozenMapping] = []

    @property
    def can_change(self) -> bool:
        """Whether there is any drift."""
        return bool(self._ramps)

    def segment(self, tick: int) -> Segment:
        """A stretch of equal values around a tick.

        Args:
            tick: a tick of at least 0.

        Returns:
            The segment. It may stop although the values go on as they are, but then the next one holds
            the same object.

        Raises:
            ArgumentError: if the tick is negative or too far away.
        """
        offset = tick - self._start
        if 0 <= offset < len(self._segments):
            found = self._segments[offset]
            if type(found) is Segment:
                return found
            last = self._last
            if last[0] != tick:
                # Made on demand: thousands of live segments would trigger the garbage collector, which
                # costs more than they do. A dictionary is copied at half the cost of pairs.
                name = self._only_name
                values = FrozenMapping(zip(self.names, found, strict=True) if name is None else {name: found[0]})
                self._last = last = _MAKE_SEGMENT((tick, tick + 1, values))
            return last
        return self._find(tick)

    def walk(self, tick: int) -> Iterator[tuple[int, Mapping[str, Value]]]:
        """Iterate over the segments from a tick on, at the lowest cost for consecutive ticks.

        Args:
            tick: where to start.

        Yields:
            The end of the segment that holds the tick and its values, then those of the following ones.
        """
        while True:
            stop, values = self.segment(tick)[1:]
            yield stop, values
            if stop == tick + 1 and stop % _BLOCK:
                number, offset = divmod(stop, _BLOCK)
                block = self._blocks.get(number, ())
                name = self._only_name
                for row in itertools.islice(block, offset, len(block)):
                    if type(row) is Segment:
                        break
                    stop += 1
                    yield stop, FrozenMapping(zip(self.names, row, strict=True) if name is None else {name: row[0]})
            if stop >= NEVER:
                return
            tick = stop

    def values(self, tick: int) -> Mapping[str, Value]:
        """The canonical values of `names` at a tick; the same object for equal neighbouring ticks."""
        return self.segment(tick).values

    def valid_until(self, tick: int) -> int:
        """The first later tick at which `values` may return another object, `NEVER` if none is known."""
        return self.segment(tick).stop

    def change_points(self, tick: int, most: int, until: int = _FAR) -> ChangePoints:
        """The changes from a tick on, as arrays.

        Args:
            tick: the first tick.
            most: about how many changes are wanted.
            until: a later tick, beyond which nothing is computed.
        """
        ticks, stop = _candidates(self._ramps, self._checked(tick), most, until)
        offsets, folded = _distinct_rows(self._ramps, self._columns, ticks)
        return ChangePoints(ticks[offsets], _decode(self._columns, folded), stop)

    def columns(self, start: int, size: int) -> tuple[Sequence[object] | np.ndarray, ...]:
        """The values of each driven knob at every tick of a stretch, as arrays where they are numbers.

        Args:
            start: the first tick.
            size: how many ticks.
        """
        ticks = np.arange(self._checked(start), start + size, dtype=np.int64)
        return _decode(self._columns, _fold(self._ramps, self._columns, ticks))

    def phase(self, tick: int) -> Phase:
        """The phase that holds a tick.

        Raises:
            ArgumentError: if the tick lies beyond `last_phase_tick`.
        """
        return self._phases.at(self._checked(tick))

    @property
    def last_phase_tick(self) -> int:
        """The last tick whose phase is found: earlier than others where very many phases do not repeat."""
        return self._phases.last_tick

    def phases(self, stop: int) -> list[Phase]:
        """All phases that start before tick `stop`.

        Raises:
            ArgumentError: if there are more than a hundred thousand.
        """
        return self._phases.before(check_integer("stop", stop, 0, MAX_TICK + 1))

    def first_phases(self, most: int) -> list[Phase]:
        """The first phases, at most `most`."""
        return self._phases.first(check_integer("most", most, 1, LONGEST_LIST))

    def rounds(self, count: int) -> list[tuple[Phase, int]]:
        """The first episodes of every phase, so that long phases can be played in part.

        Args:
            count: how many of each phase.

        Returns:
            Phase and tick of each episode.

        Raises:
            ArgumentError: if phases have no fixed episodes, or one has fewer.

        Example:
            >>> from drift_envs.schedule.loader import load_schedule
            >>> table = KnobTable((Knob("slip", 0.0, (0.0, 1.0), "probability of not moving as intended"),))
            >>> thaw = {"version": 1, "drifts": [{"at": 10, "set": {"slip": 0.5}}]}
            >>> [tick for _, tick in Timeline(load_schedule(thaw, table=table), table, seed=0).rounds(2)]
            [0, 1, 10, 11]
        """
        drifts = self.schedule.drifts
        moved = [f"its clock is `{self.schedule.clock}`"] if self.schedule.clock != "episode" else []
        for drift in drifts:
            times = {"every": drift.every, "rate": drift.rate, "for": drift.duration, "jitter": drift.jitter or None}
            keys = " and ".join(f"`{key}`" for key, value in times.items() if value is not None)
            moved += [f"the drift {drift.name!r} has {keys}"] if keys else []
        if moved:
            raise ArgumentError(
                "`rounds` needs phases with fixed episodes, that is `clock: episode` and drifts with a plain `at`; "
                f"give `episodes` instead. Received {self.schedule.name}, where {moved[0]}"
            )
        phases = self.phases(max((drift.at or 0 for drift in drifts), default=0) + 1)
        for phase in phases:
            if phase.stop - phase.start < count:
                raise ArgumentError(
                    f"`rounds` should be at most the episodes of the shortest phase. Received {count}, phase "
                    f"{phase.id!r} holds {phase.stop - phase.start}"
                )
        return [(phase, phase.start + number) for phase in phases for number in range(count)]

    def first_tick(self, phase_id: str, argument: str = "phase_id") -> int:
        """The first tick of a phase at which its drift has its full weight.

        Args:
            phase_id: the id of the phase.
            argument: what the caller calls it, for the error.

        Raises:
            ArgumentError: if there is no such phase, or it ends before the ramp of its drift is up.
        """
        phase = self._phases.named(phase_id, argument)
        tick = self._phases.full(phase)
        if tick >= phase.stop:
            raise ArgumentError(
                f"phase `{phase.id}` ends at tick {phase.stop}, before the ramp of its drift is up at tick {tick}"
            )
        return tick

    def full_tick(self, phase: Phase) -> int:
        """The first tick of a phase at which its drift has its full weight, or its last one if it ends earlier."""
        return min(self._phases.full(phase), phase.stop - 1)

    def phase_named(self, phase_id: str, argument: str = "phase_id") -> Phase:
        """The phase of that id.

        Args:
            phase_id: the id.
            argument: what the caller calls it, for the error.

        Raises:
            ArgumentError: if there is no such phase.
        """
        return self._phases.named(phase_id, argument)

    def changes(self, start: int, stop: int) -> list[KnobChange]:
        """Every change of a knob's value at a tick with start < tick < stop, in the order of ticks and knobs."""
        return list(itertools.chain.from_iterable(self._changes_of(block) for block in self._changed(start, stop)))

    def iterate_changes(self, start: int, stop: int) -> Iterator[KnobChange]:
        """The `changes` one after the other; only some thousands of them are in memory at a time."""
        for block in self._changed(start, stop):
            yield from self._changes_of(block)

    def count_changes(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """How many `changes` there are in each of consecutive stretches of ticks.

        Args:
            start: a tick before the first change.
            stop: a tick after the last one.

        Yields:
            The tick before the first change of a stretch, and the number of its changes.
        """
        for block in self._changed(start, stop):
            yield int(block.ticks[0]) - 1, sum(int(turned.sum()) for turned in block.turned)

    def __deepcopy__(self, memo: dict[int, Any]) -> Timeline:
        """An independent timeline; schedule and table never change and are shared."""
        other = type(self)(self.schedule, self.table, self.seed)
        other.__setstate__(self.__getstate__())
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.schedule, self.table, self.seed), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        """The values drawn for knobs, which may have cost a search."""
        drawn = [[layer.drawn for layer in column.layers] for column in self._columns]
        return {"base": dict(self._base_draws), "drawn": drawn}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._base_draws = dict(state["base"])
        for column, drawn in zip(self._columns, state["drawn"], strict=True):
            for layer, values in zip(column.layers, drawn, strict=True):
                layer.drawn = None if values is None else dict(values)

    def _column(self, knob: Knob) -> Column:
        base: Any = self.schedule.base.get(knob.name, knob.default)
        kind = NumberColumn if knob.is_numeric else ObjectColumn
        if knob.is_drawn(base):
            column = kind(knob, lambda: self._drawn_base(knob, base))
        else:
            fixed = knob.canonical(base) if knob.name in self.schedule.base else freeze(base)
            column = kind(knob, lambda: fixed)
        for drift, ramp, stream in zip(self.schedule.drifts, self._ramps, self._streams, strict=True):
            for operation in OPERATIONS:
                written = getattr(drift, operation)
                if knob.name in written:
                    below = partial(column.at, layers=len(column.layers))
                    column.layers.append(DriftLayer(ramp, knob, operation, written[knob.name], stream, below))
        return column

    def _drawn_base(self, knob: Knob, written: Mapping[str, Any]) -> Value:
        if knob.name not in self._base_draws:
            generator = RandomStream(self._entropy, BASE_KEY).generator(Purpose.DRAW, knob.name)
            self._base_draws[knob.name] = knob.sample(written, None, generator)
        return self._base_draws[knob.name]

    def _checked(self, tick: int) -> int:
        return check_integer("tick", tick, 0, MAX_TICK)

    def _find(self, tick: int) -> Segment:
        still = self._still
        if still is not None and still.start <= tick < still.stop:
            return still
        tick = self._checked(tick)
        until = self._until(tick)
        if until - tick >= _BLOCK:
            values = self._interned(FrozenMapping(zip(self.names, self._rows(tick, 1)[0][0], strict=True)))
            self._still = Segment(tick, until, values)
            return self._still
        number = tick // _BLOCK
        if number not in self._blocks:
            self._blocks[number] = self._block(number * _BLOCK)
            if len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
        self._segments, self._start = self._blocks[number], number * _BLOCK
        return self.segment(tick)

    def _until(self, tick: int) -> int:
        until = min((ramp.until(tick) for ramp in self._ramps), default=NEVER)
        return until if until <= MAX_TICK else NEVER

    def _block(self, start: int) -> Sequence[Segment | Row]:
        """The segment of each tick of a block, or the values of each tick where all of them differ."""
        rows, offsets = self._rows(start, _BLOCK)
        if len(rows) == _BLOCK:
            edges = [
                Segment(tick, tick + 1, self._interned(FrozenMapping(zip(self.names, row, strict=True))))
                for tick, row in ((start, rows[0]), (start + _BLOCK - 1, rows[-1]))
            ]
            return [edges[0], *rows[1:-1], edges[1]]
        values = [FrozenMapping(zip(self.names, row, strict=True)) for row in rows]
        values[0], values[-1] = self._interned(values[0]), self._interned(values[-1])
        begins = [start + offset for offset in offsets]
        ends = [*begins[1:], start + _BLOCK]
        segments = list(map(_MAKE_SEGMENT, zip(begins, ends, values, strict=True)))
        lengths = (end - begin for begin, end in zip(begins, ends, strict=True))
        return [segment for segment, length in zip(segments, lengths, strict=True) for _ in range(length)]

    def _rows(self, start: int, size: int) -> tuple[list[Row], list[int]]:
        """The distinct rows of values in a stretch of ticks, and the offsets at which they begin."""
        ticks = np.arange(start, start + size, dtype=np.int64)
        offsets, folded = _distinct_rows(self._ramps, self._columns, ticks)
        decoded = [column.decode(numbers) for column, numbers in zip(self._columns, folded, strict=True)]
        rows = list(zip(*decoded, strict=True)) if decoded else [()]
        return rows, offsets.tolist()

    def _interned(self, values: FrozenMapping) -> FrozenMapping:
        """The object that a neighbour holds, if its content is the same."""
        for known in self._recent:
            if known == values:
                return known
        self._recent = [values, *self._recent[: 2 * _KEPT]]
        return values

    def _changed(self, start: int, stop: int) -> Iterator[_Changed]:
        """The ticks with start < tick < stop at which values change, in blocks."""
        tick, stop = self._checked(start), min(stop, MAX_TICK + 1)
        now = _fold(self._ramps, self._columns, np.array([tick], np.int64))
        last = [column.decode(folded)[0] for column, folded in zip(self._columns, now, strict=True)]
        while (until := self._until(tick)) < stop:
            found, following = _candidates(self._ramps, max(tick, until - 1), _BATCH, stop)
            offsets, folded = _distinct_rows(self._ramps, self._columns, found)
            rows = [
                [old, *column.decode(numbers)] for old, column, numbers in zip(last, self._columns, folded, strict=True)
            ]
            last = [row[-1] for row in rows]
            turned = [np.fromiter(map(ne, row[1:], row), bool, len(offsets)) for row in rows]
            some = np.flatnonzero(np.any(turned, axis=0)) if turned else offsets[:0]
            if len(some):
                yield _Changed(found[offsets][some], rows, some, [own[some] for own in turned])
            if following >= stop:
                return
            tick = following

    def _changes_of(self, block: _Changed) -> list[KnobChange]:
        """The changes of single knobs in a block."""
        ticks = np.stack([block.ticks - 1, block.ticks], axis=1).ravel()
        is_blamed = any(len(column.layers) > 1 for column in self._columns)
        effects = {id(ramp): ramp.effect(ticks) for ramp in self._ramps} if is_blamed else {}
        causes = [self._causes(column, effects, len(block.ticks)) for column in self._columns]
        places, times = block.places.tolist(), block.ticks.tolist()
        if len(causes) == 1:
            name, row, cause = self.names[0], block.rows[0], causes[0]
            return [
                KnobChange(tick, name, row[place], row[place + 1], why)
                for tick, place, why in zip(times, places, cause, strict=True)
            ]
        found = list(zip(self.names, block.rows, causes, block.turned, strict=True))
        return [
            KnobChange(tick, name, row[place], row[place + 1], cause[number])
            for number, (tick, place) in enumerate(zip(times, places, strict=True))
            for name, row, cause, turned in found
            if turned[number]
        ]

    def _causes(self, column: Column, effects: Mapping[int, DriftEffect], count: int) -> list[str]:
        """The drifts without whose change a value would differ; all that changed, if there is none."""
        names = [layer.ramp.drift.name for layer in column.layers]
        if len(names) < 2:
            return (names or [""]) * count
        pairs = [effects[id(layer.ramp)] for layer in column.layers]
        before, after = ([pair.pick(slice(first, None, 2)) for pair in pairs] for first in (0, 1))
        changed = np.stack([old.differs(new) for old, new in zip(before, after, strict=True)])
        needed = np.zeros_like(changed)
        several = np.flatnonzero(changed.sum(axis=0) > 1)
        if len(several):
            before, after = ([effect.pick(several) for effect in side] for side in (before, after))
            values = column.values(after, len(several))
            for place in np.flatnonzero(changed[:, several].any(axis=1)).tolist():
                without = column.values([*after[:place], before[place], *after[place + 1 :]], len(several))
                differs = [one != other for one, other in zip(without, values, strict=True)]
                needed[place, several] = changed[place, several] & differs
        blamed = np.where(needed.any(axis=0), needed, changed)
        return ["+".join(names[place] for place in np.flatnonzero(row)) for row in blamed.T]


def _candidates(ramps: Sequence[DriftRamp], start: int, most: int, until: int) -> tuple[np.ndarray, int]:
    """The ticks of a stretch at which a value may change, and the stretch's end."""
    quiet_until = min((ramp.until(start) for ramp in ramps if ramp.over), default=_FAR)
    if quiet_until <= start + 1:  # within a ramp every tick counts
        stop = min(start + most, until)
        return np.arange(start, stop, dtype=np.int64), stop if stop < _FAR else NEVER
    sudden = [ramp for ramp in ramps if not ramp.over]
    density = sum(ramp.occurrences.density for ramp in sudden)
    stop = min(quiet_until, until)
    if density:
        stop = min(stop, start + 1 + min(int(most / density), _LONGEST))
    found = [np.array([start], np.int64)]
    if stop > start + 1:
        found += [ramp.occurrences.bounds(start + 1, stop) for ramp in sudden]
    return np.unique(np.concatenate(found)), stop if stop < _FAR else NEVER


def _distinct_rows(
    ramps: Sequence[DriftRamp], columns: Sequence[Column], ticks: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Drop the ticks at which every driven knob has the same value as at the tick before in the array.

    Returns:
        The positions of the ticks that are left, the first always among them, and for each knob its folded numbers
        there, see `Column.fold`.
    """
    folded = _fold(ramps, columns, ticks)
    differs = np.zeros(len(ticks), bool)
    differs[0] = True
    for numbers in folded:
        differs[1:] |= numbers[1:] != numbers[:-1]
    offsets = np.flatnonzero(differs)
    return offsets, [numbers[offsets] for numbers in folded]


def _fold(ramps: Sequence[DriftRamp], columns: Sequence[Column], ticks: np.ndarray) -> list[np.ndarray]:
    effects = {id(ramp): ramp.effect(ticks) for ramp in ramps}
    return [column.fold([effects[id(layer.ramp)] for layer in column.layers], len(ticks)) for column in columns]


def _decode(columns: Sequence[Column], folded: Sequence[np.ndarray]) -> tuple[Sequence[object] | np.ndarray, ...]:
    return tuple(
        numbers if isinstance(column, NumberColumn) else column.decode(numbers)
        for column, numbers in zip(columns, folded, strict=True)
    )


def needs_seed(schedule: Schedule, table: KnobTable) -> bool:
    """Whether the values depend on the seed: the schedule draws times, values or mixtures, and pins no seed.

    Example:
        >>> storms = {"name": "storms", "rate": 0.5, "set": {"slip": 0.5}}
        >>> needs_seed(Schedule(version=1, name="storms", drifts=(storms,)), KnobTable(()))
        True
    """
    draws = draws_values(schedule, table) or any(
        drift.rate is not None or drift.jitter or drift.kind == "gradual" or drift.choice or drift.walk
        for drift in schedule.drifts
    )
    return schedule.seed is None and draws


def draws_values(schedule: Schedule, table: KnobTable) -> bool:
    """Whether a schedule leaves values of these knobs to the seed, such as maps, which are found by search."""
    written = [schedule.base, *(drift.set for drift in schedule.drifts)]
    return any(table[name].is_drawn(value) for values in written for name, value in values.items() if name in table)


_MAKE_SEGMENT = partial(tuple.__new__, Segment)  # half the cost of a call, which counts where every tick has its own

"""Knob values of many sub-environments, in arrays that timelines fill for many ticks at once.

* `KnobPool` - which values hold in which sub-environment, and until when
* `FAR` - the tick that does not come, small enough that sums with it are exact
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from drift_envs.knobs import KnobTable
from drift_envs.schedule import Drift, Schedule, Timeline
from drift_envs.schedule.change_points import ChangePoints, needs_seed
from drift_envs.schedule.knob_rules import is_draw
from drift_envs.schedule.rules import OPERATIONS

FAR = 1 << 61

_OVER = -1
_DENSE = 1 / 8
"""Changes a tick from which on every tick is written down, instead of the changes alone."""
_SHARED_WIDTH = 512
_DENSE_WIDTH = 4096  # sub-environments come to the end of a row at different steps, which should be rare
_OWN_WIDTH = 256
_DRAWN_WIDTH = 4  # values that cost a search to draw are not drawn far ahead

Columns = Mapping[str, np.ndarray]
Encode = Callable[[Mapping[str, Any]], Columns]
Entry = tuple[Any, ...]
"""Where in the pool, the tick at which that ends (negative at the end of a row), and a number for
each column; or arrays of these."""


class KnobPool:
    """Which values hold in which sub-environment, and until when.

    Values stand in a pool of rows; a row holds a stretch of one timeline. A *dense* row has an entry
    for every tick; then `cursor` moves with time and `gather` reads all values at once. Other rows have
    an entry for every change; then `cursor` moves when a tick reaches `until`, by `advance`.
    A schedule that draws nothing from the seed has one timeline for all, and so few rows.

    Args:
        schedule: the schedule.
        table: the knobs.
        encode: turns the values of the driven knobs in a stretch of K ticks into columns of numbers, shape `(K,)`.
        columns: the values in force, by column, shape `(N,)` each; driven ones are written into these arrays.
            A column of `encode` that is none of these stays in the pool, where `value` finds it.
        is_shared: whether all sub-environments follow the timeline of the first.

    Attributes:
        cursor: where they stand in the pool, shape `(N,)`.
        is_dense: whether rows have an entry for every tick.
    """

    def __init__(
        self,
        schedule: Schedule,
        table: KnobTable,
        columns: dict[str, np.ndarray],
        encode: Encode,
        is_shared: bool = False,
    ) -> None:
        number = len(next(iter(columns.values())))
        self.schedule, self.table = schedule, table
        self.is_shared = is_shared or not needs_seed(schedule, table)
        self.can_change = bool(schedule.drifts)
        self.is_dense = (
            self.is_shared
            and any(_density(drift) >= _DENSE for drift in schedule.drifts)
            and all(table[name].is_numeric for drift in schedule.drifts for name in turned_names(drift))
        )
        self.cursor = np.full(number, -1, np.int64)
        self.columns = columns
        self._encode = encode
        self._width = _DENSE_WIDTH if self.is_dense else _SHARED_WIDTH if self.is_shared else _OWN_WIDTH
        if not self.is_dense and _draws_far(schedule, table):
            self._width = _DRAWN_WIDTH
        self._goes_back = schedule.clock == "episode_step"
        self._timelines: dict[int, Timeline] = {}
        self._home = np.full(number, -1, np.int64)  # the row that begins at tick 0, where each has its own
        self._rows: dict[int, int] = {}  # the first tick of a row: the row, where all share a timeline
        # A row's ticks, then the tick at which it ends, then `_OVER`.
        self._stride = self._width + 2
        self._ticks = np.zeros((0, self._stride), np.int64)
        self._following = self._ticks.reshape(-1)  # the tick of the next entry, by cursor
        self._pool: dict[str, np.ndarray] = {}
        self._flat: dict[str, np.ndarray] = {}
        self._varying: list[str] = []  # the columns that are not the same throughout each row

    @property
    def number(self) -> int:
        """How many sub-environments there are."""
        return len(self.cursor)

    @property
    def pool(self) -> Columns:
        """The columns of all rows. What is not needed any more may stand in them."""
        return self._pool

    def rekey(self, indices: np.ndarray, keys: Sequence[int]) -> None:
        """Give sub-environments the timelines of these seeds; `seek` has to follow.

        Args:
            indices: the sub-environments.
            keys: their seeds.
        """
        if self.is_shared:
            if self._timelines.get(0) is None or self._timelines[0].seed != keys[0]:
                self._timelines = {0: Timeline(self.schedule, self.table, keys[0])}
                self._rows = {}
            return
        for index, key in zip(indices.tolist(), keys, strict=True):
            if index not in self._timelines or self._timelines[index].seed != key:
                self._timelines[index] = Timeline(self.schedule, self.table, key)
                self._home[index] = -1

    def timeline(self, index: int) -> Timeline:
        """The timeline of a sub-environment.

        Args:
            index: its number.
        """
        return self._timelines[0 if self.is_shared else index]

    def value(self, name: str, index: int) -> Any:
        """The number in force in a column that may stand in the pool alone.

        Args:
            name: the column.
            index: the sub-environment.
        """
        return self._pool[name].reshape(-1)[self.cursor[index]].item()

    def seek(self, indices: np.ndarray, ticks: np.ndarray) -> None:
        """Let the values of these ticks hold.

        Args:
            indices: the sub-environments.
            ticks: their ticks.
        """
        if not len(indices):
            return
        if self.is_shared:
            for tick in np.unique(ticks).tolist():
                some = indices[ticks == tick]
                self.read(some, np.full(len(some), self._shared_cursor(tick)))
        elif not ticks.any():
            for index in indices[self._home[indices] < 0].tolist():
                self._home[index] = index
                self._fill(index, self.timeline(index).change_points(0, self._width))
            self.read(indices, indices * (self._stride))
        else:
            shift = self.number if self._goes_back else 0
            self._home[indices] = self._home[indices] if shift else -1
            for index, tick in zip(indices.tolist(), ticks.tolist(), strict=True):
                self._fill(index + shift, self.timeline(index).change_points(tick, self._width))
            self.read(indices, (indices + shift) * (self._stride))

    def until(self, indices: np.ndarray) -> np.ndarray:
        """The ticks at which the values of these sub-environments may change.

        Args:
            indices: the sub-environments.
        """
        cursor = self.cursor[indices]
        return self._ticks[cursor // self._stride, self._width] if self.is_dense else self._following[cursor]

    def advance(self, indices: np.ndarray) -> np.ndarray:
        """Go on with the next change of these sub-environments. Rows are not dense.

        Args:
            indices: the sub-environments.

        Returns:
            The ticks at which the values may change again.
        """
        cursor = self.cursor[indices]
        cursor += 1
        until = self._following[cursor]
        if until.min() < 0:
            over = until == _OVER
            beyond = indices[over]
            self.seek(beyond, self.until(beyond))
            cursor[over] = self.cursor[beyond]
            until = self._following[cursor]
        self.cursor[indices] = cursor
        for name, values in self._flat.items():
            self.columns[name][indices] = values[cursor]
        return until

    def ahead(self, indices: np.ndarray) -> Entry:
        """What holds after the next change of these sub-environments, arrays of shape `(K,)`. Rows are not dense.

        Args:
            indices: the sub-environments.
        """
        cursor = self.cursor[indices]
        cursor += 1
        return (cursor, self._following[cursor], *(values[cursor] for values in self._flat.values()))

    def enter(self, indices: int | np.ndarray, entry: Entry) -> None:
        """Let what `ahead` has told hold.

        Args:
            indices: the sub-environment, or several.
            entry: what holds in it, or in each of them.
        """
        self.cursor[indices] = entry[0]
        for name, values in zip(self._flat, entry[2:], strict=True):
            self.columns[name][indices] = values

    def advance_one(self, index: int) -> int:
        """The same for one sub-environment.

        Args:
            index: its number.
        """
        cursor = self.cursor.item(index) + 1
        until = self._following.item(cursor)
        if until < 0:
            return int(self.advance(np.array([index]))[0])
        self.cursor[index] = cursor
        for name, values in self._flat.items():
            self.columns[name][index] = values[cursor]
        return until

    def gather(self) -> None:
        """Read the values of all sub-environments from where their cursors stand. Rows are dense."""
        for name in self._varying:
            self._flat[name].take(self.cursor, out=self.columns[name], mode="wrap")  # the others are slower

    def _shared_cursor(self, tick: int) -> int:
        """Where in the pool a tick stands."""
        first = tick - tick % self._width if self.is_dense else tick
        if first not in self._rows:
            row = self._new_row()
            timeline = self.timeline(0)
            if self.is_dense:
                ticks = np.arange(first, first + self._width)
                turns = ChangePoints(ticks, timeline.columns(first, self._width), first + self._width)
            else:
                turns = timeline.change_points(tick, self._width)
            self._fill(row, turns)
            self._rows[first] = row
        return self._rows[first] * self._stride + tick - first

    def read(self, indices: np.ndarray, cursor: np.ndarray) -> None:
        """Let the values hold that stand somewhere in the pool.

        Args:
            indices: the sub-environments.
            cursor: where the values of each stand.
        """
        self.cursor[indices] = cursor
        for name, values in self._flat.items():
            self.columns[name][indices] = values[cursor]

    def _new_row(self) -> int:
        """A row that nobody reads any more, or one more."""
        used = set(np.unique(self.cursor // (self._stride)).tolist())
        self._rows = {first: row for first, row in self._rows.items() if row in used}
        return next(row for row in range(len(self._ticks) + 1) if row not in used)

    def _fill(self, row: int, turns: ChangePoints) -> None:
        """Write a stretch into a row."""
        count = min(len(turns.ticks), self._width)
        stop = turns.stop if count == len(turns.ticks) else int(turns.ticks[count])
        names = self.timeline(row % self.number).names
        columns = self._encode({name: values[:count] for name, values in zip(names, turns.columns, strict=True)})
        self._make_room(row, columns)
        self._ticks[row, :count] = turns.ticks[:count]
        self._ticks[row, count] = min(stop, FAR)
        self._ticks[row, count + 1] = _OVER
        for name, values in columns.items():
            self._pool[name][row, :count] = values
            self._pool[name][row, count:] = values[-1]
            if name in self.columns and name not in self._varying and (values != values[0]).any():
                self._varying.append(name)

    def _make_room(self, row: int, columns: Columns) -> None:
        """Let the pool have that row, and those columns."""
        if row >= len(self._ticks):
            rows = max(4, 2 * len(self._ticks)) if self.is_shared else self.number * (2 if self._goes_back else 1)
            self._ticks = _grown(self._ticks, rows)
            self._pool = {name: _grown(values, rows) for name, values in self._pool.items()}
        for name, values in columns.items():
            if name not in self._pool:
                self._pool[name] = np.zeros(self._ticks.shape, values.dtype)
        self._following = self._ticks.reshape(-1)[1:]
        self._flat = {name: values.reshape(-1) for name, values in self._pool.items() if name in self.columns}


def _grown(values: np.ndarray, rows: int) -> np.ndarray:
    """The same with more rows."""
    return np.concatenate((values, np.zeros((rows - len(values), *values.shape[1:]), values.dtype)))


def _density(drift: Drift) -> float:
    """How many changes a tick there are while a drift is at its busiest."""
    if drift.over is not None:
        return 1.0
    return 1.0 / drift.every if drift.every is not None else 0.0


def turned_names(drift: Drift) -> list[str]:
    """The knobs that a drift turns.

    Args:
        drift: the drift.
    """
    return [name for operation in OPERATIONS for name in getattr(drift, operation)]


def _draws_far(schedule: Schedule, table: KnobTable) -> bool:
    """Whether a schedule leaves values to the seed that take a search to find."""
    written = [schedule.base, *(drift.set for drift in schedule.drifts)]
    return any(is_draw(table[name], value) for values in written for name, value in values.items())

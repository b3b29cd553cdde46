"""Knob values of many sub-environments, in arrays that timelines fill for many ticks at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from drift_envs.knobs import KnobTable
from drift_envs.schedule import Drift, Schedule, Timeline
from drift_envs.schedule.timeline import ChangePoints, draws_values, needs_seed

FAR = 1 << 61

_ROW_END = -1
_DENSE = 1 / 8
"""Changes a tick from which rows are dense."""
_SHARED_WIDTH = 512
_DENSE_WIDTH = 4096  # long, since sub-environments reach the end of a row at different steps
_OWN_WIDTH = 256
_DRAWN_WIDTH = 4  # short, since values found by search are expensive to draw ahead

Columns = Mapping[str, np.ndarray]
Encode = Callable[[Mapping[str, Any]], Columns]
Entry = tuple[Any, ...]
"""Cursor, tick until which the entry is valid (negative at the end of a row), and one number for each column;
or arrays of these."""


class KnobPool:
    """The current knob values of each sub-environment, and the tick until which they are valid.

    The pool is a table of rows; a row contains a stretch of one timeline. A *dense* row has one entry for
    each tick: the cursor moves with time, and `gather` reads the values of all sub-environments at once.
    A *sparse* row has one entry for each change: the cursor moves by `advance` when a tick reaches
    `valid_until`. If the schedule draws nothing from the seed, all sub-environments share one timeline.

    Args:
        schedule: the schedule.
        table: the knobs.
        columns: the current values by column, shape `(N,)` each; driven columns are written into these arrays.
            Other columns of `encode` remain in the pool, for `value`.
        encode: converts K values of each driven knob to columns of numbers, shape `(K,)` each.
        is_shared: whether all sub-environments follow the timeline of the first.

    Attributes:
        cursor: the current entry of each sub-environment, as an index into the flattened pool, shape `(N,)`.
        is_dense: whether rows are dense.
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
            and all(table[name].is_numeric for drift in schedule.drifts for name in drift.driven)
        )
        self.cursor = np.full(number, -1, np.int64)
        self.columns = columns
        self._encode = encode
        self._width = _DENSE_WIDTH if self.is_dense else _SHARED_WIDTH if self.is_shared else _OWN_WIDTH
        if not self.is_dense and draws_values(schedule, table):
            self._width = _DRAWN_WIDTH
        self._goes_back = schedule.clock == "episode_step"
        self._timelines: dict[int, Timeline] = {}
        self._home = np.full(number, -1, np.int64)  # the row that begins at tick 0, with a timeline for each
        self._rows: dict[int, int] = {}  # the row by its first tick, with a shared timeline
        # Each row: the ticks of its entries, the tick at which it ends, `_ROW_END`.
        self._stride = self._width + 2
        self._ticks = np.zeros((0, self._stride), np.int64)
        self._next_tick = self._ticks.reshape(-1)  # the tick of the next entry, by cursor
        self._pool: dict[str, np.ndarray] = {}
        self._flat: dict[str, np.ndarray] = {}
        self._varying: list[str] = []  # the columns that are not constant within each row

    @property
    def number(self) -> int:
        """The number of sub-environments, N."""
        return len(self.cursor)

    @property
    def pool(self) -> Columns:
        """The columns of all rows; entries that are no longer in use may be outdated."""
        return self._pool

    def reseed(self, indices: np.ndarray, seeds: Sequence[int]) -> None:
        """Set the seeds of timelines; a `seek` has to follow.

        Args:
            indices: shape `(K,)`.
            seeds: one for each index.
        """
        if self.is_shared:
            if self._timelines.get(0) is None or self._timelines[0].seed != seeds[0]:
                self._timelines = {0: Timeline(self.schedule, self.table, seeds[0])}
                self._rows = {}
            return
        for index, seed in zip(indices.tolist(), seeds, strict=True):
            if index not in self._timelines or self._timelines[index].seed != seed:
                self._timelines[index] = Timeline(self.schedule, self.table, seed)
                self._home[index] = -1

    def timeline(self, index: int) -> Timeline:
        """The timeline of a sub-environment; before the first reset that of seed 0, as in a single environment."""
        key = 0 if self.is_shared else index
        return self._timelines[key] if key in self._timelines else Timeline(self.schedule, self.table, 0)

    def value(self, name: str, index: int) -> Any:
        """The current number in a column of the pool, for columns that are not in `columns`."""
        return self._pool[name].reshape(-1)[self.cursor[index]].item()

    def seek(self, indices: np.ndarray, ticks: np.ndarray) -> None:
        """Move sub-environments to given ticks.

        Args:
            indices: shape `(K,)`.
            ticks: one for each index, shape `(K,)`.
        """
        if not len(indices):
            return
        if self.is_shared:
            for tick in np.unique(ticks).tolist():
                some = indices[ticks == tick]
                self.move_to(some, np.full(len(some), self._shared_cursor(tick)))
        elif not ticks.any():
            for index in indices[self._home[indices] < 0].tolist():
                self._home[index] = index
                self._fill(index, self.timeline(index).change_points(0, self._width))
            self.move_to(indices, indices * self._stride)
        else:
            shift = self.number if self._goes_back else 0
            self._home[indices] = self._home[indices] if shift else -1
            for index, tick in zip(indices.tolist(), ticks.tolist(), strict=True):
                self._fill(index + shift, self.timeline(index).change_points(tick, self._width))
            self.move_to(indices, (indices + shift) * self._stride)

    def valid_until(self, indices: np.ndarray) -> np.ndarray:
        """The next ticks at which the values may change, shape `(K,)`; for dense rows the end of the row."""
        cursor = self.cursor[indices]
        ticks: np.ndarray
        ticks = self._ticks[cursor // self._stride, self._width] if self.is_dense else self._next_tick[cursor]
        return ticks

    def advance(self, indices: np.ndarray) -> np.ndarray:
        """Move sub-environments to their next change; for sparse rows.

        Args:
            indices: shape `(K,)`.

        Returns:
            The next ticks at which the values may change, shape `(K,)`.
        """
        cursor = self.cursor[indices]
        cursor += 1
        until: np.ndarray = self._next_tick[cursor]
        if until.min() < 0:
            is_past_end = until == _ROW_END
            past_end = indices[is_past_end]
            self.seek(past_end, self.valid_until(past_end))
            cursor[is_past_end] = self.cursor[past_end]
            until = self._next_tick[cursor]
        self.cursor[indices] = cursor
        for name, values in self._flat.items():
            self.columns[name][indices] = values[cursor]
        return until

    def next_entries(self, indices: np.ndarray) -> Entry:
        """The entries after the current ones, as arrays of shape `(K,)`; for sparse rows."""
        cursor = self.cursor[indices]
        cursor += 1
        return (cursor, self._next_tick[cursor], *(values[cursor] for values in self._flat.values()))

    def moving(self) -> list[np.ndarray]:
        """The columns whose next values are in `next_entries`, in its order."""
        return [self.columns[name] for name in self._flat]

    def advance_one(self, index: int) -> int:
        """The same as `advance` for one sub-environment, without arrays."""
        cursor = self.cursor.item(index) + 1
        until = self._next_tick.item(cursor)
        if until < 0:
            return int(self.advance(np.array([index]))[0])
        self.cursor[index] = cursor
        for name, values in self._flat.items():
            self.columns[name][index] = values[cursor]
        return until

    def gather(self) -> None:
        """Read the values of all sub-environments at their cursors; for dense rows."""
        for name in self._varying:
            self._flat[name].take(self.cursor, out=self.columns[name], mode="wrap")  # other modes are slower

    def _shared_cursor(self, tick: int) -> int:
        """The cursor of a tick of the shared timeline."""
        first = tick - tick % self._width if self.is_dense else tick
        if first not in self._rows:
            # A row without a cursor in it, or an additional one.
            used = set(np.unique(self.cursor // self._stride).tolist())
            self._rows = {first: row for first, row in self._rows.items() if row in used}
            row = next(row for row in range(len(self._ticks) + 1) if row not in used)
            timeline = self.timeline(0)
            if self.is_dense:
                ticks = np.arange(first, first + self._width)
                changes = ChangePoints(ticks, timeline.columns(first, self._width), first + self._width)
            else:
                changes = timeline.change_points(tick, self._width)
            self._fill(row, changes)
            self._rows[first] = row
        return self._rows[first] * self._stride + tick - first

    def move_to(self, indices: np.ndarray, cursor: np.ndarray) -> None:
        """Set cursors, shape `(K,)`, and read the values there."""
        self.cursor[indices] = cursor
        for name, values in self._flat.items():
            self.columns[name][indices] = values[cursor]

    def _fill(self, row: int, changes: ChangePoints) -> None:
        """Write a stretch of a timeline into a row."""
        count = min(len(changes.ticks), self._width)
        stop = changes.stop if count == len(changes.ticks) else int(changes.ticks[count])
        names = self.timeline(row % self.number).names
        columns = self._encode({name: values[:count] for name, values in zip(names, changes.columns, strict=True)})
        self._make_room(row, columns)
        self._ticks[row, :count] = changes.ticks[:count]
        self._ticks[row, count] = min(stop, FAR)
        self._ticks[row, count + 1] = _ROW_END
        for name, values in columns.items():
            self._pool[name][row, :count] = values
            self._pool[name][row, count:] = values[-1]
            if name in self.columns and name not in self._varying and (values != values[0]).any():
                self._varying.append(name)

    def _make_room(self, row: int, columns: Columns) -> None:
        """Enlarge the pool to contain a row and columns."""
        if row >= len(self._ticks):
            rows = max(4, 2 * len(self._ticks)) if self.is_shared else self.number * (2 if self._goes_back else 1)
            self._ticks = _grown(self._ticks, rows)
            self._pool = {name: _grown(values, rows) for name, values in self._pool.items()}
        for name, values in columns.items():
            if name not in self._pool:
                self._pool[name] = np.zeros(self._ticks.shape, values.dtype)
        self._next_tick = self._ticks.reshape(-1)[1:]
        self._flat = {name: values.reshape(-1) for name, values in self._pool.items() if name in self.columns}


def _grown(values: np.ndarray, rows: int) -> np.ndarray:
    """The array with additional rows of zeros."""
    return np.concatenate((values, np.zeros((rows - len(values), *values.shape[1:]), values.dtype)))


def _density(drift: Drift) -> float:
    """The largest number of changes a tick of a drift."""
    if drift.over is not None:
        return 1.0
    return 1.0 / drift.every if drift.every is not None else 0.0

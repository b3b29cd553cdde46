"""The drift clocks of many sub-environments.

They map resets and steps to ticks, as `drift_envs.wrappers.clock.DriftClock` does for one environment.

**Counts and ticks.** `count` numbers the steps of the vector environment; it is one integer for all
sub-environments. The tick of a sub-environment follows from it by an offset, so that a step updates nothing::

    unit `step`, `episode_step`    tick = count + shift - lag       `lag`: reset steps since the last rewind
    unit `episode`                 tick = episode + shift           `episode`: episodes since the last rewind

A *reset step* is the step that only resets, after the end of an episode in the autoreset mode `NextStep`: the
count increases and the tick does not. There is one for each episode, so `lag` is the array `episode`. `shift`
changes only with a rewind or a reset option (`drift_tick`, `drift_phase`, `drift_clock`).

**Ticks, rows and the pool.** `KnobPool` contains stretches of timelines in rows, and a cursor for each
sub-environment. In a sparse row the cursor moves when the tick reaches that of the next entry (`advance`); in a
dense row, which has one entry for each tick, the cursor is the tick plus an offset, for all at once (`gather`)::

    count          500         507                   530                    500  501  502  503
    tick of i       33          40                    63                      0    1    2    3
    ----------------+-----------+---------------------+-------> time         -+----+----+----+->
    row of i       [ entry 0:   | entry 1:            | end of             [  e0 | e1 | e2 | e3 | ...
                     slip 0.0   | slip 0.2            | the row               |
                     from 33 ]  | from 40             | at 63 ]            cursor = tick + offset
                     |          |
                  cursor     due: cursor moves to entry 1, its values are copied to the columns
                  (sparse row)                                             (dense row)

**Who is due.** `due_at` is the count (without lag) or episode at which the cursor of a sub-environment has to
move. With unit `episode` it is compared when episodes start. With the other units, `_look_ahead` finds every
128 steps the sub-environments that may be due before the next look-ahead, and the entries that become valid then::

    count     500                                   628                                   756
              |<------------- window -------------->|<------------- window -------------->|
              _look_ahead                           _look_ahead
                 |
                 |  none due           `move` compares integers only
                 |  up to 128 due      `_queue`: {count: [position in the window, ...]}, popped by `move`
                 |  more               `_due_window`: one byte counter each, compared as an array by `move`

Where a sub-environment changes once in a window, `move` writes only the values, and `settle` the cursor and `due_at`,
for all of the window at once.

A reset step within the window makes a sub-environment due one step later: `late` counts them since the last merge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from drift_envs.errors import ArgumentError
from drift_envs.vector.knob_pool import FAR, Entry, KnobPool
from drift_envs.wrappers.clock import NO_JUMP, ClockJump, TimeMove
from drift_envs.wrappers.records import VisitedTicks

_MOST_LOOPED = 8  # up to this number of sub-environments, a loop is cheaper than array operations
_WINDOW = 128  # steps of a window
_MOST_QUEUED = 128  # beyond this number in a window, a `DueWindow` is cheaper than a queue
_MOST_RECENT = 200  # steps between merges of `recent`, so that its counters fit into bytes
_PLACE = ("ends_at", "episode", "held", "shift", "held_tick", "resume", "since", "furthest")
"""The arrays from which all others follow, without the underscore."""
_NOT_DUE = 180  # beyond the end of a window, and with the reset steps of a window it still fits into a byte


class Clocks:
    """Maps resets and steps to ticks, and moves the cursors of the pool to the ticks.

    The steps of single episodes are not counted: an episode has the counts at which it ends by the limit and
    at which its knobs change, so that a step without either costs comparisons of integers only. Episodes are
    counted in an array of bytes, `recent`, which is cheap to add to and merged into `episode` now and then.

    Args:
        pool: the knob values.
        limit: the step limit of an episode, `None` for no limit.
        has_reset_steps: whether a reset step lies between two episodes.
        on_change: called with the sub-environments whose knob values have changed; `None` if not needed.

    Attributes:
        count: steps of the vector environment so far.
        is_moving: whether steps move time, so that knobs may change within an episode.
    """

    def __init__(
        self, pool: KnobPool, limit: int | None, has_reset_steps: bool, on_change: Callable[[np.ndarray], None] | None
    ) -> None:
        number = pool.number
        self.pool = pool
        self.unit = pool.schedule.clock
        self.limit = FAR if limit is None else limit
        self.count = 0
        self._ends_at = np.full(number, FAR, np.int64)  # the count at which the limit ends the episode
        self._first_end = FAR  # the smallest of these, or less
        self._episode = np.full(number, -1, np.int64)  # episodes before this one since the last rewind ...
        self._recent = np.zeros(number, np.uint8)  # ... without those started since the last merge
        self._merge_at = 0  # the count of the next merge
        self._held = np.zeros(number, bool)
        self._counts_episodes = self.unit == "episode"
        self.is_moving = not self._counts_episodes and pool.can_change
        self._has_reset_steps = has_reset_steps
        self._lag = self._episode if has_reset_steps else np.zeros(number, np.int64)
        self._late = self._recent if has_reset_steps else np.zeros(number, np.uint8)
        self._shift = np.zeros(number, np.int64)  # from count or episode to tick
        self._cursor_shift = np.zeros(number, np.int64)  # from count (with lag) or episode to the cursor of a dense row
        self._held_tick = np.zeros(number, np.int64)
        self._held_cursor = np.zeros(number, np.int64)
        self._resume = np.zeros(number, np.int64)  # the tick after a hold
        self._any_held = False
        self._due_at = np.full(number, FAR, np.int64)  # the episode, or count without lag, at which values may change
        self._window_end = 0  # the count of the next look-ahead
        self._queue: dict[int, list[int]] = {}  # positions in the arrays of the window, by count
        self._due_window: DueWindow | None = None  # instead of the queue, if many are due
        self._soon: list[int] = []  # the queued sub-environments, by position ...
        self._counts: list[int] = []  # ... and the counts at which they are due, without the reset steps of the window
        self._entries: Entry | None = None  # indices and `next_entries` of the first positions, arrays
        self._values: list[tuple[np.ndarray, list[Any]]] = []  # the columns of the pool and their next values
        self._entered: list[int] = []  # the positions of entries that are not settled
        self._no_change_before = 0  # with unit `episode`: the count before which no start of an episode is due
        self._since = np.zeros(number, np.int64)  # the first tick of the current span of visited ticks
        self._furthest = np.zeros(number, np.int64)
        self._visited: dict[int, VisitedTicks] = {}
        self._sum = np.empty(number, np.int64)
        self._on_change = on_change
        self.moves: dict[int, TimeMove] = {}  # by sub-environment: where its time is to be from its next episode on

    def steps(self, indices: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Transitions of the current episodes; negative before a reset step."""
        steps: np.ndarray = self.count - self._ends_at[indices] + self.limit
        return steps

    def episodes(self, indices: np.ndarray) -> np.ndarray:
        """Episodes before the current ones since the last rewind; -1 before the first."""
        episodes: np.ndarray = self._episode[indices] + self._recent[indices]
        return episodes

    def tick(self) -> np.ndarray | None:
        """Count a step of the vector environment.

        Returns:
            Whether the limit has ended the episode, booleans of shape `(N,)`; `None` if it has ended none.
        """
        self.count += 1
        if self.count < self._first_end:
            return None
        over = np.less_equal(self._ends_at, self.count)
        if np.count_nonzero(over):
            return over
        self._first_end = int(self._ends_at.min())
        return None

    def ticks(self, indices: np.ndarray) -> np.ndarray:
        """The current ticks: that of the last transition, or of the next one after a reset."""
        ticks = self._next_ticks(indices)
        if not self._counts_episodes:
            ticks -= self.steps(indices) > 0
        return np.where(self._held[indices], self._held_tick[indices], ticks)

    def move(self) -> None:
        """Apply the knob values of the next transitions; called by each step if `is_moving`.

        A reset step is no transition: its reset uses the next tick, and the step after it has the same tick.
        """
        if self.count >= self._window_end:
            self._look_ahead()
        if self._due_window is not None:
            due = self._due_window.due(self.count, self._late)
            if due is not None:
                self._advance_window(self._due_window, due)
        if (queued := self._queue.pop(self.count, None)) is not None:
            self._advance_queued(queued)
        if self.pool.is_dense:
            cursor = self.pool.cursor
            np.add(self._cursor_shift, self.count, out=cursor)
            if self._any_held:
                np.copyto(cursor, self._held_cursor, where=self._held)
            self.pool.gather()

    def start_next(self, ended: np.ndarray, in_reset_step: bool = False) -> None:
        """Start the next episodes without a rewind and without clock options.

        Args:
            ended: the sub-environments that start an episode, booleans of shape `(N,)`.
            in_reset_step: whether the current step is their reset step.
        """
        if self._any_held or self.unit == "episode_step" or self.moves:
            indices = ended.nonzero()[0]
            for some, jump in self.next_jumps(indices, [NO_JUMP] * len(indices)):
                self.start_at(some, jump, in_reset_step)
            return
        # Indices are twice as fast as the mask if many episodes end at random positions.
        indices = ended.nonzero()[0]
        self._ends_at[indices] = self.count + in_reset_step + self.limit
        pool = self.pool
        if pool.is_dense and self._counts_episodes:
            np.add(self._episode, ended, out=self._episode)
        else:
            np.add(self._recent, ended.view(np.uint8), out=self._recent)
            if pool.is_dense and in_reset_step:
                self._cursor_shift[indices] -= 1
        if self._counts_episodes:
            if self.count >= self._no_change_before:
                self._advance_due_episodes()
            if pool.is_dense:
                np.add(self._cursor_shift, self._episode, out=pool.cursor)
                pool.gather()
        if self.count >= self._merge_at and not self.is_moving:
            self._merge_recent()
        if self.is_moving and not in_reset_step:  # in a reset step `move` has applied the next values
            self.settle()
            due = indices[self._due_at[indices] + self._lag[indices] + self._late[indices] <= self.count]
            if len(due):
                self._advance(due)
                self._window_end = self.count
            if pool.is_dense:
                pool.move_to(indices, self._cursor_shift[indices] + self.count)

    def next_jumps(self, indices: np.ndarray, given: Sequence[ClockJump]) -> Iterator[tuple[np.ndarray, ClockJump]]:
        """The sub-environments that start an episode, by clock options; moves of time replace those that say nothing.

        Args:
            indices: the sub-environments, shape `(K,)`.
            given: the clock options of each; those that jump or hold replace its move.
        """
        groups: dict[ClockJump, list[int]] = {}
        for index, jump in zip(indices.tolist(), given, strict=True):
            move = self.moves.get(index)
            if move is not None and (jump != NO_JUMP or not move.hold):
                del self.moves[index]
            if move is not None and jump == NO_JUMP:
                jump = move.jump(self.pool.timeline(index).first_tick)
            groups.setdefault(jump, []).append(index)
        for jump, members in groups.items():
            yield np.array(members), jump

    def start_at(self, indices: np.ndarray, jump: ClockJump, in_reset_step: bool = False) -> None:
        """Start episodes after a rewind or with clock options.

        Args:
            indices: the sub-environments, shape `(K,)`.
            jump: the clock options.
            in_reset_step: whether the current step is their reset step.
        """
        self._merge_recent()
        started = self._episode[indices] >= 0
        present = np.where(started, self.ticks(indices), 0)
        running = ~self._held[indices]
        following = self._next_ticks(indices) + self._counts_episodes
        resume = np.where(running, following, self._resume[indices])
        if jump.tick is not None:
            start = resume = np.full(len(indices), jump.tick)
        elif jump.hold:
            start = present
        else:
            start = np.zeros(len(indices), np.int64) if self.unit == "episode_step" else resume
        if self._counts_episodes and not jump.hold:
            resume = start + 1
        self._record_visits(indices, present, started, start)
        start_count = self.count + in_reset_step
        self._episode[indices] += 1
        self._held[indices] = jump.hold
        self._any_held = bool(self._held.any())
        self._held_tick[indices] = start
        self._resume[indices] = resume
        self._ends_at[indices] = start_count + self.limit
        self._first_end = min(self._first_end, start_count + self.limit)
        time = self._episode[indices] if self._counts_episodes else start_count - self._lag[indices]
        self._shift[indices] = start - time
        self.pool.seek(indices, start)
        self._held_cursor[indices] = self.pool.cursor[indices]
        self._cursor_shift[indices] = self.pool.cursor[indices] - (time if self._counts_episodes else start_count)
        self._due_at[indices] = np.where(
            self._held[indices], FAR, self.pool.valid_until(indices) - self._shift[indices]
        )
        if self._on_change is not None:
            self._on_change(indices)
        self._window_end = self._no_change_before = self.count

    def save(self) -> dict[str, Any]:
        """Where all clocks stand, as arrays of shape `(N,)`; steps and ticks are not affected."""
        self._merge_recent()
        every = np.arange(self.pool.number)
        spans = [(index, visited.spans) for index, visited in self._visited.items()]
        return {
            "count": self.count,
            **{name: getattr(self, f"_{name}").copy() for name in _PLACE},
            "now": np.where(self._episode >= 0, self.ticks(every), 0),
            "visited": [[index, *span] for index, own in spans for span in own],
            "moves": [[index, *move] for index, move in self.moves.items()],
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Stand where others stood, after their timelines are set.

        Args:
            saved: from `save`.

        Raises:
            ArgumentError: if the data is not as it was written.
        """
        number = self.pool.number
        for name in (*_PLACE, "now"):
            values = saved[name]
            if values.shape != (number,) or values.dtype != (bool if name == "held" else np.int64):
                raise ArgumentError(f"`{name}` should be an array of {number} numbers. Received {values!r}")
        if (saved["now"] < 0).any():
            raise ArgumentError(f"`now` should be ticks of at least 0. Received {saved['now']!r}")
        self._merge_recent()
        every, self.count = np.arange(number), int(saved["count"])
        for name in _PLACE:
            getattr(self, f"_{name}")[:] = saved[name]
        self._visited = {}
        for index, first, last in saved["visited"]:
            self._visited.setdefault(index, VisitedTicks()).spans.append((first, last))
        self.moves = {}
        for index, tick, phase, hold in saved["moves"]:
            move = TimeMove.of(tick, phase, hold, self.pool.timeline(index).first_tick)
            if move is not None:
                self.moves[index] = move
        self._any_held = bool(self._held.any())
        self._first_end = int(self._ends_at.min())
        now = saved["now"]
        self.pool.seek(every, now)
        cursor = self.pool.cursor
        self._held_cursor[:] = cursor
        self._cursor_shift[:] = cursor - (now - self._shift + (0 if self._counts_episodes else self._lag))
        self._due_at[:] = np.where(self._held, FAR, self.pool.valid_until(every) - self._shift)
        if self._on_change is not None:
            self._on_change(every)
        self._window_end = self._no_change_before = self.count
        self._merge_at = self.count

    def rewind(self, indices: np.ndarray) -> None:
        """Set clocks to tick 0; a `start_at` has to follow."""
        self._merge_recent()
        self._episode[indices] = -1
        self._held[indices] = False
        self._shift[indices] = 0 if self._counts_episodes else self._lag[indices] - self.count
        self._since[indices] = self._furthest[indices] = 0
        for index in indices.tolist() if self._visited else ():
            self._visited.pop(index, None)

    def visited(self, index: int) -> VisitedTicks:
        """The ticks that a sub-environment has visited since its last rewind."""
        spans = VisitedTicks(list(self._visited[index].spans)) if index in self._visited else VisitedTicks()
        if self._episode[index] >= 0:
            tick = int(self.ticks(np.array([index]))[0])
            spans.add(int(self._since[index]), max(tick, int(self._furthest[index])))
        return spans

    def _record_visits(self, indices: np.ndarray, present: np.ndarray, started: np.ndarray, start: np.ndarray) -> None:
        """Record the visited span of ticks of sub-environments in which time is not continuous."""
        furthest = np.maximum(self._furthest[indices], present)
        if self.unit == "episode_step":  # each episode starts at tick 0
            breaks = started & (start != self._since[indices])
            self._furthest[indices] = np.where(breaks | ~started, start, furthest)
        else:
            breaks = started & (start != present) & (start != present + 1)
            furthest = present
        for index, last in zip(indices[breaks].tolist(), furthest[breaks].tolist(), strict=True):
            self._visited.setdefault(index, VisitedTicks()).add(int(self._since[index]), last)
        self._since[indices] = np.where(breaks | ~started, start, self._since[indices])

    def _next_ticks(self, indices: np.ndarray) -> np.ndarray:
        """The ticks of the next transitions (unit `episode`: of the current episodes), without a hold."""
        ticks: np.ndarray
        if self._counts_episodes:
            ticks = self.episodes(indices) + self._shift[indices]
        else:
            ticks = self.count + self._shift[indices] - self._lag[indices] - self._late[indices]
        return ticks

    def _merge_recent(self) -> None:
        """Add the byte counters of episodes to the others."""
        self.settle()
        np.add(self._episode, self._recent, out=self._episode)
        self._recent.fill(0)
        self._merge_at = self.count + _MOST_RECENT
        self._window_end = min(self._window_end, self.count)

    def _advance_due_episodes(self) -> None:
        """Apply the values of the episodes that start, with unit `episode`."""
        self._merge_recent()
        np.subtract(self._due_at, self._episode, out=self._sum)
        wait = int(self._sum.min())  # episodes
        if wait > 0:
            self._no_change_before = self.count + (2 * wait - 1 if self._has_reset_steps else wait)
        else:
            self._advance(np.flatnonzero(self._sum <= 0))

    def settle(self) -> None:
        """Write the cursors of the entries that are valid; within a window, steps write only their values."""
        if self._entries is not None and self._entered:
            entered = np.array(self._entered)
            indices, cursors, until = (part[entered] for part in self._entries[:3])
            self.pool.cursor[indices] = cursors
            self._due_at[indices] = until - self._shift[indices]
            self._entered.clear()

    def _look_ahead(self) -> None:
        """Find the sub-environments that may be due within the next window, and their next entries."""
        self._merge_recent()
        self._window_end = self.count + _WINDOW
        np.add(self._due_at, self._lag, out=self._sum)
        soon = np.flatnonzero(self._sum < self._window_end)
        self._queue, self._due_window, self._entries = {}, None, None
        if not len(soon):
            return
        counts = self._sum[soon]
        first, others = soon[:0], soon
        if not self.pool.is_dense:
            following = self.pool.next_entries(soon)
            until = following[1]
            once = (until >= 0) & (until + (self._lag[soon] - self._shift[soon]) >= self._window_end)
            first, others = soon[once], soon[~once]
        if len(others) > _MOST_QUEUED:
            self._due_window = DueWindow(soon, self.count, counts)
            return
        if len(first):
            self._entries = (first, *(part[once] for part in following))
            counts = np.concatenate((counts[once], counts[~once]))
        if len(first) > _MOST_QUEUED:
            self._due_window = DueWindow(first, self.count, counts[: len(first)])
        else:
            values = () if self._entries is None else self._entries[3:]
            self._values = [(column, part.tolist()) for column, part in zip(self.pool.moving(), values, strict=False)]
        self._soon, self._counts = [*first.tolist(), *others.tolist()], counts.tolist()
        for place in range(len(first) if self._due_window is not None else 0, len(self._soon)):
            self._queue.setdefault(max(self._counts[place], self.count), []).append(place)

    def _advance_window(self, window: DueWindow, due: np.ndarray) -> None:
        """Advance the sub-environments that are due, given as positions in the window."""
        indices = window.indices[due]
        if self._entries is None:
            self._advance(indices)
            window.postpone(due, self._due_at[indices] + self._lag[indices])
            return
        for column, values in zip(self.pool.moving(), self._entries[3:], strict=True):
            column[indices] = values[due]
        self._entered.extend(due.tolist())
        window.remove(due)
        if self._on_change is not None:
            self._on_change(indices)

    def _advance_queued(self, queued: list[int]) -> None:
        """Advance the sub-environments at these positions, and postpone those with a reset step in this window."""
        due, known = [], 0 if self._entries is None else len(self._entries[0])
        for place in queued:
            index = self._soon[place]
            late = self._late.item(index)
            count = self._counts[place] + late
            if count <= self.count:
                if place < known:
                    for column, values in self._values:
                        column[index] = values[place]
                    self._entered.append(place)
                    due.append(index)
                    continue
                self._advance([index])
                self._counts[place] = self._due_at.item(index) + self._lag.item(index)
                count = self._counts[place] + late
            if count < self._window_end:
                self._queue.setdefault(count, []).append(place)
        if due and self._on_change is not None:
            self._on_change(np.array(due))

    def _advance(self, indices: list[int] | np.ndarray) -> None:
        """Apply the values of the next tick in sub-environments that are due; none of them is held."""
        pool = self.pool
        if len(indices) <= _MOST_LOOPED and not pool.is_dense:
            for index in indices if isinstance(indices, list) else indices.tolist():
                self._due_at[index] = pool.advance_one(index) - self._shift.item(index)
        else:
            due = np.asarray(indices)
            if pool.is_dense:
                until = pool.valid_until(due)
                pool.seek(due, until)
                lag = self._lag[due] + self._late[due] if self.is_moving else 0
                self._cursor_shift[due] = pool.cursor[due] - (until - self._shift[due] + lag)
                self._due_at[due] = pool.valid_until(due) - self._shift[due]
            else:
                self._due_at[due] = pool.advance(due) - self._shift[due]
        if self._on_change is not None:
            self._on_change(np.asarray(indices))


class DueWindow:
    """Finds the sub-environments that are due at a step, by one byte counter each and one comparison of arrays.

    The counters are relative to the first step of the window, so that they fit into bytes.

    Args:
        indices: sub-environments that may be due within the window, shape `(K,)`.
        start: the step count at which the window begins.
        counts: the step counts at which they are due, without reset steps in between, shape `(K,)`.

    Example:
        >>> window = DueWindow(np.array([4, 7]), start=100, counts=np.array([101, 102]))
        >>> reset_steps = np.zeros(8, np.uint8)
        >>> reset_steps[4] = 1
        >>> window.due(101, reset_steps) is None
        True
        >>> window.due(102, reset_steps)
        array([0, 1])
    """

    def __init__(self, indices: np.ndarray, start: int, counts: np.ndarray) -> None:
        self.indices = indices
        self._start = start
        self._waits = np.zeros(len(indices), np.uint8)
        self._sum = np.empty(len(indices), np.uint8)
        self._mask = np.empty(len(indices), bool)
        self.postpone(slice(None), counts)

    def due(self, count: int, reset_steps: np.ndarray) -> np.ndarray | None:
        """The sub-environments that are due, as positions in `indices`; `None` if there are none.

        Args:
            count: the current step count, less than 180 after the start.
            reset_steps: the reset steps of each sub-environment since the start, shape `(N,)`, `uint8`.
        """
        reset_steps.take(self.indices, out=self._sum, mode="wrap")
        np.add(self._sum, self._waits, out=self._sum)
        np.less_equal(self._sum, np.uint8(count - self._start), out=self._mask)
        return self._mask.nonzero()[0] if np.count_nonzero(self._mask) else None

    def postpone(self, positions: np.ndarray | slice, counts: np.ndarray) -> None:
        """Set the step counts at which sub-environments are due next.

        Args:
            positions: positions in `indices`.
            counts: the step counts, without reset steps since the start.
        """
        self._waits[positions] = np.maximum(np.minimum(counts - self._start, _NOT_DUE), 0)

    def remove(self, positions: np.ndarray) -> None:
        """Mark sub-environments as not due within this window.

        Args:
            positions: positions in `indices`.
        """
        self._waits[positions] = _NOT_DUE

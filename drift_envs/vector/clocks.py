"""What time it is for the drifts of many sub-environments.

* `Clocks` - turns resets and steps into ticks, as `drift_envs.wrappers.clock.DriftClock` does for one environment
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drift_envs.vector.due_window import DueWindow
from drift_envs.vector.knob_pool import FAR, Entry, KnobPool
from drift_envs.wrappers.clock import NO_JUMP, ClockJump
from drift_envs.wrappers.records import VisitedTicks

_FEW = 8
_WINDOW = 32
_CROWD = 64  # so many due within a window that asking all of them at every step is cheaper than a queue
_MOST_BEGUN = 200  # fits into a byte


class Clocks:
    """Turns resets and steps into ticks and lets the knob values of the tick hold.

    Nothing counts the steps of an episode: `count` numbers the steps of the vector environment, and all
    that an episode needs are the counts at which it began, at which it ends and at which its knobs
    change. So a step without an end or a change costs comparisons only. Episodes are counted in bytes, which
    are cheap to add to, and settled now and then.

    Args:
        flow: the knob values.
        limit: the steps of an episode, `None` for no limit.
        has_dead_steps: whether a step that only resets lies between two episodes.
        on_turn: called with the sub-environments in which other values hold now; `None` if nothing follows from that.

    Attributes:
        count: steps of the vector environment so far.
        is_moving: whether steps move time, so that knobs may change within an episode.
    """

    def __init__(
        self, flow: KnobPool, limit: int | None, has_dead_steps: bool, on_turn: Callable[[np.ndarray], None] | None
    ) -> None:
        number = flow.number
        self.flow = flow
        self.unit = flow.schedule.clock
        self.limit = FAR if limit is None else limit
        self.count = 0
        self._ends_at = np.full(number, FAR, np.int64)  # the count at which the limit ends the episode
        self._first_end = FAR  # no limit ends an episode before this count
        self._episode = np.full(number, -1, np.int64)  # episodes before this one since the last rewind ...
        self._begun = np.zeros(number, np.uint8)  # ... but for those that were begun lately
        self._settle_at = 0
        self._held = np.zeros(number, bool)
        self._counts_episodes = self.unit == "episode"
        self.is_moving = not self._counts_episodes and flow.can_change
        # The coming tick is `episode + shift` on a clock of episodes and `count + shift - lag` on others: each
        # dead step lets the ticks fall behind the count by one, and there is one for every episode.
        self._has_dead_steps = has_dead_steps
        self._lag = self._episode if has_dead_steps else np.zeros(number, np.int64)
        self._late = self._begun if has_dead_steps else np.zeros(number, np.uint8)
        self._shift = np.zeros(number, np.int64)
        self._place = np.zeros(number, np.int64)  # the same for the cursor of a dense flow
        self._held_tick = np.zeros(number, np.int64)
        self._held_cursor = np.zeros(number, np.int64)
        self._resume = np.zeros(number, np.int64)
        self._any_held = False
        self._due_at = np.full(number, FAR, np.int64)  # episode, or count less lag, at which values may change
        self._window_end = 0  # the count up to which `_queue` holds whoever is due, by count
        # By count: who, when without the dead steps since the window began, and what holds then if it is known.
        self._queue: dict[int, list[tuple[int, int, Entry | None]]] = {}
        self._crowd: DueWindow | None = None  # in place of the queue where many are due soon
        self._calm_until = 0  # the count before which no beginning of an episode turns a knob
        self._since = np.zeros(number, np.int64)
        self._furthest = np.zeros(number, np.int64)
        self._visited: dict[int, VisitedTicks] = {}
        self._sum = np.empty(number, np.int64)
        self._mask = np.empty(number, bool)
        self._on_turn = on_turn

    def steps(self, indices: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Transitions of the present episodes; -1 or less before a dead step.

        Args:
            indices: the sub-environments.
        """
        return self.count - self._ends_at[indices] + self.limit

    def episodes(self, indices: np.ndarray) -> np.ndarray:
        """Episodes before the present ones since the last rewind; -1 before the first.

        Args:
            indices: the sub-environments.
        """
        return self._episode[indices] + self._begun[indices]

    def tick(self) -> np.ndarray | None:
        """Count a step of all.

        Returns:
            Whose episode the limit has ended, booleans of shape `(N,)`; `None` if it has ended none.
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
        """The present ticks: that of the last transition, or of the first one to come after a reset.

        Args:
            indices: the sub-environments.
        """
        ticks = self._coming(indices)
        if not self._counts_episodes:
            ticks -= self.steps(indices) > 0
        return np.where(self._held[indices], self._held_tick[indices], ticks)

    def move(self) -> None:
        """Let the knob values of the coming transitions hold, where steps move time.

        A dead step is no transition: its reset sees the tick to come, and the next step has the same tick.
        """
        if self.count >= self._window_end:
            self._look_ahead()
        if self._crowd is not None:
            due = self._crowd.due(self.count, self._late)
            if due is not None:
                self._turn_crowd(self._crowd, due)
        if (waiting := self._queue.pop(self.count, None)) is not None:
            self._turn_queued(waiting)
        if self.flow.is_dense:
            cursor = self.flow.cursor
            np.subtract(self._place, self._lag, out=cursor)
            np.add(cursor, self.count, out=cursor)
            if self._any_held:
                np.copyto(cursor, self._held_cursor, where=self._held)
            self.flow.gather()

    def begin(self, ended: np.ndarray, dead: bool = False) -> None:
        """Begin episodes the plain way: time goes on.

        Args:
            ended: which sub-environments do, booleans of shape `(N,)`.
            dead: whether the step to come is a dead one for them.
        """
        if self._any_held or self.unit == "episode_step":
            self.begin_at(ended.nonzero()[0], NO_JUMP, dead)
            return
        # Where many end at random places, this is twice as fast as writing through the mask.
        self._ends_at[ended.nonzero()[0]] = self.count + dead + self.limit
        flow = self.flow
        if flow.is_dense:
            np.add(self._episode, ended, out=self._episode)
        else:
            np.add(self._begun, ended.view(np.uint8), out=self._begun)
        if self._counts_episodes:
            if self.count >= self._calm_until:
                self._turn_ended()
            if flow.is_dense:
                np.add(self._place, self._episode, out=flow.cursor)
                flow.gather()
        if self.count >= self._settle_at and not self.is_moving:
            self._settle()
        if self.is_moving and not dead:  # before a dead step `move` has let the coming values hold
            indices = ended.nonzero()[0]
            due = indices[self._due_at[indices] + self._lag[indices] + self._late[indices] <= self.count]
            if len(due):
                self._turn(due)
                self._window_end = self.count
            if flow.is_dense:
                flow.read(indices, self._place[indices] + self.count - self._lag[indices])

    def begin_at(self, indices: np.ndarray, jump: ClockJump, dead: bool = False) -> None:
        """Begin episodes somewhere in time.

        Args:
            indices: the sub-environments.
            jump: what the options ask for.
            dead: whether the step to come is a dead one for them.
        """
        self._settle()
        present = self.ticks(indices)
        started = self._episode[indices] >= 0
        running = ~self._held[indices]
        coming = self._coming(indices) + self._counts_episodes
        resume = np.where(running, coming, self._resume[indices])
        if jump.tick is not None:
            start = resume = np.full(len(indices), jump.tick)
        elif jump.hold:
            start = present
        else:
            start = np.zeros(len(indices), np.int64) if self.unit == "episode_step" else resume
        if self._counts_episodes and not jump.hold:
            resume = start + 1
        self._remember(indices, present, started, start)
        born = self.count + dead
        self._episode[indices] += 1
        self._held[indices] = jump.hold
        self._any_held = bool(self._held.any())
        self._held_tick[indices] = start
        self._resume[indices] = resume
        self._ends_at[indices] = born + self.limit
        self._first_end = min(self._first_end, born + self.limit)
        time = self._episode[indices] if self._counts_episodes else born - self._lag[indices]
        self._shift[indices] = start - time
        self.flow.seek(indices, start)
        self._held_cursor[indices] = self.flow.cursor[indices]
        self._place[indices] = self.flow.cursor[indices] - time
        self._due_at[indices] = np.where(self._held[indices], FAR, self.flow.until(indices) - self._shift[indices])
        if self._on_turn is not None:
            self._on_turn(indices)
        self._window_end = self._calm_until = self.count

    def rewind(self, indices: np.ndarray) -> None:
        """Start from tick 0 with the next episode, which has to begin by `begin_at`.

        Args:
            indices: the sub-environments.
        """
        self._settle()
        self._episode[indices] = -1
        self._held[indices] = False
        self._shift[indices] = 0 if self._counts_episodes else self._lag[indices] - self.count
        self._since[indices] = self._furthest[indices] = 0
        for index in indices.tolist() if self._visited else ():
            self._visited.pop(index, None)

    def visited(self, index: int) -> VisitedTicks:
        """Which ticks a sub-environment has visited since its last rewind.

        Args:
            index: the sub-environment.
        """
        spans = VisitedTicks(list(self._visited[index].spans)) if index in self._visited else VisitedTicks()
        if self._episode[index] >= 0:
            tick = int(self.ticks(np.array([index]))[0])
            spans.add(int(self._since[index]), max(tick, int(self._furthest[index])))
        return spans

    def _remember(self, indices: np.ndarray, present: np.ndarray, started: np.ndarray, start: np.ndarray) -> None:
        """Note what was visited, where time does not simply go on."""
        furthest = np.maximum(self._furthest[indices], present)
        if self.unit == "episode_step":  # time goes back to 0 with every episode
            breaks = started & (start != self._since[indices])
            self._furthest[indices] = np.where(breaks | ~started, start, furthest)
        else:
            breaks = started & (start != present) & (start != present + 1)
            furthest = present
        for index, last in zip(indices[breaks].tolist(), furthest[breaks].tolist(), strict=True):
            self._visited.setdefault(index, VisitedTicks()).add(int(self._since[index]), last)
        self._since[indices] = np.where(breaks | ~started, start, self._since[indices])

    def _coming(self, indices: np.ndarray) -> np.ndarray:
        """The ticks of the coming transitions, on a clock of episodes those of the present ones; none is held."""
        if self._counts_episodes:
            return self.episodes(indices) + self._shift[indices]
        return self.count + self._shift[indices] - self._lag[indices] - self._late[indices]

    def _settle(self) -> None:
        """Put the episodes that were begun lately to the others."""
        np.add(self._episode, self._begun, out=self._episode)
        self._begun.fill(0)
        self._settle_at = self.count + _MOST_BEGUN
        self._window_end = min(self._window_end, self.count)

    def _turn_ended(self) -> None:
        """Let the values of the episodes to come hold, where episodes move time."""
        self._settle()
        np.subtract(self._due_at, self._episode, out=self._sum)
        wait = int(self._sum.min())  # episodes
        if wait > 0:
            self._calm_until = self.count + (2 * wait - 1 if self._has_dead_steps else wait)
        else:
            self._turn(np.flatnonzero(self._sum <= 0))

    def _look_ahead(self) -> None:
        """Queue whoever may be due within the next steps."""
        self._settle()
        self._window_end = self.count + _WINDOW
        np.add(self._due_at, self._lag, out=self._sum)
        soon = np.flatnonzero(self._sum < self._window_end)
        self._queue, self._crowd = {}, None
        if not len(soon):
            return
        counts = self._sum[soon]
        entries: list[Entry | None] = [None] * len(soon)
        if not self.flow.is_dense:
            coming = self.flow.ahead(soon)
            if len(soon) <= _CROWD:
                entries = list(zip(*(part.tolist() for part in coming), strict=True))
            else:
                until = coming[1]
                lags = self._lag[soon] - self._shift[soon]
                once = (until >= 0) & (until + lags >= self._window_end)
                if len(soon) - np.count_nonzero(once) <= _CROWD:
                    self._crowd = DueWindow(soon[once], self.count, counts[once], tuple(part[once] for part in coming))
                    soon, counts = soon[~once], counts[~once]
                    entries = [None] * len(soon)
        if len(soon) > _CROWD:
            self._crowd = DueWindow(soon, self.count, counts)
            return
        for waiting in zip(soon.tolist(), counts.tolist(), entries, strict=True):
            self._queue.setdefault(max(waiting[1], self.count), []).append(waiting)

    def _turn_crowd(self, crowd: DueWindow, due: np.ndarray) -> None:
        """Turn those of a crowd who are due, given as places in it."""
        indices = crowd.indices[due]
        if crowd.coming is None:
            self._turn(indices)
            crowd.put_off(due, self._due_at[indices] + self._lag[indices])
            return
        entry = tuple(part[due] for part in crowd.coming)
        self.flow.enter(indices, entry)
        self._due_at[indices] = entry[1] - self._shift[indices]
        crowd.dismiss(due)
        if self._on_turn is not None:
            self._on_turn(indices)

    def _turn_queued(self, queued: list[tuple[int, int, Entry | None]]) -> None:
        """Turn those who are due; a dead step since they were queued has made some of them due later."""
        due = []
        for waiting in queued:
            index, count, entry = waiting
            late = self._late.item(index)
            if count + late > self.count:
                self._queue.setdefault(count + late, []).append(waiting)
                continue
            if entry is None or entry[1] < 0:
                self._turn([index])
            else:
                self.flow.enter(index, entry)
                self._due_at[index] = entry[1] - self._shift.item(index)
                due.append(index)
            count = self._due_at.item(index) + self._lag.item(index)
            if count + late < self._window_end:
                self._queue.setdefault(count + late, []).append((index, count, None))
        if due and self._on_turn is not None:
            self._on_turn(np.array(due))

    def _turn(self, indices: list[int] | np.ndarray) -> None:
        """Let the values of the tick to come hold in these sub-environments, none of which is held."""
        flow = self.flow
        if len(indices) <= _FEW and not flow.is_dense:  # a loop is cheaper than a dozen calls for arrays
            for index in indices if isinstance(indices, list) else indices.tolist():
                self._due_at[index] = flow.advance_one(index) - self._shift.item(index)
        else:
            due = np.asarray(indices)
            if flow.is_dense:
                until = flow.until(due)
                flow.seek(due, until)
                self._place[due] = flow.cursor[due] - (until - self._shift[due])
                self._due_at[due] = flow.until(due) - self._shift[due]
            else:
                self._due_at[due] = flow.advance(due) - self._shift[due]
        if self._on_turn is not None:
            self._on_turn(np.asarray(indices))

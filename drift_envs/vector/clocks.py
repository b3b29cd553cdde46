"""What time it is for the drifts of many sub-environments.

* `Clocks` - turns resets and steps into ticks, as `drift_envs.wrappers.clock.Clock` does for one environment
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from drift_envs.vector.flow import FAR, KnobFlow
from drift_envs.wrappers.clock import NO_JUMP, Jump
from drift_envs.wrappers.records import Visited

_FEW = 8
_WINDOW = 32


class Clocks:
    """Turns resets and steps into ticks and lets the knob values of the tick hold.

    Nothing counts the steps of an episode: `count` numbers the steps of the vector environment, and all
    that an episode needs are the counts at which it began, at which it ends and at which its knobs
    change. So a step without an end or a change costs comparisons only.

    Args:
        flow: the knob values.
        limit: the steps of an episode, `None` for no limit.
        has_dead_steps: whether a step that only resets lies between two episodes.
        on_turn: called with the sub-environments in which other values hold now.

    Attributes:
        count: steps of the vector environment so far.
        ends_at: the count at which the limit ends the episode, shape `(N,)`.
        episode: episodes before this one since the last rewind, shape `(N,)`.
    """

    def __init__(
        self, flow: KnobFlow, limit: int | None, has_dead_steps: bool, on_turn: Callable[[np.ndarray], None]
    ) -> None:
        number = flow.number
        self.flow = flow
        self.unit = flow.schedule.clock
        self.limit = FAR if limit is None else limit
        self.count = 0
        self.ends_at = np.full(number, FAR, np.int64)
        self.episode = np.full(number, -1, np.int64)
        self.held = np.zeros(number, bool)
        self._counts_episodes = self.unit == "episode"
        # The coming tick is `episode + shift` on a clock of episodes and `count + shift - lag` on others: each
        # dead step lets the ticks fall behind the count by one, and there is one for every episode.
        self._lag = self.episode if has_dead_steps else np.zeros(number, np.int64)
        self._shift = np.zeros(number, np.int64)
        self._place = np.zeros(number, np.int64)  # the same for the cursor of a dense flow
        self._held_tick = np.zeros(number, np.int64)
        self._held_cursor = np.zeros(number, np.int64)
        self._resume = np.zeros(number, np.int64)
        self._any_held = False
        self._due_at = np.full(number, FAR, np.int64)  # episode, or count less lag, at which values may change
        self._window_end = 0  # the count up to which `_queue` holds whoever is due, by count
        self._queue: list[tuple[int, int]] = []
        self._is_busy = False  # so many are due soon that asking all at every step is cheaper
        self._since = np.zeros(number, np.int64)
        self._furthest = np.zeros(number, np.int64)
        self._visited: dict[int, Visited] = {}
        self._sum = np.empty(number, np.int64)
        self._mask = np.empty(number, bool)
        self._on_turn = on_turn

    @property
    def is_moving(self) -> bool:
        """Whether steps move time, so that knobs may change within an episode."""
        return not self._counts_episodes and self.flow.can_change

    def steps(self, indices: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Transitions of the present episodes; -1 or less before a dead step.

        Args:
            indices: the sub-environments.
        """
        return self.count - self.ends_at[indices] + self.limit

    def ticks(self, indices: np.ndarray) -> np.ndarray:
        """The present ticks: that of the last transition, or of the first one to come after a reset.

        Args:
            indices: the sub-environments.
        """
        ticks = self._coming(indices)
        if not self._counts_episodes:
            ticks -= self.steps(indices) > 0
        return np.where(self.held[indices], self._held_tick[indices], ticks)

    def move(self) -> None:
        """Let the knob values of the coming transitions hold, where steps move time.

        A dead step is no transition: its reset sees the tick to come, and the next step has the same tick.
        """
        if self.count >= self._window_end:
            self._look_ahead()
        if self._is_busy:
            np.add(self._due_at, self._lag, out=self._sum)
            np.less_equal(self._sum, self.count, out=self._mask)
            if np.count_nonzero(self._mask):
                self._turn(self._mask.nonzero()[0])
        elif self._queue and self._queue[0][0] <= self.count:
            self._turn_queued()
        if self.flow.is_dense:
            cursor = self.flow.cursor
            np.subtract(self._place, self._lag, out=cursor)
            np.add(cursor, self.count, out=cursor)
            if self._any_held:
                np.copyto(cursor, self._held_cursor, where=self.held)
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
        np.copyto(self.ends_at, self.count + dead + self.limit, where=ended)
        np.add(self.episode, ended, out=self.episode)
        flow = self.flow
        if not flow.can_change:
            return
        if self._counts_episodes:
            np.greater_equal(self.episode, self._due_at, out=self._mask)
            if np.count_nonzero(self._mask):
                self._turn(self._mask.nonzero()[0])
            if flow.is_dense:
                np.add(self._place, self.episode, out=flow.cursor)
                flow.gather()
        elif not dead:  # before a dead step `move` has let the coming values hold
            indices = ended.nonzero()[0]
            due = indices[self._due_at[indices] + self._lag[indices] <= self.count]
            if len(due):
                self._turn(due)
            if flow.is_dense:
                flow.read(indices, self._place[indices] + self.count - self._lag[indices])

    def begin_at(self, indices: np.ndarray, jump: Jump, dead: bool = False) -> None:
        """Begin episodes somewhere in time.

        Args:
            indices: the sub-environments.
            jump: what the options ask for.
            dead: whether the step to come is a dead one for them.
        """
        present = self.ticks(indices)
        started = self.episode[indices] >= 0
        running = ~self.held[indices]
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
        self.episode[indices] += 1
        self.held[indices] = jump.hold
        self._any_held = bool(self.held.any())
        self._held_tick[indices] = start
        self._resume[indices] = resume
        self.ends_at[indices] = born + self.limit
        time = self.episode[indices] if self._counts_episodes else born - self._lag[indices]
        self._shift[indices] = start - time
        self.flow.seek(indices, start)
        self._held_cursor[indices] = self.flow.cursor[indices]
        self._place[indices] = self.flow.cursor[indices] - time
        self._due_at[indices] = np.where(self.held[indices], FAR, self.flow.until(indices) - self._shift[indices])
        self._on_turn(indices)
        self._window_end = self.count

    def rewind(self, indices: np.ndarray) -> None:
        """Start from tick 0 with the next episode, which has to begin by `begin_at`.

        Args:
            indices: the sub-environments.
        """
        self.episode[indices] = -1
        self.held[indices] = False
        self._shift[indices] = 0 if self._counts_episodes else self._lag[indices] - self.count
        self._since[indices] = self._furthest[indices] = 0
        for index in indices.tolist() if self._visited else ():
            self._visited.pop(index, None)

    def visited(self, index: int) -> Visited:
        """Which ticks a sub-environment has visited since its last rewind.

        Args:
            index: the sub-environment.
        """
        spans = Visited(list(self._visited[index].spans)) if index in self._visited else Visited()
        if self.episode[index] >= 0:
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
            self._visited.setdefault(index, Visited()).add(int(self._since[index]), last)
        self._since[indices] = np.where(breaks | ~started, start, self._since[indices])

    def _coming(self, indices: np.ndarray) -> np.ndarray:
        """The ticks of the coming transitions, on a clock of episodes those of the present ones; none is held."""
        if self._counts_episodes:
            return self.episode[indices] + self._shift[indices]
        return self.count + self._shift[indices] - self._lag[indices]

    def _look_ahead(self) -> None:
        """Queue whoever may be due within the next steps."""
        self._window_end = self.count + _WINDOW
        np.add(self._due_at, self._lag, out=self._sum)
        soon = np.flatnonzero(self._sum < self._window_end)
        self._is_busy = len(soon) > _FEW * _WINDOW
        # A sorted list is a heap already.
        self._queue = [] if self._is_busy else sorted(zip(self._sum[soon].tolist(), soon.tolist(), strict=True))

    def _turn_queued(self) -> None:
        """Turn those in the queue who are due; a dead step since then has made some of them due later."""
        due = []
        while self._queue and self._queue[0][0] <= self.count:
            index = heapq.heappop(self._queue)[1]
            if self._due_at.item(index) + self._lag.item(index) <= self.count:
                due.append(index)
            else:
                self._enqueue(index)
        if due:
            self._turn(np.array(due))
            for index in due:
                self._enqueue(index)

    def _enqueue(self, index: int) -> None:
        count = self._due_at.item(index) + self._lag.item(index)
        if count < self._window_end:
            heapq.heappush(self._queue, (count, index))

    def _turn(self, due: np.ndarray) -> None:
        """Let the values of the tick to come hold in these sub-environments, none of which is held."""
        flow = self.flow
        if flow.is_dense:
            until = flow.until(due)
            flow.seek(due, until)
            self._place[due] = flow.cursor[due] - (until - self._shift[due])
            self._due_at[due] = flow.until(due) - self._shift[due]
        elif len(due) <= _FEW:  # a loop is cheaper than a dozen calls for arrays
            for index in due.tolist():
                self._due_at[index] = flow.advance_one(index) - self._shift[index]
        else:
            self._due_at[due] = flow.advance(due) - self._shift[due]
        self._on_turn(due)

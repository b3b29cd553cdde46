"""What time it is for the drifts of many sub-environments.

* `Clocks` - turns resets and steps into ticks, as `drift_envs.wrappers.clock.Clock` does for one environment
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drift_envs.vector.flow import FAR, KnobFlow
from drift_envs.wrappers.clock import NO_JUMP, Jump
from drift_envs.wrappers.records import Visited


class Clocks:
    """Turns resets and steps into ticks and lets the knob values of the tick hold.

    Nothing counts the steps of an episode: `count` numbers the steps of the vector environment, and all
    that an episode needs are the counts at which it began, at which it ends and at which its knobs
    change. So a step without an end or a change costs comparisons only.

    Args:
        flow: the knob values.
        limit: the steps of an episode, `None` for no limit.
        on_turn: called with the sub-environments in which other values hold now.

    Attributes:
        count: steps of the vector environment so far.
        ends_at: the count at which the limit ends the episode, shape `(N,)`.
        episode: episodes before this one since the last rewind, shape `(N,)`.
    """

    def __init__(self, flow: KnobFlow, limit: int | None, on_turn: Callable[[np.ndarray], None]) -> None:
        number = flow.number
        self.flow = flow
        self.unit = flow.schedule.clock
        self.limit = FAR if limit is None else limit
        self.count = 0
        self.ends_at = np.full(number, FAR, np.int64)
        self.episode = np.full(number, -1, np.int64)
        # The tick is `episode + shift` on a clock of episodes and `count + shift` on others.
        self.shift = np.zeros(number, np.int64)
        self.held = np.zeros(number, bool)
        self._held_tick = np.zeros(number, np.int64)
        self._due_at = np.full(number, FAR, np.int64)  # episode or count at which values may change
        self._calm_until = 0  # the count before which no count is due
        self._since = np.zeros(number, np.int64)
        self._furthest = np.zeros(number, np.int64)
        self._visited: dict[int, Visited] = {}
        self._resume = np.zeros(number, np.int64)
        self._any_held = False
        self._mask = np.empty(number, bool)
        self._late = np.zeros(number, bool)  # whose cursor already stands where the next step wants it
        self._has_late = False
        self._on_turn = on_turn
        self._counts_episodes = self.unit == "episode"
        self._moves_cursor = flow.is_dense and self.unit != "episode"

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

    def ticks(self, indices: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The present ticks: that of the last transition, or of the first one to come after a reset.

        Args:
            indices: the sub-environments.
        """
        if self._counts_episodes:
            ticks = self.episode[indices] + self.shift[indices]
        else:
            ticks = self.count + self.shift[indices] - (self.steps(indices) > 0)
        return np.where(self.held[indices], self._held_tick[indices], ticks)

    def move(self, dead: np.ndarray | None) -> None:
        """Let the knob values of the coming transitions hold, where steps move time.

        A dead step is no transition: its reset sees the tick to come, and the next step has the same tick.

        Args:
            dead: the sub-environments whose step is a dead one, booleans of shape `(N,)`, or `None`.
        """
        if self._moves_cursor:
            cursor = self.flow.cursor
            np.add(cursor, 1, out=cursor)
            if self._has_late:
                np.subtract(cursor, self._late, out=cursor)
            if self._any_held:
                np.subtract(cursor, self.held, out=cursor, where=~self._late if self._has_late else True)
            self._has_late = dead is not None
            if dead is not None:
                np.copyto(self._late, dead)
        if self.count >= self._calm_until:
            due = self._due(self.count)
            if len(due):
                self._turn(due)
            self._calm_until = int(self._due_at.min())
        if self._moves_cursor:
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
        if self._counts_episodes:
            if not flow.can_change:
                return
            if flow.is_dense:
                np.add(flow.cursor, ended, out=flow.cursor)
            np.greater_equal(self.episode, self._due_at, out=self._mask)
            if np.count_nonzero(self._mask):
                self._turn(self._mask.nonzero()[0])
            if flow.is_dense:
                flow.gather()
        elif dead:
            np.subtract(self.shift, ended, out=self.shift)
            np.add(self._due_at, ended, out=self._due_at)
        elif flow.can_change:
            if flow.is_dense:
                np.add(flow.cursor, ended, out=flow.cursor)
                np.copyto(self._late, ended)
                self._has_late = True
            due = ended.nonzero()[0]
            due = due[self._due_at[due] <= self.count]
            if len(due):
                self._turn(due)
            if flow.is_dense:
                flow.gather()

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
        coming = (
            self.episode[indices] + self.shift[indices] + 1
            if self._counts_episodes
            else self.count + self.shift[indices]
        )
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
        self.shift[indices] = start - (self.episode[indices] if self._counts_episodes else born)
        self.flow.seek(indices, start)
        self._on_turn(indices)
        self._set_due(indices)
        if self._moves_cursor and not dead:
            self._late[indices] = True
            self._has_late = True
        self._calm_until = self.count

    def rewind(self, indices: np.ndarray) -> None:
        """Start from tick 0 with the next episode, which has to begin by `begin_at`.

        Args:
            indices: the sub-environments.
        """
        self.episode[indices] = -1
        self.held[indices] = False
        self.shift[indices] = 0 if self._counts_episodes else -self.count
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

    def _due(self, count: int) -> np.ndarray:
        """The sub-environments whose knobs may change now."""
        np.less_equal(self._due_at, count, out=self._mask)
        return self._mask.nonzero()[0] if np.count_nonzero(self._mask) else _NOBODY

    def _turn(self, due: np.ndarray) -> None:
        """Let the values of the tick to come hold in these sub-environments."""
        if self.flow.is_dense:
            self.flow.seek(due, self.flow.until[due])
        else:
            self.flow.advance(due)
        self._set_due(due)
        self._on_turn(due)

    def _set_due(self, indices: np.ndarray) -> None:
        due = self.flow.until[indices] - self.shift[indices]
        self._due_at[indices] = np.where(self.held[indices] | (self.flow.until[indices] >= FAR), FAR, due)


_NOBODY = np.zeros(0, np.int64)

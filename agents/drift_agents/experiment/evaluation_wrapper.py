"""The environment of a cell with the evaluator's bookkeeping.

* `EvaluationWrapper` - logs the tick of every interaction and gives access to the oracle
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from drift_agents.types import Record
from drift_envs.errors import NoOracleError
from drift_envs.schedule.timeline import NEVER, Phase, Timeline

NO_PHASE = Phase("", -1, 0, None, NEVER)
"""The phase before the first reset."""


class EvaluationWrapper(gym.Wrapper[str, Any, str, Any]):
    """An environment that notes the tick of every interaction.

    It hands everything on unchanged; agents use it as the environment that it wraps. Interactions are
    counted as an agent's own clock counts them, so that a record's time says at which tick it was
    written.

    Args:
        env: a drifting environment that shows text.

    Example:
        >>> import gymnasium as gym
        >>> import drift_envs
        >>> env = EvaluationWrapper(gym.make("DriftFrozenLake-v0", text=True))
        >>> _ = env.reset(seed=0, options={"drift_tick": 20})
        >>> _ = env.step(1)
        >>> env.phase.id, env.tick, env.tick_of(0)
        ('drift-1', 20, 20)
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        super().__init__(env)
        schedule = env.get_wrapper_attr("schedule")
        self._runs = schedule is not None and schedule.clock != "episode"
        self._steps = 0
        self._begins: list[int] = []
        self._ticks: list[int] = []
        self._start = 0
        self._of: Timeline | None = None
        self._since = 0
        self.phase = NO_PHASE
        self._oracle: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode and note its tick."""
        result = self.env.reset(seed=seed, options=options)
        tick = self.env.get_wrapper_attr("drift_state").tick
        if self.timeline is not self._of:
            self._of, self._since = self.timeline, self._steps
        self.phase = self.timeline.phase(tick)
        self._begins.append(self._steps)
        self._ticks.append(tick)
        self._start = tick
        return result

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Step, and count it."""
        self._steps += 1
        return self.env.step(action)

    @property
    def start(self) -> int:
        """The tick at which this episode began."""
        return self._start

    @property
    def tick(self) -> int:
        """The tick of the next interaction."""
        return self.tick_of(self._steps)

    def tick_of(self, step: int) -> int:
        """The tick of an interaction.

        Args:
            step: its number, counted over all episodes from 0; the next one is counted to this episode.
        """
        index = max(bisect_right(self._begins, step) - 1, 0)
        return self._ticks[index] + (step - self._begins[index] if self._runs else 0)

    def changed(self, record: Record, tick: int) -> bool:
        """Whether a record is answered otherwise at a tick than when it was written.

        What was written in another environment (`drift_agents.experiment.training`) has no tick in this one:
        there the question is whether this environment could answer so.

        Args:
            record: what is remembered.
            tick: the tick.
        """
        if self.is_of_another(record):
            return not self.holds(record, tick)
        return bool(self.oracle.changed(record.state, record.action, self.tick_of(record.now.step), tick))

    def is_of_another(self, record: Record) -> bool:
        """Whether a record was written in another environment, before this one was seeded.

        Args:
            record: what is remembered.
        """
        return record.now.step < self._since

    def holds(self, record: Record, tick: int) -> bool:
        """Whether one of a record's outcomes is a possible true response at a tick.

        Args:
            record: what is remembered.
            tick: the tick.
        """
        return any(
            self.oracle.holds(record.state, record.action, outcome.state, outcome.ended, tick, outcome.score)
            for outcome, _ in record.outcomes
        )

    @property
    def timeline(self) -> Timeline:
        """What the schedule means with the present seed."""
        timeline: Timeline = self.env.get_wrapper_attr("timeline")
        return timeline

    def knobs(self, tick: int) -> Mapping[str, Any]:
        """The values of the driven knobs at a tick; the same object while nothing changes."""
        return self.timeline.values(tick)

    @property
    def oracle(self) -> Any:
        """The oracle, or `None` for an environment that has none."""
        if self._oracle is None:
            try:
                self._oracle = self.env.get_wrapper_attr("oracle")
            except (AttributeError, NoOracleError):
                return None
        return self._oracle

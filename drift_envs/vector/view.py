"""A sub-environment of a vector environment, as evaluators and `get_attr` see it.

* `SubEnvironment` - knobs, place in time and truth of one of them
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drift_envs.errors import ArgumentError, NoOracleError
from drift_envs.knobs import KnobTable, Value
from drift_envs.schedule import Phase, Schedule, Timeline
from drift_envs.wrappers.records import DriftLog, DriftState

_OWN = frozenset({"_vector", "_index", "_oracle"})


class SubEnvironment:
    """One sub-environment: its knobs and its state are attributes, and so is the truth about it.

    `call`, `get_attr` and `set_attr` of the vector environment reach these attributes. It does not step.

    Args:
        vector: the `DriftVectorEnv`.
        index: which one.
    """

    def __init__(self, vector: Any, index: int) -> None:
        self._vector, self._index = vector, index
        self._oracle: Any = None

    @property
    def unwrapped(self) -> Any:
        """The single environment that says what a sub-environment is; its own state means nothing."""
        return self._vector.world.unwrapped

    @property
    def schedule(self) -> Schedule | None:
        """The schedule, or `None` if nothing drifts."""
        return self._vector.schedule

    @property
    def knob_table(self) -> KnobTable:
        """All knobs that a schedule may turn."""
        return self._vector.world.knob_table

    @property
    def timeline(self) -> Timeline:
        """What the schedule means for this sub-environment. For evaluators."""
        return self._vector.flow.timeline(self._index)

    @property
    def tick(self) -> int:
        """The tick of the last transition, or of the first one to come after a reset."""
        return int(self._vector.clocks.ticks(np.array([self._index]))[0])

    @property
    def phase(self) -> Phase:
        """The present phase. For evaluators."""
        return self.timeline.phase(self.tick)

    @property
    def drift_state(self) -> DriftState:
        """Where the sub-environment stands, knob values read back from the dynamics. For evaluators."""
        clocks = self._vector.clocks
        steps = max(int(clocks.steps(np.array([self._index]))[0]), 0)
        episode = max(int(clocks.episodes(np.array([self._index]))[0]), 0)
        return DriftState(self.phase.id, self.tick, episode, steps, self.read_knobs())

    @property
    def drift_log(self) -> DriftLog:
        """Every change on visited ticks since the last rewind. For evaluators."""
        return DriftLog.of(self.timeline, self._vector.clocks.visited(self._index))

    @property
    def oracle(self) -> Any:
        """What the best policy would reach. For evaluators.

        Raises:
            NoOracleError: if none is known.
        """
        if self._oracle is None:
            factory = self._vector.world.oracle_factory
            if factory is None:
                raise NoOracleError(f"no oracle is known for {self._vector}")
            self._oracle = factory(self)
        return self._oracle

    def read_knobs(self) -> dict[str, Value]:
        """The present value of every knob of the environment, read back from the dynamics."""
        return {name: self._vector.read_knob(self._index, name) for name in self.unwrapped.knobs}

    def knobs_at(self, tick: int) -> dict[str, Value]:
        """The value of every knob at a tick; those that the schedule leaves alone as they are now. For evaluators.

        Args:
            tick: the tick.
        """
        return {**self.read_knobs(), **self.timeline.values(tick)}

    def get_wrapper_attr(self, name: str) -> Any:
        """An attribute, as Gymnasium's wrappers offer it.

        Args:
            name: its name.
        """
        return getattr(self, name)

    def __getattr__(self, name: str) -> Any:
        """A knob, what says where the episode stands, or what is the same for all."""
        if name.startswith("__") or name in _OWN:
            raise AttributeError(name)
        if name in self.unwrapped.knobs:
            return self._vector.read_knob(self._index, name)
        if name in self._vector.state_names:
            return self._vector.read_state(self._index, name)
        return getattr(self._vector.world, name) if name.startswith("_") else self._vector.world.get_wrapper_attr(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Turn a knob by hand, or put the episode somewhere else."""
        if name in _OWN:
            object.__setattr__(self, name, value)
        elif name in self.unwrapped.knobs:
            knobs = self.unwrapped.knobs
            checked = knobs[name].check(value)
            for knob, text in knobs.problems({**self.read_knobs(), name: checked}):
                raise ArgumentError(f"`{knob}`: {text}")
            self._vector.write_knob(self._index, name, checked)
        elif name in self._vector.state_names:
            self._vector.write_state(self._index, name, value)
        else:
            known = ", ".join([*self.unwrapped.knobs, *self._vector.state_names])
            raise ArgumentError(f"`name` should be one of {known}. Received {name!r}")

"""Single sub-environments of a vector environment: attributes, frames and `info`, in Gymnasium's vector form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from drift_envs.errors import ArgumentError, DrivenKnobError, NoOracleError, StateError
from drift_envs.knobs import KnobTable, Value, copied
from drift_envs.schedule import Phase, Schedule, Timeline
from drift_envs.vector.dynamics import Dynamics, Infos
from drift_envs.vector.knob_pool import Columns
from drift_envs.wrappers.clock import TimeMove
from drift_envs.wrappers.records import DriftLog, DriftState

_OWN = frozenset({"_vector", "_index", "_oracle"})


class SubEnvironment:
    """The attributes of one sub-environment: knobs, state, and for evaluators time, drifts and oracle.

    Args:
        vector: the vector environment.
        index: from 0 to N - 1.
    """

    def __init__(self, vector: Dynamics, index: int) -> None:
        self._vector, self._index = vector, index
        self._oracle: Any = None

    @property
    def unwrapped(self) -> Any:
        """The innermost single environment, for attributes that are equal in all sub-environments."""
        return self._vector.single_env.unwrapped

    @property
    def schedule(self) -> Schedule | None:
        """The schedule, or `None` without drift."""
        return self._vector.schedule

    @property
    def knob_table(self) -> KnobTable:
        """All knobs that a schedule may drive."""
        return self._vector.single_env.knob_table

    @property
    def timeline(self) -> Timeline:
        """The timeline of this sub-environment. For evaluators."""
        return self._vector.pool.timeline(self._index)

    @property
    def tick(self) -> int:
        """The tick of the last transition, or of the next one after a reset."""
        return int(self._vector.clocks.ticks(np.array([self._index]))[0])

    @property
    def phase(self) -> Phase:
        """The current phase. For evaluators."""
        return self.timeline.phase(self.tick)

    def move_time(self, tick: int | None = None, phase: str | None = None, hold: bool = False) -> None:
        """Move time from the next episode on, see `DriftWrapper.move_time`.

        Args:
            tick: a tick of at least 0.
            phase: the id of a phase.
            hold: whether time stays there.

        Raises:
            ArgumentError: if an argument breaks a rule, or tick and phase are both given.
        """
        self.time_move = TimeMove.of(tick, phase, hold, self.timeline.first_tick)

    @property
    def time_move(self) -> TimeMove | None:
        """Where time is to be from the next episode on, `None` if it goes on."""
        return self._vector.clocks.moves.get(self._index)

    @time_move.setter
    def time_move(self, move: TimeMove | None) -> None:
        moves = self._vector.clocks.moves
        if move is None:
            moves.pop(self._index, None)
        else:
            moves[self._index] = move

    @property
    def drift_state(self) -> DriftState:
        """Phase, tick, episode, step and knob values, read back from the dynamics. For evaluators."""
        clocks = self._vector.clocks
        steps = max(int(clocks.steps(np.array([self._index]))[0]), 0)
        episode = max(int(clocks.episodes(np.array([self._index]))[0]), 0)
        return DriftState(self.phase.id, self.tick, episode, steps, self.read_knobs())

    @property
    def drift_log(self) -> DriftLog:
        """All changes on visited ticks since the last rewind. For evaluators."""
        return DriftLog(self.timeline, self._vector.clocks.visited(self._index))

    @property
    def oracle(self) -> Any:
        """The oracle of this sub-environment. For evaluators.

        Raises:
            NoOracleError: if no oracle is known.
        """
        if self._oracle is None:
            factory = self._vector.single_env.oracle_factory
            if factory is None:
                raise NoOracleError(f"no oracle is known for {self._vector}")
            self._oracle = factory(self)
        return self._oracle

    def read_knobs(self) -> dict[str, Value]:
        """The current value of each knob of the environment, read back from the dynamics."""
        return {name: self._vector.read_knob(self._index, name) for name in self.unwrapped.knobs}

    def knobs_at(self, tick: int) -> dict[str, Value]:
        """The value of each knob at a tick; knobs that the schedule does not drive have their current value.

        For evaluators.
        """
        return {**self.read_knobs(), **self.timeline.values(tick)}

    def get_wrapper_attr(self, name: str) -> Any:
        """The same attribute as `getattr`; the method of Gymnasium's wrappers."""
        return getattr(self, name)

    def __getattr__(self, name: str) -> Any:
        """A knob, a part of the state, or an attribute of the single environment."""
        if name.startswith("__") or name in _OWN:
            raise AttributeError(name)
        if name in self.unwrapped.knobs:
            return self._vector.read_knob(self._index, name)
        if name in self._vector.state_names:
            return self._vector.read_state(self._index, name)
        return (
            getattr(self._vector.single_env, name)
            if name.startswith("_")
            else self._vector.single_env.get_wrapper_attr(name)
        )

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set an attribute as by `setattr`; the method of Gymnasium's wrappers.

        Args:
            name: a knob that the schedule does not drive, or a part of the state.
            value: its value.
            force: not used: no other attribute can be created.
        """
        setattr(self, name, value)
        return True

    def set_knob(self, name: str, value: Any) -> None:
        """Set one knob that the schedule does not drive."""
        setattr(self, name, value)

    def set_knobs(self, values: Mapping[str, Any]) -> None:
        """Set several knobs, none of which the schedule drives."""
        for name, value in values.items():
            DrivenKnobError.refuse(self._vector.driven, name, value)
        for name, value in values.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a knob or a part of the state.

        Raises:
            ArgumentError: if the value is invalid, or there is no such knob and no such part.
            DrivenKnobError: if the schedule drives the knob.
        """
        if name in _OWN or name == "time_move":
            object.__setattr__(self, name, value)
            return
        DrivenKnobError.refuse(self._vector.driven, name, value)
        if name in self.unwrapped.knobs:
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


class SubEnvironmentAccess(Dynamics):
    """Attributes and frames of the sub-environments of a vector environment, which sets the attributes below."""

    envs: tuple[SubEnvironment, ...]
    render_mode: str | None
    _is_reset: bool

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A frame of each sub-environment, or `None` without a `render_mode`.

        Raises:
            StateError: before the first `reset`.
        """
        if not self._is_reset:
            raise StateError("`render` was called before `reset`; call `reset` first")
        if self.render_mode is None:
            return None
        return tuple(map(self._frame, range(self.num_envs)))

    def render_grid(self, columns: int | None = None, most: int = 64) -> np.ndarray:
        """Render one image of the frames of all sub-environments in a grid.

        Args:
            columns: columns of the grid; by default about the number of its rows.
            most: the largest number of sub-environments in the image.

        Returns:
            Pixels of shape `(height, width, 3)`, `uint8`.

        Raises:
            StateError: before the first `reset`, or if `render_mode` is not `rgb_array`.
        """
        if self.render_mode != "rgb_array" or not self._is_reset:
            raise StateError("`render_grid` needs `render_mode='rgb_array'` and a first `reset`")
        frames = [self._frame(index) for index in range(min(self.num_envs, most))]
        across = columns or math.ceil(math.sqrt(len(frames)))
        down = math.ceil(len(frames) / across)
        height, width, colors = frames[0].shape
        image = np.zeros((down * height, across * width, colors), np.uint8)  # empty cells are black
        for position, frame in enumerate(frames):
            row, column = divmod(position, across)
            image[row * height : (row + 1) * height, column * width : (column + 1) * width] = frame
        return image

    def _frame(self, index: int) -> np.ndarray:
        """The frame of a sub-environment, by the single environment with its knobs and its state."""
        env: Any = self.single_env.unwrapped
        env.knob_setter(self.envs[index].read_knobs())
        self.pose(env, index)
        frame: np.ndarray = env.render()
        return frame

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each sub-environment, or read an attribute.

        Args:
            name: a name of `SubEnvironment`.
            *args: arguments of the method.
            **kwargs: keyword arguments of the method.
        """
        found = (getattr(env, name) for env in self.envs)
        return tuple(item(*args, **kwargs) if callable(item) else item for item in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of each sub-environment, see `SubEnvironment`."""
        return self.call(name)

    def set_attr(self, name: str, values: list[Any] | tuple[Any, ...] | Any) -> None:
        """Set an attribute of each sub-environment.

        Args:
            name: a knob that the schedule does not drive, or one of `state_names`.
            values: a list or tuple with one value for each, or one value for all.

        Raises:
            ArgumentError: if the number of values is not that of the sub-environments, or a value is invalid.
            DrivenKnobError: if the schedule drives the knob.
        """
        if not isinstance(values, (list, tuple)):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ArgumentError(
                f"`values` should have one value for each of {self.num_envs} sub-environments. Received {len(values)}"
            )
        for env, value in zip(self.envs, values, strict=True):
            setattr(env, name, value)


class DriftInfos:
    """The part of `info` under `drift`, with the same keys at each step.

    Args:
        columns: the current knob values, shape `(N,)` each.
        envs: the N sub-environments.
        notify: `change` or `full`.
        add_info: writes the `info` of one sub-environment into that of all, as `VectorEnv._add_info`.
    """

    def __init__(
        self,
        columns: Columns,
        envs: Sequence[SubEnvironment],
        notify: str,
        add_info: Callable[[Infos, Infos, int], Infos],
    ) -> None:
        self._columns, self._envs, self._is_full, self._add_info = columns, envs, notify == "full", add_info
        self._reported: dict[str, np.ndarray] = {}

    def rewind(self, indices: np.ndarray) -> None:
        """Take the current values as reported, in sub-environments whose schedule is rewound."""
        for name, values in self._columns.items():
            self._reported.setdefault(name, values.copy())[indices] = values[indices]

    def collect(self, mask: np.ndarray) -> Infos:
        """Report the sub-environments of a mask, booleans of shape `(N,)`."""
        changed = np.zeros(len(self._envs), bool)
        for name, values in self._columns.items():
            changed |= values != self._reported[name]
            np.copyto(self._reported[name], values, where=mask)
        changed &= mask
        if not self._is_full:
            return {"drift": {"changed": changed, "_changed": mask.copy()}, "_drift": mask.copy()}
        infos: Infos = {}
        for index in mask.nonzero()[0].tolist():
            state = self._envs[index].drift_state
            drift = {
                "phase": state.phase,
                "tick": state.tick,
                "changed": bool(changed[index]),
                "knobs": copied(state.knobs),
            }
            infos = self._add_info(infos, {"drift": drift}, index)
        return infos


def merge_infos(infos: Infos, others: Infos, mask: np.ndarray) -> Infos:
    """Replace the `info` of the sub-environments of a mask.

    Args:
        infos: the `info` of all.
        others: the `info` of those in the mask.
        mask: booleans of shape `(N,)`.

    Example:
        >>> last = np.array([False, True])
        >>> both = {"a": np.array([1, 2]), "_a": np.array([True, True])}
        >>> merge_infos(both, {"a": np.array([8, 9]), "_a": last}, last)
        {'a': array([1, 9]), '_a': array([ True,  True])}
    """
    found = _select(infos, ~mask)
    for key, value in others.items():
        old = found.get(key)
        if isinstance(value, dict):
            found[key] = merge_infos(old or {}, value, mask)
        else:
            found[key] = value if old is None else np.where(mask, value, old)
    return found


def final_infos(infos: Infos, observations: np.ndarray, ended: np.ndarray) -> Infos:
    """The last observations and `info` of ended episodes, as the mode `SameStep` returns them.

    Args:
        infos: the `info` of the step.
        observations: the observations of the step.
        ended: whether the episode has ended, booleans of shape `(N,)`.

    Returns:
        `final_obs`, an array of objects, and `final_info`.
    """
    last = np.full(len(ended), None, object)
    for index in ended.nonzero()[0].tolist():
        last[index] = observations[index]
    return {
        "final_obs": last,
        "_final_obs": ended.copy(),
        "final_info": _select(infos, ended),
        "_final_info": ended.copy(),
    }


def _select(infos: Infos, mask: np.ndarray) -> Infos:
    """The `info` of the sub-environments of a mask, without keys that are valid for none of them."""
    found: Infos = {}
    for key, value in infos.items():
        if not key.startswith("_"):
            valid = infos[f"_{key}"] & mask
            if valid.any():
                found[key] = _select(value, mask) if isinstance(value, dict) else value.copy()
                found[f"_{key}"] = valid
    return found

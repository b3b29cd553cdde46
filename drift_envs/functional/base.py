"""What the lake and the cars share: episodes, the step limit and the clock of the drifts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError
from drift_envs.functional.compiler import FAR, compile_schedules
from drift_envs.functional.drift_state import DriftCarry, follow_clock, name_values, start_drift
from drift_envs.knobs import KnobTable, Value
from drift_envs.schedule import Schedule
from drift_envs.schedule.loader import Source, load_schedule


def load_schedules(schedules: Sequence[Source], table: KnobTable) -> list[Schedule]:
    """Load schedules for a table of knobs, where `None` is a schedule without drift.

    Args:
        schedules: schedules, or what `load_schedule` makes them of.
        table: the knobs.

    Raises:
        ScheduleError: if one can't be used.
    """
    empty = Schedule(version=1, name="no-drift")
    return [load_schedule(empty if each is None else each, table=table) for each in schedules]


class Lifetime(NamedTuple):
    """The state between two steps.

    Args:
        drift: tick and knob values of the next step.
        env_state: the state of the episode.
        time: steps of the episode.
    """

    drift: DriftCarry
    env_state: Any
    time: Any


class FunctionalEnv(ABC):
    """A drifting environment as pure functions, to be used inside `jit`, `vmap` and `scan`.

    `reset` begins a lifetime at tick 0. `step` begins the next episode by itself where one ends, and the drift goes
    on: the observation is the first of the new episode then, `info["final_observation"]` the last of the old.

    Attributes:
        knobs: the knobs that a schedule may drive.
        limit: the steps of an episode, where `params` is given no other.
    """

    knobs: KnobTable
    limit: ClassVar[int]
    draws: ClassVar[int]
    """How many uniform numbers a step takes."""

    def params(
        self, schedule: Source = None, *, max_steps: int | None = None, seed: int = 0, ticks: int | None = None
    ) -> Any:
        """The parameters of one schedule.

        Args:
            schedule: a shipped name, a path, a dictionary, a `Schedule`, or `None` for no drift.
            max_steps: the steps of an episode.
            seed: draws the values and the jittered times that the schedule leaves to the seed; all else that is random
                comes from the key of `reset`.
            ticks: compute so many ticks ahead, with all that is random drawn from `seed`: the environment of the same
                name with this seed has the same knob values. The last ones stay after these ticks.

        Raises:
            ScheduleError: if the schedule can't be used.
            ArgumentError: if it draws anew for each of several occurrences and `ticks` is absent, or a number breaks a
                rule.
        """
        batch = self.params_of([schedule], max_steps=max_steps, seed=seed, ticks=ticks)
        return jax.tree.map(lambda part: part[0], batch)

    def params_of(
        self,
        schedules: Sequence[Source],
        *,
        max_steps: int | None = None,
        seed: int | Sequence[int] = 0,
        ticks: int | None = None,
    ) -> Any:
        """The parameters of several schedules as one batch, with a leading dimension for `vmap`.

        Args:
            schedules: as in `params`.
            max_steps: the steps of an episode.
            seed: see `params`; schedule `i` draws with `seed + i`, or with number `i` of a sequence.
            ticks: see `params`.
        """
        limit = check_integer("max_steps", self.limit if max_steps is None else max_steps, 1, FAR)
        loaded = load_schedules(schedules, self.knobs)
        for one in loaded:
            if "poison_after" in one.driven:
                raise ArgumentError(
                    "`poison_after` should not be driven in a functional environment, which counts no visits. "
                    f"Received the schedule {one.name!r}"
                )
        drift, objects = compile_schedules(loaded, self.knobs, seed, ticks)
        return self._make_params(drift, objects, jnp.full(len(loaded), limit, jnp.int32))

    def reset(self, key: Any, params: Any) -> tuple[Any, Lifetime]:
        """Begin a lifetime at tick 0.

        Args:
            key: a key of `jax.random`; it draws the start and all random parts of the schedule.
            params: from `params`.

        Returns:
            Observation and state.
        """
        own, start = jax.random.split(key)
        drift = start_drift(params.drift, own)
        env_state = self._start(params, drift, self.draw(start, (), params))
        return self._observe(params, env_state), Lifetime(drift, env_state, jnp.zeros_like(params.max_steps))

    def step(
        self, key: Any, state: Lifetime, action: Any, params: Any
    ) -> tuple[Any, Lifetime, Any, Any, Any, dict[str, Any]]:
        """Step, and begin the next episode where this one ends.

        Args:
            key: a key of `jax.random`, another one at each step.
            state: from `reset` or `step`.
            action: as in the environment of the same name.
            params: from `params`.

        Returns:
            Observation, state, reward, terminated, truncated and `info`.
        """
        return self.step_with(self.draw(key, (), params), state, action, params)

    def step_with(
        self, draws: Any, state: Lifetime, action: Any, params: Any
    ) -> tuple[Any, Lifetime, Any, Any, Any, dict[str, Any]]:
        """`step` with given random numbers.

        Args:
            draws: uniform numbers in [0, 1), `draws` of them.
            state: from `reset` or `step`.
            action: as in the environment of the same name.
            params: from `params`.
        """
        drift, env_state = state.drift, state.env_state
        env_state, reward, terminated = self._move(params, drift, env_state, action, draws)
        time = state.time + 1
        truncated = time >= params.max_steps
        done = terminated | truncated
        drift = follow_clock(params.drift, drift, done)
        following: Lifetime = jax.tree.map(
            lambda new, old: jnp.where(done, new, old),
            Lifetime(drift, self._start(params, drift, draws), jnp.zeros_like(time)),
            Lifetime(drift, env_state, time),
        )
        last = self._observe(params, env_state)
        info = {"terminated": terminated, "truncated": truncated, "final_observation": last}
        return self._observe(params, following.env_state), following, reward, terminated, truncated, info

    def reset_batch(self, key: Any, params: Any, number: int) -> tuple[Any, Lifetime]:
        """Begin many lifetimes at once, see `step_batch`.

        Args:
            key: a key of `jax.random` for the whole batch.
            params: from `params`, which all lifetimes share, or from `params_of`, one for each.
            number: the number of lifetimes.
        """
        keys = jax.random.split(key, number)
        reset: Any = jax.vmap(self.reset, in_axes=(0, batch_axis(params)))
        found: tuple[Any, Lifetime] = reset(keys, params)
        return found

    def step_batch(
        self, key: Any, states: Lifetime, actions: Any, params: Any
    ) -> tuple[Any, Lifetime, Any, Any, Any, dict[str, Any]]:
        """`step` of many lifetimes at once: faster than `jax.vmap(step)`, with the same laws.

        Random numbers are drawn for the whole batch.

        Args:
            key: a key of `jax.random` for the whole batch, another one at each step.
            states: from `reset_batch` or `step_batch`.
            actions: an action for each lifetime.
            params: as for `reset_batch`.

        Example:
            >>> from drift_envs.envs.frozen_lake.functional import FunctionalLake
            >>> env = FunctionalLake()
            >>> params = env.params("frozen_lake/slippery")
            >>> observations, states = env.reset_batch(jax.random.key(0), params, 5)
            >>> env.step_batch(jax.random.key(1), states, jnp.full(5, 2), params)[2].shape
            (5,)
        """
        draws = self.draw(key, states.time.shape, params)
        step: Any = jax.vmap(self.step_with, in_axes=(0, 0, 0, batch_axis(params)))
        found: tuple[Any, Lifetime, Any, Any, Any, dict[str, Any]] = step(draws, states, actions, params)
        return found

    def draw(self, key: Any, shape: tuple[int, ...], params: Any) -> tuple[Any, ...]:
        """The random numbers of a step: an array for each purpose, so that the compiler leaves out unused ones.

        Args:
            key: a key of `jax.random`.
            shape: of each array, such as the number of lifetimes.
            params: from `params`.
        """
        number = params.drift.fixed.dtype
        keys = jax.random.split(key, self.draws)
        return tuple(jax.random.uniform(own, shape, number) for own in keys)

    def knob_values(self, state: Lifetime, params: Any) -> dict[str, Any]:
        """The knob values of the next step, for evaluators: numbers, and indices of other values.

        Args:
            state: from `reset` or `step`, possibly a batch.
            params: from `params`.
        """
        return name_values(params.drift, state.drift)

    @abstractmethod
    def _make_params(self, drift: Any, objects: list[dict[str, tuple[Value, ...]]], max_steps: Any) -> Any:
        """The parameters of a batch; their field `drift` holds the schedules and `max_steps` the limits."""

    @abstractmethod
    def _start(self, params: Any, drift: DriftCarry, draws: Any) -> Any:
        """The state at the start of an episode."""

    @abstractmethod
    def _move(self, params: Any, drift: DriftCarry, env_state: Any, action: Any, draws: Any) -> tuple[Any, Any, Any]:
        """The next state, the reward and whether the episode terminates."""

    @abstractmethod
    def _observe(self, params: Any, env_state: Any) -> Any:
        """The observation of a state."""


def batch_axis(params: Any) -> int | None:
    """The dimension of a batch of parameters, `None` if all lifetimes share them."""
    return 0 if jnp.ndim(params.drift.clock) else None

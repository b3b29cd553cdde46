"""The mountain cars as pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from drift_envs.envs.mountain_car.env import MOUNTAIN_CAR_CONTINUOUS_KNOBS, MOUNTAIN_CAR_KNOBS
from drift_envs.functional.base import FunctionalEnv
from drift_envs.functional.compiler import DriftParams, is_ever_set
from drift_envs.functional.drift_state import DriftCarry, number_of
from drift_envs.knobs import KnobTable, Value

MIN_POSITION, MAX_POSITION, MAX_SPEED = -1.2, 0.6, 0.07


@dataclass(frozen=True)
class CarParams:
    """A schedule and the step limit.

    Args:
        drift: the schedule.
        max_steps: the steps of an episode.
        has_false_responses: whether `transient` is ever above 0.
    """

    drift: DriftParams
    max_steps: Any
    has_false_responses: bool


jax.tree_util.register_dataclass(CarParams, ["drift", "max_steps"], ["has_false_responses"])


class CarState(NamedTuple):
    """Position and velocity of a car."""

    position: Any
    velocity: Any


class _AnyCar(FunctionalEnv):
    """What both cars share. Draws: the false response, and the start."""

    draws: ClassVar[int] = 2
    engine: ClassVar[str]

    def _make_params(self, drift: DriftParams, objects: list[dict[str, tuple[Value, ...]]], max_steps: Any) -> Any:
        return CarParams(drift, max_steps, is_ever_set(drift, "transient"))

    def _start(self, params: CarParams, drift: DriftCarry, draws: Any) -> CarState:
        return CarState(-0.6 + 0.2 * draws[1], jnp.zeros_like(draws[1]))

    def _observe(self, params: CarParams, env_state: CarState) -> Any:
        return jnp.stack([env_state.position, env_state.velocity]).astype(jnp.float32)

    def _drive(self, params: CarParams, drift: DriftCarry, env_state: CarState, push: Any) -> tuple[CarState, Any]:
        """The next state for a push of the engine, and whether the flag is reached."""
        position, velocity = env_state
        force, gravity, goal = (
            number_of(params.drift, drift, name) for name in (self.engine, "gravity", "goal_position")
        )
        velocity = velocity + push * force - gravity * jnp.cos(3 * position)
        velocity = jnp.clip(velocity, -MAX_SPEED, MAX_SPEED)
        position = jnp.clip(position + velocity, MIN_POSITION, MAX_POSITION)
        velocity = jnp.where((position <= MIN_POSITION) & (velocity < 0), 0.0, velocity)
        terminated = (position >= goal) & (velocity >= 0)
        return CarState(position, velocity), terminated


class FunctionalCar(_AnyCar):
    """The mountain car of `DriftMountainCar-v0` with a schedule, as pure functions.

    Observations are position and velocity, the reward is -1 a step.

    Example:
        >>> env = FunctionalCar()
        >>> params = env.params("mountain_car/reversed")
        >>> observation, state = env.reset(jax.random.key(0), params)
        >>> observation.shape
        (2,)
    """

    knobs: KnobTable = MOUNTAIN_CAR_KNOBS
    engine: ClassVar[str] = "force"
    limit: ClassVar[int] = 300

    def _move(
        self, params: CarParams, drift: DriftCarry, env_state: CarState, action: Any, draws: Any
    ) -> tuple[CarState, Any, Any]:
        chosen = action
        if params.has_false_responses:
            transient, chance = number_of(params.drift, drift, "transient"), draws[0]
            # below the threshold the number is again uniform and selects one of the two other actions
            second = (chance >= 0.5 * transient).astype(jnp.int32)
            chosen = jnp.where(chance < transient, second + (second >= action), action)
        push = (jnp.asarray(chosen) - 1).astype(env_state.position.dtype)
        env_state, terminated = self._drive(params, drift, env_state, push)
        return env_state, jnp.full_like(push, -1.0), terminated


class FunctionalCarContinuous(_AnyCar):
    """The continuous mountain car of `DriftMountainCarContinuous-v0` with a schedule, as pure functions.

    Actions are forces of shape `(1,)`, cut to -1 to 1; observations are position and velocity. Both are rounded to
    single precision after each step, as in Gymnasium. The reward is 100 at the flag, less a tenth of the squared
    force at every step.

    Example:
        >>> env = FunctionalCarContinuous()
        >>> params = env.params("mountain_car_continuous/gravity")
        >>> observation, state = env.reset(jax.random.key(0), params)
        >>> round(float(env.step(jax.random.key(1), state, jnp.ones(1), params)[2]), 2)
        -0.1
    """

    knobs: KnobTable = MOUNTAIN_CAR_CONTINUOUS_KNOBS
    engine: ClassVar[str] = "power"
    limit: ClassVar[int] = 999

    def _move(
        self, params: CarParams, drift: DriftCarry, env_state: CarState, action: Any, draws: Any
    ) -> tuple[CarState, Any, Any]:
        number = env_state.position.dtype
        given = action[0].astype(number)
        force = jnp.clip(given, -1.0, 1.0)
        if params.has_false_responses:
            transient, chance = number_of(params.drift, drift, "transient"), draws[0]
            drawn = 2.0 * chance / jnp.where(transient > 0, transient, 1.0) - 1.0
            force = jnp.where(chance < transient, drawn, force)
        env_state, terminated = self._drive(params, drift, env_state, force)
        reward = jnp.where(terminated, 100.0, 0.0) - 0.1 * given * given
        rounded = (part.astype(jnp.float32).astype(number) for part in env_state)
        return CarState(*rounded), reward, terminated

    def _start(self, params: CarParams, drift: DriftCarry, draws: Any) -> CarState:
        position, velocity = super()._start(params, drift, draws)
        return CarState(position.astype(jnp.float32).astype(position.dtype), velocity)

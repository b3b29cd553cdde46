"""Native vector environments of the mountain cars.

* `VectorMountainCar` - of `DriftMountainCar-v0`
* `VectorMountainCarContinuous` - of `DriftMountainCarContinuous-v0`
* `VectorCar` - the base of both: state, initial states and knobs
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from drift_envs.envs import MountainCar, MountainCarContinuous
from drift_envs.envs.mountain_car.env import read_bounds
from drift_envs.envs.mountain_car.slope import SlopeTable
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.vector.base import DriftVectorEnv
from drift_envs.vector.dynamics import IntegerActions, check_forces, refuse_poison
from drift_envs.vector.knob_pool import Columns

_IS_DOUBLE = (np.float32(1.0) * 1.0).dtype == np.float64
"""Whether a `float32` times a Python float is a `float64`, as before NumPy 2."""


_COST = np.array(-0.1)
"""The reward of a squared force."""

_ROUNDED = ("power", "goal_position")
"""Knobs of the continuous car that are needed in single precision too."""

_LEAST_CARS = 1536
"""Cars from which a table of the slope takes less time than the cosine of each."""


class VectorCar(DriftVectorEnv):
    """The base of both kinds of cars: positions and velocities in two arrays, initial states and knobs.

    `get_attr` and `set_attr` take the names of the knobs and `state`, a pair of position and velocity.
    `reset(options={"low": ..., "high": ...})` bounds the start positions. See `DriftVectorEnv` for the arguments.
    """

    state_names: ClassVar[tuple[str, ...]] = ("state",)
    precision: ClassVar[type]

    def _make_arrays(self) -> None:
        number = self.num_envs
        self._knobs = self.pool.columns
        self._position: np.ndarray = np.zeros(number, self.precision)
        self._velocity: np.ndarray = np.zeros(number, self.precision)
        self._pull = np.zeros(number)
        self._push: np.ndarray = np.zeros(number, self.precision)
        self._mask = np.zeros(number, bool)
        # arrays of the state's precision: with Python numbers each call converts them, and `clip` takes twice the time
        car, kind = self._car, self.precision
        self._min_speed: np.ndarray = np.array(-car.max_speed, kind)
        self._max_speed: np.ndarray = np.array(car.max_speed, kind)
        self._limits: tuple[np.ndarray, np.ndarray] = np.array(car.min_position, kind), np.array(car.max_position, kind)

    def _make_columns(self) -> dict[str, np.ndarray]:
        car: Any = self.single_env.unwrapped
        self._car = car
        return {name: np.full(self.num_envs, value) for name, value in car.read_knobs().items()}

    def _encode(self, values: Mapping[str, Any]) -> Columns:
        return dict(values)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        read_bounds(options)

    def _start_episodes(self, mask: np.ndarray, options: Mapping[str, Any]) -> None:
        self._start(mask.nonzero()[0], *read_bounds(options))

    def _start(self, indices: np.ndarray, low: float = -0.6, high: float = -0.4) -> None:
        """Start episodes in the valley at velocity 0."""
        chances = self._start_draws.at(indices, self.clocks.episodes(indices))
        self._position[indices] = low + (high - low) * chances
        self._velocity[indices] = 0.0
        self._round()

    def _observe(self) -> np.ndarray:
        observations = np.empty((self.num_envs, 2), np.float32)
        observations[:, 0] = self._position
        observations[:, 1] = self._velocity
        return observations

    def _transition(
        self, actions: np.ndarray, resetting: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        position, velocity, car = self._position, self._velocity, self._car
        low, high = self._limits
        np.minimum(self._accelerate(actions), self._max_speed, out=velocity)
        np.maximum(velocity, self._min_speed, out=velocity)
        np.add(position, velocity, position)
        if np.maximum.reduce(position) > high:
            np.minimum(position, high, out=position)
        if np.minimum.reduce(position) <= low:
            np.maximum(position, low, out=position)
            at_wall = np.less_equal(position, low, out=self._mask)
            velocity[at_wall] = np.maximum(velocity[at_wall], 0.0)
        ended = np.greater_equal(position, self._goals())
        if np.count_nonzero(ended):
            np.greater_equal(velocity, car.goal_velocity, out=self._mask)
            np.logical_and(ended, self._mask, out=ended)
        rewards = self._rewards(actions, ended)
        self._round()
        if resetting is not None:
            indices = resetting.nonzero()[0]
            self._start(indices)
            rewards[indices] = 0.0
            ended[indices] = False
        return self._observe(), rewards, ended, {}

    @abstractmethod
    def _accelerate(self, actions: np.ndarray) -> np.ndarray:
        """The velocities with the accelerations by engine and slope, valid until the next call."""

    def _round(self) -> None:
        """Round positions and velocities to the precision of the single environment."""

    @abstractmethod
    def _goals(self) -> np.ndarray:
        """The positions of the flags."""

    @abstractmethod
    def _rewards(self, actions: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """The rewards of the step."""

    def pose(self, env: Any, index: int) -> None:
        """Copy position and velocity to the single car."""
        env.state = self.read_state(index, "state")

    def read_state(self, index: int, name: str) -> Any:
        """Position and velocity of a car; the only name is `state`."""
        return (float(self._position[index]), float(self._velocity[index]))

    def write_state(self, index: int, name: str, value: Any) -> None:
        """Set position and velocity of a car.

        Raises:
            ArgumentError: if they are not in the observation space.
        """
        if not self.single_observation_space.contains(np.array(value, np.float32)):
            raise ArgumentError(
                f"`state` should be a position and a velocity in the observation space. Received {value!r}"
            )
        self._position[index], self._velocity[index] = value
        self._round()

    def read_knob(self, index: int, name: str) -> Value:
        """Read the current value of a knob back from the arrays of the dynamics."""
        return 0 if name == "poison_after" else float(self._knobs[name][index])

    def write_knob(self, index: int, name: str, value: Value) -> None:
        """Set a knob that the schedule does not drive to a canonical value.

        Raises:
            ArgumentError: if the knob is `poison_after`.
        """
        if name == "poison_after":
            refuse_poison(value)
        self._knobs[name][index] = value
        self._has_false_responses = self._has_false_responses or (name == "transient" and value > 0)


class VectorMountainCar(VectorCar):
    """N mountain cars, each with its own drift; see `VectorCar`.

    Example:
        >>> from drift_envs.wrappers.drift import DriftWrapper
        >>> cars = VectorMountainCar(DriftWrapper(MountainCar()), num_envs=2)
        >>> observations, infos = cars.reset(seed=0, options={"low": -0.5, "high": -0.5})
        >>> cars.step(np.array([0, 2]))[0][:, 1].astype(float).round(6).tolist()
        [-0.001177, 0.000823]
    """

    kind = MountainCar
    precision = np.float64

    def _make_arrays(self) -> None:
        super()._make_arrays()
        self._actions = IntegerActions(self.num_envs, int(self._car.action_space.n))

    def _check_actions(self, actions: Any) -> np.ndarray:
        return self._actions.check(actions)

    def _accelerate(self, actions: np.ndarray) -> np.ndarray:
        push, pull, knobs = self._push, self._pull, self._knobs
        np.subtract(actions, 1.0, out=push)
        if self._has_false_responses:
            self._replace_pushes(push)
        # The operations have the order of the single environment, so that they round equally.
        np.multiply(push, knobs["force"], out=push)
        np.multiply(self._position, 3.0, out=pull)
        np.cos(pull, out=pull)
        np.multiply(pull, knobs["gravity"], out=pull)
        np.subtract(push, pull, out=push)
        np.add(self._velocity, push, out=push)
        return push

    def _replace_pushes(self, push: np.ndarray) -> None:
        """Replace pushes by those of another action, with probability `transient`."""
        numbers, transient = self._response_draws.step(self.np_random), self._knobs["transient"]
        false = np.flatnonzero(numbers < transient)
        # Below the threshold the number is again uniform and selects one of the two other actions.
        is_second = numbers[false] >= 0.5 * transient[false]
        push[false] = np.mod(push[false] + 2 + is_second, 3) - 1

    def _goals(self) -> np.ndarray:
        return self._knobs["goal_position"]

    def _rewards(self, actions: np.ndarray, ended: np.ndarray) -> np.ndarray:
        return np.full(self.num_envs, -1.0)


class VectorMountainCarContinuous(VectorCar):
    """N continuous mountain cars, each with its own drift; see `VectorCar`.

    Positions and velocities are `float32`, as in Gymnasium. Intermediate results are `float64` before
    NumPy 2, as there.

    Example:
        >>> from drift_envs.wrappers.drift import DriftWrapper
        >>> cars = VectorMountainCarContinuous(DriftWrapper(MountainCarContinuous()), num_envs=2)
        >>> observations, infos = cars.reset(seed=0, options={"low": -0.5, "high": -0.5})
        >>> cars.step(np.array([[-1.0], [1.0]], np.float32))[1].tolist()
        [-0.1, -0.1]
    """

    kind = MountainCarContinuous
    precision = np.float64 if _IS_DOUBLE else np.float32

    def _make_columns(self) -> dict[str, np.ndarray]:
        columns = super()._make_columns()
        return {**columns, **{f"{name}_rounded": columns[name].astype(np.float32) for name in _ROUNDED}}

    def _encode(self, values: Mapping[str, Any]) -> Columns:
        rounded = {f"{name}_rounded": values[name].astype(np.float32) for name in _ROUNDED if name in values}
        return {**values, **rounded}

    def write_knob(self, index: int, name: str, value: Value) -> None:
        """Set a knob that the schedule does not drive to a canonical value.

        Raises:
            ArgumentError: if the knob is `poison_after`.
        """
        super().write_knob(index, name, value)
        if name in _ROUNDED:
            self._knobs[f"{name}_rounded"][index] = value
        self._finds_slope = True

    def _make_arrays(self) -> None:
        super()._make_arrays()
        self._third = np.zeros(self.num_envs, np.float32)
        self._three = np.array(3.0, np.float32)
        self._needs_clip = False
        self._slope: SlopeTable | None = None
        self._finds_slope = True
        self._is_within = True  # whether all positions are in the reach of the table

    def _start(self, indices: np.ndarray, low: float = -0.6, high: float = -0.4) -> None:
        super()._start(indices, low, high)
        self._is_within = self._is_within and max(-low, high) <= SlopeTable.reach

    def _check_actions(self, actions: Any) -> np.ndarray:
        checked, low, high = check_forces(actions, self.num_envs)
        self._needs_clip = low < -1.0 or high > 1.0
        return checked[:, 0]

    def _find_slope(self) -> SlopeTable | None:
        """The table for the gravity of all cars; `None` if they differ or are few, where a cosine takes less time."""
        gravity, self._finds_slope = self._knobs["gravity"], False
        if "gravity" in self._driven or self.num_envs < _LEAST_CARS or not SlopeTable.serves(gravity):
            return None
        return SlopeTable(self.num_envs, float(gravity[0]))

    def _accelerate(self, actions: np.ndarray) -> np.ndarray:
        if _IS_DOUBLE:
            return self._accelerate_in_double(actions)
        push, knobs, clipped = self._push, self._knobs, None
        # Single and double precision are mixed as in Gymnasium, so that the results round equally.
        forces = actions
        if self._needs_clip:
            np.minimum(actions, 1.0, out=push)
            np.maximum(push, -1.0, out=push)
            clipped = np.not_equal(push, actions, out=self._mask).nonzero()[0]
            forces = push
        if self._has_false_responses:
            clipped = None
            np.copyto(push, forces)
            self._replace_pushes(push)
            forces = push
        np.multiply(forces, knobs["power_rounded"], push)
        if self._finds_slope:
            self._slope = self._find_slope()
        found: np.ndarray
        if self._slope is not None and self._is_within:
            found, unsure = self._slope.accelerate(self._position, self._velocity, push)
            if unsure is not None:
                change = push[unsure] - self._pull_at(unsure).astype(np.float32)
                found[unsure] = self._velocity[unsure] + change
        else:
            third, pull = self._third, self._pull
            np.multiply(self._position, self._three, out=third)
            np.copyto(pull, third)
            np.cos(pull, out=pull)
            np.multiply(pull, knobs["gravity"], out=pull)
            np.copyto(third, pull, casting="same_kind")
            np.subtract(push, third, out=push)
            np.add(self._velocity, push, out=push)
            found = push
            self._is_within = True  # after this step
        if clipped is not None and len(clipped):
            # a clipped force is a Python float in Gymnasium, of double precision
            exact = np.sign(actions[clipped]) * knobs["power"][clipped] - self._pull_at(clipped)
            found[clipped] = self._velocity[clipped] + exact.astype(np.float32)
        return found

    def _pull_at(self, indices: np.ndarray) -> np.ndarray:
        """The pull of the slope on these cars in double precision, shape `(K,)`."""
        pull: np.ndarray = np.cos((self._position[indices] * self._three).astype(np.float64))
        np.multiply(pull, self._knobs["gravity"][indices], out=pull)
        return pull

    def _accelerate_in_double(self, actions: np.ndarray) -> np.ndarray:
        """The same with the type promotion of NumPy 1."""
        push, pull, knobs = self._push, self._pull, self._knobs
        np.multiply(self._position, 3.0, out=pull)
        np.cos(pull, out=pull)
        np.multiply(pull, knobs["gravity"], out=pull)
        np.copyto(push, actions)
        push.clip(-1.0, 1.0, out=push)
        if self._has_false_responses:
            self._replace_pushes(push)
        np.multiply(push, knobs["power"], out=push)
        np.subtract(push, pull, out=push)
        np.add(self._velocity, push, out=push)
        return push

    def _round(self) -> None:
        if _IS_DOUBLE:
            self._position[:] = self._position.astype(np.float32)
            self._velocity[:] = self._velocity.astype(np.float32)

    def _replace_pushes(self, push: np.ndarray) -> None:
        """Replace forces by uniformly drawn ones, with probability `transient`."""
        numbers, transient = self._response_draws.step(self.np_random), self._knobs["transient"]
        false = np.flatnonzero(numbers < transient)
        # Below the threshold the number is again uniform.
        push[false] = 2.0 * numbers[false] / transient[false] - 1.0

    def _goals(self) -> np.ndarray:
        goals: np.ndarray = self._knobs["goal_position" if _IS_DOUBLE else "goal_position_rounded"]
        return goals

    def _rewards(self, actions: np.ndarray, ended: np.ndarray) -> np.ndarray:
        rewards = actions.astype(np.float64)
        np.multiply(rewards, rewards, out=rewards)
        np.multiply(rewards, _COST, out=rewards)
        if np.count_nonzero(ended):
            rewards[ended] += 100.0
        return rewards

"""Native vector environments of the mountain cars.

The slope under continuous cars in single precision comes first, without a cosine for each of them: what it returns as
certain has the bits of Gymnasium's expression.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from drift_envs.envs import MountainCar, MountainCarContinuous
from drift_envs.envs.mountain_car.env import read_bounds
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.vector.base import DriftVectorEnv
from drift_envs.vector.dynamics import IntegerActions, check_forces, refuse_poison
from drift_envs.vector.knob_pool import Columns

_FINEST = 2.0**-13
"""The distance between angles of the table; half of it is the largest distance to one of them."""
_ORIGIN = 1028.0
"""From 1024 to 2048, numbers of single precision are `_FINEST` apart: adding this rounds an angle from -4 to 4 to
one of the table, and the lower 16 bits of the sum are its index."""
_SIZE = 1 << 16
_LOWER_HALF = slice(None, None, 2) if sys.byteorder == "little" else slice(1, None, 2)
_MARGIN = 2.0**-35
"""A bound of the error of a pull, relative to gravity. With d the distance to the angle of the table, |d| <= 2**-14:

* the terms after d**2 are less than d**3 / 6, which is 0.002 of the margin,
* the table of slopes and four operations in single precision round by at most 2**-24 |d| each, together 0.63 of it,
* the cosine of the library and the product with gravity, in double precision, are 0.001 of it.
"""
_LEAST_GRAVITY = 1e-6  # far less, and numbers of single precision are too small to be rounded relative to their size


class SlopeTable:
    """Adds push and pull to the velocities of continuous cars.

    Gymnasium rounds `gravity * cos(3 * position)` from double to single precision, subtracts it from the push and adds
    the velocity. Each of these steps is monotonic. Two pulls, one certainly below the exact one and one above, are
    taken through all of them: where both give the same velocity, it is that of the exact pull.

    Args:
        number: the number of cars, N.
        gravity: the gravity of all cars.

    Example:
        >>> table = SlopeTable(2, 0.0025)
        >>> position, velocity, push = np.array([[-0.5, 0.25], [0.0, 0.01], [0.0015, -0.0015]], np.float32)
        >>> found, unsure = table.accelerate(position, velocity, push)
        >>> bool(found[0] == np.float32(0.0015) - np.float32(0.0025 * np.cos(-1.5))), unsure
        (True, None)
    """

    reach = 1.3
    """The largest position, in size."""

    def __init__(self, number: int, gravity: float) -> None:
        angles = (np.arange(_SIZE) - _SIZE / 2) * _FINEST
        pulls = gravity * np.cos(angles)
        # Rows: the pull, what its rounding has left, and twice the slope of the pull.
        self._table = np.empty((3, _SIZE), np.float32)
        self._table[0] = pulls
        self._table[1] = pulls - self._table[0]
        self._table[2] = 2.0 * gravity * np.sin(angles)
        self._three, self._minus_half = np.array(3.0, np.float32), np.array(-0.5, np.float32)
        self._origin = np.array(_ORIGIN, np.float32)
        self._sum = np.empty(number, np.float32)
        self._offset = np.empty(number, np.float32)
        self._change = np.empty(number, np.float32)
        self._index = np.empty(number, np.int64)
        self._near = np.empty((3, number), np.float32)
        margin = np.array(gravity * _MARGIN, np.float32)  # arrays save their conversion at each call
        self._bounds = (-margin, np.empty(number, np.float32)), (margin, np.empty(number, np.float32))
        self._differs = np.empty(number, bool)
        self._make_views()

    @staticmethod
    def serves(gravity: np.ndarray) -> bool:
        """Whether a table serves cars with these gravities, shape `(N,)`: all are equal, and not too small."""
        return bool(gravity[0] >= _LEAST_GRAVITY and (gravity == gravity[0]).all())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the views, which a pickle stores as arrays of their own."""
        self.__dict__.update(state)
        self._make_views()

    def _make_views(self) -> None:
        self._bits = self._sum.view(np.uint16)[_LOWER_HALF]

    def accelerate(
        self, position: np.ndarray, velocity: np.ndarray, push: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Add push and pull to the velocities.

        Args:
            position: shape `(N,)`, `float32`, at most `reach` in size.
            velocity: shape `(N,)`, `float32`.
            push: shape `(N,)`, `float32`.

        Returns:
            The new velocities, valid until the next call, and the indices of those that are not certain, `None` if
            all are.
        """
        total, offset, change, origin = self._sum, self._offset, self._change, self._origin
        np.multiply(position, self._three, offset)
        np.add(offset, origin, total)
        np.copyto(self._index, self._bits)
        np.subtract(total, origin, total)
        np.subtract(offset, total, offset)  # exact, as the two lines above
        self._table.take(self._index, 1, self._near, "wrap")  # all indices are valid, and other modes are slower
        pull, rest, slope = self._near
        # -offset * slope / 2 - pull * offset**2 / 2 + rest
        np.multiply(pull, offset, change)
        np.add(change, slope, change)
        np.multiply(offset, self._minus_half, offset)
        np.multiply(change, offset, change)
        np.add(change, rest, change)
        for margin, found in self._bounds:
            np.add(change, margin, found)
            np.add(found, pull, found)
            np.subtract(push, found, found)
            np.add(found, velocity, found)
        np.not_equal(self._bounds[0][1], self._bounds[1][1], self._differs)
        unsure = self._differs.nonzero()[0] if np.count_nonzero(self._differs) else None
        return self._bounds[0][1], unsure


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

    def save_dynamics(self) -> dict[str, Any]:
        """Positions and velocities."""
        return {"position": self._position.copy(), "velocity": self._velocity.copy()}

    def load_dynamics(self, saved: Mapping[str, Any]) -> None:
        """Restore positions and velocities.

        Args:
            saved: from `save_dynamics`.
        """
        self._position[:], self._velocity[:] = saved["position"], saved["velocity"]

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

    def load_dynamics(self, saved: Mapping[str, Any]) -> None:
        """Restore positions and velocities.

        Args:
            saved: from `save_dynamics`.
        """
        super().load_dynamics(saved)
        self._is_within = bool(np.abs(self._position).max() <= SlopeTable.reach)

    def _check_actions(self, actions: Any) -> np.ndarray:
        checked, low, high = check_forces(actions, self.num_envs)
        self._needs_clip = low < -1.0 or high > 1.0
        return checked[:, 0]

    def _find_slope(self) -> SlopeTable | None:
        """The table for the gravity of all cars; `None` if they differ or are few, where a cosine takes less time."""
        gravity, self._finds_slope = self._knobs["gravity"], False
        if "gravity" in self.driven or self.num_envs < _LEAST_CARS or not SlopeTable.serves(gravity):
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

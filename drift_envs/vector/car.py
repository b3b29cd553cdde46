"""Thousands of mountain cars at once.

* `VectorMountainCar` - the native vector environment of `DriftMountainCar-v0`
* `VectorMountainCarContinuous` - that of `DriftMountainCarContinuous-v0`
* `VectorCar` - what both share: state, starts and knobs
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium.envs.classic_control import utils

from drift_envs.envs import MountainCar, MountainCarContinuous
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.vector.actions import WholeActions
from drift_envs.vector.base import DriftVectorEnv
from drift_envs.vector.draws import StepDraws
from drift_envs.vector.knob_pool import Columns

_IS_DOUBLE = (np.float32(1.0) * 1.0).dtype == np.float64
"""Whether a number of single precision times a plain one is of double precision, as before NumPy 2."""


class VectorCar(DriftVectorEnv):
    """What both kinds of cars share: positions and velocities in two arrays, starts and knobs.

    `get_attr` and `set_attr` know the knobs and `state`, a pair of position and velocity.
    `reset(options={"low": ..., "high": ...})` bounds the positions to start from.

    Args:
        world: a single drifting car.
        num_envs: how many cars, N.
        max_episode_steps: the steps of an episode, `None` for no limit.
        autoreset_mode: `NextStep`, `SameStep` or `Disabled`.
        share_timeline: whether all cars follow the timeline of the first.
        notify: what `info["drift"]` tells: `none`, `change` or `full`.

    Raises:
        ArgumentError: if the world is no such car.
    """

    state_names: ClassVar[tuple[str, ...]] = ("state",)
    precision: ClassVar[type]

    def _build(self) -> None:
        number = self.num_envs
        self._knobs = self.flow.columns
        self._position: np.ndarray = np.zeros(number, self.precision)
        self._velocity: np.ndarray = np.zeros(number, self.precision)
        self._pull = np.zeros(number)
        self._push: np.ndarray = np.zeros(number, self.precision)
        self._mask, self._low = np.zeros(number, bool), np.zeros(number, bool)
        self._lots = StepDraws(number)
        self._lies = "transient" in self._driven or bool(self._knobs["transient"].any())

    def _columns(self) -> dict[str, np.ndarray]:
        car: Any = self.world.unwrapped
        self._car = car
        return {name: np.full(self.num_envs, value) for name, value in car.read_knobs().items()}

    def _encode(self, values: Mapping[str, Any]) -> Columns:
        return dict(values)

    def _restart_draws(self) -> None:
        super()._restart_draws()
        self._lots.restart()

    def _check_options(self, options: Mapping[str, Any]) -> None:
        utils.maybe_parse_reset_bounds(dict(options), -0.6, -0.4)

    def _place(self, mask: np.ndarray, options: Mapping[str, Any]) -> None:
        self._start(mask.nonzero()[0], *utils.maybe_parse_reset_bounds(dict(options), -0.6, -0.4))

    def _start(self, indices: np.ndarray, low: float = -0.6, high: float = -0.4) -> None:
        """Put cars into the valley."""
        chances = self._starts.at(indices, self.clocks.episodes(indices))
        self._position[indices] = low + (high - low) * chances
        self._velocity[indices] = 0.0
        self._round()

    def _observe(self) -> np.ndarray:
        seen = np.empty((self.num_envs, 2), np.float32)
        seen[:, 0] = self._position
        seen[:, 1] = self._velocity
        return seen

    def _transition(
        self, actions: np.ndarray, dead: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        position, velocity, car = self._position, self._velocity, self._car
        self._accelerate(actions)
        velocity.clip(-car.max_speed, car.max_speed, out=velocity)
        np.add(position, velocity, out=position)
        position.clip(car.min_position, car.max_position, out=position)
        low = self._low
        np.less_equal(position, car.min_position, out=low)
        if np.count_nonzero(low):  # at the wall
            velocity[low] = np.maximum(velocity[low], 0.0)
        ended = np.greater_equal(position, self._goals())
        if np.count_nonzero(ended):
            np.greater_equal(velocity, car.goal_velocity, out=self._mask)
            np.logical_and(ended, self._mask, out=ended)
        rewards = self._rewards(actions, ended)
        self._round()
        if dead is not None:
            indices = dead.nonzero()[0]
            self._start(indices)
            rewards[indices] = 0.0
            ended[indices] = False
        return self._observe(), rewards, ended, {}

    @abstractmethod
    def _accelerate(self, actions: np.ndarray) -> None:
        """Change the velocities as engine and valley do."""

    def _round(self) -> None:
        """Round positions and velocities as the single environment does between two steps."""

    @abstractmethod
    def _goals(self) -> np.ndarray:
        """The positions of the flags."""

    @abstractmethod
    def _rewards(self, actions: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """The rewards of the step."""

    def pose(self, env: Any, index: int) -> None:
        """Put the single car where a car stands, for a picture.

        Args:
            env: the single car, turned already.
            index: the car.
        """
        env.state = self.read_state(index, "state")

    def read_state(self, index: int, name: str) -> Any:
        """Position and velocity of a car.

        Args:
            index: the car.
            name: `state`.
        """
        return (float(self._position[index]), float(self._velocity[index]))

    def write_state(self, index: int, name: str, value: Any) -> None:
        """Put a car somewhere else.

        Args:
            index: the car.
            name: `state`.
            value: position and velocity.

        Raises:
            ArgumentError: if they lie outside of the observation space.
        """
        if not self.single_observation_space.contains(np.array(value, np.float32)):
            raise ArgumentError(f"`state` should be a position and a velocity of the space. Received {value!r}")
        self._position[index], self._velocity[index] = value
        self._round()

    def read_knob(self, index: int, name: str) -> Value:
        """The present value of a knob, read back from what the dynamics use.

        Args:
            index: the car.
            name: the knob.
        """
        return float(self._knobs[name][index])

    def write_knob(self, index: int, name: str, value: Value) -> None:
        """Turn a knob that no schedule drives.

        Args:
            index: the car.
            name: the knob.
            value: a canonical value.
        """
        self._knobs[name][index] = value
        self._lies = self._lies or (name == "transient" and value > 0)


class VectorMountainCar(VectorCar):
    """Thousands of mountain cars at once, each with its own drift; see `VectorCar`.

    Example:
        >>> from drift_envs.wrappers.drift import DriftWrapper
        >>> cars = VectorMountainCar(DriftWrapper(MountainCar()), num_envs=2)
        >>> observations, infos = cars.reset(seed=0, options={"low": -0.5, "high": -0.5})
        >>> cars.step(np.array([0, 2]))[0][:, 1].astype(float).round(6).tolist()
        [-0.001177, 0.000823]
    """

    kind = MountainCar
    precision = np.float64

    def _build(self) -> None:
        super()._build()
        self._actions = WholeActions(self.num_envs, count=3)

    def _check_actions(self, actions: Any) -> np.ndarray:
        return self._actions.check(actions)

    def _accelerate(self, actions: np.ndarray) -> None:
        push, pull, knobs = self._push, self._pull, self._knobs
        np.subtract(actions, 1.0, out=push)
        if self._lies:
            self._lie(push)
        # The order of the operations is that of the single environment, so that they round alike.
        np.multiply(push, knobs["force"], out=push)
        np.multiply(self._position, 3.0, out=pull)
        np.cos(pull, out=pull)
        np.multiply(pull, knobs["gravity"], out=pull)
        np.subtract(push, pull, out=push)
        np.add(self._velocity, push, out=self._velocity)

    def _lie(self, push: np.ndarray) -> None:
        """Put the push of another action in the place of some, with the probability `transient`."""
        lots, transient = self._lots.step(self.np_random), self._knobs["transient"]
        lying = np.flatnonzero(lots < transient)
        # Below the threshold, the same number is uniform again and chooses between the two others.
        second = lots[lying] >= 0.5 * transient[lying]
        push[lying] = np.mod(push[lying] + 2 + second, 3) - 1

    def _goals(self) -> np.ndarray:
        return self._knobs["goal_position"]

    def _rewards(self, actions: np.ndarray, ended: np.ndarray) -> np.ndarray:
        return np.full(self.num_envs, -1.0)


class VectorMountainCarContinuous(VectorCar):
    """Thousands of continuous mountain cars at once, each with its own drift; see `VectorCar`.

    Positions and velocities are of single precision, as in Gymnasium. What a step computes in between is of
    double precision before NumPy 2, as there.

    Example:
        >>> from drift_envs.wrappers.drift import DriftWrapper
        >>> cars = VectorMountainCarContinuous(DriftWrapper(MountainCarContinuous()), num_envs=2)
        >>> observations, infos = cars.reset(seed=0, options={"low": -0.5, "high": -0.5})
        >>> cars.step(np.array([[-1.0], [1.0]], np.float32))[1].tolist()
        [-0.1, -0.1]
    """

    kind = MountainCarContinuous
    precision = np.float64 if _IS_DOUBLE else np.float32

    def _check_actions(self, actions: Any) -> np.ndarray:
        checked = np.ascontiguousarray(actions, np.float32)
        if checked.shape != (self.num_envs, 1):
            raise ArgumentError(f"`actions` should have the shape ({self.num_envs}, 1). Received {checked.shape}")
        checked = checked[:, 0]
        np.isfinite(checked, out=self._mask)
        if np.count_nonzero(self._mask) < self.num_envs:
            where = int(self._mask.argmin())
            raise ArgumentError(f"`actions[{where}]` should be a finite number. Received {float(checked[where])}")
        return checked

    def _accelerate(self, actions: np.ndarray) -> None:
        if _IS_DOUBLE:
            self._accelerate_in_double(actions)
            return
        push, pull, knobs = self._push, self._pull, self._knobs
        # Single and double precision are mixed as in Gymnasium, so that they round alike.
        np.multiply(self._position, np.float32(3.0), out=push)
        np.copyto(pull, push)
        np.cos(pull, out=pull)
        np.multiply(pull, knobs["gravity"], out=pull)
        np.minimum(actions, 1.0, out=push)
        np.maximum(push, -1.0, out=push)
        np.not_equal(push, actions, out=self._mask)
        cut = self._mask.nonzero()[0] if np.count_nonzero(self._mask) else None
        if cut is not None:  # a force that was cut is a plain float there, of double precision
            double = np.sign(actions[cut]) * knobs["power"][cut] - pull[cut]
        if self._lies:
            cut = None
            self._lie(push)
        np.multiply(push, knobs["power"], out=push, dtype=np.float32, casting="same_kind")
        np.subtract(push, pull, out=push, dtype=np.float32, casting="same_kind")
        if cut is not None:
            push[cut] = double
        np.add(self._velocity, push, out=self._velocity)

    def _accelerate_in_double(self, actions: np.ndarray) -> None:
        """The same as NumPy 1 promotes it."""
        push, pull, knobs = self._push, self._pull, self._knobs
        np.multiply(self._position, 3.0, out=pull)
        np.cos(pull, out=pull)
        np.multiply(pull, knobs["gravity"], out=pull)
        np.copyto(push, actions)
        push.clip(-1.0, 1.0, out=push)
        if self._lies:
            self._lie(push)
        np.multiply(push, knobs["power"], out=push)
        np.subtract(push, pull, out=push)
        np.add(self._velocity, push, out=self._velocity)

    def _round(self) -> None:
        if _IS_DOUBLE:
            self._position[:] = self._position.astype(np.float32)
            self._velocity[:] = self._velocity.astype(np.float32)

    def _lie(self, push: np.ndarray) -> None:
        """Put a force drawn uniformly in the place of some, with the probability `transient`."""
        lots, transient = self._lots.step(self.np_random), self._knobs["transient"]
        lying = np.flatnonzero(lots < transient)
        # Below the threshold, the same number is uniform again.
        push[lying] = 2.0 * lots[lying] / transient[lying] - 1.0

    def _goals(self) -> np.ndarray:
        np.copyto(self._push, self._knobs["goal_position"], casting="same_kind")
        return self._push

    def _rewards(self, actions: np.ndarray, ended: np.ndarray) -> np.ndarray:
        rewards = actions.astype(np.float64)
        np.multiply(rewards, rewards, out=rewards)
        np.multiply(rewards, -0.1, out=rewards)
        if np.count_nonzero(ended):
            rewards[ended] += 100.0
        return rewards

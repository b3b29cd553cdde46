"""The dynamics of the mountain cars as pure functions of knob values.

* `CarSetting` - the knob values on which the dynamics depend
* `drive`, `drive_one` - one step, of many cars at once and of one
* `is_at_goal` - whether cars have reached the flag
* `pump` - the push that adds energy
* `replace_pushes` - pushes of which some are replaced, as `transient` does
* `grid_points` - position and velocity of every point of a fine grid
* `car_magnitude` - the share of pairs of state and push whose responses differ between two settings
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

MIN_POSITION, MAX_POSITION, MAX_SPEED = -1.2, 0.6, 0.07
PUSHES = (-1.0, 0.0, 1.0)
"""The pushes a plan chooses from; a weaker push is never faster than the full ones."""

GRID = (241, 141)
"""Numbers of positions and velocities; a grid twice as fine saves less than one step."""


class CarSetting(NamedTuple):
    """The knob values on which the dynamics depend.

    Args:
        force: acceleration by a full push, in velocity a step.
        gravity: acceleration by the steepest slope.
        goal_position: position of the flag.
        transient: probability of a false response.
        goal_velocity: minimum velocity at the flag for the episode to terminate.
        continuous: whether actions are forces between -1 and 1, from which false responses are drawn then.
    """

    force: float
    gravity: float = 0.0025
    goal_position: float = 0.5
    transient: float = 0.0
    goal_velocity: float = 0.0
    continuous: bool = False

    @classmethod
    def of(cls, knobs: Mapping[str, Any], goal_velocity: float = 0.0) -> CarSetting:
        """The setting of these knob values."""
        continuous = "power" in knobs
        force = knobs["power"] if continuous else knobs["force"]
        return cls(force, knobs["gravity"], knobs["goal_position"], knobs["transient"], goal_velocity, continuous)


def drive(
    setting: CarSetting, position: np.ndarray, velocity: np.ndarray, push: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One step of many cars.

    Args:
        setting: the knob values.
        position: shape `(N,)`.
        velocity: shape `(N,)`.
        push: from -1 (full left) to 1 (full right), shape `(N,)`.

    Returns:
        Position, velocity and whether the flag is reached, each of shape `(N,)`.

    Example:
        >>> position, velocity, at_goal = drive(CarSetting(0.001), np.array([-0.5]), np.array([0.0]), np.array([1.0]))
        >>> position.round(6).tolist(), velocity.round(6).tolist(), at_goal.tolist()
        ([-0.499177], [0.000823], [False])
    """
    velocity = np.clip(velocity + push * setting.force - setting.gravity * np.cos(3 * position), -MAX_SPEED, MAX_SPEED)
    position = np.clip(position + velocity, MIN_POSITION, MAX_POSITION)
    velocity = np.where((position <= MIN_POSITION) & (velocity < 0), 0.0, velocity)
    return position, velocity, is_at_goal(setting, position, velocity)


def drive_one(setting: CarSetting, position: float, velocity: float, push: float) -> tuple[float, float, bool]:
    """One step of one car: `drive` with Python floats, which is many times faster.

    Args:
        setting: the knob values.
        position: from -1.2 to 0.6.
        velocity: from -0.07 to 0.07.
        push: from -1 (full left) to 1 (full right).

    Returns:
        Position, velocity and whether the flag is reached.
    """
    velocity += push * setting.force - setting.gravity * math.cos(3 * position)
    velocity = min(max(velocity, -MAX_SPEED), MAX_SPEED)
    position = min(max(position + velocity, MIN_POSITION), MAX_POSITION)
    if position <= MIN_POSITION and velocity < 0:
        velocity = 0.0
    return position, velocity, position >= setting.goal_position and velocity >= setting.goal_velocity


def is_at_goal(setting: CarSetting, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Whether cars have reached the flag, shape `(N,)`."""
    return (position >= setting.goal_position) & (velocity >= setting.goal_velocity)


def pump(setting: CarSetting, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """The push that adds energy: in the direction of the velocity, shape `(N,)`."""
    return np.where(velocity >= 0, 1.0, -1.0) * (1.0 if setting.force >= 0 else -1.0)


def replace_pushes(setting: CarSetting, push: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The pushes that take effect: each is replaced by another one with probability `transient`."""
    false = generator.random(len(push)) < setting.transient
    if setting.continuous:
        return np.where(false, generator.uniform(-1.0, 1.0, len(push)), push)
    return np.where(false, (push + 1 + generator.integers(1, 3, len(push))) % 3 - 1, push)


def grid_points() -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity of every grid point, each of shape `(positions * velocities,)`."""
    grid = np.meshgrid(
        np.linspace(MIN_POSITION, MAX_POSITION, GRID[0]), np.linspace(-MAX_SPEED, MAX_SPEED, GRID[1]), indexing="ij"
    )
    return grid[0].ravel(), grid[1].ravel()


def car_magnitude(old: CarSetting, new: CarSetting, tolerance: float = 1e-7) -> float:
    """The share of pairs of state and push whose responses differ between two settings.

    Args:
        old: one setting.
        new: the other.
        tolerance: differences of position and velocity up to this do not count.

    Returns:
        In [0, 1], over all grid points outside of both goals.

    Example:
        >>> round(car_magnitude(CarSetting(0.001), CarSetting(0.0008)), 2)
        0.65
    """
    positions, velocities = grid_points()
    going = ~is_at_goal(old, positions, velocities) & ~is_at_goal(new, positions, velocities)
    positions, velocities = positions[going], velocities[going]
    if old.transient != new.transient:
        return 1.0
    differing = 0
    for push in PUSHES:
        pushes = np.full_like(positions, push)
        before, after = drive(old, positions, velocities, pushes), drive(new, positions, velocities, pushes)
        differs = before[2] != after[2]
        for one, other in zip(before[:2], after[:2], strict=True):
            differs |= np.abs(one - other) > tolerance
        differing += int(differs.sum())
    return differing / (len(PUSHES) * len(positions))

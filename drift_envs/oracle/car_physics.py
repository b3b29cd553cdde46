"""The mountain cars as mathematics: pure functions of knob values, for one car and for many.

* `CarSetting` - the knob values that the cars' answers depend on
* `drive`, `drive_one` - one step, of many cars at once and of one
* `is_there` - whether cars have reached the flag
* `pump` - the push that adds energy
* `misfire` - pushes of which some are false answers
* `grid_points` - position and velocity of every point of a fine grid
* `car_magnitude` - the share of answers in which two settings differ
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

MIN_POSITION, MAX_POSITION, MAX_SPEED = -1.2, 0.6, 0.07
PUSHES = (-1.0, 0.0, 1.0)
"""What a plan chooses among; between full pushes a weaker one is never faster."""

GRID = (241, 141)
"""Positions and velocities of the grid; twice as fine saves less than one step."""


class CarSetting(NamedTuple):
    """The knob values that a plan depends on.

    Args:
        force: what a full push adds to the velocity.
        gravity: what the slope adds to it.
        goal_position: where the flag stands.
        transient: probability of a false answer.
        goal_velocity: the least velocity with which the flag counts as reached.
        continuous: whether the car takes forces between -1 and 1 (which decides what false answers are).
    """

    force: float
    gravity: float = 0.0025
    goal_position: float = 0.5
    transient: float = 0.0
    goal_velocity: float = 0.0
    continuous: bool = False

    @classmethod
    def of(cls, knobs: Mapping[str, Any], goal_velocity: float = 0.0) -> CarSetting:
        """The setting that these knobs make."""
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
        >>> position, velocity, there = drive(CarSetting(0.001), np.array([-0.5]), np.array([0.0]), np.array([1.0]))
        >>> position.round(6).tolist(), velocity.round(6).tolist(), there.tolist()
        ([-0.499177], [0.000823], [False])
    """
    velocity = np.clip(velocity + push * setting.force - setting.gravity * np.cos(3 * position), -MAX_SPEED, MAX_SPEED)
    position = np.clip(position + velocity, MIN_POSITION, MAX_POSITION)
    velocity = np.where((position <= MIN_POSITION) & (velocity < 0), 0.0, velocity)
    return position, velocity, is_there(setting, position, velocity)


def drive_one(setting: CarSetting, position: float, velocity: float, push: float) -> tuple[float, float, bool]:
    """One step of one car: `drive` with plain numbers, which is many times as fast.

    Args:
        setting: the knob values.
        position: where it is.
        velocity: how fast.
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


def is_there(setting: CarSetting, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Whether cars have reached the flag, shape `(N,)`."""
    return (position >= setting.goal_position) & (velocity >= setting.goal_velocity)


def pump(setting: CarSetting, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """The push that adds energy: the way the car rolls, shape `(N,)`."""
    return np.where(velocity >= 0, 1.0, -1.0) * (1.0 if setting.force >= 0 else -1.0)


def misfire(setting: CarSetting, push: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The pushes that the cars answer to: now and then a false one."""
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
    """The share of answers in which two settings differ.

    Args:
        old: one setting.
        new: the other.
        tolerance: by how much positions and velocities may differ without counting.

    Returns:
        Of all pairs of a grid point and a push, outside of both goals, those that are answered differently.

    Example:
        >>> round(car_magnitude(CarSetting(0.001), CarSetting(0.0008)), 2)
        0.65
    """
    positions, velocities = grid_points()
    going = ~is_there(old, positions, velocities) & ~is_there(new, positions, velocities)
    positions, velocities = positions[going], velocities[going]
    if old.transient != new.transient:
        return 1.0
    differing = 0
    for push in PUSHES:
        pushes = np.full_like(positions, push)
        ours, theirs = drive(old, positions, velocities, pushes), drive(new, positions, velocities, pushes)
        differs = ours[2] != theirs[2]
        for before, after in zip(ours[:2], theirs[:2], strict=True):
            differs |= np.abs(before - after) > tolerance
        differing += int(differs.sum())
    return differing / (len(PUSHES) * len(positions))

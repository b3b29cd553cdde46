"""Planning for mountain cars: pure functions of knob values.

* `CarPlan` - the steps still needed from everywhere, and the policy that follows from them
* `solve_car` - the best known plan of a setting, by value iteration on a fine grid; cached
* `measure` - how often a policy reaches the flag, and how fast
* `carried_success` - what the best known policies of one setting are worth in another
* `replayed_success` - what its best known sequences of actions are worth there

Nobody knows the car's exact optimum: between grid points the number of steps is interpolated, and
the policy looks one exact step ahead. What it reaches is therefore *measured*, by driving from many
starting positions. Where pumping energy (always push the way the car rolls) reaches more, that is
taken instead. A policy is best when it reaches the flag most often and, then, soonest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import sparse

from drift_envs.oracle.car_physics import (
    GRID,
    MAX_POSITION,
    MAX_SPEED,
    MIN_POSITION,
    PUSHES,
    CarSetting,
    drive,
    drive_one,
    grid_points,
    is_there,
    misfire,
    pump,
)

STARTS = 201
"""Starting positions of a measurement, evenly spaced over those from which an episode may begin."""

REPEATS = 5
"""Episodes from each starting position where answers may be false."""

NEAR_TIE = 0.1
"""Two actions whose steps differ by less than this count as equally good: the grid is no finer."""

Policy = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From positions and velocities, shape `(N,)`, to pushes, shape `(N,)`."""


@dataclass(frozen=True)
class CarPlan:
    """The steps still needed from everywhere, and the best known policy.

    Args:
        setting: the knob values that it was made for.
        steps: the steps still needed, by grid point, shape `(positions * velocities,)`.
        pumps: whether pumping energy turned out better than following `steps`.
        success: the share of episodes in which the policy reaches the flag, measured.
        mean_steps: the mean number of steps of those episodes, measured.
    """

    setting: CarSetting
    steps: np.ndarray
    pumps: bool
    success: float
    mean_steps: float

    def costs(self, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """The steps that each push would take in all, by one exact step and the grid; shape `(3, N)`."""
        return _costs(self.setting, self.steps, position, velocity)

    def push(self, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """The best known push, shape `(N,)`."""
        if self.pumps:
            return pump(self.setting, position, velocity)
        return _cheapest(self.costs(position, velocity))

    def push_one(self, position: float, velocity: float) -> float:
        """The best known push of one car: `push` with plain numbers."""
        if self.pumps:
            return 1.0 if (velocity >= 0) == (self.setting.force >= 0) else -1.0
        best, least = 0.0, math.inf
        for push in PUSHES:
            reached, speed, there = drive_one(self.setting, position, velocity, push)
            cost = 0.0 if there else self._interpolate(reached, speed)
            if cost < least:
                best, least = push, cost
        return best

    def _interpolate(self, position: float, velocity: float) -> float:
        """The steps still needed between four grid points."""
        across = (position - MIN_POSITION) / (MAX_POSITION - MIN_POSITION) * (GRID[0] - 1)
        along = (velocity + MAX_SPEED) / (2 * MAX_SPEED) * (GRID[1] - 1)
        i, j = min(int(across), GRID[0] - 2), min(int(along), GRID[1] - 2)
        a, b, first, steps = across - i, along - j, i * GRID[1] + j, self.steps
        near = (1 - b) * steps.item(first) + b * steps.item(first + 1)
        far = (1 - b) * steps.item(first + GRID[1]) + b * steps.item(first + GRID[1] + 1)
        return (1 - a) * near + a * far


@lru_cache(maxsize=64)
def solve_car(setting: CarSetting, limit: int) -> CarPlan:
    """The best known plan of a setting.

    Args:
        setting: the knob values.
        limit: how many steps an episode may have.

    Example:
        >>> plan = solve_car(CarSetting(0.001), limit=300)
        >>> plan.success, plan.mean_steps < 100
        (1.0, True)
    """
    steps = _least_steps(setting, 2 * limit)
    steps.flags.writeable = False
    pumping = measure(setting, lambda x, v: pump(setting, x, v), limit)
    planning = measure(setting, lambda x, v: _cheapest(_costs(setting, steps, x, v)), limit)
    pumps = (pumping[0], -pumping[1]) > (planning[0], -planning[1])
    return CarPlan(setting, steps, pumps, *(pumping if pumps else planning))


def measure(setting: CarSetting, policy: Policy, limit: int) -> tuple[float, float]:
    """How often a policy reaches the flag, and how fast.

    Args:
        setting: the knob values.
        policy: what is measured.
        limit: how many steps an episode may have.

    Returns:
        The share of episodes that reach the flag, and their mean number of steps (`limit` if none does).
    """
    starts = np.linspace(-0.6, -0.4, STARTS)
    position = np.repeat(starts, REPEATS if setting.transient else 1)
    velocity = np.zeros_like(position)
    needed = np.full(len(position), -1)
    # A fixed stream: the measurement belongs to the setting, and two of equal settings must agree.
    generator = np.random.default_rng(0)
    for step in range(1, limit + 1):
        push = policy(position, velocity)
        if setting.transient:
            push = misfire(setting, push, generator)
        position, velocity, there = drive(setting, position, velocity, push)
        needed[there & (needed < 0)] = step
        if (needed >= 0).all():
            break
    won = needed >= 0
    return float(won.mean()), float(needed[won].mean()) if won.any() else float(limit)


@lru_cache(maxsize=256)
def carried_success(old: CarSetting, new: CarSetting, limit: int) -> float:
    """What the best known policies of one setting are worth in another: the most that any of them reaches.

    Each state allows the actions that are best in the old setting, near ties included; where an
    episode of the old setting would have been over, it allows all of them. Among the allowed
    actions a plan for the new setting chooses, and is measured.

    Args:
        old: where the policies are best.
        new: where they are followed.
        limit: how many steps an episode may have.

    Example:
        >>> carried_success(CarSetting(0.001), CarSetting(-0.001), limit=300)
        0.0
        >>> carried_success(CarSetting(0.001), CarSetting(0.0008), limit=300)
        1.0
    """
    plan = solve_car(old, limit)
    if old == new:
        return plan.success

    def allowed(position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        if plan.pumps:
            best = np.array(PUSHES)[:, None] == pump(old, position, velocity)[None]
        else:
            costs = plan.costs(position, velocity)
            best = costs <= costs.min(axis=0) + NEAR_TIE
        return best | is_there(old, position, velocity)

    positions, velocities = grid_points()
    steps = _least_steps(new, 2 * limit, allowed(positions, velocities))

    def policy(position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        costs = _costs(new, steps, position, velocity)
        return _cheapest(np.where(allowed(position, velocity), costs, np.inf))

    return measure(new, policy, limit)[0]


@lru_cache(maxsize=256)
def replayed_success(old: CarSetting, new: CarSetting, limit: int) -> float:
    """What the best known sequences of actions of one setting are worth in another.

    From each starting position the car drives to the flag of the old setting. The same pushes are
    then given in the new one, from the same place, without looking where they lead; no answer is false.

    Args:
        old: where the sequences lead to the flag.
        new: where they are given again.
        limit: how many steps an episode may have.

    Example:
        >>> replayed_success(CarSetting(0.001), CarSetting(0.001), limit=300)
        1.0
        >>> replayed_success(CarSetting(0.001), CarSetting(0.0008), limit=300)
        0.0
    """
    plan = solve_car(old, limit)
    at = there = (np.linspace(-0.6, -0.4, STARTS), np.zeros(STARTS))
    won, arrived = np.zeros(STARTS, dtype=bool), np.zeros(STARTS, dtype=bool)
    for _ in range(limit):
        push = plan.push(*at)
        *at_next, over = drive(old, *at, push)
        *there_next, reached = drive(new, *there, push)
        won |= reached & ~arrived
        arrived |= over
        at, there = (at_next[0], at_next[1]), (there_next[0], there_next[1])
        if (arrived | won).all():
            break
    return float(won.mean())


def _corners(position: np.ndarray, velocity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The four grid points around each state and their weights, each of shape `(N, 4)`."""
    across = (position - MIN_POSITION) / (MAX_POSITION - MIN_POSITION) * (GRID[0] - 1)
    along = (velocity + MAX_SPEED) / (2 * MAX_SPEED) * (GRID[1] - 1)
    i = np.clip(across.astype(int), 0, GRID[0] - 2)
    j = np.clip(along.astype(int), 0, GRID[1] - 2)
    a, b = across - i, along - j
    first = i * GRID[1] + j
    points = np.stack([first, first + 1, first + GRID[1], first + GRID[1] + 1], axis=-1)
    return points, np.stack([(1 - a) * (1 - b), (1 - a) * b, a * (1 - b), a * b], axis=-1)


def _least_steps(setting: CarSetting, cap: int, allowed: np.ndarray | None = None) -> np.ndarray:
    """The steps still needed from every grid point, at most `cap`, by value iteration.

    `allowed` says which pushes a point may take, shape `(3, points)`.
    """
    positions, velocities = grid_points()
    size = len(positions)
    onwards = []
    for push in PUSHES:
        position, velocity, there = drive(setting, positions, velocities, np.full(size, push))
        points, weights = _corners(position, velocity)
        weights = weights * ~there[:, None]
        ends = np.arange(0, 4 * size + 1, 4)
        onwards.append(sparse.csr_matrix((weights.ravel(), points.ravel(), ends), shape=(size, size)))
    steps = np.full(size, float(cap))
    for _ in range(cap):
        costs = np.stack([1.0 + onward @ steps for onward in onwards])
        if allowed is not None:
            costs = np.where(allowed, costs, np.inf)
        better = np.minimum(costs.min(axis=0), cap)
        if np.abs(better - steps).max() < 1e-3:
            return better
        steps = better
    return steps


def _costs(setting: CarSetting, steps: np.ndarray, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    costs = []
    for push in PUSHES:
        reached, speed, there = drive(setting, position, velocity, np.full_like(position, push))
        points, weights = _corners(reached, speed)
        costs.append(1.0 + np.where(there, 0.0, (steps[points] * weights).sum(axis=-1)))
    return np.stack(costs)


def _cheapest(costs: np.ndarray) -> np.ndarray:
    return np.array(PUSHES)[costs.argmin(axis=0)]

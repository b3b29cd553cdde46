"""Planning for mountain cars: pure functions of knob values.

* `CarPlan` - the steps to the goal from every grid point, and the policy that follows from them
* `solve_car` - the best known plan of a setting, by value iteration on a fine grid; cached
* `measure` - success rate and mean number of steps of a policy
* `carried_success` - the success rate in one setting of the policies that are best in another
* `replayed_success` - the same for the action sequences that are best in another

The exact optimum is not known: between grid points the number of steps is interpolated, and the
policy looks one exact step ahead. Its success rate is therefore *measured*, over evenly spaced start
positions. If pumping energy (always push in the direction of the velocity) succeeds more often, it is
used instead. Policies are compared by success rate, then by mean number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from drift_envs.envs.mountain_car.oracle_physics import (
    GRID,
    MAX_POSITION,
    MAX_SPEED,
    MIN_POSITION,
    PUSHES,
    CarSetting,
    drive,
    drive_one,
    grid_points,
    is_at_goal,
    pump,
    replace_pushes,
)

STARTS = 201
"""Start positions of a measurement, evenly spaced over the interval from which `reset` draws."""

REPEATS = 5
"""Episodes from each start position if responses may be false."""

NEAR_TIE = 0.1
"""Actions whose numbers of steps differ by less than this are equally good: the resolution of the grid."""

Policy = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From positions and velocities, shape `(N,)`, to pushes, shape `(N,)`."""


@dataclass(frozen=True)
class CarPlan:
    """The steps to the goal from every grid point, and the best known policy.

    Args:
        setting: the knob values.
        steps: the steps to the goal by grid point, shape `(positions * velocities,)`.
        pumps: whether pumping energy is better than following `steps`.
        success: the measured share of episodes in which the policy reaches the flag.
        mean_steps: the measured mean number of steps of those episodes.
    """

    setting: CarSetting
    steps: np.ndarray
    pumps: bool
    success: float
    mean_steps: float

    def costs(self, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """The steps to the goal after each push, by one exact step and the grid; shape `(3, N)`."""
        return _costs(self.setting, self.steps, position, velocity)

    def push(self, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """The best known push, shape `(N,)`."""
        if self.pumps:
            return pump(self.setting, position, velocity)
        return _cheapest(self.costs(position, velocity))

    def push_one(self, position: float, velocity: float) -> float:
        """The best known push of one car: `push` with Python floats."""
        if self.pumps:
            return 1.0 if (velocity >= 0) == (self.setting.force >= 0) else -1.0
        best, least = 0.0, math.inf
        for push in PUSHES:
            *after, at_goal = drive_one(self.setting, position, velocity, push)
            cost = 0.0 if at_goal else self._interpolate(*after)
            if cost < least:
                best, least = push, cost
        return best

    def _interpolate(self, position: float, velocity: float) -> float:
        """The steps to the goal, interpolated between four grid points."""
        across = (position - MIN_POSITION) / (MAX_POSITION - MIN_POSITION) * (GRID[0] - 1)
        along = (velocity + MAX_SPEED) / (2 * MAX_SPEED) * (GRID[1] - 1)
        i, j = min(int(across), GRID[0] - 2), min(int(along), GRID[1] - 2)
        a, b, first, steps = across - i, along - j, i * GRID[1] + j, self.steps
        near = (1 - b) * steps.item(first) + b * steps.item(first + 1)
        far = (1 - b) * steps.item(first + GRID[1]) + b * steps.item(first + GRID[1] + 1)
        return float((1 - a) * near + a * far)


@lru_cache(maxsize=64)
def solve_car(setting: CarSetting, limit: int) -> CarPlan:
    """The best known plan of a setting.

    Args:
        setting: the knob values.
        limit: the step limit of an episode.

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
    """Success rate and mean number of steps of a policy.

    Args:
        setting: the knob values.
        policy: the policy.
        limit: the step limit of an episode.

    Returns:
        The share of episodes that reach the flag, and their mean number of steps (`limit` if none does).
    """
    starts = np.linspace(-0.6, -0.4, STARTS)
    position = np.repeat(starts, REPEATS if setting.transient else 1)
    velocity = np.zeros_like(position)
    needed = np.full(len(position), -1)
    # A fixed seed, so that measurements of equal settings agree.
    generator = np.random.default_rng(0)
    for step in range(1, limit + 1):
        push = policy(position, velocity)
        if setting.transient:
            push = replace_pushes(setting, push, generator)
        position, velocity, at_goal = drive(setting, position, velocity, push)
        needed[at_goal & (needed < 0)] = step
        if (needed >= 0).all():
            break
    succeeded = needed >= 0
    return float(succeeded.mean()), float(needed[succeeded].mean()) if succeeded.any() else float(limit)


@lru_cache(maxsize=256)
def carried_success(old: CarSetting, new: CarSetting, limit: int) -> float:
    """The success rate in one setting of the policies that are best in another; the best of all of them.

    In each state the actions that are best in the old setting are allowed, near ties included; all
    actions where an episode of the old setting would have terminated. A plan for the new setting
    over the allowed actions is measured.

    Args:
        old: the setting in which the policies are best.
        new: the setting in which they are evaluated.
        limit: the step limit of an episode.

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
        mask: np.ndarray = best | is_at_goal(old, position, velocity)
        return mask

    positions, velocities = grid_points()
    steps = _least_steps(new, 2 * limit, allowed(positions, velocities))

    def policy(position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        costs = _costs(new, steps, position, velocity)
        return _cheapest(np.where(allowed(position, velocity), costs, np.inf))

    return measure(new, policy, limit)[0]


@lru_cache(maxsize=256)
def replayed_success(old: CarSetting, new: CarSetting, limit: int) -> float:
    """The success rate in one setting of the action sequences that are best in another, executed open loop.

    From each start position the best known policy drives to the flag of the old setting; the same pushes
    are then applied in the new one from the same position. No response is false.

    Args:
        old: the setting in which the sequences lead to the flag.
        new: the setting in which they are evaluated.
        limit: the step limit of an episode.

    Example:
        >>> replayed_success(CarSetting(0.001), CarSetting(0.001), limit=300)
        1.0
        >>> replayed_success(CarSetting(0.001), CarSetting(0.0008), limit=300)
        0.0
    """
    plan = solve_car(old, limit)
    position = new_position = np.linspace(-0.6, -0.4, STARTS)
    velocity = new_velocity = np.zeros(STARTS)
    succeeded, is_over = np.zeros(STARTS, dtype=bool), np.zeros(STARTS, dtype=bool)
    for _ in range(limit):
        push = plan.push(position, velocity)
        position, velocity, old_at_goal = drive(old, position, velocity, push)
        new_position, new_velocity, new_at_goal = drive(new, new_position, new_velocity, push)
        succeeded |= new_at_goal & ~is_over
        is_over |= old_at_goal
        if (is_over | succeeded).all():
            break
    return float(succeeded.mean())


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
    """The steps to the goal from every grid point, at most `cap`, by value iteration.

    `allowed` masks the pushes of each point, shape `(3, points)`.
    """
    positions, velocities = grid_points()
    size = len(positions)
    transitions = []
    for push in PUSHES:
        position, velocity, at_goal = drive(setting, positions, velocities, np.full(size, push))
        points, weights = _corners(position, velocity)
        weights = weights * ~at_goal[:, None]
        # one array for each corner: whole columns are faster than rows of four
        transitions.append(list(zip(points.T.copy(), weights.T.copy(), strict=True)))
    steps = np.full(size, float(cap))
    costs, reached = np.empty((len(PUSHES), size)), np.empty(size)
    for _ in range(cap):
        for push, corners in enumerate(transitions):
            cost = costs[push]
            cost[:] = 0.0
            for point, weight in corners:
                steps.take(point, out=reached, mode="clip")  # all points are valid, and other modes are slower
                np.multiply(reached, weight, out=reached)
                cost += reached
            cost += 1.0
        if allowed is not None:
            costs[~allowed] = np.inf
        improved: np.ndarray = np.minimum(costs.min(axis=0), cap)
        if np.abs(improved - steps).max() < 1e-3:
            return improved
        steps = improved
    return steps


def _costs(setting: CarSetting, steps: np.ndarray, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    costs = []
    for push in PUSHES:
        *after, at_goal = drive(setting, position, velocity, np.full_like(position, push))
        points, weights = _corners(*after)
        costs.append(1.0 + np.where(at_goal, 0.0, (steps[points] * weights).sum(axis=-1)))
    return np.stack(costs)


def _cheapest(costs: np.ndarray) -> np.ndarray:
    chosen: np.ndarray = np.array(PUSHES)[costs.argmin(axis=0)]
    return chosen

"""The mountain cars as pure functions of knob values: their dynamics, and planning.

The exact optimum is not known: between grid points the number of steps is interpolated, and the policy looks one exact
step ahead. Its success rate is therefore *measured*, over evenly spaced start positions. If pumping energy (always push
in the direction of the velocity) succeeds more often, it is used instead. Policies are compared by success rate, then
by mean number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
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


def car_magnitude(old: CarSetting, new: CarSetting) -> float:
    """The share of pairs of state and push whose responses differ between two settings.

    Differences of position and velocity up to 1e-7 do not count.

    Args:
        old: one setting.
        new: the other.

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
            differs |= np.abs(one - other) > 1e-7
        differing += int(differs.sum())
    return differing / (len(PUSHES) * len(positions))


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

"""Plans for a car on a hill: value iteration over a model of recollections.

* `Plan` - the values of one model: what a state is worth, and what an action is worth in it
* `make_plan` - a model into a plan

A state's value is `DISCOUNT` to the power of the steps to the flag. Actions are held for `HOLD`
steps inside the plan: values travel faster and smear less over the grid, and a plan costs a few
milliseconds. While driving, the choice is made anew at every step.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import sparse

from drift_agents.matching_grid import POSITIONS, SPEED_LIMIT
from drift_agents.policy.car_model import POINTS, CarModel

DISCOUNT = 0.99
HOLD = 8
_STRIDE = 3
PLACES = (len(POINTS) - 1) // _STRIDE + 1
VELOCITIES = 41
# Values are at most one; what a sweep still moves by less than this cannot turn a decision that matters.
_SETTLED = 1e-4
_SWEEPS = 200

_LEFT, _RIGHT = POSITIONS
_FINE = (_RIGHT - _LEFT) / (len(POINTS) - 1)
_WIDTH = (_RIGHT - _LEFT) / (PLACES - 1)
_HEIGHT = 2 * SPEED_LIMIT / (VELOCITIES - 1)


class Plan:
    """The values of one model.

    Args:
        model: what is believed about the track.
        hopeful: whether an action counts as its best answer, not as the mean of its answers.
    """

    def __init__(self, model: CarModel, *, hopeful: bool) -> None:
        self.model, self._hopeful = model, hopeful
        self._values = _iterate(model, hopeful=hopeful).tolist()
        pushes, weights = model.arrays()
        self._pushes, self._weights = pushes.tolist(), weights.tolist()

    def worth(self, action: str, x: float, v: float) -> float:
        """What holding an action from a state is worth, in [0, 1].

        Args:
            action: one of the model's actions.
            x: position.
            v: velocity.
        """
        row = self.model.actions.index(action)
        place = _place(x)
        worths = [
            (weights[place], self._follow(pushes, x, v))
            for pushes, weights in zip(self._pushes[row], self._weights[row], strict=True)
            if weights[place] > 0
        ]
        if self._hopeful:
            return max(worth for _, worth in worths)
        return sum(weight * worth for weight, worth in worths)

    def _follow(self, pushes: list[float], x: float, v: float) -> float:
        gravity, goal, worth = self.model.gravity, self.model.goal, 1.0
        for _ in range(HOLD):
            worth *= DISCOUNT
            v += pushes[_place(x)] + gravity * math.cos(3 * x)
            v = min(max(v, -SPEED_LIMIT), SPEED_LIMIT)
            x = min(x + v, _RIGHT)
            if x <= _LEFT:
                x, v = _LEFT, max(v, 0.0)
            if x >= goal and v >= 0:
                return worth
        return worth * self.value(x, v)

    def value(self, x: float, v: float) -> float:
        """What a state is worth, in [0, 1]: bilinear between the nodes of the grid.

        Args:
            x: position.
            v: velocity.
        """
        fx, fv = (x - _LEFT) / _WIDTH, (v + SPEED_LIMIT) / _HEIGHT
        i, j = min(int(fx), PLACES - 2), min(int(fv), VELOCITIES - 2)
        fx, fv = fx - i, fv - j
        near, far = self._values[i], self._values[i + 1]
        return (1 - fx) * ((1 - fv) * near[j] + fv * near[j + 1]) + fx * ((1 - fv) * far[j] + fv * far[j + 1])


@lru_cache(maxsize=128)
def make_plan(model: CarModel, *, hopeful: bool) -> Plan:
    """A model into a plan: a pure function, cached."""
    return Plan(model, hopeful=hopeful)


def _place(x: float) -> int:
    return int((x - _LEFT) / _FINE + 0.5)


def _iterate(model: CarModel, *, hopeful: bool) -> np.ndarray:
    """Value iteration on the grid of positions and velocities; returns values of shape `(places, velocities)`."""
    pushes, weights = model.arrays()
    actions, answers, _ = pushes.shape
    grid_x, grid_v = (
        a.ravel()
        for a in np.meshgrid(POINTS[::_STRIDE], np.linspace(-SPEED_LIMIT, SPEED_LIMIT, VELOCITIES), indexing="ij")
    )
    nodes = len(grid_x)
    flat = pushes.reshape(actions * answers, len(POINTS))
    rows = np.arange(actions * answers)[:, None]
    x = np.tile(grid_x, (actions * answers, 1))
    v = np.tile(grid_v, (actions * answers, 1))
    paid, over = np.zeros_like(x), np.zeros(x.shape, dtype=bool)
    for held in range(1, HOLD + 1):
        place = ((x - _LEFT) / _FINE + 0.5).astype(np.int64)
        v = np.clip(v + flat[rows, place] + model.gravity * np.cos(3 * x), -SPEED_LIMIT, SPEED_LIMIT)
        x = np.clip(x + v, _LEFT, _RIGHT)
        v = np.where((x <= _LEFT) & (v < 0), 0.0, v)
        arrived = ~over & (x >= model.goal) & (v >= 0)
        paid[arrived] = DISCOUNT**held
        over |= arrived
    move = _interpolation(x.ravel(), v.ravel(), np.where(over.ravel(), 0.0, DISCOUNT**HOLD), nodes)
    believed = np.repeat(weights[:, :, ::_STRIDE, None], VELOCITIES, axis=3).reshape(actions, answers, nodes)
    values = np.zeros(nodes)
    for _ in range(_SWEEPS):
        worth = (paid.ravel() + move @ values).reshape(actions, answers, nodes)
        worth = np.where(believed > 0, worth, 0.0).max(axis=1) if hopeful else (believed * worth).sum(axis=1)
        new = worth.max(axis=0)
        moved = float(np.abs(new - values).max())
        values = new
        if moved < _SETTLED:
            break
    return values.reshape(PLACES, VELOCITIES)


def _interpolation(x: np.ndarray, v: np.ndarray, scale: np.ndarray, nodes: int) -> sparse.csr_matrix:
    """The matrix that reads scaled values between the grid's nodes, bilinear; shape `(len(x), nodes)`."""
    fx, fv = (x - _LEFT) / _WIDTH, (v + SPEED_LIMIT) / _HEIGHT
    i = np.minimum(fx.astype(np.int64), PLACES - 2)
    j = np.minimum(fv.astype(np.int64), VELOCITIES - 2)
    fx, fv = fx - i, fv - j
    corner = i * VELOCITIES + j
    columns = np.stack([corner, corner + 1, corner + VELOCITIES, corner + VELOCITIES + 1], axis=1)
    shares = np.stack([(1 - fx) * (1 - fv), (1 - fx) * fv, fx * (1 - fv), fx * fv], axis=1) * scale[:, None]
    starts = np.arange(0, 4 * len(x) + 1, 4)
    return sparse.csr_matrix((shares.ravel(), columns.ravel(), starts), shape=(len(x), nodes))

"""Policies for the mountain cars: a plan by a fitted model, and pushing along the velocity."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from operator import or_
from typing import NamedTuple

import numpy as np
from scipy import sparse

from drift_agents.envs.mountain_car.fitted_dynamics import (
    POINTS,
    CarModel,
    Evidence,
    fit_model,
    override_locally,
    read_evidence,
)
from drift_agents.envs.mountain_car.states import POSITIONS, SPEED_LIMIT, read_state
from drift_agents.errors import require_agents_extra
from drift_agents.policy.base import Reply, check_actions, pick
from drift_agents.prompt.view import PromptView, Recollection, check_conflict
from drift_envs.checks import check_count

require_agents_extra()

# The tolerance for ties of values.
_EVEN = 1e-9
# Where a wall hid the effect of an action, it is tried again only this far away.
_NEAR = 0.05


class MountainCarPlanner:
    """Fits a model of the car's dynamics to the records of the prompt and plans with it.

    A local model is fitted to the changes of velocity (`fitted_dynamics.py`), value iteration makes
    a plan, and the action with the highest value in the present state is taken. Actions without records are tried
    first: one step shows their effect. Ties are broken at random, so that without memory the car moves at random.

    The reply is a function of prompt and generator alone; models and plans are cached by value.

    Args:
        conflict: the rule for several responses to one action at one place: `majority`, `newest`,
            `frequency` (probabilities are frequencies) or `max` (the one with the highest value).
        neighbours: the number of nearest recollections used at each place; positive.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> view = PromptView("Reach the flag.", '{"position": -0.5, "velocity": 0.0}', ("2",))
        >>> MountainCarPlanner().decide(view, np.random.default_rng(0)).text
        '2'
    """

    name = "mountain_car"

    def __init__(self, *, conflict: str = "majority", neighbours: int = 5) -> None:
        self.conflict, self.neighbours = check_conflict(conflict), check_count("neighbours", neighbours)
        self._last_input: tuple[tuple[Recollection, ...], tuple[str, ...]] = (), ()
        self._sorted: tuple[frozenset[Evidence], ...] = ()

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose the action with the highest value.

        Raises:
            ArgumentError: if the view has no state of a mountain car, or no action.
        """
        check_actions(view)
        x, v = read_state(view.state)
        here, elsewhere = read_evidence(view.here, view.actions), (view.elsewhere, view.actions)
        if elsewhere != self._last_input:  # it is often the same as in the prompt before
            self._last_input, self._sorted = elsewhere, read_evidence(*elsewhere)
        evidence = tuple(map(or_, self._sorted, here))
        model = fit_model(evidence, view.actions, self.conflict, self.neighbours)
        untried = [
            action
            for action, known in zip(view.actions, evidence, strict=True)
            if action not in model.actions and not any(abs(item.x - x) < _NEAR for item in known)
        ]
        if untried:
            return Reply(pick(untried, rng))
        if not model.actions:
            return Reply(pick(view.actions, rng))
        model = override_locally(model, here, view.actions, x, self.conflict, self.neighbours)
        plan = make_plan(model, optimistic=self.conflict == "max")
        values = [plan.action_value(action, x, v) for action in model.actions]
        best = max(values) - _EVEN
        return Reply(pick([one for one, value in zip(model.actions, values, strict=True) if value >= best], rng))


class EnergyPumping:
    """Accelerates in the direction of the velocity, so that each swing is higher than the one before.

    The last admissible action is assumed to accelerate to the right, the first one to the left,
    independent of memory. It measures the score of built-in knowledge alone, which fails once the
    controls are reversed.

    Example:
        >>> view = PromptView("Reach the flag.", '{"position": -0.5, "velocity": -0.01}', ("0", "1", "2"))
        >>> EnergyPumping().decide(view, np.random.default_rng(0)).text
        '0'
    """

    name = "energy_pumping"

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """The first action while the car rolls to the left, the last one otherwise.

        Raises:
            ArgumentError: if the view has no state of a mountain car, or no action.
        """
        check_actions(view)
        _, velocity = read_state(view.state)
        return Reply(view.actions[0] if velocity < 0 else view.actions[-1])


DISCOUNT = 0.99
HOLD = 8
_STRIDE = 3
PLACES = (len(POINTS) - 1) // _STRIDE + 1
VELOCITIES = 41
NODES = PLACES * VELOCITIES
# The tolerance: values are at most one, and a smaller change of a sweep does not change a decision that matters.
_SETTLED = 1e-4
_SWEEPS = 200
# The number of responses whose moves are cached: those of a few models.
_KEPT = 8

_LEFT, _RIGHT = POSITIONS
_FINE = (_RIGHT - _LEFT) / (len(POINTS) - 1)
_WIDTH = (_RIGHT - _LEFT) / (PLACES - 1)
_HEIGHT = 2 * SPEED_LIMIT / (VELOCITIES - 1)
# The nodes of the grid in order of position, each with its slope and its nearest point.
_GRID_X = np.repeat(POINTS[::_STRIDE], VELOCITIES)
_GRID_V = np.tile(np.linspace(-SPEED_LIMIT, SPEED_LIMIT, VELOCITIES), PLACES)
_GRID_HILL = np.cos(3 * _GRID_X)
_GRID_POINT = ((_GRID_X - _LEFT) / _FINE + 0.5).astype(np.int64)
# From the lower left corner of a mesh to all four.
_CORNERS = np.array([0, 1, VELOCITIES, VELOCITIES + 1], dtype=np.int32)
_ALL = np.arange(NODES)


class ModelValues:
    """The values of one model.

    Args:
        model: the fitted model.
        optimistic: whether an action has the value of its best response instead of their mean.
    """

    def __init__(self, model: CarModel, *, optimistic: bool) -> None:
        self.model, self._optimistic = model, optimistic
        self._values = _iterate(model, optimistic=optimistic)
        pushes, weights = model.arrays()
        self._pushes: list[list[list[float]]] = pushes.tolist()
        self._weights: list[list[list[float]]] = weights.tolist()

    def action_value(self, action: str, x: float, v: float) -> float:
        """The value of holding an action from a state, in [0, 1].

        Args:
            action: one of the model's actions.
            x: position.
            v: velocity.
        """
        row = self.model.actions.index(action)
        place = _place(x)
        weighted = [
            (weights[place], self._follow(pushes, x, v))
            for pushes, weights in zip(self._pushes[row], self._weights[row], strict=True)
            if weights[place] > 0
        ]
        if self._optimistic:
            return max(value for _, value in weighted)
        return sum(weight * value for weight, value in weighted)

    def _follow(self, pushes: list[float], x: float, v: float) -> float:
        gravity, goal, discount = self.model.gravity, self.model.goal, 1.0
        for _ in range(HOLD):
            discount *= DISCOUNT
            v += pushes[_place(x)] + gravity * math.cos(3 * x)
            v = min(max(v, -SPEED_LIMIT), SPEED_LIMIT)
            x = min(x + v, _RIGHT)
            if x <= _LEFT:
                x, v = _LEFT, max(v, 0.0)
            if x >= goal and v >= 0:
                return discount
        return discount * self.value(x, v)

    def value(self, x: float, v: float) -> float:
        """The value of a state, in [0, 1]: bilinear between the nodes of the grid.

        Args:
            x: position.
            v: velocity.
        """
        fx, fv = (x - _LEFT) / _WIDTH, (v + SPEED_LIMIT) / _HEIGHT
        i, j = min(int(fx), PLACES - 2), min(int(fv), VELOCITIES - 2)
        fx, fv = fx - i, fv - j
        at: Callable[[int, int], float] = self._values.item
        near, far = (1 - fv) * at(i, j) + fv * at(i, j + 1), (1 - fv) * at(i + 1, j) + fv * at(i + 1, j + 1)
        return (1 - fx) * near + fx * far


@lru_cache(maxsize=128)
def make_plan(model: CarModel, *, optimistic: bool) -> ModelValues:
    """A model into a plan: a pure function, cached."""
    return ModelValues(model, optimistic=optimistic)


def _place(x: float) -> int:
    return int((x - _LEFT) / _FINE + 0.5)


def _iterate(model: CarModel, *, optimistic: bool) -> np.ndarray:
    """Value iteration on the grid of positions and velocities; returns values of shape `(places, velocities)`."""
    pushes, weights = model.arrays()
    actions, responses, _ = pushes.shape
    held = _held_moves(model.gravity, model.goal)
    moves = [held.moves(push) for push in pushes.reshape(actions * responses, len(POINTS))]
    paid = np.concatenate([move.paid for move in moves])
    shares = np.concatenate([move.shares for move in moves]).ravel()
    columns = np.concatenate([move.columns for move in moves]).ravel()
    starts = np.arange(0, 4 * len(paid) + 1, 4, dtype=np.int32)
    reading = sparse.csr_matrix((shares, columns, starts), shape=(len(paid), NODES))
    # Most models have one response with weight 1 for each action.
    believed = None
    if responses > 1 or (weights != 1).any():
        believed = np.repeat(weights[:, :, ::_STRIDE], VELOCITIES, axis=2)
    values, new, change = np.zeros(NODES), np.empty(NODES), np.empty(NODES)
    for _ in range(_SWEEPS):
        returns = reading @ values
        returns += paid
        if believed is None:
            returns = returns.reshape(actions, NODES)
        else:
            returns = returns.reshape(actions, responses, NODES)
            returns = (
                np.where(believed > 0, returns, 0.0).max(axis=1) if optimistic else (believed * returns).sum(axis=1)
            )
        returns.max(axis=0, out=new)
        np.subtract(new, values, out=change)
        values, new = new, values
        if np.abs(change, out=change).max() < _SETTLED:
            break
    return values.reshape(PLACES, VELOCITIES)


class _Moves(NamedTuple):
    """The result of holding an action with one response from all nodes.

    Args:
        points: the points that are passed; shape `(nodes, HOLD)`.
        columns: the nodes around the state that is reached; shape `(nodes, 4)`.
        shares: the discounted weight of the value of each of them; shape `(nodes, 4)`.
        paid: the discounted reward; shape `(nodes,)`.
    """

    points: np.ndarray
    columns: np.ndarray
    shares: np.ndarray
    paid: np.ndarray


class _HeldMoves:
    """The moves under one gravity with one goal.

    Between two steps a model changes at few points. So the last moves are cached, and only nodes that pass
    a changed point are computed anew: the numbers stay the same.

    Args:
        gravity: factor of cos(3x) in the change of velocity.
        goal: position from which on an episode ends with success.
    """

    def __init__(self, gravity: float, goal: float) -> None:
        self._gravity, self._goal = gravity, goal
        self._last: list[tuple[np.ndarray, _Moves]] = []

    def moves(self, pushes: np.ndarray) -> _Moves:
        """The moves of one response.

        Args:
            pushes: its acceleration; shape `(points,)`.
        """
        changes = [pushes != old for old, _ in self._last]
        counts = [int(np.count_nonzero(changed)) for changed in changes]
        if not counts:
            moves = self._drive(pushes, _ALL)
        else:
            place = counts.index(min(counts))
            moves = self._last[place][1]
            if counts[place]:
                nodes = np.flatnonzero(changes[place][moves.points].any(axis=1))
                mended = _Moves(*map(np.copy, moves))
                for whole, part in zip(mended, self._drive(pushes, nodes), strict=True):
                    whole[nodes] = part
                moves = mended
            else:
                del self._last[place]
        self._last = [(pushes, moves), *self._last[: _KEPT - 1]]
        return moves

    def _drive(self, pushes: np.ndarray, nodes: np.ndarray) -> _Moves:
        """Hold the action from these nodes."""
        x, v, hill, point = _GRID_X[nodes], _GRID_V[nodes], _GRID_HILL[nodes], _GRID_POINT[nodes]
        points = np.empty((len(nodes), HOLD), dtype=np.intp)
        paid, over = np.zeros(len(nodes)), np.zeros(len(nodes), dtype=bool)
        for held in range(1, HOLD + 1):
            if held > 1:
                point, hill = ((x - _LEFT) / _FINE + 0.5).astype(np.intp), np.cos(3 * x)
            points[:, held - 1] = point
            v += pushes[point]
            v += self._gravity * hill
            np.clip(v, -SPEED_LIMIT, SPEED_LIMIT, out=v)
            x += v
            np.clip(x, _LEFT, _RIGHT, out=x)
            v[(x <= _LEFT) & (v < 0)] = 0.0
            arrived = (x >= self._goal) & (v >= 0) & ~over
            paid[arrived] = DISCOUNT**held
            over |= arrived
        return _Moves(points, *_interpolation(x, v, np.where(over, 0.0, DISCOUNT**HOLD)), paid)


@lru_cache(maxsize=8)
def _held_moves(gravity: float, goal: float) -> _HeldMoves:
    return _HeldMoves(gravity, goal)


def _interpolation(x: np.ndarray, v: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nodes around these states, and how much the value of each counts, bilinear and scaled; both `(len(x), 4)`."""
    fx, fv = (x - _LEFT) / _WIDTH, (v + SPEED_LIMIT) / _HEIGHT
    i = np.minimum(fx.astype(np.int32), PLACES - 2)
    j = np.minimum(fv.astype(np.int32), VELOCITIES - 2)
    fx, fv = fx - i, fv - j
    shares = np.stack([(1 - fx) * (1 - fv), (1 - fx) * fv, fx * (1 - fv), fx * fv], axis=1)
    return (i * VELOCITIES + j)[:, None] + _CORNERS, shares * scale[:, None]

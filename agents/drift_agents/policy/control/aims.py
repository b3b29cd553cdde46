"""What is aimed at in each world: declared heuristics, which the task's text states in words.

* `ControlAim`, `Worth` - what a plan is worth
* `Prospect` - what that is made from
* `AIMS`, `find_aim` - the aims, by the fields of the state
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.matching.smooth import fit_smooth, wrap
from drift_agents.policy.control.model import ControlRecords, Floats

Worth = Callable[[Floats, NDArray[np.intp]], Floats]
"""What states are worth after actions, given by their numbers; shapes `(cases, fields)`, `(cases,)`, `(cases,)`."""


class Prospect(NamedTuple):
    """What an aim is made from.

    Args:
        evidence: the records.
        torques: the numbers of the actions; shape `(actions, numbers)`.
        pay: what a step near the present state adds to the score, by the model.
    """

    evidence: ControlRecords
    torques: Floats
    pay: float


class ControlAim(NamedTuple):
    """What a plan is worth.

    Args:
        field: a field by which the world is recognised.
        steps: the steps that are planned ahead.
        make: makes the function of what states are worth.
        limits: columns with the size beyond which an episode ends.
        is_goal: whether a plan is worth its best state, instead of the sum over its states.
    """

    field: str
    steps: int
    make: Callable[[Prospect], Worth]
    limits: tuple[tuple[int, float], ...] = ()
    is_goal: bool = False


def _balance(limits: tuple[tuple[int, float], ...]) -> Callable[[Prospect], Worth]:
    """Each step is worth what steps pay, less the nearer the limits are; so costs make the limits worth reaching."""
    columns, sizes = [column for column, _ in limits], np.array([size for _, size in limits])

    def make(prospect: Prospect) -> Worth:
        def worth(states: Floats, actions: NDArray[np.intp]) -> Floats:
            near = np.square(states[:, columns] / sizes).sum(axis=1)
            left: Floats = prospect.pay * (1.0 - 0.4 * near)
            return left

        return worth

    return make


def _height(prospect: Prospect) -> Worth:
    """The height of the tip of two links of length 1; above 1 is the goal."""

    def worth(states: Floats, actions: NDArray[np.intp]) -> Floats:
        height: Floats = -np.cos(states[:, 0]) - np.cos(states[:, 0] + states[:, 1])
        return np.where(height > 1.0, 10.0, height)

    return worth


def _pendulum_terms(states: Floats, torques: Floats) -> Floats:
    angle = wrap(states[:, 0])
    return np.stack([np.ones(len(states)), angle**2, states[:, 1] ** 2, torques**2], axis=1)


def _cost(prospect: Prospect) -> Worth:
    """What steps pay, fitted to the squares of angle, velocity and torque."""
    evidence, torques, _ = prospect
    terms = _pendulum_terms(evidence.states, torques[evidence.actions, 0])
    found = fit_smooth(terms, evidence.changes[:, -1:] * 1000, evidence.support)[:, 0]

    def worth(states: Floats, actions: NDArray[np.intp]) -> Floats:
        paid: Floats = _pendulum_terms(states, torques[actions, 0]) @ found
        return paid

    return worth


def _tip(states: Floats) -> Floats:
    one, both = states[:, 0], states[:, 0] + states[:, 1]
    return np.stack([0.1 * np.cos(one) + 0.11 * np.cos(both), 0.1 * np.sin(one) + 0.11 * np.sin(both)], axis=1)


def _distance(prospect: Prospect) -> Worth:
    """The distance of the tip from the point that pays.

    It is as far from the origin as the target; the angle between them is fitted to what steps paid.
    """
    evidence, torques, _ = prospect
    targets, tips = evidence.states[:, 2:4], _tip(evidence.states + evidence.changes[:, :-1])
    turns = np.linspace(-math.pi, math.pi, 16, endpoint=False)
    paid, costs = evidence.changes[:, -1] * 50 - 1, np.square(torques[evidence.actions]).sum(axis=1)
    misfits = [np.abs(paid + costs + _gap(tips, targets, turn)).mean() for turn in turns]
    turn = float(turns[int(np.argmin(misfits))])

    def worth(states: Floats, actions: NDArray[np.intp]) -> Floats:
        efforts: Floats = np.square(torques[actions]).sum(axis=1)
        return -_gap(_tip(states), states[:, 2:4], turn) - efforts

    return worth


def _gap(tips: Floats, targets: Floats, turn: float) -> Floats:
    cosine, sine = math.cos(turn), math.sin(turn)
    points = targets @ np.array([[cosine, sine], [-sine, cosine]])
    distance: Floats = np.linalg.norm(tips - points, axis=1)
    return distance


_CART = ((0, 2.4), (2, 0.2095))
_SLIDER = ((0, 1.0), (1, 0.2))
AIMS = (
    ControlAim("cart_position", 25, _balance(_CART), _CART),
    ControlAim("slider_position", 8, _balance(_SLIDER), _SLIDER),
    ControlAim("angle_1", 15, _height, is_goal=True),
    ControlAim("angle", 35, _cost),
    ControlAim("joint_1", 10, _distance),
)


def find_aim(names: tuple[str, ...]) -> ControlAim | None:
    """The aim in the world with these fields; `None` if there is none.

    Args:
        names: the fields of a state.
    """
    return next((aim for aim in AIMS if aim.field in names), None)

"""Smooth models of how numbers change in a step, for worlds whose state is a list of numbers.

* `FieldState` - a state as numbers, parsed from its JSON text
* `read_field_state` - from the text to that
* `FieldWorld`, `FIELD_WORLDS`, `find_field_world` - the declared fields of each world: widths of cells, and angles
* `expand` - the features of states: the numbers, sine and cosine of angles, and products of pairs
* `difference`, `wrap` - changes, of angles the short way round
* `fit_smooth` - ridge regression of changes on features
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.errors import ArgumentError

SCORE = "score"
"""The field of a state with the score so far."""

RIDGE = 1e-4
"""The weight of the penalty on squared coefficients."""


class FieldWorld(NamedTuple):
    """The declared fields of a world.

    Args:
        widths: the width of a cell, by field.
        angles: the fields that are angles from -pi to pi, which may turn all the way round.
        contacts: whether limbs hit the ground, so that changes are not smooth in a state.
    """

    widths: Mapping[str, float]
    angles: tuple[str, ...] = ()
    contacts: bool = False


def _declare(angles: tuple[str, ...] = (), **widths: float) -> FieldWorld:
    return FieldWorld(MappingProxyType(widths), angles)


def _declare_runner(*limbs: str, **widths: float) -> FieldWorld:
    """A runner: fields without a width make no cells and are not compared."""
    parts = ("pitch", *limbs)
    fields = ("height", *parts, "velocity_x", "velocity_z", *(f"velocity_{part}" for part in parts))
    return FieldWorld(MappingProxyType({**dict.fromkeys(fields, math.inf), **widths}), contacts=True)


FIELD_WORLDS = (
    _declare(cart_position=0.8, cart_velocity=1.0, pole_angle=0.1, pole_velocity=1.0),
    _declare(("angle_1", "angle_2"), angle_1=0.8, angle_2=0.8, velocity_1=2.0, velocity_2=4.0),
    _declare(("angle",), angle=0.5, angular_velocity=2.0),
    _declare(slider_position=0.3, pole_angle=0.1, slider_velocity=1.0, pole_velocity=2.0),
    _declare(
        ("joint_1", "joint_2"),
        joint_1=0.5,
        joint_2=0.5,
        target_x=0.1,
        target_y=0.1,
        joint_velocity_1=10.0,
        joint_velocity_2=10.0,
    ),
    _declare_runner("thigh", "leg", "foot", velocity_x=2.0, velocity_thigh=10.0, velocity_leg=10.0),
    _declare_runner(
        *("back_thigh", "back_shin", "back_foot", "front_thigh", "front_shin", "front_foot"),
        velocity_back_thigh=70.0,
        velocity_front_thigh=80.0,
    ),
)
"""CartPole, Acrobot, Pendulum, InvertedPendulum, Reacher, Hopper, HalfCheetah; other lists are compared as texts.

Of the runners' numbers those without a width (infinity) make no cells and are not compared: with all of them no state
would come back, and where a foot hits the ground its velocity jumps by more than its torque changes it.
"""


@lru_cache(maxsize=64)
def find_field_world(names: tuple[str, ...]) -> FieldWorld | None:
    """The declared world with these fields; `None` if there is none.

    Args:
        names: the fields of a state, in their order, without the score.
    """
    return next((world for world in FIELD_WORLDS if tuple(sorted(world.widths)) == tuple(sorted(names))), None)


class FieldState(NamedTuple):
    """A state as numbers.

    Args:
        names: the fields, without the score.
        numbers: their values.
        score: the score so far.
    """

    names: tuple[str, ...]
    numbers: tuple[float, ...]
    score: float

    @property
    def world(self) -> FieldWorld | None:
        """The declared world, if there is one."""
        return find_field_world(self.names)


@lru_cache(maxsize=1 << 16)
def read_field_state(state: str) -> FieldState:
    """Parse a state.

    Args:
        state: a JSON object of numbers, the last one named `score`.

    Raises:
        ArgumentError: if the text is no such object.

    Example:
        >>> read_field_state('{"angle": 3.0, "angular_velocity": -1.0, "score": 0.01}').numbers
        (3.0, -1.0)
    """
    try:
        data = {str(name): float(number) for name, number in json.loads(state).items()}
        score = data.pop(SCORE)
    except (ValueError, TypeError, KeyError, AttributeError):
        data, score = {}, math.nan
    if not (data and all(map(math.isfinite, (*data.values(), score)))):
        raise ArgumentError(f"the state should be a JSON object of numbers with `score`. Received {state[:80]!r}")
    return FieldState(tuple(data), tuple(data.values()), score)


def wrap(angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same angles from -pi to pi.

    Args:
        angles: in radians.
    """
    wrapped: NDArray[np.float64] = (angles + math.pi) % (2 * math.pi) - math.pi
    return wrapped


def difference(after: NDArray[np.float64], before: NDArray[np.float64], turning: list[int]) -> NDArray[np.float64]:
    """The changes from one array of states to another one.

    Args:
        after: shape `(states, fields)`.
        before: the same shape.
        turning: the columns that are angles.
    """
    change = after - before
    change[:, turning] = wrap(change[:, turning])
    return change


def expand(states: NDArray[np.float64], turning: list[int], *, products: bool = True) -> NDArray[np.float64]:
    """The features of states: 1, the numbers, and the products of two of them; an angle is its sine and cosine.

    Args:
        states: shape `(states, fields)`.
        turning: the columns that are angles.
        products: whether there are products.

    Returns:
        Shape `(states, features)`.

    Example:
        >>> expand(np.array([[2.0, 3.0]]), [])
        array([[1., 2., 3., 4., 6., 9.]])
    """
    plain, count = _plain_columns(states.shape[1], tuple(turning)), states.shape[1] + len(turning)
    first, second = _pairs(count if products else 0)
    # Called at every step of every plan: written into one array, this takes half of the time of concatenations.
    found = np.empty((len(states), 1 + count + len(first)))
    found[:, 0] = 1.0
    base = found[:, 1 : 1 + count]
    base[:, : len(plain)] = states[:, plain]
    if turning:
        angles = states[:, turning]
        base[:, len(plain) : states.shape[1]] = np.sin(angles)
        base[:, states.shape[1] :] = np.cos(angles)
    np.multiply(base[:, first], base[:, second], out=found[:, 1 + count :])
    return found


@lru_cache(maxsize=16)
def _plain_columns(count: int, turning: tuple[int, ...]) -> list[int]:
    return [column for column in range(count) if column not in turning]


@lru_cache(maxsize=16)
def _pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    first, second = np.triu_indices(count)
    return first, second


def fit_smooth(
    features: NDArray[np.float64], targets: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Ridge regression.

    Args:
        features: shape `(cases, features)`.
        targets: shape `(cases, outputs)`.
        weights: of the cases; all 1 if not given.

    Returns:
        The coefficients, shape `(features, outputs)`.
    """
    weighed = features if weights is None else features * weights[:, None]
    penalty = RIDGE * np.eye(features.shape[1])
    return np.asarray(np.linalg.solve(weighed.T @ features + penalty, weighed.T @ targets), np.float64)

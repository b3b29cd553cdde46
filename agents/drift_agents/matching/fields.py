"""The matching rule of classic control and MuJoCo: the car's, with declared widths of cells.

* `FieldGrid` - cells of all fields; changes are compared without their smooth part
* `SmoothParts` - what is fitted to the newest steps
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.checks import check_integer, check_number
from drift_agents.envs.mountain_car.matching import cell_of
from drift_agents.errors import ArgumentError
from drift_agents.matching.base import Exact
from drift_agents.matching.smooth import FieldState, FieldWorld, difference, expand, fit_smooth, read_field_state
from drift_agents.types import Experience, Transition

REFIT = 20
"""The steps between two fits of the smooth part."""


class SmoothParts(NamedTuple):
    """What is fitted to the newest steps.

    Args:
        changes: coefficients of the changes; shape `(features, fields)`.
        paid: of what a step adds to the score; shape `(features, 1)`.
        tolerated: the tolerated differences of the rests; shape `(fields + 1,)`.
    """

    changes: NDArray[np.float64]
    paid: NDArray[np.float64]
    tolerated: NDArray[np.float64]


class FieldGrid:
    """Cells of declared widths; outcomes are compared without the smooth part of the changes.

    States are the same when every field is in the same cell. Within a cell, changes differ by where in the cell the
    states are; so their smooth part, a quadratic function of the fields (`smooth.expand`; linear for runners, whose
    products are too many for a window) and a constant for each action, is fitted to the newest `window` steps and
    subtracted. The constants cancel, since outcomes of equal actions alone are compared. With fewer than `minimum`
    steps all outcomes are the same.

    Two outcomes are the same when the rest of each field's change agrees within `tolerance` widths, and the rest of
    what the step added to the score within `tolerance` of the largest addition in the window. Whether an episode ended
    is not compared, as it follows from the state. States of other fields than the declared ones are compared as texts.

    Args:
        widths: the width of a cell, by field; those of `smooth.FIELD_WORLDS` for fields that are not given.
        tolerance: the tolerated difference, in widths; positive.
        reach: records of cells that are farther away in one of the fields, in widths, are not related; positive.
        minimum: the number of steps before outcomes may differ; at least 2.
        window: the number of newest steps that are fitted; at least `minimum`.

    Raises:
        ArgumentError: if an argument breaks its rule.

    Example:
        >>> rule = FieldGrid(widths={"angle": 1.0})
        >>> rule.state_key('{"angle": 2.5, "angular_velocity": -1.0, "score": 0.1}')
        (2, -1)
    """

    name = "fields"

    def __init__(
        self,
        *,
        widths: Mapping[str, float] | None = None,
        tolerance: float = 0.1,
        reach: float = 2.0,
        minimum: int = 60,
        window: int = 400,
    ) -> None:
        if widths is not None and not isinstance(widths, Mapping):
            raise ArgumentError(f"`widths` should map fields to widths. Received {widths!r}")
        self.widths = {
            str(field): check_number(f"widths.{field}", width, "(0, inf)") for field, width in (widths or {}).items()
        }
        self.tolerance = check_number("tolerance", tolerance, "(0, inf)")
        self.reach = check_number("reach", reach, "(0, inf)")
        check_integer("window", window, check_integer("minimum", minimum, 2))
        self.minimum, self.window = minimum, window
        self._steps: deque[tuple[FieldState, str, FieldState]] = deque(maxlen=window)
        self._fit: SmoothParts | None = None
        self._learned = 0
        self._plain = Exact()
        self._keys: dict[str, Hashable] = {}
        self._rests: dict[tuple[str, str], NDArray[np.float64]] = {}

    def state_key(self, state: str) -> Hashable:
        """The cell, counted from zero in every field.

        Raises:
            ArgumentError: if the text is no JSON object of numbers with `score`.
        """
        key = self._keys.get(state)
        if key is None:
            shown = read_field_state(state)
            key = state if shown.world is None else cell_of(shown.numbers, self._widths(shown))
            if len(self._keys) > 1 << 16:
                self._keys.clear()
            self._keys[state] = key
        return key

    def related(self, state: str, other: str) -> bool:
        """Whether the cells of both are within `reach` of each other in every field; angles go round."""
        here, there = self.state_key(state), self.state_key(other)
        if not (isinstance(here, tuple) and isinstance(there, tuple)):
            return True
        return all(
            min(gap := abs(one - two), round_ - gap) <= self.reach
            for one, two, round_ in zip(here, there, self._rounds(read_field_state(state)), strict=True)
        )

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether both are the same response."""
        before = read_field_state(a.state)
        if before.world is None:
            return self._plain.same_outcome(a, b)
        if self._fit is None:
            return True
        gap = np.abs(self._rest(a, self._fit) - self._rest(b, self._fit))
        return bool((gap <= self._fit.tolerated).all())

    def learn(self, experience: Experience) -> None:
        """Add the step to the window; fit the smooth part every `REFIT` steps."""
        before, after = read_field_state(experience.state), read_field_state(experience.outcome.state)
        if before.world is None:
            return
        self._steps.append((before, experience.action, after))
        self._learned += 1
        if len(self._steps) >= self.minimum and self._learned % REFIT == 0:
            self._refit(before.world, before.names)

    def _refit(self, world: FieldWorld, names: tuple[str, ...]) -> None:
        turning = [names.index(angle) for angle in world.angles]
        starts = np.array([before.numbers for before, _, _ in self._steps])
        ends = np.array([after.numbers for _, _, after in self._steps])
        paid = np.array([[after.score - before.score] for before, _, after in self._steps])
        actions = sorted({action for _, action, _ in self._steps})
        own = np.array([[float(action == one) for one in actions] for _, action, _ in self._steps])
        features = [np.concatenate([one, own], axis=1) for one in _features(world, starts, ends, turning)]
        self._fit = SmoothParts(
            fit_smooth(features[0], difference(ends, starts, turning))[: -len(actions)],
            fit_smooth(features[1], paid)[: -len(actions)],
            # The floor is above the rounding of scores.
            self.tolerance * np.array([*self._widths(self._steps[-1][0]), max(float(np.abs(paid).max()), 1e-4)]),
        )
        self._rests.clear()

    def _rest(self, transition: Transition, fit: SmoothParts) -> NDArray[np.float64]:
        """The change of every field and of the score, without the smooth part."""
        pair = transition.state, transition.outcome.state
        rest = self._rests.get(pair)
        if rest is None:
            before, after = map(read_field_state, pair)
            world = before.world or FieldWorld({})
            turning = [before.names.index(angle) for angle in world.angles]
            starts, ends = np.array([before.numbers]), np.array([after.numbers])
            smooth, smooth_paid = _features(world, starts, ends, turning)
            change = difference(ends, starts, turning) - smooth @ fit.changes
            paid = after.score - before.score - smooth_paid @ fit.paid
            rest = np.append(change, paid)
            self._rests[pair] = rest
        return rest

    def _widths(self, shown: FieldState) -> tuple[float, ...]:
        world = shown.world
        declared = {} if world is None else world.widths
        return tuple(self.widths.get(name, declared[name]) for name in shown.names)

    def _rounds(self, shown: FieldState) -> Iterable[float]:
        """The cells of a whole turn, by field; infinite for what is no angle."""
        angles = () if shown.world is None else shown.world.angles
        return (
            2 * math.pi / width if name in angles else math.inf
            for name, width in zip(shown.names, self._widths(shown), strict=True)
        )


def _features(
    world: FieldWorld, starts: NDArray[np.float64], ends: NDArray[np.float64], turning: list[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What changes follow from, and what steps pay.

    Where limbs hit the ground, the products of many fields would need more steps than a window has, and what a step
    pays depends on the hit, which the state after shows.
    """
    smooth = expand(starts, turning, products=not world.contacts)
    return smooth, np.concatenate([smooth, ends], axis=1) if world.contacts else smooth

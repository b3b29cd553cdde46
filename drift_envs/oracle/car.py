"""The mountain cars' oracle.

* `CarOracle` - answers, best known actions and measured values at any tick
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from drift_envs.errors import ArgumentError
from drift_envs.oracle.base import ChangeEffect, DriftingWorld, Response
from drift_envs.oracle.car_physics import CarSetting, car_magnitude, drive_one
from drift_envs.oracle.car_plan import carried_success, replayed_success, solve_car

CLOSE = 5e-6
"""States closer than this are the same: the text world writes six decimals, and each step adds a rounding."""


class CarOracle:
    """Answers about a mountain car that drifts, cached by knob values.

    A state is the observed array, or the text world's JSON (`position`, `velocity`). An action is
    that of the environment: 0, 1 or 2, for the continuous car an array of one force; or its text.

    The best known policy reaches the flag within the step limit in the measured share of episodes
    that `value` gives; see `drift_envs.oracle.car_plan` for how it is found.

    Args:
        world: where the knobs at any tick come from.
        limit: how many steps an episode may have.
        goal_velocity: the least velocity with which the flag counts as reached.

    Example:
        >>> from drift_envs.envs.mountain_car import MOUNTAIN_CAR_KNOBS
        >>> from drift_envs.oracle.base import PlannedWorld
        >>> from drift_envs.schedule import Schedule, Timeline
        >>> schedule = Schedule(version=1, name="doc", drifts=[{"at": 20, "set": {"force": -0.001}}])
        >>> timeline = Timeline(schedule, MOUNTAIN_CAR_KNOBS, seed=0)
        >>> oracle = CarOracle(PlannedWorld(timeline, MOUNTAIN_CAR_KNOBS), limit=300)
        >>> oracle.value(0), oracle.effect(0, 20).loss
        (1.0, 1.0)
        >>> rolling_right = '{"position": -0.500000, "velocity": 0.010000}'
        >>> oracle.action(rolling_right, 0), oracle.action(rolling_right, 20)
        (2, 0)
        >>> oracle.changed(rolling_right, "2", 0, 20), oracle.changed(rolling_right, "1", 0, 20)
        (True, False)
    """

    def __init__(self, world: DriftingWorld, limit: int = 300, goal_velocity: float = 0.0) -> None:
        if limit < 1:
            raise ArgumentError(f"`limit` should be at least 1. Received {limit!r}")
        self._world = world
        self._limit = limit
        self._goal_velocity = float(goal_velocity)

    def setting(self, tick: int) -> CarSetting:
        """The knob values at a tick."""
        return CarSetting.of(self._world.knobs_at(tick), self._goal_velocity)

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the car answers this action differently at the two ticks.

        Args:
            state: the observed array, or the JSON text.
            action: the action, or its text.
            t0: one tick.
            t1: the other tick.
        """
        before, after = self.setting(t0), self.setting(t1)
        if before == after:
            return False
        if before.transient != after.transient:
            return True
        where = _read_state(state)
        ours = _answers(before, where, _read_push(before, action))
        theirs = _answers(after, where, _read_push(after, action))
        return any(not _same(a, b) or a[3] != b[3] for a, b in zip(ours, theirs, strict=True))

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """Everything that the car can answer, most probable first.

        Of the continuous car's false answers, which may be anything between two pushes, none is
        listed; the probability of the true one says how often they come.

        Args:
            state: the observed array, or the JSON text.
            action: the action, or its text.
            tick: the tick.
        """
        setting = self.setting(tick)
        answers = _answers(setting, _read_state(state), _read_push(setting, action))
        ordered = sorted(answers, key=lambda answer: (-answer[3], answer[:2]))
        return tuple(
            Response(f'{{"position": {position:.6f}, "velocity": {velocity:.6f}}}', float(there), there, probability)
            for position, velocity, there, probability in ordered
        )

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int) -> bool:
        """Whether the car could truly answer this; the lies of `transient` do not hold.

        Args:
            state: the observed array, or the JSON text.
            action: the action, or its text.
            outcome: the next state as JSON text.
            ended: whether the episode was over.
            tick: the tick.
        """
        setting = self.setting(tick)._replace(transient=0.0)
        claimed = _read_state(outcome)
        ((position, velocity, there, _),) = _answers(setting, _read_state(state), _read_push(setting, action))
        close = math.dist((position, velocity), claimed) <= 2 * CLOSE
        return close and (there == ended or abs(position - setting.goal_position) <= CLOSE)

    def action(self, state: Any, tick: int, left: int | None = None) -> Any:
        """The best known action.

        Args:
            state: the observed array, or the JSON text.
            tick: the tick.
            left: steps left in this episode; the best known policy does not depend on them.

        Returns:
            0, 1 or 2; for the continuous car an array of shape `(1,)`.
        """
        setting = self.setting(tick)
        position, velocity = _read_state(state)
        push = solve_car(setting, self._limit).push_one(position, velocity)
        return np.array([push], dtype=np.float32) if setting.continuous else round(push) + 1

    def value(self, tick: int) -> float:
        """The measured share of episodes in which the best known policy reaches the flag.

        Args:
            tick: the tick.
        """
        return solve_car(self.setting(tick), self._limit).success

    def effect(self, t0: int, t1: int) -> ChangeEffect:
        """What the change from tick `t0` to tick `t1` does.

        Args:
            t0: a tick before the drift.
            t1: a tick after it.
        """
        old, new = self.setting(t0), self.setting(t1)
        return ChangeEffect(
            magnitude=car_magnitude(old, new),
            before=solve_car(old, self._limit).success,
            carried=carried_success(old, new, self._limit),
            after=solve_car(new, self._limit).success,
            replayed=replayed_success(old, new, self._limit),
        )


Answer = tuple[float, float, bool, float]
"""Position, velocity, whether the flag is reached, probability."""


def _answers(setting: CarSetting, state: tuple[float, float], push: float) -> list[Answer]:
    """What the car can answer, in the order of position and velocity."""
    pushes = [(push, 1.0 - setting.transient)]
    if setting.transient and not setting.continuous:
        pushes += [(other, setting.transient / 2) for other in (-1.0, 0.0, 1.0) if other != push]
    answers = []
    for each, probability in pushes:
        answers.append((*drive_one(setting, *state, each), probability))
    return sorted(answers)


def _same(one: Answer, other: Answer) -> bool:
    return math.dist(one[:2], other[:2]) <= 1e-7 and one[2] == other[2]


def _read_state(state: Any) -> tuple[float, float]:
    """Position and velocity of a state."""
    try:
        if isinstance(state, str):
            fields = json.loads(state)
            position, velocity = float(fields["position"]), float(fields["velocity"])
        else:
            position, velocity = (float(part) for part in state)
    except (ValueError, TypeError, KeyError):
        position = velocity = math.nan
    if not (math.isfinite(position) and math.isfinite(velocity)):
        raise ArgumentError(
            f"`state` should be position and velocity, or a JSON text of `position` and `velocity`. Received {state!r}"
        )
    return position, velocity


def _read_push(setting: CarSetting, action: Any) -> float:
    """The push that an action stands for."""
    try:
        value = json.loads(action) if isinstance(action, str) else action
        if isinstance(value, (Sequence, np.ndarray)):
            (value,) = value
        push = float(value)
    except (ValueError, TypeError):
        push = math.nan
    if setting.continuous:
        if not math.isfinite(push):
            raise ArgumentError(f"`action` should be one finite force. Received {action!r}")
        return min(max(push, -1.0), 1.0)
    if push not in (0.0, 1.0, 2.0):
        raise ArgumentError(f"`action` should be one of 0, 1, 2. Received {action!r}")
    return push - 1.0

"""The oracle of the mountain cars: responses, actions and values at any tick."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from drift_envs.envs.mountain_car.dynamics import (
    CarSetting,
    car_magnitude,
    carried_success,
    drive_one,
    replayed_success,
    solve_car,
)
from drift_envs.errors import ArgumentError
from drift_envs.oracle.base import KnobSource, PlanningOracle, Response
from drift_envs.wrappers.text import write_fields

CLOSE = 5e-6
"""States closer than this are equal: the text environment writes six decimals, and each step adds one rounding."""


class CarOracle(PlanningOracle[CarSetting]):
    """Responses, actions and values of a drifting mountain car.

    A state is an observation, or the text environment's JSON (`position`, `velocity`). An action is that of
    the environment (0, 1 or 2; an array of one force for the continuous car), or its text.

    `value` is measured: the share of episodes in which the best known policy reaches the flag within
    the step limit; `drift_envs.envs.mountain_car.dynamics` describes how the policy is computed. Responses and
    values are those of an engine that is not dead (`poison_after`).

    Args:
        source: the knobs at any tick.
        limit: the step limit of an episode, at least 1.
        goal_velocity: minimum velocity at the flag for the episode to terminate.

    Example:
        >>> from drift_envs.envs.mountain_car.env import MOUNTAIN_CAR_KNOBS
        >>> from drift_envs.oracle.base import PlannedKnobs
        >>> from drift_envs.schedule import Schedule, Timeline
        >>> schedule = Schedule(version=1, name="doc", drifts=[{"at": 20, "set": {"force": -0.001}}])
        >>> timeline = Timeline(schedule, MOUNTAIN_CAR_KNOBS, seed=0)
        >>> oracle = CarOracle(PlannedKnobs(timeline, MOUNTAIN_CAR_KNOBS), limit=300)
        >>> oracle.value(0), oracle.effect(0, 20).loss
        (1.0, 1.0)
        >>> rolling_right = '{"position": -0.500000, "velocity": 0.010000}'
        >>> oracle.action(rolling_right, 0), oracle.action(rolling_right, 20)
        (2, 0)
        >>> oracle.changed(rolling_right, "2", 0, 20), oracle.changed(rolling_right, "1", 0, 20)
        (True, False)
    """

    def __init__(self, source: KnobSource, limit: int = 300, goal_velocity: float = 0.0) -> None:
        super().__init__(source, limit)
        self._goal_velocity = float(goal_velocity)

    def setting(self, tick: int) -> CarSetting:
        """The knob values at a tick."""
        return CarSetting.of(self._source.knobs_at(tick), self._goal_velocity)

    def _optimum(self, setting: CarSetting) -> float:
        """The measured share of episodes in which the best known policy reaches the flag."""
        return solve_car(setting, self._limit).success

    def _magnitude(self, old: CarSetting, new: CarSetting) -> float:
        return car_magnitude(old, new)

    def _carried(self, old: CarSetting, new: CarSetting) -> float:
        return carried_success(old, new, self._limit)

    def _replayed(self, old: CarSetting, new: CarSetting) -> float:
        return replayed_success(old, new, self._limit)

    def _differ(self, old: CarSetting, new: CarSetting, state: Any, action: Any) -> bool:
        if old.transient != new.transient:
            return True
        here = _read_state(state)
        before = _responses(old, here, _read_push(old, action))
        after = _responses(new, here, _read_push(new, action))
        return any(
            math.dist(a[:2], b[:2]) > 1e-7 or a.at_goal != b.at_goal or a.probability != b.probability
            for a, b in zip(before, after, strict=True)
        )

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """All possible responses, most probable first.

        The false responses of the continuous car form a continuum and are not listed: the listed
        probabilities then sum to 1 - `transient`.

        Args:
            state: an observation, or the JSON text.
            action: the action, or its text.
            tick: the tick.
        """
        setting = self.setting(tick)
        responses = _responses(setting, _read_state(state), _read_push(setting, action))
        ordered = sorted(responses, key=lambda response: (-response.probability, response[:2]))
        return tuple(
            Response(write_fields(("position", "velocity"), moved), float(ended), ended, probability)
            for *moved, ended, probability in ordered
        )

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int, score: float | None = None) -> bool:
        """Whether this outcome is a possible true response; false responses (`transient`) do not hold.

        Args:
            state: an observation, or the JSON text.
            action: the action, or its text.
            outcome: the next state as JSON text.
            ended: whether the episode terminated.
            tick: the tick.
            score: not used, since the next state shows it.
        """
        setting = self.setting(tick)._replace(transient=0.0)
        claimed = _read_state(outcome)
        ((position, velocity, at_goal, _),) = _responses(setting, _read_state(state), _read_push(setting, action))
        is_close = math.dist((position, velocity), claimed) <= 2 * CLOSE
        return is_close and (at_goal == ended or abs(position - setting.goal_position) <= CLOSE)

    def action(self, state: Any, tick: int, left: int | None = None) -> Any:
        """The best known action.

        Args:
            state: an observation, or the JSON text.
            tick: the tick.
            left: steps left in this episode; not used, since the best known policy does not depend on them.

        Returns:
            0, 1 or 2; for the continuous car an array of shape `(1,)`.
        """
        setting = self.setting(tick)
        position, velocity = _read_state(state)
        push = solve_car(setting, self._limit).push_one(position, velocity)
        return np.array([push], dtype=np.float32) if setting.continuous else round(push) + 1


class _CarResponse(NamedTuple):
    position: float
    velocity: float
    at_goal: bool
    probability: float


def _responses(setting: CarSetting, state: tuple[float, float], push: float) -> list[_CarResponse]:
    """All possible responses, ordered by position and velocity."""
    pushes = [(push, 1.0 - setting.transient)]
    if setting.transient and not setting.continuous:
        pushes += [(other, setting.transient / 2) for other in (-1.0, 0.0, 1.0) if other != push]
    return sorted(_CarResponse(*drive_one(setting, *state, each), probability) for each, probability in pushes)


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


def make_oracle(source: KnobSource, begin: Callable[[], Any], limit: int) -> CarOracle:
    """The oracle of a drifting environment.

    Args:
        source: the knobs at any tick.
        begin: returns the innermost environment.
        limit: the step limit of an episode.
    """
    return CarOracle(source, limit, begin().goal_velocity)

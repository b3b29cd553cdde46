"""The frozen lake's oracle.

* `LakeOracle` - exact answers, best actions and values at any tick
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from drift_envs.errors import ArgumentError
from drift_envs.oracle.base import ChangeEffect, DriftingWorld, Response
from drift_envs.oracle.lake_plan import (
    LakeAnswer,
    LakeSetting,
    Place,
    carried_value,
    lake_answers,
    lake_magnitude,
    solve_lake,
)

SAME_SCORE = 1e-5
"""Scores closer than this are equal: the text world writes six digits."""


class LakeOracle:
    """Exact answers about a frozen lake that drifts, cached by knob values.

    A state is the observed number, or the text world's JSON (`cur_pos`, `tile_type`,
    `gold_collected`). Each answer takes the knobs of the tick that is asked for.

    Args:
        world: where the knobs at any tick come from.
        limit: how many steps an episode may have.
        reward_schedule: rewards of goal, hole and plain ice.

    Example:
        >>> from drift_envs.envs.frozen_lake.knobs import FROZEN_LAKE_KNOBS
        >>> from drift_envs.oracle.base import PlannedWorld
        >>> from drift_envs.schedule import Schedule, Timeline
        >>> lake = ["SFFF", "FFFG", "FFFF", "FFFG"]
        >>> drift = {"at": 20, "set": {"goal_rewards": {"1,3": 0.5, "3,3": 1.0}}}
        >>> schedule = Schedule(version=1, name="doc", base={"map": lake, "goal_rewards": {"3,3": 0.5}}, drifts=[drift])
        >>> timeline = Timeline(schedule, FROZEN_LAKE_KNOBS, seed=0)
        >>> oracle = LakeOracle(PlannedWorld(timeline, FROZEN_LAKE_KNOBS), limit=100)
        >>> oracle.value(0), oracle.effect(0, 20).loss
        (1.0, 0.5)
        >>> beside_goal = '{"cur_pos": [1, 2], "tile_type": "F", "gold_collected": 0.0}'
        >>> oracle.action(beside_goal, 0), oracle.action(beside_goal, 20)
        (2, 1)
        >>> oracle.changed(beside_goal, 2, 0, 20), oracle.changed(beside_goal, 1, 0, 20)
        (True, False)
    """

    def __init__(
        self, world: DriftingWorld, limit: int = 100, reward_schedule: Sequence[float] = (1.0, 0.0, 0.0)
    ) -> None:
        if limit < 1:
            raise ArgumentError(f"`limit` should be at least 1. Received {limit!r}")
        self._world = world
        self._limit = limit
        self._reward_schedule = tuple(reward_schedule)

    def setting(self, tick: int) -> LakeSetting:
        """The knob values at a tick."""
        return LakeSetting.of(self._world.knobs_at(tick), self._reward_schedule)

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the lake answers this action differently at the two ticks.

        Args:
            state: the observed number (as of `t0`), or the JSON text.
            action: 0 to 3, as number or text.
            t0: one tick.
            t1: the other tick.
        """
        before, after = self.setting(t0), self.setting(t1)
        if before == after:
            return False
        place, _ = _read_state(state, before.columns)
        move = _read_action(action)
        return _answers(before, place, move) != _answers(after, place, move)

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """Everything that the lake can answer, most probable first; nothing where it has no such tile.

        Args:
            state: the observed number, or the JSON text, whose gold is carried on.
            action: 0 to 3, as number or text.
            tick: the tick.
        """
        setting = self.setting(tick)
        place, gold = _read_state(state, setting.columns)
        answers = _answers(setting, place, _read_action(action))
        ordered = sorted(answers.items(), key=lambda item: (-item[1], item[0]))
        return tuple(
            Response(_write_state(answer, gold), gold + answer.reward, answer.ended, probability)
            for answer, probability in ordered
        )

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int) -> bool:
        """Whether the lake could truly answer this; the lies of `transient` do not hold.

        Args:
            state: the observed number, or the JSON text.
            action: 0 to 3, as number or text.
            outcome: the next state as JSON text.
            ended: whether the episode was over.
            tick: the tick.
        """
        setting = self.setting(tick)._replace(transient=0.0)
        place, gold = _read_state(state, setting.columns)
        claimed = _parse(outcome)
        return any(
            answer.ended == ended
            and list(answer.place) == claimed["cur_pos"]
            and answer.tile == claimed["tile_type"]
            and math.isclose(gold + answer.reward, claimed["gold_collected"], rel_tol=SAME_SCORE, abs_tol=SAME_SCORE)
            for answer in _answers(setting, place, _read_action(action))
        )

    def action(self, state: Any, tick: int, left: int | None = None) -> int:
        """The best move; of several the first in the order left, down, right, up.

        Args:
            state: the observed number, or the JSON text.
            tick: the tick.
            left: steps left in this episode; all of them by default.

        Raises:
            ArgumentError: if the lake has no such tile.
        """
        setting = self.setting(tick)
        (row, column), _ = _read_state(state, setting.columns)
        if not (0 <= row < len(setting.map) and 0 <= column < setting.columns):
            raise ArgumentError(
                f"`state` should lie on the {len(setting.map)} x {setting.columns} map. Received {state!r}"
            )
        plan = solve_lake(setting, self._limit)
        remaining = self._limit if left is None else min(max(left, 0), self._limit)
        return int(np.argmax(plan.best[remaining, row * setting.columns + column]))

    def value(self, tick: int) -> float:
        """The expected score of the best policy from the start within the step limit, exactly.

        Args:
            tick: the tick.
        """
        return solve_lake(self.setting(tick), self._limit).value

    def effect(self, t0: int, t1: int) -> ChangeEffect:
        """What the change from tick `t0` to tick `t1` does.

        Args:
            t0: a tick before the drift.
            t1: a tick after it.
        """
        old, new = self.setting(t0), self.setting(t1)
        return ChangeEffect(
            magnitude=lake_magnitude(old, new),
            before=solve_lake(old, self._limit).value,
            carried=carried_value(old, new, self._limit),
            after=solve_lake(new, self._limit).value,
        )


def _answers(setting: LakeSetting, place: Place, action: int) -> dict[LakeAnswer, float]:
    rows = lake_answers(setting).get(place)
    return {} if rows is None else rows[action]


def _parse(text: str) -> dict[str, Any]:
    """A state text as its fields."""
    try:
        fields = json.loads(text)
        row, column = fields["cur_pos"]
        return {
            "cur_pos": [int(row), int(column)],
            "tile_type": str(fields["tile_type"]),
            "gold_collected": float(fields["gold_collected"]),
        }
    except (ValueError, TypeError, KeyError):
        raise ArgumentError(
            f"`state` should be a JSON text with `cur_pos`, `tile_type` and `gold_collected`. Received {text!r}"
        ) from None


def _read_state(state: Any, columns: int) -> tuple[Place, float]:
    """Place and gold of a state."""
    if isinstance(state, str):
        fields = _parse(state)
        row, column = fields["cur_pos"]
        return (row, column), fields["gold_collected"]
    if isinstance(state, (int, np.integer)) and not isinstance(state, bool):
        return divmod(int(state), columns), 0.0
    raise ArgumentError(f"`state` should be a number or a JSON text. Received {state!r}")


def _read_action(action: Any) -> int:
    try:
        move = int(action)
    except (TypeError, ValueError):
        move = -1
    if not 0 <= move <= 3:
        raise ArgumentError(f"`action` should be one of 0, 1, 2, 3. Received {action!r}")
    return move


def _write_state(answer: LakeAnswer, gold: float) -> str:
    """The state as the text world writes it: whole numbers without a point, others with six digits."""
    row, column = answer.place
    total = gold + answer.reward
    number = str(int(total)) if float(total).is_integer() else f"{total:.6g}"
    return f'{{"cur_pos": [{row}, {column}], "tile_type": "{answer.tile}", "gold_collected": {number}}}'

"""The oracle of the frozen lake.

* `LakeOracle` - exact responses, optimal actions and values at any tick
* `make_oracle` - the same for a drifting environment, as its declaration names it
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from drift_envs.envs.frozen_lake.oracle_plan import (
    LakeResponse,
    LakeSetting,
    Tile,
    carried_value,
    lake_magnitude,
    lake_responses,
    met_share,
    solve_lake,
)
from drift_envs.errors import ArgumentError, NoOracleError
from drift_envs.oracle.base import KnobSource, PlanningOracle, Response

SAME_SCORE = 1e-5
"""Scores closer than this are equal, since the text environment writes six digits."""


class LakeOracle(PlanningOracle[LakeSetting]):
    """Exact responses, actions and values of a drifting frozen lake.

    A state is an observation, or the text environment's JSON (`cur_pos`, `tile_type`, `gold_collected`).

    Responses are those of ice that is not broken (`poison_after`). Without chance a shortest way visits each tile
    once, so values are exact as long as a tile breaks at the second visit at the earliest, and probes count none;
    with chance such a lake is refused.

    Args:
        source: the knobs at any tick.
        limit: the step limit of an episode, at least 1.
        reward_schedule: rewards of goal, hole and frozen tile.

    Example:
        >>> from drift_envs.envs.frozen_lake.knobs import FROZEN_LAKE_KNOBS
        >>> from drift_envs.oracle.base import PlannedKnobs
        >>> from drift_envs.schedule import Schedule, Timeline
        >>> lake = ["SFFF", "FFFG", "FFFF", "FFFG"]
        >>> drift = {"at": 20, "set": {"goal_rewards": {"1,3": 0.5, "3,3": 1.0}}}
        >>> schedule = Schedule(version=1, name="doc", base={"map": lake, "goal_rewards": {"3,3": 0.5}}, drifts=[drift])
        >>> timeline = Timeline(schedule, FROZEN_LAKE_KNOBS, seed=0)
        >>> oracle = LakeOracle(PlannedKnobs(timeline, FROZEN_LAKE_KNOBS), limit=100)
        >>> oracle.value(0), oracle.effect(0, 20).loss
        (1.0, 0.5)
        >>> beside_goal = '{"cur_pos": [1, 2], "tile_type": "F", "gold_collected": 0.0}'
        >>> oracle.action(beside_goal, 0), oracle.action(beside_goal, 20)
        (2, 1)
        >>> oracle.changed(beside_goal, 2, 0, 20), oracle.changed(beside_goal, 1, 0, 20)
        (True, False)
    """

    def __init__(
        self, source: KnobSource, limit: int = 100, reward_schedule: Sequence[float] = (1.0, 0.0, 0.0)
    ) -> None:
        super().__init__(source, limit)
        self._reward_schedule = tuple(reward_schedule)

    def setting(self, tick: int) -> LakeSetting:
        """The knob values at a tick.

        Raises:
            NoOracleError: if places turn bad (`poison_after`) where responses are drawn by chance.
        """
        knobs = self._source.knobs_at(tick)
        if knobs["poison_after"] and (knobs["slip"] or knobs["transient"]):
            raise NoOracleError(
                "no oracle is known for a lake with `poison_after` and chance, where the best way depends on all "
                f"visits. Received slip = {knobs['slip']} and transient = {knobs['transient']}"
            )
        return LakeSetting.of(knobs, self._reward_schedule)

    def _optimum(self, setting: LakeSetting) -> float:
        return solve_lake(setting, self._limit).value

    def _magnitude(self, old: LakeSetting, new: LakeSetting) -> float:
        return lake_magnitude(old, new)

    def _carried(self, old: LakeSetting, new: LakeSetting) -> float:
        return carried_value(old, new, self._limit)

    def _differ(self, old: LakeSetting, new: LakeSetting, state: Any, action: Any) -> bool:
        tile, _ = _read_state(state, old.columns)
        move = _read_action(action)
        return _responses(old, tile, move) != _responses(new, tile, move)

    def visibility(self, t0: int, t1: int) -> float:
        """The share of the ways that are optimal at one tick which meet the change to another, exactly.

        Args:
            t0: a tick before the drift, whose optimal ways are walked.
            t1: a tick after it.
        """
        return met_share(self.setting(t0), self.setting(t1), self._limit)

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """All possible responses, most probable first; empty if the map has no such tile.

        Args:
            state: an observation, or the JSON text, whose `gold_collected` is added to the rewards.
            action: 0 to 3, as number or text.
            tick: the tick.
        """
        setting = self.setting(tick)
        tile, gold = _read_state(state, setting.columns)
        responses = _responses(setting, tile, _read_action(action))
        ordered = sorted(responses.items(), key=lambda item: (-item[1], item[0]))
        return tuple(
            Response(_write_state(response, gold), gold + response.reward, response.ended, probability)
            for response, probability in ordered
        )

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int, score: float | None = None) -> bool:
        """Whether this outcome is a possible true response; false responses (`transient`) do not hold.

        Args:
            state: an observation, or the JSON text.
            action: 0 to 3, as number or text.
            outcome: the next state as JSON text.
            ended: whether the episode terminated.
            tick: the tick.
            score: not used, since the next state shows it.
        """
        setting = self.setting(tick)._replace(transient=0.0)
        tile, gold = _read_state(state, setting.columns)
        claimed = _parse(outcome)
        return any(
            response.ended == ended
            and list(response.tile) == claimed["cur_pos"]
            and response.letter == claimed["tile_type"]
            and math.isclose(gold + response.reward, claimed["gold_collected"], rel_tol=SAME_SCORE, abs_tol=SAME_SCORE)
            for response in _responses(setting, tile, _read_action(action))
        )

    def action(self, state: Any, tick: int, left: int | None = None) -> int:
        """An optimal action; of several the first in the order left, down, right, up.

        Args:
            state: an observation, or the JSON text.
            tick: the tick.
            left: steps left in this episode (default: the step limit).

        Raises:
            ArgumentError: if the map has no such tile.
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


def _responses(setting: LakeSetting, tile: Tile, action: int) -> dict[LakeResponse, float]:
    """The probability of each response; empty if the map has no such tile."""
    rows = lake_responses(setting).get(tile)
    return {} if rows is None else rows[action]


def _parse(text: str) -> dict[str, Any]:
    """The fields of a JSON text."""
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


def _read_state(state: Any, columns: int) -> tuple[Tile, float]:
    """Tile and `gold_collected` of a state."""
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


def _write_state(response: LakeResponse, gold: float) -> str:
    """The JSON text of the text environment: whole numbers without a decimal point, others with six digits."""
    row, column = response.tile
    total = gold + response.reward
    number = str(int(total)) if float(total).is_integer() else f"{total:.6g}"
    return f'{{"cur_pos": [{row}, {column}], "tile_type": "{response.letter}", "gold_collected": {number}}}'


def make_oracle(source: KnobSource, begin: Callable[[], Any], limit: int) -> LakeOracle:
    """The oracle of a drifting environment.

    Args:
        source: the knobs at any tick.
        begin: returns the innermost environment.
        limit: the step limit of an episode.
    """
    return LakeOracle(source, limit, begin().reward_schedule)

"""The oracle of the frozen lake, by exact planning.

A policy is optimal if its expected score within the step limit is highest and, among those, its expected number of
steps is lowest. Without the second rule a detour would be as good as the shortest path, and blocking the shortest path
would lower the value of no policy.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from drift_envs.envs.frozen_lake.dynamics import TIE, Map, Transitions, tiles, transitions
from drift_envs.errors import ArgumentError, NoOracleError
from drift_envs.knobs import FrozenMapping
from drift_envs.oracle.base import KnobSource, PlanningOracle, Response

Tile = tuple[int, int]
"""Row and column."""

PROBABILITY_DIGITS = 12
"""Probabilities that agree in this many digits are equal, since they may be sums in different orders."""


class LakeSetting(NamedTuple):
    """The knob values on which a plan depends.

    Args:
        map: the map.
        slip: probability of not moving as intended.
        goal_rewards: rewards of single goals by `"row,column"`.
        transient: probability of a false response.
        reward_schedule: rewards of goal, hole and frozen tile.
    """

    map: Map
    slip: float = 0.0
    goal_rewards: FrozenMapping = FrozenMapping()
    transient: float = 0.0
    reward_schedule: tuple[float, float, float] = (1.0, 0.0, 0.0)

    @classmethod
    def of(cls, knobs: Mapping[str, Any], reward_schedule: Sequence[float] = (1.0, 0.0, 0.0)) -> LakeSetting:
        """The setting of these knob values."""
        goal, hole, ice = (float(reward) for reward in reward_schedule)
        return cls(knobs["map"], knobs["slip"], knobs["goal_rewards"], knobs["transient"], (goal, hole, ice))

    @property
    def columns(self) -> int:
        """The number of columns of the map."""
        return len(self.map[0])

    @property
    def model(self) -> Transitions:
        """The exact transition arrays."""
        return transitions(
            self.map,
            slip=self.slip,
            goal_rewards=self.goal_rewards,
            transient=self.transient,
            reward_schedule=self.reward_schedule,
        )


class LakeResponse(NamedTuple):
    """One possible response: the next tile, its letter, the reward, and whether the episode terminates."""

    tile: Tile
    letter: str
    reward: float
    ended: bool


@dataclass(frozen=True)
class LakePlan:
    """The optimal policies of a setting.

    Args:
        values: the expected future score, shape `(limit + 1, S)`; row `n` with `n` steps left.
        steps: the expected number of future steps, same shape.
        best: whether an action is optimal, shape `(limit + 1, S, 4)`. Where the future score is 0
            whatever the agent does, all actions are optimal.
        starts: the start states.
    """

    values: np.ndarray
    steps: np.ndarray
    best: np.ndarray
    starts: tuple[int, ...]

    @property
    def value(self) -> float:
        """The expected score, averaged over the start states."""
        return float(self.values[-1, list(self.starts)].mean())


@lru_cache(maxsize=64)
def solve_lake(setting: LakeSetting, limit: int) -> LakePlan:
    """The plan of a setting, by exact backward induction.

    Args:
        setting: the knob values.
        limit: the step limit of an episode.

    Example:
        >>> plan = solve_lake(LakeSetting(("SFF", "FHF", "FFG")), limit=100)
        >>> plan.value, float(plan.steps[100, 0]), plan.best[100, 0].tolist()
        (1.0, 4.0, [False, True, True, False])
    """
    model = setting.model
    states = model.next_state.shape[0]
    values, steps = np.zeros((limit + 1, states)), np.zeros((limit + 1, states))
    best = np.ones((limit + 1, states, 4), dtype=bool)
    paid = (model.probability * model.reward).sum(axis=2)
    on = model.probability * ~model.terminated
    for left in range(1, limit + 1):
        scores = paid + (on * values[left - 1][model.next_state]).sum(axis=2)
        moves = 1.0 + (on * steps[left - 1][model.next_state]).sum(axis=2)
        values[left] = scores.max(axis=1)
        good = scores >= values[left][:, None] - TIE
        moves = np.where(good, moves, np.inf)
        steps[left] = moves.min(axis=1)
        best[left] = good & (moves <= steps[left][:, None] + TIE)
        best[left, np.abs(scores).max(axis=1) <= TIE] = True
    starts = tuple(state for state, letter in enumerate(tiles(setting.map)) if letter == "S")
    for array in (values, steps, best):
        array.flags.writeable = False
    return LakePlan(values, steps, best, starts)


@lru_cache(maxsize=64)
def lake_responses(setting: LakeSetting) -> dict[Tile, tuple[dict[LakeResponse, float], ...]]:
    """The distribution of responses to each tile and action.

    Args:
        setting: the knob values.

    Returns:
        For every tile four dictionaries of probabilities, one for each action.

    Example:
        >>> lake_responses(LakeSetting(("SFG",)))[0, 1][2]
        {LakeResponse(tile=(0, 2), letter='G', reward=1.0, ended=True): 1.0}
    """
    model, letters, columns = setting.model, tiles(setting.map), setting.columns
    responses: dict[Tile, tuple[dict[LakeResponse, float], ...]] = {}
    for state in range(len(letters)):
        rows: list[dict[LakeResponse, float]] = []
        for action in range(4):
            distribution: dict[LakeResponse, float] = {}
            for next_state, probability, reward, ended in zip(
                model.next_state[state, action].tolist(),
                model.probability[state, action].tolist(),
                model.reward[state, action].tolist(),
                model.terminated[state, action].tolist(),
                strict=True,
            ):
                if probability > 0:
                    response = LakeResponse(divmod(next_state, columns), letters[next_state], reward, ended)
                    distribution[response] = distribution.get(response, 0.0) + probability
            rows.append({response: round(p, PROBABILITY_DIGITS) for response, p in distribution.items()})
        responses[divmod(state, columns)] = tuple(rows)
    return responses


@lru_cache(maxsize=256)
def carried_value(old: LakeSetting, new: LakeSetting, limit: int) -> float:
    """The value in one setting of the policies that are optimal in another; the maximum over all of them.

    Exact: backward induction in the new setting over the actions that are optimal in the old one with
    the same number of steps left. On tiles that the old map does not have, all actions are allowed.

    Args:
        old: the setting in which the policies are optimal.
        new: the setting in which they are evaluated.
        limit: the step limit of an episode.

    Example:
        >>> old, new = LakeSetting(("SFF", "FHF", "FFG")), LakeSetting(("SHF", "FFF", "FHG"))
        >>> carried_value(old, new, 100), solve_lake(new, 100).value
        (0.0, 1.0)
    """
    plan, model = solve_lake(old, limit), new.model
    states = model.next_state.shape[0]
    allowed = np.ones((limit + 1, states, 4), dtype=bool)
    new_states, old_states = [], []
    for state in range(states):
        row, column = divmod(state, new.columns)
        if row < len(old.map) and column < old.columns:
            new_states.append(state)
            old_states.append(row * old.columns + column)
    allowed[:, new_states] = plan.best[:, old_states]
    paid = (model.probability * model.reward).sum(axis=2)
    on = model.probability * ~model.terminated
    values = np.zeros(states)
    for left in range(1, limit + 1):
        scores = paid + (on * values[model.next_state]).sum(axis=2)
        values = np.where(allowed[left], scores, -np.inf).max(axis=1)
    return float(values[list(solve_lake(new, limit).starts)].mean())


def met_share(old: LakeSetting, new: LakeSetting, limit: int) -> float:
    """The share of optimal ways that meet a change, in the setting before it.

    A way meets the change if it takes an action in a tile whose responses differ between the settings. Where there
    are several optimal actions, each is taken with the same probability.

    Args:
        old: the setting in which the ways are optimal, and in which they are walked.
        new: the other.
        limit: the step limit of an episode.

    Returns:
        A probability.

    Example:
        >>> met_share(LakeSetting(("SFF", "FHF", "FFG")), LakeSetting(("SHF", "FFF", "FFG")), 100)
        0.5
    """
    plan, model = solve_lake(old, limit), old.model
    before, after = lake_responses(old), lake_responses(new)
    states = model.next_state.shape[0]
    same = np.zeros((states, 4), dtype=bool)
    for state in range(states):
        tile = divmod(state, old.columns)
        rows = after.get(tile)
        same[state] = [rows is not None and before[tile][action] == rows[action] for action in range(4)]
    unmet = np.zeros(states)
    unmet[list(plan.starts)] = 1 / len(plan.starts)
    ended = 0.0
    for left in range(limit, 0, -1):
        best = plan.best[left]
        flow = (unmet[:, None] * best / best.sum(axis=1, keepdims=True) * same)[:, :, None] * model.probability
        ended += float(flow[model.terminated].sum())
        unmet = np.bincount(
            model.next_state[~model.terminated], weights=flow[~model.terminated], minlength=states
        ).astype(float)
    return min(max(1.0 - ended - float(unmet.sum()), 0.0), 1.0)


def lake_magnitude(old: LakeSetting, new: LakeSetting) -> float:
    """The share of pairs of tile and action whose responses differ between two settings.

    Args:
        old: one setting.
        new: the other.

    Returns:
        In [0, 1], over the tiles that are not terminal in at least one of the two.

    Example:
        >>> lake_magnitude(LakeSetting(("SFG",)), LakeSetting(("SFG",), slip=0.1))
        0.875
        >>> lake_magnitude(LakeSetting(("SFFG",)), LakeSetting(("SFFG",), goal_rewards=FrozenMapping({"0,3": 0.5})))
        0.08333333333333333
    """
    before, after = lake_responses(old), lake_responses(new)
    open_tiles = {
        (row, column)
        for lake in (old.map, new.map)
        for row, letters in enumerate(lake)
        for column, letter in enumerate(letters)
        if letter not in "GH"
    }
    differing = 0
    for tile in open_tiles:
        old_rows, new_rows = before.get(tile), after.get(tile)
        for action in range(4):
            if old_rows is None or new_rows is None or old_rows[action] != new_rows[action]:
                differing += 1
    return differing / (4 * len(open_tiles))


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

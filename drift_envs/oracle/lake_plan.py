"""Exact planning on the frozen lake: pure functions of knob values.

* `LakeSetting` - the knob values that a plan depends on
* `LakePlan` - values, expected steps and every best action, for every number of steps left
* `solve_lake` - the plan of a setting, by backward induction; cached
* `lake_answers` - what each tile and action is answered with
* `carried_value` - what the best policies of one setting are worth in another
* `lake_magnitude` - the share of answers in which two settings differ

A policy is best when its expected score within the step limit is highest and, among those, its
expected number of steps is lowest. Without the second rule every detour would be as good as the
shortest path, and a broken path would break no policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from drift_envs.envs.frozen_lake.model import TIE, Map, Transitions, tiles, transitions
from drift_envs.knobs import FrozenMapping

Place = tuple[int, int]

PROBABILITY_DIGITS = 12
"""Probabilities that agree in so many digits are equal: the same number may have been rounded twice."""


class LakeSetting(NamedTuple):
    """The knob values that a plan depends on.

    Args:
        map: the map.
        slip: probability of not moving as intended.
        goal_rewards: rewards of single goals by `"row,column"`.
        transient: probability of a false answer.
        reward_schedule: rewards of goal, hole and plain ice.
    """

    map: Map
    slip: float = 0.0
    goal_rewards: FrozenMapping = FrozenMapping()
    transient: float = 0.0
    reward_schedule: tuple[float, float, float] = (1.0, 0.0, 0.0)

    @classmethod
    def of(cls, knobs: Mapping[str, Any], reward_schedule: Sequence[float] = (1.0, 0.0, 0.0)) -> LakeSetting:
        """The setting that these knobs make."""
        goal, hole, ice = (float(reward) for reward in reward_schedule)
        return cls(knobs["map"], knobs["slip"], knobs["goal_rewards"], knobs["transient"], (goal, hole, ice))

    @property
    def columns(self) -> int:
        """How many columns the map has."""
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


class LakeAnswer(NamedTuple):
    """One answer of the lake: where the agent is then, on what tile, what it was paid, whether it is over."""

    place: Place
    tile: str
    reward: float
    ended: bool


@dataclass(frozen=True)
class LakePlan:
    """Everything about the best policies of a setting.

    Args:
        values: the expected score still to come, shape `(limit + 1, S)`; row `n` with `n` steps left.
        steps: the expected number of steps still to come, same shape.
        best: every action that some best policy takes, shape `(limit + 1, S, 4)`. Where no score
            can be had any more, all actions are best.
        starts: the start states.
    """

    values: np.ndarray
    steps: np.ndarray
    best: np.ndarray
    starts: tuple[int, ...]

    @property
    def value(self) -> float:
        """The expected score from the start."""
        return float(self.values[-1, list(self.starts)].mean())


@lru_cache(maxsize=64)
def solve_lake(setting: LakeSetting, limit: int) -> LakePlan:
    """The plan of a setting, by exact backward induction.

    Args:
        setting: the knob values.
        limit: how many steps an episode may have.

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
def lake_answers(setting: LakeSetting) -> dict[Place, tuple[dict[LakeAnswer, float], ...]]:
    """What each tile and action is answered with, and how likely.

    Args:
        setting: the knob values.

    Returns:
        For every place four dictionaries, one an action.

    Example:
        >>> lake_answers(LakeSetting(("SFG",)))[0, 1][2]
        {LakeAnswer(place=(0, 2), tile='G', reward=1.0, ended=True): 1.0}
    """
    model, letters, columns = setting.model, tiles(setting.map), setting.columns
    answers: dict[Place, tuple[dict[LakeAnswer, float], ...]] = {}
    for state in range(len(letters)):
        rows: list[dict[LakeAnswer, float]] = []
        for action in range(4):
            likely: dict[LakeAnswer, float] = {}
            for next_state, probability, reward, ended in zip(
                model.next_state[state, action].tolist(),
                model.probability[state, action].tolist(),
                model.reward[state, action].tolist(),
                model.terminated[state, action].tolist(),
                strict=True,
            ):
                if probability > 0:
                    answer = LakeAnswer(divmod(next_state, columns), letters[next_state], reward, ended)
                    likely[answer] = likely.get(answer, 0.0) + probability
            rows.append({answer: round(p, PROBABILITY_DIGITS) for answer, p in likely.items()})
        answers[divmod(state, columns)] = tuple(rows)
    return answers


@lru_cache(maxsize=256)
def carried_value(old: LakeSetting, new: LakeSetting, limit: int) -> float:
    """What the best policies of one setting are worth in another: the most that any of them reaches.

    It is exact: backward induction in the new setting, over the actions alone that are best in the
    old one with as many steps left. Tiles that the old map does not have allow every action.

    Args:
        old: where the policies are best.
        new: where they are followed.
        limit: how many steps an episode may have.

    Example:
        >>> old, new = LakeSetting(("SFF", "FHF", "FFG")), LakeSetting(("SHF", "FFF", "FHG"))
        >>> carried_value(old, new, 100), solve_lake(new, 100).value
        (0.0, 1.0)
    """
    plan, model = solve_lake(old, limit), new.model
    states = model.next_state.shape[0]
    allowed = np.ones((limit + 1, states, 4), dtype=bool)
    here, there = [], []
    for state in range(states):
        row, column = divmod(state, new.columns)
        if row < len(old.map) and column < old.columns:
            here.append(state)
            there.append(row * old.columns + column)
    allowed[:, here] = plan.best[:, there]
    paid = (model.probability * model.reward).sum(axis=2)
    on = model.probability * ~model.terminated
    values = np.zeros(states)
    for left in range(1, limit + 1):
        scores = paid + (on * values[model.next_state]).sum(axis=2)
        values = np.where(allowed[left], scores, -np.inf).max(axis=1)
    return float(values[list(solve_lake(new, limit).starts)].mean())


def lake_magnitude(old: LakeSetting, new: LakeSetting) -> float:
    """The share of answers in which two settings differ.

    Args:
        old: one setting.
        new: the other.

    Returns:
        Of all pairs of a tile and an action, among the tiles that can be left in at least one of the
        two, those that are answered differently.

    Example:
        >>> lake_magnitude(LakeSetting(("SFG",)), LakeSetting(("SFG",), slip=0.1))
        0.875
        >>> lake_magnitude(LakeSetting(("SFFG",)), LakeSetting(("SFFG",), goal_rewards=FrozenMapping({"0,3": 0.5})))
        0.08333333333333333
    """
    before, after = lake_answers(old), lake_answers(new)
    open_places = {
        (row, column)
        for lake in (old.map, new.map)
        for row, letters in enumerate(lake)
        for column, letter in enumerate(letters)
        if letter not in "GH"
    }
    differing = 0
    for place in open_places:
        ours, theirs = before.get(place), after.get(place)
        for action in range(4):
            if ours is None or theirs is None or ours[action] != theirs[action]:
                differing += 1
    return differing / (4 * len(open_places))

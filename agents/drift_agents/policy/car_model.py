"""What recollections say about a car on a hill, as a model that can be planned with.

* `Evidence` - one recollection in numbers
* `CarModel` - gravity, what each action adds to the velocity at each place, and where the track ends well
* `read_evidence` - recollections into evidence
* `fit_model` - evidence into a model
* `POINTS` - the places at which a model says what actions add

The model's form is the planner's declared knowledge of the task, as `ResidualGrid` declares its own:
the velocity changes by g cos(3x) and by what the action adds there, and the flag lies to the right
of the valley. Every number in it comes from recollections.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from drift_agents.matching_grid import POSITIONS, read_motion
from drift_agents.prompt import Recollection

POINTS = np.linspace(POSITIONS[0], POSITIONS[1], 61)
TOP = math.pi / 6
"""The top of the right hill, where cos(3x) is zero: where the flag is looked for while nobody has reached it."""

GRAIN = 2e-5
"""Models are rounded to this, in velocity a step: far below what an engine does, and equal models share a plan."""
# Two pushes that lie closer count as one answer; rounding makes 2e-6, the smallest drift of an engine 2e-4.
_SAME = 1e-4
# A neighbour this much farther away than the nearest one counts 1/e as much.
_REACH = 0.02
# Steps that stand closer on the hill than this tell more about rounding than about the hill.
_CLOSE = 0.005


class Evidence(NamedTuple):
    """One recollection in numbers.

    Args:
        action: the action, as text.
        x: position before.
        hill: cos(3x).
        change: change of velocity; zero where it was hidden.
        hidden: whether a wall, the speed limit or the end of the episode hid it.
        x2: position after.
        v2: velocity after.
        n: how many responses speak for it.
        last: when it was last written, in the agent's own interactions.
        won: whether the episode ended there with a score.
    """

    action: str
    x: float
    hill: float
    change: float
    hidden: bool
    x2: float
    v2: float
    n: float
    last: int
    won: bool


@dataclass(frozen=True)
class CarModel:
    """Gravity, what each action adds to the velocity at each place, and where the track ends well.

    Frozen and hashable, so that equal models share one plan.

    Args:
        actions: the actions that something is known about, in the order of the prompt.
        answers: how many different answers an action has at the most.
        gravity: factor of cos(3x) in the change of velocity, negative where the hill pulls.
        goal: position from which on an episode is believed to end with success.
        pushes: float64, shape `(actions, answers, points)`: what the action adds to the velocity.
        weights: float64, the same shape: how much each answer is believed, summing to one.
    """

    actions: tuple[str, ...]
    answers: int
    gravity: float
    goal: float
    pushes: bytes
    weights: bytes

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Pushes and weights, shape `(actions, answers, points)`."""
        shape = (len(self.actions), self.answers, len(POINTS))
        return np.frombuffer(self.pushes).reshape(shape), np.frombuffer(self.weights).reshape(shape)


@lru_cache(maxsize=1 << 16)
def _read(item: Recollection) -> Evidence:
    motion = read_motion(item.state, item.outcome.state)
    hidden = item.outcome.ended or motion.low != motion.high
    return Evidence(
        item.action,
        motion.x,
        motion.hill,
        0.0 if hidden else motion.low,
        hidden,
        motion.x2,
        motion.v2,
        item.n,
        item.last,
        item.outcome.ended and item.outcome.score > 0,
    )


def read_evidence(recollections: Iterable[Recollection]) -> frozenset[Evidence]:
    """Recollections into evidence; their order does not matter.

    An end hides the change of velocity: a summary may stand beside another state of its cell than
    the one whose end it tells.

    Raises:
        ArgumentError: if a state is not that of a car.
    """
    return frozenset(map(_read, recollections))


@lru_cache(maxsize=64)
def fit_model(evidence: frozenset[Evidence], actions: tuple[str, ...], conflict: str, neighbours: int) -> CarModel:
    """Evidence into a model: a pure function, cached.

    At every point and for every action the nearest pieces of evidence are asked, the nearer the
    louder; since the hill's part is subtracted first, what was felt at one place holds for others,
    until something nearer says otherwise.

    Args:
        evidence: what is remembered.
        actions: the admissible actions, as text.
        conflict: which of several answers is believed (`drift_agents.conflict`).
        neighbours: how many of the nearest pieces of evidence are asked.
    """
    ordered = sorted(evidence)
    felt = [[e for e in ordered if e.action == action and not e.hidden] for action in actions]
    gravity = _fit_gravity(felt)
    tables = [_answers_of(group, gravity, conflict, neighbours) for group in felt if group]
    answers = max((len(pushes) for pushes, _ in tables), default=0)
    pushes = np.zeros((len(tables), answers, len(POINTS)))
    weights = np.zeros_like(pushes)
    for i, (push, weight) in enumerate(tables):
        pushes[i, : len(push)], weights[i, : len(weight)] = push, weight
    return CarModel(
        tuple(action for action, group in zip(actions, felt, strict=True) if group),
        answers,
        gravity,
        _find_goal(ordered, conflict),
        pushes.tobytes(),
        weights.tobytes(),
    )


def _fit_gravity(felt: list[list[Evidence]]) -> float:
    """The weighted median of slopes between steps that follow each other with the same action.

    Between two such steps the engine's part falls out, unless the engine changed in between: a
    median does not mind those few, where a least-squares line would bend.
    """
    slopes: list[tuple[float, float]] = []
    for group in felt:
        before: Evidence | None = None
        for item in sorted(group, key=lambda e: (e.last, e)):
            if before is not None and abs(item.hill - before.hill) < _CLOSE:
                continue
            if before is not None:
                run = item.hill - before.hill
                slopes.append(((item.change - before.change) / run, run * run))
            before = item
    if not slopes:
        return 0.0
    values, weights = np.array(sorted(slopes)).T
    middle = int(np.searchsorted(np.cumsum(weights), weights.sum() / 2))
    return round(float(values[min(middle, len(values) - 1)]) / GRAIN) * GRAIN


def _answers_of(group: list[Evidence], gravity: float, conflict: str, neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """What one action adds at every point: pushes and weights, shape `(answers, points)`."""
    x, hill, change, n, last = np.array([(e.x, e.hill, e.change, e.n, e.last) for e in group]).T
    push = change - gravity * hill
    kinds = _kinds(push)
    distance = np.abs(POINTS[:, None] - x)
    near = np.argsort(distance, axis=1, kind="stable")[:, :neighbours]
    distance = np.take_along_axis(distance, near, axis=1)
    loud = n[near] * np.exp((distance[:, :1] - distance) / _REACH)
    # Shape (points, kinds): how loudly each kind of answer is told, and what it says there.
    told = np.stack([np.where(kinds[near] == kind, loud, 0.0).sum(axis=1) for kind in range(kinds.max() + 1)], axis=1)
    said = np.stack(
        [np.where(kinds[near] == kind, loud * push[near], 0.0).sum(axis=1) for kind in range(kinds.max() + 1)], axis=1
    )
    said = np.divide(said, told, out=np.zeros_like(said), where=told > 0)
    if conflict in ("majority", "newest"):
        if conflict == "majority":
            # Equally loud: the one that was told last.
            latest = np.stack(
                [np.where(kinds[near] == kind, last[near], -1.0).max(axis=1) for kind in range(told.shape[1])], axis=1
            )
            loudest = told >= told.max(axis=1, keepdims=True) * (1 - 1e-9)
            chosen = np.argmax(np.where(loudest, latest, -2.0), axis=1)
        else:
            newest = np.take_along_axis(near, np.argmax(last[near], axis=1)[:, None], axis=1)[:, 0]
            chosen = kinds[newest]
        said, told = np.take_along_axis(said, chosen[:, None], axis=1), np.ones((len(POINTS), 1))
    weights = told / told.sum(axis=1, keepdims=True)
    return np.round(said.T / GRAIN) * GRAIN, np.round(weights.T, 3)


def _kinds(push: np.ndarray) -> np.ndarray:
    """The kind of answer of each push: sorted, a new kind begins where a gap is wider than `_SAME`."""
    order = np.argsort(push, kind="stable")
    kinds = np.empty(len(push), dtype=np.int64)
    kinds[order] = np.concatenate(([0], np.cumsum(np.diff(push[order]) > _SAME)))
    return kinds


def _find_goal(ordered: list[Evidence], conflict: str) -> float:
    """From where on an episode is believed to end with success.

    While nobody is known to have won, the flag is looked for at the top of the hill, and beyond it
    at the right end once the car has been there.
    """
    won = sorted((e.x2, e.n, e.last) for e in ordered if e.won)
    passed = [(e.x2, e.n, e.last) for e in ordered if not e.won and e.v2 >= 0]
    farthest = max((x for x, _, _ in passed), default=-math.inf)
    if won and (conflict == "max" or farthest < won[0][0]):
        return won[0][0]
    if won and conflict == "newest":
        kept = math.inf
        for x, _, last in won:
            if not any(at >= x and then > last for at, _, then in passed):
                kept = min(kept, x)
        if kept < math.inf:
            return kept
    elif won:
        # The end that contradicts the least: earlier wins against places that were passed without an end.
        def contradicted(x: float) -> float:
            return sum(n for at, n, _ in won if at < x) + sum(n for at, n, _ in passed if at >= x)

        best = min((x for x, _, _ in won), key=lambda x: (contradicted(x), -x))
        if contradicted(best) < sum(n for _, n, _ in won):
            return best
    return TOP if farthest < TOP else POSITIONS[1]

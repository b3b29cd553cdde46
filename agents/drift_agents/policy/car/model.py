"""What recollections say about a car on a hill, as a model that can be planned with.

* `CarModel` - gravity, what each action adds to the velocity at each place, and where the track ends well
* `fit_model` - evidence into a model
* `insist_on` - what is remembered of the present state outweighs its neighbours
* `POINTS` - the places at which a model says what actions add
* `TOP` - where the flag is looked for while nobody has reached it
* `GRAIN` - what models are rounded to

The model's form is the planner's declared knowledge of the task, as `ResidualGrid` declares its own:
the velocity changes by g cos(3x) and by what the action adds there, and the flag lies to the right
of the valley. Every number in it comes from recollections.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from drift_agents.matching.grid import CLOSE, POSITIONS, weigh_slopes
from drift_agents.policy.car.evidence import Evidence

POINTS = np.linspace(POSITIONS[0], POSITIONS[1], 181)
"""Positions, evenly spaced from one end of the track to the other."""

TOP = math.pi / 6
"""The top of the right hill, where cos(3x) is zero: where the flag is looked for while nobody has reached it."""

GRAIN = 1e-5
"""Models are rounded to this, in velocity a step: far below what an engine does, and equal models share a plan."""

_APART = float(POINTS[1] - POINTS[0])
# Two pushes that lie closer count as one answer; rounding makes 2e-6, the smallest drift of an engine 2e-4.
_SAME = 1e-4
# A neighbour this much farther away than the nearest one counts 1/e as much.
_REACH = 0.02


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
        weights: float64, the same shape: how much each answer is believed; they sum to one up to
            the rounding to three decimals.
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


@lru_cache(maxsize=64)
def fit_model(
    evidence: tuple[frozenset[Evidence], ...], actions: tuple[str, ...], conflict: str, neighbours: int
) -> CarModel:
    """Evidence into a model: a pure function, cached.

    At every point and for every action the nearest pieces of evidence are asked, the nearer the
    louder; since the hill's part is subtracted first, what was felt at one place holds for others,
    until something nearer says otherwise.

    Args:
        evidence: what is remembered about each action.
        actions: the actions, as text.
        conflict: which of several answers is believed (`drift_agents.prompt.conflict`).
        neighbours: how many of the nearest pieces of evidence are asked.
    """
    felt = [_gather(group) for group in evidence]
    gravity = round(weigh_slopes(sorted(chain.from_iterable(map(_slopes, evidence)))) / GRAIN) * GRAIN
    tables = [
        _answers_of(group, gravity, conflict, neighbours)
        for group, felt_group in zip(evidence, felt, strict=True)
        if len(felt_group.x)
    ]
    answers = max((len(pushes) for pushes, _ in tables), default=0)
    pushes = np.zeros((len(tables), answers, len(POINTS)))
    weights = np.zeros_like(pushes)
    for i, (push, weight) in enumerate(tables):
        pushes[i, : len(push)], weights[i, : len(weight)] = push, weight
    return CarModel(
        tuple(action for action, group in zip(actions, felt, strict=True) if len(group.x)),
        answers,
        gravity,
        _find_goal(evidence, conflict),
        pushes.tobytes(),
        weights.tobytes(),
    )


def insist_on(
    model: CarModel,
    here: tuple[frozenset[Evidence], ...],
    actions: tuple[str, ...],
    x: float,
    conflict: str,
    neighbours: int,
) -> CarModel:
    """Let what is remembered of the present state outweigh its neighbours.

    The prompt tells experience from this state apart. Where it was made counts as the same state as
    the present place, and so does what lies between; there nothing else is asked, though a memory
    of another state may lie nearer. Without this, a car that has just been told that its world
    changed would believe its old neighbours beyond the border of the state, and might stand
    there for ever.

    Args:
        model: what all of memory says.
        here: what is remembered about each action in the present state.
        actions: the actions, as text.
        x: the present position.
        conflict: which of several answers is believed.
        neighbours: how many of the nearest pieces of evidence are asked.

    Returns:
        The same model if nothing differs there.
    """
    pushes, weights = model.arrays()
    changed = False
    for action, group in zip(actions, here, strict=True):
        places = [item.x for item in group if not item.hidden]
        if not places:
            continue
        first, last = _point(min(x, *places)), _point(max(x, *places))
        stretch = slice(first, last + 1)
        push, weight = _answers_on(first, last, group, model.gravity, conflict, neighbours)
        row, count = model.actions.index(action), len(push)
        if np.array_equal(pushes[row, :count, stretch], push) and np.array_equal(weights[row, :count, stretch], weight):
            continue
        if not changed:
            pushes, weights, changed = pushes.copy(), weights.copy(), True
        if count > pushes.shape[1]:
            more = ((0, 0), (0, count - pushes.shape[1]), (0, 0))
            pushes, weights = np.pad(pushes, more), np.pad(weights, more)
        weights[row, :, stretch] = 0.0
        pushes[row, :count, stretch], weights[row, :count, stretch] = push, weight
    if not changed:
        return model
    return replace(model, answers=pushes.shape[1], pushes=pushes.tobytes(), weights=weights.tobytes())


def _point(x: float) -> int:
    """The index of the nearest point."""
    return round((x - POSITIONS[0]) / _APART)


class _Felt(NamedTuple):
    """The evidence about one action that is not hidden, as arrays in order of position."""

    x: np.ndarray
    hill: np.ndarray
    change: np.ndarray
    n: np.ndarray
    last: np.ndarray
    leftward: np.ndarray
    """The order in which they are met from the right: those at the same place count by index on both sides."""


@lru_cache(maxsize=64)
def _gather(group: frozenset[Evidence]) -> _Felt:
    # As plain tuples, which are sorted much faster.
    ordered = sorted([tuple(item) for item in group if not item.hidden])
    columns = np.array([(x, hill, change, n, last) for x, hill, change, _, _, _, n, last, _ in ordered], np.float64)
    x, hills, changes, n, last = np.ascontiguousarray(columns.reshape(-1, 5).T)
    leftward = np.searchsorted(x, x, "left") + np.searchsorted(x, x, "right") - 1 - np.arange(len(x))
    return _Felt(x, hills, changes, n, last, leftward)


@lru_cache(maxsize=64)
def _slopes(group: frozenset[Evidence]) -> list[tuple[float, float]]:
    """Slope and run between steps that follow each other in time, sorted: there the action's own part falls out."""
    felt, slopes = _gather(group), []
    told = np.argsort(felt.last, kind="stable")
    steps = zip(felt.hill[told].tolist(), felt.change[told].tolist(), strict=True)
    hill, change = next(steps, (0.0, 0.0))
    for next_hill, next_change in steps:
        run = next_hill - hill
        if abs(run) >= CLOSE:
            slopes.append(((next_change - change) / run, abs(run)))
            hill, change = next_hill, next_change
    return sorted(slopes)


@lru_cache(maxsize=256)
def _answers_of(
    group: frozenset[Evidence], gravity: float, conflict: str, neighbours: int
) -> tuple[np.ndarray, np.ndarray]:
    """What one action adds at every point."""
    return _answers_at(POINTS, group, gravity, conflict, neighbours)


@lru_cache(maxsize=4096)
def _answers_on(
    first: int, last: int, group: frozenset[Evidence], gravity: float, conflict: str, neighbours: int
) -> tuple[np.ndarray, np.ndarray]:
    """What one action adds from one point to another, both included."""
    return _answers_at(POINTS[first : last + 1], group, gravity, conflict, neighbours)


def _answers_at(
    points: np.ndarray, group: frozenset[Evidence], gravity: float, conflict: str, neighbours: int
) -> tuple[np.ndarray, np.ndarray]:
    """What one action adds at these points: pushes and weights, shape `(answers, points)`."""
    felt, (push, kinds) = _gather(group), _pushes(group, gravity)
    near, distance = _nearest(felt, points, neighbours)
    loud = felt.n[near] * np.exp((distance[:, :1] - distance) / _REACH)
    if kinds is None:
        said = ((loud * push[near]).sum(axis=1) / loud.sum(axis=1))[None]
        return _rounded(said), np.ones_like(said)
    # Shape (kinds, points): how loudly each kind of answer is told, what it says, and when it was told last.
    mine = kinds[near] == np.arange(int(kinds.max()) + 1)[:, None, None]
    told, said = np.where(mine, loud, 0.0).sum(axis=2), np.where(mine, loud * push[near], 0.0).sum(axis=2)
    latest = np.where(mine, felt.last[near], -1.0).max(axis=2)
    said = np.divide(said, told, out=np.zeros_like(said), where=told > 0)
    if conflict in ("majority", "newest"):
        if conflict == "majority":
            # Equally loud: the one that was told last.
            latest[told < told.max(axis=0) * (1 - 1e-9)] = -2.0
        said = said[latest.argmax(axis=0), np.arange(len(points))][None]
        return _rounded(said), np.ones_like(said)
    return _rounded(said), np.round(told / told.sum(axis=0), 3)


def _rounded(pushes: np.ndarray) -> np.ndarray:
    # Adding zero turns -0.0 into 0.0: models are compared by their bytes.
    return np.round(pushes / GRAIN) * GRAIN + 0.0


def _nearest(felt: _Felt, points: np.ndarray, neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """The nearest places of each point, the nearest first, ties by index.

    Args:
        felt: the evidence about an action, at least one piece.
        points: of which the nearest are wanted.
        neighbours: how many are wanted.

    Returns:
        Indices and distances, both of shape `(points, min(neighbours, places))`.
    """
    x = felt.x
    count = min(neighbours, len(x))
    # As many to the left and to the right of a point hold all that can be among its nearest.
    first, step = np.searchsorted(x, points)[:, None], np.arange(count)
    left, right = first - 1 - step, first + step
    candidates = np.concatenate((felt.leftward[np.maximum(left, 0)], np.minimum(right, len(x) - 1)), axis=1)
    distance = np.abs(points[:, None] - x[candidates])
    distance[:, :count][left < 0] = np.inf
    distance[:, count:][right >= len(x)] = np.inf
    order = np.argsort(distance, axis=1, kind="stable")[:, :count]
    rows = np.arange(len(points))[:, None]
    return candidates[rows, order], distance[rows, order]


@lru_cache(maxsize=64)
def _pushes(group: frozenset[Evidence], gravity: float) -> tuple[np.ndarray, np.ndarray | None]:
    """What the action added each time, and which kind of answer that was; `None` if all were of one kind.

    Sorted, a new kind begins where a gap is wider than `_SAME`.
    """
    felt = _gather(group)
    push = felt.change - gravity * felt.hill
    order = np.argsort(push, kind="stable")
    ordered = push[order]
    apart = ordered[1:] - ordered[:-1] > _SAME
    if not apart.any():
        return push, None
    kinds = np.empty(len(push), dtype=np.int64)
    kinds[order] = np.concatenate(([0], np.cumsum(apart)))
    return push, kinds


def _find_goal(evidence: Iterable[frozenset[Evidence]], conflict: str) -> float:
    """From where on an episode is believed to end with success.

    While nobody is known to have won, the flag is looked for at the top of the hill, and beyond it
    at the right end once the car has been there.
    """
    reach = [_reach(group) for group in evidence]
    farthest = max((far for far, _ in reach), default=-math.inf)
    first = min((end for _, end in reach), default=math.inf)
    if first < math.inf and (conflict == "max" or farthest < first):
        return first
    if first == math.inf:
        return TOP if farthest < TOP else POSITIONS[1]
    won = [(item.x2, item.n, item.last) for group in evidence for item in group if item.won]
    passed = [(item.x2, item.n, item.last) for group in evidence for item in group if not item.won and item.v2 >= 0]
    if conflict == "newest":
        # A win counts unless its place was passed without an end later on.
        kept = [x for x, _, last in won if not any(at >= x and then > last for at, _, then in passed)]
        if kept:
            return min(kept)
    else:
        # The end that contradicts the least, told by how many responses it makes false; ties to the right.
        # Exact sums, since evidence comes in the order of a set.
        def falsified(x: float) -> float:
            return math.fsum([*(n for at, n, _ in won if at < x), *(n for at, n, _ in passed if at >= x)])

        ends = sorted({x for x, _, _ in won}, reverse=True)
        best = min(ends, key=falsified)
        if falsified(best) <= math.fsum(n for _, n, _ in won):
            return best
    return TOP if farthest < TOP else POSITIONS[1]


@lru_cache(maxsize=64)
def _reach(group: frozenset[Evidence]) -> tuple[float, float]:
    """How far the car got to the right without an end, and the first place where it won."""
    return (
        max((item.x2 for item in group if not item.won and item.v2 >= 0), default=-math.inf),
        min((item.x2 for item in group if item.won), default=math.inf),
    )

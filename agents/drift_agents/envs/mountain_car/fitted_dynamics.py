"""A model of the car's dynamics, fitted to the evidence in records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from drift_agents.envs.mountain_car.states import CLOSE, POSITIONS, read_motion, weigh_slopes
from drift_agents.prompt.view import Recollection


class Evidence(NamedTuple):
    """One recollection as numbers.

    Args:
        x: position before.
        hill: cos(3x).
        change: change of velocity; zero where it was hidden.
        hidden: whether a wall or the speed limit hid it.
        x2: position after.
        v2: velocity after.
        n: the number of responses times their weight.
        last: when it was last written, in the agent's interactions.
        won: whether the episode ended there with a score.
    """

    x: float
    hill: float
    change: float
    hidden: bool
    x2: float
    v2: float
    n: float
    last: int
    won: bool


# Consecutive prompts share recollection objects, and hashing one costs more than parsing it. So they are cached by
# id; each is kept together with its evidence, so that its id is not used again.
_read: dict[int, tuple[Recollection, Evidence]] = {}
_KEPT = 1 << 16


def _make(item: Recollection) -> tuple[Recollection, Evidence]:
    motion = read_motion(item.state, item.outcome.state)
    hidden = motion.low != motion.high
    won = item.outcome.ended and item.outcome.score > 0
    change = 0.0 if hidden else motion.low
    made = Evidence(motion.x, motion.hill, change, hidden, motion.x2, motion.v2, item.support, item.last, won)
    if len(_read) >= _KEPT:
        _read.clear()
    _read[id(item)] = item, made
    return item, made


def read_evidence(recollections: Iterable[Recollection], actions: Sequence[str]) -> tuple[frozenset[Evidence], ...]:
    """Recollections into evidence, one set for each action; their order does not matter.

    Args:
        recollections: those of the prompt.
        actions: the admissible actions, as text; recollections of other actions are skipped.

    Raises:
        ArgumentError: if a state is not that of a car.
    """
    by_action: dict[str, list[Evidence]] = {action: [] for action in actions}
    for item in recollections:
        group = by_action.get(item.action)
        if group is not None:
            group.append((_read.get(id(item)) or _make(item))[1])
    return tuple(map(frozenset, by_action.values()))


POINTS = np.linspace(POSITIONS[0], POSITIONS[1], 181)
"""Positions, evenly spaced from one end of the track to the other."""

TOP = math.pi / 6
"""The top of the right hill, where cos(3x) is zero: the assumed goal before an episode has ended there."""

GRAIN = 1e-5
"""The rounding of models, in velocity per step: far below any acceleration, so that equal models share a plan."""

_APART = float(POINTS[1] - POINTS[0])
# Accelerations closer than this are one response; rounding makes 2e-6, the smallest drift of the force 2e-4.
_SAME = 1e-4
# The distance beyond the nearest neighbour at which the weight of another one is 1/e.
_REACH = 0.02


@dataclass(frozen=True)
class CarModel:
    """Gravity, the acceleration by each action at each point, and the position of the goal.

    Frozen and hashable, so that equal models share one plan.

    Args:
        actions: the actions with evidence, in the order of the prompt.
        responses: the maximum number of different responses to an action.
        gravity: factor of cos(3x) in the change of velocity, negative in the original environment.
        goal: the position from which on an episode is believed to end with success.
        pushes: float64, shape `(actions, responses, points)`: the acceleration, in velocity per step.
        weights: float64, the same shape: the probability of each response; they sum to one up to
            the rounding to three decimals.
    """

    actions: tuple[str, ...]
    responses: int
    gravity: float
    goal: float
    pushes: bytes
    weights: bytes

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Pushes and weights, shape `(actions, responses, points)`."""
        shape = (len(self.actions), self.responses, len(POINTS))
        return np.frombuffer(self.pushes).reshape(shape), np.frombuffer(self.weights).reshape(shape)


@lru_cache(maxsize=64)
def fit_model(
    evidence: tuple[frozenset[Evidence], ...], actions: tuple[str, ...], conflict: str, neighbours: int
) -> CarModel:
    """Fit a model: a pure function, cached.

    The acceleration at a point is a mean over the nearest pieces of evidence about the action, weighted by
    distance. Gravity is subtracted first, so that evidence from one place holds for others until there is
    nearer evidence.

    Args:
        evidence: one set of evidence for each action.
        actions: the actions, as text.
        conflict: the rule for several responses (`drift_agents.prompt.view`).
        neighbours: the number of nearest pieces of evidence that are used.
    """
    observed = [_gather(group) for group in evidence]
    gravity = round(weigh_slopes(sorted(chain.from_iterable(map(_slopes, evidence)))) / GRAIN) * GRAIN
    tables = [
        _fit_all_points(group, gravity, conflict, neighbours)
        for group, observed_group in zip(evidence, observed, strict=True)
        if len(observed_group.x)
    ]
    responses = max((len(pushes) for pushes, _ in tables), default=0)
    pushes = np.zeros((len(tables), responses, len(POINTS)))
    weights = np.zeros_like(pushes)
    for i, (push, weight) in enumerate(tables):
        pushes[i, : len(push)], weights[i, : len(weight)] = push, weight
    return CarModel(
        tuple(action for action, group in zip(actions, observed, strict=True) if len(group.x)),
        responses,
        gravity,
        _find_goal(evidence, conflict),
        pushes.tobytes(),
        weights.tobytes(),
    )


def override_locally(
    model: CarModel,
    here: tuple[frozenset[Evidence], ...],
    actions: tuple[str, ...],
    x: float,
    conflict: str,
    neighbours: int,
) -> CarModel:
    """Give evidence from the present state precedence over its neighbours.

    The prompt lists experience from the present state separately. Between the present position and the
    positions of that experience, the model is fitted to it alone, although evidence from another state may
    be nearer. Without this, after a realignment of the present state the older evidence of its neighbours
    would prevail near its border, and the car might stay there for ever.

    Args:
        model: the model of all evidence.
        here: one set of evidence from the present state for each action.
        actions: the actions, as text.
        x: the present position.
        conflict: the rule for several responses.
        neighbours: the number of nearest pieces of evidence that are used.

    Returns:
        The same model object if nothing differs there.
    """
    pushes, weights = model.arrays()
    changed = False
    for action, group in zip(actions, here, strict=True):
        places = [item.x for item in group if not item.hidden]
        if not places:
            continue
        first, last = _point(min(x, *places)), _point(max(x, *places))
        stretch = slice(first, last + 1)
        push, weight = _fit_range(first, last, group, model.gravity, conflict, neighbours)
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
    return replace(model, responses=pushes.shape[1], pushes=pushes.tobytes(), weights=weights.tobytes())


def _point(x: float) -> int:
    """The index of the nearest point."""
    return round((x - POSITIONS[0]) / _APART)


class _Observed(NamedTuple):
    """The evidence about one action that is not hidden, as arrays in order of position."""

    x: np.ndarray
    hill: np.ndarray
    change: np.ndarray
    n: np.ndarray
    last: np.ndarray
    leftward: np.ndarray
    """The order from the right: equal positions are ordered by index from both sides."""


@lru_cache(maxsize=64)
def _gather(group: frozenset[Evidence]) -> _Observed:
    # As plain tuples, which are sorted much faster.
    ordered = sorted([tuple(item) for item in group if not item.hidden])
    columns = np.array([(x, hill, change, n, last) for x, hill, change, _, _, _, n, last, _ in ordered], np.float64)
    x, hills, changes, n, last = np.ascontiguousarray(columns.reshape(-1, 5).T)
    leftward = np.searchsorted(x, x, "left") + np.searchsorted(x, x, "right") - 1 - np.arange(len(x))
    return _Observed(x, hills, changes, n, last, leftward)


@lru_cache(maxsize=64)
def _slopes(group: frozenset[Evidence]) -> list[tuple[float, float]]:
    """Slope and run between consecutive steps, sorted: the difference cancels the action's acceleration."""
    observed, slopes = _gather(group), []
    order = np.argsort(observed.last, kind="stable")
    steps = zip(observed.hill[order].tolist(), observed.change[order].tolist(), strict=True)
    hill, change = next(steps, (0.0, 0.0))
    for next_hill, next_change in steps:
        run = next_hill - hill
        if abs(run) >= CLOSE:
            slopes.append(((next_change - change) / run, abs(run)))
            hill, change = next_hill, next_change
    return sorted(slopes)


@lru_cache(maxsize=256)
def _fit_all_points(
    group: frozenset[Evidence], gravity: float, conflict: str, neighbours: int
) -> tuple[np.ndarray, np.ndarray]:
    """`_fit_points` of all points."""
    return _fit_points(POINTS, group, gravity, conflict, neighbours)


@lru_cache(maxsize=4096)
def _fit_range(
    first: int, last: int, group: frozenset[Evidence], gravity: float, conflict: str, neighbours: int
) -> tuple[np.ndarray, np.ndarray]:
    """`_fit_points` of the points from `first` to `last`, both included."""
    return _fit_points(POINTS[first : last + 1], group, gravity, conflict, neighbours)


def _fit_points(
    points: np.ndarray, group: frozenset[Evidence], gravity: float, conflict: str, neighbours: int
) -> tuple[np.ndarray, np.ndarray]:
    """The accelerations by one action at these points and their weights, shape `(responses, points)`."""
    observed, (push, kinds) = _gather(group), _pushes(group, gravity)
    near, distance = _nearest(observed, points, neighbours)
    strength = observed.n[near] * np.exp((distance[:, :1] - distance) / _REACH)
    if kinds is None:
        means = ((strength * push[near]).sum(axis=1) / strength.sum(axis=1))[None]
        return _rounded(means), np.ones_like(means)
    # Shape (kinds, points): the weight of each kind of response, its mean, and when it was last seen.
    is_kind = kinds[near] == np.arange(int(kinds.max()) + 1)[:, None, None]
    support, means = (
        np.where(is_kind, strength, 0.0).sum(axis=2),
        np.where(is_kind, strength * push[near], 0.0).sum(axis=2),
    )
    latest = np.where(is_kind, observed.last[near], -1.0).max(axis=2)
    means = np.divide(means, support, out=np.zeros_like(means), where=support > 0)
    if conflict in ("majority", "newest"):
        if conflict == "majority":
            # Of equal weights, the response last seen.
            latest[support < support.max(axis=0) * (1 - 1e-9)] = -2.0
        means = means[latest.argmax(axis=0), np.arange(len(points))][None]
        return _rounded(means), np.ones_like(means)
    return _rounded(means), np.round(support / support.sum(axis=0), 3)


def _rounded(pushes: np.ndarray) -> np.ndarray:
    # Adding zero turns -0.0 into 0.0: models are compared by their bytes.
    return np.round(pushes / GRAIN) * GRAIN + 0.0


def _nearest(observed: _Observed, points: np.ndarray, neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """The nearest evidence of each point, the nearest first, ties by index.

    Args:
        observed: the evidence about an action, at least one piece.
        points: positions.
        neighbours: the maximum number of neighbours.

    Returns:
        Indices and distances, both of shape `(points, min(neighbours, places))`.
    """
    x = observed.x
    count = min(neighbours, len(x))
    # The nearest ones are among as many to the left and to the right of a point.
    first, step = np.searchsorted(x, points)[:, None], np.arange(count)
    left, right = first - 1 - step, first + step
    candidates = np.concatenate((observed.leftward[np.maximum(left, 0)], np.minimum(right, len(x) - 1)), axis=1)
    distance = np.abs(points[:, None] - x[candidates])
    distance[:, :count][left < 0] = np.inf
    distance[:, count:][right >= len(x)] = np.inf
    order = np.argsort(distance, axis=1, kind="stable")[:, :count]
    rows = np.arange(len(points))[:, None]
    return candidates[rows, order], distance[rows, order]


@lru_cache(maxsize=64)
def _pushes(group: frozenset[Evidence], gravity: float) -> tuple[np.ndarray, np.ndarray | None]:
    """The acceleration of each piece of evidence and its kind of response; `None` if there is one kind.

    In sorted order, a new kind begins where a gap is wider than `_SAME`.
    """
    observed = _gather(group)
    push = observed.change - gravity * observed.hill
    order = np.argsort(push, kind="stable")
    ordered = push[order]
    apart = ordered[1:] - ordered[:-1] > _SAME
    if not apart.any():
        return push, None
    kinds = np.empty(len(push), dtype=np.int64)
    kinds[order] = np.concatenate(([0], np.cumsum(apart)))
    return push, kinds


def _find_goal(evidence: Iterable[frozenset[Evidence]], conflict: str) -> float:
    """The position from which on an episode is believed to end with success.

    Before an episode has ended so, it is the top of the hill, or the right end of the track once the car
    has passed the top.
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
        # The position that contradicts the fewest responses; ties to the right.
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

"""States and motions of the cars: how they are read, when two responses are the same, and words."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.errors import ArgumentError
from drift_agents.policy.ranked import PlainFacts, without_meanings
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Experience, Record, Transition
from drift_envs.checks import check_count, check_interval

POSITIONS = (-1.2, 0.6)
SPEED_LIMIT = 0.07
PATH_CELL = (0.05, 0.01)
"""The widths of the cells of position and velocity by which steps are joined into paths."""
CLOSE = 0.005
"""The least difference of cos(3x) between two steps; below it rounding errors dominate."""
FEW = 16
"""The number of records from which on columns are faster than a loop."""
# Half of the last decimal, for comparing numbers that were rounded for the text.
_EDGE = 0.5e-6


class Motion(NamedTuple):
    """One transition as numbers.

    At a wall or the speed limit the acceleration is hidden: then only one bound of the change of velocity
    is known, and the other one is infinite.

    Args:
        x: position before.
        v: velocity before.
        x2: position after.
        v2: velocity after.
        low: the lower bound of the change of velocity.
        high: the upper bound; equal to `low` unless a limit hid it.
        hill: cos(3x), proportional to the slope of Gymnasium's track.
        slide: change of position beyond the velocity after, `nan` at a wall.
    """

    x: float
    v: float
    x2: float
    v2: float
    low: float
    high: float
    hill: float
    slide: float


@lru_cache(maxsize=1 << 16)
def read_state(state: str) -> tuple[float, float]:
    """Parse position and velocity.

    Raises:
        ArgumentError: if the text does not hold both as numbers.

    Example:
        >>> read_state('{"position": -0.5, "velocity": 0.01}')
        (-0.5, 0.01)
    """
    try:
        data = json.loads(state)
        x, v = float(data["position"]), float(data["velocity"])
    except (ValueError, TypeError, KeyError):
        x = v = math.nan
    if not (math.isfinite(x) and math.isfinite(v)):
        raise ArgumentError(
            "the state of a car should be a JSON object with the numbers `position` and `velocity`. "
            f"Received {state[:80]!r}"
        )
    return x, v


@lru_cache(maxsize=1 << 17)
def read_motion(state: str, after: str) -> Motion:
    """Parse a transition; cached, since the same transitions are compared repeatedly.

    Args:
        state: the state before, as text.
        after: the state after, as text.

    Raises:
        ArgumentError: if one of the texts is not the state of a car.

    Example:
        >>> before, after = '{"position": -0.5, "velocity": 0.0}', '{"position": -0.499, "velocity": 0.001}'
        >>> read_motion(before, after).low
        0.001
    """
    x, v = read_state(state)
    x2, v2 = read_state(after)
    low = high = v2 - v
    slide = x2 - x - v2
    if x2 <= POSITIONS[0] + _EDGE:
        # At the left wall the velocity becomes zero.
        low, high, slide = -math.inf, POSITIONS[0] - x - v, math.nan
    elif v2 >= SPEED_LIMIT - _EDGE:
        high = math.inf
    elif v2 <= _EDGE - SPEED_LIMIT:
        low = -math.inf
    if x2 >= POSITIONS[1] - _EDGE:
        slide = math.nan
    return Motion(x, v, x2, v2, low, high, math.cos(3 * x), slide)


def weigh_slopes(slopes: Sequence[tuple[float, float]]) -> float:
    """The weighted median of slopes: that of the line through zero with the least absolute deviations.

    Unlike least squares it is robust to outliers by false responses or a drift of the force.

    Args:
        slopes: pairs of a slope, as the change of velocity by that of cos(3x), and its weight, which is the latter's
            size; sorted.

    Returns:
        The median; 0.0 without a slope.

    Example:
        >>> weigh_slopes([(-2.0, 1.0), (0.5, 3.0), (1.0, 1.0)])
        0.5
    """
    half = sum([weight for _, weight in slopes]) / 2
    for slope, weight in slopes:
        half -= weight
        if half <= 0:
            return slope
    return 0.0


Numbers = tuple[float, ...]


class MotionTable:
    """The responses of records as columns of numbers; those of new records are appended.

    Between two steps only the newest records of a cell change, so only new ones are read; after any other
    change all of them are read again.

    Args:
        read: returns the responses of a record, `width` numbers each.
        width: the number of numbers of a response.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> table = MotionTable(lambda record: [(float(record.n), record.outcome.score)], 2)
        >>> records = [Record(i, "s", "1", ((Outcome("t", 0.5, False), 1.0),), i + 1, AgentClock()) for i in range(3)]
        >>> table.columns(records)
        array([[1. , 2. , 3. ],
               [0.5, 0.5, 0.5]])
    """

    def __init__(self, read: Callable[[Record], Sequence[Numbers]], width: int) -> None:
        self._read = read
        self._records: list[Record] = []
        self._rows = 0
        self._numbers = np.empty((width, 64))

    def columns(self, records: Sequence[Record]) -> NDArray[np.float64]:
        """The responses of these records.

        Args:
            records: in the order of memory.

        Returns:
            An array of shape (width, R) for R responses; it is overwritten by the next call.
        """
        known = len(self._records)
        # Lists of identical objects are compared by identity, which is fast.
        if self._records != records[:known]:
            known = self._rows = 0
        new = [numbers for record in records[known:] for numbers in self._read(record)]
        end = self._rows + len(new)
        if end > self._numbers.shape[1]:
            grown = np.empty((self._numbers.shape[0], 2 * end))
            grown[:, : self._rows] = self._numbers[:, : self._rows]
            self._numbers = grown
        if new:
            self._numbers[:, self._rows : end] = np.array(new).T
        self._records, self._rows = list(records), end
        return self._numbers[:, :end]


class MountainCarMatching:
    r"""Cells of position and velocity; outcomes are compared without the pull of gravity.

    States of a car rarely recur as equal texts (`Exact` never matches there), so states are the same when
    they are in one cell. Within a cell of width .1 gravity changes the velocity by up to 7.5e-4 more or less,
    while a drift of the force from .001 to .0008 changes it by 2e-4: so the part of gravity, g cos(3x) on
    Gymnasium's track, is subtracted first. The shape of the track is declared prior knowledge; g is fitted
    (`learn`) to pairs of steps with the same action, where the force cancels, by `weigh_slopes`, robust
    to a few false responses or steps around a drift of the force. Only the newest `window` pairs count, so
    that a drift of gravity is tracked. With fewer than `minimum` pairs all motions are the same.

    Two outcomes are the same when

    * the residual changes of velocity agree within `tolerance`. Where a wall or the speed limit hid the
      change, one bound of it is known, and outcomes differ only if that bound implies it;
    * the changes of position beyond the velocity agree within `tolerance`, away from the walls;
    * no car passed the position of the other one's end without ending (ends are on the right);
    * the scores are equal, if both ended or neither did.

    Args:
        position: the width of a cell in position; positive. A realignment affects a whole cell: with `.1`
            a dozen surprises realign the whole valley, with `.02` sixty.
        velocity: the width of a cell in velocity, or `None` for one cell: accelerations do not depend on it.
        tolerance: the tolerated difference of changes of velocity; positive. Rounding to six
            decimals makes about 2e-6.
        minimum: the number of pairs of steps before g is used; at least 2.
        window: the number of newest pairs to which g is fitted; at least `minimum`.

    Raises:
        ArgumentError: if an argument breaks its rule.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> rule = MountainCarMatching()
        >>> left, right = '{"position": -0.58, "velocity": 0.0}', '{"position": -0.52, "velocity": 0.01}'
        >>> rule.state_key(left) == rule.state_key(right)
        True
        >>> for i in range(40):
        ...     x = -0.6 + 0.01 * i
        ...     v = 0.001 - 0.0025 * math.cos(3 * x)
        ...     before = f'{{"position": {x:.6f}, "velocity": 0.0}}'
        ...     after = Outcome(f'{{"position": {x + v:.6f}, "velocity": {v:.6f}}}', 0.0, False)
        ...     rule.learn(Experience(before, "2", after, -1.0, AgentClock(0, i)))
        >>> round(rule.gravity, 5)
        -0.0025
    """

    name = "mountain_car"

    def __init__(
        self,
        *,
        position: float = 0.1,
        velocity: float | None = None,
        tolerance: float = 1e-4,
        minimum: int = 10,
        window: int = 100,
    ) -> None:
        self.position = check_interval("position", position, "(0, inf)")
        self.velocity = check_interval("velocity", velocity, "(0, inf)", optional=True)
        self.tolerance = check_interval("tolerance", tolerance, "(0, inf)")
        check_count("window", window, check_count("minimum", minimum, 2))
        self.minimum, self.window = minimum, window
        # Slope and run of each pair, the oldest first; and sorted.
        self._pairs: deque[tuple[float, float]] = deque()
        self._slopes: list[tuple[float, float]] = []
        self._last: dict[str, tuple[float, float]] = {}
        self._gravity: float | None = None
        self._tables: dict[tuple[Hashable, str], MotionTable] = {}

    @property
    def gravity(self) -> float | None:
        """g, negative on a hill that pulls; `None` while there are too few pairs."""
        return self._gravity

    def state_key(self, state: str) -> Hashable:
        """The cell of position and velocity, counted from zero.

        Raises:
            ArgumentError: if the text is not the state of a car.
        """
        return _cell(state, self.position, self.velocity)

    def path_key(self, state: str) -> Hashable:
        """The cell of position and velocity for paths through memory (`drift_agents.envs.matching.PathMatching`).

        Raises:
            ArgumentError: if the text is not the state of a car.
        """
        return _cell(state, *PATH_CELL)

    def same_outcome(self, a: Transition, b: Transition) -> bool:
        """Whether both are the same response, given the known bounds."""
        first, second = read_motion(a.state, a.outcome.state), read_motion(b.state, b.outcome.state)
        if a.outcome.ended != b.outcome.ended:
            ended, passed = (first, second) if a.outcome.ended else (second, first)
            if passed.x2 >= ended.x2:
                return False
        elif a.outcome.score != b.outcome.score:
            return False
        # With `nan` at a wall this comparison is false.
        if abs(first.slide - second.slide) > self.tolerance:
            return False
        if self._gravity is None:
            return True
        hill = self._gravity * (first.hill - second.hill)
        return first.low - second.high - hill <= self.tolerance and second.low - first.high + hill <= self.tolerance

    def count_same(self, transition: Transition, records: Sequence[Record]) -> float:
        """The number of responses of the records with the same outcome.

        Args:
            transition: the transition.
            records: those of the same cell and action.
        """
        if len(records) < FEW:
            same = 0.0
            for record in records:
                for outcome, p in record.outcomes:
                    if self.same_outcome(transition, Transition(record.state, record.action, outcome)):
                        same += p * record.n
            return same
        key = self.state_key(transition.state), transition.action
        if key not in self._tables:
            self._tables[key] = MotionTable(_responses, len(_Columns._fields))
        others = _Columns(*self._tables[key].columns(records))
        alike = self._are_alike(transition, others)
        # Summed in order, as in the loop above, so that results are equal to the last bit.
        return float(np.cumsum(others.weight[alike])[-1]) if alike.any() else 0.0

    def _are_alike(self, transition: Transition, others: _Columns) -> NDArray[np.bool_]:
        """`same_outcome` with many others, by columns."""
        one, ended = read_motion(transition.state, transition.outcome.state), transition.outcome.ended
        passed = others.x2 < one.x2 if ended else one.x2 < others.x2
        alike: NDArray[np.bool_] = np.where(others.ended != ended, passed, others.score == transition.outcome.score)
        alike &= ~(np.abs(one.slide - others.slide) > self.tolerance)
        if self._gravity is not None:
            hill = self._gravity * (one.hill - others.hill)
            alike &= one.low - others.high - hill <= self.tolerance
            alike &= others.low - one.high + hill <= self.tolerance
        return alike

    def learn(self, experience: Experience) -> None:
        """Pair the step with the last one of the same action, and fit g."""
        motion = read_motion(experience.state, experience.outcome.state)
        if motion.low != motion.high:
            return
        last = self._last.setdefault(experience.action, (motion.hill, motion.low))
        run, rise = motion.hill - last[0], motion.low - last[1]
        if abs(run) < CLOSE:
            return
        self._last[experience.action] = motion.hill, motion.low
        if len(self._pairs) == self.window:
            del self._slopes[bisect_left(self._slopes, self._pairs.popleft())]
        pair = rise / run, abs(run)
        self._pairs.append(pair)
        insort(self._slopes, pair)
        if len(self._pairs) >= self.minimum:
            self._gravity = weigh_slopes(self._slopes)


class _Columns(NamedTuple):
    """Many responses: what `same_outcome` needs of each, and its number of responses, as columns."""

    x2: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    hill: NDArray[np.float64]
    slide: NDArray[np.float64]
    ended: NDArray[np.float64]
    score: NDArray[np.float64]
    weight: NDArray[np.float64]


def _responses(record: Record) -> list[tuple[float, ...]]:
    """The responses of a record, each with the fields of `_Columns`."""
    found: list[tuple[float, ...]] = []
    for outcome, p in record.outcomes:
        motion = read_motion(record.state, outcome.state)
        numbers = motion.x2, motion.low, motion.high, motion.hill, motion.slide
        found.append((*numbers, float(outcome.ended), outcome.score, p * record.n))
    return found


@lru_cache(maxsize=1 << 16)
def cell_of(numbers: tuple[float, ...], widths: tuple[float, ...]) -> tuple[int, ...]:
    """The cell of a list of numbers, counted from zero.

    Args:
        numbers: the numbers.
        widths: the width of a cell, for each of them.

    Example:
        >>> cell_of((-0.6, 0.01), (0.1, 0.01))
        (-6, 1)
    """
    # The small addition corrects rounding: -0.6 / 0.1 is -5.999999999999999.
    return tuple(math.floor(number / width + 1e-9) for number, width in zip(numbers, widths, strict=True))


@lru_cache(maxsize=1 << 16)
def _cell(state: str, position: float, velocity: float | None) -> Hashable:
    x, v = read_state(state)
    return cell_of((x,), (position,))[0] if velocity is None else cell_of((x, v), (position, velocity))


class MountainCarFacts(PlainFacts):
    """Position and velocity.

    Example:
        >>> MountainCarFacts().describe_state('{"position": -0.5, "velocity": 0.010}')
        'position -0.5, velocity 0.010'
    """

    def describe_state(self, state: str) -> str:
        """Position and velocity, with the digits of the state."""
        data = json.loads(state, parse_float=str)
        return f"position {data['position']}, velocity {data['velocity']}"

    def brief_fields(self, view: PromptView) -> Mapping[str, str]:
        """`position` and `velocity`, rounded."""
        data = json.loads(view.state)
        return {"position": f"{data['position']:.2f}", "velocity": f"{data['velocity']:.4f}"}

    def brief_outcome(self, item: Recollection) -> str:
        """The change of the velocity."""
        before, after = (json.loads(state)["velocity"] for state in (item.state, item.outcome.state))
        return f"velocity {after - before:+.4f}"

    def brief_end(self, item: Recollection) -> str:
        """The position where it ended."""
        return f"position {json.loads(item.outcome.state)['position']:.2f}"

    def goal(self, task: str) -> str:
        """The task without what the actions do, which the template shows elsewhere."""
        return without_meanings(task)

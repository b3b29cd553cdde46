"""HOW: with which weight each occurrence of a drift counts at each tick.

* `weight` - the curve of a ramp
* `DriftEffect` - how many occurrences count in full at each tick, and which count in part
* `DriftRamp` - one drift over time: its occurrences and their weights
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from drift_envs.schedule.model import Drift, Steps
from drift_envs.schedule.occurrences import occurrences_of
from drift_envs.schedule.streams import RandomStream, UniformStream

_SIGMOID_SLOPE = 12.0
_EXPONENT = 5.0


def weight(progress: np.ndarray, curve: str | Steps) -> np.ndarray:
    """The weight of the new value along a ramp.

    Args:
        progress: the elapsed share u of the ramp; values outside of [0, 1] are cut.
        curve: `linear` (u), `sigmoid` (logistic(12 (u - .5)), rescaled to reach 0 and 1),
            `exponential` ((1 - e^-5u) / (1 - e^-5)) or `Steps` (floor(u m) / m).

    Returns:
        Weights in [0, 1], exactly 0 at u = 0 and exactly 1 at u = 1.

    Example:
        >>> weight(np.array([0.0, 0.5, 1.0]), "sigmoid")
        array([0. , 0.5, 1. ])
        >>> weight(np.array([0.3, 0.5, 1.0]), Steps(steps=2))
        array([0. , 0.5, 1. ])
    """
    u: np.ndarray = np.clip(progress, 0.0, 1.0)
    if isinstance(curve, Steps):
        risen: np.ndarray = np.floor(u * curve.steps) / curve.steps
    elif curve == "sigmoid":
        low = 1 / (1 + math.exp(_SIGMOID_SLOPE / 2))
        risen = (1 / (1 + np.exp(-_SIGMOID_SLOPE * (u - 0.5))) - low) / (1 - 2 * low)
    elif curve == "exponential":
        risen = np.expm1(-_EXPONENT * u) / math.expm1(-_EXPONENT)
    else:
        return u
    risen = np.clip(risen, 0.0, 1.0)
    # rounding must not leave a rest of the old value when the ramp is up, nor a trace of the new before
    risen[u >= 1.0] = 1.0
    risen[u <= 0.0] = 0.0
    return risen


class DriftEffect(NamedTuple):
    """What a drift does at some ticks.

    Args:
        done: how many occurrences, counted from the first, count in full at each tick.
        partial: occurrences beyond them: pairs of their indices and their weights at each tick; a weight
            of 0 means that the index says nothing.
    """

    done: np.ndarray
    partial: tuple[tuple[np.ndarray, np.ndarray], ...]

    def last(self) -> np.ndarray:
        """The index of the last occurrence that counts at each tick, -1 where none does."""
        found = self.done - 1
        for index, share in self.partial:
            found = np.where(share > 0, index, found)
        return found

    def pick(self, ticks: slice | np.ndarray) -> DriftEffect:
        """The effect at some of the ticks."""
        return DriftEffect(self.done[ticks], tuple((index[ticks], share[ticks]) for index, share in self.partial))

    def differs(self, other: DriftEffect) -> np.ndarray:
        """At which ticks both say something else, whatever is written beside weights of 0."""
        found: np.ndarray = self.done != other.done
        for (index, share), (other_index, other_share) in zip(self.partial, other.partial, strict=True):
            found = found | (share != other_share) | ((share > 0) & (index != other_index))
        return found


class DriftRamp:
    """One drift over time: a pure function of (drift, stream, tick).

    Args:
        drift: the drift.
        stream: the source of its random numbers.

    Example:
        >>> drift = Drift.model_validate(
        ...     {"name": "thaw", "at": 10, "kind": "incremental", "over": 4, "set": {"slip": 0.5}}
        ... )
        >>> ramp = DriftRamp(drift, RandomStream(0, 0))
        >>> ramp.effect(np.array([9, 11, 14])).partial[0][1]
        array([0.  , 0.25, 0.  ])
        >>> ramp.effect(np.array([9, 11, 14])).done
        array([0, 0, 1])
    """

    def __init__(self, drift: Drift, stream: RandomStream) -> None:
        self.drift = drift
        self.occurrences = occurrences_of(drift, stream)
        self.over = drift.over or 0
        self._coins = UniformStream(stream) if drift.kind == "gradual" else None

    def effect(self, ticks: np.ndarray) -> DriftEffect:
        """Which occurrences count at these ticks, and how much."""
        return self._windowed(ticks) if self.drift.duration is not None else self._accumulated(ticks)

    def until(self, tick: int) -> int:
        """A later tick up to which (excluded) the effect surely stays as it is at `tick`."""
        occurrences, at = self.occurrences, np.array([tick], np.int64)
        following = occurrences.after(tick)
        if self.drift.duration is None:
            ramping = self.over and occurrences.count(at)[0] > occurrences.count(at - self.over)[0]
            return tick + 1 if ramping else following
        window = occurrences.window(at)
        if window.run[0] < 0:
            return following
        start, end = int(window.start[0]), int(window.end[0])
        if not self.over:
            return min(end, following)
        if tick < start + self.over or tick >= end - self.over:
            return tick + 1
        return min(end - self.over, following)

    def _accumulated(self, ticks: np.ndarray) -> DriftEffect:
        count = self.occurrences.count(ticks)
        if not self.over:
            return DriftEffect(count, ())
        done = self.occurrences.count(ticks - self.over)
        partial = []
        for nth in range(int((count - done).max())):
            index = done + nth
            started = index < count
            elapsed = ticks - self.occurrences.start(np.where(started, index, 0))
            share = np.where(started, self._share(ticks, elapsed), 0.0)
            partial.append((index, share))
        return DriftEffect(done, tuple(partial))

    def _windowed(self, ticks: np.ndarray) -> DriftEffect:
        window = self.occurrences.window(ticks)
        share = (window.run >= 0).astype(float)
        if self.over:
            # rising and falling never meet, since a ramp takes at most half of the duration
            nearer = np.minimum(ticks - window.start, window.end - ticks)
            share *= self._share(ticks, nearer)
        return DriftEffect(np.zeros(ticks.shape, np.int64), ((window.run, share),))

    def _share(self, ticks: np.ndarray, elapsed: np.ndarray) -> np.ndarray:
        share = weight(elapsed / self.over, self.drift.curve)
        if self._coins is not None:
            mixed = (share > 0) & (share < 1)
            if mixed.any():
                share[mixed] = self._coins.at(ticks[mixed]) < share[mixed]
        return share

"""HOW and WHAT: how much of a drift holds, and the value of one knob, folded from the base through the layers on it.

A numeric knob folds in floating-point arrays and is reflected at its bounds; any other folds once for every combination
of the states of its layers. Walks and chains of choices are running sums of random steps with random access.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from drift_envs.knobs import HUGE, Knob, Value, draws_once, powers, reflect, swapped
from drift_envs.schedule.model import Drift, Steps
from drift_envs.schedule.occurrences import Blocks, Purpose, RandomStream, UniformStream, occurrences_of

_MOST_STATES = 4096
_SIGMOID_SLOPE = 12.0
_EXPONENT = 5.0

Below = Callable[[int], Value]
"""The value that the layers beneath give at a tick."""


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


class WalkSteps(ABC):
    """How steps are drawn: one by one, or first the sum of many."""

    @abstractmethod
    def draw(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """That many steps.

        Args:
            generator: draws them.
            size: how many.
        """

    @abstractmethod
    def draw_sum(self, generator: np.random.Generator, size: int) -> Any:
        """The sum of that many steps.

        Args:
            generator: draws it.
            size: how many steps.
        """

    @abstractmethod
    def draw_with_sum(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """That many steps, whose sum is the one that `draw_sum` draws from an equal generator.

        Args:
            generator: draws the sum, and then the steps.
            size: how many.
        """


class NormalSteps(WalkSteps):
    """Normal steps."""

    def __init__(self, sigma: float) -> None:
        self._sigma = sigma

    def draw(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """That many steps."""
        return generator.normal(0.0, self._sigma, size)

    def draw_sum(self, generator: np.random.Generator, size: int) -> float:
        """The sum of that many steps, which is normal too."""
        return float(generator.normal(0.0, self._sigma * size**0.5))

    def draw_with_sum(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """That many steps with a sum: deviations from the mean of normal steps do not depend on it."""
        total = self.draw_sum(generator, size)
        steps = self.draw(generator, size)
        steps += (total - steps.sum()) / size
        return steps


class CircleSteps(WalkSteps):
    """Steps of 1 to m - 1 around a circle of m places, so that none ends where it began.

    Args:
        places: how many there are.
    """

    def __init__(self, places: int) -> None:
        self._lengths = np.arange(1, places)

    def draw(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """That many steps."""
        return generator.integers(1, len(self._lengths) + 1, size)

    def draw_sum(self, generator: np.random.Generator, size: int) -> int:
        """The sum of that many steps, by how many there are of each length."""
        return int(self._draw_counts(generator, size) @ self._lengths)

    def draw_with_sum(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """That many steps with a sum: all orders of the same lengths are equally likely."""
        return generator.permutation(np.repeat(self._lengths, self._draw_counts(generator, size)))

    def _draw_counts(self, generator: np.random.Generator, size: int) -> np.ndarray:
        return generator.multinomial(size, np.full(len(self._lengths), 1 / len(self._lengths)))


class RandomWalk(Blocks[tuple[np.ndarray, np.ndarray], Any]):
    """The running sum of random steps.

    Args:
        generator: gives the generator of a block.
        steps: how steps are drawn.

    Example:
        >>> from drift_envs.schedule.occurrences import Purpose, RandomStream
        >>> stream = RandomStream(0, 0)
        >>> ones = RandomWalk(lambda block: stream.generator(Purpose.WALK, block), CircleSteps(2))
        >>> ones.totals(np.array([0, 1, 300, 50_000_000]))
        array([       1,        2,      301, 50000001])
    """

    def __init__(self, generator: Callable[[int], np.random.Generator], steps: WalkSteps) -> None:
        super().__init__(0)
        self._generator, self._steps = generator, steps

    def totals(self, events: np.ndarray) -> np.ndarray:
        """The sum of all steps up to and with each event.

        Args:
            events: indices of steps.
        """
        return self.gather(events, lambda block: block[1])

    def increments(self, events: np.ndarray) -> np.ndarray:
        """The step of each event.

        Args:
            events: indices of steps.
        """
        return self.gather(events, lambda block: block[0])

    def _leap(self, number: int, size: int, carry: Any) -> Any:
        return carry + self._steps.draw_sum(self._generator(number), size)

    def _build(self, number: int, size: int, carry: Any) -> tuple[tuple[np.ndarray, np.ndarray], Any]:
        draw = self._steps.draw_with_sum if self.is_far(number) else self._steps.draw
        increments = draw(self._generator(number), size)
        totals = np.cumsum(increments) + carry
        return (increments, totals), totals[-1]


class DriftLayer:
    """What one drift does to one knob.

    Args:
        ramp: the drift over time.
        knob: the knob.
        operation: `set`, `add`, `scale`, `swap`, `choice` or `walk`.
        written: what the schedule says.
        stream: the source of the drift's random numbers.
        below: the value that the layers beneath give at a tick.

    Attributes:
        argument: what the schedule says, with canonical values; as it is written where values are drawn.
        drawn: the values that occurrences of a `set` have drawn, by occurrence; `None` if it draws none.
        varies: whether the occurrences of a `set` have values of their own.
        sums: the running sums of a walk or a chain of choices.
    """

    sums: RandomWalk

    def __init__(
        self, ramp: DriftRamp, knob: Knob, operation: str, written: Any, stream: RandomStream, below: Below
    ) -> None:
        self.ramp, self.knob, self.operation, self.argument = ramp, knob, operation, written
        self.drawn: dict[int, Value] | None = {} if operation == "set" and knob.is_drawn(written) else None
        self.varies = self.drawn is not None and not draws_once(written)
        self._stream, self._below = stream, below
        self._last_before: int | None = None
        if operation == "set" and self.drawn is None:
            self.argument = knob.canonical(written)
        elif operation == "walk":
            self.sums = RandomWalk(lambda block: stream.generator(Purpose.WALK, knob.name, block), NormalSteps(written))
        elif operation == "choice":
            self.argument = tuple(map(knob.canonical, written))
            steps = CircleSteps(len(written))
            self.sums = RandomWalk(lambda block: stream.generator(Purpose.CHOICE, knob.name, block), steps)

    def option(self, occurrences: np.ndarray) -> np.ndarray:
        """Which option each occurrence of a `choice` draws."""
        if self._last_before is None:
            self._last_before = self._option_before()
        return (self.sums.totals(occurrences) + self._last_before) % len(self.argument)

    def value(self, occurrence: int) -> Value:
        """The value that an occurrence of a `set` gives."""
        if self.drawn is None:
            return self.argument
        if not self.varies:
            occurrence = 0
        if occurrence not in self.drawn:
            start = int(self.ramp.occurrences.start(np.array([occurrence]))[0])
            generator = self._stream.generator(Purpose.DRAW, self.knob.name, occurrence)
            if len(self.drawn) >= _MOST_STATES:
                self.drawn.clear()
            self.drawn[occurrence] = self.knob.sample(self.argument, self._below(start), generator)
        return self.drawn[occurrence]

    def _option_before(self) -> int:
        # the first choice differs from the value that it finds, if that is one of the options
        first = int(self.ramp.occurrences.start(np.array([0]))[0])
        below = self._below(first)
        if below in self.argument:
            return list(self.argument).index(below)
        generator = self._stream.generator(Purpose.CHOICE, self.knob.name)
        return int(generator.integers(len(self.argument)))


class Column(ABC):
    """The value of one knob: a base and the layers on it, in file order.

    Args:
        knob: the knob.
        base: gives its canonical value without any drift.
    """

    def __init__(self, knob: Knob, base: Callable[[], Value]) -> None:
        self.knob, self._base = knob, base
        self.layers: list[DriftLayer] = []

    def at(self, tick: int, layers: int) -> Value:
        """The value at a tick that the base and the first so many layers give."""
        ticks = np.array([tick], np.int64)
        effects = [layer.ramp.effect(ticks) for layer in self.layers[:layers]]
        return self.values(effects, 1)[0]

    @abstractmethod
    def fold(self, effects: Sequence[DriftEffect], size: int) -> np.ndarray:
        """One number a tick, equal where the values are equal.

        Args:
            effects: the effect of each layer, from the lowest; further layers are left out.
            size: how many ticks there are.
        """

    @abstractmethod
    def decode(self, numbers: np.ndarray) -> list[Value]:
        """The canonical values that stand behind the numbers of `fold`."""

    def values(self, effects: Sequence[DriftEffect], size: int) -> list[Value]:
        """The canonical value at each tick."""
        return self.decode(self.fold(effects, size))


class NumberColumn(Column):
    """A numeric knob: the layers fold in floating-point arrays; the result is reflected, integers are rounded."""

    def fold(self, effects: Sequence[DriftEffect], size: int) -> np.ndarray:
        """The value at each tick."""
        values = np.full(size, float(self._base()))
        for layer, effect in zip(self.layers, effects, strict=False):
            values = self._apply(layer, effect, values)
        if self.knob.bounds is not None:
            values = reflect(values, *map(float, self.knob.bounds))
        return np.rint(values) if self.knob.kind == "integer" else values

    def decode(self, numbers: np.ndarray) -> list[Value]:
        """The values as Python's own numbers."""
        decoded: list[Value] = numbers.astype(np.int64).tolist() if self.knob.kind == "integer" else numbers.tolist()
        return decoded

    def _apply(self, layer: DriftLayer, effect: DriftEffect, values: np.ndarray) -> np.ndarray:
        done = effect.done
        if layer.operation in ("set", "choice"):
            some = done > 0
            if some.any():
                values = np.where(some, self._targets(layer, done - 1, some), values)
        elif layer.operation == "add":
            values = values + done * layer.argument
        elif layer.operation == "scale":
            with np.errstate(over="ignore", under="ignore"):
                values = values * powers(layer.argument, done)
        else:
            some = done > 0
            if some.any():
                values = values + np.where(some, layer.sums.totals(np.maximum(done - 1, 0)), 0.0)
        for index, share in effect.partial:
            some = share > 0
            if some.any():
                values = self._part(layer, index, share, some, values)
        finite: np.ndarray = np.clip(values, -HUGE, HUGE)
        return finite

    def _part(
        self, layer: DriftLayer, index: np.ndarray, share: np.ndarray, some: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        # (1 - w) old + w new is exactly old at w = 0 and exactly new at w = 1
        mixed: np.ndarray
        if layer.operation in ("set", "choice"):
            mixed = values * (1 - share) + share * self._targets(layer, index, some)
        elif layer.operation == "add":
            mixed = values + share * layer.argument
        elif layer.operation == "scale":
            with np.errstate(over="ignore", under="ignore"):
                mixed = values * ((1 - share) + share * layer.argument)
        else:
            mixed = values + share * layer.sums.increments(np.where(some, index, 0))
        return mixed

    def _targets(self, layer: DriftLayer, index: np.ndarray, some: np.ndarray) -> np.ndarray:
        """The number that each tick's occurrence aims at; anything finite where `some` is false."""
        if layer.operation == "choice":
            drawn: np.ndarray = np.array(layer.argument, float)[layer.option(np.where(some, index, 0))]
            return drawn
        if layer.drawn is None:
            return np.full(index.shape, float(layer.argument))
        found = np.zeros(index.shape)
        for occurrence in np.unique(index[some]).tolist():
            found[some & (index == occurrence)] = layer.value(occurrence)
        return found


class ObjectColumn(Column):
    """A knob whose values are no numbers: a value is computed once for every combination of layer states."""

    def __init__(self, knob: Knob, base: Callable[[], Value]) -> None:
        super().__init__(knob, base)
        self._codes: dict[tuple[int, ...], int] = {}
        self._numbers: dict[Value, int] = {}
        self._values: list[Value] = []

    def fold(self, effects: Sequence[DriftEffect], size: int) -> np.ndarray:
        """A number for the value at each tick."""
        if len(self._codes) >= _MOST_STATES:
            self._codes, self._numbers, self._values = {}, {}, []
        return self._fold(effects, size)

    def at(self, tick: int, layers: int) -> Value:
        """As in `Column`. Folds call it to draw values, so the numbers that are in use must stay valid."""
        ticks = np.array([tick], np.int64)
        (number,) = self._fold([layer.ramp.effect(ticks) for layer in self.layers[:layers]], 1)
        return self._values[number]

    def _fold(self, effects: Sequence[DriftEffect], size: int) -> np.ndarray:
        if not effects:
            return np.full(size, self._number(()))
        states = np.stack([self._states(layer, effect) for layer, effect in zip(self.layers, effects, strict=False)])
        turns = np.flatnonzero((states[:, 1:] != states[:, :-1]).any(axis=0)) + 1
        starts = np.concatenate(([0], turns))
        numbers = [self._number(tuple(states[:, start].tolist())) for start in starts]
        return np.repeat(numbers, np.diff(np.concatenate((starts, [size]))))

    def decode(self, numbers: np.ndarray) -> list[Value]:
        """The values of these numbers."""
        return [self._values[number] for number in numbers.tolist()]

    def _states(self, layer: DriftLayer, effect: DriftEffect) -> np.ndarray:
        """What the layer does at each tick: -1 for nothing, else the option, the occurrence or 0."""
        if layer.operation == "swap":
            swaps = effect.done.copy()
            for _, share in effect.partial:
                swaps += share > 0
            return swaps % 2 - 1
        last = effect.last()
        if layer.operation == "choice":
            some = last >= 0
            return np.where(some, layer.option(np.maximum(last, 0)), -1) if some.any() else last
        return last if layer.varies else np.minimum(last, 0)

    def _number(self, states: tuple[int, ...]) -> int:
        if states not in self._codes:
            value = self._base()
            for layer, state in zip(self.layers, states, strict=False):
                if state >= 0:
                    value = self._applied(layer, state, value)
            if value not in self._numbers:
                self._numbers[value] = len(self._values)
                self._values.append(value)
            self._codes[states] = self._numbers[value]
        return self._codes[states]

    def _applied(self, layer: DriftLayer, state: int, value: Value) -> Value:
        if layer.operation == "choice":
            return layer.argument[state]
        if layer.operation == "swap":
            return swapped(value, layer.argument, self.knob.name)
        return layer.value(state)

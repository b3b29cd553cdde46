"""WHAT: the value of one knob, folded from the base through the layers that lie on it.

A numeric knob folds in floating-point arrays and is reflected at its bounds; any other folds once for every combination
of the states of its layers. Walks and chains of choices are running sums of random steps with random access.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from drift_envs.checks import show
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, Knob, Value, freeze
from drift_envs.schedule.occurrences import Blocks, DriftEffect, DriftRamp, Purpose, RandomStream

_HUGE = 1e300  # keeps repeated scaling finite: infinity times 0 would be no number
_MOST_STATES = 4096

Below = Callable[[int], Value]
"""The value that the layers beneath give at a tick."""


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
        argument: what the schedule says, with canonical values; as it is written where `is_drawn`.
        is_drawn: whether values are drawn from the seed: for each occurrence, or once for all of them.
        stream: the source of the drift's random numbers.
        below: the value that the layers beneath give at a tick.
    """

    def __init__(
        self,
        ramp: DriftRamp,
        knob: Knob,
        operation: str,
        argument: Any,
        is_drawn: bool,
        stream: RandomStream,
        below: Below,
    ) -> None:
        self.ramp, self.knob, self.operation, self.argument = ramp, knob, operation, argument
        self.drawn: dict[int, Value] | None = {} if is_drawn else None
        self.varies = is_drawn and not draws_once(argument)
        """Whether the occurrences of a `set` have values of their own."""
        self._stream, self._below = stream, below
        self._last_before: int | None = None
        self._sums: RandomWalk | None = None
        if operation == "walk":
            self._sums = RandomWalk(
                lambda block: stream.generator(Purpose.WALK, knob.name, block), NormalSteps(argument)
            )
        elif operation == "choice":
            self._sums = RandomWalk(
                lambda block: stream.generator(Purpose.CHOICE, knob.name, block), CircleSteps(len(argument))
            )

    @property
    def sums(self) -> RandomWalk:
        """The running sums of a walk or a chain of choices."""
        if self._sums is None:
            raise KnobError(f"`{self.operation}` draws no numbers")
        return self._sums

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
            if self.knob.draw is None:
                raise KnobError(f"`{self.knob.name}` can't be drawn from the seed")
            start = int(self.ramp.occurrences.start(np.array([occurrence]))[0])
            generator = self._stream.generator(Purpose.DRAW, self.knob.name, occurrence)
            if len(self.drawn) >= _MOST_STATES:
                self.drawn.clear()
            arguments = draw_arguments(self.argument)
            self.drawn[occurrence] = freeze(self.knob.draw(arguments, self._below(start), generator))
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
        finite: np.ndarray = np.clip(values, -_HUGE, _HUGE)
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


def swapped(value: Mapping[str, Value], keys: Sequence[str], name: str) -> FrozenMapping:
    """A mapping in which the values of two keys have changed places.

    Args:
        value: the mapping.
        keys: the two keys.
        name: the knob's name, for the error.

    Raises:
        KnobError: if the mapping lacks one of the keys.

    Example:
        >>> swapped({"3,5": 1.0, "5,5": 0.5}, ["3,5", "5,5"], "goal_rewards")
        FrozenMapping({'3,5': 0.5, '5,5': 1.0})
    """
    one, other = keys
    for key in keys:
        if key not in value:
            raise KnobError(f"`{name}` has no key {key!r} to swap. Received {dict(value)!r}")
    return FrozenMapping({**value, one: value[other], other: value[one]})


def powers(factor: float, counts: np.ndarray) -> np.ndarray:
    """A factor applied so many times, kept finite.

    Example:
        >>> powers(-2.0, np.array([0, 3]))
        array([ 1., -8.])
    """
    with np.errstate(over="ignore", under="ignore"):
        finite: np.ndarray = np.clip(np.power(float(factor), counts), -_HUGE, _HUGE)
        return finite


def reflect(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Takes numbers back between two bounds as a mirror at each of them would.

    Args:
        values: any finite numbers.
        low: the lower bound, may be minus infinity.
        high: the upper bound, may be infinity.

    Returns:
        Numbers in [low, high]; those that were inside are exactly as before.

    Example:
        >>> reflect(np.array([-0.25, 0.5, 1.25, 2.5]), 0.0, 1.0)
        array([0.25, 0.5 , 0.75, 0.5 ])
    """
    inside = (values >= low) & (values <= high)
    if inside.all():
        return values
    if np.isinf(low) or np.isinf(high):
        back = np.where(values < low, 2 * low - values, 2 * high - values)
    elif low == high:
        back = np.full(values.shape, low)
    else:
        span = high - low
        along = np.mod(values - low, 2 * span)
        back = low + np.minimum(along, 2 * span - along)
    return np.where(inside, values, np.clip(back, low, high))


def is_draw(knob: Knob, value: Any) -> bool:
    """Whether a written value is `{draw: {...}}` or `{draw_once: {...}}`: the seed decides what the value is.

    Example:
        >>> is_draw(Knob("map", (), None, "the map", "rows", draw=lambda arguments, below, generator: ()), {"draw": {}})
        True
    """
    return knob.draw is not None and leaves_to_seed(value)


def draws_once(value: Mapping[str, Any]) -> bool:
    """Whether all occurrences of a drift have the value that the first one draws.

    Args:
        value: a written value for which `is_draw` holds.
    """
    return "draw_once" in value


def draw_arguments(value: Mapping[str, Any]) -> Any:
    """What a value is drawn with.

    Args:
        value: a written value for which `is_draw` holds.

    Example:
        >>> draw_arguments({"draw_once": {"move": 4}})
        {'move': 4}
    """
    (arguments,) = value.values()
    return arguments


def leaves_to_seed(value: Any) -> bool:
    """Whether a value is written as `{draw: ...}` or `{draw_once: ...}`, whatever the knob."""
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in ("draw", "draw_once")


def canonical(knob: Knob, value: Any, below: Value | None = None) -> Value:
    """A knob's canonical value for a written one; a drawn value is one example of what may be drawn.

    Args:
        knob: the knob.
        value: what the schedule says.
        below: for drawn values, what the layers beneath give.

    Raises:
        KnobError: if the knob does not allow the value, or can't draw with these arguments.

    Example:
        >>> canonical(Knob("slip", 0.0, (0.0, 1.0), "probability of not moving as intended"), 1)
        1.0
    """
    if knob.draw is None or not is_draw(knob, value):
        return freeze(knob.check(value))
    arguments = draw_arguments(value)
    if not isinstance(arguments, Mapping):
        raise KnobError(f"`{next(iter(value))}` should be a mapping of arguments. Received {show(arguments)}")
    return freeze(knob.draw(arguments, below, np.random.default_rng(0)))

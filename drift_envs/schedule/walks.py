"""The running sum of random steps.

* `RandomWalk` - the sum up to any step
* `WalkSteps` - how steps, and sums of many, are drawn
* `NormalSteps` - those of a `walk`
* `CircleSteps` - those of a `choice`
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from drift_envs.schedule.streams import Blocks


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
    """Normal steps.

    Args:
        sigma: their standard deviation.
    """

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
        >>> from drift_envs.schedule.streams import Purpose, RandomStream
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

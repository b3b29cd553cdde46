"""Random numbers of a vector environment: column i belongs to sub-environment i.

* `StepDraws` - one number a step for each sub-environment
* `SideDraws`, `half_threshold` - the same as integers, for events with two equally likely sides
* `EpisodeDraws` - one number for each episode of each sub-environment, in any order

The random streams of the sub-environments are independent: each step consumes its numbers whether they
are used or not, and the number of an episode is a function of seed, column and episode alone.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

_BATCH = 32_768  # numbers drawn at once: few calls, and the block fits into the processor's cache
_EPISODES = 64  # in a block of `EpisodeDraws`
_KEPT = 4  # blocks of `EpisodeDraws`
_EPISODE_TAG = 0xE915


class StepDraws:
    """One number a step for each sub-environment, uniform in [0, 1).

    Args:
        number: the number of sub-environments, N.
    """

    def __init__(self, number: int) -> None:
        self._block = np.empty((max(1, _BATCH // number), number))
        self._next = len(self._block)

    def restart(self) -> None:
        """Discard the numbers drawn ahead, after a change of the generator."""
        self._next = len(self._block)

    def step(self, generator: np.random.Generator) -> np.ndarray:
        """The numbers of the next step.

        Args:
            generator: the generator to draw from.

        Returns:
            Numbers of shape `(N,)`, valid until the next call.
        """
        if self._next == len(self._block):
            generator.random(out=self._block)
            self._next = 0
        self._next += 1
        numbers: np.ndarray = self._block[self._next - 1]
        return numbers


class SideDraws:
    """An integer u from 0 to 2**32 - 1 a step for each sub-environment, and its complement 2**32 - 1 - u.

    Each of the two is below a threshold h with probability h / 2**32, and never both if h is at most
    2**31: two comparisons decide whether an agent slips, and to which side. 32 random bits are half of
    what a number in [0, 1) takes.

    Args:
        number: the number of sub-environments, N.
    """

    def __init__(self, number: int) -> None:
        rows = max(2, _BATCH // number // 2 * 2)  # numbers are drawn in pairs
        self._block = np.empty((2, rows, number), np.uint32)
        self._next = rows

    def restart(self) -> None:
        """Discard the numbers drawn ahead, after a change of the generator."""
        self._next = self._block.shape[1]

    def step(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the next step.

        Args:
            generator: the generator to draw from.

        Returns:
            u and its complement, shape `(N,)` each, valid until the next call.
        """
        ones, others = self._block
        if self._next == len(ones):
            bits: Any = generator.bit_generator
            ones.reshape(-1)[:] = bits.random_raw(ones.size // 2).view(np.uint32)
            np.invert(ones, out=others)
            self._next = 0
        self._next += 1
        return ones[self._next - 1], others[self._next - 1]


def half_threshold(probability: np.ndarray) -> np.ndarray:
    """The threshold for `SideDraws` at which each side has half of a probability, to 32 bits.

    Args:
        probability: probabilities, shape `(K,)`.

    Example:
        >>> half_threshold(np.array([0.0, 0.5, 1.0])).tolist()
        [0, 1073741824, 2147483648]
    """
    return np.rint(probability * 2.0**31).astype(np.uint32)


class EpisodeDraws:
    """One number for each episode of each sub-environment, uniform in [0, 1).

    Args:
        seed: at least 0.
        number: the number of sub-environments.

    Example:
        >>> numbers = EpisodeDraws(7, 3).at(np.array([0, 1]), np.array([100, 2]))
        >>> bool(numbers[1] == EpisodeDraws(7, 3).at(np.array([1]), np.array([2]))[0])
        True
    """

    def __init__(self, seed: int, number: int) -> None:
        self._seed, self._number = seed, number
        self._blocks: OrderedDict[int, np.ndarray] = OrderedDict()

    def at(self, indices: np.ndarray, episodes: np.ndarray) -> np.ndarray:
        """The numbers of the given episodes, shape `(K,)`.

        Args:
            indices: sub-environments, shape `(K,)`.
            episodes: the episode of each, counted from the last rewind, shape `(K,)`.
        """
        blocks, rows = np.divmod(episodes, _EPISODES)
        found = np.empty(len(indices))
        for number in np.unique(blocks).tolist():
            mask = blocks == number
            found[mask] = self._block(number)[rows[mask], indices[mask]]
        return found

    def _block(self, number: int) -> np.ndarray:
        if number not in self._blocks:
            generator = np.random.default_rng([self._seed, _EPISODE_TAG, number])
            self._blocks[number] = generator.random((_EPISODES, self._number))
            if len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
        return self._blocks[number]

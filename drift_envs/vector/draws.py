"""Random numbers of a vector environment: column i belongs to sub-environment i.

* `StepDraws` - one number a step for each sub-environment
* `SideDraws`, `half_threshold` - the same as integers, for events with two equally likely sides
* `Share` - the columns of one process
* `draw_rows` - rows of numbers, of which one process draws its columns
* `EpisodeDraws` - one number for each episode of each sub-environment, in any order

The random streams of the sub-environments are independent: each step consumes its numbers whether they
are used or not, and the number of an episode is a function of seed, column and episode alone.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

_BATCH = 32_768  # numbers drawn at once: few calls, and the block fits into the processor's cache
_EPISODES = 64  # in a block of `EpisodeDraws`
_KEPT = 4  # blocks of `EpisodeDraws`
_EPISODE_TAG = 0xE915


class Share(NamedTuple):
    """The sub-environments of one process: it draws their numbers, and skips those of the other processes.

    Args:
        total: the number of sub-environments of all processes.
        first: the first of this process.
        number: how many there are in this process.
    """

    total: int
    first: int
    number: int

    @property
    def columns(self) -> slice:
        """The columns of this process."""
        return slice(self.first, self.first + self.number)


def draw_rows(generator: np.random.Generator, rows: np.ndarray, part: Share) -> None:
    """Draw the columns of one process from rows of one number in [0, 1) for each sub-environment.

    Args:
        generator: the generator, which has moved on by all columns then; of `PCG64` if others are skipped.
        rows: written, shape `(rows, N)`.
        part: the N sub-environments of this process.

    Example:
        >>> rows = np.empty((2, 2))
        >>> draw_rows(np.random.default_rng(0), rows, Share(5, 1, 2))
        >>> bool((rows == np.random.default_rng(0).random((2, 5))[:, 1:3]).all())
        True
    """
    if part.number == part.total:
        generator.random(out=rows)
        return
    bits: Any = generator.bit_generator
    for row in rows:
        bits.advance(part.first)
        generator.random(out=row)
        bits.advance(part.total - part.first - part.number)


class StepDraws:
    """One number a step for each sub-environment, uniform in [0, 1).

    Args:
        part: the N sub-environments of this process.
    """

    def __init__(self, part: Share) -> None:
        self._block = np.empty((max(1, _BATCH // part.total), part.number))
        self._part = part
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
            draw_rows(generator, self._block, self._part)
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
        part: the N sub-environments of this process.
    """

    def __init__(self, part: Share) -> None:
        rows = max(2, _BATCH // part.total // 2 * 2)  # numbers are drawn in pairs
        self._block = np.empty((2, rows, part.number), np.uint32)
        self._part = part
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
            self._draw(generator.bit_generator, ones)
            np.invert(ones, out=others)
            self._next = 0
        self._next += 1
        return ones[self._next - 1], others[self._next - 1]

    def _draw(self, bits: Any, rows: np.ndarray) -> None:
        """Draw pairs of numbers; those of other processes are skipped."""
        total, first, number = self._part
        if number == total:
            rows.reshape(-1)[:] = bits.random_raw(rows.size // 2).view(np.uint32)
            return
        drawn = 0  # pairs
        for index, row in enumerate(rows):
            start = index * total + first
            before, after = start // 2, -(-(start + number) // 2)
            bits.advance(before - drawn)
            row[:] = bits.random_raw(after - before).view(np.uint32)[start % 2 :][:number]
            drawn = after
        bits.advance(len(rows) * total // 2 - drawn)


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
        part: the sub-environments of this process.

    Example:
        >>> draws = EpisodeDraws(7, Share(3, 0, 3))
        >>> numbers = draws.at(np.array([0, 1]), np.array([100, 2]))
        >>> bool(numbers[1] == EpisodeDraws(7, Share(3, 1, 2)).at(np.array([0]), np.array([2]))[0])
        True
    """

    def __init__(self, seed: int, part: Share) -> None:
        self._seed, self._part = seed, part
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
            self._blocks[number] = np.empty((_EPISODES, self._part.number))
            draw_rows(generator, self._blocks[number], self._part)
            if len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
        return self._blocks[number]

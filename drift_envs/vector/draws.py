"""Random numbers of a vector environment: column i belongs to sub-environment i.

* `StepDraws` - one number a step for every sub-environment
* `SideDraws`, `half_threshold` - the same as whole numbers, for what may happen to two sides
* `EpisodeDraws` - one number for every episode of every sub-environment, in any order

What one sub-environment does never changes the numbers of another: a step uses up its numbers whether
they are needed or not, and the number of an episode depends on nothing but seed, column and episode.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

_BATCH = 32_768  # numbers that are drawn at once: few calls, and they stay in the processor's cache
_EPISODES = 64
_KEPT = 4
_EPISODE_TAG = 0xE915


class StepDraws:
    """One number a step for every sub-environment, uniform in [0, 1).

    Args:
        number: how many sub-environments, N.
    """

    def __init__(self, number: int) -> None:
        self._block = np.empty((max(1, _BATCH // number), number))
        self._next = len(self._block)

    def restart(self) -> None:
        """Throw away what was drawn ahead: the generator is another one."""
        self._next = len(self._block)

    def step(self, generator: np.random.Generator) -> np.ndarray:
        """The numbers of the next step.

        Args:
            generator: where they come from.

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
    """One whole number u from 0 to 2**32 - 1 a step for every sub-environment, and 2**32 - 1 - u beside it.

    With a threshold h the first is below it with probability h / 2**32, and so is the second, and never
    both as long as h is at most 2**31: the two sides to which something may slip, in two comparisons.
    Half of the bits that a number in [0, 1) takes are enough.

    Args:
        number: how many sub-environments, N.
    """

    def __init__(self, number: int) -> None:
        rows = max(2, _BATCH // number // 2 * 2)  # numbers are drawn in pairs
        self._block = np.empty((2, rows, number), np.uint32)
        self._next = rows

    def restart(self) -> None:
        """Throw away what was drawn ahead: the generator is another one."""
        self._next = self._block.shape[1]

    def step(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the next step.

        Args:
            generator: where they come from.

        Returns:
            Both numbers, shape `(N,)` each, valid until the next call.
        """
        ones, others = self._block
        if self._next == len(ones):
            ones.reshape(-1)[:] = generator.bit_generator.random_raw(ones.size // 2).view(np.uint32)
            np.invert(ones, out=others)
            self._next = 0
        self._next += 1
        return ones[self._next - 1], others[self._next - 1]


def half_threshold(probability: np.ndarray) -> np.ndarray:
    """The threshold for `SideDraws` that gives each side half of a probability, to 32 bits.

    Args:
        probability: probabilities, shape `(K,)`.

    Example:
        >>> half_threshold(np.array([0.0, 0.5, 1.0])).tolist()
        [0, 1073741824, 2147483648]
    """
    return np.rint(probability * 2.0**31).astype(np.uint32)


class EpisodeDraws:
    """One number for every episode of every sub-environment, uniform in [0, 1).

    Args:
        seed: the seed.
        number: how many sub-environments.

    Example:
        >>> draws = EpisodeDraws(7, 3)
        >>> later = draws.at(np.array([0, 1]), np.array([100, 2]))
        >>> bool(later[1] == EpisodeDraws(7, 3).at(np.array([1]), np.array([2]))[0])
        True
    """

    def __init__(self, seed: int, number: int) -> None:
        self._seed, self._number = seed, number
        self._blocks: OrderedDict[int, np.ndarray] = OrderedDict()

    def at(self, indices: np.ndarray, episodes: np.ndarray) -> np.ndarray:
        """The numbers of these episodes.

        Args:
            indices: sub-environments, shape `(K,)`.
            episodes: the episode of each, counted from the last seed, shape `(K,)`.
        """
        blocks, places = np.divmod(episodes, _EPISODES)
        found = np.empty(len(indices))
        for number in np.unique(blocks).tolist():
            mask = blocks == number
            found[mask] = self._block(number)[places[mask], indices[mask]]
        return found

    def _block(self, number: int) -> np.ndarray:
        if number not in self._blocks:
            generator = np.random.default_rng([self._seed, _EPISODE_TAG, number])
            self._blocks[number] = generator.random((_EPISODES, self._number))
            if len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
        return self._blocks[number]

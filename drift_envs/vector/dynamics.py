"""What the dynamics of a kind of vector environment implement, the checks of actions, and random numbers.

Column i of random numbers belongs to sub-environment i. The streams of the sub-environments are independent: each step
consumes its numbers whether they are used or not, and the number of an episode is a function of seed, column and
episode alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.schedule import Schedule
from drift_envs.tunable import TunableEnv
from drift_envs.vector.clocks import Clocks
from drift_envs.vector.knob_pool import Columns, KnobPool
from drift_envs.wrappers.drift import DriftWrapper

Infos = dict[str, Any]
"""`info` in Gymnasium's vector form: an array for each key, and under `_key` a mask of the valid entries."""

_BATCH = 32_768  # numbers drawn at once: few calls, and the block fits into the processor's cache
_EPISODES = 64  # in a block of `EpisodeDraws`
_KEPT = 4  # blocks of `EpisodeDraws`
_EPISODE_TAG = 0xE915


def refuse_poison(value: object) -> None:
    """Refuse `poison_after`: native vector environments count no visits.

    Args:
        value: the value, or what sets it; 0 changes nothing.

    Raises:
        ArgumentError: if it is not 0.
    """
    if value:
        raise ArgumentError(
            "`poison_after` should be 0 in a native vector environment, which counts no visits; use "
            f"`vectorization_mode='sync'` or `'async'`. Received {value!r}"
        )


class Dynamics(ABC):
    """How the sub-environments of one kind start, step and observe: arrays of length N, independent of time.

    A mask is an array of booleans of shape `(N,)`; an index is an integer from 0 to N - 1.

    Attributes:
        kind: the class of the single environment.
        state_names: the attributes that hold the state of an episode, for `read_state` and `write_state`.
        num_envs: the number of sub-environments, N.
        single_env: the single environment of which all sub-environments are copies.
        schedule: the schedule, or `None` without drift.
        driven: the knobs that it drives.
        pool: the knob values.
        clocks: the ticks.
    """

    kind: ClassVar[type[TunableEnv]]
    state_names: ClassVar[tuple[str, ...]] = ()
    num_envs: int
    single_env: DriftWrapper
    schedule: Schedule | None
    driven: frozenset[str]
    pool: KnobPool
    clocks: Clocks

    @abstractmethod
    def read_state(self, index: int, name: str) -> Any:
        """Read a part of the state of an episode, one of `state_names`."""

    @abstractmethod
    def write_state(self, index: int, name: str, value: Any) -> None:
        """Set a part of the state of an episode, one of `state_names`, in the form of `read_state`."""

    @abstractmethod
    def save_dynamics(self) -> dict[str, Any]:
        """The states of all running episodes and the numbers that are drawn ahead, as plain data and arrays."""

    @abstractmethod
    def load_dynamics(self, saved: Mapping[str, Any]) -> None:
        """Restore states of episodes, after clocks and knobs.

        Args:
            saved: from `save_dynamics`.
        """

    @abstractmethod
    def pose(self, env: Any, index: int) -> None:
        """Copy the state of a sub-environment to the innermost single environment, which has its knob values."""

    @abstractmethod
    def read_knob(self, index: int, name: str) -> Value:
        """Read the current value of a knob back from the arrays of the dynamics."""

    @abstractmethod
    def write_knob(self, index: int, name: str, value: Value) -> None:
        """Set a knob that the schedule does not drive to a canonical value."""

    @abstractmethod
    def _make_columns(self) -> dict[str, np.ndarray]:
        """Create the knob values as columns of numbers, shape `(N,)` each; the pool writes into these arrays."""

    @abstractmethod
    def _encode(self, values: Mapping[str, Any]) -> Columns:
        """Convert K values of each driven knob to columns of numbers, shape `(K,)` each."""

    @abstractmethod
    def _make_arrays(self) -> None:
        """Create the other arrays of the dynamics, at the end of the constructor."""

    def _has_derived_arrays(self) -> bool:
        """Whether arrays are derived from driven knobs, so that `_update_derived` has to be called."""
        return False

    def _update_derived(self, indices: np.ndarray) -> None:  # noqa: B027 - optional
        """Update the derived arrays of sub-environments whose knob values have changed."""

    def _check_options(self, options: Mapping[str, Any]) -> None:  # noqa: B027 - optional
        """Raise an error for invalid reset options."""

    def _reset_infos(self, mask: np.ndarray) -> Infos:
        """The `info` of the environment's own `reset` for the sub-environments of a mask."""
        return {}

    @abstractmethod
    def _start_episodes(self, mask: np.ndarray, options: Mapping[str, Any]) -> None:
        """Set the sub-environments of a mask to their initial states."""

    @abstractmethod
    def _observe(self) -> np.ndarray:
        """The current observations, as a new array."""

    @abstractmethod
    def _check_actions(self, actions: Any) -> np.ndarray:
        """Return the actions as an array, or raise an error."""

    @abstractmethod
    def _transition(
        self, actions: np.ndarray, resetting: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Infos]:
        """Step all sub-environments; those of the mask `resetting` start an episode instead.

        Returns:
            Observations, rewards (`float64`), terminations and `info`; new arrays.
        """

    def _mark_truncated(self, truncations: np.ndarray) -> None:  # noqa: B027 - optional
        """Mark the episodes of a mask as ended by the step limit."""


class IntegerActions:
    """Checks integer actions from 0 to `count` - 1, one for each sub-environment.

    Args:
        number: the number of sub-environments, N.
        count: the number of actions.

    Example:
        >>> IntegerActions(3, count=4).check([0, 3, 1])
        array([0, 3, 1])
    """

    def __init__(self, number: int, count: int) -> None:
        self._shape = (number,)
        self._last = np.array(count - 1, np.uint64)  # an array saves its conversion at each call
        self._bad = np.zeros(number, bool)

    def check(self, actions: Any) -> np.ndarray:
        """Return the actions as a contiguous `int64` array.

        Args:
            actions: integers of shape `(N,)`.

        Raises:
            ArgumentError: if the shape or an action is invalid.
        """
        checked = as_action_array(actions, "biu")
        if checked.shape != self._shape:
            raise ArgumentError(
                f"`actions` should be whole numbers of shape {self._shape}. "
                f"Received {checked.dtype} of shape {checked.shape}"
            )
        if checked.dtype != np.int64 or not checked.flags.c_contiguous:
            checked = np.ascontiguousarray(checked, np.int64)
        # As unsigned integers, negative numbers are larger than all actions.
        np.greater(checked.view(np.uint64), self._last, out=self._bad)
        if np.count_nonzero(self._bad):
            where = int(self._bad.argmax())
            known = ", ".join(str(action) for action in range(int(self._last) + 1))
            raise ArgumentError(f"`actions[{where}]` should be one of {known}. Received {int(checked[where])}")
        return checked


def check_forces(actions: Any, number: int) -> tuple[np.ndarray, float, float]:
    """Return the forces of the continuous cars as an array of `float32`, the least of them and the largest.

    Args:
        actions: finite numbers of shape `(N, 1)`.
        number: the number of sub-environments, N.

    Raises:
        ArgumentError: if the shape or a number is invalid.
    """
    given = as_action_array(actions, "biuf")
    checked = np.ascontiguousarray(given, np.float32)
    if given.shape != (number, 1):
        raise ArgumentError(f"`actions` should have the shape ({number}, 1). Received {given.shape}")
    flat = checked.reshape(-1)
    low, high = float(np.minimum.reduce(flat)), float(np.maximum.reduce(flat))  # a NaN is in both
    if not (low > -math.inf and high < math.inf):
        index = int(np.isfinite(checked[:, 0]).argmin())
        raise ArgumentError(f"`actions[{index}]` should be a finite number. Received {float(checked[index, 0])}")
    return checked, low, high


def as_action_array(actions: Any, kinds: str) -> np.ndarray:
    """Return the actions of all sub-environments as an array.

    Args:
        actions: an array, or a sequence of numbers or arrays.
        kinds: the letters of the accepted kinds of NumPy types.

    Raises:
        ArgumentError: if they are no numbers of such a type.
    """
    try:
        array = actions if isinstance(actions, np.ndarray) else np.asarray(actions)
    except (ValueError, TypeError, OverflowError):  # a ragged list, for example
        array = None
    if array is None or array.dtype.kind not in kinds:
        what = "numbers" if "f" in kinds else "whole numbers"
        raise ArgumentError(f"`actions` should be {what}, one action for each sub-environment. Received {actions!r}")
    return array


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

    def save(self) -> np.ndarray:
        """The numbers that are drawn ahead."""
        return self._block[self._next :].copy()

    def load(self, ahead: np.ndarray) -> None:
        """Restore the numbers that are drawn ahead.

        Args:
            ahead: from `save`.
        """
        self._next = len(self._block) - len(ahead)
        self._block[self._next :] = ahead

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

    def save(self) -> np.ndarray:
        """The numbers that are drawn ahead."""
        return self._block[0, self._next :].copy()

    def load(self, ahead: np.ndarray) -> None:
        """Restore the numbers that are drawn ahead.

        Args:
            ahead: from `save`.
        """
        self._next = self._block.shape[1] - len(ahead)
        self._block[0, self._next :] = ahead
        np.invert(self._block[0], out=self._block[1])

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
        self.seed, self._number = seed, number
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
            generator = np.random.default_rng([self.seed, _EPISODE_TAG, number])
            self._blocks[number] = generator.random((_EPISODES, self._number))
            if len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
        return self._blocks[number]

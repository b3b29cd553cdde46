"""The arguments of `reset(seed=..., options=...)` of a vector environment.

* `ResetRequest` - the sub-environments that start an episode, their seeds and ticks
* `read_request` - parses and checks the arguments

A file of its own, since it has no access to the arrays: invalid arguments change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from drift_envs.checks import is_integer
from drift_envs.errors import ArgumentError, StateError
from drift_envs.schedule import Timeline
from drift_envs.wrappers.clock import ClockJump, read_options


class ResetRequest(NamedTuple):
    """The parsed arguments of a reset.

    Args:
        indices: the sub-environments that start an episode, shape `(K,)`.
        seeds: the seed of each timeline that is rewound, by sub-environment.
        entropy: the seed of the generator, `None` to keep its state.
        jumps: the clock options: one for all, or one for each of `indices`.
        options: the options of the environment.
    """

    indices: np.ndarray
    seeds: dict[int, int]
    entropy: int | None
    jumps: ClockJump | list[ClockJump]
    options: dict[str, Any]


def read_request(
    seed: int | Sequence[int | None] | None,
    options: Mapping[str, Any] | None,
    number: int,
    is_reset: bool,
    timeline: Callable[[int, int | None], Timeline],
) -> ResetRequest:
    """Parse and check the arguments of a reset.

    Args:
        seed: one seed, one for each sub-environment, or `None`.
        options: the options of `reset`.
        number: the number of sub-environments.
        is_reset: whether the environment has been reset before.
        timeline: returns the timeline of a sub-environment, with another seed if one is given.

    Raises:
        ArgumentError: if a seed or an option is invalid.
        StateError: if the first reset has a mask.
    """
    if not isinstance(options, (Mapping, NoneType)):
        raise ArgumentError(f"`options` should be a dictionary, or None. Received {options!r}")
    left = dict(options or {})
    mask = left.pop("reset_mask", None)
    indices = np.arange(number) if mask is None else _read_mask(mask, number)
    if not is_reset and len(indices) < number:
        raise StateError("the first `reset` should have no `reset_mask`: all sub-environments have to start")
    given = _read_seeds(seed, number)
    rewinds = not (is_reset and _is_continued(left))
    seeds = {index: own for index in indices.tolist() if (own := given[index]) is not None} if rewinds else {}
    entropy = None
    if mask is None and seed is not None and any(own is not None for own in given):
        drawn = np.random.SeedSequence([own or 0 for own in given]).generate_state(1, np.uint64)
        entropy = int(seed) if is_integer(seed) else int(drawn[0])
    if left.get("drift_phase") is None:
        jump, rest = read_options(left, lambda phase: 0)
        return ResetRequest(indices, seeds, entropy, jump, rest)
    jumps = []
    for index in indices.tolist():
        jump, rest = read_options(left, timeline(index, seeds.get(index)).first_tick)
        jumps.append(jump)
    return ResetRequest(indices, seeds, entropy, jumps, rest)


def _is_continued(options: Mapping[str, Any]) -> bool:
    clock = options.get("drift_clock")
    return isinstance(clock, str) and clock == "continue"


def _read_mask(mask: Any, number: int) -> np.ndarray:
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (number,) or not mask.any():
        raise ArgumentError(
            f"`reset_mask` should be an array of booleans of shape ({number},), at least one of them true. "
            f"Received {mask!r}"
        )
    return mask.nonzero()[0]


def _read_seeds(seed: Any, number: int) -> list[int | None]:
    if seed is None:
        return [None] * number
    if is_integer(seed) and seed >= 0:
        return [int(seed) + index for index in range(number)]
    if isinstance(seed, (list, tuple)):
        if len(seed) != number:
            raise ArgumentError(
                f"`seed` should have one seed for each of {number} sub-environments. Received {len(seed)}"
            )
        if all(own is None or (is_integer(own) and own >= 0) for own in seed):
            return [None if own is None else int(own) for own in seed]
    raise ArgumentError(f"`seed` should be a whole number of at least 0, or a list of such. Received {seed!r}")

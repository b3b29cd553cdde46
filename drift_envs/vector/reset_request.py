"""What `reset(seed=..., options=...)` of a vector environment asks for, checked before anything changes.

* `ResetRequest` - which sub-environments begin an episode, with which seeds, where in time
* `read_wishes` - reads them
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from drift_envs.errors import ArgumentError, StateError
from drift_envs.schedule import Timeline
from drift_envs.wrappers.clock import ClockJump, read_options


class ResetRequest(NamedTuple):
    """What a reset asks for.

    Args:
        indices: the sub-environments that begin an episode.
        keys: the seed of each timeline that starts from its beginning, by sub-environment.
        entropy: the seed of the generator, `None` to let it go on.
        jumps: where in time the episodes begin: one for all, or one for each of `indices`.
        options: what is left for the environment.
    """

    indices: np.ndarray
    keys: dict[int, int]
    entropy: int | None
    jumps: ClockJump | list[ClockJump]
    options: dict[str, Any]


def read_wishes(
    seed: int | Sequence[int | None] | None,
    options: Mapping[str, Any] | None,
    number: int,
    is_reset: bool,
    timeline: Callable[[int, int | None], Timeline],
) -> ResetRequest:
    """What a reset asks for.

    Args:
        seed: a seed, one for each sub-environment, or `None`.
        options: the options of `reset`.
        number: how many sub-environments there are.
        is_reset: whether there was a reset before.
        timeline: gives the timeline of a sub-environment, or that of another seed.

    Raises:
        ArgumentError: if a seed or an option breaks a rule.
        StateError: if the first reset leaves sub-environments out.
    """
    left = dict(options or {})
    mask = left.pop("reset_mask", None)
    indices = np.arange(number) if mask is None else _read_mask(mask, number)
    if not is_reset and len(indices) < number:
        raise StateError("the first `reset` should have no `reset_mask`; every sub-environment has to begin")
    seeds = _read_seeds(seed, number)
    rewinds = not (is_reset and left.get("drift_clock") == "continue")
    keys = {index: key for index in indices.tolist() if (key := seeds[index]) is not None} if rewinds else {}
    entropy = None
    if mask is None and seed is not None and any(key is not None for key in seeds):
        drawn = np.random.SeedSequence([key or 0 for key in seeds]).generate_state(1, np.uint64)
        entropy = int(seed) if isinstance(seed, (int, np.integer)) else int(drawn[0])
    if left.get("drift_phase") is None:
        jump, rest = read_options(left, lambda phase: 0)
        return ResetRequest(indices, keys, entropy, jump, rest)
    jumps = []
    for index in indices.tolist():
        jump, rest = read_options(left, timeline(index, keys.get(index)).first_tick)
        jumps.append(jump)
    return ResetRequest(indices, keys, entropy, jumps, rest)


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
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return [int(seed) + index for index in range(number)]
    if isinstance(seed, (list, tuple)):
        if len(seed) != number:
            raise ArgumentError(
                f"`seed` should have one seed for each of {number} sub-environments. Received {len(seed)}"
            )
        if all(s is None or (isinstance(s, (int, np.integer)) and not isinstance(s, bool) and s >= 0) for s in seed):
            return [None if s is None else int(s) for s in seed]
    raise ArgumentError(f"`seed` should be a whole number of at least 0, or a list of such. Received {seed!r}")

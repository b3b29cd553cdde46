"""Drift detectors as recursions for JAX, on the mean score of each round.

* `Detector`, `make_detector`, `watch` - both detectors' states, and an update of both
* `page_hinkley` - Page 1954; Hinkley 1971: fires on a fall of the mean
* `adwin` - Bifet and Gavalda 2007, doi:10.1137/1.9781611972771.42: an adaptive window, here with all cuts

They give what `river.drift.PageHinkley(mode="down")` and `river.drift.ADWIN(clock=1)` give, which a test compares:
ADWIN with buckets of one element, so that every cut of the window is tested. Departures from river: a window holds at
most `WINDOW` rounds, and ADWIN fires on a fall only (a rise just empties its window, as in river). Both forget
everything when they fire.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

WINDOW = 256
"""The rounds that ADWIN keeps at most."""
LEAST, GRACE = 5, 10
"""ADWIN: the fewest rounds of a part, and the rounds before the first test; river's defaults."""


class Detector(NamedTuple):
    """The states of both detectors.

    Args:
        count: rounds since the last reset of Page-Hinkley.
        mean: their mean.
        total: the cumulative sum of deviations.
        highest: the highest value that the sum had.
        window: ADWIN's window, the newest last, `(WINDOW,)`.
        width: how many of its elements are in use.
    """

    count: Any
    mean: Any
    total: Any
    highest: Any
    window: Any
    width: Any


def make_detector() -> Detector:
    """Detectors that have seen nothing."""
    return Detector(jnp.float32(0), jnp.float32(0), jnp.float32(0), jnp.float32(-1), jnp.zeros(WINDOW), jnp.int32(0))


def page_hinkley(
    state: Detector, value: Any, tolerance: Any, threshold: Any, least: int = 5, memory: float = 0.9999
) -> tuple[Detector, Any]:
    """An update: the state, and whether the mean has fallen.

    Args:
        state: of the detectors.
        value: the score of a round.
        tolerance: the size of falls that do not count; river's `delta`.
        threshold: the sum of falls that fires; river's `threshold`.
        least: rounds before it can fire; river's `min_instances`.
        memory: river's `alpha`.
    """
    count = state.count + 1
    mean = state.mean + (value - state.mean) / count
    total = memory * state.total + (value - mean) + tolerance
    highest = jnp.maximum(state.highest, total)
    fires = (count >= least) & (highest - total > threshold)
    return state._replace(count=count, mean=mean, total=total, highest=highest), fires


def adwin(state: Detector, value: Any, confidence: Any) -> tuple[Detector, Any, Any]:
    """An update: the state, whether the mean has changed, and whether it has fallen.

    Args:
        state: of the detectors.
        value: the score of a round.
        confidence: the probability of a false alarm that the bound allows; river's `delta`.
    """
    window = jnp.roll(state.window, -1).at[-1].set(value)
    width = jnp.minimum(state.width + 1, WINDOW)
    number = width.astype(jnp.float32)
    used = jnp.arange(WINDOW) >= WINDOW - width
    kept = jnp.where(used, window, 0.0)
    mean = kept.sum() / number
    variance = jnp.where(used, (window - mean) ** 2, 0.0).sum() / number
    older = jnp.cumsum(used).astype(jnp.float32)  # elements before each cut
    newer = number - older
    difference = jnp.cumsum(kept) / jnp.maximum(older, 1.0) - (kept.sum() - jnp.cumsum(kept)) / jnp.maximum(newer, 1.0)
    allowed = jnp.log(2 * jnp.log(jnp.maximum(number, 2.0)) / confidence)
    inverse = 1 / jnp.maximum(older - LEAST + 1, 1.0) + 1 / jnp.maximum(newer - LEAST + 1, 1.0)
    bound = jnp.sqrt(2 * inverse * variance * allowed) + 2 / 3 * allowed * inverse
    is_cut = (older >= LEAST) & (newer >= LEAST) & (number > GRACE)
    changed = (is_cut & (jnp.abs(difference) > bound)).any()
    fallen = (is_cut & (difference > bound)).any()
    return state._replace(window=window, width=jnp.where(changed, 0, width)), changed, fallen


def watch(state: Detector, value: Any, settings: Any) -> tuple[Detector, Any, Any]:
    """Give the score of a round to both detectors.

    Args:
        state: of the detectors.
        value: the score; NaN, which changes nothing, if no episode has ended.
        settings: has `tolerance`, `threshold` and `confidence`.

    Returns:
        The state, and whether Page-Hinkley and ADWIN fire.
    """
    is_number = ~jnp.isnan(value)
    value = jnp.where(is_number, value, 0.0)
    found, falls = page_hinkley(state, value, settings.tolerance, settings.threshold)
    found, _, fallen = adwin(found, value, settings.confidence)
    found = Detector(*(jnp.where(is_number, new, old) for new, old in zip(found, state, strict=True)))
    fresh = make_detector()._replace(window=found.window, width=found.width)
    reset = Detector(*(jnp.where(falls & is_number, new, old) for new, old in zip(fresh, found, strict=True)))
    return reset, falls & is_number, fallen & is_number

"""What probing costs, and what it wins.

* `CostKind`, `cost_by_kind` - probe steps, resets, model calls and tokens: per drift, and where nothing drifts
* `collected_score` - the score collected within a number of interactions
* `break_even` - the price of a probe at which two agents are worth the same
* `recovery_ratio` - the share of what a reset would win back that was won back

All definitions are this project's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from drift_envs.errors import ArgumentError
from drift_envs.metrics.checks import numbers
from drift_envs.metrics.statistics import RESAMPLES, Estimate, bootstrap

COSTS = ("probe_steps", "probe_resets", "model_calls", "tokens_in", "tokens_out")
"""The fields of an episode's line that count what it cost beyond its steps."""


class CostKind(NamedTuple):
    """One kind of cost.

    Args:
        per_drift: the mean total of a phase that a drift began; `None` without such a phase.
        per_stable_episode: the mean of an episode of a phase that none began; `None` without one.
    """

    per_drift: float | None
    per_stable_episode: float | None


def cost_by_kind(
    rows: Iterable[Mapping[str, Any]], kinds: Sequence[str] = COSTS, stable: str = "source"
) -> dict[str, CostKind]:
    """What one run cost: per drift, and per episode of the phases before any drift.

    Args:
        rows: the lines of one run, with `phase` and the costs.
        kinds: the fields that count costs.
        stable: phases of this id, and its recurrences (`source#2`), count as stable: whoever has
            come to know them needs no probe there.

    Example:
        >>> rows = [{"phase": "source", "probe_steps": 2}, {"phase": "drift-1", "probe_steps": 5}]
        >>> rows += [{"phase": "drift-1", "probe_steps": 3}]
        >>> cost_by_kind(rows, ["probe_steps"])
        {'probe_steps': CostKind(per_drift=8.0, per_stable_episode=2.0)}
    """
    lines = list(rows)
    calm = [row for row in lines if row["phase"].split("#")[0] == stable]
    drifted = [row for row in lines if row["phase"].split("#")[0] != stable]
    drifts = len({row["phase"] for row in drifted})
    found = {}
    for kind in kinds:
        found[kind] = CostKind(
            per_drift=float(sum(row[kind] for row in drifted)) / drifts if drifts else None,
            per_stable_episode=float(sum(row[kind] for row in calm)) / len(calm) if calm else None,
        )
    return found


def collected_score(scores: ArrayLike, interactions: ArrayLike, budget: int) -> float:
    """The score of all episodes that ended within a number of interactions.

    Agents are ranked at equal *total* interactions, since an agent that probes plays fewer episodes
    in the same time.

    Args:
        scores: one an episode, shape `(K,)`.
        interactions: steps, probes, prefixes and retries of each episode, shape `(K,)`.
        budget: the interactions that all of them may have.

    Raises:
        ArgumentError: if the run is shorter than the budget: what it would have collected is unknown.

    Example:
        >>> collected_score([1.0, 0.0, 1.0], [10, 10, 10], budget=25)
        1.0
    """
    score, spent = numbers("scores", scores), np.cumsum(numbers("interactions", interactions))
    if len(score) != len(spent):
        raise ArgumentError(
            f"`scores` and `interactions` should be equally long. Received {len(score)} and {len(spent)}"
        )
    if budget > spent[-1]:
        raise ArgumentError(f"`budget` should be at most the run's {spent[-1]:g} interactions. Received {budget!r}")
    return float(score[spent <= budget].sum())


def break_even(our_score: float, our_probes: float, their_score: float, their_probes: float) -> float | None:
    """The price of a probe, in score, at which two agents are worth the same.

    Args:
        our_score: what we collected.
        our_probes: what we probed for it.
        their_score: what they collected.
        their_probes: what they probed for it.

    Returns:
        Below this price the agent that probes more is the better one; not above 0 where it never
        is; `None` where both probe equally often.

    Example:
        >>> break_even(50.0, 100, 30.0, 0)
        0.2
    """
    return None if our_probes == their_probes else (our_score - their_score) / (our_probes - their_probes)


def recovery_ratio(
    verified: ArrayLike, base: ArrayLike, reset: ArrayLike, *, level: float = 0.95, seed: int = 0
) -> Estimate | None:
    """(verified - base) / (reset - base): the share of what *oracle reset* wins back that was won back.

    Args:
        verified: the score of the agent with its verifier, one an instance, shape `(N,)`.
        base: that of the agent alone, on the same instances.
        reset: that of the agent whose memory is wiped at the drift, on the same instances.
        level: the interval's probability.
        seed: of the resamples.

    Returns:
        The ratio of the means, with a bootstrap interval over instances; `None` where the interval
        of the denominator includes 0, since the ratio would say nothing.

    Example:
        >>> ratio = recovery_ratio([0.8, 0.9, 0.85], [0.1, 0.2, 0.0], [0.8, 0.8, 0.9])
        >>> round(ratio.mean, 2)
        1.02
    """
    ours, plain, wiped = numbers("verified", verified), numbers("base", base), numbers("reset", reset)
    if not len(ours) == len(plain) == len(wiped):
        raise ArgumentError(
            "`verified`, `base` and `reset` should be equally long. "
            f"Received {len(ours)}, {len(plain)} and {len(wiped)}"
        )
    won, possible = ours - plain, wiped - plain
    interval = bootstrap(possible, level=level, seed=seed)
    if interval.low <= 0 <= interval.high:
        return None
    mean = float(won.mean() / possible.mean())
    if np.ptp(won) == 0 and np.ptp(possible) == 0:
        return Estimate(mean, mean, mean, 1)
    generator = np.random.default_rng(seed)
    drawn = generator.integers(len(ours), size=(RESAMPLES, len(ours)))
    below = possible[drawn].mean(axis=1)
    ratios = won[drawn].mean(axis=1)[below != 0] / below[below != 0]
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(mean, float(low), float(high), len(ours))

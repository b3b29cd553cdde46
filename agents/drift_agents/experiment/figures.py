"""What the lines of a run say, in numbers: pure functions over rows.

* `Player` - the key of who plays: memory, verifier and policy
* `Runs` - all rows of one player on one schedule, by instance
* `group` - rows into runs
* `Estimate` - a mean over instances with its interval
* `estimate`, `difference` - over instances, and over pairs of instances
* `recovery` - when an instance came back after a drift
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Row = Mapping[str, Any]

RESAMPLES = 4000
LEVEL = 0.95
TOLERANCE = 0.2
"""How far below the optimum a recovered player may stay, as a share of it."""

WINDOW = 5
"""Episodes over which scores are averaged, and for which they must stay, before a player counts as recovered."""


class Player(NamedTuple):
    """Who plays.

    Args:
        memory: the memory's label.
        verifier: the verifier's label, or the name of a reference.
        policy: the policy's label, or `clairvoyant`.
    """

    memory: str
    verifier: str
    policy: str


@dataclass(frozen=True)
class Runs:
    """All rows of one player on one schedule.

    Args:
        player: who.
        seeds: the instances, in order.
        rows: one tuple of rows an instance, in order of the episodes.
    """

    player: Player
    seeds: tuple[int, ...]
    rows: tuple[tuple[Row, ...], ...]

    def phase(self, phase: str | None, first: int | None = None, last: int | None = None) -> Runs:
        """The rows of one phase (all for `None`), or only its first or last rounds.

        Args:
            phase: the phase's id.
            first: keep the rounds up to this one.
            last: keep so many rounds at the end of the phase.
        """
        kept = []
        for rows in self.rows:
            here = [row for row in rows if phase is None or row["phase"] == phase]
            if first is not None:
                here = [row for row in here if row["round"] <= first]
            if last is not None:
                here = here[-last:]
            kept.append(tuple(here))
        return Runs(self.player, self.seeds, tuple(kept))

    def per_instance(self, measure: Callable[[Sequence[Row]], float]) -> list[float]:
        """One number an instance; not a number where an instance has no rows."""
        return [measure(rows) if rows else math.nan for rows in self.rows]

    @property
    def is_one_run(self) -> bool:
        """Whether all instances are one and the same run, but for their seeds."""
        plain = [[{**row, "seed": 0} for row in rows] for rows in self.rows]
        return all(rows == plain[0] for rows in plain)


def group(rows: Iterable[Row]) -> dict[str, list[Runs]]:
    """Rows into runs, by schedule, in the order in which they first appear."""
    found: dict[str, dict[Player, dict[int, list[Row]]]] = {}
    for row in rows:
        player = Player(row["memory"], row["verifier"], row["policy"])
        found.setdefault(row["schedule"], {}).setdefault(player, {}).setdefault(row["seed"], []).append(row)
    return {
        schedule: [
            Runs(
                player,
                tuple(sorted(instances)),
                tuple(tuple(sorted(instances[s], key=lambda row: row["episode"])) for s in sorted(instances)),
            )
            for player, instances in players.items()
        ]
        for schedule, players in found.items()
    }


def phases(runs: Iterable[Runs]) -> list[str]:
    """The phases that were played, in the order of their first ticks."""
    first: dict[str, int] = {}
    for run in runs:
        for rows in run.rows:
            for row in rows:
                first[row["phase"]] = min(first.get(row["phase"], row["tick"]), row["tick"])
    return sorted(first, key=lambda phase: first[phase])


def mean_of(field: str, scale: float = 1.0) -> Callable[[Sequence[Row]], float]:
    """The measure that averages a field over rows; rows without a value do not count."""

    def measure(rows: Sequence[Row]) -> float:
        values = [float(row[field]) for row in rows if row[field] is not None]
        return scale * sum(values) / len(values) if values else math.nan

    return measure


def sum_of(*fields: str) -> Callable[[Sequence[Row]], float]:
    """The measure that adds fields up over rows; not a number if a row lacks one."""

    def measure(rows: Sequence[Row]) -> float:
        values = [row[field] for row in rows for field in fields]
        return math.nan if None in values else float(sum(values))

    return measure


class Estimate(NamedTuple):
    """A mean over instances with its interval.

    Args:
        mean: the mean; not a number if there is nothing to average.
        low: the lower end of the 95 % interval.
        high: the upper end.
        n: how many instances it rests on; 1 where all of them are the same run.
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return self.n > 1 and (self.low > 0 or self.high < 0)


def estimate(values: Sequence[float], *, one_run: bool = False) -> Estimate:
    """The mean of one number an instance, with a 95 % interval bootstrapped over the instances.

    Args:
        values: one an instance; those that are not a number do not count.
        one_run: whether all instances are one and the same run.

    Example:
        >>> estimate([1.0, 1.0, 1.0], one_run=True)
        Estimate(mean=1.0, low=1.0, high=1.0, n=1)
        >>> found = estimate([0.0, 1.0, 0.0, 1.0])
        >>> found.mean, found.low < 0.5 < found.high
        (0.5, True)
    """
    known = np.array([value for value in values if not math.isnan(value)], dtype=float)
    if known.size == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    mean = float(known.mean())
    if one_run or known.size == 1 or np.ptp(known) == 0:
        return Estimate(mean, mean, mean, 1 if one_run or known.size == 1 else int(known.size))
    draws = np.random.default_rng(known.size).integers(known.size, size=(RESAMPLES, known.size))
    low, high = np.quantile(known[draws].mean(axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(mean, float(low), float(high), int(known.size))


def difference(a: Runs, b: Runs, measure: Callable[[Sequence[Row]], float]) -> Estimate:
    """The mean of a - b over pairs of instances with one seed, with its interval."""
    ours = dict(zip(a.seeds, a.per_instance(measure), strict=True))
    theirs = dict(zip(b.seeds, b.per_instance(measure), strict=True))
    pairs = [ours[seed] - theirs[seed] for seed in a.seeds if seed in theirs]
    return estimate(pairs, one_run=a.is_one_run and b.is_one_run)


def recovery(rows: Sequence[Row]) -> int | None:
    """The first round of a phase from which a player is back.

    That is the first round k such that for the `WINDOW` windows that begin at k and after, the mean
    score of `WINDOW` rounds is at least (1 - `TOLERANCE`) times the mean optimum of these rounds; near
    the end of the phase the windows are those that still fit.

    Args:
        rows: one instance's rows of the phase.

    Returns:
        The round, or `None` if it never comes (right-censored), or no optimum is known.
    """
    if not rows or any(row["regret"] is None for row in rows) or len(rows) < WINDOW:
        return None
    scores = np.array([row["score"] for row in rows])
    optimum = scores + np.array([row["regret"] for row in rows])
    kernel = np.ones(WINDOW) / WINDOW
    good = np.convolve(scores, kernel, "valid") >= (1 - TOLERANCE) * np.convolve(optimum, kernel, "valid") - 1e-9
    for start in range(len(good)):
        if good[start : start + WINDOW].all():
            return int(rows[start]["round"])
    return None

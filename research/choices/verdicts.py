"""Verdicts: what a claim comes to under each combination, and over all of them.

* `judge_claim`, `ClaimVerdict` - a claim
* `CombinationResult` - a combination: its effect with an interval, and whether it speaks for the claim
* `correct_family` - Holm's correction over the claims of a paper
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from drift_agents.analysis.rows import estimate

from drift_envs.metrics import Estimate
from research.choices.model import LEAST, ClaimPlay, Combination, parse_effect
from research.choices.store import Cells, PlannedClaim, StoredCell
from research.verify_map.significance import adjust_holm, p_value

FOR, AGAINST, OPEN = "for", "against", "open"
VERDICTS = HOLDS, DEPENDS, REFUTED, UNDECIDED = ("holds", "depends", "does not hold", "undecided")

POINTS = 3.0
"""An effect within so many points of 0 is none; of other units, so many percent of what is subtracted from."""
_RESAMPLES, _STREAM = 9999, 0xC401


class CombinationResult(NamedTuple):
    """What a claim comes to under one combination.

    Args:
        combination: the choices.
        effect: what the claim says is positive, the smallest of several, with its 95 % interval.
        says: `for`, `against` or `open`.
        values: the effect's terms, one number an instance, summed.
    """

    combination: Combination
    effect: Estimate
    says: str
    values: tuple[float, ...]


_NO_FIGURE = CombinationResult(Combination({}, {}), Estimate(math.nan, math.nan, math.nan, 0), OPEN, ())
"""Of a combination whose effect no instance has: nothing was deleted, or all outputs are alike."""


class ClaimVerdict(NamedTuple):
    """What a claim comes to under its choices.

    Args:
        claim: its id.
        play: how it is played.
        results: by combination, from the lowest effect to the highest.
        planned: how many combinations it has, those that are not played yet too, and without those whose effect no
            instance has.
        verdict: over all; `None` while combinations are missing.
    """

    claim: str
    play: ClaimPlay
    results: tuple[CombinationResult, ...]
    planned: int
    verdict: str | None

    @property
    def middle(self) -> CombinationResult:
        """The combination in the middle; of two that of the effect that says less."""
        return self.results[(len(self.results) - 1) // 2]

    @property
    def n(self) -> int:
        """The fewest instances of a combination."""
        return min(len(result.values) for result in self.results)

    def count(self, says: str) -> int:
        """How many combinations are for the claim, against it or open."""
        return sum(result.says == says for result in self.results)


def judge_claim(plan: PlannedClaim, cells: Cells) -> ClaimVerdict:
    """What a claim comes to by the cells that are played.

    Args:
        plan: the claim.
        cells: the stored cells.
    """
    play = plan.study.claims[plan.claim]
    results, planned = [], 0
    for combination, own in zip(plan.combinations, plan.cells, strict=True):
        stored = {name: cells.get(cell.key, StoredCell(cell)) for name, cell in own.items()}
        result = _judge(play, combination, stored)
        planned += result is not _NO_FIGURE
        if result is not None and result is not _NO_FIGURE:
            results.append(result)
    results.sort(key=lambda result: result.effect.mean)
    verdict = _sum_up(results) if results and len(results) == planned else None
    return ClaimVerdict(plan.claim, play, tuple(results), planned, verdict)


def _judge(play: ClaimPlay, combination: Combination, cells: Mapping[str, StoredCell]) -> CombinationResult | None:
    """One combination; `None` if fewer than `LEAST` instances are played, `_NO_FIGURE` if fewer have its effect."""
    found = []
    for text in play.differences:
        kind = next(name for name in ("effects", "equals", "at_most") if text in getattr(play, name))
        terms = parse_effect(text)
        seeds = sorted(set.intersection(*(set(cells[term.agent].values) for term in terms)))
        rows = [[cells[term.agent].values[seed].get(term.measure, math.nan) for term in terms] for seed in seeds]
        signs = np.array([term.sign for term in terms])
        known = np.array([row for row in rows if not any(map(math.isnan, row))])
        if len(seeds) < LEAST:
            return None
        if len(known) < LEAST:
            return _NO_FIGURE
        values = tuple((known @ signs).tolist())
        taken = known[:, signs < 0]
        margin = POINTS if play.unit == "points" else POINTS / 100 * float(np.abs(taken).mean()) if taken.size else 0.0
        effect = estimate(values)
        found.append(CombinationResult(combination, effect, _say(effect, margin, kind, play.paper), values))
    worst = min(found[: len(play.effects) or None], key=lambda result: result.effect.mean)
    words = {result.says for result in found}
    says = AGAINST if AGAINST in words else OPEN if OPEN in words else FOR
    return worst._replace(says=says)


def _say(effect: Estimate, margin: float, kind: str, paper: float | None) -> str:
    is_none = -margin <= effect.low and effect.high <= margin
    if kind == "at_most":
        return FOR if effect.high <= margin else AGAINST if effect.low > margin else OPEN
    if kind == "equals":
        return FOR if is_none else AGAINST if effect.low > margin or effect.high < -margin else OPEN
    if effect.low > 0:
        return FOR
    misses = paper is not None and not effect.low <= paper <= effect.high
    return AGAINST if effect.high < 0 or is_none or misses else OPEN


def _sum_up(results: Sequence[CombinationResult]) -> str:
    says = [result.says for result in results]
    if AGAINST not in says and says[(len(says) - 1) // 2] == FOR:
        return HOLDS
    if FOR in says and AGAINST in says:
        return DEPENDS
    if FOR not in says and 2 * says.count(AGAINST) > len(says):
        return REFUTED
    return UNDECIDED


def correct_family(verdicts: Sequence[ClaimVerdict]) -> dict[str, float]:
    """The p-values of claims by their combination in the middle, corrected for all of them; by claim.

    Args:
        verdicts: the claims of a paper.
    """
    tested = [verdict for verdict in verdicts if verdict.verdict is not None and verdict.play.effects]
    values = []
    for verdict in tested:
        data = np.array(verdict.middle.values)
        draws = np.random.default_rng([_STREAM, len(data)]).integers(len(data), size=(_RESAMPLES, len(data)))
        values.append(p_value(data[draws].mean(axis=1)))
    return dict(zip((verdict.claim for verdict in tested), adjust_holm(values), strict=True))

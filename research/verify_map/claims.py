"""Claims about the map, decided by a rule that is stated before anything is played.

* `read_claims`, `Claim` - the claims of a file
* `decide_claims`, `ClaimResult` - what the lines say
* `tabulate_claims` - the results as a table

A claim says that `a` is better than `b` by a measure at some points. The statistic is the mean over the points of the
difference between the best rule of `a` and the best rule of `b`, each chosen by its mean at the point; in every
bootstrap resample the best ones are chosen again. With the p-values of all claims of the file corrected together
(Holm), a claim is held if the difference is significantly above 0, refuted if it is significantly below 0, and
undecided otherwise. A claim of which a point or a rule is not among the lines is not played yet; it counts in the
correction, with a p-value of 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd
from drift_agents.analysis.evidence import EvidenceTable
from drift_agents.analysis.price import price_cells
from drift_agents.analysis.resampling import LEVEL, Resamples, estimate
from drift_agents.analysis.table import MISSING, Table, format_difference
from drift_agents.errors import EvidenceError
from pydantic import Field

from drift_envs.metrics import Estimate
from research.verify_map.map import agent_values, common_instances, select_points
from research.verify_map.rules import FileModel, Point, RuleBook, read_model
from research.verify_map.significance import adjust_holm, p_value

MOST = 6
"""The most claims of a file."""

HELD, REFUTED, UNDECIDED, NOT_PLAYED = "held", "refuted", "undecided", "not played yet"

Names = Annotated[tuple[str, ...], Field(min_length=1)]


class ClaimPoints(FileModel):
    """The points of a claim: every combination."""

    environments: Names
    rates: Annotated[tuple[Literal["none", "rare", "often", "rush"], ...], Field(min_length=1)]
    false: Annotated[tuple[int, ...], Field(min_length=1)]

    def points(self) -> list[Point]:
        """All combinations."""
        return [
            Point(environment, rate, false)
            for environment in self.environments
            for rate in self.rates
            for false in self.false
        ]


class Claim(FileModel):
    """One claim.

    Args:
        id: its name.
        statement: in one sentence.
        points: where it is claimed.
        measure: success at a budget, or the area.
        charge: interactions that a failed episode is charged.
        a: the names of the rules that are claimed to be better; the best counts.
        b: the names of the others; the best counts.
    """

    id: str
    statement: str
    points: ClaimPoints
    measure: Literal["x1", "x1.25", "x1.5", "x2", "x3", "unlimited", "area"]
    charge: Literal[0, 10, 50] = 0
    a: Names
    b: Names


class _ClaimFile(FileModel):
    claims: Annotated[tuple[Claim, ...], Field(min_length=1, max_length=MOST)]


class ClaimResult(NamedTuple):
    """What the lines say of a claim.

    Args:
        claim: the claim.
        difference: the best of `a` minus the best of `b`, percentage points; `None` if it is not played yet.
        p: of the hypothesis that it is 0, corrected for all claims of the file.
        decision: `HELD`, `REFUTED`, `UNDECIDED` or `NOT_PLAYED`.
    """

    claim: Claim
    difference: Estimate | None
    p: float
    decision: str


def read_claims(path: Path, book: RuleBook) -> tuple[Claim, ...]:
    """The claims of a file.

    Args:
        path: the YAML file.
        book: the rules that it may name.

    Raises:
        EvidenceError: if it cannot be read, or with everything that is wrong in it.
    """
    claims = read_model(_ClaimFile, path).claims
    findings = [
        f"{claim.id}: no rule is called {name!r}"
        for claim in claims
        for name in (*claim.a, *claim.b)
        if name not in book.by_name()
    ]
    findings += [f"{claim.id}: a rule should not be in both `a` and `b`" for claim in claims if {*claim.a} & {*claim.b}]
    if len({claim.id for claim in claims}) < len(claims):
        findings.append("every id should be there once")
    if findings:
        raise EvidenceError("\n".join(f"{path}: {finding}" for finding in findings))
    return claims


def decide_claims(evidence: EvidenceTable, book: RuleBook, claims: Sequence[Claim]) -> list[ClaimResult]:
    """What the lines say of every claim.

    Args:
        evidence: the lines.
        claims: of one file.

    Raises:
        EvidenceError: if no schedule is a point of the map, or an instance has no clairvoyant.
    """
    evidence = select_points(evidence)
    prices = price_cells(evidence)
    found = [_measure(claim, agent_values(evidence, prices[claim.charge, claim.measure]), book) for claim in claims]
    adjusted = adjust_holm([1.0 if one is None else one[1] for one in found])
    return [
        ClaimResult(claim, None, 1.0, NOT_PLAYED)
        if one is None
        else ClaimResult(claim, one[0], p, _decide(one[0].mean, p))
        for claim, one, p in zip(claims, found, adjusted, strict=True)
    ]


def _measure(claim: Claim, table: pd.DataFrame, book: RuleBook) -> tuple[Estimate, float] | None:
    """The difference and its p-value; `None` if a rule did not play a point."""
    keys = [book.by_name()[name].key for name in (*claim.a, *claim.b)]
    schedules = [point.schedule for point in claim.points.points()]
    played = table.reindex(keys).notna().T.groupby(level=0).any().reindex(schedules, fill_value=False)
    if not played.to_numpy().all():
        return None
    table = common_instances(table.loc[keys, schedules], claim.id)
    resamples = Resamples(table.columns)
    split = len(claim.a)
    differences, draws = [], []
    for schedule in schedules:
        means = table[[schedule]].to_numpy().mean(axis=1)
        differences.append(means[:split].max() - means[split:].max())
        drawn = resamples.of(schedule, table.to_numpy())
        draws.append(drawn[:split].max(axis=0) - drawn[split:].max(axis=0))
    pooled = np.mean(draws, axis=0)
    return estimate(float(np.mean(differences)), pooled, resamples.n), p_value(pooled)


def _decide(mean: float, p: float) -> str:
    if p >= 1 - LEVEL:
        return UNDECIDED
    return HELD if mean > 0 else REFUTED


def tabulate_claims(results: Sequence[ClaimResult]) -> Table:
    """The results as a table."""
    table = Table("", ("claim", "measure", "points", "instances", "difference", "p, corrected", "result"))
    for claim, difference, p, decision in results:
        charge = f", {claim.charge} a failure" if claim.charge else ""
        table.add(
            claim.statement,
            f"{claim.measure}{charge}",
            str(len(claim.points.points())),
            MISSING if difference is None else str(difference.n),
            MISSING if difference is None else format_difference(difference, 1).rstrip("*"),
            MISSING if difference is None else f"{p:.4f}",
            decision,
        )
    return table

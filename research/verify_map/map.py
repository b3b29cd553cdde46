"""The map: which rule wins at each drift rate and share of false responses, and by how much.

* `make_map` - the winner of every point at every charge
* `MapPoint`, `Lead` - a point with its winner, and the winner's lead over another rule
* `tabulate_map` - the points as a table
* `rule_curves` - success over budgets of some rules

A rule wins a point by the mean area over instances (`drift_agents.analysis.price`); references do not take part. Its
lead is the paired difference to the best rule of another family, with a bootstrap interval over instances. The
p-values of all leads of one environment at one charge are corrected together (Holm). Winner and runner-up are chosen
on the instances that the lead is measured on, which makes the lead of near-equal rules too large; `first` says in how
many resamples the rule wins again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from drift_agents.analysis.evidence import EvidenceTable, Key
from drift_agents.analysis.leaderboard import name_of
from drift_agents.analysis.price import AREA, CHARGES, MEASURES, instance_values, price_cells
from drift_agents.analysis.resampling import LEVEL, Resamples, estimate
from drift_agents.analysis.table import Table, format_difference, format_plain
from drift_agents.errors import EvidenceError

from drift_envs.metrics import Estimate
from research.verify_map.rules import OTHER, RATES, Point, Rule, RuleBook, parse_point
from research.verify_map.significance import adjust_holm, p_value


class Lead(NamedTuple):
    """By how much the winner of a point is ahead of another rule.

    Args:
        over: the other rule's name.
        family: its family.
        points: the difference of the areas in percentage points, with its interval.
        p: of the hypothesis that it is 0.
    """

    over: str
    family: str
    points: Estimate
    p: float


class MapPoint(NamedTuple):
    """A point of the map at one charge, with its winner.

    Args:
        point: where it is.
        charge: interactions that a failed episode is charged.
        n: instances.
        winner: the rule with the largest mean area.
        family: its family.
        area: its mean area, percent.
        first: the share of resamples in which it has the largest mean area, percent; ties count.
        next: its lead over the second of all rules; `None` where it is alone.
        rival: its lead over the best rule of another family.
        baselines: its leads over the best rules of the families that the file names; not over its own.
        adjusted: the p-value of `rival`, corrected for all points of the environment at this charge.
    """

    point: Point
    charge: int
    n: int
    winner: str
    family: str
    area: float
    first: float
    next: Lead | None
    rival: Lead | None
    baselines: Mapping[str, Lead]
    adjusted: float = 1.0

    @property
    def is_clear(self) -> bool:
        """Whether the lead over other families is significant after the correction."""
        return self.rival is not None and self.adjusted < 1 - LEVEL


def make_map(evidence: EvidenceTable, book: RuleBook) -> list[MapPoint]:
    """The winner of every point at every charge.

    Args:
        evidence: the lines; schedules that are no points of the map are left out.
        book: the rules; other agents take part under their labels, in the family `OTHER`.

    Returns:
        By charge, environment, rate and share of false responses, in this order.

    Raises:
        EvidenceError: if no schedule is a point, an instance has no clairvoyant, or there is no instance of a point
            that all agents played.
    """
    evidence = select_points(evidence)
    prices = price_cells(evidence)
    found = []
    for charge in CHARGES:
        table = agent_values(evidence, prices[charge, AREA])
        for environment in dict.fromkeys(point.environment for point in points_of(evidence)):
            some = [
                _find_winner(point, charge, table[[point.schedule]], book)
                for point in points_of(evidence)
                if point.environment == environment
            ]
            adjusted = adjust_holm([1.0 if one.rival is None else one.rival.p for one in some])
            found += [one._replace(adjusted=p) for one, p in zip(some, adjusted, strict=True)]
    return found


def select_points(evidence: EvidenceTable) -> EvidenceTable:
    """The lines of the map's points alone.

    Raises:
        EvidenceError: if no schedule is a point, or an instance has no clairvoyant.
    """
    within = evidence.cells["schedule"].map(lambda name: parse_point(name) is not None)
    if not within.any():
        raise EvidenceError(
            "no schedule is a point of the map, as `frozen_lake/verify-6x6:often-3` is. Received "
            + ", ".join(sorted(evidence.schedules))
        )
    evidence = evidence if within.all() else evidence.select(within.to_numpy(bool))
    lacking = evidence.cells[price_cells(evidence)[0, MEASURES[0]].isna()]
    if len(lacking):
        schedule, seed = lacking.iloc[0][["schedule", "seed"]]
        raise EvidenceError(
            f"{schedule}, seed {seed}: the reference `clairvoyant` should play every instance, since budgets are "
            "multiples of its interactions"
        )
    return evidence


def points_of(evidence: EvidenceTable) -> list[Point]:
    """The points of all schedules, by environment, rate and share of false responses."""
    found = [point for name in evidence.schedules if (point := parse_point(name)) is not None]
    return sorted(found, key=lambda point: (point.environment, RATES.index(point.rate), point.false))


def agent_values(evidence: EvidenceTable, values: pd.Series) -> pd.DataFrame:
    """Values of cells by agent and instance, without the references.

    Args:
        evidence: the lines.
        values: one a cell, in order.
    """
    table = instance_values(evidence, values)
    return table[[evidence.players[key]["reference"] is None for key in table.index]]


def rule_of(key: Key, book: RuleBook) -> Rule:
    """The rule of an agent, under its labels if the file does not name it."""
    memory, verifier, controller, team, policy = key
    unnamed = Rule(
        name=name_of(key), family=OTHER, memory=memory, verifier=verifier, controller=controller, team=team,
        policy=policy,
    )  # fmt: skip
    return book.by_key().get(key, unnamed)


def common_instances(table: pd.DataFrame, where: str) -> pd.DataFrame:
    """The instances that all agents of a table played; agents without any are left out.

    Raises:
        EvidenceError: if there is none.
    """
    played = table.dropna(how="all")
    common = played.dropna(axis=1)
    if common.empty:
        least = min(played.index, key=lambda key: int(played.loc[[key]].notna().sum(axis=1).iloc[0]))
        raise EvidenceError(f"{where}: there is no instance that every agent played; {name_of(least)} has the fewest")
    return common


def _find_winner(point: Point, charge: int, table: pd.DataFrame, book: RuleBook) -> MapPoint:
    table = common_instances(table, point.schedule)
    places = {key: place for place, key in enumerate(book.by_key())}
    table = table.loc[sorted(table.index, key=lambda key: (places.get(key, len(places)), key))]
    rules = [rule_of(key, book) for key in table.index]
    values, resamples = table.to_numpy(), Resamples(table.columns)
    means, draws = np.round(values.mean(axis=1), 9), np.round(resamples.means(values), 9)
    best = int(means.argmax())

    def lead(others: Sequence[int]) -> Lead | None:
        if not others:
            return None
        other = max(others, key=lambda place: (means[place], -place))
        difference = draws[best] - draws[other]
        points = estimate(float(means[best] - means[other]), difference, resamples.n)
        return Lead(rules[other].name, rules[other].family, points, p_value(difference))

    mine = rules[best].family
    baselines = {
        family: found
        for family in book.baselines
        if family != mine and (found := lead([n for n, rule in enumerate(rules) if rule.family == family]))
    }
    return MapPoint(
        point,
        charge,
        resamples.n,
        rules[best].name,
        mine,
        float(means[best]),
        float(100 * (draws[best] >= draws.max(axis=0)).mean()),
        lead([n for n in range(len(rules)) if n != best]),
        lead([n for n, rule in enumerate(rules) if rule.family != mine]),
        baselines,
    )


def tabulate_map(points: Sequence[MapPoint], book: RuleBook) -> Table:
    """The points as a table.

    Args:
        points: of one charge or several.
    """
    heads = [f"lead over {book.families[family]}" for family in book.baselines]
    several = len({one.charge for one in points}) > 1
    table = Table(
        "", ("point", *(("charge",) if several else ()), "n", "winner", "area", "lead over other families", *heads)
    )
    for one in points:
        table.add(
            one.point.schedule,
            *((str(one.charge),) if several else ()),
            str(one.n),
            one.winner,
            format_plain(one.area, 1),
            "" if one.rival is None else f"{_format_lead(one.rival)} {'' if one.is_clear else '(not clear)'}".strip(),
            *(_format_lead(one.baselines.get(family)) for family in book.baselines),
        )
    return table


def _format_lead(lead: Lead | None) -> str:
    return "" if lead is None else format_difference(lead.points, 1).rstrip("*")


def rule_curves(evidence: EvidenceTable, book: RuleBook, charge: int = 0) -> dict[str, dict[str, list[Estimate]]]:
    """Success over budgets of the rules that the file names for curves, as means over the points of an environment.

    Args:
        evidence: the lines.
        charge: of a failed episode.

    Returns:
        By environment and rule one estimate a measure of `MEASURES`; environments without any of the rules are left
        out.

    Raises:
        EvidenceError: as `make_map`.
    """
    evidence = select_points(evidence)
    prices = price_cells(evidence)
    keys = [book.by_name()[name].key for name in book.curves]
    tables = {measure: agent_values(evidence, prices[charge, measure]) for measure in MEASURES}
    found: dict[str, dict[str, list[Estimate]]] = {}
    for environment in dict.fromkeys(point.environment for point in points_of(evidence)):
        schedules = [point.schedule for point in points_of(evidence) if point.environment == environment]
        area = tables[AREA][schedules]
        present = area.loc[[key for key in keys if key in area.index]].dropna(how="all")
        if present.empty:
            continue
        common = common_instances(present, environment)
        resamples = Resamples(common.columns)
        found[environment] = {
            rule_of(key, book).name: [
                resamples.estimate(tables[measure].loc[[key], common.columns].to_numpy()[0]) for measure in MEASURES
            ]
            for key in common.index
        }
    return found

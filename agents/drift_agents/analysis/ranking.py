"""Agents ranked over all schedules by success per price.

An agent is ranked by the area under the curve of success over budgets (`drift_agents.analysis.price`): the mean over
schedules of the mean over the instances that all agents played. Controls are left out. Without the clairvoyant, success
without a limit gives the rank. Intervals are those of `drift_agents.analysis.resampling`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drift_agents.analysis.evidence import AXES, EvidenceTable, Key, hash_lines
from drift_agents.analysis.price import AREA, MEASURES, UNLIMITED, describe_cells, instance_values, price_cells
from drift_agents.analysis.resampling import Resamples
from drift_agents.errors import EvidenceError
from drift_envs.metrics import Estimate

BOARD = "board@2"
"""The version of the board's rules; figures of another one are not comparable."""


@dataclass(frozen=True)
class Standing:
    """One agent with its figures, in percent; means over schedules of means over instances.

    Args:
        key: the labels of its parts, in the order of `AXES`.
        supervision: one of `drift_agents.types.SUPERVISION`.
        reference: whether it is a privileged reference, which has no rank.
        ranks: the best and the worst rank, a 95 % interval over resamples.
        score: what it is ranked by, with its interval: the area, or success without a limit where no instance has a
            budget.
        success: by measure of `drift_agents.analysis.price`; without the clairvoyant only `unlimited` is a number.
        gain: the score minus that of the agent without memory; `None` where that did not play.
        probes: the probes' share of all interactions.
        chain: the share of instances in which it recovered in every phase.
    """

    key: Key
    supervision: str
    reference: bool
    ranks: tuple[int, int]
    score: Estimate
    success: Mapping[str, float]
    gain: Estimate | None
    probes: float
    chain: float

    @property
    def ranked_by(self) -> float:
        """The figure that ranks it; equal figures share a rank."""
        return round(self.score.mean, 9)


class Standings(NamedTuple):
    """All agents, ranked.

    Args:
        ranked: the agents, the best one first.
        references: the privileged references.
        schedules: what counts.
        instances: how many instances count.
        left_out: by schedule, how many instances do not count since not every agent played them.
        same: agents that played the same episodes with the same probes: the first one -> the others.
        measure: what ranks them: `area`, or `unlimited` without the clairvoyant.
    """

    ranked: list[Standing]
    references: list[Standing]
    schedules: tuple[str, ...]
    instances: int
    left_out: Mapping[str, int]
    same: Mapping[Key, tuple[Key, ...]]
    measure: str

    def rank(self, standing: Standing) -> int:
        """The rank of an agent; equal ones share it, and agents that played the same episodes count once."""
        followers = {key for keys in self.same.values() for key in keys}
        distinct = (one for one in self.ranked if one.key not in followers)
        return 1 + sum(one.ranked_by > standing.ranked_by for one in distinct)


def rank_agents(evidence: EvidenceTable, charge: int = 0) -> Standings:
    """Rank the agents of stored lines.

    Args:
        charge: interactions that a failed episode is charged, one of `drift_agents.analysis.price.CHARGES`.

    Raises:
        EvidenceError: if there is no instance that all agents played, on a schedule that is no control.
    """
    is_counted = evidence.cells["schedule"].map(lambda name: not evidence.schedules[name]["control"])
    evidence = evidence.select(is_counted.to_numpy(bool))
    prices = price_cells(evidence)[charge]
    tables = {measure: instance_values(evidence, prices[measure]) for measure in MEASURES}
    common = tables[UNLIMITED].dropna(axis=1).columns
    if not len(common):
        raise EvidenceError("there is no instance that every agent played, on a schedule that is no control")
    measure = UNLIMITED if tables[AREA][common].isna().to_numpy().any() else AREA
    resamples = Resamples(common)
    scores = tables[measure][common]
    draws = dict(zip(scores.index, resamples.means(scores), strict=True))
    agents = [key for key in scores.index if evidence.players[key]["reference"] is None]
    same = _same_episodes(evidence, agents)
    distinct = [key for key in agents if not any(key in others for others in same.values())]
    ranks: dict[Key, tuple[int, int]] = {}
    if distinct:
        ranks = dict(zip(distinct, resamples.ranks(scores.loc[distinct]), strict=True))
    ranks |= {other: ranks[key] for key, others in same.items() for other in others}
    further = {
        name: instance_values(evidence, values)[common].apply(resamples.mean, axis=1)
        for name, values in describe_cells(evidence).items()
    }
    success = {name: table[common].apply(resamples.mean, axis=1) for name, table in tables.items()}
    standings = [
        Standing(
            key,
            str(evidence.players[key]["supervision"]),
            key not in ranks,
            ranks.get(key, (0, 0)),
            resamples.estimate_of(scores.loc[[key]].to_numpy()[0], draws[key]),
            {name: float(values[[key]].iloc[0]) for name, values in success.items()},
            _estimate_gain(scores, draws, key, resamples) if key in ranks else None,
            float(further["probes"][[key]].iloc[0]),
            float(further["chain"][[key]].iloc[0]),
        )
        for key in scores.index
    ]
    standings.sort(key=lambda one: (-one.ranked_by, -round(one.success[UNLIMITED], 9), one.key))
    left_out = Counter(schedule for schedule, _ in tables[UNLIMITED].columns.difference(common))
    return Standings(
        [one for one in standings if not one.reference],
        [one for one in standings if one.reference],
        tuple(dict.fromkeys(common.get_level_values(0))),
        len(common),
        dict(sorted(left_out.items())),
        same,
        measure,
    )


def _estimate_gain(
    scores: pd.DataFrame, draws: Mapping[Key, np.ndarray], key: Key, resamples: Resamples
) -> Estimate | None:
    plain = ("none", "none", "direct", "solo", key[AXES.index("policy")])
    if plain == key or plain not in draws:
        return None
    change = scores.loc[[key]].to_numpy()[0] - scores.loc[[plain]].to_numpy()[0]
    return resamples.estimate_of(change, draws[key] - draws[plain])


def _same_episodes(evidence: EvidenceTable, keys: Iterable[Key]) -> dict[Key, tuple[Key, ...]]:
    """Agents whose episodes have the same scores, steps and probes: the first one -> the others."""
    lines = hash_lines(evidence.cells["episodes"].to_numpy(), evidence.episodes)
    played: dict[Key, list[tuple[Any, ...]]] = {key: [] for key in keys}
    cells = zip(evidence.keys, evidence.cells["schedule"], evidence.cells["seed"], lines, strict=True)
    for key, *episodes in cells:
        if key in played:
            played[key].append(tuple(episodes))
    groups: dict[tuple[Any, ...], list[Key]] = {}
    for key, found in played.items():
        groups.setdefault(tuple(found), []).append(key)
    return {first: tuple(others) for first, *others in groups.values() if others}

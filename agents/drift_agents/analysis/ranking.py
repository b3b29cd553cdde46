"""Agents ranked over all schedules by success per price.

The price is a curve: what an agent achieves within a budget of interactions. What counts are the episodes after the
first drift; in a cell without a drift, all of them. An episode is achieved if it ended, probes included, within the
budget: a multiple of the interactions that the clairvoyant policy takes for the same episodes of the same instance. An
agent whose probes take episodes of the schedule's clock plays fewer of them, and is measured against the same number. A
failed episode may be charged further interactions, for the agent and for the clairvoyant alike. An agent that needs
fewer interactions plays no further episodes.

An agent is ranked by the area under that curve: the mean over schedules of the mean over the instances that all agents
played. Controls are left out. Without the clairvoyant, success without a limit gives the rank.

Intervals are those of a paired bootstrap. Schedules are the fixed points of a design and are not resampled; instances
(seeds) are. Schedules with equally many instances share their resamples, since a seed draws one map for all schedules
of an environment. Source: Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice"
(NeurIPS 2021), stratified bootstrap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from drift_agents.analysis.evidence import AXES, EvidenceTable, Key, hash_lines
from drift_agents.analysis.names import CLAIRVOYANT
from drift_agents.analysis.runs import TOLERANCE, WINDOW
from drift_agents.errors import ArgumentError, EvidenceError
from drift_agents.experiment.logs import SUCCESS
from drift_envs.metrics import Estimate

BOARD = "board@2"
"""The version of the board's rules; figures of another one are not comparable."""

ENVIRONMENTS = {
    "lakes": ("DriftFrozenLake-v0",),
    "cars": ("DriftMountainCar-v0", "DriftMountainCarContinuous-v0"),
    "shop": ("DriftWebShop-v0",),
    "house": ("DriftHouse-v0",),
    "tools": ("DriftTools-v0",),
}
"""Environments that are reported together."""


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
        success: by measure of `drift_agents.analysis.ranking`; without the clairvoyant only `unlimited` is a number.
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
        charge: interactions that a failed episode is charged, one of `drift_agents.analysis.ranking.CHARGES`.

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


RESAMPLES = 10_000
LEVEL = 0.95
"""The share of the resamples that an interval holds."""

_AT_ONCE = 2**24
"""Weights that are in memory at the same time, 128 MB; counts take a quarter or an eighth of that."""

_EDGES = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)


class Resamples:
    """Seeds resampled with replacement, in the same way for all agents and for all schedules with as many seeds.

    Args:
        instances: pairs of schedule and seed, without doubles.
        resamples: how many.
        seed: of the draws.

    Raises:
        ArgumentError: if there is no instance.

    Example:
        >>> places = pd.MultiIndex.from_tuples([("lake", 0), ("lake", 1), ("shop", 0), ("shop", 1)])
        >>> drawn = Resamples(places, resamples=1000)
        >>> found = drawn.estimate([0.0, 1.0, 0.5, 0.5])
        >>> found.mean, found.low, found.high, found.n
        (0.5, 0.25, 0.75, 2)
    """

    def __init__(self, instances: pd.MultiIndex, resamples: int = RESAMPLES, seed: int = 0) -> None:
        if not len(instances):
            raise ArgumentError("`instances` should hold at least one. Received none")
        self._places: dict[str, np.ndarray] = {}
        self._counts: dict[str, np.ndarray] = {}
        schedules = instances.get_level_values(0).to_numpy()
        numbers = instances.get_level_values(1).to_numpy()
        for schedule in pd.unique(schedules):
            places = np.flatnonzero(schedules == schedule)
            places = places[np.argsort(numbers[places])]
            self._places[schedule], self._counts[schedule] = places, _draw_counts(len(places), resamples, seed)

    @property
    def n(self) -> int:
        """The least number of instances of a schedule."""
        return min(map(len, self._places.values()))

    def means(self, values: ArrayLike) -> np.ndarray:
        """The mean over schedules of every resample.

        Args:
            values: one number an instance, shape (..., instances).

        Returns:
            Means, shape (..., resamples).
        """
        table = np.asarray(values, dtype=np.float64)
        return np.asarray(np.mean([self.of(schedule, table) for schedule in self._places], axis=0))

    def of(self, schedule: str, values: ArrayLike) -> np.ndarray:
        """The mean of one schedule, of every resample.

        Args:
            values: one number an instance of all schedules, shape (..., instances).

        Returns:
            Means, shape (..., resamples).
        """
        own = np.asarray(values, dtype=np.float64)[..., self._places[schedule]]
        counts = self._counts[schedule]
        n, resamples = counts.shape
        size = max(_AT_ONCE // n, 1)
        blocks = (counts[:, first : first + size].astype(np.float64) for first in range(0, resamples, size))
        return np.concatenate([own @ (block / n) for block in blocks], axis=-1)

    def mean(self, values: ArrayLike) -> np.ndarray:
        """The mean over schedules of the mean over instances, shape (...)."""
        table = np.asarray(values, dtype=np.float64)
        return np.asarray(np.mean([table[..., places].mean(axis=-1) for places in self._places.values()], axis=0))

    def estimate(self, values: ArrayLike) -> Estimate:
        """The mean over schedules with its interval; of a single instance a schedule there is none.

        Args:
            values: one number an instance, shape (instances,).
        """
        return self.estimate_of(values, self.means(values))

    def estimate_of(self, values: ArrayLike, draws: np.ndarray) -> Estimate:
        """The same with resamples that are known.

        Args:
            values: one number an instance, shape (instances,).
            draws: what `means` returns for them, shape (resamples,).
        """
        return estimate(float(self.mean(values)), draws, self.n)

    def ranks(self, values: ArrayLike) -> list[tuple[int, int]]:
        """The interval of every agent's rank; equal means share a rank.

        Args:
            values: one number an agent and instance, shape (agents, instances).

        Returns:
            The best and the worst rank of every agent, from 1.

        Example:
            >>> places = pd.MultiIndex.from_tuples([("lake", seed) for seed in range(4)])
            >>> Resamples(places, resamples=50).ranks([[0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]])
            [(3, 3), (1, 1), (1, 1)]
        """
        means = np.round(self.means(values), 9)
        ranks = np.stack([1 + (means > own).sum(axis=0) for own in means])
        edges = np.quantile(ranks, _EDGES, axis=1, method="inverted_cdf").astype(int)
        return [(int(low), int(high)) for low, high in edges.T]


@lru_cache(maxsize=16)
def _draw_counts(n: int, resamples: int, seed: int) -> np.ndarray:
    """How often each of n instances is drawn, shape (n, resamples)."""
    rng = np.random.default_rng(seed)
    counts = np.empty((n, resamples), np.min_scalar_type(n))
    size = max(_AT_ONCE // n, 1)
    for first in range(0, resamples, size):
        block = counts[:, first : first + size]
        block[:] = rng.multinomial(n, [1 / n] * n, block.shape[1]).T
    return counts


def estimate(mean: float, draws: np.ndarray, n: int) -> Estimate:
    """A mean with the interval of its resamples.

    Args:
        draws: the means of the resamples, shape (resamples,).
    """
    low, high = np.round(np.quantile(draws, _EDGES), 9)  # equal values leave no interval
    return Estimate(round(mean, 9), float(low), float(high), n)


BUDGETS = (1.0, 1.25, 1.5, 2.0, 3.0)
"""Multiples of the clairvoyant's interactions."""

CHARGES = (0, 10, 50)
"""Interactions that a failed episode costs beyond its own steps."""

AREA, UNLIMITED = "area", "unlimited"

MEASURES = (*(f"x{budget:g}" for budget in BUDGETS), UNLIMITED, AREA)
"""The measures of a cell, by name: success at each budget, without a limit, and the area over the budgets."""


@lru_cache(maxsize=2)
def price_cells(evidence: EvidenceTable) -> pd.DataFrame:
    """Success of every cell in percent, by charge and budget.

    The success of an episode is 0 or 1 where the drift is explicit and its score in [0, 1] where it is implicit, as in
    the report. The area is the mean over the budgets from x1 to x3, by the trapezoidal rule.

    Returns:
        One row a cell, in order, and the columns (charge, measure) of `CHARGES` and `MEASURES`. Where the clairvoyant
        did not play the instance, all but `unlimited` are not a number.
    """
    cell, counted = _number_episodes(evidence)
    achieved = _achieved(evidence, cell)
    failed = (evidence.episodes["score"] < SUCCESS).to_numpy()
    interactions = (evidence.episodes["steps"] + evidence.episodes["probe_steps"]).to_numpy()
    best = _clairvoyant_cells(evidence)
    own = np.bincount(cell, counted)
    episodes = np.where(best < 0, own, own[best])
    widths = np.diff(BUDGETS)
    columns: dict[tuple[int, str], np.ndarray] = {}
    for charge in CHARGES:
        cost = np.where(counted, interactions + charge * failed, 0)
        total = np.cumsum(cost)
        spent = total - (total - cost)[evidence.starts][cell]
        needed = np.where(best < 0, np.nan, np.bincount(cell, cost)[best])
        curve = [_percent(cell, achieved * (counted & (spent <= b * needed[cell])), episodes) for b in BUDGETS]
        curve = [np.where(best < 0, np.nan, values) for values in curve]
        area = sum(width * (a + b) / 2 for width, a, b in zip(widths, curve[:-1], curve[1:], strict=True))
        whole = _percent(cell, achieved * counted, episodes)
        columns |= {(charge, name): values for name, values in zip(MEASURES, (*curve, whole), strict=False)}
        columns[charge, AREA] = np.asarray(area / widths.sum())
    return pd.DataFrame(columns)


def describe_cells(evidence: EvidenceTable) -> pd.DataFrame:
    """Further figures of every cell.

    Returns:
        One row a cell, in order, with the columns `probes` (their share of all interactions, percent) and `chain` (100
        if the agent recovered in every phase after the first drift, else 0; not a number where the clairvoyant did
        not play). It recovered in a phase if its mean over the last `WINDOW` episodes is within `TOLERANCE` of the
        clairvoyant's in the same episodes. The mean over instances is the chain accuracy in the sense of EvoArena
        (2026): the share of sequences of changes of which every one was mastered.
    """
    cell, counted = _number_episodes(evidence)
    steps, probes = (np.bincount(cell, evidence.episodes[name]) for name in ("steps", "probe_steps"))
    best = _clairvoyant_cells(evidence)
    lengths = evidence.cells["episodes"].to_numpy()
    position = np.arange(len(cell)) - evidence.starts[cell]
    theirs = best[cell]
    known = (theirs >= 0) & (position < lengths[theirs])
    achieved = _achieved(evidence, cell)
    optimal = np.where(known, achieved[np.where(known, evidence.starts[theirs] + position, 0)], np.nan)
    frame = pd.DataFrame({"cell": cell, "phase": evidence.episodes["phase"], "ours": achieved, "theirs": optimal})
    last = frame[counted].groupby(["cell", "phase"]).tail(WINDOW)
    means = last.groupby(["cell", "phase"])[["ours", "theirs"]].mean()
    recovered = means["ours"] >= (1 - TOLERANCE) * means["theirs"]
    chain = 100.0 * recovered.groupby(level="cell").all().to_numpy()
    return pd.DataFrame(
        {
            "probes": 100 * probes / np.maximum(steps + probes, 1),
            "chain": np.where(best < 0, np.nan, chain),
        }
    )


def instance_values(evidence: EvidenceTable, values: pd.Series | np.ndarray) -> pd.DataFrame:
    """Values of cells by agent and instance.

    Args:
        values: one a cell, in order.

    Returns:
        One row an agent (its key), one column an instance (schedule, seed); not a number where it did not play.
    """
    cells = evidence.cells
    keys, agents = pd.factorize(evidence.keys)
    places = pd.MultiIndex.from_arrays([cells["schedule"], cells["seed"]])
    numbers, instances = places.factorize(sort=True)
    table = np.full((len(agents), len(instances)), np.nan)
    table[keys, numbers] = values
    return pd.DataFrame(table, pd.Index(agents, tupleize_cols=False), instances)


def _number_episodes(evidence: EvidenceTable) -> tuple[np.ndarray, np.ndarray]:
    """The cell of every episode, and whether it counts."""
    cell = np.repeat(np.arange(len(evidence.cells)), evidence.cells["episodes"])
    drifted = (evidence.episodes["phase"] > 0).to_numpy()
    return cell, drifted | (np.bincount(cell, drifted) == 0)[cell]


def _achieved(evidence: EvidenceTable, cell: np.ndarray) -> np.ndarray:
    implicit = evidence.cells["schedule"].map(lambda name: evidence.schedules[name]["visibility"] == "implicit")
    score = evidence.episodes["score"].to_numpy()
    return np.asarray(np.where(implicit.to_numpy(bool)[cell], score, score >= SUCCESS))


def _clairvoyant_cells(evidence: EvidenceTable) -> np.ndarray:
    """By cell the number of the clairvoyant's cell of the same instance; -1 without one."""
    cells = evidence.cells[["schedule", "seed"]]
    optimal = cells[(evidence.cells[AXES[-1]] == CLAIRVOYANT).to_numpy()]
    numbers = pd.Series(optimal.index, pd.MultiIndex.from_frame(optimal))
    found: np.ndarray = numbers.reindex(pd.MultiIndex.from_frame(cells), fill_value=-1).to_numpy()
    return found


def _percent(cell: np.ndarray, achieved: np.ndarray, episodes: np.ndarray) -> np.ndarray:
    return np.asarray(100 * np.bincount(cell, achieved) / episodes)

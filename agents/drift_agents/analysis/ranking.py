"""Agents ranked over all schedules of a run by the score that they keep under drift, with its price.

* `Standing` - one agent with its figures
* `Standings` - all of them, ranked
* `make_standings` - the standings of a run
* `measure_instances` - the figures of every agent and instance

Pure functions over rows. The *kept* score of an instance is the score collected after the first drift as a share of
what the optimum of the same ticks collects on average, so that stochastic lakes and shops with partial rewards are
comparable. Agents are ranked by the score that they keep *at equal interactions*: probes count, and what is collected
counts up to the interactions that the optimal policy takes for the same ticks. Controls are left out, as are schedules
of two episodes and those on which more than half of the agents keep everything.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drift_agents.analysis.aggregates import Resamples
from drift_agents.analysis.runs import FAILURE_SHARE, Player, Row
from drift_agents.errors import ExperimentError
from drift_agents.experiment.logs import TEST
from drift_agents.types import SUPERVISION
from drift_envs.metrics import Estimate

AXES = ("memory", "verifier", "controller", "team", "policy")
"""The parts of an agent, in the order of the fields of a row."""

ENVIRONMENTS = {
    "lakes": ("DriftFrozenLake-v0",),
    "cars": ("DriftMountainCar-v0", "DriftMountainCarContinuous-v0"),
    "shop": ("DriftWebShop-v0",),
    "house": ("DriftHouse-v0",),
}
"""Environments that are reported together."""

TOKENS = ("tokens_estimated", "tokens_in", "tokens_out")
"""Fields that count tokens: estimated from the text, and as counted by language models."""

SHORT = 2
"""Schedules with no more episodes do not count: one before a drift and one after it show no adaptation."""

EVERYTHING = 0.995
"""The share of the optimum, as a mean over instances, from which on an agent keeps everything: 100 in whole percent."""

OPTIMAL = "clairvoyant"
"""The policy whose interactions are the budget of an instance."""

Key = tuple[str, ...]
Instance = tuple[str, int]


@dataclass(frozen=True)
class Standing:
    """One agent with its figures; shares are in percent.

    Args:
        key: the labels of its parts, in the order of `AXES`.
        supervision: one of `drift_agents.types.SUPERVISION`.
        reference: whether it is a privileged reference, which has no rank.
        ranks: the best and the worst rank, a 95 % interval over resamples.
        kept: the share of the optimum after the first drift, interquartile mean.
        at_equal: the same at equal interactions, by which agents are ranked; `None` where the optimal policy did
            not play, so that `kept` ranks them.
        gain: the difference to the same agent without verifier; `None` where there is none.
        before: the share before any drift, interquartile mean.
        groups: the share after the first drift in parts of the schedules, by their names.
        mean: the plain mean of what was kept.
        lost: the share of instances that failed.
        probing: the probes' share of all interactions, mean over instances.
        interactions: those of an episode, probes included, mean over instances.
        tokens: tokens of a decision, mean over instances; not a number where none were counted.
        records: the size of memory at the end, mean over instances.
        dollars: the price of an episode's requests to language models, mean over instances; not a number where no
            price is known.
    """

    key: Key
    supervision: str
    reference: bool
    ranks: tuple[int, int]
    kept: Estimate
    gain: Estimate | None
    before: float
    groups: Mapping[str, Estimate]
    mean: float
    lost: float
    probing: float
    interactions: float
    tokens: float
    records: float
    at_equal: Estimate | None = None
    dollars: float = math.nan

    @property
    def ranked_by(self) -> float:
        """The figure that ranks it; equal figures share a rank."""
        return round((self.at_equal or self.kept).mean, 9)


class Standings(NamedTuple):
    """All agents of a run, ranked.

    Args:
        ranked: the agents, the best one first.
        references: the privileged references.
        schedules: what counts, in the order of the run.
        instances: how many instances count.
        left_out: by schedule, how many instances do not count since not every agent played beyond a drift there.
        short: schedules that do not count since they have two episodes or fewer.
        saturated: schedules that do not count since more than half of the agents keep everything.
        same: agents that played the same episodes with the same probes: the first one -> the others.
    """

    ranked: list[Standing]
    references: list[Standing]
    schedules: tuple[str, ...]
    instances: int
    left_out: Mapping[str, int]
    short: tuple[str, ...] = ()
    saturated: tuple[str, ...] = ()
    same: Mapping[Key, tuple[Key, ...]] = MappingProxyType({})


def make_standings(manifest: Mapping[str, Any], rows: Sequence[Row]) -> Standings:
    """Rank the agents of a run.

    Args:
        manifest: the run's manifest.
        rows: its rows; those of a training phase do not count.

    Raises:
        ExperimentError: if there is no instance that all agents played beyond a drift.
    """
    about = manifest["schedules"]
    short = tuple(name for name, one in about.items() if not one.get("control") and one["episodes"] <= SHORT)
    uncounted = {name for name, one in about.items() if one.get("control")} | set(short)
    rows = [row for row in rows if row.get("stage", TEST) == TEST and row["schedule"] not in uncounted]
    figures = measure_instances(rows)
    axes = list(AXES)
    agents = {key: own.droplevel(axes) for key, own in figures.groupby(level=axes)} if len(figures) else {}
    kept = pd.concat([own["kept"] for own in agents.values()], axis=1) if agents else pd.DataFrame()
    positions = {schedule: position for position, schedule in enumerate(about)}
    common: list[Instance] = sorted(kept.dropna().index, key=lambda at: (positions[at[0]], at[1]))
    if not common:
        raise ExperimentError(
            f"{manifest['name']}: there is no instance that every agent played beyond a drift, on a schedule that is "
            f"no control, has more than {SHORT} episodes, and whose optimum is known"
        )
    players = _describe_players(manifest)
    ranked = [key for key in agents if not players.get(key, {}).get("reference")]
    same = _same_episodes(rows, ranked)
    distinct = [key for key in ranked if not any(key in others for others in same.values())]
    saturated = _saturated(common, [agents[key]["kept"] for key in distinct])
    common = [at for at in common if at[0] not in saturated]
    resamples = Resamples([schedule for schedule, _ in common])
    agents = {key: own.reindex(pd.MultiIndex.from_tuples(common)) for key, own in agents.items()}
    scores: dict[Key, list[float]] = {key: (100 * own["kept"]).tolist() for key, own in agents.items()}
    parts = {
        name: _estimate_part(resamples, within, scores) for name, within in _group_schedules(about, common).items()
    }
    equal = {key: (100 * own["at_equal"]).tolist() for key, own in agents.items()}
    budgeted = not any(math.isnan(value) for key in ranked for value in equal[key])
    ranking = equal if budgeted else scores
    ranks = dict(zip(distinct, resamples.ranks([ranking[key] for key in distinct]), strict=True)) if distinct else {}
    ranks |= {other: ranks[key] for key, others in same.items() for other in others}
    standings = []
    for key, values in scores.items():
        own = agents[key]
        standings.append(
            Standing(
                key,
                str(players.get(key, {}).get("supervision", "-")),
                key not in ranks,
                ranks.get(key, (0, 0)),
                resamples.estimate(values),
                _estimate_gain(resamples, scores, key),
                resamples.estimate(100 * own["before"]).mean,
                {name: estimates[key] for name, estimates in parts.items()},
                _mean(values),
                100 * _mean([value <= 100 * FAILURE_SHARE for value in values]),
                100 * _mean(own["probing"]),
                _mean(own["interactions"]),
                _mean(own["tokens"]),
                _mean(own["records"]),
                resamples.estimate(equal[key]) if budgeted else None,
                _mean(own["dollars"]) or math.nan,
            )
        )
    standings.sort(
        key=lambda standing: (
            -standing.ranked_by,
            -round(standing.kept.mean, 9),
            -round(standing.mean, 9),
            standing.key,
        )
    )
    return Standings(
        [standing for standing in standings if not standing.reference],
        [standing for standing in standings if standing.reference],
        tuple(dict.fromkeys(schedule for schedule, _ in common)),
        len(common),
        Counter(schedule for schedule, _ in sorted(set(kept.index).difference(common)) if schedule not in saturated),
        short,
        saturated,
        same,
    )


def measure_instances(rows: Sequence[Row]) -> pd.DataFrame:
    """The figures of every agent and instance.

    Args:
        rows: the rows of a run; those of a training phase do not count.

    Returns:
        One line an agent (`AXES`) and instance (schedule and seed), with the columns `kept` and `before` (the score as
        a share of the optimum after and before the first drift; NaN without rows or without a known optimum),
        `at_equal` (the first of them, of the episodes after the drift that ended within the interactions which the
        optimal policy took for the same ticks; NaN where it did not play),
        `probing` (the share of probe steps), `interactions` and `dollars` (of an episode), `tokens` (of a step) and
        `records` (at the end).
    """
    kept = [row for row in rows if row.get("stage", TEST) == TEST]
    if not kept:
        return pd.DataFrame()
    # Column by column: a frame of all fields takes four times the memory of the rows.
    frame = pd.DataFrame({field: [row.get(field, math.nan) for row in kept] for field in (*_FIELDS, *TOKENS)})
    del kept
    frame = frame.sort_values("episode", kind="stable")
    frame[[*TOKENS, "cost"]] = frame[[*TOKENS, "cost"]].fillna(0)
    frame["best"] = frame["score"] + frame["regret"].astype(float)
    first = frame.groupby(_INSTANCE, sort=False)["phase"].transform("first")
    frame["drifted"] = frame["phase"].ne(first)
    frame["drifted"] = frame.groupby(_INSTANCE, sort=False)["drifted"].cummax()
    by = frame.groupby(_INSTANCE, sort=False)
    steps, probes = by["steps"].sum(), by["probe_steps"].sum()
    estimated, tokens_in, tokens_out = (by[field].sum() for field in TOKENS)
    counted = tokens_in + tokens_out
    return pd.DataFrame(
        {
            "kept": _share_of_optimum(frame[frame["drifted"]]),
            "at_equal": _share_at_equal(frame[frame["drifted"]]),
            "before": _share_of_optimum(frame[~frame["drifted"]]),
            "probing": probes / (steps + probes).clip(lower=1),
            "interactions": (steps + probes) / by.size(),
            "tokens": counted.where(counted > 0, estimated).replace(0, np.nan) / steps.clip(lower=1),
            "records": by["memory_size"].last(),
            "dollars": by["cost"].sum() / by.size(),
        }
    ).sort_index()


_INSTANCE = [*AXES, "schedule", "seed"]
_FIELDS = [*_INSTANCE, "episode", "phase", "score", "regret", "steps", "probe_steps", "memory_size", "cost"]


def _share_of_optimum(frame: pd.DataFrame) -> pd.Series:
    """The score of each instance as a share of what the optimum collects; NaN where no optimum is known."""
    sums = frame.groupby(_INSTANCE, sort=False)[["score", "best"]].agg(math.fsum)
    return (sums["score"] / sums["best"]).where(sums["best"] > 0)


def _share_at_equal(frame: pd.DataFrame) -> pd.Series:
    """The share of the optimum that an instance collects within the optimal policy's interactions."""
    frame = frame.assign(used=frame["steps"] + frame["probe_steps"])
    place = ["schedule", "seed"]
    optimal = frame[frame["policy"] == OPTIMAL].groupby(place, sort=False)["used"].sum()
    frame["used"] = frame.groupby(_INSTANCE, sort=False)["used"].cumsum()
    budget = optimal.reindex(pd.MultiIndex.from_frame(frame[place])).to_numpy()
    frame["score"] = frame["score"].where(frame["used"].to_numpy() <= budget, 0.0)
    shares = _share_of_optimum(frame)
    known = shares.index.droplevel(list(AXES)).isin(optimal.index)
    return shares.where(known)


def _same_episodes(rows: Sequence[Row], keys: Sequence[Key]) -> dict[Key, tuple[Key, ...]]:
    """Agents whose episodes have the same scores, steps and probes: the first one -> the others."""
    played: dict[Key, list[tuple[Any, ...]]] = {key: [] for key in keys}
    for row in rows:
        key = tuple(str(row[axis]) for axis in AXES)
        if key in played:
            at = (row["schedule"], row["seed"], row["episode"])
            played[key].append((at, row["score"], row["steps"], row["probe_steps"]))
    groups: dict[tuple[Any, ...], list[Key]] = {}
    for key, episodes in played.items():
        groups.setdefault(tuple(sorted(episodes)), []).append(key)
    return {first: tuple(others) for first, *others in groups.values() if others}


def _saturated(common: Sequence[Instance], agents: Sequence[pd.Series]) -> tuple[str, ...]:
    """Schedules on which more than half of the agents keep everything; none if there would be no other ones."""
    found = []
    schedules = list(dict.fromkeys(schedule for schedule, _ in common))
    for schedule in schedules:
        places = pd.MultiIndex.from_tuples([at for at in common if at[0] == schedule])
        everything = sum(own.reindex(places).mean() >= EVERYTHING for own in agents)
        found += [schedule] if 2 * everything > len(agents) else []
    return tuple(found) if len(found) < len(schedules) else ()


def _describe_players(manifest: Mapping[str, Any]) -> dict[Key, Mapping[str, Any]]:
    """The manifest's entries by agent; of several schedules the one with the strongest supervision."""
    found: dict[Key, Mapping[str, Any]] = {}
    for entry in sorted(manifest["players"], key=lambda entry: SUPERVISION.index(entry["supervision"])):
        player = Player.of(entry)
        found[tuple(str(getattr(player, axis)) for axis in AXES)] = entry
    return found


def _group_schedules(about: Mapping[str, Any], common: Sequence[Instance]) -> dict[str, list[bool]]:
    """Groups of instances by the visibility of the drift and by the environment; empty groups are left out."""
    kinds = [(about[schedule]["visibility"], about[schedule]["env"]) for schedule, _ in common]
    groups = {kind: [visibility == kind for visibility, _ in kinds] for kind in ("explicit", "implicit")}
    groups |= {name: [env in ids for _, env in kinds] for name, ids in ENVIRONMENTS.items()}
    return {name: places for name, places in groups.items() if any(places)}


def _estimate_part(
    resamples: Resamples, within: Sequence[bool], scores: Mapping[Key, Sequence[float]]
) -> dict[Key, Estimate]:
    drawn = resamples.part(within)
    return {
        key: drawn.estimate([value for value, inside in zip(values, within, strict=True) if inside])
        for key, values in scores.items()
    }


def _estimate_gain(resamples: Resamples, scores: Mapping[Key, Sequence[float]], key: Key) -> Estimate | None:
    plain = tuple("none" if axis == "verifier" else part for axis, part in zip(AXES, key, strict=True))
    return None if plain == key or plain not in scores else resamples.difference(scores[key], scores[plain])


def _mean(values: Sequence[float] | pd.Series) -> float:
    return math.fsum(values) / len(values)
